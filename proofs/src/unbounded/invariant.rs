//! The invariant: what holds in every state, for any number of streams, queues, events, slots, batches and calls.
//!
//! The rules about order speak of one *watched* work, which is any one: whoever breaks them does so for some
//! work, and that one may be chosen. While it lives, *walls* keep what has to follow it: a barrier behind it on its
//! queue, a wait for a set that was recorded for it, a start upon a point that it has to reach. Each queue's
//! first wall is remembered, and the wall in each stream's open batch; all that comes behind is held, and that
//! is what most clauses below say.

use super::algebra::{Algebra, Claim, View, all, truth};
use super::vocabulary::{Batch, Buffer, Event, Op, Queue, Slot, Stream, Timeline, Waiter, the};

impl<A: Algebra> View<A> {
    /// The watched work was issued and has not ended.
    pub fn live(self) -> Claim<A> {
        self.made(self.watched()) & !self.gone(self.watched())
    }

    /// What is claimed of the operation's batch.
    pub fn inside(self, o: Op<A>, body: impl Fn(Batch<A>) -> Claim<A>) -> Claim<A> {
        self.made(o).implies(|| body(self.home(o)))
    }

    pub fn within(self, o: Op<A>, b: Batch<A>) -> Claim<A> {
        self.made(o) & self.home(o).is(b)
    }

    pub fn born(self, b: Batch<A>) -> Claim<A> {
        self.open(b) | self.submitted(b)
    }

    /// The same batch, or one submitted before it.
    pub fn by(self, x: Batch<A>, y: Batch<A>) -> Claim<A> {
        x.is(y) | self.before(x, y)
    }

    /// Of two operations of one queue: the first comes first.
    pub fn ahead(self, x: Op<A>, bx: Batch<A>, y: Op<A>, by: Batch<A>) -> Claim<A> {
        (bx.is(by) & self.older(x, y)) | self.before(bx, by)
    }

    /// Commands that come later wait for it.
    pub fn holds(self, o: Op<A>) -> Claim<A> {
        self.barrier(o) | self.wait(o) | self.start(o)
    }

    /// The watched work was submitted to this queue.
    pub fn watched_on(self, q: Queue<A>) -> Claim<A> {
        self.made(self.watched()) & self.submitted(self.home(self.watched())) & q.is(self.watched_queue())
    }

    /// The watched work was issued on the stream or on its companion.
    pub fn issued(self, s: Stream<A>) -> Claim<A> {
        self.made(self.watched()) & (s.is(self.watched_stream()) | self.companion(s, self.watched_stream()))
    }

    /// The batch, of stream s on queue q, cannot end before the watched work.
    pub fn shut(self, b: Batch<A>, s: Stream<A>, q: Queue<A>) -> Claim<A> {
        let held = b.is(self.home(self.watched())) & self.made(self.watched());
        let open = held | self.walled(s) | self.blocked(q) | self.watched_on(q);
        let submitted = (self.watched_on(q) & self.by(self.home(self.watched()), b))
            | (self.blocked(q) & self.by(self.home(self.block(q)), b));
        (self.open(b) & open) | (self.submitted(b) & submitted)
    }

    /// The operation lies behind a wall.
    pub fn behind(self, o: Op<A>, b: Batch<A>, s: Stream<A>, q: Queue<A>) -> Claim<A> {
        let open = (self.walled(s) & self.older(self.wall(s), o)) | self.blocked(q);
        let submitted = self.blocked(q) & self.ahead(self.block(q), self.home(self.block(q)), o, b);
        (self.open(b) & open) | (self.submitted(b) & submitted)
    }

    /// The watched work lies ahead of the operation on its queue.
    pub fn trails(self, o: Op<A>, b: Batch<A>, q: Queue<A>) -> Claim<A> {
        let (w, wb) = (self.watched(), self.home(self.watched()));
        (self.made(w) & wb.is(b) & self.older(w, o)) | (self.watched_on(q) & (self.open(b) | self.before(wb, b)))
    }

    /// What takes effect only when all before it has: it cannot before the watched work has ended.
    pub fn follows(self, o: Op<A>, b: Batch<A>, s: Stream<A>, q: Queue<A>) -> Claim<A> {
        self.trails(o, b, q) | self.behind(o, b, s, q)
    }
}

