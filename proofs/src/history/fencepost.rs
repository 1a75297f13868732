//! Rows 10 and 11: this project. The machine decides; this file carries out its effects, as a
//! runtime does, and holds the callers' mistakes that mutants make.

use fencepost::{
    Canon, Command, Effect, Error, EventId, Gpu, Machine, Policy, Query, QueueId, Reply, Signal, Space, Step, StreamId,
    Submit, Synchronize, TimedOut, Waited, WaiterId, Work,
};

use crate::host::{Host, NOBODY, Target, Until};
use crate::mutants::Mutant;
use crate::protocol::{Blocking, Order, Part, Protocol, Seen, SlotCounts};
use crate::setup::{Setup, StreamQueues};
use crate::unbounded::refinement::Change;

/// The machine behind the client's names.
#[derive(Debug)]
pub struct Fencepost {
    machine: Machine,
    queues: &'static [StreamQueues],
    streams: Vec<Pair>,
    events: Vec<EventId>,
    /// Whether slots that only `bounded` cares about are part of the state.
    keeps_slots: bool,
    /// A guard is missing, so that the state holds more than the canonical form relies on.
    is_unguarded: bool,
    mutant: Option<Mutant>,
    /// Waits that a mutant has yet to make, or those that it remembers.
    waits: Vec<(usize, usize)>,
    /// The buffer that each event was recorded into, with its lease, for a mutant.
    buffers: Vec<Option<(u32, u64)>>,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    compute: StreamId,
    transfer: Option<StreamId>,
}

impl Clone for Fencepost {
    fn clone(&self) -> Self {
        Fencepost {
            machine: self.machine.clone(),
            streams: self.streams.clone(),
            events: self.events.clone(),
            waits: self.waits.clone(),
            buffers: self.buffers.clone(),
            ..*self
        }
    }

    fn clone_from(&mut self, other: &Self) {
        self.machine.clone_from(&other.machine);
        self.streams.clone_from(&other.streams);
        self.events.clone_from(&other.events);
        self.waits.clone_from(&other.waits);
        self.buffers.clone_from(&other.buffers);
        (self.queues, self.mutant) = (other.queues, other.mutant);
        (self.keeps_slots, self.is_unguarded) = (other.keeps_slots, other.is_unguarded);
    }
}

impl Protocol for Fencepost {
    fn new(setup: &Setup, gpu: &mut Gpu) -> Self {
        let policy = Policy { events: setup.row == 10 };
        let mut new = Fencepost {
            machine: Machine::without(policy, setup.without),
            queues: setup.topology.streams(),
            streams: Vec::new(),
            events: Vec::new(),
            keeps_slots: !setup.reductions.drop_slots,
            is_unguarded: !setup.without.is_empty(),
            mutant: setup.mutant,
            waits: Vec::new(),
            buffers: vec![None; setup.bounds.events],
        };
        for queues in new.queues {
            let pair = new.pair(queues, |_| {
                gpu.create_semaphore();
                Reply::Done
            });
            new.streams.extend(pair);
        }
        new.events = (0..setup.bounds.events).map(|_| new.machine.create_event()).collect();
        new
    }

    fn work(&mut self, host: &mut Host, stream: usize, part: Part, work: Option<Work>) -> bool {
        let pair = self.streams[stream];
        let stream = if part == Part::Copy { pair.transfer.unwrap_or(pair.compute) } else { pair.compute };
        let lease = self.drive(host, |m| m.work(stream));
        if let (Ok(lease), Some(work)) = (lease, work) {
            host.record(lease.id(), self.queue(stream), Command::Work(work));
        }
        if lease.is_ok() {
            host.observe(Some(&self.machine), Change::Work(stream));
        }
        lease.is_ok()
    }

