//! What a script runs on: the machine, a driver that does as it is told, the device, and a judge.

use std::collections::BTreeMap;

use fencepost::{
    Command, DeviceStep, Effect, Error, EventId, Family, Ghost, Gpu, Lease, Lifecycle, Machine, Occurrence, Op, Point,
    Policy, Query, QueueId, Reply, Rule, Signal, Step, StreamId, Submit, Synchronize, TimedOut, Waited, WaiterId, Work,
};

use super::Mistake;
use super::call::{Call, Name, QUEUES, Refusable};

/// No call needs more effects than this; a machine that is broken on purpose may ask for ever.
const EFFECTS_MAX: usize = 1000;
/// Works that the judge can watch at once.
const WATCHED_MAX: u32 = u8::BITS;

pub(super) struct World {
    machine: Machine,
    gpu: Gpu,
    ghost: Ghost,
    streams: Vec<Stream>,
    events: Vec<Event>,
    hosts: BTreeMap<Name, Thread>,
    refusals: Vec<Refusable>,
    /// The works that the judge watches, by their bits.
    works: [Option<Name>; WATCHED_MAX as usize],
    /// Every name that a work was given.
    names: Vec<Name>,
    /// Begins and ends of works with a name.
    history: Vec<(Name, Moment)>,
    /// The rules broken so far.
    pub broken: Vec<Rule>,
    /// Expectations that were not met so far.
    pub unmet: usize,
    /// What the call in progress led to.
    told: Vec<String>,
}

/// A stream; its position is its number for the judge.
struct Stream {
    name: Name,
    id: StreamId,
    companion: Option<usize>,
    gone: bool,
}

/// An event; its position is its number for the judge.
struct Event {
    name: Name,
    id: EventId,
    gone: bool,
}

/// What a name stands for, by its position.
#[derive(Clone, Copy)]
enum Thing {
    Stream(usize),
    Event(usize),
}

/// A host thread inside a host wait.
struct Thread {
    waiter: WaiterId,
    point: Point,
    timeline: u32,
    /// Watched works that it may take for done when it is told so.
    covers: u8,
    /// Woken, and not back from the driver.
    woken: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    Begins,
    Ends,
}

impl World {
    pub fn new() -> World {
        World {
            machine: Machine::new(Policy { events: true }),
            gpu: Gpu::new(Family::Vulkan, QUEUES as usize),
            ghost: Ghost::new(0, 0),
            streams: Vec::new(),
            events: Vec::new(),
            hosts: BTreeMap::new(),
            refusals: Vec::new(),
            works: Default::default(),
            names: Vec::new(),
            history: Vec::new(),
            broken: Vec::new(),
            unmet: 0,
            told: Vec::new(),
        }
    }

    /// Makes a call and says what it led to.
    pub fn make(&mut self, call: &Call) -> Result<Vec<String>, Mistake> {
        match call {
            Call::Stream { name, queue } => self.create_stream(name, *queue)?,
            Call::Companion { companion, stream } => self.companion(companion, stream)?,
            Call::Policy { queue, events } => self.machine.set_policy(*queue, Policy { events: *events }),
            Call::Event { name } => self.create_event(name)?,
            Call::Work { stream, name } => self.work(stream, name.as_ref())?,
            Call::Record { event, stream } => self.record(event, stream)?,
            Call::Wait { stream, event } => self.wait(stream, event)?,
            Call::Flush { stream } => {
                let id = self.streams[self.stream(stream)?].id;
                self.drive(|m| m.flush(id));
            }
            Call::Synchronize { target, host } => self.synchronize(target, host)?,
            Call::Return { host } => self.returned(host),
            Call::Timeout { host } => self.timed_out(host),
            Call::Query { event } => self.query(event)?,
            Call::Destroy { target } => self.destroy(target)?,
            Call::Refuse { effect } => self.refusals.push(*effect),
            Call::Lose => self.lose(),
            Call::Device { queue, steps } => self.device(*queue, *steps),
            Call::Poll { stream } => self.poll(stream.as_ref())?,
            Call::Reached { stream, value } => {
                let id = self.streams[self.stream(stream)?].id;
                self.report(id, *value);
            }
            Call::Expect { later, earlier } => self.expect(later, earlier),
            Call::Slots => self.slots(),
            Call::Batches => self.batches(),
        }
        self.look();
        Ok(std::mem::take(&mut self.told))
    }

