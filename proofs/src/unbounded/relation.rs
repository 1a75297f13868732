//! The transition relation: every step that the machine and its driver calls, or the device, can take.
//!
//! A step has parameters, a guard over the state before, and for each symbol that changes a formula over the
//! state before; what is not listed stays. A call of the machine is one or several of these, one for each
//! effect and one for its answer. A call that is refused changes nothing, so it is no step; a device that is lost takes no
//! further step.

use fencepost::Rule;

use super::algebra::{Algebra, Binary, Claim, Elem, Function, Map, Sorted, Unary, View, When, all, choose, truth};
use super::mutants::Mutant;
use super::vocabulary::{Batch, Buffer, Event, Op, Queue, Slot, Sort, Stream, Symbol, Timeline, Waiter, sort, the};

type Formula<'a, A> = Box<dyn Fn([<A as Algebra>::Term; 2]) -> <A as Algebra>::Bool + 'a>;
type Value<'a, A> = Box<dyn Fn(<A as Algebra>::Term) -> <A as Algebra>::Term + 'a>;

/// How a symbol reads after the step.
pub enum Update<'a, A: Algebra> {
    Holds(Formula<'a, A>),
    Is(Value<'a, A>),
}

/// One step.
pub struct Step<'a, A: Algebra> {
    pub guard: Vec<Claim<A>>,
    pub updates: Vec<(Symbol, Update<'a, A>)>,
    /// What the rules claim of it.
    pub rules: Vec<(Rule, Claim<A>)>,
}

/// The state before a step, and which mutant of the relation is read.
#[derive(Clone, Copy)]
pub struct Text<A: Algebra> {
    pub s: View<A>,
    pub mutant: Option<Mutant>,
}

impl<A: Algebra> Text<A> {
    pub fn new(algebra: A, mutant: Option<Mutant>) -> Self {
        Text { s: View { algebra, when: When::Pre }, mutant }
    }

    fn is(self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    fn no(self) -> Claim<A> {
        truth(self.s.algebra, false)
    }
}

impl<'a, A: Algebra + 'a> Step<'a, A> {
    fn new() -> Self {
        Step { guard: Vec::new(), updates: Vec::new(), rules: Vec::new() }
    }

    fn when(mut self, claim: Claim<A>) -> Self {
        self.guard.push(claim);
        self
    }

    fn unless(self, claim: Claim<A>) -> Self {
        self.when(!claim)
    }

    fn rule(mut self, rule: Rule, claim: Claim<A>) -> Self {
        self.rules.push((rule, claim));
        self
    }

    fn unary<S: Sorted>(mut self, a: A, symbol: Unary<S>, f: impl Fn(Elem<A, S>) -> Claim<A> + 'a) -> Self {
        self.updates.push((symbol.0, Update::Holds(Box::new(move |[x, _]| f(Elem::new(a, x)).value))));
        self
    }

    fn relation<S: Sorted, T: Sorted>(
        mut self,
        a: A,
        symbol: Symbol,
        f: impl Fn(Elem<A, S>, Elem<A, T>) -> Claim<A> + 'a,
    ) -> Self {
        self.updates.push((symbol, Update::Holds(Box::new(move |[x, y]| f(Elem::new(a, x), Elem::new(a, y)).value))));
        self
    }

    fn binary<S: Sorted, T: Sorted>(
        self,
        a: A,
        symbol: Binary<S, T>,
        f: impl Fn(Elem<A, S>, Elem<A, T>) -> Claim<A> + 'a,
    ) -> Self {
        self.relation(a, symbol.0, f)
    }

    fn map<S: Sorted, T: Sorted>(
        self,
        a: A,
        symbol: Map<S, T>,
        f: impl Fn(Elem<A, S>, Elem<A, T>) -> Claim<A> + 'a,
    ) -> Self {
        self.relation(a, symbol.0, f)
    }

    fn function<S: Sorted, T: Sorted>(
        mut self,
        a: A,
        symbol: Function<S, T>,
        f: impl Fn(Elem<A, S>) -> Elem<A, T> + 'a,
    ) -> Self {
        self.updates.push((symbol.0, Update::Is(Box::new(move |x| f(Elem::new(a, x)).term))));
        self
    }

    /// `map` gives `key` the value, beside those it has for others.
    fn put<S: Sorted, T: Sorted>(self, s: View<A>, map: Map<S, T>, key: Elem<A, S>, value: Elem<A, T>) -> Self {
        let symbol = map.0;
        self.map(s.algebra, map, move |x, y| s.binary(symbol, x, y) | (x.is(key) & y.is(value)))
    }

    /// `map` gives `key` the value and no other.
    fn replace<S: Sorted, T: Sorted>(self, s: View<A>, map: Map<S, T>, key: Elem<A, S>, value: Elem<A, T>) -> Self {
        let symbol = map.0;
        self.map(s.algebra, map, move |x, y| (s.binary(symbol, x, y) & !x.is(key)) | (x.is(key) & y.is(value)))
    }

    fn clear<S: Sorted, T: Sorted>(self, s: View<A>, map: Map<S, T>, key: Elem<A, S>) -> Self {
        let symbol = map.0;
        self.map(s.algebra, map, move |x, y| s.binary(symbol, x, y) & !x.is(key))
    }

    fn add<S: Sorted>(self, s: View<A>, symbol: Unary<S>, key: Elem<A, S>) -> Self {
        let read = symbol.0;
        self.unary(s.algebra, symbol, move |x| s.unary(read, x) | x.is(key))
    }

    fn remove<S: Sorted>(self, s: View<A>, symbol: Unary<S>, key: Elem<A, S>) -> Self {
        let read = symbol.0;
        self.unary(s.algebra, symbol, move |x| s.unary(read, x) & !x.is(key))
    }

    fn assign<S: Sorted>(self, s: View<A>, symbol: Unary<S>, key: Elem<A, S>, claim: Claim<A>) -> Self {
        let read = symbol.0;
        self.unary(s.algebra, symbol, move |x| (s.unary(read, x) & !x.is(key)) | (x.is(key) & claim))
    }

    fn point_to<S: Sorted, T: Sorted>(self, s: View<A>, f: Function<S, T>, key: Elem<A, S>, value: Elem<A, T>) -> Self {
        let read = f.0;
        self.function(s.algebra, f, move |x| choose(x.is(key), value, s.function(read, x)))
    }

    /// A new operation at the end of an open batch.
    fn adds(self, s: View<A>, o: Op<A>, b: Batch<A>, kind: Unary<sort::Op>) -> Self {
        let step = if kind.0 == Symbol::work { self } else { self.unless(o.is(s.watched())) };
        step.unless(s.made(o)).when(s.open(b)).add(s, the::made, o).add(s, kind, o).point_to(s, the::home, o, b).binary(
            s.algebra,
            the::older,
            move |x, y| s.older(x, y) | (s.made(x) & y.is(o)),
        )
    }

    /// The stream's open batch has a wall from now on, if the claim holds and it had none.
    fn walls(self, s: View<A>, t: Stream<A>, o: Op<A>, claim: Claim<A>) -> Self {
        let new = claim & !s.walled(t);
        let a = s.algebra;
        self.unary(a, the::walled, move |x| s.walled(x) | (x.is(t) & claim))
            .function(a, the::wall, move |x| choose(x.is(t) & new, o, s.wall(x)))
    }

    /// The client was told that its wait is accepted.
    fn accepts(self, s: View<A>, t: Stream<A>, e: Event<A>) -> Self {
        let covers = s.covers(e);
        self.unary(s.algebra, the::depends, move |x| s.depends(x) | (x.is(t) & covers))
    }
}

macro_rules! moves {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $sort:ident),*) $actor:ident |$t:ident, $s:ident| $body:expr;)*) => {
        /// A kind of step.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(non_camel_case_types)]
        pub enum Move {
            $($(#[$doc])* $name,)*
        }

        impl Move {
            pub const ALL: &'static [Move] = &[$(Move::$name,)*];

            pub const fn name(self) -> &'static str {
                match self { $(Move::$name => stringify!($name),)* }
            }

            /// Names and sorts of the parameters.
            pub const fn parameters(self) -> &'static [(&'static str, Sort)] {
                match self { $(Move::$name => &[$((stringify!($arg), Sort::$sort),)*],)* }
            }

            pub const fn actor(self) -> Actor {
                match self { $(Move::$name => Actor::$actor,)* }
            }

            /// The step with these parameters.
            pub fn step<'a, A: Algebra + 'a>(self, text: Text<A>, args: &[A::Term]) -> Step<'a, A> {
                match self { $(Move::$name => {
                    #[allow(unused_mut, unused_variables)]
                    let mut args = args.iter();
                    $(let $arg: $sort<A> =
                        Elem::new(text.s.algebra, *args.next().expect("a term for each parameter"));)*
                    #[allow(unused_variables)]
                    let ($t, $s) = (text, text.s);
                    $body
                })* }
            }
        }
    };
}

