//! The system that is searched: client, protocol, device and judge, as a `stateright::Model`.
//!
//! A state carries one concrete world and its canonical form; two states are the same if their
//! canonical forms are. The search stores and compares the forms and steps the worlds.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

use fencepost::{DeviceStep, Ghost, Gpu, Occurrence, Rule, Work};
use stateright::{Model, Property};

pub use crate::action::{Action, Kind};
use crate::canonical;
use crate::host::{Host, Lane, Line, NOBODY, Target, Thread, Until};
use crate::protocol::{Blocking, Order, Part, Protocol, Seen};
use crate::setup::Setup;
use crate::unbounded::refinement::{Change, Tally, Watch};

/// A concrete world.
#[derive(Debug)]
pub struct World<P> {
    pub protocol: P,
    pub gpu: Gpu,
    pub ghost: Ghost,
    pub threads: Vec<Thread>,
    /// The first rule broken; such a world takes no further step.
    pub broken: Option<Rule>,
    /// Rules whose antecedent held in the step that led here.
    pub seen: u16,
    /// Compares each step with the relation of the unbounded proof.
    pub watch: Option<Box<Watch>>,
}

impl<P: Clone> Clone for World<P> {
    fn clone(&self) -> Self {
        World {
            protocol: self.protocol.clone(),
            gpu: self.gpu.clone(),
            ghost: self.ghost.clone(),
            threads: self.threads.clone(),
            broken: self.broken,
            seen: self.seen,
            watch: self.watch.clone(),
        }
    }

    /// Keeps the memory of the vectors inside.
    fn clone_from(&mut self, other: &Self) {
        self.protocol.clone_from(&other.protocol);
        self.gpu.clone_from(&other.gpu);
        self.ghost.clone_from(&other.ghost);
        self.threads.clone_from(&other.threads);
        self.broken = other.broken;
        self.seen = other.seen;
        self.watch.clone_from(&other.watch);
    }
}

/// A world under its canonical form.
#[derive(Clone)]
pub struct State<P> {
    pub key: Arc<[u8]>,
    pub world: World<P>,
}

impl<P> PartialEq for State<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<P> Eq for State<P> {}

impl<P> Hash for State<P> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl<P: fmt::Debug> fmt::Debug for State<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.world.fmt(f)
    }
}

/// A configuration of one protocol.
pub struct System<P> {
    pub setup: Setup,
    /// The orders of names that a state may be written in.
    pub orders: Vec<Order>,
    /// Where steps are compared with the relation of the unbounded proof: what is counted.
    pub tally: Option<Arc<Tally>>,
    protocol: PhantomData<P>,
}

/// How many refusable driver calls one client call makes at most: beyond it nothing would fire.
const REFUSE_MAX: u8 = 4;

impl<P: Protocol> System<P> {
    pub fn new(setup: Setup) -> Self {
        System { setup, orders: canonical::orders(&setup), tally: None, protocol: PhantomData }
    }

    /// A system (row 10 or 11) whose every step is compared with the relation.
    pub fn watched(setup: Setup, tally: &Arc<Tally>) -> Self {
        System { tally: Some(tally.clone()), ..System::new(setup) }
    }

    /// The world before any call.
    pub fn start(&self) -> World<P> {
        let topology = self.setup.topology;
        let mut gpu = Gpu::new(self.setup.family, topology.queue_count());
        let protocol = P::new(&self.setup, &mut gpu);
        let watch = self.tally.as_ref().map(|t| Box::new(Watch::new(topology.queue_count(), t.clone())));
        let mut world = World {
            protocol,
            gpu,
            ghost: Ghost::new(topology.streams().len(), self.setup.bounds.events),
            threads: vec![Thread::Idle; topology.thread_count()],
            broken: None,
            seen: 0,
            watch,
        };
        let World { protocol, gpu, ghost, threads, broken, seen, watch } = &mut world;
        let (refuse_at, refusable, lease, stream, returning, story) = (0, 0, 0, 0, None, None);
        let watch = watch.as_deref_mut();
        let mut host =
            Host { gpu, ghost, threads, broken, seen, refuse_at, refusable, lease, stream, returning, story, watch };
        protocol.observe(&mut host, Seen::Start);
        world
    }

