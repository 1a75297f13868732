//! Ways to be wrong. Each takes a guard from the machine, or gives whoever calls it a bad habit, and
//! each has to be caught by the rule that it offends.

use fencepost::{Family, Guard, Rule};

use crate::setup::{Bounds, Calls, Reductions, Setup, Topology};

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

/// A mutant with the configuration that has to catch it.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// A forbidden verb phrase.
    pub name: &'static str,
    pub habit: Option<Mutant>,
    pub without: &'static [Guard],
    pub topology: Topology,
    pub calls: Calls,
    /// The rule that it offends.
    pub rule: Rule,
}

const PLAIN: Calls = Calls {
    synchronize: false,
    synchronize_stream: false,
    destroy: false,
    renew_stream: false,
    refuse: false,
    lose: false,
    time_out: false,
};
const BLOCKS: Calls = Calls { synchronize: true, ..PLAIN };
const DESTROYS: Calls = Calls { destroy: true, ..PLAIN };
const REFUSES: Calls = Calls { refuse: true, ..PLAIN };
const LOSES: Calls = Calls { lose: true, ..BLOCKS };

const fn guard(name: &'static str, without: &'static [Guard], topology: Topology, calls: Calls, rule: Rule) -> Case {
    Case { name, habit: None, without, topology, calls, rule }
}

const fn habit(name: &'static str, habit: Mutant, topology: Topology, calls: Calls, rule: Rule) -> Case {
    Case { name, habit: Some(habit), without: &[], topology, calls, rule }
}

use Topology::{ComputeTransfer, OneStream, TwoQueues, TwoStreamsOneQueue as TwoStreams, TwoThreads};

