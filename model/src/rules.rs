//! The rules: one name each, the same in the checker, the tests and every error message.

use crate::ghost::Ghost;
use crate::gpu::{BufferId, DeviceEvent, Family, FenceId, Gpu, QueueId, Semaphore, Signal};

/// What a rule has to know of a device. A checker knows all of it; whoever sees only the calls that were made knows what
/// is certain, and takes what is not certain to have executed as not executed.
pub trait Facts {
    /// Whose semantics.
    fn family(&self) -> Family;
    /// Whether the device was lost.
    fn is_lost(&self) -> bool;
    /// The sets that waits on an event which have not executed were recorded for.
    fn waits(&self, event: DeviceEvent) -> impl Iterator<Item = u64>;
    /// Whether any operation that has not executed names the event.
    fn names_event(&self, event: DeviceEvent) -> bool;
    /// The set that an event was set by.
    fn set_by(&self, event: DeviceEvent) -> Option<u64>;
    /// The queue of the event's newest set.
    fn set_queue(&self, event: DeviceEvent) -> Option<QueueId>;
    /// Whether a buffer is part of a batch that has not ended.
    fn in_flight(&self, buffer: BufferId) -> bool;
    /// The lease under which a buffer is open.
    fn open_lease(&self, buffer: BufferId) -> Option<u64>;
    /// Whether a fence will be signalled by a batch that has not ended.
    fn fence_in_flight(&self, fence: FenceId) -> bool;
    /// The value of a semaphore.
    fn semaphore(&self, semaphore: Semaphore) -> u64;
}

impl Facts for Gpu {
    fn family(&self) -> Family {
        self.family()
    }
    fn is_lost(&self) -> bool {
        self.is_lost()
    }
    fn waits(&self, event: DeviceEvent) -> impl Iterator<Item = u64> {
        self.waits(event)
    }
    fn names_event(&self, event: DeviceEvent) -> bool {
        self.names_event(event)
    }
    fn set_by(&self, event: DeviceEvent) -> Option<u64> {
        self.set_by(event)
    }
    fn set_queue(&self, event: DeviceEvent) -> Option<QueueId> {
        self.set_queue(event)
    }
    fn in_flight(&self, buffer: BufferId) -> bool {
        self.in_flight(buffer)
    }
    fn open_lease(&self, buffer: BufferId) -> Option<u64> {
        self.open_lease(buffer)
    }
    fn fence_in_flight(&self, fence: FenceId) -> bool {
        self.fence_in_flight(fence)
    }
    fn semaphore(&self, semaphore: Semaphore) -> u64 {
        self.semaphore(semaphore)
    }
}