    // Calls --------------------------------------------------------------------------------------

    fn create_stream(&mut self, name: &Name, queue: QueueId) -> Result<(), Mistake> {
        self.unused(name)?;
        if let Some(id) = self.drive(|m| m.create_stream(queue)) {
            self.streams.push(Stream { name: name.clone(), id, companion: None, gone: false });
            self.ghost.issued.push(0);
            self.ghost.depends.push(0);
            self.say(format!("{name} is t{}", self.timeline(id)));
        }
        Ok(())
    }

    fn companion(&mut self, companion: &Name, stream: &Name) -> Result<(), Mistake> {
        let (companion, stream) = (self.stream(companion)?, self.stream(stream)?);
        let (of, carries) = (self.streams[stream].id, self.streams[companion].id);
        if self.ask(|m| m.set_companion(of, carries)).is_some() {
            self.streams[stream].companion = Some(companion);
        }
        Ok(())
    }

    fn create_event(&mut self, name: &Name) -> Result<(), Mistake> {
        self.unused(name)?;
        let id = self.machine.create_event();
        self.events.push(Event { name: name.clone(), id, gone: false });
        self.ghost.covers.push(0);
        self.ghost.recorded.push(false);
        Ok(())
    }

    fn work(&mut self, stream: &Name, name: Option<&Name>) -> Result<(), Mistake> {
        let stream = self.stream(stream)?;
        if let Some(name) = name.filter(|name| self.names.contains(name)) {
            return Err(Mistake::new(format!("`{name}` is another work's"), "a name for each work, or none"));
        }
        let id = self.streams[stream].id;
        let Some(lease) = self.drive(|m| m.work(id)) else { return Ok(()) };
        self.names.extend(name.cloned());
        let bit = self.ghost.live.trailing_ones();
        let tracked = 1_u8.checked_shl(bit).unwrap_or(0);
        if bit < WATCHED_MAX {
            self.works[bit as usize] = name.cloned();
            self.ghost.issue(stream, tracked);
        }
        let after = self.ghost.depends[stream];
        self.add(lease, Command::Work(Work { tracked, after }));
        self.say(format!("in {}", buffer(lease)));
        Ok(())
    }

    fn record(&mut self, event: &Name, stream: &Name) -> Result<(), Mistake> {
        let (event, stream) = (self.event(event)?, self.stream(stream)?);
        let (event_id, id) = (self.events[event].id, self.streams[stream].id);
        let Some(recorded) = self.drive(|m| m.record(event_id, id)) else { return Ok(()) };
        self.ghost.record(event, stream);
        self.ghost.covers[event] |= self.held(stream);
        match recorded.set {
            Some((lease, slot)) => {
                self.add(lease, Command::Set(slot.index));
                self.say(format!("set slot {} generation {} in {}", slot.index, slot.generation, buffer(lease)));
            }
            None => self.say("without a slot".into()),
        }
        Ok(())
    }

    fn wait(&mut self, stream: &Name, event: &Name) -> Result<(), Mistake> {
        let (event, stream) = (self.event(event)?, self.stream(stream)?);
        let (event_id, id) = (self.events[event].id, self.streams[stream].id);
        let before = self.gpu.unset_wait_count();
        let waited = self.drive(|m| m.wait(id, event_id));
        let alive = !self.events[event].gone && !self.streams[stream].gone && !self.machine.is_lost();
        if !self.ghost.recorded[event] && alive {
            let no_op = waited.is_some() && before == self.gpu.unset_wait_count();
            self.judge(Occurrence::UnrecordedCall { no_op });
        }
        let Some(waited) = waited else { return Ok(()) };
        for stream in self.pair(stream) {
            self.ghost.wait(stream, event);
        }
        match waited {
            Waited::Nothing => {
                let waits = self.open_waits(id);
                let start = if waits.is_empty() { String::new() } else { format!("; the batch starts{waits}") };
                self.say(format!("nothing to add{start}"));
            }
            Waited::Barrier(lease) => {
                self.add(lease, Command::Barrier);
                self.say(format!("barrier in {}", buffer(lease)));
            }
            Waited::Event(lease, slot) => {
                let queue = self.machine.queue(id).unwrap_or(0);
                self.judge(Occurrence::WaitRecorded { event: slot.index, queue });
                self.add(lease, Command::Wait(slot.index));
                self.say(format!("wait for slot {} generation {} in {}", slot.index, slot.generation, buffer(lease)));
            }
        }
        Ok(())
    }