/// Every mutant.
pub const CASES: &[Case] = &[
    guard("recycle_ignores_open_waits", &[Guard::OpenBatchesHoldSlots], TwoStreams, PLAIN, Rule::ReuseWhileWaited),
    habit("wait_bound_at_submit", Mutant::WaitBoundAtSubmit, TwoStreams, PLAIN, Rule::LostWait),
    guard("accepted_wait_dropped_with_its_batch", &[Guard::WaitsAloneAreSubmitted], TwoQueues, PLAIN, Rule::LostWait),
    guard("refused_batch_dropped_with_its_waits", &[Guard::RefusedSubmitKeepsBatch], TwoQueues, REFUSES, Rule::Refusal),
    guard("wait_covers_one_of_two_queues", &[Guard::WaitCoversCompanion], ComputeTransfer, PLAIN, Rule::LostWait),
    guard(
        "recording_covers_one_of_two_queues",
        &[Guard::RecordCoversCompanion],
        ComputeTransfer,
        PLAIN,
        Rule::EarlyCompletion,
    ),
    habit("buffer_reset_by_pointer", Mutant::BufferResetByPointer, TwoThreads, BLOCKS, Rule::BatchReuse),
    guard("buffer_leased_before_its_point", &[Guard::PointHoldsBuffers], OneStream, PLAIN, Rule::BatchReuse),
    guard(
        "value_of_a_refused_submit_kept",
        &[Guard::RefusedSubmitKeepsValue],
        OneStream,
        Calls { refuse: true, ..BLOCKS },
        Rule::Progress,
    ),
    habit("two_queues_write_one_timeline", Mutant::TwoQueuesOneTimeline, TwoQueues, PLAIN, Rule::TimelineOrder),
    guard(
        "timeout_taken_as_done",
        &[Guard::TimeoutIsNotDone],
        OneStream,
        Calls { time_out: true, ..BLOCKS },
        Rule::EarlyCompletion,
    ),
    guard("submitted_taken_as_done", &[Guard::SubmittedIsNotDone], OneStream, PLAIN, Rule::EarlyCompletion),
    guard("publish_takes_the_last_value", &[Guard::ReachedNeverGoesBack], TwoThreads, BLOCKS, Rule::TimelineOrder),
    guard("counter_beyond_the_promise_believed", &[Guard::ReachedWithinPromise], TwoThreads, LOSES, Rule::Loss),
    habit("check_then_register_without_the_lock", Mutant::CheckThenRegister, TwoThreads, BLOCKS, Rule::Progress),
    guard("registers_without_checking", &[Guard::RegisterChecks], TwoThreads, BLOCKS, Rule::Progress),
    guard("pushed_free_before_its_frontier", &[Guard::FrontierHoldsSlots], OneStream, PLAIN, Rule::ReuseWhileWaited),
    guard("wait_submitted_ahead_of_its_signal", &[Guard::FlushBeforeWait], TwoStreams, PLAIN, Rule::Progress),
    guard("loss_wakes_a_waiter_twice", &[Guard::WokenOnce], OneStream, LOSES, Rule::Loss),
    guard("loss_wakes_nobody", &[Guard::LossWakes], OneStream, LOSES, Rule::Progress),
    guard(
        "destroy_frees_instead_of_quarantining",
        &[Guard::DestroyQuarantines],
        OneStream,
        DESTROYS,
        Rule::ReuseWhileWaited,
    ),
    Case {
        name: "reset_and_set_again_without_a_barrier",
        habit: Some(Mutant::ResetInQueue),
        without: &[Guard::FrontierHoldsSlots],
        topology: OneStream,
        calls: PLAIN,
        rule: Rule::ReuseWhileWaited,
    },
    guard("retired_list_with_no_trigger", &[Guard::PointTriggersSlots], OneStream, PLAIN, Rule::Bounded),
    guard(
        "rerecord_forgets_the_first_streams_waits",
        &[Guard::WaitsJoinFrontier],
        TwoStreams,
        PLAIN,
        Rule::ReuseWhileWaited,
    ),
    habit("host_wait_holds_the_lock", Mutant::HostWaitHoldsLock, TwoThreads, BLOCKS, Rule::Progress),
    guard("fallback_goes_on_without_the_order", &[Guard::FallbackKeepsOrder], OneStream, REFUSES, Rule::Refusal),
    Case {
        name: "wait_merged_into_an_open_batch_that_signals",
        habit: Some(Mutant::MergeIntoSignallingBatch),
        without: &[Guard::FlushBeforeWait, Guard::SplitBeforeWait],
        topology: TwoQueues,
        calls: PLAIN,
        rule: Rule::Progress,
    },
    guard("unrecorded_wait_blocks", &[Guard::UnrecordedIsNoOp], OneStream, BLOCKS, Rule::UnrecordedWait),
    guard("event_of_one_queue_waited_on_in_another", &[Guard::SlotsStayOnQueue], TwoQueues, PLAIN, Rule::WrongQueue),
    guard(
        "dropped_stream_strands_its_points",
        &[Guard::ClosedStreamDrains],
        OneStream,
        Calls { renew_stream: true, ..BLOCKS },
        Rule::EarlyCompletion,
    ),
    habit("second_wait_skipped_by_event", Mutant::SkipsWaitByEvent, TwoStreams, PLAIN, Rule::LostWait),
];

impl Case {
    /// The smallest configuration that shows it.
    pub fn setup(&self) -> Setup {
        let events = if self.habit == Some(Mutant::MergeIntoSignallingBatch) { 2 } else { 1 };
        // A reset in the queue is a command more for each recording.
        let (open, live) = if self.habit == Some(Mutant::ResetInQueue) { (3, 6) } else { (2, 4) };
        let bounds = Bounds { events, open, in_flight: 2, live, slots: usize::MAX };
        let reductions = Reductions { drop_slots: self.rule != Rule::Bounded, ..Reductions::ALL };
        Setup {
            row: 10,
            family: Family::Vulkan,
            topology: self.topology,
            bounds,
            calls: self.calls,
            reductions,
            mutant: self.habit,
            without: self.without,
        }
    }
}
