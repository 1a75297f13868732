//! Progress, for any size: while the client is silent, what is left shrinks with each device step, and as long as
//! something is left, the least of it can step.
//!
//! What is left are the operations that are not gone, the works that have not begun and the batches that have not
//! ended. There are finitely many, since each was submitted by some call. So the device drains, and then every point
//! that a thread waits for has been signalled.

use super::algebra::{Algebra, Claim, Elem, View, all};
use super::relation::{Move, Text};
use super::vocabulary::{Batch, Op, Waiter, sort, the};

/// What is left shrinks: nothing comes back, and what the step was about is done.
pub fn shrinks<A: Algebra>(step: Move, s: View<A>, after: View<A>, args: &[A::Term]) -> Claim<A> {
    let a = s.algebra;
    let nothing_new = all(a, |o: Op<A>| {
        after.made(o).implies(|| s.made(o))
            & s.gone(o).implies(|| after.gone(o))
            & s.begun(o).implies(|| after.begun(o))
    }) & all(a, |b: Batch<A>| {
        after.submitted(b).implies(|| s.submitted(b)) & s.ended(b).implies(|| after.ended(b))
    });
    let done = if step == Move::end_batch {
        let b: Elem<A, sort::Batch> = Elem::new(a, args[0]);
        !s.ended(b) & after.ended(b)
    } else {
        let o: Elem<A, sort::Op> = Elem::new(a, args[0]);
        (!s.gone(o) & after.gone(o)) | (!s.begun(o) & after.begun(o))
    };
    nothing_new & done
}

/// A batch is the first, in the order of submission, that has not ended.
pub fn is_first<A: Algebra>(s: View<A>, b: Batch<A>) -> Vec<Claim<A>> {
    vec![
        s.submitted(b) & !s.ended(b),
        all(s.algebra, |x: Batch<A>| s.submitted(x).implies(|| s.ended(x) | !s.before(x, b))),
    ]
}

/// An operation is the first that is left in the first batch.
pub fn is_least<A: Algebra>(s: View<A>, o: Op<A>) -> Vec<Claim<A>> {
    let b = s.home(o);
    let mut claims = is_first(s, b);
    claims.push(s.made(o) & !s.gone(o));
    claims.push(all(s.algebra, |x: Op<A>| (s.within(x, b) & s.older(x, o)).implies(|| s.gone(x))));
    claims
}

/// The kinds of steps by which the least of what is left is done, each with the parameters that it has then.
pub const STEPS: [Move; 7] = [
    Move::pass_start,
    Move::begin_work,
    Move::end_work,
    Move::pass_barrier,
    Move::take_set,
    Move::pass_wait,
    Move::end_batch,
];

/// What is known of the parameters of a step when it is the least one's turn: what they are, not that the step is possible.
pub fn turn<A: Algebra>(step: Move, s: View<A>, args: &[A::Term]) -> Vec<Claim<A>> {
    let a = s.algebra;
    if step == Move::end_batch {
        let b = Batch::new(a, args[0]);
        let nothing_left = all(a, |o: Op<A>| s.within(o, b).implies(|| s.gone(o)));
        let mut claims = is_first(s, b);
        claims.extend([nothing_left, s.on(b, Elem::new(a, args[1])) & s.at(b, Elem::new(a, args[2]))]);
        return claims;
    }
    let (o, b) = (Op::new(a, args[0]), Batch::new(a, args[1]));
    let mut claims = is_least(s, o);
    claims.push(s.home(o).is(b));
    let kind = match step {
        Move::pass_start => {
            let p = Batch::new(a, args[3]);
            s.start(o) & s.upon(o, p) & s.of(p, Elem::new(a, args[4])) & s.on(p, Elem::new(a, args[5]))
        }
        Move::begin_work => s.work(o) & !s.begun(o) & s.of(b, Elem::new(a, args[2])),
        Move::end_work => s.work(o) & s.begun(o),
        Move::pass_barrier => s.barrier(o),
        Move::take_set => s.set(o) & s.of(b, Elem::new(a, args[2])) & s.names(o, Elem::new(a, args[4])),
        // It waits for its own set.
        _ => {
            let r = Op::new(a, args[3]);
            s.awaits(o, r) & s.names(o, Elem::new(a, args[4])) & r.is(Elem::new(a, args[5]))
        }
    };
    let queue = if matches!(step, Move::begin_work | Move::take_set) { args[3] } else { args[2] };
    claims.push(kind);
    claims.push(s.on(b, Elem::new(a, queue)));
    claims
}

/// The step is possible.
pub fn is_possible<'a, A: Algebra + 'a>(step: Move, text: Text<A>, args: &[A::Term]) -> Claim<A> {
    let told = step.step(text, args);
    told.guard.iter().copied().reduce(|a, b| a & b).expect("each step has a guard")
}

/// Once everything has ended, no thread waits for a point that was not signalled.
pub fn threads_return<A: Algebra>(s: View<A>) -> Claim<A> {
    all(s.algebra, |h: Waiter<A>| s.each(the::blocks, h, |p| s.ended(p)))
}