    /// Every step that may be possible; some turn out not to be.
    pub fn list(&self, world: &World<P>, actions: &mut Vec<Action>) {
        if world.broken.is_some() {
            return;
        }
        let Setup { calls, bounds, topology, .. } = &self.setup;
        let streams = topology.streams().len();
        let blocked = |t: &Thread| matches!(t, Thread::Blocked { .. });
        let locked = world.protocol.locks_while_blocked() && world.threads.iter().any(blocked);
        let calling = !locked && world.threads.contains(&Thread::Idle);
        let refusals = if calls.refuse && !world.gpu.is_lost() { 0..=REFUSE_MAX } else { 0..=0 };
        for refuse in refusals.filter(|_| calling) {
            for stream in 0..streams {
                let both: &[Part] = &[Part::Compute, Part::Copy];
                let parts = if topology.streams()[stream].transfer.is_some() { both } else { &both[..1] };
                for lease in 0..=world.protocol.leases(&world.gpu, stream) {
                    for &part in parts {
                        for kind in [Kind::Plain, Kind::Watched, Kind::Dependent] {
                            if self.may_issue(world, stream, kind) {
                                actions.push(Action::Work { stream, part, kind, refuse, lease });
                            }
                        }
                    }
                    for event in 0..bounds.events {
                        actions.push(Action::Record { event, stream, refuse, lease });
                        actions.push(Action::Wait { stream, event, refuse, lease });
                    }
                }
                actions.push(Action::Flush { stream, refuse });
                if calls.synchronize_stream {
                    actions.push(Action::Synchronize { target: Target::Stream(stream), refuse });
                }
                if calls.renew_stream {
                    actions.push(Action::RenewStream { stream, refuse });
                }
            }
            for event in 0..bounds.events {
                if calls.synchronize {
                    actions.push(Action::Synchronize { target: Target::Event(event), refuse });
                }
                if calls.destroy && refuse == 0 {
                    actions.push(Action::Destroy { event });
                }
            }
        }
        let polls = (0..streams).filter(|s| !locked && world.protocol.can_poll(&world.gpu, *s));
        actions.extend(polls.map(|stream| Action::Poll { stream }));
        for (thread, state) in world.threads.iter().enumerate() {
            match state {
                Thread::Idle => {}
                Thread::Blocked { until, .. } => {
                    if world.gpu.is_lost() || until.is_over(&world.gpu) {
                        actions.push(Action::Return { thread });
                    } else if calls.time_out {
                        actions.push(Action::TimeOut { thread });
                    }
                }
                Thread::Late { until, .. } => {
                    if world.gpu.is_lost() || until.is_over(&world.gpu) {
                        actions.push(Action::Return { thread });
                    }
                }
                Thread::Checked { .. } => actions.push(Action::Register { thread }),
            }
        }
        let mut steps = Vec::new();
        world.gpu.steps(&mut steps);
        actions.extend(steps.into_iter().map(Action::Device));
        if calls.lose && !world.gpu.is_lost() {
            actions.push(Action::Lose);
        }
    }

    /// Whether the client may issue work of a kind.
    ///
    /// With `watch_one`, one work is tracked at a time and one dependent work lives at a time: a
    /// run that breaks a rule about works does so for one work and at most one that follows it, and taking
    /// the other works out of the run (ending them as they begin) leaves a run, because works only
    /// ever hold things back.
    fn may_issue(&self, world: &World<P>, stream: usize, kind: Kind) -> bool {
        let ghost = &world.ghost;
        if !self.setup.reductions.watch_one {
            return kind == Kind::Watched && ghost.live.count_ones() < TRACKED_MAX;
        }
        let waits = |op: &fencepost::Op| matches!(op, fencepost::Op::Work { work, .. } if work.after != 0);
        match kind {
            Kind::Plain => true,
            Kind::Watched => ghost.live == 0,
            Kind::Dependent => ghost.depends[stream] != 0 && !world.gpu.any_op(waits),
        }
    }