    fn synchronize(&mut self, target: &Name, host: &Name) -> Result<(), Mistake> {
        if self.hosts.contains_key(host) {
            self.say(format!("{host} is inside a host wait already"));
            return Ok(());
        }
        let (answer, covers) = match self.thing(target)? {
            Thing::Event(event) => {
                let id = self.events[event].id;
                let answer = self.drive(|m| m.synchronize(id));
                if !self.ghost.recorded[event] && !self.events[event].gone && !self.machine.is_lost() {
                    self.judge(Occurrence::UnrecordedCall { no_op: answer == Some(Synchronize::Done) });
                }
                (answer, self.ghost.covers[event])
            }
            Thing::Stream(stream) => {
                let id = self.streams[stream].id;
                (self.drive(|m| m.synchronize_stream(id)), self.held(stream))
            }
        };
        match answer {
            Some(Synchronize::Done) => {
                self.say("done".into());
                self.judge(Occurrence::Reported { covers });
            }
            Some(Synchronize::Block { waiter, point }) => {
                let timeline = self.timeline(point.stream);
                self.say(format!("{host} blocks on t{timeline}@{}", point.value));
                self.hosts.insert(host.clone(), Thread { waiter, point, timeline, covers, woken: false });
            }
            None => {}
        }
        Ok(())
    }

    fn returned(&mut self, host: &Name) {
        let Some(&Thread { point, timeline, .. }) = self.hosts.get(host) else {
            return self.say(format!("{host} is not inside a host wait"));
        };
        if self.gpu.is_lost() {
            self.drive(Machine::lose);
        } else if self.gpu.semaphore(timeline) >= point.value {
            self.report(point.stream, point.value);
        } else {
            return self.say(format!("{host} still blocks"));
        }
        if self.hosts.get(host).is_some_and(|thread| thread.woken) {
            self.hosts.remove(host);
        } else {
            self.say(format!("{host} is not woken"));
        }
    }

    fn timed_out(&mut self, host: &Name) {
        let Some(Thread { waiter, covers, woken, .. }) = self.hosts.remove(host) else {
            return self.say(format!("{host} is not inside a host wait"));
        };
        match self.machine.timed_out(waiter) {
            TimedOut::Forgotten => self.say(format!("{host}: timeout")),
            TimedOut::AlreadyWoken => {
                self.say(format!("{host} was woken before"));
                if !woken {
                    self.judge(Occurrence::Reported { covers });
                }
            }
        }
    }

    fn query(&mut self, event: &Name) -> Result<(), Mistake> {
        let event = self.event(event)?;
        let id = self.events[event].id;
        let Some(answer) = self.ask(|m| m.query(id)) else { return Ok(()) };
        let at = |point: Point| format!("t{}@{}", self.timeline(point.stream), point.value);
        let words = match answer {
            Query::Done => "done".into(),
            Query::Pending(point) => format!("with the device, until {}", at(point)),
            Query::Open(point) => format!("in an open batch, until {}", at(point)),
        };
        self.say(words);
        Ok(())
    }

    fn destroy(&mut self, target: &Name) -> Result<(), Mistake> {
        match self.thing(target)? {
            Thing::Event(event) => {
                let id = self.events[event].id;
                if self.ask(|m| m.destroy_event(id)).is_some() {
                    self.events[event].gone = true;
                }
            }
            Thing::Stream(stream) => {
                let id = self.streams[stream].id;
                if self.drive(|m| m.destroy_stream(id)).is_some() {
                    for stream in self.pair(stream) {
                        self.streams[stream].gone = true;
                    }
                }
            }
        }
        Ok(())
    }