/// Who takes a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    Host,
    Device,
}

/// The open batch of a stream, whose command buffer takes commands.
fn opened<'a, A: Algebra + 'a>(t: Text<A>, u: Stream<A>, b: Batch<A>, k: Buffer<A>) -> Step<'a, A> {
    let s = t.s;
    let other = all(s.algebra, |x: Batch<A>| s.leased(x, k).implies(|| x.is(b) | s.ended(x)));
    Step::new()
        .when(s.open(b) & s.of(b, u) & s.leased(b, k))
        // The buffer is in recording for this batch.
        .rule(Rule::BatchReuse, other)
}

/// No batch of the stream takes commands.
fn is_shut<A: Algebra>(s: View<A>, t: Stream<A>) -> Claim<A> {
    all(s.algebra, |x: Batch<A>| s.of(x, t).implies(|| !s.open(x)))
}

/// The stream's newest point covers its companion: that one has nothing open, and its newest point has passed, or
/// some batch of the stream starts after it.
#[derive(Clone, Copy)]
struct Join<A: Algebra> {
    o: Op<A>,
    b: Batch<A>,
    p: Batch<A>,
    u: Stream<A>,
    q: Queue<A>,
    v: Queue<A>,
}

fn joined<A: Algebra>(t: Text<A>, w: Stream<A>, Join { o, b, p, u, q, v }: Join<A>) -> Claim<A> {
    let s = t.s;
    if t.is(Mutant::RecordingCoversOneOfTwoQueues) {
        return truth(s.algebra, true);
    }
    s.each(the::companion, w, |c| {
        let newest = s.newest(c);
        let waits = s.within(o, b) & s.of(b, w) & s.on(b, q) & s.upon(o, p) & s.of(p, u) & s.on(p, v);
        let reaches = newest.is(p) | s.lower(newest, p);
        is_shut(s, c) & (!s.promised(c) | (s.placed(c, v) & s.on(newest, v) & (s.passed(newest) | (waits & reaches))))
    })
}

