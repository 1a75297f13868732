//! Mutants of the relation: the safety mutants of [`crate::mutants`], under the same names, as formulas.

macro_rules! mutants {
    ($($name:ident $text:literal)*) => {
        /// A way in which the relation is wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Mutant {
            $($name,)*
        }

        impl Mutant {
            pub const ALL: &'static [Mutant] = &[$(Mutant::$name,)*];

            /// Its name in [`crate::mutants::CASES`].
            pub const fn name(self) -> &'static str {
                match self { $(Mutant::$name => $text,)* }
            }
        }
    };
}

mutants! {
    RecycleIgnoresOpenWaits "recycle_ignores_open_waits"
    PushedFreeBeforeItsFrontier "pushed_free_before_its_frontier"
    DestroyFreesInsteadOfQuarantining "destroy_frees_instead_of_quarantining"
    ResetAndSetAgainWithoutABarrier "reset_and_set_again_without_a_barrier"
    RerecordForgetsTheFirstStreamsWaits "rerecord_forgets_the_first_streams_waits"
    WaitBoundAtSubmit "wait_bound_at_submit"
    AcceptedWaitDroppedWithItsBatch "accepted_wait_dropped_with_its_batch"
    WaitCoversOneOfTwoQueues "wait_covers_one_of_two_queues"
    SecondWaitSkippedByEvent "second_wait_skipped_by_event"
    RecordingCoversOneOfTwoQueues "recording_covers_one_of_two_queues"
    TimeoutTakenAsDone "timeout_taken_as_done"
    SubmittedTakenAsDone "submitted_taken_as_done"
    DroppedStreamStrandsItsPoints "dropped_stream_strands_its_points"
    BufferResetByPointer "buffer_reset_by_pointer"
    BufferLeasedBeforeItsPoint "buffer_leased_before_its_point"
    TwoQueuesWriteOneTimeline "two_queues_write_one_timeline"
    PublishTakesTheLastValue "publish_takes_the_last_value"
    EventOfOneQueueWaitedOnInAnother "event_of_one_queue_waited_on_in_another"
    RefusedBatchDroppedWithItsWaits "refused_batch_dropped_with_its_waits"
    FallbackGoesOnWithoutTheOrder "fallback_goes_on_without_the_order"
}