    fn lose(&mut self) {
        self.gpu.lose();
        let live = self.ghost.live;
        self.ended(live);
    }

    fn device(&mut self, queue: Option<QueueId>, steps: Option<u32>) {
        for _ in 0..steps.unwrap_or(u32::MAX) {
            let Some(step) = self.next_step(queue) else { break };
            self.step(step);
        }
        if let Some(queue) = queue
            && steps.is_none()
            && !self.gpu.queues()[queue as usize].is_empty()
        {
            self.say(format!("q{queue} is held back"));
        }
    }

    fn poll(&mut self, stream: Option<&Name>) -> Result<(), Mistake> {
        let lost = self.gpu.is_lost();
        let ids: Vec<StreamId> = match stream {
            Some(name) => vec![self.streams[self.stream(name)?].id],
            None => self.machine.streams().filter(|id| lost || self.has_news(*id)).collect(),
        };
        for id in ids {
            match self.machine.timeline(id) {
                Some(timeline) => {
                    let value = if lost { u64::MAX } else { self.gpu.semaphore(timeline) };
                    self.say(format!("t{timeline} is at {value}"));
                    self.report(id, value);
                }
                None => self.say("gone, and all its points have passed".into()),
            }
        }
        Ok(())
    }

    fn expect(&mut self, later: &Name, earlier: &Name) {
        let at = |name: &Name, moment| self.history.iter().position(|(n, m)| n == name && *m == moment);
        let why = match (at(later, Moment::Begins), at(earlier, Moment::Ends)) {
            (None, _) => format!("{later} has not begun"),
            (_, None) => format!("{earlier} has not ended"),
            (Some(begins), Some(ends)) if begins < ends => format!("{later} began before {earlier} had ended"),
            _ => return,
        };
        self.unmet += 1;
        self.say(format!("not so: {why}"));
    }

    fn slots(&mut self) {
        for index in 0.. {
            let Some(state) = self.machine.slot(index) else { break };
            let word = match state {
                Lifecycle::Reusable => "Reusable",
                Lifecycle::Recorded => "Recorded",
                Lifecycle::Pending => "Pending",
                Lifecycle::Submitted => "Submitted",
            };
            let current = self.events.iter().find_map(|event| {
                let slot = self.machine.recorded_slot(event.id).ok()??;
                (slot.index == index).then(|| format!(", generation {} is {}'s", slot.generation, event.name))
            });
            self.say(format!("{index} {word}{}", current.unwrap_or_default()));
        }
    }

    fn batches(&mut self) {
        let ids: Vec<StreamId> = self.machine.streams().collect();
        for id in ids {
            let (submitted, reached) = self.machine.progress(id).unwrap_or_default();
            let name = self.streams.iter().find(|s| s.id == id).map(|s| s.name.to_string()).unwrap_or_default();
            let open = match self.machine.open_batch(id) {
                (Some(lease), slots) => {
                    format!("; open in {}, sets and waits: {slots}{}", buffer(lease), self.open_waits(id))
                }
                (None, _) if self.machine.newest(id).is_ok_and(|point| point.value > submitted) => {
                    format!("; open{}", self.open_waits(id))
                }
                _ => String::new(),
            };
            self.say(format!("{name}: {submitted} submitted, {reached} passed{open}"));
        }
    }

    // The driver ---------------------------------------------------------------------------------

    /// Makes a call, carries out what has to come first, makes it again, until there is an answer.
    fn drive<T>(&mut self, mut call: impl FnMut(&mut Machine) -> Result<Step<T>, Error>) -> Option<T> {
        for _ in 0..EFFECTS_MAX {
            let effect = match call(&mut self.machine) {
                Ok(Step::Done(answer)) => return Some(answer),
                Ok(Step::First(effect)) => effect,
                Err(error) => {
                    self.failed(error);
                    return None;
                }
            };
            let reply = self.carry_out(effect);
            if let Err(error) = self.machine.reply(effect, reply) {
                self.failed(error);
                if error == Error::Lost {
                    self.drive(Machine::lose);
                }
                return None;
            }
        }
        self.say(format!("no answer after {EFFECTS_MAX} effects"));
        None
    }