/// Something that happens to the device, the host or the client and that a rule may forbid. It is
/// judged against the state just before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrence {
    /// The host resets a device event.
    HostReset {
        /// Which event.
        event: DeviceEvent,
    },
    /// A reset in a queue takes effect.
    QueueReset {
        /// Which event.
        event: DeviceEvent,
        /// The newest set when the reset was recorded.
        set: u64,
    },
    /// A set takes effect.
    EventSet {
        /// Which event.
        event: DeviceEvent,
        /// Its number.
        set: u64,
    },
    /// A device event is destroyed.
    EventDestroyed {
        /// Which event.
        event: DeviceEvent,
    },
    /// A wait on a device event passes.
    WaitPasses {
        /// Which event.
        event: DeviceEvent,
        /// The set it was recorded for.
        set: u64,
    },
    /// A wait on a device event is recorded for a queue.
    WaitRecorded {
        /// Which event.
        event: DeviceEvent,
        /// The queue that will wait.
        queue: QueueId,
    },
    /// A reset of a device event is recorded for a queue.
    ResetRecorded {
        /// Which event.
        event: DeviceEvent,
        /// The queue that will reset it.
        queue: QueueId,
    },
    /// Work begins.
    WorkBegins {
        /// Tracked works that it has to follow.
        after: u8,
    },
    /// The host is told that a generation is done.
    Reported {
        /// Tracked works before its recording.
        covers: u8,
    },
    /// A timeline semaphore takes a value.
    Signalled(Signal),
    /// The value of a timeline that the host goes by changes.
    Published {
        /// From this.
        before: u64,
        /// To this.
        after: u64,
    },
    /// A command buffer is begun.
    BufferBegun {
        /// Which buffer.
        buffer: BufferId,
    },
    /// A command is added to a command buffer, or the buffer is submitted.
    BufferUsed {
        /// Which buffer.
        buffer: BufferId,
    },
    /// A command buffer is reset or freed.
    BufferReset {
        /// Which buffer.
        buffer: BufferId,
        /// The lease of whoever does it.
        lease: u64,
    },
    /// A command buffer is submitted that must not be pending twice.
    BufferSubmitted {
        /// Which buffer.
        buffer: BufferId,
    },
    /// A fence is reset, or destroyed.
    FenceReset {
        /// Which fence.
        fence: FenceId,
    },
    /// A wait for, or a synchronize of, an event never recorded was answered.
    UnrecordedCall {
        /// It succeeded and did nothing.
        no_op: bool,
    },
    /// A host thread blocks.
    Blocks {
        /// It holds a lock that another call needs.
        lock_held: bool,
    },
    /// The device has work and can take no step, or a thread blocks with nothing left to wake it.
    Stuck,
    /// A waiter is woken.
    Woken {
        /// It was waiting.
        waiting: bool,
        /// It is told of a loss.
        lost: bool,
    },
    /// Slots are counted.
    Slots {
        /// Not reusable.
        live: usize,
        /// Superseded generations whose frontier has not passed, and one for each event.
        allowed: usize,
        /// Superseded, and never to be found reusable.
        stranded: usize,
    },
    /// Commands of two queues access overlapping ranges of one buffer.
    Overlap {
        /// At least one of them writes.
        write: bool,
        /// Semaphores, events, barriers or host waits order them.
        ordered: bool,
    },
}

/// A claim about events. [`Rule::broken_by`] judges it; `progress` needs the graph of states too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// No slot is reset, set for a new generation or destroyed while a wait on its last generation
    /// has not executed: open, submitted or executing. VUID-vkResetEvent-event-03821,
    /// VUID-vkCmdResetEvent-event-03834, VUID-vkDestroyEvent-event-01145.
    ReuseWhileWaited,
    /// A wait is released by its own generation's set, never by another's.
    StaleWait,
    /// Work issued on a stream after `wait(e)` never starts before the work that precedes e's
    /// recording has ended.
    LostWait,
    /// `synchronize` and `query` never report a generation done before its work has ended.
    EarlyCompletion,
    /// No command buffer is reset, re-begun or freed while submitted, nor by a holder of an older
    /// lease, nor submitted a second time meanwhile; nor is the fence reset that reports a batch.
    /// VUID-vkBeginCommandBuffer-commandBuffer-00049, VUID-vkResetCommandBuffer-commandBuffer-00045,
    /// VUID-vkQueueSubmit2-commandBuffer-03875, VUID-vkResetFences-pFences-01123.
    BatchReuse,
    /// Values signalled on a timeline strictly increase as they execute, and the value that the
    /// host goes by never falls. VUID-VkSubmitInfo2-semaphore-03882.
    TimelineOrder,
    /// No device event is waited on, or reset by a queue, outside the queue that sets it: the specification of events
    /// gives them meaning within one queue, and no VUID says so for every call.
    WrongQueue,
    /// Waiting for, or synchronizing, an event never recorded is a no-op that succeeds.
    UnrecordedWait,
    /// From every reachable state the device drains with no new call from the client; nothing
    /// blocks for ever, and no lock is held while the host blocks.
    Progress,
    /// Live slots never exceed generations not yet retired and one for each event; at quiescence
    /// every superseded slot is reusable.
    Bounded,
    /// Each waiter wakes exactly once; after device loss, with an error.
    Loss,
    /// A refused driver call weakens nothing: the fallback keeps the order it stands for.
    Refusal,
    /// Two accesses to overlapping ranges of a buffer from two queues, at least one a write, are ordered by semaphores,
    /// events, barriers or host waits. Judged in traces alone: the searched protocols name no memory.
    DataRace,
}

