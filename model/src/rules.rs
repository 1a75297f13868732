//! The rules: one name each, the same in the checker, the tests and every error message.

use crate::ghost::Ghost;
use crate::gpu::{BufferId, DeviceEvent, Family, FenceId, Gpu, QueueId, Signal};

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
    /// A fence is reset.
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
    /// lease; nor is the fence reset that reports a batch. VUID-vkBeginCommandBuffer-commandBuffer-00049,
    /// VUID-vkResetCommandBuffer-commandBuffer-00045, VUID-vkResetFences-pFences-01123.
    BatchReuse,
    /// Values signalled on a timeline strictly increase as they execute, and the value that the
    /// host goes by never falls. VUID-VkSubmitInfo2-semaphore-03882.
    TimelineOrder,
    /// No device event is waited on outside the queue that sets it: the specification of events
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
}

impl Rule {
    /// Every rule, in the order of DESIGN's table.
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
        }
    }

    /// Whether the rule has something to say here: its antecedent.
    pub fn concerns(self, gpu: &Gpu, ghost: &Ghost, o: &Occurrence) -> bool {
        use Occurrence as O;
        match self {
            Rule::ReuseWhileWaited => {
                matches!(o, O::HostReset { .. } | O::QueueReset { .. } | O::EventSet { .. } | O::EventDestroyed { .. })
            }
            Rule::StaleWait => matches!(o, O::WaitPasses { .. }),
            Rule::LostWait => matches!(o, O::WorkBegins { after } if *after != 0),
            Rule::EarlyCompletion => matches!(o, O::Reported { .. }) && !gpu.is_lost(),
            Rule::BatchReuse => {
                matches!(o, O::BufferBegun { .. } | O::BufferUsed { .. } | O::BufferReset { .. } | O::FenceReset { .. })
            }
            Rule::TimelineOrder => matches!(o, O::Signalled(_) | O::Published { .. }),
            Rule::WrongQueue => matches!(o, O::WaitRecorded { .. }),
            Rule::UnrecordedWait => matches!(o, O::UnrecordedCall { .. }),
            Rule::Progress => matches!(o, O::Blocks { .. } | O::Stuck),
            Rule::Bounded => matches!(o, O::Slots { .. }),
            Rule::Loss => matches!(o, O::Woken { .. }),
            Rule::Refusal => {
                ghost.refused && !gpu.is_lost() && matches!(o, O::WorkBegins { after: 1.. } | O::Reported { .. })
            }
        }
    }

    /// Whether this occurrence, in this state, breaks the rule.
    pub fn broken_by(self, gpu: &Gpu, ghost: &Ghost, o: &Occurrence) -> bool {
        if !self.concerns(gpu, ghost, o) {
            return false;
        }
        match self {
            Rule::ReuseWhileWaited => reuse_while_waited(gpu, o),
            Rule::StaleWait => stale_wait(gpu, o),
            Rule::LostWait => !ghost.refused && lost_wait(ghost, o),
            Rule::EarlyCompletion => !ghost.refused && early_completion(ghost, o),
            Rule::BatchReuse => batch_reuse(gpu, o),
            Rule::TimelineOrder => timeline_order(gpu, o),
            Rule::WrongQueue => wrong_queue(gpu, o),
            Rule::UnrecordedWait => matches!(o, Occurrence::UnrecordedCall { no_op: false }),
            Rule::Progress => matches!(o, Occurrence::Blocks { lock_held: true } | Occurrence::Stuck),
            Rule::Bounded => bounded(o),
            Rule::Loss => matches!(*o, Occurrence::Woken { waiting, lost } if !waiting || gpu.is_lost() && !lost),
            Rule::Refusal => ghost.refused && (lost_wait(ghost, o) || early_completion(ghost, o)),
        }
    }
}

fn reuse_while_waited(gpu: &Gpu, o: &Occurrence) -> bool {
    if gpu.family() == Family::Cuda {
        return false; // A native wait keeps the work that it captured.
    }
    match *o {
        Occurrence::HostReset { event } => gpu.waits(event).next().is_some(),
        Occurrence::QueueReset { event, set } => gpu.waits(event).any(|s| s <= set),
        Occurrence::EventSet { event, set } => gpu.waits(event).any(|s| s < set),
        Occurrence::EventDestroyed { event } => gpu.names_event(event),
        _ => false,
    }
}

fn stale_wait(gpu: &Gpu, o: &Occurrence) -> bool {
    gpu.family() == Family::Vulkan
        && matches!(*o, Occurrence::WaitPasses { event, set } if gpu.set_by(event) != Some(set))
}

fn lost_wait(ghost: &Ghost, o: &Occurrence) -> bool {
    matches!(*o, Occurrence::WorkBegins { after } if after & ghost.live != 0)
}

fn early_completion(ghost: &Ghost, o: &Occurrence) -> bool {
    matches!(*o, Occurrence::Reported { covers } if covers & ghost.live != 0)
}

fn batch_reuse(gpu: &Gpu, o: &Occurrence) -> bool {
    match *o {
        Occurrence::BufferBegun { buffer } => gpu.in_flight(buffer) || gpu.open_lease(buffer).is_some(),
        Occurrence::BufferUsed { buffer } => gpu.open_lease(buffer).is_none(),
        Occurrence::BufferReset { buffer, lease } => {
            gpu.in_flight(buffer) || gpu.open_lease(buffer).is_some_and(|l| l != lease)
        }
        Occurrence::FenceReset { fence } => gpu.fence_in_flight(fence),
        _ => false,
    }
}

fn timeline_order(gpu: &Gpu, o: &Occurrence) -> bool {
    match *o {
        Occurrence::Signalled(signal) => signal.value <= gpu.semaphore(signal.semaphore),
        Occurrence::Published { before, after } => after < before,
        _ => false,
    }
}

fn wrong_queue(gpu: &Gpu, o: &Occurrence) -> bool {
    gpu.family() == Family::Vulkan
        && matches!(*o, Occurrence::WaitRecorded { event, queue } if gpu.set_queue(event).is_some_and(|q| q != queue))
}

fn bounded(o: &Occurrence) -> bool {
    matches!(*o, Occurrence::Slots { live, allowed, stranded } if live > allowed || stranded > 0)
}
