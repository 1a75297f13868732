//! What a state consists of: sorts, and the symbols over them.

use std::marker::PhantomData;

use super::algebra::{Algebra, Binary, Claim, Elem, Function, Map, Sorted, Unary, View};

macro_rules! sorts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A sort.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Sort {
            $($(#[$doc])* $name,)*
        }

        impl Sort {
            pub const ALL: &'static [Sort] = &[$(Sort::$name,)*];

            pub const fn name(self) -> &'static str {
                match self { $(Sort::$name => stringify!($name),)* }
            }
        }

        /// Sorts as types.
        pub mod sort {
            use super::{Sort, Sorted};
            $(
                #[derive(Clone, Copy)]
                pub struct $name;
                impl Sorted for $name {
                    const SORT: Sort = Sort::$name;
                }
            )*
        }

        $(pub type $name<A> = Elem<A, sort::$name>;)*
    };
}

sorts! {
    /// A `VkQueue`.
    Queue,
    /// A timeline semaphore; streams that follow each other may use one.
    Timeline,
    /// A stream of the machine.
    Stream,
    /// A batch, and with it the point that its end signals.
    Batch,
    /// A command, or the wait of a batch for a point (`start`).
    Op,
    /// A device event.
    Slot,
    /// The client's event.
    Event,
    /// A command buffer.
    Buffer,
    /// A host thread's wait.
    Waiter,
}

/// What kind of symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Unary,
    Binary,
    Map,
    Function,
    Constant,
}