    fn record(&mut self, host: &mut Host, event: usize, stream: usize) -> bool {
        let (event_id, stream_id) = (self.events[event], self.streams[stream].compute);
        let Ok(recorded) = self.drive(host, |m| m.record(event_id, stream_id)) else { return false };
        if let Some((lease, slot)) = recorded.set {
            let queue = self.queue(stream_id);
            if self.mutant == Some(Mutant::ResetInQueue) {
                host.record(lease.id(), queue, Command::Reset(slot.index));
            }
            host.record(lease.id(), queue, Command::Set(slot.index));
            self.buffers[event].get_or_insert((lease.id(), lease.generation));
        }
        host.observe(Some(&self.machine), Change::Record(event_id, stream_id));
        true
    }

    fn wait(&mut self, host: &mut Host, stream: usize, event: usize) -> bool {
        match self.mutant {
            Some(Mutant::WaitBoundAtSubmit) => {
                if !self.waits.contains(&(stream, event)) {
                    self.waits.push((stream, event));
                }
                true
            }
            Some(Mutant::SkipsWaitByEvent) => {
                if self.waits.contains(&(stream, event)) {
                    return true;
                }
                if host.ghost.recorded[event] {
                    self.waits.push((stream, event));
                }
                self.wait_now(host, stream, event)
            }
            _ => self.wait_now(host, stream, event),
        }
    }

    fn flush(&mut self, host: &mut Host, stream: usize) -> bool {
        if self.mutant == Some(Mutant::MergeIntoSignallingBatch) {
            return (0..self.streams.len()).all(|stream| self.flush_one(host, stream));
        }
        if self.mutant == Some(Mutant::WaitBoundAtSubmit) {
            while let Some(at) = self.waits.iter().position(|(s, _)| *s == stream) {
                let (_, event) = self.waits.swap_remove(at);
                self.wait_now(host, stream, event);
            }
        }
        self.flush_one(host, stream)
    }

    fn synchronize(&mut self, host: &mut Host, target: Target) -> Blocking {
        if self.mutant == Some(Mutant::MergeIntoSignallingBatch) && !self.flush(host, 0) {
            return Blocking::Failed;
        }
        if self.mutant == Some(Mutant::CheckThenRegister)
            && let Target::Event(event) = target
        {
            return self.check(host, event);
        }
        let answer = match target {
            Target::Event(event) => {
                let event = self.events[event];
                self.drive(host, |m| m.synchronize(event))
            }
            Target::Stream(stream) => {
                let stream = self.streams[stream].compute;
                self.drive(host, |m| m.synchronize_stream(stream))
            }
        };
        match (answer, target) {
            (Ok(Synchronize::Done), Target::Event(event)) => {
                host.observe(Some(&self.machine), Change::EventDone(self.events[event]));
            }
            (Ok(Synchronize::Done), Target::Stream(stream)) => {
                host.observe(Some(&self.machine), Change::StreamDone(self.streams[stream].compute));
            }
            (Ok(Synchronize::Block { waiter, .. }), Target::Event(event)) => {
                host.observe(Some(&self.machine), Change::BlockOnEvent(self.events[event], waiter));
            }
            (Ok(Synchronize::Block { waiter, .. }), Target::Stream(stream)) => {
                host.observe(Some(&self.machine), Change::BlockOnStream(self.streams[stream].compute, waiter));
            }
            (Err(_), _) => {}
        }
        match answer {
            Ok(Synchronize::Done) => Blocking::Done,
            Ok(Synchronize::Block { waiter, point }) => {
                let semaphore = self.machine.timeline(point.stream).unwrap_or(0);
                Blocking::Block {
                    until: Until::Semaphore(Signal { semaphore, value: point.value }),
                    token: token(waiter),
                }
            }
            Err(_) => Blocking::Failed,
        }
    }

