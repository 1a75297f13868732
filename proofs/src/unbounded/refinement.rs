//! The machine and the GPU, step by step, against the relation.
//!
//! After each driver call, each answer and each device step the state is read from the machine and the device (`read`).
//! The difference to the state before is told as steps of the relation (`Walk`): each guard has to hold,
//! each rule and clause too, and what the steps lead to has to be what was read. Nothing here decides
//! what the machine may do: a difference that no step explains is a failure.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use fencepost::{DeviceStep, EventId, Fact, Gpu, Machine, Op, Point, StreamId, WaiterId};

use super::algebra::{View, When};
use super::facts::{
    BatchRow, BufferRow, Concrete, EventRow, Facts, Id, Kind, NONE, OpRow, QueueRow, ROOM, SlotRow, StreamRow,
    WaiterRow,
};
use super::invariant::{NAMES, STRUCTURAL, clauses};
use super::progress;
use super::relation::{Move, Text, Update};
use super::vocabulary::{Shape, Symbol};

/// What is known of what happened, besides the difference that it made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A call asked for an effect, an effect was replied to, or streams were made.
    Machine,
    /// A waiter was told that its point has passed.
    Wake(WaiterId),
    /// A waiter ran out of time; whether it was told that its point had passed before.
    TimeOut(WaiterId, bool),
    /// Calls that were accepted.
    Work(StreamId),
    Record(EventId, StreamId),
    Wait(StreamId, EventId),
    Destroy(EventId),
    BlockOnEvent(EventId, WaiterId),
    BlockOnStream(StreamId, WaiterId),
    /// The client was told that it is done.
    EventDone(EventId),
    StreamDone(StreamId),
    Device(DeviceStep),
    /// The device is lost: it takes no further step.
    Lose,
}

/// What many watches count together.
#[derive(Debug)]
pub struct Tally {
    taken: Vec<AtomicU64>,
    /// States read and compared.
    observed: AtomicU64,
    failure: Mutex<Option<String>>,
}

impl Default for Tally {
    fn default() -> Self {
        let taken = Move::ALL.iter().map(|_| AtomicU64::new(0)).collect();
        Tally { taken, observed: AtomicU64::new(0), failure: Mutex::new(None) }
    }
}

impl Tally {
    /// How often a step of the relation was taken.
    pub fn taken(&self, step: Move) -> u64 {
        self.taken[step as usize].load(Ordering::Relaxed)
    }

    /// How many steps of the machine and the device were checked.
    pub fn observed(&self) -> u64 {
        self.observed.load(Ordering::Relaxed)
    }

