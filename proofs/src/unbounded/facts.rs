//! One concrete state of the vocabulary, and formulas evaluated on it.
//!
//! Elements are numbered. What a step makes is added at the end, so operations are numbered by age; what
//! nothing names any more is left out between steps. That loses nothing: clauses and guards say something
//! for all elements, and what is left out has ended, passed and is gone, which is all that they ask of it.

use fencepost::{EventId, StreamId, WaiterId};

use super::algebra::{Algebra, When};
use super::vocabulary::{Shape, Sort, Symbol};

/// An element's number.
pub type Id = u8;
/// No element: nothing holds of it.
pub const NONE: Id = Id::MAX;

/// How many elements of a sort one state can hold.
pub const ROOM: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Work,
    Barrier,
    Set,
    Wait,
    Start,
}

#[derive(Clone, Copy, Debug)]
pub struct OpRow {
    pub made: bool,
    pub kind: Kind,
    pub home: Id,
    pub begun: bool,
    pub gone: bool,
    /// Taken out of the run by the search: no longer in the queue, and not run.
    pub vanished: bool,
    pub must: bool,
    pub covers: bool,
    pub slot: Id,
    pub awaits: Id,
    pub upon: Id,
    /// What the device calls it: the number of the set, or the bits of the work.
    pub tag: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct BatchRow {
    pub stream: Id,
    pub queue: Id,
    pub timeline: Id,
    pub buffer: Id,
    pub value: u64,
    /// Its place in the order of submission.
    pub rank: u32,
    pub open: bool,
    pub submitted: bool,
    pub ended: bool,
    pub passed: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct StreamRow {
    pub id: StreamId,
    pub queue: Id,
    pub timeline: Id,
    pub companion: Id,
    pub newest: Id,
    pub promised: bool,
    pub depends: bool,
    pub walled: bool,
    pub wall: Id,
    /// The machine still knows it.
    pub alive: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct QueueRow {
    pub blocked: bool,
    pub block: Id,
}

#[derive(Clone, Copy, Debug)]
pub struct EventRow {
    pub id: EventId,
    pub pointed: bool,
    pub point: Id,
    pub current: Id,
    pub covers: bool,
    pub alive: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct SlotRow {
    pub free: bool,
    pub clean: bool,
    pub set_by: Id,
    /// Bits of batches.
    pub frontier: u128,
}

#[derive(Clone, Copy, Debug)]
pub struct BufferRow {
    pub id: u32,
    pub idle: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct WaiterRow {
    pub id: WaiterId,
    pub waiting: bool,
    pub blocks: Id,
    pub covers: bool,
}

/// A state.
#[derive(Debug, Default)]
pub struct Facts {
    pub queues: Vec<QueueRow>,
    pub timelines: Id,
    pub streams: Vec<StreamRow>,
    pub batches: Vec<BatchRow>,
    pub ops: Vec<OpRow>,
    pub slots: Vec<SlotRow>,
    pub events: Vec<EventRow>,
    pub buffers: Vec<BufferRow>,
    pub waiters: Vec<WaiterRow>,
    pub watched: Option<Id>,
}

impl Clone for Facts {
    fn clone(&self) -> Self {
        let mut new = Facts::default();
        new.clone_from(self);
        new
    }

    fn clone_from(&mut self, other: &Self) {
        self.queues.clone_from(&other.queues);
        self.streams.clone_from(&other.streams);
        self.batches.clone_from(&other.batches);
        self.ops.clone_from(&other.ops);
        self.slots.clone_from(&other.slots);
        self.events.clone_from(&other.events);
        self.buffers.clone_from(&other.buffers);
        self.waiters.clone_from(&other.waiters);
        (self.timelines, self.watched) = (other.timelines, other.watched);
    }
}

impl Facts {
    #[inline(always)]
    pub fn count(&self, sort: Sort) -> Id {
        let count = match sort {
            Sort::Queue => self.queues.len(),
            Sort::Timeline => return self.timelines,
            Sort::Stream => self.streams.len(),
            Sort::Batch => self.batches.len(),
            Sort::Op => self.ops.len(),
            Sort::Slot => self.slots.len(),
            Sort::Event => self.events.len(),
            Sort::Buffer => self.buffers.len(),
            Sort::Waiter => self.waiters.len(),
        };
        count as Id
    }

    /// Whether one more call could need more elements than there is room for.
    pub fn is_crowded(&self) -> bool {
        Sort::ALL.iter().any(|sort| usize::from(self.count(*sort)) > ROOM - 16)
    }

    fn op(&self, x: Id) -> Option<&OpRow> {
        self.ops.get(x as usize)
    }

    fn batch(&self, x: Id) -> Option<&BatchRow> {
        self.batches.get(x as usize)
    }

    fn is_kind(&self, x: Id, kind: Kind) -> bool {
        self.op(x).is_some_and(|o| o.made && o.kind == kind)
    }

    /// What a map gives an element.
    #[inline(always)]
    pub fn value(&self, map: Symbol, x: Id) -> Id {
        let at = x as usize;
        let value = match map {
            Symbol::of => self.batches.get(at).map(|b| b.stream),
            Symbol::on => self.batches.get(at).map(|b| b.queue),
            Symbol::at => self.batches.get(at).map(|b| b.timeline),
            Symbol::leased => self.batches.get(at).map(|b| b.buffer),
            Symbol::placed => self.streams.get(at).map(|s| s.queue),
            Symbol::signals => self.streams.get(at).map(|s| s.timeline),
            Symbol::companion => self.streams.get(at).map(|s| s.companion),
            Symbol::names => self.ops.get(at).map(|o| o.slot),
            Symbol::awaits => self.ops.get(at).map(|o| o.awaits),
            Symbol::upon => self.ops.get(at).map(|o| o.upon),
            Symbol::current => self.events.get(at).map(|e| e.current),
            Symbol::set_by => self.slots.get(at).map(|s| s.set_by),
            Symbol::blocks => self.waiters.get(at).map(|w| w.blocks),
            _ => None,
        };
        value.unwrap_or(NONE)
    }

    #[inline(always)]
    pub fn apply(&self, function: Symbol, x: Id) -> Id {
        let at = x as usize;
        let value = match function {
            Symbol::home => self.ops.get(at).map(|o| o.home),
            Symbol::newest => self.streams.get(at).map(|s| s.newest),
            Symbol::point => self.events.get(at).map(|e| e.point),
            Symbol::wall => self.streams.get(at).map(|s| s.wall),
            Symbol::block => self.queues.get(at).map(|q| q.block),
            _ => None,
        };
        value.unwrap_or(NONE)
    }

    #[inline(always)]
    pub fn holds(&self, symbol: Symbol, [x, y]: [Id; 2]) -> bool {
        let at = x as usize;
        match symbol {
            Symbol::open => self.batch(x).is_some_and(|b| b.open),
            Symbol::submitted => self.batch(x).is_some_and(|b| b.submitted),
            Symbol::ended => self.batch(x).is_some_and(|b| b.ended),
            Symbol::passed => self.batch(x).is_some_and(|b| b.passed),
            Symbol::made => self.op(x).is_some_and(|o| o.made),
            Symbol::work => self.is_kind(x, Kind::Work),
            Symbol::barrier => self.is_kind(x, Kind::Barrier),
            Symbol::set => self.is_kind(x, Kind::Set),
            Symbol::wait => self.is_kind(x, Kind::Wait),
            Symbol::start => self.is_kind(x, Kind::Start),
            Symbol::begun => self.op(x).is_some_and(|o| o.begun),
            Symbol::gone => self.op(x).is_some_and(|o| o.gone),
            Symbol::must => self.op(x).is_some_and(|o| o.must),
            Symbol::covers_set => self.op(x).is_some_and(|o| o.covers),
            Symbol::free => self.slots.get(at).is_some_and(|s| s.free),
            Symbol::clean => self.slots.get(at).is_some_and(|s| s.clean),
            Symbol::idle => self.buffers.get(at).is_some_and(|b| b.idle),
            Symbol::pointed => self.events.get(at).is_some_and(|e| e.pointed),
            Symbol::covers => self.events.get(at).is_some_and(|e| e.covers),
            Symbol::promised => self.streams.get(at).is_some_and(|s| s.promised),
            Symbol::depends => self.streams.get(at).is_some_and(|s| s.depends),
            Symbol::walled => self.streams.get(at).is_some_and(|s| s.walled),
            Symbol::blocked => self.queues.get(at).is_some_and(|q| q.blocked),
            Symbol::waiting => self.waiters.get(at).is_some_and(|w| w.waiting),
            Symbol::covers_waiter => self.waiters.get(at).is_some_and(|w| w.covers),
            Symbol::before => match (self.batch(x), self.batch(y)) {
                (Some(x), Some(y)) => x.submitted && y.submitted && x.rank < y.rank,
                _ => false,
            },
            Symbol::lower => match (self.batch(x), self.batch(y)) {
                (Some(x), Some(y)) => x.submitted && y.submitted && x.timeline == y.timeline && x.value < y.value,
                _ => false,
            },
            Symbol::older => x < y && self.op(x).is_some_and(|o| o.made) && self.op(y).is_some_and(|o| o.made),
            Symbol::frontier => (y as usize) < ROOM && self.slots.get(at).is_some_and(|s| s.frontier >> y & 1 == 1),
            map => {
                let value = self.value(map, x);
                value != NONE && value == y
            }
        }
    }

    /// Writes what a step says of a symbol. Orders follow from ranks, values and ages: they are compared, not written.
    pub fn write(&mut self, symbol: Symbol, [x, y]: [Id; 2], holds: bool) {
        let at = x as usize;
        let link = |value: &mut Id| match holds {
            true => *value = y,
            false if *value == y => *value = NONE,
            false => {}
        };
        match symbol {
            Symbol::open => self.batches[at].open = holds,
            Symbol::submitted => self.batches[at].submitted = holds,
            Symbol::ended => self.batches[at].ended = holds,
            Symbol::passed => self.batches[at].passed = holds,
            Symbol::made => self.ops[at].made = holds,
            Symbol::begun => self.ops[at].begun = holds,
            Symbol::gone => self.ops[at].gone = holds,
            Symbol::must => self.ops[at].must = holds,
            Symbol::covers_set => self.ops[at].covers = holds,
            Symbol::free => self.slots[at].free = holds,
            Symbol::clean => self.slots[at].clean = holds,
            Symbol::idle => self.buffers[at].idle = holds,
            Symbol::pointed => self.events[at].pointed = holds,
            Symbol::covers => self.events[at].covers = holds,
            Symbol::promised => self.streams[at].promised = holds,
            Symbol::depends => self.streams[at].depends = holds,
            Symbol::walled => self.streams[at].walled = holds,
            Symbol::blocked => self.queues[at].blocked = holds,
            Symbol::waiting => self.waiters[at].waiting = holds,
            Symbol::covers_waiter => self.waiters[at].covers = holds,
            Symbol::frontier => {
                let bit = 1 << y;
                let frontier = &mut self.slots[at].frontier;
                *frontier = if holds { *frontier | bit } else { *frontier & !bit };
            }
            Symbol::of => link(&mut self.batches[at].stream),
            Symbol::on => link(&mut self.batches[at].queue),
            Symbol::at => link(&mut self.batches[at].timeline),
            Symbol::leased => link(&mut self.batches[at].buffer),
            Symbol::placed => link(&mut self.streams[at].queue),
            Symbol::signals => link(&mut self.streams[at].timeline),
            Symbol::companion => link(&mut self.streams[at].companion),
            Symbol::names => link(&mut self.ops[at].slot),
            Symbol::awaits => link(&mut self.ops[at].awaits),
            Symbol::upon => link(&mut self.ops[at].upon),
            Symbol::current => link(&mut self.events[at].current),
            Symbol::set_by => link(&mut self.slots[at].set_by),
            Symbol::blocks => link(&mut self.waiters[at].blocks),
            // Kinds come with the operation, orders from what is written elsewhere.
            _ => {}
        }
    }

    pub fn write_function(&mut self, function: Symbol, x: Id, value: Id) {
        let at = x as usize;
        match function {
            Symbol::home => self.ops[at].home = value,
            Symbol::newest => self.streams[at].newest = value,
            Symbol::point => self.events[at].point = value,
            Symbol::wall => self.streams[at].wall = value,
            Symbol::block => self.queues[at].block = value,
            _ => {}
        }
    }

    /// The first difference between two states in a symbol of the system, over the elements of both.
    pub fn difference(&self, other: &Facts) -> Option<(Symbol, Id)> {
        for &symbol in Symbol::ALL {
            let (shape, sorts) = symbol.signature();
            if symbol.is_ghost() || shape == Shape::Constant {
                continue;
            }
            for x in 0..self.count(sorts[0]).max(other.count(sorts[0])) {
                let same = match shape {
                    Shape::Unary => self.holds(symbol, [x, x]) == other.holds(symbol, [x, x]),
                    Shape::Map => self.value(symbol, x) == other.value(symbol, x),
                    Shape::Function => self.apply(symbol, x) == other.apply(symbol, x),
                    // Orders follow from ranks and values, which are the same rows; frontiers are one number.
                    Shape::Binary if symbol == Symbol::frontier => {
                        let of = |f: &Facts| f.slots.get(x as usize).map_or(0, |s| s.frontier);
                        of(self) == of(other)
                    }
                    _ => true,
                };
                if !same {
                    return Some((symbol, x));
                }
            }
        }
        None
    }
}

/// Formulas as truth values.
#[derive(Clone, Copy)]
pub struct Concrete<'a> {
    pub pre: &'a Facts,
    pub post: &'a Facts,
}

impl<'a> Concrete<'a> {
    #[inline(always)]
    fn at(self, when: When) -> &'a Facts {
        match when {
            When::Pre => self.pre,
            When::Post => self.post,
        }
    }
}

impl Algebra for Concrete<'_> {
    type Bool = bool;
    type Term = Id;

    #[inline(always)]
    fn truth(self, value: bool) -> bool {
        value
    }
    #[inline(always)]
    fn not(self, a: bool) -> bool {
        !a
    }
    #[inline(always)]
    fn and(self, a: bool, b: bool) -> bool {
        a && b
    }
    #[inline(always)]
    fn or(self, a: bool, b: bool) -> bool {
        a || b
    }
    #[inline(always)]
    fn implies(self, a: bool, b: impl FnOnce() -> bool) -> bool {
        !a || b()
    }
    #[inline(always)]
    fn same(self, a: Id, b: Id) -> bool {
        a == b && a != NONE
    }
    #[inline(always)]
    fn choose(self, a: bool, b: Id, c: Id) -> Id {
        if a { b } else { c }
    }
    #[inline(always)]
    fn all(self, sort: Sort, body: impl Fn(Id) -> bool) -> bool {
        (0..self.post.count(sort)).all(body)
    }
    #[inline(always)]
    fn atom(self, when: When, symbol: Symbol, args: [Id; 2]) -> bool {
        self.at(when).holds(symbol, args)
    }
    #[inline(always)]
    fn each(self, when: When, map: Symbol, key: Id, body: impl Fn(Id) -> bool) -> bool {
        let value = self.at(when).value(map, key);
        value == NONE || body(value)
    }
    #[inline(always)]
    fn apply(self, when: When, function: Symbol, arg: Id) -> Id {
        self.at(when).apply(function, arg)
    }
    fn constant(self, constant: Symbol) -> Id {
        let facts = self.post;
        let watched = facts.watched.and_then(|w| facts.ops.get(w as usize));
        let batch = watched.and_then(|w| facts.batches.get(w.home as usize));
        match constant {
            Symbol::watched => facts.watched.unwrap_or(NONE),
            Symbol::watched_queue => batch.map_or(NONE, |b| b.queue),
            _ => batch.map_or(NONE, |b| b.stream),
        }
    }
}