    fn returned(&mut self, host: &mut Host, target: Target, until: Until, _token: u64) {
        if host.gpu.is_lost() {
            let _ = self.drive(host, |m| m.lose());
            return;
        }
        let Until::Semaphore(signal) = until else { return };
        if let (Some(Mutant::BufferResetByPointer), Target::Event(event)) = (self.mutant, target)
            && let Some((buffer, lease)) = self.buffers[event].take()
        {
            host.reset_buffer(buffer, lease);
        }
        self.report(host, signal);
    }

    fn destroy(&mut self, host: &mut Host, event: usize) {
        if self.machine.destroy_event(self.events[event]).is_ok() {
            host.observe(Some(&self.machine), Change::Destroy(self.events[event]));
            self.events[event] = self.machine.create_event();
            self.waits.retain(|(_, e)| *e != event);
        }
    }

    fn query(&self, gpu: &Gpu, event: usize) -> Option<bool> {
        Some(match self.machine.query(self.events[event]) {
            Ok(Query::Done) => true,
            Ok(Query::Pending(p)) => {
                self.machine.timeline(p.stream).is_some_and(|t| !gpu.is_lost() && gpu.semaphore(t) >= p.value)
            }
            Ok(Query::Open(_)) | Err(_) => false,
        })
    }

    fn observe(&self, host: &mut Host, seen: Seen) {
        match seen {
            Seen::Start => host.observe(Some(&self.machine), Change::Machine),
            Seen::Done(event) => host.observe(Some(&self.machine), Change::EventDone(self.events[event])),
            Seen::Step => {
                let (machine, ghost) = (&self.machine, &*host.ghost);
                let Some(watch) = &mut host.watch else { return };
                if machine.is_lost() || host.gpu.is_lost() {
                    return;
                }
                let lanes = |p: &Pair| [Some(p.compute), p.transfer].into_iter().flatten();
                let streams = self.streams.iter().zip(&ghost.depends);
                let depends = streams.flat_map(|(pair, works)| lanes(pair).map(|s| (s, *works != 0)));
                let covers = self.events.iter().zip(&ghost.covers).map(|(e, works)| (*e, *works != 0));
                watch.agree(depends, covers);
            }
        }
    }

    fn can_poll(&self, gpu: &Gpu, stream: usize) -> bool {
        let pair = self.streams[stream];
        if self.machine.is_lost() {
            return false;
        }
        let mine = [Some(pair.compute), pair.transfer].into_iter().flatten().any(|s| self.behind(gpu, s));
        mine || gpu.is_lost() || self.draining().any(|s| self.behind(gpu, s))
    }

    fn poll(&mut self, host: &mut Host, stream: usize) {
        let pair = self.streams[stream];
        // Whoever reads one timeline reads those of streams that drain, too.
        let draining: Vec<StreamId> = self.draining().collect();
        for stream in [Some(pair.compute), pair.transfer].into_iter().flatten().chain(draining) {
            if let Some(semaphore) = self.machine.timeline(stream) {
                let value = if host.gpu.is_lost() { u64::MAX } else { host.gpu.semaphore(semaphore) };
                self.report(host, Signal { semaphore, value });
            }
        }
    }

    fn renew_stream(&mut self, host: &mut Host, stream: usize) -> bool {
        let old = self.streams[stream].compute;
        if self.drive(host, |m| m.destroy_stream(old)).is_err() {
            return false;
        }
        let queues = &self.queues[stream];
        let pair = self.pair(queues, |_| {
            host.gpu.create_semaphore();
            Reply::Done
        });
        if let Some(pair) = pair {
            self.streams[stream] = pair;
        }
        host.observe(Some(&self.machine), Change::Machine);
        true
    }

    fn timed_out(&mut self, host: &mut Host, token: u64) -> bool {
        let answer = self.machine.timed_out(waiter(token));
        let is_done = answer == TimedOut::AlreadyWoken;
        host.observe(Some(&self.machine), Change::TimeOut(waiter(token), is_done));
        is_done
    }