    /// A call that needs no driver.
    fn ask<T>(&mut self, call: impl FnOnce(&mut Machine) -> Result<T, Error>) -> Option<T> {
        call(&mut self.machine).map_err(|error| self.failed(error)).ok()
    }

    fn failed(&mut self, error: Error) {
        self.say(match error {
            Error::Refused(_) => "error: refused".into(),
            Error::Lost => "error: the device is lost".into(),
            _ => format!("error: {error}"),
        });
    }

    fn carry_out(&mut self, effect: Effect) -> Reply {
        let words = self.words(effect);
        if let Effect::Wake { waiter, lost } = effect {
            self.say(words);
            self.wake(waiter, lost);
            return Reply::Done;
        }
        if self.gpu.is_lost() {
            self.say(format!("{words}: lost"));
            return Reply::Lost;
        }
        if let Some(at) = self.refusals.iter().position(|kind| Some(*kind) == Refusable::of(effect)) {
            self.say(format!("{words}: refused"));
            self.refusals.remove(at);
            self.ghost.refused |= self.ghost.live != 0;
            return Reply::Refused;
        }
        self.say(words);
        match effect {
            Effect::CreateTimeline { .. } => {
                self.gpu.create_semaphore();
            }
            Effect::Begin { stream, lease, .. } => {
                self.judge(Occurrence::BufferBegun { buffer: lease.id() });
                self.gpu.begin(lease.id(), self.machine.queue(stream).unwrap_or(0), lease.generation);
            }
            Effect::Submit { stream, lease, value } => {
                let buffer = lease.map(Lease::id);
                buffer.into_iter().for_each(|buffer| self.judge(Occurrence::BufferUsed { buffer }));
                let signal = |(semaphore, value)| Signal { semaphore, value };
                let waits = self.machine.open_waits(stream).map(signal).collect();
                let signal = Some(signal((self.timeline(stream), value)));
                let queue = self.machine.queue(stream).unwrap_or(0);
                self.gpu.submit(queue, &Submit { waits, buffer, signal, fence: None });
            }
            Effect::CreateSlot { .. } => {
                self.gpu.create_event();
            }
            Effect::ResetSlot { slot } => {
                self.judge(Occurrence::HostReset { event: slot.index });
                self.gpu.reset_event(slot.index);
            }
            Effect::Wake { .. } => {}
        }
        Reply::Done
    }

    fn words(&self, effect: Effect) -> String {
        match effect {
            Effect::CreateTimeline { timeline, queue } => format!("timeline t{timeline} on q{queue}"),
            Effect::Begin { lease, new: true, .. } => format!("allocate {}", buffer(lease)),
            Effect::Begin { lease, new: false, .. } => {
                format!("begin {} again, lease {}", buffer(lease), lease.generation)
            }
            Effect::Submit { stream, lease, value } => {
                let batch = lease.map_or(format!("t{}", self.timeline(stream)), buffer);
                format!("submit {batch} = {value}{}", self.open_waits(stream))
            }
            Effect::CreateSlot { slot } => format!("create slot {}", slot.index),
            Effect::ResetSlot { slot } => format!("reset slot {}", slot.index),
            Effect::Wake { waiter, lost } => {
                let host = self.hosts.iter().find(|(_, thread)| thread.waiter == waiter);
                let host = host.map_or("nobody".into(), |(name, _)| name.to_string());
                format!("wake {host}{}", if lost { ": the device is lost" } else { "" })
            }
        }
    }

    fn wake(&mut self, waiter: WaiterId, lost: bool) {
        let found = self.hosts.iter_mut().find(|(_, thread)| thread.waiter == waiter && !thread.woken);
        let covers = found.map(|(_, thread)| {
            thread.woken = true;
            thread.covers
        });
        self.judge(Occurrence::Woken { waiting: covers.is_some(), lost });
        if let Some(covers) = covers
            && !lost
        {
            self.judge(Occurrence::Reported { covers });
        }
    }