/// A device step on an operation of a queue.
fn runs<'a, A: Algebra + 'a>(s: View<A>, o: Op<A>, b: Batch<A>, q: Queue<A>) -> Step<'a, A> {
    Step::new().when(s.within(o, b) & s.on(b, q) & s.submitted(b) & !s.gone(o))
}

/// Of the operations ahead on the queue, those that `counts` picks are gone.
fn ahead_are_gone<A: Algebra>(
    s: View<A>,
    o: Op<A>,
    b: Batch<A>,
    q: Queue<A>,
    counts: impl Fn(Op<A>) -> Claim<A>,
) -> Claim<A> {
    all(s.algebra, |x: Op<A>| {
        counts(x).implies(|| s.inside(x, |c| (s.on(c, q) & s.ahead(x, c, o, b)).implies(|| s.gone(x))))
    })
}

fn ahead_have_ended<A: Algebra>(s: View<A>, b: Batch<A>, q: Queue<A>) -> Claim<A> {
    all(s.algebra, |x: Batch<A>| (s.before(x, b) & s.on(x, q)).implies(|| s.ended(x)))
}

moves! {
    // The machine, with its driver calls -----------------------------------------------------------

    /// A stream is created, on a new timeline or on that of a stream that has drained.
    create_stream(t: Stream, q: Queue, l: Timeline) Host |m, s| {
        let a = s.algebra;
        let one_queue = all(a, |b: Batch<A>| s.at(b, l).implies(|| s.on(b, q)))
            & all(a, |u: Stream<A>| s.signals(u, l).implies(|| s.placed(u, q)));
        let step = Step::new()
            .unless(s.promised(t))
            .when(all(a, |b: Batch<A>| !s.of(b, t)))
            .when(all(a, |r: Queue<A>| !s.placed(t, r)) & all(a, |m: Timeline<A>| !s.signals(t, m)))
            .when(all(a, |u: Stream<A>| !s.companion(t, u)))
            .put(s, the::placed, t, q)
            .put(s, the::signals, t, l)
            .remove(s, the::depends, t)
            .remove(s, the::walled, t);
        if m.is(Mutant::TwoQueuesWriteOneTimeline) { step } else { step.when(one_queue) }
    };
    /// A stream gets a companion.
    set_companion(t: Stream, c: Stream) Host |m, s| {
        Step::new().when(all(s.algebra, |u: Stream<A>| !s.companion(t, u))).put(s, the::companion, t, c)
    };
    /// A batch is opened.
    open_batch(t: Stream, b: Batch, q: Queue, l: Timeline) Host |m, s| {
        Step::new()
            .unless(s.born(b))
            .when(s.placed(t, q) & s.signals(t, l))
            .when(is_shut(s, t))
            .add(s, the::open, b)
            .put(s, the::of, b, t)
            .put(s, the::on, b, q)
            .put(s, the::at, b, l)
    };
    /// `vkBeginCommandBuffer`: the open batch gets a buffer.
    begin(t: Stream, b: Batch, k: Buffer) Host |m, s| {
        let a = s.algebra;
        let new = all(a, |y: Batch<A>| !s.leased(y, k));
        Step::new()
            .when(s.open(b) & s.of(b, t) & all(a, |j: Buffer<A>| !s.leased(b, j)))
            .when(s.idle(k) | new)
            .put(s, the::leased, b, k)
            .remove(s, the::idle, k)
            .rule(Rule::BatchReuse, all(a, |y: Batch<A>| s.leased(y, k).implies(|| s.ended(y))))
    };
    /// Work is recorded.
    issue_work(t: Stream, b: Batch, k: Buffer, o: Op, q: Queue) Host |m, s| {
        let placed = t.is(s.watched_stream()) & q.is(s.watched_queue());
        let depends = s.depends(t);
        opened(m, t, b, k)
            .adds(s, o, b, the::work)
            .when(s.on(b, q) & s.placed(t, q) & (!o.is(s.watched()) | placed))
            .assign(s, the::must, o, depends)
    };
    /// A set is recorded for an event.
    record(e: Event, t: Stream, b: Batch, k: Buffer, o: Op, x: Slot, jo: Op, jb: Batch, jp: Batch, ju: Stream, jq: Queue, jv: Queue) Host |m, s| {
        let covers = s.depends(t) | s.issued(t);
        opened(m, t, b, k)
            .when(joined(m, t, Join { o: jo, b: jb, p: jp, u: ju, q: jq, v: jv }))
            .when(s.placed(t, jq) & s.on(b, jq))
            .when(s.free(x) & s.clean(x))
            .adds(s, o, b, the::set)
            .put(s, the::names, o, x)
            .remove(s, the::free, x)
            .remove(s, the::clean, x)
            .binary(s.algebra, the::frontier, move |y, c| (s.frontier(y, c) & !y.is(x)) | (y.is(x) & c.is(b)))
            .replace(s, the::current, e, o)
            .add(s, the::pointed, e)
            .point_to(s, the::point, e, b)
            .assign(s, the::covers, e, covers)
            .assign(s, the::covers_set, o, covers)
    };
    /// A recording without a device event.
    record_bare(e: Event, t: Stream, b: Batch, jo: Op, jb: Batch, jp: Batch, ju: Stream, jq: Queue, jv: Queue) Host |m, s| {
        let covers = s.depends(t) | s.issued(t);
        let last = s.promised(t) & b.is(s.newest(t)) & is_shut(s, t);
        Step::new()
            .when((s.open(b) & s.of(b, t)) | last)
            .when(joined(m, t, Join { o: jo, b: jb, p: jp, u: ju, q: jq, v: jv }))
            .when(s.placed(t, jq) & s.on(b, jq))
            .clear(s, the::current, e)
            .add(s, the::pointed, e)
            .point_to(s, the::point, e, b)
            .assign(s, the::covers, e, covers)
    };
    /// A recording on a stream that has submitted nothing: there is nothing to wait for.
    record_nothing(e: Event, t: Stream, jo: Op, jb: Batch, jp: Batch, ju: Stream, jq: Queue, jv: Queue) Host |m, s| {
        let covers = s.depends(t) | s.issued(t);
        Step::new()
            .when(is_shut(s, t) & !s.promised(t))
            .when(joined(m, t, Join { o: jo, b: jb, p: jp, u: ju, q: jq, v: jv }))
            .when(s.placed(t, jq))
            .clear(s, the::current, e)
            .remove(s, the::pointed, e)
            .assign(s, the::covers, e, covers)
    };
    /// An event is destroyed; its slot is superseded.
    destroy_event(e: Event, r: Op, x: Slot) Host |m, s| {
        let frees = s.current(e, r) & s.names(r, x);
        let step = Step::new()
            .clear(s, the::current, e)
            .remove(s, the::pointed, e)
            .remove(s, the::covers, e);
        if m.is(Mutant::DestroyFreesInsteadOfQuarantining) {
            return step.unary(s.algebra, the::free, move |y| s.free(y) | (y.is(x) & frees));
        }
        step
    };
    /// A wait becomes a wait for the device event.
    wait_for_event(t: Stream, b: Batch, k: Buffer, o: Op, e: Event, r: Op, x: Slot, c: Batch, q: Queue) Host |m, s| {
        let a = s.algebra;
        let newest = all(a, |n: Op<A>| (s.set(n) & s.names(n, x) & !s.older(n, r)).implies(|| {
            s.inside(n, |d| s.each(the::on, d, |v| v.is(q)))
        }));
        let step = opened(m, t, b, k)
            .when(s.current(e, r) & s.names(r, x) & s.within(r, c) & s.on(b, q) & (s.submitted(c) | c.is(b)))
            .adds(s, o, b, the::wait)
            .put(s, the::awaits, o, r)
            .put(s, the::names, o, x)
            .walls(s, t, o, s.covers(e))
            .accepts(s, t, e)
            .rule(Rule::WrongQueue, newest);
        let step = if m.is(Mutant::EventOfOneQueueWaitedOnInAnother) { step } else { step.when(s.on(c, q)) };
        if m.is(Mutant::RerecordForgetsTheFirstStreamsWaits) {
            return step.binary(a, the::frontier, move |y, d| {
                (s.frontier(y, d) & (!y.is(x) | d.is(c))) | (y.is(x) & d.is(b))
            });
        }
        step.binary(a, the::frontier, move |y, d| s.frontier(y, d) | (y.is(x) & d.is(b)))
    };
    /// A wait becomes a barrier.
    wait_by_barrier(t: Stream, b: Batch, k: Buffer, o: Op, e: Event, u: Stream, q: Queue) Host |m, s| {
        let p = s.point(e);
        opened(m, t, b, k)
            .when(s.on(b, q) & s.pointed(e) & s.of(p, u) & s.on(p, q) & (s.submitted(p) | p.is(b)))
            .adds(s, o, b, the::barrier)
            .walls(s, t, o, s.covers(e))
            .accepts(s, t, e)
    };
    /// The open batch, which has no commands yet, is to start after a point.
    add_start(t: Stream, b: Batch, o: Op, p: Batch, u: Stream, v: Queue) Host |m, s| {
        Step::new()
            .when(s.of(b, t) & all(s.algebra, |k: Buffer<A>| !s.leased(b, k)))
            .when(s.submitted(p) & s.of(p, u) & s.on(p, v))
            .adds(s, o, b, the::start)
            .put(s, the::upon, o, p)
            .walls(s, t, o, s.shut(p, u, v))
    };
    /// The open batch is to start after a later point of a timeline that it waits for.
    raise_start(t: Stream, b: Batch, o: Op, old: Batch, w: Stream, p: Batch, u: Stream, v: Queue) Host |m, s| {
        Step::new()
            .when(s.open(b) & s.of(b, t) & s.within(o, b) & s.start(o) & !s.gone(o) & s.upon(o, old) & s.of(old, w))
            .when(s.submitted(p) & s.of(p, u) & s.on(p, v) & s.lower(old, p))
            .replace(s, the::upon, o, p)
            .walls(s, t, o, s.shut(p, u, v))
    };
    /// A wait for a point that has passed meanwhile is left out.
    drop_start(t: Stream, q: Queue, o: Op, b: Batch, p: Batch, u: Stream, v: Queue) Host |m, s| {
        let step = Step::new().when(s.open(b) & s.within(o, b) & s.of(b, t) & s.placed(t, q)).add(s, the::gone, o);
        match m.mutant {
            Some(Mutant::AcceptedWaitDroppedWithItsBatch) => step.when(s.start(o) & s.upon(o, p)),
            Some(Mutant::RefusedBatchDroppedWithItsWaits) => step,
            _ => step.when(s.start(o) & s.upon(o, p) & s.passed(p) & s.of(p, u) & s.on(p, v)),
        }
    };
    /// `vkQueueSubmit2`: the open batch goes to its queue, with the next value of its timeline.
    submit(t: Stream, b: Batch, q: Queue, l: Timeline) Host |m, s| {
        let a = s.algebra;
        let new = s.walled(t) & !s.blocked(q);
        Step::new()
            .when(s.open(b) & s.of(b, t) & s.on(b, q) & s.at(b, l) & s.placed(t, q) & s.signals(t, l))
            .remove(s, the::open, b)
            .add(s, the::submitted, b)
            .binary(a, the::before, move |x, y| s.before(x, y) | (s.submitted(x) & y.is(b)))
            .binary(a, the::lower, move |x, y| s.lower(x, y) | (s.submitted(x) & s.at(x, l) & y.is(b)))
            .add(s, the::promised, t)
            .point_to(s, the::newest, t, b)
            .remove(s, the::walled, t)
            .unary(a, the::blocked, move |x| s.blocked(x) | (x.is(q) & s.walled(t)))
            .function(a, the::block, move |x| choose(x.is(q) & new, s.wall(t), s.block(x)))
    };
    /// A wait is accepted and needs nothing: the event was never recorded, or its point has passed.
    accept_passed(t: Stream, e: Event, u: Stream, q: Queue) Host |m, s| {
        let p = s.point(e);
        let over = !s.pointed(e) | (s.passed(p) & s.of(p, u) & s.on(p, q));
        let step = Step::new().accepts(s, t, e);
        match m.mutant {
            Some(Mutant::WaitBoundAtSubmit | Mutant::FallbackGoesOnWithoutTheOrder) => step,
            Some(Mutant::WaitCoversOneOfTwoQueues) => step.when(over | s.companion(u, t)),
            _ => step.when(over),
        }
    };
    /// A wait is accepted and needs nothing: the stream waits for that set already.
    accept_waited(t: Stream, e: Event, r: Op, o: Op, b: Batch, q: Queue) Host |m, s| {
        let step = Step::new()
            .when(s.current(e, r) & s.within(o, b) & s.of(b, t) & s.on(b, q) & s.placed(t, q))
            .accepts(s, t, e);
        let same = if m.is(Mutant::SecondWaitSkippedByEvent) { s.wait(o) } else { s.awaits(o, r) };
        step.when(same)
    };
    /// A wait is accepted: some batch of the stream starts after the event's point, or a later one of its timeline.
    accept_started(t: Stream, e: Event, o: Op, b: Batch, p: Batch, u: Stream, v: Queue, q: Queue, w: Stream) Host |m, s| {
        let point = s.point(e);
        Step::new()
            .when(s.within(o, b) & s.of(b, t) & s.on(b, q) & s.placed(t, q))
            .when(s.upon(o, p) & s.of(p, u) & s.on(p, v))
            .when(s.pointed(e) & (point.is(p) | s.lower(point, p)) & s.of(point, w) & s.on(point, v))
            .accepts(s, t, e)
    };
    /// A slot becomes reusable: it is of no event, and its frontier has passed.
    recycle(x: Slot) Host |m, s| {
        let a = s.algebra;
        let superseded = all(a, |e: Event<A>| s.each(the::current, e, |r| !s.names(r, x)));
        let step = Step::new().when(superseded).add(s, the::free, x);
        match m.mutant {
            Some(Mutant::RecycleIgnoresOpenWaits) => {
                step.when(all(a, |b: Batch<A>| s.frontier(x, b).implies(|| s.passed(b) | s.open(b))))
            }
            Some(Mutant::PushedFreeBeforeItsFrontier) => step,
            _ => step.when(all(a, |b: Batch<A>| s.frontier(x, b).implies(|| s.passed(b)))),
        }
    };
    /// A point that has passed leaves a frontier.
    forget_passed(x: Slot, b: Batch) Host |m, s| {
        Step::new()
            .when(s.passed(b))
            .binary(s.algebra, the::frontier, move |y, c| s.frontier(y, c) & !(y.is(x) & c.is(b)))
    };
    /// A command buffer may be leased again.
    release_buffer(k: Buffer, b: Batch) Host |m, s| {
        let done = if m.is(Mutant::BufferLeasedBeforeItsPoint) { s.submitted(b) } else { s.passed(b) };
        Step::new()
            .when(all(s.algebra, |y: Batch<A>| s.leased(y, k).implies(|| y.is(b) | s.passed(y))))
            .when(s.leased(b, k) & done)
            .add(s, the::idle, k)
    };
    /// The host reads a timeline's value, and tells the machine.
    reach(b: Batch, q: Queue, l: Timeline) Host |m, s| {
        let told = if m.is(Mutant::DroppedStreamStrandsItsPoints) { s.submitted(b) } else { s.ended(b) };
        let last = m.is(Mutant::PublishTakesTheLastValue);
        let passed = move |y: Batch<A>| {
            let now = y.is(b) | s.lower(y, b);
            if last { now | (s.passed(y) & !s.at(y, l)) } else { now | s.passed(y) }
        };
        Step::new()
            .when(told & s.on(b, q) & s.at(b, l))
            .unary(s.algebra, the::passed, passed)
            .rule(Rule::TimelineOrder, all(s.algebra, |y: Batch<A>| s.passed(y).implies(|| passed(y))))
    };
    /// `vkCreateEvent`.
    create_slot(x: Slot) Host |m, s| {
        let a = s.algebra;
        Step::new()
            .unless(s.free(x))
            .when(all(a, |o: Op<A>| !s.names(o, x) & !s.set_by(x, o)))
            .when(all(a, |b: Batch<A>| !s.frontier(x, b)))
            .add(s, the::free, x)
            .add(s, the::clean, x)
    };
    /// `vkResetEvent`.
    reset_slot(x: Slot) Host |m, s| {
        let waited = all(s.algebra, |o: Op<A>| (s.wait(o) & s.names(o, x)).implies(|| s.gone(o)));
        let step = Step::new()
            .when(s.free(x))
            .add(s, the::clean, x)
            .rule(Rule::ReuseWhileWaited, waited);
        // In the queue it takes effect later, if at all.
        if m.is(Mutant::ResetAndSetAgainWithoutABarrier) { step } else { step.clear(s, the::set_by, x) }
    };
    /// A thread blocks until an event's point has passed.
    block_on_event(h: Waiter, e: Event) Host |m, s| {
        let p = s.point(e);
        Step::new()
            .unless(s.waiting(h))
            .when(s.pointed(e) & s.submitted(p))
            .add(s, the::waiting, h)
            .replace(s, the::blocks, h, p)
            .assign(s, the::covers_waiter, h, s.covers(e))
    };
    /// A thread blocks until a stream's newest point has passed.
    block_on_stream(h: Waiter, t: Stream, jo: Op, jb: Batch, jp: Batch, ju: Stream, jq: Queue, jv: Queue) Host |m, s| {
        let p = s.newest(t);
        Step::new()
            .unless(s.waiting(h))
            .when(joined(m, t, Join { o: jo, b: jb, p: jp, u: ju, q: jq, v: jv }))
            .when(s.placed(t, jq) & s.promised(t) & s.on(p, jq) & is_shut(s, t))
            .add(s, the::waiting, h)
            .replace(s, the::blocks, h, p)
            .assign(s, the::covers_waiter, h, s.issued(t))
    };
    /// A waiter is told that its point has passed.
    wake(h: Waiter, p: Batch, u: Stream, q: Queue) Host |m, s| {
        Step::new()
            .when(s.waiting(h) & s.blocks(h, p) & s.passed(p) & s.of(p, u) & s.on(p, q))
            .remove(s, the::waiting, h)
            .rule(Rule::EarlyCompletion, !(s.covers_waiter(h) & s.live()))
    };
    /// A waiter runs out of time.
    give_up(h: Waiter) Host |m, s| {
        let step = Step::new().when(s.waiting(h)).remove(s, the::waiting, h);
        if m.is(Mutant::TimeoutTakenAsDone) {
            return step.rule(Rule::EarlyCompletion, !(s.covers_waiter(h) & s.live()));
        }
        step
    };
    /// The client is told that an event's recording is done.
    report_event(e: Event, u: Stream, q: Queue) Host |m, s| {
        let p = s.point(e);
        let done = if m.is(Mutant::SubmittedTakenAsDone) { s.submitted(p) } else { s.ended(p) };
        Step::new()
            .when(!s.pointed(e) | (done & s.of(p, u) & s.on(p, q)))
            .rule(Rule::EarlyCompletion, !(s.covers(e) & s.live()))
    };
    /// The client is told that all of a stream's work is done.
    report_stream(t: Stream, jo: Op, jb: Batch, jp: Batch, ju: Stream, jq: Queue, jv: Queue) Host |m, s| {
        let newest = s.newest(t);
        Step::new()
            .when(is_shut(s, t) & s.placed(t, jq) & (!s.promised(t) | (s.on(newest, jq) & s.passed(newest))))
            .when(joined(m, t, Join { o: jo, b: jb, p: jp, u: ju, q: jq, v: jv }))
            .rule(Rule::EarlyCompletion, !(s.issued(t) & s.live()))
    };
    /// `vkResetCommandBuffer` by the holder of a lease: no caller of the machine does it.
    reset_buffer(b: Batch, k: Buffer) Host |m, s| {
        let step = Step::new().rule(
            Rule::BatchReuse,
            all(s.algebra, |y: Batch<A>| s.leased(y, k).implies(|| s.ended(y))),
        );
        if m.is(Mutant::BufferResetByPointer) { step.when(s.leased(b, k)) } else { step.when(m.no()) }
    };

    // The device -----------------------------------------------------------------------------------

    /// A batch's wait for a point is over.
    pass_start(o: Op, b: Batch, q: Queue, p: Batch, u: Stream, v: Queue) Device |m, s| {
        runs(s, o, b, q)
            .when(s.start(o) & s.upon(o, p) & s.of(p, u) & s.on(p, v) & s.ended(p))
            .when(ahead_are_gone(s, o, b, q, |y| s.start(y)))
            .add(s, the::gone, o)
    };
    /// Work begins.
    begin_work(o: Op, b: Batch, u: Stream, q: Queue) Device |m, s| {
        runs(s, o, b, q)
            .when(s.work(o) & !s.begun(o) & s.of(b, u))
            .when(ahead_are_gone(s, o, b, q, |y| s.holds(y)))
            .add(s, the::begun, o)
            .rule(Rule::LostWait, !(s.must(o) & s.live()))
    };
    /// Work ends.
    end_work(o: Op, b: Batch, q: Queue) Device |m, s| {
        runs(s, o, b, q).when(s.work(o) & s.begun(o)).add(s, the::gone, o)
    };
    /// A barrier has nothing before it.
    pass_barrier(o: Op, b: Batch, q: Queue) Device |m, s| {
        runs(s, o, b, q)
            .when(s.barrier(o))
            .when(ahead_are_gone(s, o, b, q, |_| truth(s.algebra, true)) & ahead_have_ended(s, b, q))
            .add(s, the::gone, o)
    };
    /// A set takes effect.
    take_set(o: Op, b: Batch, u: Stream, q: Queue, x: Slot) Device |m, s| {
        let a = s.algebra;
        let older = all(a, |n: Op<A>| s.names(n, x).implies(|| s.each(the::awaits, n, |r| {
            s.older(r, o).implies(|| s.gone(n))
        })));
        runs(s, o, b, q)
            .when(s.set(o) & s.names(o, x) & s.of(b, u))
            .when(ahead_are_gone(s, o, b, q, |_| truth(a, true)) & ahead_have_ended(s, b, q))
            .add(s, the::gone, o)
            .replace(s, the::set_by, x, o)
            .rule(Rule::ReuseWhileWaited, older)
    };
    /// A wait passes: its device event is set.
    pass_wait(o: Op, b: Batch, q: Queue, r: Op, x: Slot, n: Op) Device |m, s| {
        runs(s, o, b, q)
            .when(s.awaits(o, r) & s.names(o, x) & s.set_by(x, n) & s.names(r, x))
            .when(ahead_are_gone(s, o, b, q, |y| s.holds(y)))
            .add(s, the::gone, o)
            .rule(Rule::StaleWait, n.is(r))
    };
    /// A batch ends: everything before it on its queue has; its point is signalled.
    end_batch(b: Batch, q: Queue, l: Timeline) Device |m, s| {
        let a = s.algebra;
        let nothing_left = all(a, |o: Op<A>| s.inside(o, |c| {
            (s.on(c, q) & s.by(c, b)).implies(|| s.gone(o))
        }));
        Step::new()
            .when(s.submitted(b) & !s.ended(b) & s.on(b, q) & s.at(b, l))
            .when(nothing_left & ahead_have_ended(s, b, q))
            .add(s, the::ended, b)
            .rule(Rule::TimelineOrder, all(a, |y: Batch<A>| (s.at(y, l) & s.ended(y)).implies(|| s.lower(y, b))))
    };
}