    fn register(&mut self, target: Target) -> u64 {
        let Target::Event(event) = target else { return NOBODY };
        match self.machine.query(self.events[event]) {
            Ok(Query::Pending(point)) => self.machine.watch(point).ok().flatten().map_or(NOBODY, token),
            _ => NOBODY,
        }
    }

    fn in_flight(&self, gpu: &Gpu) -> usize {
        let of_stream = |stream: StreamId| {
            let timeline = self.machine.timeline(stream)?;
            let (submitted, reached) = self.machine.progress(stream)?;
            let reached = reached.min(submitted);
            if self.is_unguarded {
                return Some((submitted - reached) as usize);
            }
            let ended = gpu.semaphore(self.shared(timeline)).clamp(reached, submitted);
            let running = (submitted - ended) as usize;
            if ended == reached {
                return Some(running);
            }
            let named = self.named(gpu).filter(|(t, v)| *t == timeline && (reached + 1..=ended).contains(v));
            let mut named: Vec<u64> = named.map(|(_, v)| v).collect();
            named.sort_unstable();
            named.dedup();
            Some(running + named.len())
        };
        // One destroyed stream drains at a time.
        if self.draining().count() > 1 {
            return usize::MAX;
        }
        self.machine.streams().filter_map(of_stream).max().unwrap_or(0)
    }

    fn slots(&self, _gpu: &Gpu, quiet: bool) -> Option<SlotCounts> {
        if self.machine.is_lost() {
            return None;
        }
        let [_, recorded, pending, submitted] = self.machine.slot_counts();
        let mut stranded = self.machine.stranded_slots();
        // Counted without the machine's own idea of a frontier: nothing is open, nothing runs, all is known.
        if quiet && pending == 0 {
            stranded += submitted;
        }
        Some(SlotCounts {
            live: recorded + pending + submitted,
            allowed: self.events.len() + pending + submitted,
            stranded,
        })
    }

    fn locks_while_blocked(&self) -> bool {
        self.mutant == Some(Mutant::HostWaitHoldsLock)
    }

    fn stream_signature(&self, gpu: &Gpu, stream: usize) -> u16 {
        let (lease, slots) = self.machine.open_batch(self.streams[stream].compute);
        let ops = lease.map_or(0, |lease| gpu.open_ops(lease.id()).len());
        u16::from(lease.is_some()) << 9 | (slots.min(15) as u16) << 4 | ops.min(15) as u16
    }

    fn event_signature(&self, event: usize) -> u8 {
        match self.machine.query(self.events[event]) {
            Ok(Query::Done) => 0,
            Ok(Query::Pending(_)) => 1,
            Ok(Query::Open(_)) => 2,
            Err(_) => 3,
        }
    }

    fn name_values(&self, gpu: &Gpu, c: &mut Canon) {
        self.named(gpu).for_each(|(timeline, value)| c.name_value(self.shared(timeline), value));
    }

    fn assign(&self, _gpu: &Gpu, order: &Order, c: &mut Canon) {
        let ids = order.streams.iter().flat_map(|s| [Some(self.streams[*s].compute), self.streams[*s].transfer]);
        let ids: Vec<StreamId> = ids.flatten().collect();
        self.machine.assign(c, &ids);
    }

    fn write(&self, gpu: &Gpu, order: &Order, c: &mut Canon) {
        let events: Vec<EventId> = order.events.iter().map(|e| self.events[*e]).collect();
        self.machine.write(c, &events);
        if self.mutant.is_some() {
            let mut waits: Vec<(usize, usize)> = self
                .waits
                .iter()
                .map(|(s, e)| {
                    let at = |list: &[usize], x: usize| list.iter().position(|y| *y == x).unwrap_or(0);
                    (at(&order.streams, *s), at(&order.events, *e))
                })
                .collect();
            waits.sort_unstable();
            c.number(waits.len() as u64);
            waits.iter().for_each(|(s, e)| c.number((s * 16 + e) as u64));
        }
        if self.mutant == Some(Mutant::BufferResetByPointer) {
            for e in &order.events {
                match self.buffers[*e] {
                    Some((buffer, lease)) => {
                        c.name(Space::Buffer, u64::from(buffer));
                        c.flag(gpu.open_lease(buffer).is_none_or(|open| open == lease));
                    }
                    None => c.number(255),
                }
            }
        }
    }