    /// Takes a step in place; `false` if it is not possible, and then the world is not to be used.
    pub fn take(&self, world: &mut World<P>, action: Action, story: Option<&mut Vec<Line>>) -> bool {
        world.seen = 0;
        let World { protocol, gpu, ghost, threads, broken, seen, watch } = world;
        let (refuse_at, refusable, lease, stream, returning) = (0, 0, 0, 0, None);
        let watch = watch.as_deref_mut();
        let mut host =
            Host { gpu, ghost, threads, broken, seen, refuse_at, refusable, lease, stream, returning, story, watch };
        if !self.carry_out(protocol, &mut host, action) || host.refuse_at > host.refusable {
            return false;
        }
        self.settle(&mut host);
        self.look(protocol, &mut host);
        protocol.observe(&mut host, Seen::Step);
        host.broken.is_some() || self.within_bounds(world)
    }

    fn carry_out(&self, protocol: &mut P, host: &mut Host, action: Action) -> bool {
        if let Action::Work { stream, lease, .. }
        | Action::Record { stream, lease, .. }
        | Action::Wait { stream, lease, .. } = action
        {
            if lease > protocol.leases(host.gpu, stream) {
                return false;
            }
            (host.stream, host.lease) = (stream, lease);
        }
        match action {
            Action::Device(_) => {}
            Action::Return { thread } | Action::Register { thread } | Action::TimeOut { thread } => {
                host.note(Lane::Host(thread), || action.to_string());
            }
            _ => host.note(Lane::Host(0), || action.to_string()),
        }
        match action {
            Action::Work { stream, part, kind, refuse, .. } => {
                host.refuse_at = refuse;
                let work = self.work(host, stream, kind);
                let accepted = protocol.work(host, stream, part, work);
                if accepted && let Some(work) = work {
                    host.ghost.issue(stream, work.tracked);
                }
                accepted || refuse > 0 || host.gpu.is_lost()
            }
            Action::Record { event, stream, refuse, .. } => {
                host.refuse_at = refuse;
                let accepted = protocol.record(host, event, stream);
                if accepted {
                    host.ghost.record(event, stream);
                }
                accepted || refuse > 0 || host.gpu.is_lost()
            }
            Action::Wait { stream, event, refuse, .. } => {
                host.refuse_at = refuse;
                let before = host.gpu.unset_wait_count();
                let accepted = protocol.wait(host, stream, event);
                if !host.ghost.recorded[event] && refuse == 0 && !host.gpu.is_lost() {
                    let no_op = accepted && before == host.gpu.unset_wait_count();
                    host.judge(Occurrence::UnrecordedCall { no_op });
                }
                if accepted {
                    host.ghost.wait(stream, event);
                }
                true
            }
            Action::Flush { stream, refuse } => {
                host.refuse_at = refuse;
                protocol.flush(host, stream);
                true
            }
            Action::Synchronize { target, refuse } => {
                host.refuse_at = refuse;
                self.synchronize(protocol, host, target)
            }
            Action::Destroy { event } => {
                protocol.destroy(host, event);
                host.ghost.renew(event);
                true
            }
            Action::RenewStream { stream, refuse } => {
                host.refuse_at = refuse;
                if protocol.renew_stream(host, stream) {
                    // Work of the old stream still counts for events; the new one holds nothing.
                    host.ghost.issued[stream] = 0;
                    host.ghost.depends[stream] = 0;
                }
                true
            }
            Action::Poll { stream } => {
                protocol.poll(host, stream);
                true
            }
            Action::Device(step) => {
                self.device(host, step);
                true
            }
            Action::Return { thread } => {
                host.returning = Some(thread);
                match host.threads[thread] {
                    Thread::Blocked { target, until, token, .. } => protocol.returned(host, target, until, token),
                    Thread::Late { target, until } => {
                        protocol.returned(host, target, until, NOBODY);
                        host.threads[thread] = Thread::Idle;
                    }
                    Thread::Idle | Thread::Checked { .. } => {}
                }
                true
            }
            Action::Register { thread } => {
                if let Thread::Checked { target, until, covers } = host.threads[thread] {
                    let token = protocol.register(target);
                    host.threads[thread] = Thread::Blocked { target, until, token, covers };
                }
                true
            }
            Action::TimeOut { thread } => {
                if let Thread::Blocked { token, covers, .. } = host.threads[thread] {
                    if protocol.timed_out(host, token) {
                        host.judge(Occurrence::Reported { covers });
                    }
                    host.threads[thread] = Thread::Idle;
                }
                true
            }
            Action::Lose => {
                host.gpu.lose();
                let everything = host.ghost.live;
                host.ghost.end(everything);
                host.gpu.forget(everything, true);
                host.observe(None, Change::Lose);
                true
            }
        }
    }