macro_rules! symbols {
    (
        unary { $($(#[$ud:meta])* $u:ident($us:ident) $ug:ident;)* }
        binary { $($(#[$bd:meta])* $b:ident($bs:ident, $bt:ident) $bg:ident;)* }
        maps { $($(#[$md:meta])* $m:ident($ms:ident => $mt:ident) $mg:ident;)* }
        functions { $($(#[$fd:meta])* $f:ident($fs:ident -> $ft:ident) $fg:ident;)* }
        constants { $($(#[$cd:meta])* $c:ident: $ct:ident;)* }
    ) => {
        /// A symbol of the state.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(non_camel_case_types)]
        pub enum Symbol {
            $($(#[$ud])* $u,)*
            $($(#[$bd])* $b,)*
            $($(#[$md])* $m,)*
            $($(#[$fd])* $f,)*
            $($(#[$cd])* $c,)*
        }

        impl Symbol {
            pub const ALL: &'static [Symbol] =
                &[$(Symbol::$u,)* $(Symbol::$b,)* $(Symbol::$m,)* $(Symbol::$f,)* $(Symbol::$c,)*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Symbol::$u => stringify!($u),)*
                    $(Symbol::$b => stringify!($b),)*
                    $(Symbol::$m => stringify!($m),)*
                    $(Symbol::$f => stringify!($f),)*
                    $(Symbol::$c => stringify!($c),)*
                }
            }

            /// The sorts of its arguments, then of its value.
            pub const fn signature(self) -> (Shape, &'static [Sort]) {
                match self {
                    $(Symbol::$u => (Shape::Unary, &[Sort::$us]),)*
                    $(Symbol::$b => (Shape::Binary, &[Sort::$bs, Sort::$bt]),)*
                    $(Symbol::$m => (Shape::Map, &[Sort::$ms, Sort::$mt]),)*
                    $(Symbol::$f => (Shape::Function, &[Sort::$fs, Sort::$ft]),)*
                    $(Symbol::$c => (Shape::Constant, &[Sort::$ct]),)*
                }
            }

            /// Whether it is part of the argument and not of the system: what the client asked for, or where the first
            /// wall is. A step says how it changes; nothing in the machine corresponds to it.
            pub const fn is_ghost(self) -> bool {
                match self {
                    $(Symbol::$u => ghost!($ug),)*
                    $(Symbol::$b => ghost!($bg),)*
                    $(Symbol::$m => ghost!($mg),)*
                    $(Symbol::$f => ghost!($fg),)*
                    $(Symbol::$c => false,)*
                }
            }
        }

        /// Symbols with the sorts of their arguments.
        #[allow(non_upper_case_globals)]
        pub mod the {
            use super::*;
            $(pub const $u: Unary<sort::$us> = Unary(Symbol::$u, PhantomData);)*
            $(pub const $b: Binary<sort::$bs, sort::$bt> = Binary(Symbol::$b, PhantomData);)*
            $(pub const $m: Map<sort::$ms, sort::$mt> = Map(Symbol::$m, PhantomData);)*
            $(pub const $f: Function<sort::$fs, sort::$ft> = Function(Symbol::$f, PhantomData);)*
        }

        impl<A: Algebra> View<A> {
            $($(#[$ud])* pub fn $u(self, x: $us<A>) -> Claim<A> { self.unary(Symbol::$u, x) })*
            $($(#[$bd])* pub fn $b(self, x: $bs<A>, y: $bt<A>) -> Claim<A> { self.binary(Symbol::$b, x, y) })*
            $($(#[$md])* pub fn $m(self, x: $ms<A>, y: $mt<A>) -> Claim<A> { self.binary(Symbol::$m, x, y) })*
            $($(#[$fd])* pub fn $f(self, x: $fs<A>) -> $ft<A> { self.function(Symbol::$f, x) })*
            $($(#[$cd])* pub fn $c(self) -> $ct<A> { self.constant(Symbol::$c) })*
        }
    };
}

macro_rules! ghost {
    (real) => {
        false
    };
    (ghost) => {
        true
    };
}

symbols! {
    unary {
        /// The batch takes commands.
        open(Batch) real;
        /// The batch is with its queue, or was.
        submitted(Batch) real;
        /// Everything before it on its queue has ended, and its point is signalled.
        ended(Batch) real;
        /// The host was told that its point has passed.
        passed(Batch) real;
        /// The operation was recorded.
        made(Op) real;
        work(Op) real;
        barrier(Op) real;
        set(Op) real;
        wait(Op) real;
        /// A batch's wait for a point.
        start(Op) real;
        /// The work runs.
        begun(Op) real;
        /// The operation took effect, or ended.
        gone(Op) real;
        /// In the list of reusable slots.
        free(Slot) real;
        /// Unset, as far as the machine asked for it.
        clean(Slot) real;
        /// Free to be leased.
        idle(Buffer) real;
        /// The event is recorded, and the recording has a batch: it has none if there was nothing to wait for.
        pointed(Event) real;
        /// Some batch of the stream was submitted.
        promised(Stream) real;
        waiting(Waiter) real;
        /// The client asked that this work follows the watched work.
        must(Op) ghost;
        /// The watched work is part of what this set was recorded for.
        covers_set(Op) ghost;
        /// The watched work is part of the event's current recording.
        covers(Event) ghost;
        /// Later work on the stream has to follow the watched work.
        depends(Stream) ghost;
        /// The caller behind the waiter may take the watched work for done when it is woken.
        covers_waiter(Waiter) ghost;
        /// The stream's open batch holds a wall: an operation that later commands wait for, and that cannot end before the
        /// watched work.
        walled(Stream) ghost;
        /// A submitted batch of the queue holds a wall.
        blocked(Queue) ghost;
    }
    binary {
        /// Submitted earlier, on any queue.
        before(Batch, Batch) real;
        /// Signals a lower value of the same timeline.
        lower(Batch, Batch) real;
        /// Recorded earlier.
        older(Op, Op) real;
        /// The point has to pass before the slot is reusable.
        frontier(Slot, Batch) real;
    }
    maps {
        /// The batch's stream.
        of(Batch => Stream) real;
        /// The batch's queue.
        on(Batch => Queue) real;
        /// The timeline that the batch signals.
        at(Batch => Timeline) real;
        /// The stream's queue.
        placed(Stream => Queue) real;
        /// The stream's timeline.
        signals(Stream => Timeline) real;
        /// The stream that carries its transfers.
        companion(Stream => Stream) real;
        /// The device event that a set or a wait names.
        names(Op => Slot) real;
        /// The set that a wait was recorded for.
        awaits(Op => Op) real;
        /// The point that a start waits for.
        upon(Op => Batch) real;
        /// The batch's command buffer.
        leased(Batch => Buffer) real;
        /// The set of the event's current recording, if it has a slot.
        current(Event => Op) real;
        /// The set that the device event is set by.
        set_by(Slot => Op) real;
        /// The point that a host thread waits for.
        blocks(Waiter => Batch) real;
    }
    functions {
        /// The operation's batch.
        home(Op -> Batch) real;
        /// The stream's newest submitted batch.
        newest(Stream -> Batch) real;
        /// The batch of the event's recording.
        point(Event -> Batch) real;
        /// The wall in the stream's open batch.
        wall(Stream -> Op) ghost;
        /// The queue's first wall.
        block(Queue -> Op) ghost;
    }
    constants {
        /// The watched work: any one.
        watched: Op;
        /// Its queue and stream.
        watched_queue: Queue;
        watched_stream: Stream;
    }
}