    /// Tells the machine what a timeline was seen at.
    fn report(&mut self, stream: StreamId, value: u64) {
        let before = self.machine.progress(stream).map_or(0, |(_, reached)| reached);
        self.drive(|m| m.reached(stream, value));
        if let Some((_, after)) = self.machine.progress(stream) {
            self.judge(Occurrence::Published { before, after });
        }
    }

    fn add(&mut self, lease: Lease, command: Command) {
        self.judge(Occurrence::BufferUsed { buffer: lease.id() });
        if self.gpu.open_lease(lease.id()).is_some() {
            self.gpu.record(lease.id(), command);
        }
    }

    // The device ---------------------------------------------------------------------------------

    /// Of the possible steps the one that shows missing order: work begins early and ends late, the oldest first.
    fn next_step(&self, queue: Option<QueueId>) -> Option<DeviceStep> {
        let mut steps = Vec::new();
        self.gpu.steps(&mut steps);
        steps.retain(|step| queue.is_none_or(|queue| queue == step.queue));
        steps.into_iter().min_by_key(|step| match self.op(*step) {
            Op::Work { begun: false, .. } => 0,
            Op::Work { begun: true, .. } => 2,
            _ => 1,
        })
    }

    fn op(&self, step: DeviceStep) -> Op {
        self.gpu.queues()[step.queue as usize][step.index as usize]
    }

    fn step(&mut self, step: DeviceStep) {
        let op = self.op(step);
        let words = match op {
            Op::Start { semaphore, value } => format!("start after t{semaphore}@{value}"),
            Op::Work { work, begun } => {
                let name = self.works.get(work.tracked.trailing_zeros() as usize).and_then(Option::as_ref);
                let words = format!(
                    "{} {}",
                    name.map_or("work".into(), Name::to_string),
                    if begun { "ends" } else { "begins" }
                );
                if let Some(name) = name {
                    self.history.push((name.clone(), if begun { Moment::Ends } else { Moment::Begins }));
                }
                words
            }
            Op::Barrier => "barrier".into(),
            Op::Set { event, .. } => format!("set slot {event}"),
            Op::Wait { event, .. } => format!("wait for slot {event} is over"),
            Op::Reset { event, .. } => format!("reset slot {event}"),
            Op::End { signal: Some(signal), .. } => format!("t{} = {}", signal.semaphore, signal.value),
            Op::End { signal: None, .. } => "end of a batch".into(),
        };
        self.say(format!("q{}: {words}", step.queue));
        if let Some(occurrence) = self.gpu.occurrence(step) {
            self.judge(occurrence);
        }
        let ended = self.gpu.take(step);
        self.ended(ended);
    }

    /// Watched works have ended: nothing has to follow them any more, and their bits are free.
    fn ended(&mut self, works: u8) {
        self.ghost.end(works);
        self.gpu.forget(works, false);
        self.hosts.values_mut().for_each(|thread| thread.covers &= !works);
    }

    // The judge ----------------------------------------------------------------------------------

    /// Has every rule look at it; a rule is said to be broken once.
    fn judge(&mut self, occurrence: Occurrence) {
        for rule in Rule::ALL {
            if !self.broken.contains(&rule) && rule.broken_by(&self.gpu, &self.ghost, &occurrence) {
                self.broken.push(rule);
                self.say(format!("breaks {}: {occurrence:?}", rule.name()));
            }
        }
    }

    /// What is claimed of every state: queries, the counts of slots, and that something can go on.
    fn look(&mut self) {
        for event in 0..self.events.len() {
            let done = match self.machine.query(self.events[event].id) {
                Ok(Query::Done) => true,
                Ok(Query::Pending(point)) => self.gpu.semaphore(self.timeline(point.stream)) >= point.value,
                Ok(Query::Open(_)) | Err(_) => false,
            };
            if done {
                self.judge(Occurrence::Reported { covers: self.ghost.covers[event] });
            }
        }
        if self.is_stuck() {
            self.judge(Occurrence::Stuck);
        }
        if self.machine.is_lost() {
            return;
        }
        let [_, recorded, pending, submitted] = self.machine.slot_counts();
        let mut stranded = self.machine.stranded_slots();
        // Counted without the machine's own idea of a frontier: nothing is open, nothing runs, all is known.
        if pending == 0 && self.gpu.is_idle() && !self.machine.streams().any(|id| self.has_news(id)) {
            stranded += submitted;
        }
        let events = self.events.iter().filter(|event| !event.gone).count();
        let (live, allowed) = (recorded + pending + submitted, events + pending + submitted);
        self.judge(Occurrence::Slots { live, allowed, stranded });
    }

