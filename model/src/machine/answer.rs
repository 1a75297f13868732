//! What goes into the machine and comes out of it.

use core::fmt;

use crate::gpu::QueueId;
use crate::handle::{EventId, SlotId, StreamId, WaiterId};

/// A value of a stream's timeline. It has passed when the batch that signals it, and everything
/// earlier on its queue, has ended.
///
/// Vulkan: a timeline semaphore and a value. CUDA: the work captured by `cudaEventRecord`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Point {
    /// Whose timeline.
    pub stream: StreamId,
    /// The value that its batch signals; the first batch signals 1.
    pub value: u64,
}

/// A command buffer, for the life of one batch. Vulkan: `VkCommandBuffer` between
/// `vkBeginCommandBuffer` and the end of its execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The stream whose pool holds the buffer, by [`Machine::timeline`](crate::Machine::timeline).
    pub timeline: u32,
    /// The buffer's position in that pool.
    pub buffer: u32,
    /// How many leases the buffer had before.
    pub generation: u64,
}

impl Lease {
    /// A number for the buffer that no other buffer of the machine has.
    pub const fn id(self) -> u32 {
        Lease::at(self.timeline, self.buffer)
    }

    pub(super) const fn at(timeline: u32, buffer: u32) -> u32 {
        timeline << 16 | buffer
    }
}

/// What has to be done before a call can be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Make a timeline semaphore with value 0.
    CreateTimeline {
        /// Its position; positions are used again with the streams that close.
        timeline: u32,
        /// The queue that will signal it.
        queue: QueueId,
    },
    /// Begin a command buffer: allocate it first if `new`, else reset it.
    Begin {
        /// For which stream.
        stream: StreamId,
        /// Which buffer.
        lease: Lease,
        /// Whether the buffer is still to be allocated.
        new: bool,
    },
    /// End the open batch's command buffer and submit it: wait for [`Machine::open_waits`](crate::Machine::open_waits), run
    /// the buffer if there is one, signal `value` on the stream's timeline.
    Submit {
        /// Whose open batch.
        stream: StreamId,
        /// The commands; `None` for a batch of waits alone.
        lease: Option<Lease>,
        /// The value to signal.
        value: u64,
    },
    /// Make a device event, unset.
    CreateSlot {
        /// Its position.
        slot: SlotId,
    },
    /// Reset a device event from the host.
    ResetSlot {
        /// Which.
        slot: SlotId,
    },
    /// Tell a waiter. After this the machine has forgotten it.
    Wake {
        /// Whom.
        waiter: WaiterId,
        /// Whether the point passed, or the device was lost.
        lost: bool,
    },
}

/// What the driver said to an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// Carried out.
    Done,
    /// Not carried out, and nothing changed (Vulkan: out of host or device memory).
    Refused,
    /// The device is lost.
    Lost,
}

/// The answer to a call, or what has to be done before there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Step<T> {
    /// Carry this out, reply, call again.
    First(Effect),
    /// The answer.
    Done(T),
}

/// A recording was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Recorded {
    /// The set to add to the stream's buffer, if the generation has a device event.
    pub set: Option<(Lease, SlotId)>,
}

/// How an accepted wait is expressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waited {
    /// Nothing to add: the event was never recorded, its work has ended, the stream is ordered
    /// behind it already, or the wait went into the batch's list of points.
    Nothing,
    /// Add a barrier from all earlier commands to all later ones.
    Barrier(Lease),
    /// Add a wait for this device event.
    Event(Lease, SlotId),
}

/// The first half of a host wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Synchronize {
    /// Nothing to wait for.
    Done,
    /// Block, without any lock, until the point passes; then report it with [`Machine::reached`](crate::Machine::reached),
    /// which wakes this waiter among others.
    Block {
        /// To be woken.
        waiter: WaiterId,
        /// What to block on.
        point: Point,
    },
}

/// What is known about an event's current generation, without asking the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Query {
    /// Its work has ended, or it was never recorded.
    Done,
    /// Its batch is with the device. Read the timeline and report it with [`Machine::reached`](crate::Machine::reached) for fresher news.
    Pending(Point),
    /// Its batch is still open: nothing will happen before a flush.
    Open(Point),
}

/// The answer to a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimedOut {
    /// The waiter is forgotten; its point had not passed.
    Forgotten,
    /// Too late: the waiter had been woken.
    AlreadyWoken,
}

/// A call that cannot be answered. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// The caller's mistake: the handle names no stream, or one that was destroyed.
    UnknownStream(StreamId),
    /// The caller's mistake: the handle names no event, or one that was destroyed.
    UnknownEvent(EventId),
    /// The caller's mistake: a stream has one companion, which has none itself and is destroyed with it.
    BadCompanion(StreamId),
    /// The caller's mistake: nothing issued so far will ever signal this point.
    NeverPromised(Point),
    /// The caller's mistake: a reply to an effect that was not asked for.
    UnexpectedReply(Effect),
    /// The driver refused a call and no fallback keeps the order; the call may be made again.
    Refused(Effect),
    /// The device is lost. Destroying still succeeds.
    Lost,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::UnknownStream(s) => {
                write!(f, "stream {} (generation {}) does not exist or was destroyed", s.index, s.generation)
            }
            Error::UnknownEvent(e) => {
                write!(f, "event {} (generation {}) does not exist or was destroyed", e.index, e.generation)
            }
            Error::BadCompanion(s) => {
                write!(
                    f,
                    "stream {} cannot be paired or destroyed alone: a pair is two streams, each in one pair",
                    s.index
                )
            }
            Error::NeverPromised(p) => {
                write!(
                    f,
                    "value {} of stream {} was never promised; the newest open batch may be waited for",
                    p.value, p.stream.index
                )
            }
            Error::UnexpectedReply(effect) => write!(f, "a reply to {effect:?}, which was not asked for"),
            Error::Refused(effect) => {
                write!(f, "the driver refused {effect:?}; the call was not accepted and may be made again")
            }
            Error::Lost => f.write_str("the device is lost; only destroying is possible"),
        }
    }
}

impl core::error::Error for Error {}
