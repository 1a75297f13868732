//! A driver that does as it is told and remembers what it was asked for.
#![allow(dead_code)] // Each test file uses its part.

use std::collections::VecDeque;

use fencepost::{
    Effect, Error, EventId, Lease, Machine, Point, Policy, QueueId, Recorded, Reply, SlotId, Step, StreamId,
    Synchronize, Waited, WaiterId,
};

/// No call needs more effects than this, however many wakes a test has it deliver.
const EFFECTS_MAX: usize = 32;

/// The machine, with a driver that carries out its effects.
pub struct Driver {
    pub machine: Machine,
    /// Answers to the next effects; when they are used up the answer is `Done`.
    replies: VecDeque<Reply>,
    log: Vec<String>,
}

impl Driver {
    pub fn new(events: bool) -> Self {
        Driver { machine: Machine::new(Policy { events }), replies: VecDeque::new(), log: Vec::new() }
    }

    /// A driver with one stream on each of the given queues, whose making is not in the log.
    pub fn with_streams<const N: usize>(events: bool, queues: [QueueId; N]) -> (Self, [StreamId; N]) {
        let mut d = Driver::new(events);
        let streams = queues.map(|queue| d.drive(|m| m.create_stream(queue)).expect("nothing was refused"));
        d.log.clear();
        (d, streams)
    }

    /// How the next effects are answered.
    pub fn will_say<const N: usize>(&mut self, replies: [Reply; N]) {
        assert!(self.replies.is_empty(), "earlier replies were not used: {:?}", self.replies);
        self.replies.extend(replies);
    }

    /// What was asked of the driver since the last time, in words.
    pub fn told(&mut self) -> Vec<String> {
        assert!(self.replies.is_empty(), "replies were not used: {:?}", self.replies);
        std::mem::take(&mut self.log)
    }

    /// Makes a call, carries out what has to come first, makes it again, until there is an answer.
    pub fn drive<T>(&mut self, mut call: impl FnMut(&mut Machine) -> Result<Step<T>, Error>) -> Result<T, Error> {
        let before = self.machine.clone();
        let mut carried_out = false;
        for _ in 0..EFFECTS_MAX {
            let effect = match call(&mut self.machine) {
                Ok(Step::Done(answer)) => return Ok(answer),
                Ok(Step::First(effect)) => effect,
                Err(error) => {
                    if !carried_out && error != Error::Lost {
                        assert_eq!(image(&before), image(&self.machine), "{error} changed the state");
                    }
                    return Err(error);
                }
            };
            let words = self.words(effect);
            let reply = self.replies.pop_front().unwrap_or(Reply::Done);
            carried_out |= reply == Reply::Done;
            self.log.push(if reply == Reply::Done { words } else { format!("{words}: {reply:?}") });
            self.machine.reply(effect, reply)?;
        }
        panic!("no answer after {EFFECTS_MAX} effects, the last of which are {:?}", &self.log[self.log.len() - 3..]);
    }

    fn words(&self, effect: Effect) -> String {
        match effect {
            Effect::CreateTimeline { timeline, queue } => format!("timeline t{timeline} on q{queue}"),
            Effect::Begin { lease: Lease { timeline, buffer, .. }, new: true, .. } => {
                format!("allocate t{timeline}.b{buffer}")
            }
            Effect::Begin { lease: Lease { timeline, buffer, generation }, new: false, .. } => {
                format!("begin t{timeline}.b{buffer} lease {generation}")
            }
            Effect::Submit { stream, lease, value } => {
                let timeline = self.machine.timeline(stream).expect("the stream lives");
                let buffer = lease.map_or(String::new(), |lease| format!(".b{}", lease.buffer));
                let waits: Vec<_> = self.machine.open_waits(stream).map(|(t, v)| format!(" after t{t}@{v}")).collect();
                format!("submit t{timeline}{buffer} = {value}{}", waits.concat())
            }
            Effect::CreateSlot { slot } => format!("create slot {}", slot.index),
            Effect::ResetSlot { slot } => format!("reset slot {}", slot.index),
            Effect::Wake { waiter, lost: false } => format!("wake {}", waiter.index),
            Effect::Wake { waiter, lost: true } => format!("wake {}, lost", waiter.index),
        }
    }

    // The calls, driven --------------------------------------------------------------------------

    pub fn work(&mut self, stream: StreamId) -> Result<Lease, Error> {
        self.drive(|m| m.work(stream))
    }

    pub fn flush(&mut self, stream: StreamId) -> Result<(), Error> {
        self.drive(|m| m.flush(stream))
    }

    pub fn record(&mut self, event: EventId, stream: StreamId) -> Result<Recorded, Error> {
        self.drive(|m| m.record(event, stream))
    }

    pub fn wait(&mut self, stream: StreamId, event: EventId) -> Result<Waited, Error> {
        self.drive(|m| m.wait(stream, event))
    }

    pub fn synchronize(&mut self, event: EventId) -> Result<Synchronize, Error> {
        self.drive(|m| m.synchronize(event))
    }

    pub fn synchronize_stream(&mut self, stream: StreamId) -> Result<Synchronize, Error> {
        self.drive(|m| m.synchronize_stream(stream))
    }

    pub fn destroy_stream(&mut self, stream: StreamId) -> Result<(), Error> {
        self.drive(|m| m.destroy_stream(stream))
    }

    pub fn reached(&mut self, stream: StreamId, value: u64) -> Result<(), Error> {
        self.drive(|m| m.reached(stream, value))
    }

    pub fn lose(&mut self) -> Result<(), Error> {
        self.drive(Machine::lose)
    }
}

// Answers, in short --------------------------------------------------------------------------------

/// Everything that the machine knows.
pub fn image(machine: &Machine) -> String {
    format!("{machine:#?}")
}

pub fn lease(timeline: u32, buffer: u32, generation: u64) -> Lease {
    Lease { timeline, buffer, generation }
}

pub fn slot(index: u32, generation: u64) -> SlotId {
    SlotId { index, generation }
}

pub fn point(stream: StreamId, value: u64) -> Point {
    Point { stream, value }
}

/// A recording with a device event.
pub fn set(lease: Lease, slot: SlotId) -> Result<Recorded, Error> {
    Ok(Recorded { set: Some((lease, slot)) })
}

/// A recording that goes without.
pub const BARE: Result<Recorded, Error> = Ok(Recorded { set: None });

/// What a host that has to block is told. Waiters are numbered from 0, and numbers are used again.
pub fn block(waiter: (u32, u32), point: Point) -> Result<Synchronize, Error> {
    Ok(Synchronize::Block { waiter: WaiterId::from(waiter), point })
}
