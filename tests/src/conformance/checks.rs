//! The checks: short programs, most of them from reports of real backends.

use fencepost::Rule;

use crate::reference::Call::{self, *};

/// One thing that a backend owes its callers.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// The rule that a backend breaks which gets it wrong.
    pub rule: Rule,
    /// The calls. Streams and events that they name exist from the start; in the end the host waits for every stream.
    pub calls: &'static [Call],
}

impl Check {
    /// Its forms, by name: all streams on one queue, and spread over two if there are several.
    pub fn programs(&self) -> impl Iterator<Item = (String, &Check, Vec<Call>)> {
        let (streams, events) = self.calls.iter().fold((0, 0), |(streams, events), call| match *call {
            Work(s) | Flush(s) | SynchronizeStream(s) | DropStream(s) => (streams.max(s + 1), events),
            Record(e, s) | Wait(s, e) => (streams.max(s + 1), events.max(e + 1)),
            Synchronize(e) | TimeOut(e) | Query(e) | DropEvent(e) => (streams, events.max(e + 1)),
            Stream(..) | Event(_) | Refuse(_) | Lose => (streams, events),
        });
        let queues = if streams > 1 { 1..=2 } else { 1..=1 };
        queues.map(move |queues| {
            let name = if queues == 1 { self.name.into() } else { format!("{}, two queues", self.name) };
            let start = (0..streams).map(|s| Stream(s, s as u32 % queues)).chain((0..events).map(Event));
            (name, self, start.chain(self.calls.iter().copied()).collect())
        })
    }
}

macro_rules! checks {
    ($($rule:ident $name:literal: $($call:expr),+;)*) => {
        /// Every check.
        pub const CHECKS: &[Check] = &[$(Check { name: $name, rule: Rule::$rule, calls: &[$($call),+] },)*];
    };
}

