//! The canonical form of a world, and the order it is written in.
//!
//! What merging rests on: names that the client chose (streams, events, threads) carry no meaning, and of all
//! orders that the topology allows the smallest form stands for all. Soundness needs that the successors of merged
//! worlds merge as well. `tests/canonical.rs` compares them: no pair differs.

use fencepost::{Canon, Op, Rule, Space};

use crate::host::{NOBODY, Target, Thread, Until};
use crate::protocol::{Order, Protocol, queues_in_order};
use crate::setup::Setup;
use crate::world::{System, World};

/// Hands over the canonical form.
pub fn with_form<P: Protocol, T>(system: &System<P>, world: &World<P>, take: impl FnOnce(&[u8]) -> T) -> T {
    thread_local! {
        static SCRATCH: std::cell::RefCell<[Canon; 2]> = std::cell::RefCell::new([Canon::new(), Canon::new()]);
    }
    SCRATCH.with_borrow_mut(|[best, c]| {
        best.clear_values();
        world.protocol.name_values(&world.gpu, best);
        world.gpu.name_values(best);
        for thread in &world.threads {
            if let Thread::Blocked { until: Until::Semaphore(wanted), .. }
            | Thread::Late { until: Until::Semaphore(wanted), .. } = thread
                && wanted.value > world.gpu.semaphore(wanted.semaphore)
            {
                best.name_value(wanted.semaphore, wanted.value);
            }
        }
        c.copy_values(best);
        best.clear();
        if let [only] = system.orders.as_slice() {
            write(system, world, only, best);
            return take(best.bytes());
        }
        // Only orders that sort what is cheap to compare come first; those that tie are written out.
        let signature = |order: &Order| signature(world, order);
        let least = system.orders.iter().map(signature).min();
        let mut first = true;
        for order in system.orders.iter().filter(|order| Some(signature(order)) == least) {
            c.clear();
            write(system, world, order, c);
            if first || c.bytes() < best.bytes() {
                std::mem::swap(c, best);
                first = false;
            }
        }
        take(best.bytes())
    })
}

/// The orders to try: all that the topology allows, or the client's own.
pub fn orders(setup: &Setup) -> Vec<Order> {
    let streams = setup.topology.streams();
    let events = setup.bounds.events;
    let own: Vec<usize> = (0..streams.len()).collect();
    if !setup.reductions.symmetry {
        return vec![Order { streams: own, events: (0..events).collect() }];
    }
    // Renaming streams renames queues; two streams that share a queue have to share it afterwards.
    let shares = |order: &[usize], a: usize, b: usize| streams[order[a]].queue == streams[order[b]].queue;
    let allowed = |order: &Vec<usize>| {
        (0..own.len()).all(|a| (0..a).all(|b| shares(order, a, b) == shares(&own, a, b)))
            && order.iter().zip(&own).all(|(a, b)| streams[*a].transfer.is_some() == streams[*b].transfer.is_some())
    };
    let mut orders = Vec::new();
    for streams in permutations(streams.len()).into_iter().filter(allowed) {
        orders.extend(permutations(events).into_iter().map(|events| Order { streams: streams.clone(), events }));
    }
    orders
}

/// What an order puts first: nothing in it depends on the names themselves.
fn signature<P: Protocol>(world: &World<P>, order: &Order) -> u128 {
    let World { protocol, gpu, ghost, .. } = world;
    let mut all = 0u128;
    for s in &order.streams {
        let asked = u128::from(ghost.issued[*s] & 7) << 3 | u128::from(ghost.depends[*s] & 7);
        all = all << 16 | asked << 10 | u128::from(protocol.stream_signature(gpu, *s) & 0x3ff);
    }
    for e in &order.events {
        all = all << 8 | u128::from(ghost.covers[*e] & 7) << 5 | u128::from(protocol.event_signature(*e) & 0x1f);
    }
    all
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![vec![]];
    }
    let mut all = Vec::new();
    for rest in permutations(n - 1) {
        for at in 0..n {
            let mut order = rest.clone();
            order.insert(at, n - 1);
            all.push(order);
        }
    }
    all
}

fn write<P: Protocol>(system: &System<P>, world: &World<P>, order: &Order, c: &mut Canon) {
    let World { protocol, gpu, ghost, threads, broken, seen: _, watch: _ } = world;
    c.number(broken.map_or(0, |rule| 1 + Rule::ALL.iter().position(|r| *r == rule).unwrap_or(0) as u64));
    for queue in queues_in_order(&system.setup, order) {
        if !c.assigned(Space::Queue).contains(&u64::from(queue)) {
            c.assign(Space::Queue, u64::from(queue));
        }
    }
    protocol.assign(gpu, order, c);
    protocol.write(gpu, order, c);
    c.number(u64::from(ghost.live));
    for s in &order.streams {
        c.number(u64::from(ghost.issued[*s]));
        c.number(u64::from(ghost.depends[*s]));
    }
    for e in &order.events {
        c.number(u64::from(ghost.covers[*e]));
        c.flag(ghost.recorded[*e]);
    }
    c.flag(ghost.refused);
    gpu.write(c, |buffer, c| protocol.write_buffer(buffer, c));
    write_threads(protocol, threads, order, c);
    protocol.write_rest(c);
    for name in 0..c.assigned(Space::DeviceEvent).len() {
        if let Some(event) = c.raw(Space::DeviceEvent, name) {
            gpu.write_event(event as u32, c);
        }
    }
}

/// Threads are alike: records of one width, in any order.
fn write_threads<P: Protocol>(protocol: &P, threads: &[Thread], order: &Order, c: &mut Canon) {
    let start = c.bytes().len();
    for thread in threads {
        let (tag, target, covers) = match *thread {
            Thread::Idle => (0, None, 0),
            Thread::Blocked { target, covers, .. } => (1, Some(target), covers),
            Thread::Checked { target, covers, .. } => (2, Some(target), covers),
            Thread::Late { target, .. } => (3, Some(target), 0),
        };
        let from = c.bytes().len();
        c.number(tag);
        match target {
            None => c.number(255),
            Some(Target::Event(e)) => c.number(order.events.iter().position(|x| *x == e).unwrap_or(0) as u64),
            Some(Target::Stream(s)) => c.number(100 + order.streams.iter().position(|x| *x == s).unwrap_or(0) as u64),
        }
        c.number(u64::from(covers));
        match *thread {
            Thread::Idle => {}
            Thread::Blocked { until, token, .. } => protocol.write_until(until, token, c),
            Thread::Checked { until, .. } | Thread::Late { until, .. } => protocol.write_until(until, NOBODY, c),
        }
        while c.bytes().len() < from + THREAD_WIDTH {
            c.number(255);
        }
    }
    c.sort_records(start, THREAD_WIDTH);
}

const THREAD_WIDTH: usize = 8;

/// An operation in words.
pub fn op_text(op: &Op) -> String {
    match *op {
        Op::Start { semaphore, value } => format!("batch starts: T{semaphore}>={value}"),
        Op::Work { work, begun } => {
            let what = if work.tracked != 0 { "work W" } else { "work D" };
            format!("{what} {}", if begun { "ends" } else { "begins" })
        }
        Op::Barrier => "barrier passes".into(),
        Op::Set { event, .. } => format!("V{event} is set"),
        Op::Wait { event, .. } => format!("wait V{event} passes"),
        Op::Reset { event, .. } => format!("V{event} is reset"),
        Op::End { signal, .. } => match signal {
            Some(s) => format!("batch ends: T{}={}", s.semaphore, s.value),
            None => "batch ends".into(),
        },
    }
}