    fn work(&self, host: &Host, stream: usize, kind: Kind) -> Option<Work> {
        let after = host.ghost.depends[stream];
        match kind {
            Kind::Plain => None,
            Kind::Watched if self.setup.reductions.watch_one => Some(Work { tracked: 1, after: 0 }),
            Kind::Watched => Some(Work { tracked: 1 << host.ghost.live.trailing_ones(), after }),
            Kind::Dependent => Some(Work { tracked: 0, after }),
        }
    }

    fn synchronize(&self, protocol: &mut P, host: &mut Host, target: Target) -> bool {
        let Some(thread) = host.threads.iter().position(|t| *t == Thread::Idle) else { return false };
        let covers = match target {
            Target::Event(event) => host.ghost.covers[event],
            Target::Stream(stream) => host.ghost.issued[stream],
        };
        let unrecorded = matches!(target, Target::Event(event) if !host.ghost.recorded[event]);
        let answer = protocol.synchronize(host, target);
        if unrecorded && !host.gpu.is_lost() {
            let passes = match answer {
                Blocking::Done => true,
                Blocking::Block { until, .. } | Blocking::Checked { until } => until.is_over(host.gpu),
                Blocking::Failed => host.refuse_at > 0,
            };
            host.judge(Occurrence::UnrecordedCall { no_op: passes });
        }
        match answer {
            Blocking::Done => host.judge(Occurrence::Reported { covers }),
            Blocking::Block { until, token } => {
                self.block(protocol, host, thread, until);
                host.threads[thread] = Thread::Blocked { target, until, token, covers };
            }
            Blocking::Checked { until } => {
                self.block(protocol, host, thread, until);
                host.threads[thread] = Thread::Checked { target, until, covers };
            }
            Blocking::Failed => return host.refuse_at > 0 || host.gpu.is_lost(),
        }
        true
    }

    fn block(&self, protocol: &P, host: &mut Host, thread: usize, until: Until) {
        host.judge(Occurrence::Blocks { lock_held: protocol.locks_while_blocked() });
        host.note(Lane::Host(thread), || format!("blocks until {until}"));
    }

    fn device(&self, host: &mut Host, step: DeviceStep) {
        if let Some(o) = host.gpu.occurrence(step) {
            host.judge(o);
        }
        if host.story.is_some() {
            let text = canonical::op_text(&host.gpu.queues()[step.queue as usize][step.index as usize]);
            host.note(Lane::Queue(step.queue), || text);
        }
        let ended = host.gpu.take(step);
        if ended != 0 {
            host.ghost.end(ended);
            for thread in host.threads.iter_mut() {
                if let Thread::Blocked { covers, .. } | Thread::Checked { covers, .. } = thread {
                    *covers &= !ended;
                }
            }
            host.gpu.forget(ended, self.setup.reductions.watch_one);
        }
        host.observe(None, Change::Device(step));
    }

    /// Takes the steps that only enable others.
    fn settle(&self, host: &mut Host) {
        if !self.setup.reductions.eager {
            return;
        }
        while host.broken.is_none()
            && let Some(step) = host.gpu.eager_step()
        {
            self.device(host, step);
        }
    }