    /// Something is left to do, and neither the device nor a thread can go on.
    fn is_stuck(&self) -> bool {
        let free = |t: &Thread| self.gpu.is_lost() || self.gpu.semaphore(t.timeline) >= t.point.value;
        let moves = self.hosts.values().any(free);
        !(moves || self.hosts.is_empty() && self.gpu.is_idle() || self.gpu.can_step())
    }

    fn has_news(&self, id: StreamId) -> bool {
        let reached = self.machine.progress(id).map_or(0, |(_, reached)| reached);
        self.machine.timeline(id).is_some_and(|timeline| self.gpu.semaphore(timeline) > reached)
    }

    // Names --------------------------------------------------------------------------------------

    /// The newest stream or event of that name.
    fn thing(&self, name: &Name) -> Result<Thing, Mistake> {
        let stream = self.streams.iter().rposition(|s| s.name == *name);
        let event = self.events.iter().rposition(|e| e.name == *name);
        match (stream, event) {
            (Some(stream), event) if event.is_none() || !self.streams[stream].gone => Ok(Thing::Stream(stream)),
            (_, Some(event)) => Ok(Thing::Event(event)),
            _ => {
                let names = self.streams.iter().map(|s| &s.name).chain(self.events.iter().map(|e| &e.name));
                let names: Vec<String> = names.map(Name::to_string).collect();
                let allowed = if names.is_empty() {
                    "nothing, before a stream or an event is made".into()
                } else {
                    names.join(", ")
                };
                Err(Mistake::new(format!("`{name}` is neither a stream nor an event"), allowed))
            }
        }
    }

    fn stream(&self, name: &Name) -> Result<usize, Mistake> {
        match self.thing(name)? {
            Thing::Stream(at) => Ok(at),
            Thing::Event(_) => Err(Mistake::new(format!("`{name}` is an event"), "a stream")),
        }
    }

    fn event(&self, name: &Name) -> Result<usize, Mistake> {
        match self.thing(name)? {
            Thing::Event(at) => Ok(at),
            Thing::Stream(_) => Err(Mistake::new(format!("`{name}` is a stream"), "an event")),
        }
    }

    /// A name can be given again once what had it is destroyed.
    fn unused(&self, name: &Name) -> Result<(), Mistake> {
        let taken = self.streams.iter().any(|s| s.name == *name && !s.gone)
            || self.events.iter().any(|e| e.name == *name && !e.gone);
        if taken {
            let allowed = format!("another name, or `destroy {name}` before");
            return Err(Mistake::new(format!("`{name}` has been made"), allowed));
        }
        Ok(())
    }

    /// The stream and its companion.
    fn pair(&self, stream: usize) -> impl Iterator<Item = usize> + use<> {
        [Some(stream), self.streams[stream].companion].into_iter().flatten()
    }

    /// Watched works that a point of the stream covers now.
    fn held(&self, stream: usize) -> u8 {
        self.pair(stream).fold(0, |works, s| works | self.ghost.issued[s] | self.ghost.depends[s])
    }

    fn timeline(&self, stream: StreamId) -> u32 {
        self.machine.timeline(stream).unwrap_or(0)
    }

    fn open_waits(&self, stream: StreamId) -> String {
        self.machine.open_waits(stream).map(|(timeline, value)| format!(" after t{timeline}@{value}")).collect()
    }

    fn say(&mut self, words: String) {
        self.told.push(words);
    }
}

fn buffer(lease: Lease) -> String {
    format!("t{}.b{}", lease.timeline, lease.buffer)
}