    fn write_rest(&self, c: &mut Canon) {
        self.machine.write_slots(c, self.keeps_slots);
    }

    fn write_until(&self, until: Until, token: u64, c: &mut Canon) {
        c.number(until.tag());
        if let Until::Semaphore(signal) = until {
            c.value(signal.semaphore, signal.value);
        }
        self.machine.write_waiter(waiter(token), c);
    }
}

impl Fencepost {
    /// The loop that every user of the machine has.
    fn drive<T>(
        &mut self,
        host: &mut Host,
        mut call: impl FnMut(&mut Machine) -> Result<Step<T>, Error>,
    ) -> Result<T, Error> {
        loop {
            let step = call(&mut self.machine);
            match step {
                Ok(Step::First(Effect::Wake { waiter, lost: false })) => {
                    host.observe(Some(&self.machine), Change::Wake(waiter));
                }
                Ok(Step::First(_)) | Err(_) => host.observe(Some(&self.machine), Change::Machine),
                // Whoever asked adds a command first, if the answer has one.
                Ok(Step::Done(_)) => {}
            }
            match step? {
                Step::Done(answer) => return Ok(answer),
                // A mutant may wake without end.
                Step::First(Effect::Wake { .. }) if host.broken.is_some() => return Err(Error::Lost),
                Step::First(effect) => {
                    let reply = self.carry_out(host, effect);
                    let replied = self.machine.reply(effect, reply);
                    host.observe(Some(&self.machine), Change::Machine);
                    replied?;
                }
            }
        }
    }

    fn carry_out(&mut self, host: &mut Host, effect: Effect) -> Reply {
        match effect {
            Effect::CreateTimeline { .. } => {
                host.gpu.create_semaphore();
                Reply::Done
            }
            Effect::Begin { stream, lease, .. } => host.begin(lease.id(), self.queue(stream), lease.generation),
            Effect::Submit { stream, lease, value } => {
                let semaphore = self.semaphore(stream);
                let waits =
                    self.machine.open_waits(stream).map(|(t, value)| Signal { semaphore: self.shared(t), value });
                let batch = Submit {
                    waits: waits.collect(),
                    buffer: lease.map(|l| l.id()),
                    signal: Some(Signal { semaphore, value }),
                    fence: None,
                };
                host.submit(self.queue(stream), &batch)
            }
            Effect::CreateSlot { slot } => match host.create_event() {
                Ok(event) => {
                    assert_eq!(event, slot.index, "device events are never destroyed, so the two counts agree");
                    Reply::Done
                }
                Err(reply) => reply,
            },
            // The mutant's reset goes into the queue instead, with the set.
            Effect::ResetSlot { .. } if self.mutant == Some(Mutant::ResetInQueue) => Reply::Done,
            Effect::ResetSlot { slot } => host.reset_event(slot.index),
            Effect::Wake { waiter, lost } => {
                host.wake(token(waiter), lost);
                Reply::Done
            }
        }
    }

    fn wait_now(&mut self, host: &mut Host, stream: usize, event: usize) -> bool {
        let (stream, event) = (self.streams[stream].compute, self.events[event]);
        let Ok(waited) = self.drive(host, |m| m.wait(stream, event)) else { return false };
        let queue = self.queue(stream);
        match waited {
            Waited::Nothing => {}
            Waited::Barrier(lease) => host.record(lease.id(), queue, Command::Barrier),
            Waited::Event(lease, slot) => host.record(lease.id(), queue, Command::Wait(slot.index)),
        }
        host.observe(Some(&self.machine), Change::Wait(stream, event));
        true
    }