    /// What is claimed of every state: queries, and the counts of slots.
    fn look(&self, protocol: &P, host: &mut Host) {
        for event in 0..self.setup.bounds.events {
            if host.ghost.recorded[event] && protocol.query(host.gpu, event) == Some(true) {
                host.judge(Occurrence::Reported { covers: host.ghost.covers[event] });
                protocol.observe(host, Seen::Done(event));
            }
        }
        let known = |host: &Host| (0..host.ghost.issued.len()).all(|s| !protocol.can_poll(host.gpu, s));
        let quiet = host.gpu.is_idle() && !host.gpu.is_lost() && known(host);
        if self.is_stuck(host) {
            host.judge(Occurrence::Stuck);
        }
        if let Some(counts) = protocol.slots(host.gpu, quiet) {
            let (live, allowed, stranded) = (counts.live, counts.allowed, counts.stranded);
            host.judge(Occurrence::Slots { live, allowed, stranded });
        }
    }

    /// Work is left, and neither the device nor a thread can take a step.
    fn is_stuck(&self, host: &Host) -> bool {
        let waits = |t: &Thread| match t {
            Thread::Idle => false,
            Thread::Blocked { until, .. } | Thread::Late { until, .. } => {
                !host.gpu.is_lost() && !until.is_over(host.gpu)
            }
            Thread::Checked { .. } => false,
        };
        let idle = host.threads.iter().all(|t| *t == Thread::Idle);
        let moves = host.threads.iter().any(|t| *t != Thread::Idle && !waits(t));
        !(moves || idle && host.gpu.is_idle() || host.gpu.can_step())
    }

    fn within_bounds(&self, world: &World<P>) -> bool {
        let bounds = &self.setup.bounds;
        let gpu = &world.gpu;
        let (longest, _) = gpu.open_extent();
        longest <= bounds.open
            && gpu.live_count() <= bounds.live
            && gpu.event_count() <= bounds.slots
            && world.protocol.in_flight(gpu) <= bounds.in_flight
    }

    /// Nothing is left to happen while the client is silent.
    pub fn is_quiescent(&self, world: &World<P>) -> bool {
        world.gpu.is_idle() && world.threads.iter().all(|t| *t == Thread::Idle)
    }

    pub fn state(&self, world: World<P>) -> State<P> {
        State { key: canonical::with_form(self, &world, |form| Arc::from(form)), world }
    }
}

/// Works tracked at once where all are.
const TRACKED_MAX: u32 = 3;

impl<P: Protocol> Model for System<P> {
    type State = State<P>;
    type Action = Action;

    fn init_states(&self) -> Vec<State<P>> {
        vec![self.state(self.start())]
    }

    fn actions(&self, state: &State<P>, actions: &mut Vec<Action>) {
        self.list(&state.world, actions);
    }

    fn next_state(&self, state: &State<P>, action: Action) -> Option<State<P>> {
        let mut world = state.world.clone();
        self.take(&mut world, action, None).then(|| self.state(world))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        // One property for each rule, so that each gets its shortest counterexample, and one that
        // is never found, so that the search goes on to the end when all are broken.
        macro_rules! properties {
            ($($rule:ident),*) => {
                vec![
                    Property::sometimes("the end", |_, _: &State<P>| false),
                    $(Property::always(Rule::$rule.name(), |_, s: &State<P>| s.world.broken != Some(Rule::$rule)),)*
                ]
            };
        }
        properties!(
            ReuseWhileWaited,
            StaleWait,
            LostWait,
            EarlyCompletion,
            BatchReuse,
            TimelineOrder,
            WrongQueue,
            UnrecordedWait,
            Progress,
            Bounded,
            Loss,
            Refusal
        )
    }
}

impl Until {
    /// A number for the kind of wait.
    pub fn tag(self) -> u64 {
        match self {
            Until::Semaphore(_) => 1,
            Until::Fence(_) => 2,
            Until::Native { .. } => 3,
        }
    }
}