/// A clause: its name, what it says, and the claim.
pub struct Clause<A: Algebra> {
    pub name: &'static str,
    pub claim: fn(View<A>) -> Claim<A>,
}

macro_rules! clauses {
    ($($name:ident |$s:ident, $a:ident| $body:expr;)*) => {
        /// Names of the clauses.
        pub const NAMES: &[&str] = &[$(stringify!($name),)*];

        /// The first clauses say that orders are orders and maps give one value: on a concrete state that is so by how
        /// it is written.
        pub const STRUCTURAL: usize = 17;

        /// Every clause.
        pub fn clauses<A: Algebra>() -> [Clause<A>; NAMES.len()] {
            [$(Clause { name: stringify!($name), claim: |$s: View<A>| { #[allow(unused_variables)] let $a = $s.algebra; $body } },)*]
        }
    };
}

/// Whether a map gives at most one value.
macro_rules! single {
    ($s:ident, $map:ident: $from:ident => $to:ident) => {
        all($s.algebra, |x: $from<A>| {
            all($s.algebra, |y: $to<A>| {
                $s.$map(x, y).implies(|| all($s.algebra, |z: $to<A>| $s.$map(x, z).implies(|| y.is(z))))
            })
        })
    };
}

/// The relation is a strict order.
macro_rules! order {
    ($s:ident, $before:ident: $sort:ident) => {
        all($s.algebra, |x: $sort<A>| {
            !$s.$before(x, x)
                & all($s.algebra, |y: $sort<A>| {
                    $s.$before(x, y)
                        .implies(|| all($s.algebra, |z: $sort<A>| $s.$before(y, z).implies(|| $s.$before(x, z))))
                })
        })
    };
}

/// The order is between all elements of this kind, and no others.
macro_rules! total {
    ($s:ident, $before:ident: $sort:ident, $kind:ident) => {
        all($s.algebra, |x: $sort<A>| {
            all($s.algebra, |y: $sort<A>| {
                $s.$before(x, y).implies(|| $s.$kind(x) & $s.$kind(y))
                    & ($s.$kind(x) & $s.$kind(y)).implies(|| x.is(y) | $s.$before(x, y) | $s.$before(y, x))
            })
        })
    };
}

clauses! {
    // Orders and maps.
    submission_is_an_order |s, a| order!(s, before: Batch);
    submission_is_total |s, a| total!(s, before: Batch, submitted);
    age_is_an_order |s, a| order!(s, older: Op);
    age_is_total |s, a| total!(s, older: Op, made);
    a_batch_is_of_one_stream |s, a| single!(s, of: Batch => Stream);
    a_batch_is_on_one_queue |s, a| single!(s, on: Batch => Queue);
    a_batch_is_at_one_timeline |s, a| single!(s, at: Batch => Timeline);
    a_batch_has_one_buffer |s, a| single!(s, leased: Batch => Buffer);
    a_stream_is_placed_once |s, a| single!(s, placed: Stream => Queue);
    a_stream_signals_one_timeline |s, a| single!(s, signals: Stream => Timeline);
    a_stream_has_one_companion |s, a| single!(s, companion: Stream => Stream);
    an_operation_names_one_slot |s, a| single!(s, names: Op => Slot);
    a_wait_awaits_one_set |s, a| single!(s, awaits: Op => Op);
    a_start_is_upon_one_point |s, a| single!(s, upon: Op => Batch);
    an_event_has_one_set |s, a| single!(s, current: Event => Op);
    a_slot_is_set_by_one_set |s, a| single!(s, set_by: Slot => Op);
    a_waiter_blocks_on_one_point |s, a| single!(s, blocks: Waiter => Batch);

    // What was not made has no parts.
    batches_are_born |s, a| all(a, |b: Batch<A>| (!s.born(b)).implies(|| {
        all(a, |x: Stream<A>| !s.of(b, x))
            & all(a, |q: Queue<A>| !s.on(b, q))
            & all(a, |l: Timeline<A>| !s.at(b, l))
            & all(a, |k: Buffer<A>| !s.leased(b, k))
            & all(a, |o: Op<A>| !s.within(o, b))
            & all(a, |x: Slot<A>| !s.frontier(x, b))
            & all(a, |e: Event<A>| s.pointed(e).implies(|| !s.point(e).is(b)))
    }));
    operations_are_made |s, a| all(a, |o: Op<A>| {
        let some = s.work(o) | s.barrier(o) | s.set(o) | s.wait(o) | s.start(o);
        (some | s.begun(o) | s.gone(o) | s.must(o) | s.covers_set(o)).implies(|| s.made(o))
            & s.must(o).implies(|| s.work(o))
            & s.covers_set(o).implies(|| s.set(o))
            & (!s.made(o)).implies(|| all(a, |x: Slot<A>| !s.names(o, x))
                & all(a, |r: Op<A>| !s.awaits(o, r) & !s.awaits(r, o))
                & all(a, |p: Batch<A>| !s.upon(o, p)))
    });
    kinds_exclude_each_other |s, a| all(a, |o: Op<A>| {
        !(s.work(o) & (s.barrier(o) | s.set(o) | s.wait(o) | s.start(o)))
            & !(s.barrier(o) & (s.set(o) | s.wait(o) | s.start(o)))
            & !(s.set(o) & (s.wait(o) | s.start(o)))
            & !(s.wait(o) & s.start(o))
    });
    waits_are_for_sets |s, a| all(a, |o: Op<A>| s.each(the::awaits, o, |r| {
        s.wait(o) & s.set(r) & s.older(r, o)
            & s.each(the::names, o, |x| s.names(r, x))
            & s.each(the::names, r, |x| s.names(o, x))
    }));
    starts_are_upon_submitted_points |s, a| all(a, |o: Op<A>| s.each(the::upon, o, |p| s.start(o) & s.submitted(p)));
    recordings_name_sets |s, a| all(a, |e: Event<A>| s.each(the::current, e, |r| s.set(r)));
    slots_are_set_by_sets |s, a| all(a, |x: Slot<A>| s.each(the::set_by, x, |r| s.set(r) & s.gone(r) & s.names(r, x)));

    // Batches.
    open_batches_are_not_submitted |s, a| all(a, |b: Batch<A>| !(s.open(b) & s.submitted(b)));
    a_stream_has_one_open_batch |s, a| all(a, |x: Batch<A>| s.open(x).implies(|| s.each(the::of, x, |t| {
        all(a, |y: Batch<A>| (s.open(y) & s.of(y, t)).implies(|| x.is(y)))
    })));
    passed_batches_have_ended |s, a| all(a, |b: Batch<A>| {
        s.passed(b).implies(|| s.ended(b)) & s.ended(b).implies(|| s.submitted(b))
    });
    queues_end_batches_in_order |s, a| all(a, |b: Batch<A>| s.ended(b).implies(|| s.each(the::on, b, |q| {
        all(a, |x: Batch<A>| (s.before(x, b) & s.on(x, q)).implies(|| s.ended(x)))
    })));
    ended_batches_left_nothing |s, a| all(a, |o: Op<A>| s.inside(o, |b| s.ended(b).implies(|| s.gone(o))));
    the_newest_batch_is_the_last |s, a| all(a, |t: Stream<A>| {
        s.promised(t).implies(|| s.submitted(s.newest(t)) & s.of(s.newest(t), t))
            & all(a, |b: Batch<A>| (s.of(b, t) & s.submitted(b)).implies(|| s.promised(t) & s.by(b, s.newest(t))))
    });
    batches_are_where_their_stream_is |s, a| all(a, |b: Batch<A>| s.each(the::of, b, |t| {
        s.each(the::on, b, |q| s.each(the::placed, t, |r| q.is(r)))
            & s.each(the::at, b, |l| s.each(the::signals, t, |m| l.is(m)))
    }));
    a_timeline_is_of_one_queue |s, a| all(a, |t: Stream<A>| s.each(the::signals, t, |l| s.each(the::placed, t, |q| {
        all(a, |u: Stream<A>| s.signals(u, l).implies(|| s.placed(u, q)))
            & all(a, |b: Batch<A>| s.at(b, l).implies(|| s.on(b, q)))
    })));
    batches_of_a_timeline_share_its_queue |s, a| all(a, |b: Batch<A>| s.each(the::at, b, |l| s.each(the::on, b, |q| {
        all(a, |x: Batch<A>| s.at(x, l).implies(|| s.on(x, q)))
    })));
    values_rise_with_submission |s, a| all(a, |x: Batch<A>| all(a, |y: Batch<A>| {
        s.lower(x, y).implies(|| s.before(x, y) & s.each(the::on, y, |q| s.on(x, q)))
            & s.before(x, y).implies(|| s.each(the::at, x, |l| s.at(y, l).implies(|| s.lower(x, y))))
    }));

    // Command buffers.
    idle_buffers_have_ended |s, a| all(a, |b: Batch<A>| s.each(the::leased, b, |k| s.idle(k).implies(|| s.ended(b))));
    a_buffer_is_in_one_batch |s, a| all(a, |b: Batch<A>| s.each(the::leased, b, |k| {
        all(a, |x: Batch<A>| s.leased(x, k).implies(|| b.is(x) | s.ended(b) | s.ended(x)))
    }));

    // Slots.
    frontiers_cover_what_has_not_run |s, a| all(a, |o: Op<A>| s.each(the::names, o, |x| {
        s.inside(o, |b| s.gone(o) | s.frontier(x, b))
    }));
    free_slots_are_not_named |s, a| all(a, |o: Op<A>| s.each(the::names, o, |x| {
        (s.free(x) | s.clean(x)).implies(|| s.gone(o))
    }));
    clean_slots_are_unset |s, a| all(a, |x: Slot<A>| s.clean(x).implies(|| s.each(the::set_by, x, |_| truth(a, false))));
    current_slots_are_not_free |s, a| all(a, |e: Event<A>| s.each(the::current, e, |r| s.each(the::names, r, |x| !s.free(x) & !s.clean(x))));
    earlier_generations_are_over |s, a| all(a, |r: Op<A>| s.set(r).implies(|| s.each(the::names, r, |x| {
        all(a, |o: Op<A>| (s.set(o) & s.names(o, x) & s.older(o, r)).implies(|| {
            s.gone(o) & !s.set_by(x, o) & all(a, |w: Op<A>| s.awaits(w, o).implies(|| s.gone(w)))
        }))
    })));

    // The watched work.
    the_watched_work_is_placed |s, a| s.made(s.watched()).implies(|| {
        s.work(s.watched())
            & s.on(s.home(s.watched()), s.watched_queue())
            & s.of(s.home(s.watched()), s.watched_stream())
    });
    nothing_depends_on_what_is_not_issued |s, a| (!s.made(s.watched())).implies(|| {
        all(a, |o: Op<A>| !s.must(o) & !s.covers_set(o))
            & all(a, |e: Event<A>| !s.covers(e))
            & all(a, |t: Stream<A>| !s.depends(t) & !s.walled(t))
            & all(a, |q: Queue<A>| !s.blocked(q))
            & all(a, |h: Waiter<A>| !s.covers_waiter(h))
    });
    walls_stand |s, a| all(a, |t: Stream<A>| (s.live() & s.walled(t)).implies(|| {
        let (o, b) = (s.wall(t), s.home(s.wall(t)));
        s.holds(o) & s.made(o) & s.open(b) & s.of(b, t) & !s.gone(o)
    }));
    walls_have_a_reason |s, a| all(a, |t: Stream<A>| (s.live() & s.walled(t)).implies(|| s.each(the::placed, t, |q| {
        let (o, b) = (s.wall(t), s.home(s.wall(t)));
        s.barrier(o).implies(|| s.trails(o, b, q) | s.blocked(q))
            & s.each(the::awaits, o, |r| s.covers_set(r))
            & s.each(the::upon, o, |p| s.each(the::of, p, |u| s.each(the::on, p, |v| s.shut(p, u, v))))
    })));
    blocks_stand |s, a| all(a, |q: Queue<A>| (s.live() & s.blocked(q)).implies(|| {
        let (o, b) = (s.block(q), s.home(s.block(q)));
        s.holds(o) & s.made(o) & s.submitted(b) & s.on(b, q) & !s.gone(o)
    }));
    blocks_have_a_reason |s, a| all(a, |q: Queue<A>| (s.live() & s.blocked(q)).implies(|| {
        let (o, b) = (s.block(q), s.home(s.block(q)));
        s.barrier(o).implies(|| s.trails(o, b, q))
            & s.each(the::awaits, o, |r| s.covers_set(r))
            & s.each(the::upon, o, |p| s.each(the::of, p, |u| s.each(the::on, p, |v| s.shut(p, u, v))))
    }));
    waits_for_the_watched_are_walls |s, a| all(a, |o: Op<A>| s.each(the::awaits, o, |r| {
        (s.live() & s.covers_set(r)).implies(|| s.inside(o, |b| s.each(the::of, b, |t| s.each(the::on, b, |q| {
            s.open(b).implies(|| s.walled(t))
                & s.submitted(b).implies(|| s.blocked(q) & s.by(s.home(s.block(q)), b))
        }))))
    }));
    starts_upon_the_watched_are_walls |s, a| all(a, |o: Op<A>| s.each(the::upon, o, |p| {
        s.each(the::of, p, |u| s.each(the::on, p, |v| (s.live() & s.shut(p, u, v)).implies(|| {
            s.inside(o, |b| s.each(the::of, b, |t| s.each(the::on, b, |q| {
                s.open(b).implies(|| s.walled(t))
                    & s.submitted(b).implies(|| s.blocked(q) & s.by(s.home(s.block(q)), b))
            })))
        })))
    }));
    streams_that_wait_are_walled |s, a| all(a, |t: Stream<A>| (s.live() & s.depends(t)).implies(|| s.each(the::placed, t, |q| {
        s.walled(t) | (s.blocked(q) & s.promised(t) & s.by(s.home(s.block(q)), s.newest(t)))
    })));
    work_that_must_follow_is_behind |s, a| all(a, |o: Op<A>| (s.live() & s.must(o)).implies(|| {
        s.inside(o, |b| s.each(the::of, b, |t| s.each(the::on, b, |q| s.behind(o, b, t, q))))
    }));
    recordings_reach_the_watched |s, a| all(a, |e: Event<A>| (s.live() & s.covers(e)).implies(|| {
        let p = s.point(e);
        s.pointed(e)
            & s.each(the::of, p, |t| s.each(the::on, p, |q| s.shut(p, t, q)))
    }));
    sets_cover_what_their_event_covers |s, a| all(a, |e: Event<A>| s.each(the::current, e, |r| {
        s.covers(e).implies(|| s.covers_set(r)) & s.covers_set(r).implies(|| s.covers(e))
    }));
    sets_follow_the_watched |s, a| all(a, |r: Op<A>| (s.live() & s.covers_set(r)).implies(|| {
        (!s.gone(r)) & s.inside(r, |b| s.each(the::of, b, |t| s.each(the::on, b, |q| s.follows(r, b, t, q))))
    }));
    // What progress needs: waiting goes back in the order of submission only.
    waits_come_behind_their_sets |s, a| all(a, |o: Op<A>| s.each(the::awaits, o, |r| {
        let (b, c) = (s.home(o), s.home(r));
        c.is(b) | s.before(c, b) | (s.submitted(c) & s.open(b))
    }));
    starts_come_behind_their_points |s, a| all(a, |o: Op<A>| s.each(the::upon, o, |p| {
        s.submitted(s.home(o)).implies(|| s.before(p, s.home(o)))
    }));
    sets_stay_until_their_waits_pass |s, a| all(a, |o: Op<A>| s.each(the::awaits, o, |r| {
        (s.gone(r) & !s.gone(o)).implies(|| s.each(the::names, r, |x| s.set_by(x, r)))
    }));
    current_sets_stay |s, a| all(a, |e: Event<A>| s.each(the::current, e, |r| {
        s.gone(r).implies(|| s.each(the::names, r, |x| s.set_by(x, r)))
    }));
    threads_wait_for_what_is_submitted |s, a| all(a, |h: Waiter<A>| s.each(the::blocks, h, |p| s.submitted(p)));
    waiters_reach_the_watched |s, a| all(a, |h: Waiter<A>| (s.live() & s.covers_waiter(h)).implies(|| {
        s.each(the::blocks, h, |p| s.each(the::of, p, |t| s.each(the::on, p, |q| s.shut(p, t, q))))
    }));
}
