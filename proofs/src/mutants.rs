//! Ways to be wrong. Each takes one guard from the machine, or one habit from whoever calls it.

/// What a caller of the machine does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// Resolves a wait when the batch is submitted, not when it is called.
    WaitBoundAtSubmit,
    /// Skips a wait if the stream ever waited for the event, whatever was recorded since.
    SkipsWaitByEvent,
    /// Resets the command buffer that a recording went into when the event is synchronized, by pointer.
    BufferResetByPointer,
    /// Has two queues signal one timeline.
    TwoQueuesOneTimeline,
    /// Checks, drops the lock, then registers the waiter.
    CheckThenRegister,
    /// Blocks with the lock held.
    HostWaitHoldsLock,
    /// Resets a slot in the queue, right before the set, with no barrier.
    ResetInQueue,
    /// Puts a wait into a batch that others wait for, and flushes all at once.
    MergeIntoSignallingBatch,
}

impl Mutant {
    pub fn name(self) -> &'static str {
        match self {
            Mutant::WaitBoundAtSubmit => "wait_bound_at_submit",
            Mutant::SkipsWaitByEvent => "skips_wait_by_event",
            Mutant::BufferResetByPointer => "buffer_reset_by_pointer",
            Mutant::TwoQueuesOneTimeline => "two_queues_one_timeline",
            Mutant::CheckThenRegister => "check_then_register",
            Mutant::HostWaitHoldsLock => "host_wait_holds_lock",
            Mutant::ResetInQueue => "reset_in_queue",
            Mutant::MergeIntoSignallingBatch => "merge_into_signalling_batch",
        }
    }
}