impl Rule {
    /// The rules of event protocols, in the order of DESIGN's table. [`Rule::DataRace`] is about traces alone.
    pub const ALL: [Rule; 12] = [
        Rule::ReuseWhileWaited,
        Rule::StaleWait,
        Rule::LostWait,
        Rule::EarlyCompletion,
        Rule::BatchReuse,
        Rule::TimelineOrder,
        Rule::WrongQueue,
        Rule::UnrecordedWait,
        Rule::Progress,
        Rule::Bounded,
        Rule::Loss,
        Rule::Refusal,
    ];

    /// The rule's name.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::ReuseWhileWaited => "reuse_while_waited",
            Rule::StaleWait => "stale_wait",
            Rule::LostWait => "lost_wait",
            Rule::EarlyCompletion => "early_completion",
            Rule::BatchReuse => "batch_reuse",
            Rule::TimelineOrder => "timeline_order",
            Rule::WrongQueue => "wrong_queue",
            Rule::UnrecordedWait => "unrecorded_wait",
            Rule::Progress => "progress",
            Rule::Bounded => "bounded",
            Rule::Loss => "loss",
            Rule::Refusal => "refusal",
            Rule::DataRace => "data_race",
        }
    }

    /// What breaking it does to whoever does.
    pub const fn matters(self) -> &'static str {
        match self {
            Rule::ReuseWhileWaited => "the wait may hang for ever, or pass on the next generation",
            Rule::StaleWait => "the wait passes on another generation: work starts before what it waits for",
            Rule::LostWait => "work starts before the work it was told to wait for",
            Rule::EarlyCompletion => "the host reads or frees what the device still writes",
            Rule::BatchReuse => "commands are lost or overwritten while the device reads them",
            Rule::TimelineOrder => "a wait for the higher value passes early, or the device is lost",
            Rule::WrongQueue => "the wait has no meaning there",
            Rule::UnrecordedWait => "a caller that has nothing to wait for hangs or fails",
            Rule::Progress => "something blocks for ever",
            Rule::Bounded => "device objects leak",
            Rule::Loss => "a waiter hangs on a lost device, or is told twice",
            Rule::Refusal => "an order is lost in a run where the driver refused a call",
            Rule::DataRace => "one reads or keeps what the other has half written",
        }
    }

    /// Whether the rule has something to say here: its antecedent.
    pub fn concerns(self, device: &impl Facts, ghost: &Ghost, o: &Occurrence) -> bool {
        use Occurrence as O;
        match self {
            Rule::ReuseWhileWaited => {
                matches!(o, O::HostReset { .. } | O::QueueReset { .. } | O::EventSet { .. } | O::EventDestroyed { .. })
            }
            Rule::StaleWait => matches!(o, O::WaitPasses { .. }),
            Rule::LostWait => matches!(o, O::WorkBegins { after } if *after != 0),
            Rule::EarlyCompletion => matches!(o, O::Reported { .. }) && !device.is_lost(),
            Rule::BatchReuse => {
                matches!(o, O::BufferBegun { .. } | O::BufferUsed { .. } | O::BufferReset { .. })
                    || matches!(o, O::BufferSubmitted { .. } | O::FenceReset { .. })
            }
            Rule::TimelineOrder => matches!(o, O::Signalled(_) | O::Published { .. }),
            Rule::WrongQueue => matches!(o, O::WaitRecorded { .. } | O::ResetRecorded { .. }),
            Rule::UnrecordedWait => matches!(o, O::UnrecordedCall { .. }),
            Rule::Progress => matches!(o, O::Blocks { .. } | O::Stuck),
            Rule::Bounded => matches!(o, O::Slots { .. }),
            Rule::Loss => matches!(o, O::Woken { .. }),
            Rule::Refusal => {
                ghost.refused && !device.is_lost() && matches!(o, O::WorkBegins { after: 1.. } | O::Reported { .. })
            }
            Rule::DataRace => matches!(o, O::Overlap { write: true, .. }),
        }
    }

    /// Whether this occurrence, in this state, breaks the rule.
    pub fn broken_by(self, device: &impl Facts, ghost: &Ghost, o: &Occurrence) -> bool {
        if !self.concerns(device, ghost, o) {
            return false;
        }
        match self {
            Rule::ReuseWhileWaited => reuse_while_waited(device, o),
            Rule::StaleWait => stale_wait(device, o),
            Rule::LostWait => !ghost.refused && lost_wait(ghost, o),
            Rule::EarlyCompletion => !ghost.refused && early_completion(ghost, o),
            Rule::BatchReuse => batch_reuse(device, o),
            Rule::TimelineOrder => timeline_order(device, o),
            Rule::WrongQueue => wrong_queue(device, o),
            Rule::UnrecordedWait => matches!(o, Occurrence::UnrecordedCall { no_op: false }),
            Rule::Progress => matches!(o, Occurrence::Blocks { lock_held: true } | Occurrence::Stuck),
            Rule::Bounded => bounded(o),
            Rule::Loss => matches!(*o, Occurrence::Woken { waiting, lost } if !waiting || device.is_lost() && !lost),
            Rule::Refusal => ghost.refused && (lost_wait(ghost, o) || early_completion(ghost, o)),
            Rule::DataRace => matches!(o, Occurrence::Overlap { write: true, ordered: false }),
        }
    }
}