    /// The first failure.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().ok().and_then(|f| f.clone())
    }

    /// Adds what another counted.
    pub fn add(&self, other: &Tally) {
        self.observed.fetch_add(other.observed(), Ordering::Relaxed);
        for (mine, theirs) in self.taken.iter().zip(&other.taken) {
            mine.fetch_add(theirs.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    fn fail(&self, text: String) {
        if let Ok(mut failure) = self.failure.lock() {
            failure.get_or_insert(text);
        }
    }
}

/// One run beside its state in the vocabulary.
#[derive(Debug)]
pub struct Watch {
    facts: Facts,
    /// The machine knows of a loss, or something failed: nothing more is compared.
    over: bool,
    tally: std::sync::Arc<Tally>,
}

impl Clone for Watch {
    fn clone(&self) -> Self {
        Watch { facts: self.facts.clone(), over: self.over, tally: self.tally.clone() }
    }

    fn clone_from(&mut self, other: &Self) {
        self.facts.clone_from(&other.facts);
        self.over = other.over;
    }
}

impl Watch {
    pub fn new(queue_count: usize, tally: std::sync::Arc<Tally>) -> Watch {
        let facts = Facts { queues: vec![QueueRow { blocked: false, block: NONE }; queue_count], ..Facts::default() };
        Watch { facts, over: false, tally }
    }

    /// The state.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Something happened. Without a machine, the machine is as it was.
    pub fn observe(&mut self, machine: Option<&Machine>, gpu: &Gpu, change: Change) {
        if self.over {
            return;
        }
        if machine.is_some_and(Machine::is_lost) {
            self.over = true;
            return;
        }
        self.tally.observed.fetch_add(1, Ordering::Relaxed);
        if let Err(text) = self.follow(machine, gpu, change) {
            self.tally.fail(format!("{change:?}: {text}"));
            self.over = true;
        }
    }

    fn follow(&mut self, machine: Option<&Machine>, gpu: &Gpu, change: Change) -> Result<(), String> {
        if let Change::EventDone(_) | Change::StreamDone(_) = change {
            return Walk { facts: &mut self.facts, tally: &self.tally }.report(change);
        }
        let post = read(&self.facts, machine, gpu, change)?;
        let facts = &mut self.facts;
        facts.make_room(&post);
        Walk { facts, tally: &self.tally }.explain(&post, change)?;
        if let Some((symbol, x)) = facts.difference(&post) {
            return Err(format!(
                "{} of {x} is not what the steps of the relation lead to\nsteps:  {facts:?}\nreal:   {post:?}",
                symbol.name()
            ));
        }
        check(facts)?;
        facts.forget();
        Ok(())
    }

    /// Whether the claims of the client's side agree, by the machine's names.
    pub fn agree(
        &mut self,
        depends: impl Iterator<Item = (StreamId, bool)>,
        covers: impl Iterator<Item = (EventId, bool)>,
    ) {
        let live = self.facts.watched.is_some_and(|w| !self.facts.ops[w as usize].gone);
        if self.over || !live {
            return;
        }
        for (stream, depends) in depends {
            if self.facts.streams.iter().any(|s| s.id == stream && s.depends != depends) {
                self.tally.fail(format!("the client has {stream:?} depend on the watched work: {depends}"));
                self.over = true;
            }
        }
        for (event, covers) in covers {
            if self.facts.events.iter().any(|e| e.id == event && e.covers != covers) {
                self.tally.fail(format!("the client has {event:?} cover the watched work: {covers}"));
                self.over = true;
            }
        }
    }
}

/// Every clause of the invariant. Those that hold of any [`Facts`], by how it is written, are left out.
fn check(facts: &Facts) -> Result<(), String> {
    let view = View { algebra: Concrete { pre: facts, post: facts }, when: When::Post };
    for clause in &clauses::<Concrete>()[STRUCTURAL..] {
        if !(clause.claim)(view).value {
            return Err(format!("the invariant does not hold: {}\n{facts:?}", clause.name));
        }
    }
    debug_assert_eq!(NAMES.len(), clauses::<Concrete>().len());
    Ok(())
}

// Reading ----------------------------------------------------------------------------------------

fn place<T>(rows: &mut Vec<T>, found: Option<usize>, new: impl FnOnce() -> T) -> usize {
    found.unwrap_or_else(|| {
        rows.push(new());
        rows.len() - 1
    })
}

/// An operation of a queue, or the end of a batch.
#[derive(Clone, Copy, Debug)]
enum Item {
    Op(Id),
    End(Id),
}

/// The state of the vocabulary now. Elements keep their numbers; ghosts are as they were.
fn read(pre: &Facts, machine: Option<&Machine>, gpu: &Gpu, change: Change) -> Result<Facts, String> {
    let mut next = pre.clone();
    if let Some(machine) = machine {
        next.read_streams(machine)?;
    }
    next.read_device(pre, gpu, change)?;
    if let Some(machine) = machine {
        next.read_objects(machine)?;
    }
    for (slot, row) in (0..).zip(&mut next.slots) {
        row.set_by = match gpu.set_by(slot) {
            None => NONE,
            Some(set) => {
                let found =
                    next.ops.iter().position(|o| o.kind == Kind::Set && u32::from(o.slot) == slot && o.tag == set);
                found.ok_or_else(|| format!("slot {slot} is set by set {set}, which nobody recorded"))? as Id
            }
        };
    }
    let rows = [next.ops.len(), next.batches.len(), next.streams.len(), next.buffers.len(), next.waiters.len()];
    if rows.iter().any(|n| *n >= ROOM) {
        return Err(format!("more than {ROOM} elements of a sort: this run is too large to be watched"));
    }
    Ok(next)
}

impl Facts {
    fn stream_row(&self, id: StreamId) -> Option<Id> {
        self.streams.iter().position(|s| s.id == id).map(|at| at as Id)
    }

    /// The batch that signals a point, if it is not long over.
    fn batch_row(&self, point: Point) -> Option<Id> {
        let stream = self.stream_row(point.stream)?;
        self.batches.iter().position(|b| b.stream == stream && b.value == point.value).map(|at| at as Id)
    }

    fn open_batch(&self, stream: Id) -> Option<Id> {
        self.batches.iter().position(|b| b.stream == stream && b.open).map(|at| at as Id)
    }

    fn event_row(&self, id: EventId) -> Option<Id> {
        self.events.iter().position(|e| e.id == id).map(|at| at as Id)
    }

    fn waiter_row(&self, id: WaiterId) -> Option<Id> {
        self.waiters.iter().position(|w| w.id == id).map(|at| at as Id)
    }

    fn read_streams(&mut self, machine: &Machine) -> Result<(), String> {
        self.streams.iter_mut().for_each(|s| s.alive = false);
        self.buffers.iter_mut().for_each(|b| b.idle = false);
        let mut error = None;
        machine.facts(|fact| {
            if error.is_none() {
                error = self.read_stream(fact).err();
            }
        });
        for batch in &mut self.batches {
            // A stream that is gone had all its points passed.
            batch.passed |= batch.submitted && !self.streams[batch.stream as usize].alive;
        }
        error.map_or(Ok(()), Err)
    }

    fn read_stream(&mut self, fact: Fact) -> Result<(), String> {
        match fact {
            Fact::Stream { stream, queue, timeline, submitted, reached, open } => {
                let found = self.streams.iter().position(|s| s.id == stream);
                let s = place(&mut self.streams, found, || StreamRow {
                    id: stream,
                    queue: queue as Id,
                    timeline: timeline as Id,
                    companion: NONE,
                    newest: NONE,
                    promised: false,
                    depends: false,
                    walled: false,
                    wall: NONE,
                    alive: true,
                });
                self.timelines = self.timelines.max(timeline as Id + 1);
                self.streams[s].alive = true;
                let s = s as Id;
                let rank = 1 + self.batches.iter().map(|b| b.rank).max().unwrap_or(0);
                let (mut has_open, mut newest) = (false, NONE);
                for (at, batch) in self.batches.iter_mut().enumerate().filter(|(_, b)| b.stream == s) {
                    if batch.open && batch.value <= submitted {
                        (batch.open, batch.submitted, batch.rank) = (false, true, rank);
                    }
                    batch.open &= open;
                    has_open |= batch.open;
                    batch.passed = batch.submitted && batch.value <= reached;
                    if batch.submitted && batch.value == submitted {
                        newest = at as Id;
                    }
                }
                if newest != NONE {
                    (self.streams[s as usize].newest, self.streams[s as usize].promised) = (newest, true);
                }
                if open && !has_open {
                    self.batches.push(BatchRow {
                        stream: s,
                        queue: queue as Id,
                        timeline: timeline as Id,
                        buffer: NONE,
                        value: submitted + 1,
                        rank: 0,
                        open: true,
                        submitted: false,
                        ended: false,
                        passed: false,
                    });
                }
            }
            Fact::Companion { stream, companion } => {
                let (Some(s), Some(c)) = (self.stream_row(stream), self.stream_row(companion)) else {
                    return Err("a companion that is no stream".into());
                };
                self.streams[s as usize].companion = c;
            }
            Fact::Start { stream, point } => {
                let batch = self.stream_row(stream).and_then(|s| self.open_batch(s));
                let (Some(batch), Some(upon)) = (batch, self.batch_row(point)) else {
                    return Err(format!("a start of {stream:?} upon {point:?}, which is no batch"));
                };
                let of = self.batches[upon as usize].stream;
                let same = |o: &OpRow| {
                    o.kind == Kind::Start && o.home == batch && !o.gone && self.batches[o.upon as usize].stream == of
                };
                match self.ops.iter().position(same) {
                    Some(at) => self.ops[at].upon = upon,
                    None => self.ops.push(OpRow { upon, ..OpRow::new(Kind::Start, batch) }),
                }
            }
            Fact::Leased { point, buffer } => {
                let found = self.buffers.iter().position(|b| b.id == buffer);
                let k = place(&mut self.buffers, found, || BufferRow { id: buffer, idle: false });
                let Some(batch) = self.batch_row(point) else {
                    return Err(format!("a buffer of {point:?}, which is no batch"));
                };
                self.batches[batch as usize].buffer = k as Id;
            }
            Fact::Idle { buffer } => {
                let found = self.buffers.iter().position(|b| b.id == buffer);
                let k = place(&mut self.buffers, found, || BufferRow { id: buffer, idle: true });
                self.buffers[k].idle = true;
            }
            Fact::Slot { slot, .. } if slot as usize == self.slots.len() => {
                self.slots.push(SlotRow { free: false, clean: false, set_by: NONE, frontier: 0 });
            }
            _ => {}
        }
        Ok(())
    }

    fn read_objects(&mut self, machine: &Machine) -> Result<(), String> {
        self.events.iter_mut().for_each(|e| e.alive = false);
        self.waiters.iter_mut().for_each(|w| w.waiting = false);
        self.slots.iter_mut().for_each(|s| s.frontier = 0);
        let mut error = None;
        machine.facts(|fact| {
            if error.is_none() {
                error = self.read_object(fact).err();
            }
        });
        for event in self.events.iter_mut().filter(|e| !e.alive) {
            (event.pointed, event.current) = (false, NONE);
        }
        error.map_or(Ok(()), Err)
    }

    fn read_object(&mut self, fact: Fact) -> Result<(), String> {
        match fact {
            Fact::Event { event, recording } => {
                let found = self.events.iter().position(|e| e.id == event);
                let e = place(&mut self.events, found, || EventRow {
                    id: event,
                    pointed: false,
                    point: NONE,
                    current: NONE,
                    covers: false,
                    alive: true,
                });
                let point = recording.and_then(|(point, _)| self.batch_row(point));
                let slot = recording.and_then(|(_, slot)| slot);
                let set = |slot| {
                    self.ops.iter().rposition(|o| o.kind == Kind::Set && u32::from(o.slot) == slot).map(|at| at as Id)
                };
                let current = match slot {
                    None => NONE,
                    Some(slot) => set(slot).ok_or_else(|| format!("slot {slot} is current and was never set"))?,
                };
                let row = &mut self.events[e];
                row.alive = true;
                row.pointed = point.is_some();
                row.point = point.unwrap_or(row.point);
                row.current = current;
            }
            Fact::Slot { slot, free, clean } => {
                let row = &mut self.slots[slot as usize];
                (row.free, row.clean) = (free, clean);
            }
            Fact::Frontier { slot, point } => {
                let batch = self.batch_row(point).ok_or_else(|| format!("{point:?} in a frontier is no batch"))?;
                self.slots[slot as usize].frontier |= 1 << batch;
            }
            Fact::Waiter { waiter, point } => {
                let found = self.waiters.iter().position(|w| w.id == waiter);
                let batch =
                    self.batch_row(point).ok_or_else(|| format!("a waiter for {point:?}, which is no batch"))?;
                let w = place(&mut self.waiters, found, || WaiterRow {
                    id: waiter,
                    waiting: true,
                    blocks: batch,
                    covers: false,
                });
                self.waiters[w].waiting = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// What a queue holds, in order.
    fn items(&self, queue: Id, out: &mut Vec<Item>) {
        out.clear();
        let on = |b: &BatchRow| b.submitted && !b.ended && b.queue == queue;
        let mut rank = 0;
        loop {
            let rest = (0..).zip(&self.batches).filter(|(_, b)| on(b) && b.rank > rank);
            let Some((id, batch)) = rest.min_by_key(|(_, b)| b.rank) else { return };
            rank = batch.rank;
            let here = |o: &OpRow| o.made && o.home == id && !o.gone && !o.vanished;
            let starts = (0..).zip(&self.ops).filter(|(_, o)| here(o) && o.kind == Kind::Start);
            out.extend(starts.map(|(at, _)| Item::Op(at)));
            let commands = (0..).zip(&self.ops).filter(|(_, o)| here(o) && o.kind != Kind::Start);
            out.extend(commands.map(|(at, _)| Item::Op(at)));
            out.push(Item::End(id));
        }
    }

    fn is(&self, item: Item, op: &Op) -> bool {
        let signal = |id: Id, semaphore: u32, value: u64| {
            let batch = &self.batches[id as usize];
            u32::from(batch.timeline) == semaphore && batch.value == value
        };
        match item {
            Item::End(id) => {
                let buffer = self.batches[id as usize].buffer;
                let buffer = self.buffers.get(buffer as usize).map(|b| b.id);
                matches!(*op, Op::End { buffer: b, signal: Some(s), .. } if b == buffer && signal(id, s.semaphore, s.value))
            }
            Item::Op(id) => {
                let row = &self.ops[id as usize];
                let slot = u32::from(row.slot);
                match *op {
                    Op::Start { semaphore, value } => row.kind == Kind::Start && signal(row.upon, semaphore, value),
                    Op::Work { begun, .. } => row.kind == Kind::Work && row.begun == begun,
                    Op::Barrier => row.kind == Kind::Barrier,
                    Op::Set { event, set } => row.kind == Kind::Set && slot == event && row.tag == set,
                    Op::Wait { event, set } => row.kind == Kind::Wait && slot == event && row.tag == set,
                    Op::Reset { .. } | Op::End { .. } => false,
                }
            }
        }
    }

    fn read_device(&mut self, pre: &Facts, gpu: &Gpu, change: Change) -> Result<(), String> {
        let mut items = Vec::new();
        if let Change::Device(step) = change {
            pre.items(step.queue as Id, &mut items);
            match items.get(step.index as usize) {
                Some(&Item::Op(o)) => {
                    let row = &mut self.ops[o as usize];
                    if row.kind == Kind::Work && !row.begun {
                        row.begun = true;
                    } else {
                        row.gone = true;
                    }
                    let settled = row.gone && self.watched == Some(o);
                    self.settle(settled);
                }
                Some(Item::End(_)) => {}
                None => return Err("a device step on what is not there".into()),
            }
        }
        self.settle(change == Change::Lose);
        for at in 0..self.batches.len() {
            let batch = self.batches[at];
            if batch.submitted && !gpu.is_lost() {
                self.batches[at].ended = gpu.semaphore(u32::from(batch.timeline)) >= batch.value;
            }
            if batch.submitted && pre.batches.get(at).is_some_and(|b| b.open) {
                // The driver is not asked to wait for what has passed.
                for o in 0..self.ops.len() {
                    let row = self.ops[o];
                    if row.kind == Kind::Start && row.home == at as Id && self.batches[row.upon as usize].passed {
                        self.ops[o].gone = true;
                    }
                }
            }
            if batch.open && batch.buffer != NONE {
                self.read_buffer(at as Id, gpu)?;
            }
        }
        if gpu.is_lost() {
            return Ok(());
        }
        for (queue, ops) in gpu.queues().iter().enumerate() {
            self.items(queue as Id, &mut items);
            if items.len() != ops.len() || items.iter().zip(ops).any(|(item, op)| !self.is(*item, op)) {
                return Err(format!("queue {queue} holds {ops:?}, which does not follow from {items:?} of {self:?}"));
            }
        }
        Ok(())
    }

    /// Works that have to follow nothing any more are taken out of the run (`watch_one`).
    fn settle(&mut self, settled: bool) {
        if settled {
            self.ops.iter_mut().filter(|o| o.must && !o.gone).for_each(|o| o.vanished = true);
        }
    }

    fn read_buffer(&mut self, batch: Id, gpu: &Gpu) -> Result<(), String> {
        let real = gpu.open_ops(self.buffers[self.batches[batch as usize].buffer as usize].id);
        let mut known = 0;
        for at in 0..self.ops.len() {
            let row = &self.ops[at];
            if row.home == batch && row.kind != Kind::Start && !row.vanished {
                if real.get(known).is_none_or(|op| !self.is(Item::Op(at as Id), op)) {
                    return Err(format!("an open buffer holds {real:?} instead of {row:?}"));
                }
                known += 1;
            }
        }
        for op in &real[known..] {
            let new = match *op {
                Op::Work { work, .. } => OpRow { tag: u64::from(work.tracked), ..OpRow::new(Kind::Work, batch) },
                Op::Barrier => OpRow::new(Kind::Barrier, batch),
                Op::Set { event, set } => OpRow { slot: event as Id, tag: set, ..OpRow::new(Kind::Set, batch) },
                Op::Wait { event, set } => {
                    let is = |o: &OpRow| o.kind == Kind::Set && u32::from(o.slot) == event && o.tag == set;
                    let awaits = self.ops.iter().position(is).map_or(NONE, |at| at as Id);
                    OpRow { slot: event as Id, tag: set, awaits, ..OpRow::new(Kind::Wait, batch) }
                }
                ref other => return Err(format!("{other:?} in a buffer: the machine asks for no such command")),
            };
            if new.tag != 0 && new.kind == Kind::Work {
                self.watched = Some(self.ops.len() as Id);
            }
            self.ops.push(new);
        }
        Ok(())
    }

    /// Rows for what is new in `post`, of which nothing holds yet.
    fn make_room(&mut self, post: &Facts) {
        let fresh = post.watched != self.watched;
        for row in &post.streams[self.streams.len()..] {
            self.streams.push(StreamRow {
                queue: NONE,
                timeline: NONE,
                companion: NONE,
                newest: NONE,
                promised: false,
                ..*row
            });
        }
        for row in &post.batches[self.batches.len()..] {
            let none = BatchRow { stream: NONE, queue: NONE, timeline: NONE, buffer: NONE, open: false, ..*row };
            self.batches.push(BatchRow { submitted: false, ended: false, passed: false, ..none });
        }
        for (old, new) in self.batches.iter_mut().zip(&post.batches) {
            old.rank = new.rank;
        }
        for (old, new) in self.ops.iter_mut().zip(&post.ops) {
            old.vanished = new.vanished;
        }
        for row in &post.ops[self.ops.len()..] {
            self.ops.push(OpRow { made: false, slot: NONE, awaits: NONE, upon: NONE, ..*row });
        }
        for _ in self.slots.len()..post.slots.len() {
            self.slots.push(SlotRow { free: false, clean: false, set_by: NONE, frontier: 0 });
        }
        for row in &post.events[self.events.len()..] {
            self.events.push(EventRow { pointed: false, point: NONE, current: NONE, covers: false, ..*row });
        }
        for (old, new) in self.events.iter_mut().zip(&post.events) {
            old.alive = new.alive;
        }
        for (old, new) in self.streams.iter_mut().zip(&post.streams) {
            old.alive = new.alive;
        }
        for row in &post.buffers[self.buffers.len()..] {
            self.buffers.push(BufferRow { idle: false, ..*row });
        }
        for row in &post.waiters[self.waiters.len()..] {
            self.waiters.push(WaiterRow { waiting: false, blocks: NONE, covers: false, ..*row });
        }
        self.timelines = post.timelines;
        if fresh {
            self.watched = post.watched;
            self.forget_watched();
        }
    }

    /// Another work is watched, of which nothing is known yet.
    fn forget_watched(&mut self) {
        self.ops.iter_mut().for_each(|o| (o.must, o.covers) = (false, false));
        self.events.iter_mut().for_each(|e| e.covers = false);
        self.streams.iter_mut().for_each(|s| (s.depends, s.walled, s.wall) = (false, false, NONE));
        self.queues.iter_mut().for_each(|q| (q.blocked, q.block) = (false, NONE));
        self.waiters.iter_mut().for_each(|w| w.covers = false);
    }

    /// Leaves out what nothing names any more.
    fn forget(&mut self) {
        let mut batches = 0u128;
        for (at, b) in self.batches.iter().enumerate() {
            batches |= u128::from(b.open || b.submitted && !b.passed) << at;
        }
        let running = batches;
        let bit = |id: Id| if id == NONE { 0 } else { 1u128 << id };
        self.events.iter().filter(|e| e.pointed).for_each(|e| batches |= bit(e.point));
        self.slots.iter().for_each(|s| batches |= s.frontier);
        self.waiters.iter().filter(|w| w.waiting).for_each(|w| batches |= bit(w.blocks));
        for (at, b) in self.batches.iter().enumerate() {
            // Its buffer is still to be released.
            let holds = self.buffers.get(b.buffer as usize).is_some_and(|k| !k.idle);
            let later = |x: &BatchRow| x.buffer == b.buffer && (x.open || x.rank > b.rank);
            batches |= u128::from(holds && !self.batches.iter().any(later)) << at;
        }
        let mut ops = 0u128;
        self.events.iter().for_each(|e| ops |= bit(e.current));
        self.slots.iter().for_each(|s| ops |= bit(s.set_by));
        for (at, o) in self.ops.iter().enumerate() {
            // A wait or a start that is over counts as long as what it was for may be waited for again.
            let awaited = self.ops.get(o.awaits as usize).map_or(NONE, |set| set.home);
            if !o.vanished && running & (bit(o.home) | bit(o.upon) | bit(awaited)) != 0 {
                ops |= 1 << at | bit(o.awaits);
            }
        }
        for (at, o) in self.ops.iter().enumerate() {
            if ops >> at & 1 == 1 {
                batches |= bit(o.home) | bit(o.upon);
            }
        }
        let mut streams = 0u128;
        self.streams.iter().enumerate().for_each(|(at, s)| streams |= u128::from(s.alive) << at);
        (0..).zip(&self.batches).filter(|(at, _)| batches >> at & 1 == 1).for_each(|(_, b)| streams |= bit(b.stream));
        let kept = self.streams.iter().enumerate().filter(|(at, _)| streams >> at & 1 == 1);
        kept.for_each(|(_, s)| batches |= bit(s.newest));
        let all = |n: usize| if n == ROOM { u128::MAX } else { (1 << n) - 1 };
        let kept = [(ops, self.ops.len()), (batches, self.batches.len()), (streams, self.streams.len())];
        let rest = self.events.iter().all(|e| e.alive) && self.waiters.iter().all(|w| w.waiting);
        if rest && kept.iter().all(|(kept, n)| *kept == all(*n)) {
            return;
        }
        if self.watched.is_some_and(|w| ops >> w & 1 == 0) {
            self.watched = None;
            self.forget_watched();
        }
        let to = |kept: u128, id: Id| match id {
            NONE => NONE,
            id if kept >> id & 1 == 0 => NONE,
            id => (kept & ((1 << id) - 1)).count_ones() as Id,
        };
        for o in &mut self.ops {
            (o.home, o.upon, o.awaits) = (to(batches, o.home), to(batches, o.upon), to(ops, o.awaits));
        }
        for b in &mut self.batches {
            b.stream = to(streams, b.stream);
        }
        for s in &mut self.streams {
            s.newest = to(batches, s.newest);
            s.wall = to(ops, s.wall);
            s.companion = to(streams, s.companion);
        }
        for q in &mut self.queues {
            q.block = to(ops, q.block);
        }
        for e in &mut self.events {
            (e.point, e.current) = (to(batches, e.point), to(ops, e.current));
        }
        for s in &mut self.slots {
            s.set_by = to(ops, s.set_by);
            let frontier = (0..ROOM as Id).filter(|b| s.frontier >> b & 1 == 1);
            s.frontier = frontier.fold(0, |bits, b| bits | 1 << to(batches, b));
        }
        for w in &mut self.waiters {
            w.blocks = to(batches, w.blocks);
        }
        self.watched = self.watched.map(|w| to(ops, w));
        let keep = |kept: u128| {
            let mut at = 0;
            move || {
                at += 1;
                kept >> (at - 1) & 1 == 1
            }
        };
        let (mut op, mut batch, mut stream) = (keep(ops), keep(batches), keep(streams));
        self.ops.retain(|_| op());
        self.batches.retain(|_| batch());
        self.streams.retain(|_| stream());
        self.events.retain(|e| e.alive);
        self.waiters.retain(|w| w.waiting);
    }
}

impl OpRow {
    fn new(kind: Kind, home: Id) -> OpRow {
        OpRow {
            made: true,
            kind,
            home,
            begun: false,
            gone: false,
            vanished: false,
            must: false,
            covers: false,
            slot: NONE,
            awaits: NONE,
            upon: NONE,
            tag: 0,
        }
    }
}

// Steps ------------------------------------------------------------------------------------------

/// Tells a difference as steps, and takes them.
struct Walk<'a> {
    facts: &'a mut Facts,
    tally: &'a Tally,
}

impl Walk<'_> {
    /// Takes one step of the relation.
    fn take(&mut self, step: Move, args: &[Id]) -> Result<(), String> {
        self.tally.taken[step as usize].fetch_add(1, Ordering::Relaxed);
        let facts = &*self.facts;
        let algebra = Concrete { pre: facts, post: facts };
        let text = Text::new(algebra, None);
        let told = step.step(text, args);
        let named = || {
            let names = step.parameters().iter().zip(args);
            let names: Vec<String> = names.map(|((name, sort), id)| format!("{name} = {} {id}", sort.name())).collect();
            format!("{}({})", step.name(), names.join(", "))
        };
        if let Some(at) = told.guard.iter().position(|g| !g.value) {
            return Err(format!("guard {at} of {} does not hold\n{facts:?}", named()));
        }
        if let Some((rule, _)) = told.rules.iter().find(|(_, claim)| !claim.value) {
            return Err(format!("{} is broken by {}\n{facts:?}", rule.name(), named()));
        }
        let mut writes: Vec<(Symbol, [Id; 2], bool)> = Vec::new();
        let mut values: Vec<(Symbol, Id, Id)> = Vec::new();
        let mut orders: Vec<(Symbol, [Id; 2], bool)> = Vec::new();
        for (symbol, update) in &told.updates {
            let (shape, sorts) = symbol.signature();
            let count = facts.count(sorts[0]);
            match (update, shape) {
                (Update::Holds(f), Shape::Unary) => {
                    let changes = (0..count).map(|x| ([x, x], f([x, x])));
                    writes.extend(
                        changes.filter(|(x, holds)| facts.holds(*symbol, *x) != *holds).map(|(x, h)| (*symbol, x, h)),
                    );
                }
                (Update::Holds(f), _) => {
                    let is_order = matches!(symbol, Symbol::before | Symbol::lower | Symbol::older);
                    for x in 0..count {
                        for y in 0..facts.count(sorts[1]) {
                            let holds = f([x, y]);
                            if is_order {
                                orders.push((*symbol, [x, y], holds));
                            } else if facts.holds(*symbol, [x, y]) != holds {
                                writes.push((*symbol, [x, y], holds));
                            }
                        }
                    }
                }
                (Update::Is(f), _) => {
                    let changes = (0..count).map(|x| (x, f(x)));
                    values
                        .extend(changes.filter(|(x, v)| facts.apply(*symbol, *x) != *v).map(|(x, v)| (*symbol, x, v)));
                }
            }
        }
        drop(told);
        // A map's old value goes before the new one comes.
        for (symbol, x, holds) in writes.iter().filter(|w| !w.2).chain(writes.iter().filter(|w| w.2)) {
            self.facts.write(*symbol, *x, *holds);
        }
        for (symbol, x, value) in values {
            self.facts.write_function(symbol, x, value);
        }
        for (symbol, x, holds) in orders {
            if self.facts.holds(symbol, x) != holds {
                let facts = &*self.facts;
                return Err(format!("{}: {} of {x:?} is not so\n{facts:?}", step.name(), symbol.name()));
            }
        }
        Ok(())
    }

    fn explain(&mut self, post: &Facts, change: Change) -> Result<(), String> {
        self.streams(post)?;
        if let Change::Device(step) = change {
            return self.device(step);
        }
        self.reached(post)?;
        // Whoever is told that it is done was woken: now, or before.
        let told = match change {
            Change::Wake(waiter) => Some(waiter),
            Change::TimeOut(waiter, true) => Some(waiter).filter(|w| self.facts.waiter_row(*w).is_some()),
            _ => None,
        };
        if let Some(waiter) = told {
            let h = self.facts.waiter_row(waiter).ok_or("a waiter is woken that was not there")?;
            let p = self.facts.waiters[h as usize].blocks;
            self.take(Move::wake, &[h, p, self.stream_of(p), self.queue_of(p)])?;
        }
        if let Change::TimeOut(waiter, false) = change
            && let Some(h) = self.facts.waiter_row(waiter)
            && !post.waiters[h as usize].waiting
        {
            self.take(Move::give_up, &[h])?;
        }
        self.batches(post)?;
        self.slots(post)?;
        match change {
            Change::Work(stream) => self.work(stream, post)?,
            Change::Record(event, stream) => self.record(event, stream, post)?,
            Change::Wait(stream, event) => self.wait(stream, event, post)?,
            Change::Destroy(event) => {
                if let Some(e) = self.facts.event_row(event) {
                    let r = self.facts.events[e as usize].current;
                    let x = self.facts.value(Symbol::names, r);
                    self.take(Move::destroy_event, &[e, r, x])?;
                }
            }
            Change::BlockOnEvent(event, waiter) => {
                let (Some(e), Some(h)) = (self.facts.event_row(event), self.facts.waiter_row(waiter)) else {
                    return Err("a thread blocks on what is not there".into());
                };
                self.take(Move::block_on_event, &[h, e])?;
            }
            Change::BlockOnStream(stream, waiter) => {
                let (Some(t), Some(h)) = (self.facts.stream_row(stream), self.facts.waiter_row(waiter)) else {
                    return Err("a thread blocks on what is not there".into());
                };
                let join = self.join(t);
                self.take(Move::block_on_stream, &[&[h, t][..], &join].concat())?;
            }
            _ => {}
        }
        self.recycled(post)
    }

    fn stream_of(&self, b: Id) -> Id {
        self.facts.value(Symbol::of, b)
    }

    fn queue_of(&self, b: Id) -> Id {
        self.facts.value(Symbol::on, b)
    }

    fn streams(&mut self, post: &Facts) -> Result<(), String> {
        for (t, row) in (0..).zip(&post.streams) {
            if self.facts.streams[t as usize].queue == NONE {
                self.take(Move::create_stream, &[t, row.queue, row.timeline])?;
            }
        }
        for (t, row) in (0..).zip(&post.streams) {
            if row.companion != NONE && self.facts.streams[t as usize].companion == NONE {
                self.take(Move::set_companion, &[t, row.companion])?;
            }
        }
        Ok(())
    }

    /// Points that passed, and the buffers that this frees.
    fn reached(&mut self, post: &Facts) -> Result<(), String> {
        for l in 0..post.timelines {
            let new = |(at, b): &(Id, &BatchRow)| {
                b.timeline == l && b.passed && !self.facts.batches[*at as usize].passed && b.rank > 0
            };
            let last = (0..).zip(&post.batches).filter(new).max_by_key(|(_, b)| b.value);
            if let Some((b, row)) = last {
                self.take(Move::reach, &[b, row.queue, l])?;
            }
        }
        for (k, row) in (0..).zip(&post.buffers) {
            if row.idle && !self.facts.buffers[k as usize].idle {
                let of = (0..).zip(&self.facts.batches).filter(|(_, b)| b.buffer == k).max_by_key(|(_, b)| b.rank);
                let b = of.map_or(NONE, |(b, _)| b);
                self.take(Move::release_buffer, &[k, b])?;
            }
        }
        Ok(())
    }

    fn batches(&mut self, post: &Facts) -> Result<(), String> {
        for (b, row) in (0..).zip(&post.batches) {
            let old = self.facts.batches[b as usize];
            if !old.open && !old.submitted && row.open {
                self.take(Move::open_batch, &[row.stream, b, row.queue, row.timeline])?;
            }
        }
        for (o, row) in (0..).zip(&post.ops).filter(|(_, row)| row.kind == Kind::Start) {
            let (u, v) = (post.value(Symbol::of, row.upon), post.value(Symbol::on, row.upon));
            let old = self.facts.ops[o as usize];
            let t = post.value(Symbol::of, row.home);
            if !old.made {
                self.take(Move::add_start, &[t, row.home, o, row.upon, u, v])?;
            } else if old.upon != row.upon {
                let w = self.stream_of(old.upon);
                self.take(Move::raise_start, &[t, row.home, o, old.upon, w, row.upon, u, v])?;
            }
        }
        for (b, row) in (0..).zip(&post.batches) {
            let old = self.facts.batches[b as usize];
            if row.buffer != old.buffer && row.open {
                self.take(Move::begin, &[row.stream, b, row.buffer])?;
            }
            if old.open && row.submitted {
                for (o, start) in (0..).zip(&post.ops).filter(|(_, o)| o.home == b && o.kind == Kind::Start) {
                    if start.gone && !self.facts.ops[o as usize].gone {
                        let (u, v) = (self.stream_of(start.upon), self.queue_of(start.upon));
                        self.take(Move::drop_start, &[row.stream, row.queue, o, b, start.upon, u, v])?;
                    }
                }
                self.take(Move::submit, &[row.stream, b, row.queue, row.timeline])?;
            }
        }
        Ok(())
    }

    fn slots(&mut self, post: &Facts) -> Result<(), String> {
        for (x, row) in (0..).zip(&post.slots) {
            let old = self.facts.slots[x as usize];
            let is_new = x as usize >= self.facts.slots.len() || !old.free && !old.clean && row.free && row.clean;
            if is_new && !self.facts.ops.iter().any(|o| o.slot == x) {
                self.take(Move::create_slot, &[x])?;
            } else if row.clean && !old.clean && row.free {
                self.take(Move::reset_slot, &[x])?;
            }
        }
        Ok(())
    }

    /// Points that left a frontier, and slots that nothing names any more.
    fn recycled(&mut self, post: &Facts) -> Result<(), String> {
        for (x, row) in (0..).zip(&post.slots) {
            let left = self.facts.slots[x as usize].frontier & !row.frontier;
            for b in (0..ROOM as Id).filter(|b| left >> b & 1 == 1) {
                self.take(Move::forget_passed, &[x, b])?;
            }
        }
        for (x, row) in (0..).zip(&post.slots) {
            if row.free && !self.facts.slots[x as usize].free {
                self.take(Move::recycle, &[x])?;
            }
        }
        Ok(())
    }

    /// The operation that this step adds, if any.
    fn added(&self, post: &Facts) -> Option<(Id, OpRow)> {
        (0..).zip(&post.ops).find(|(o, _)| !self.facts.ops[*o as usize].made).map(|(o, row)| (o, *row))
    }

    fn work(&mut self, stream: StreamId, post: &Facts) -> Result<(), String> {
        // Work that nobody watches leaves nothing.
        let (Some((o, row)), Some(t)) = (self.added(post), self.facts.stream_row(stream)) else { return Ok(()) };
        let batch = post.batches[row.home as usize];
        self.take(Move::issue_work, &[t, row.home, batch.buffer, o, batch.queue])
    }

    /// Parameters that show how a stream's newest point covers its companion.
    fn join(&self, t: Id) -> [Id; 6] {
        let stream = self.facts.streams[t as usize];
        let Some(companion) = self.facts.streams.get(stream.companion as usize) else {
            return [NONE, NONE, NONE, NONE, stream.queue, NONE];
        };
        let newest = companion.newest;
        let reaches = |o: &OpRow| {
            o.kind == Kind::Start
                && self.stream_of(o.home) == t
                && (o.upon == newest || self.facts.holds(Symbol::lower, [newest, o.upon]))
        };
        let found = (0..).zip(&self.facts.ops).find(|(_, o)| reaches(o));
        let (o, b, p) = found.map_or((NONE, NONE, NONE), |(at, o)| (at, o.home, o.upon));
        [o, b, p, self.stream_of(p), stream.queue, companion.queue]
    }

    fn record(&mut self, event: EventId, stream: StreamId, post: &Facts) -> Result<(), String> {
        let (Some(e), Some(t)) = (self.facts.event_row(event), self.facts.stream_row(stream)) else {
            return Err("a recording of what is not there".into());
        };
        let join = self.join(t);
        if let Some((o, row)) = self.added(post) {
            let k = post.batches[row.home as usize].buffer;
            return self.take(Move::record, &[&[e, t, row.home, k, o, row.slot][..], &join].concat());
        }
        let row = post.events[e as usize];
        if row.pointed {
            return self.take(Move::record_bare, &[&[e, t, row.point][..], &join].concat());
        }
        self.take(Move::record_nothing, &[&[e, t][..], &join].concat())
    }

    fn wait(&mut self, stream: StreamId, event: EventId, post: &Facts) -> Result<(), String> {
        let (Some(e), Some(t)) = (self.facts.event_row(event), self.facts.stream_row(stream)) else {
            return Err("a wait for what is not there".into());
        };
        let p = self.facts.events[e as usize].point;
        if let Some((o, row)) = self.added(post) {
            let batch = post.batches[row.home as usize];
            if row.kind == Kind::Wait {
                let c = self.facts.apply(Symbol::home, row.awaits);
                let args = [t, row.home, batch.buffer, o, e, row.awaits, row.slot, c, batch.queue];
                self.take(Move::wait_for_event, &args)?;
            } else {
                let args = [t, row.home, batch.buffer, o, e, self.stream_of(p), batch.queue];
                self.take(Move::wait_by_barrier, &args)?;
            }
        } else {
            self.accept(t, e)?;
        }
        match self.facts.streams[t as usize].companion {
            NONE => Ok(()),
            companion => self.accept(companion, e),
        }
    }

    /// A wait that needs nothing more: says why.
    fn accept(&mut self, t: Id, e: Id) -> Result<(), String> {
        let event = self.facts.events[e as usize];
        let p = event.point;
        let passed = self.facts.holds(Symbol::passed, [p, p]);
        let by_wait = |o: &OpRow| event.current != NONE && o.awaits == event.current && self.stream_of(o.home) == t;
        let by_start = |o: &OpRow| {
            o.kind == Kind::Start
                && self.stream_of(o.home) == t
                && (o.upon == p || self.facts.holds(Symbol::lower, [p, o.upon]))
        };
        if event.pointed && !passed {
            let found = (0..).zip(&self.facts.ops).find(|(_, o)| by_wait(o)).map(|(at, o)| (at, *o));
            if let Some((o, row)) = found {
                let q = self.queue_of(row.home);
                return self.take(Move::accept_waited, &[t, e, event.current, o, row.home, q]);
            }
            let found = (0..).zip(&self.facts.ops).find(|(_, o)| by_start(o)).map(|(at, o)| (at, *o));
            if let Some((o, row)) = found {
                let (u, v, q) = (self.stream_of(row.upon), self.queue_of(row.upon), self.queue_of(row.home));
                return self.take(Move::accept_started, &[t, e, o, row.home, row.upon, u, v, q, self.stream_of(p)]);
            }
        }
        self.take(Move::accept_passed, &[t, e, self.stream_of(p), self.queue_of(p)])
    }

    fn report(&mut self, change: Change) -> Result<(), String> {
        match change {
            Change::EventDone(event) => {
                let Some(e) = self.facts.event_row(event) else { return Ok(()) };
                let p = self.facts.events[e as usize].point;
                self.take(Move::report_event, &[e, self.stream_of(p), self.queue_of(p)])
            }
            Change::StreamDone(stream) => {
                let Some(t) = self.facts.stream_row(stream) else { return Ok(()) };
                let join = self.join(t);
                self.take(Move::report_stream, &[&[t][..], &join].concat())
            }
            _ => Ok(()),
        }
    }

    fn device(&mut self, step: DeviceStep) -> Result<(), String> {
        let q = step.queue as Id;
        let mut items = Vec::new();
        self.facts.items(q, &mut items);
        let (step, args) = self.device_step(items[step.index as usize], q);
        let before = self.facts.clone();
        self.take(step, &args)?;
        let algebra = Concrete { pre: &before, post: self.facts };
        let [s, after] = [When::Pre, When::Post].map(|when| View { algebra, when });
        if !progress::shrinks(step, s, after, &args).value {
            return Err(format!("{} leaves as much as there was", step.name()));
        }
        self.least()
    }

    /// The step that does what comes next of a queue, with its parameters.
    fn device_step(&self, item: Item, q: Id) -> (Move, Vec<Id>) {
        let o = match item {
            Item::End(b) => return (Move::end_batch, vec![b, q, self.facts.batches[b as usize].timeline]),
            Item::Op(o) => o,
        };
        let row = self.facts.ops[o as usize];
        let (b, u) = (row.home, self.stream_of(row.home));
        match row.kind {
            Kind::Start => {
                let p = row.upon;
                (Move::pass_start, vec![o, b, q, p, self.stream_of(p), self.queue_of(p)])
            }
            Kind::Work if row.begun => (Move::end_work, vec![o, b, q]),
            Kind::Work => (Move::begin_work, vec![o, b, u, q]),
            Kind::Barrier => (Move::pass_barrier, vec![o, b, q]),
            Kind::Set => (Move::take_set, vec![o, b, u, q, row.slot]),
            Kind::Wait => {
                let n = self.facts.value(Symbol::set_by, row.slot);
                (Move::pass_wait, vec![o, b, q, row.awaits, row.slot, n])
            }
        }
    }

    /// The least of what is left can step.
    fn least(&self) -> Result<(), String> {
        let left = self.facts.batches.iter().filter(|b| b.submitted && !b.ended);
        let Some(first) = left.min_by_key(|b| b.rank) else { return Ok(()) };
        let mut items = Vec::new();
        self.facts.items(first.queue, &mut items);
        let (step, args) = self.device_step(items[0], first.queue);
        let facts = &*self.facts;
        if progress::is_possible(step, Text::new(Concrete { pre: facts, post: facts }, None), &args).value {
            return Ok(());
        }
        Err(format!("the least of what is left cannot step: {}{args:?}\n{facts:?}", step.name()))
    }
}