// A letter with a number names a report: L llama.cpp, A ANGLE, D DXVK, K vulkano, P CUDA users, W wgpu, G and X others.
checks! {
    LostWait "an accepted wait is never dropped (L1)":
        Work(0), Record(0, 0), Flush(0), Wait(1, 0), Flush(1), Work(1), Flush(1);
    LostWait "work follows a wait in one batch (L4)":
        Work(0), Record(0, 0), Work(1), Wait(1, 0), Work(1);
    LostWait "the waiter may be flushed first (L6)":
        Work(0), Record(0, 0), Wait(1, 0), Work(1), Flush(1), Flush(0);
    LostWait "a recording covers batches before its own (L9)":
        Work(0), Flush(0), Work(0), Flush(0), Record(0, 0), Flush(0), Wait(1, 0), Work(1);
    LostWait "work between the recording and the wait":
        Work(0), Record(0, 0), Work(0), Wait(1, 0), Work(1);
    LostWait "a recording covers what its stream waited for (X7)":
        Work(0), Record(0, 0), Wait(1, 0), Record(1, 1), Wait(2, 1), Work(2);
    LostWait "many waits on one recording":
        Work(0), Record(0, 0), Wait(1, 0), Work(1), Wait(2, 0), Wait(1, 0), Work(1), Work(2);
    LostWait "a wait on the recording's own stream":
        Work(0), Record(0, 0), Wait(0, 0), Work(0), Record(0, 0), Wait(0, 0), Work(0);
    LostWait "two recordings before one work":
        Work(0), Record(0, 0), Work(1), Record(1, 1), Wait(2, 0), Wait(2, 1), Work(2);

    ReuseWhileWaited "recorded again under a submitted wait (L3)":
        Work(0), Record(0, 0), Wait(1, 0), Work(1), Flush(1), Record(0, 0), Record(0, 0), Flush(0), Synchronize(0);
    ReuseWhileWaited "recorded again and synchronized under an open wait (L3b)":
        Work(0), Record(0, 0), Wait(1, 0), Record(0, 0), Synchronize(0), Record(0, 0), Work(1), Flush(1);
    ReuseWhileWaited "destroyed under an open wait (A1)":
        Work(0), Record(0, 0), Wait(1, 0), DropEvent(0), Work(1), Flush(1);
    ReuseWhileWaited "destroyed and made again under an open wait (P11)":
        Work(0), Record(0, 0), Wait(1, 0), DropEvent(0), Event(0), Record(0, 0), Flush(0), Work(1), Flush(1);

    StaleWait "a wait keeps the recording it was made for (P9)":
        Work(0), Record(0, 0), Wait(1, 0), Work(1), Work(0), Record(0, 0), Flush(1), Flush(0), Synchronize(0);
    StaleWait "a wait is not released by an earlier recording":
        Work(0), Record(0, 0), Wait(1, 0), Work(1), SynchronizeStream(1), SynchronizeStream(0),
        Work(0), Record(0, 0), Wait(1, 0), Work(1), SynchronizeStream(1), Work(0), Record(0, 0), Wait(1, 0), Work(1);
    StaleWait "a wait is not released by a destroyed event's recording (P11)":
        Work(0), Record(0, 0), Synchronize(0), DropEvent(0), Event(0), Work(0), Record(0, 0), Wait(1, 0), Work(1);

    EarlyCompletion "synchronize waits for all that the recording covers":
        Work(0), Flush(0), Work(0), Record(0, 0), Synchronize(0);
    EarlyCompletion "synchronize waits for the newest recording":
        Work(0), Record(0, 0), Synchronize(0), Work(0), Record(0, 0), Synchronize(0), Work(0), Record(0, 0),
        Synchronize(0);
    EarlyCompletion "synchronize waits for what the stream waited for":
        Work(0), Record(0, 0), Wait(1, 0), Record(1, 1), Synchronize(1);
    EarlyCompletion "a stream's synchronize covers its waits (X7)":
        Work(0), Record(0, 0), Wait(1, 0), SynchronizeStream(1);
    EarlyCompletion "synchronize after the event is made again":
        Work(0), Record(0, 0), Synchronize(0), DropEvent(0), Event(0), Work(0), Record(0, 0), Synchronize(0);
    EarlyCompletion "a query is not done before the work":
        Work(0), Record(0, 0), Query(0), Flush(0), Query(0), Query(0), Synchronize(0), Query(0), Work(0), Record(0, 0),
        Query(0), Flush(0), Query(0), Query(0);
    EarlyCompletion "a timeout is not done (D2, W5)":
        Work(0), Record(0, 0), TimeOut(0), TimeOut(0), Work(0), Record(0, 0), TimeOut(0), TimeOut(0), Synchronize(0);
    EarlyCompletion "an event outlives its stream (P10)":
        Work(0), Record(0, 0), DropStream(0), Synchronize(0);

    UnrecordedWait "synchronize of an event never recorded (L5)":
        Synchronize(0), Work(0);
    UnrecordedWait "a wait for an event never recorded (L5)":
        Wait(0, 0), Work(0), Flush(0), SynchronizeStream(0), Work(0);
    UnrecordedWait "a query of an event never recorded (L5)":
        Query(0);
    UnrecordedWait "a wait before the recording orders nothing (P6)":
        Wait(1, 0), Work(1), Record(1, 1), Wait(0, 1), Work(0), Record(0, 0), Flush(0), Flush(1), Synchronize(0);

    BatchReuse "what was leased again survives an old event (L2)":
        Work(0), Record(0, 0), SynchronizeStream(0), Work(0), Flush(0), Synchronize(0), Work(0);
    BatchReuse "a destroyed stream runs what it was given (W4)":
        Work(0), Record(0, 0), Wait(1, 0), Work(1), Record(1, 1), DropStream(0), DropStream(1), Synchronize(1);
    TimelineOrder "an event moves between streams":
        Work(0), Record(0, 0), Work(1), Record(0, 1), Work(0), Record(0, 0), Wait(1, 0), Work(1), Synchronize(0);
    WrongQueue "an event is waited for where it is not recorded":
        Work(0), Record(0, 0), Wait(1, 0), Work(1), Record(0, 1), Wait(0, 0), Work(0), Synchronize(0);

    Progress "a stream waits for a batch that nobody flushed":
        Work(0), Record(0, 0), Wait(1, 0), Work(1), SynchronizeStream(1);
    Progress "two streams pass a token":
        Work(0), Record(0, 0), Wait(1, 0), Work(1), Record(1, 1), Wait(0, 1), Work(0), Record(0, 0), Wait(1, 0), Work(1),
        Record(1, 1), Wait(0, 1), Work(0), Record(0, 0), Wait(1, 0), Work(1);
    Progress "a ring of three streams and one event":
        Work(0), Record(0, 0), Wait(1, 0), Work(1), Record(0, 1), Wait(2, 0), Work(2), Record(0, 2), Wait(0, 0), Work(0);

    Refusal "the first driver call is refused":
        Refuse(0), Work(0), Record(0, 0), Wait(1, 0), Work(1), Synchronize(0);
    Refusal "a driver call of a recording is refused (A10)":
        Work(0), Refuse(0), Record(0, 0), Work(0), Wait(1, 0), Work(1), Synchronize(0);
    Refusal "a driver call of a wait is refused":
        Work(0), Record(0, 0), Work(0), Refuse(0), Wait(1, 0), Work(1), Synchronize(0);
    Refusal "a submit is refused (K2)":
        Work(0), Record(0, 0), Wait(1, 0), Refuse(0), Flush(0), Refuse(0), Flush(1), Work(1), Refuse(1), Synchronize(0);
    Loss "host waits end when the device is lost (G6)":
        Work(0), Record(0, 0), Wait(1, 0), Work(1), Flush(0), Lose, Synchronize(0), SynchronizeStream(0),
        SynchronizeStream(1);
}