fn reuse_while_waited(device: &impl Facts, o: &Occurrence) -> bool {
    if device.family() == Family::Cuda {
        return false; // A native wait keeps the work that it captured.
    }
    match *o {
        Occurrence::HostReset { event } => device.waits(event).next().is_some(),
        Occurrence::QueueReset { event, set } => device.waits(event).any(|s| s <= set),
        Occurrence::EventSet { event, set } => device.waits(event).any(|s| s < set),
        Occurrence::EventDestroyed { event } => device.names_event(event),
        _ => false,
    }
}

fn stale_wait(device: &impl Facts, o: &Occurrence) -> bool {
    device.family() == Family::Vulkan
        && matches!(*o, Occurrence::WaitPasses { event, set } if device.set_by(event) != Some(set))
}

fn lost_wait(ghost: &Ghost, o: &Occurrence) -> bool {
    matches!(*o, Occurrence::WorkBegins { after } if after & ghost.live != 0)
}

fn early_completion(ghost: &Ghost, o: &Occurrence) -> bool {
    matches!(*o, Occurrence::Reported { covers } if covers & ghost.live != 0)
}

fn batch_reuse(device: &impl Facts, o: &Occurrence) -> bool {
    match *o {
        Occurrence::BufferBegun { buffer } => device.in_flight(buffer) || device.open_lease(buffer).is_some(),
        Occurrence::BufferUsed { buffer } => device.open_lease(buffer).is_none(),
        Occurrence::BufferReset { buffer, lease } => {
            device.in_flight(buffer) || device.open_lease(buffer).is_some_and(|l| l != lease)
        }
        Occurrence::BufferSubmitted { buffer } => device.in_flight(buffer),
        Occurrence::FenceReset { fence } => device.fence_in_flight(fence),
        _ => false,
    }
}

fn timeline_order(device: &impl Facts, o: &Occurrence) -> bool {
    match *o {
        Occurrence::Signalled(signal) => signal.value <= device.semaphore(signal.semaphore),
        Occurrence::Published { before, after } => after < before,
        _ => false,
    }
}

fn wrong_queue(device: &impl Facts, o: &Occurrence) -> bool {
    let (Occurrence::WaitRecorded { event, queue } | Occurrence::ResetRecorded { event, queue }) = *o else {
        return false;
    };
    device.family() == Family::Vulkan && device.set_queue(event).is_some_and(|q| q != queue)
}

fn bounded(o: &Occurrence) -> bool {
    matches!(*o, Occurrence::Slots { live, allowed, stranded } if live > allowed || stranded > 0)
}
