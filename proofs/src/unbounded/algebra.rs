//! The form in which the relation and the invariant are written: once, generic over what a formula is.
//!
//! One reading of it prints SMT-LIB ([`super::solver`]), another evaluates on two states that the real
//! machine and the GPU went through ([`super::facts`]). Elements carry their sort as a type, so that a batch is
//! not taken for a queue.

use std::marker::PhantomData;
use std::ops::{BitAnd, BitOr, Not};

use super::vocabulary::{Sort, Symbol};

/// Before or after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Pre,
    Post,
}

/// What a formula is.
pub trait Algebra: Copy {
    type Bool: Copy;
    type Term: Copy;

    fn truth(self, value: bool) -> Self::Bool;
    fn not(self, a: Self::Bool) -> Self::Bool;
    fn and(self, a: Self::Bool, b: Self::Bool) -> Self::Bool;
    fn or(self, a: Self::Bool, b: Self::Bool) -> Self::Bool;
    /// `b` is looked at only where `a` holds.
    fn implies(self, a: Self::Bool, b: impl FnOnce() -> Self::Bool) -> Self::Bool;
    fn same(self, a: Self::Term, b: Self::Term) -> Self::Bool;
    fn choose(self, a: Self::Bool, b: Self::Term, c: Self::Term) -> Self::Term;
    fn all(self, sort: Sort, body: impl Fn(Self::Term) -> Self::Bool) -> Self::Bool;
    fn atom(self, when: When, symbol: Symbol, args: [Self::Term; 2]) -> Self::Bool;
    /// For every value that a map has at `key`: at most one.
    fn each(self, when: When, map: Symbol, key: Self::Term, body: impl Fn(Self::Term) -> Self::Bool) -> Self::Bool;
    fn apply(self, when: When, function: Symbol, arg: Self::Term) -> Self::Term;
    fn constant(self, constant: Symbol) -> Self::Term;
}

/// A formula.
#[derive(Clone, Copy)]
pub struct Claim<A: Algebra> {
    pub algebra: A,
    pub value: A::Bool,
}

impl<A: Algebra> Claim<A> {
    pub fn implies(self, other: impl FnOnce() -> Claim<A>) -> Claim<A> {
        Claim { value: self.algebra.implies(self.value, || other().value), ..self }
    }
}

impl<A: Algebra> BitAnd for Claim<A> {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Claim { value: self.algebra.and(self.value, other.value), ..self }
    }
}

impl<A: Algebra> BitOr for Claim<A> {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Claim { value: self.algebra.or(self.value, other.value), ..self }
    }
}

impl<A: Algebra> Not for Claim<A> {
    type Output = Self;
    fn not(self) -> Self {
        Claim { value: self.algebra.not(self.value), ..self }
    }
}

/// A sort as a type.
pub trait Sorted: Copy + 'static {
    const SORT: Sort;
}

/// An element of a sort.
#[derive(Clone, Copy)]
pub struct Elem<A: Algebra, S> {
    algebra: A,
    pub term: A::Term,
    sort: PhantomData<S>,
}

impl<A: Algebra, S: Sorted> Elem<A, S> {
    pub fn new(algebra: A, term: A::Term) -> Self {
        Elem { algebra, term, sort: PhantomData }
    }

    pub fn is(self, other: Self) -> Claim<A> {
        Claim { algebra: self.algebra, value: self.algebra.same(self.term, other.term) }
    }
}

/// For all elements of a sort: `all(a, |b: Batch<A>| ...)`.
pub fn all<A: Algebra, S: Sorted>(a: A, body: impl Fn(Elem<A, S>) -> Claim<A>) -> Claim<A> {
    Claim { algebra: a, value: a.all(S::SORT, |term| body(Elem::new(a, term)).value) }
}

pub fn truth<A: Algebra>(algebra: A, value: bool) -> Claim<A> {
    Claim { algebra, value: algebra.truth(value) }
}

/// The first where the claim holds, else the second.
pub fn choose<A: Algebra, S: Sorted>(claim: Claim<A>, a: Elem<A, S>, b: Elem<A, S>) -> Elem<A, S> {
    Elem::new(claim.algebra, claim.algebra.choose(claim.value, a.term, b.term))
}

/// The symbols of one state.
#[derive(Clone, Copy)]
pub struct View<A> {
    pub algebra: A,
    pub when: When,
}

/// A property of elements.
pub struct Unary<S>(pub Symbol, pub PhantomData<S>);
/// A relation.
pub struct Binary<S, T>(pub Symbol, pub PhantomData<(S, T)>);
/// A relation that gives each element at most one other. Not a function: nothing says that there is one, and
/// that keeps the quantifiers in a decidable fragment.
pub struct Map<S, T>(pub Symbol, pub PhantomData<(S, T)>);
/// A function.
pub struct Function<S, T>(pub Symbol, pub PhantomData<(S, T)>);

impl<A: Algebra> View<A> {
    pub fn unary<S: Sorted>(self, symbol: Symbol, x: Elem<A, S>) -> Claim<A> {
        Claim { algebra: self.algebra, value: self.algebra.atom(self.when, symbol, [x.term, x.term]) }
    }

    pub fn binary<S: Sorted, T: Sorted>(self, symbol: Symbol, x: Elem<A, S>, y: Elem<A, T>) -> Claim<A> {
        Claim { algebra: self.algebra, value: self.algebra.atom(self.when, symbol, [x.term, y.term]) }
    }

    pub fn each<S: Sorted, T: Sorted>(
        self,
        map: Map<S, T>,
        x: Elem<A, S>,
        body: impl Fn(Elem<A, T>) -> Claim<A>,
    ) -> Claim<A> {
        let a = self.algebra;
        Claim { algebra: a, value: a.each(self.when, map.0, x.term, |term| body(Elem::new(a, term)).value) }
    }

    pub fn function<S: Sorted, T: Sorted>(self, symbol: Symbol, x: Elem<A, S>) -> Elem<A, T> {
        Elem::new(self.algebra, self.algebra.apply(self.when, symbol, x.term))
    }

    pub fn constant<T: Sorted>(self, symbol: Symbol) -> Elem<A, T> {
        Elem::new(self.algebra, self.algebra.constant(symbol))
    }
}