    fn flush_one(&mut self, host: &mut Host, stream: usize) -> bool {
        let pair = self.streams[stream];
        [Some(pair.compute), pair.transfer].into_iter().flatten().all(|s| self.drive(host, |m| m.flush(s)).is_ok())
    }

    fn named<'a>(&'a self, gpu: &'a Gpu) -> impl Iterator<Item = (u32, u64)> + 'a {
        self.machine.named_points(|slot| self.keeps_slots || gpu.names_event(slot))
    }

    /// A mutant's first half of synchronize: check only.
    fn check(&mut self, host: &mut Host, event: usize) -> Blocking {
        loop {
            match self.machine.query(self.events[event]) {
                Ok(Query::Done) => return Blocking::Done,
                Ok(Query::Pending(point)) => {
                    let semaphore = self.machine.timeline(point.stream).unwrap_or(0);
                    let until = Until::Semaphore(Signal { semaphore, value: point.value });
                    return Blocking::Checked { until };
                }
                Ok(Query::Open(point)) => {
                    if self.drive(host, |m| m.flush(point.stream)).is_err() {
                        return Blocking::Failed;
                    }
                }
                Err(_) => return Blocking::Failed,
            }
        }
    }

    /// Tells the machine what a timeline was seen at.
    fn report(&mut self, host: &mut Host, seen: Signal) {
        let Some(stream) = self.machine.stream_of(seen.semaphore) else { return };
        let before = self.machine.progress(stream).map_or(0, |(_, reached)| reached);
        let _ = self.drive(host, |m| m.reached(stream, seen.value));
        host.observe(Some(&self.machine), Change::Machine);
        if let Some((_, after)) = self.machine.progress(stream) {
            host.judge(fencepost::Occurrence::Published { before, after });
        }
    }

    fn pair(&mut self, queues: &StreamQueues, mut create: impl FnMut(Effect) -> Reply) -> Option<Pair> {
        let mut stream = |machine: &mut Machine, queue| loop {
            match machine.create_stream(queue).ok()? {
                Step::Done(stream) => return Some(stream),
                Step::First(effect) => {
                    let reply = create(effect);
                    machine.reply(effect, reply).ok()?;
                }
            }
        };
        let compute = stream(&mut self.machine, queues.queue)?;
        let transfer = queues.transfer.and_then(|queue| stream(&mut self.machine, queue));
        if let Some(transfer) = transfer {
            self.machine.set_companion(compute, transfer).ok()?;
        }
        Some(Pair { compute, transfer })
    }

    /// Streams that were destroyed and have not drained.
    fn draining(&self) -> impl Iterator<Item = StreamId> + '_ {
        let mine = |s: &StreamId| self.streams.iter().any(|p| p.compute == *s || p.transfer == Some(*s));
        self.machine.streams().filter(move |s| !mine(s))
    }

    fn behind(&self, gpu: &Gpu, stream: StreamId) -> bool {
        let reached = self.machine.progress(stream).map_or(0, |(_, reached)| reached);
        self.machine.timeline(stream).is_some_and(|t| gpu.semaphore(t) > reached)
    }

    fn queue(&self, stream: StreamId) -> QueueId {
        self.machine.queue(stream).unwrap_or(0)
    }

    fn semaphore(&self, stream: StreamId) -> u32 {
        self.shared(self.machine.timeline(stream).unwrap_or(0))
    }

    /// The semaphore of a timeline; a mutant has one for all.
    fn shared(&self, timeline: u32) -> u32 {
        if self.mutant == Some(Mutant::TwoQueuesOneTimeline) { 0 } else { timeline }
    }
}

/// A waiter as a number that no other has.
fn token(waiter: WaiterId) -> u64 {
    u64::from(waiter.index) << 32 | u64::from(waiter.generation)
}

fn waiter(token: u64) -> WaiterId {
    WaiterId { index: (token >> 32) as u32, generation: token as u32 }
}
