//! Stories about the device: each sentence of the module's documentation as something that can fail.
//!
//! A step reads as its queue and what happens: `0: w1 begins`, `0: e0 set by 1`, `0: batch ends`.

use std::collections::BTreeSet;

use fencepost::{
    BufferId, Canon, Command, DeviceEvent, DeviceStep, Family, Gpu, Occurrence, Op, QueueId, Semaphore, Signal, Space,
    Submit, Work,
};

const NOTHING: [&str; 0] = [];
const BARRIER: Command = Command::Barrier;

// Batches and semaphores ---------------------------------------------------------------------------

#[test]
fn batches_start_in_order_and_after_their_semaphores() {
    let (mut d, [s, t]) = Device::with_semaphores(2);
    d.submit(0, &[at(s, 1)], &[work(1)], None);
    d.submit(0, &[at(t, 1)], &[work(2)], None);
    d.submit(0, &[], &[work(4)], None);
    assert_eq!(d.can(), NOTHING);

    // The second batch's semaphore comes first: it starts no sooner for that.
    d.submit(1, &[], &[], Some(at(t, 1)));
    d.go("1: batch ends, s1 = 1");
    assert_eq!(d.can(), NOTHING);
    d.submit(1, &[], &[], Some(at(s, 1)));
    d.go("1: batch ends, s0 = 1");
    assert_eq!(d.can(), ["0: starts at s0 >= 1"]);
    d.go("0: starts at s0 >= 1");
    assert_eq!(d.can(), ["0: w1 begins", "0: starts at s1 >= 1"], "a batch starts while the one before runs");
    d.go("0: starts at s1 >= 1");
    assert_eq!(d.can(), ["0: w1 begins", "0: w2 begins", "0: w4 begins"], "a batch that waits for nothing starts");
}

#[test]
fn a_batch_waits_for_all_its_semaphores_and_for_the_value() {
    let (mut d, [s, t]) = Device::with_semaphores(2);
    d.submit(0, &[at(s, 1), at(t, 2)], &[work(1)], None);
    d.submit(1, &[], &[], Some(at(s, 5)));
    d.submit(1, &[], &[], Some(at(t, 1)));
    d.go("1: batch ends, s0 = 5");
    d.go("1: batch ends, s1 = 1");
    d.go("0: starts at s0 >= 1");
    assert_eq!(d.can(), NOTHING, "1 is not 2");
    d.submit(1, &[], &[], Some(at(t, 2)));
    d.go("1: batch ends, s1 = 2");
    d.go("0: starts at s1 >= 2");
    d.go("0: w1 begins");
}

#[test]
fn a_batch_that_has_not_started_does_nothing_not_even_a_reset() {
    let (mut d, [s]) = Device::with_semaphores(2);
    let e = d.gpu.create_event();
    d.gpu.set_event(e);
    d.submit(0, &[at(s, 1)], &[Command::Reset(e), Command::Wait(e), BARRIER, Command::Set(e)], None);
    assert_eq!(d.can(), NOTHING);
    d.submit(1, &[], &[], Some(at(s, 1)));
    d.run(&["1: batch ends, s0 = 1", "0: starts at s0 >= 1", "0: e0 reset at 1"]);
}

#[test]
fn a_signal_comes_after_all_earlier_work_of_its_queue() {
    let (mut d, [s]) = Device::with_semaphores(2);
    d.submit(0, &[], &[work(1)], None);
    d.submit(0, &[], &[work(2)], Some(at(s, 1)));
    d.submit(0, &[], &[work(4)], None);
    d.run(&["0: w2 begins", "0: w2 ends", "0: w4 begins", "0: w4 ends"]);
    assert_eq!(d.can(), ["0: w1 begins"], "the batch's own work has ended, an earlier batch's has not");
    d.run(&["0: w1 begins", "0: w1 ends", "0: batch ends"]);
    assert_eq!(d.gpu.semaphore(s), 0);
    d.go("0: batch ends, s0 = 1");
    assert_eq!(d.gpu.semaphore(s), 1);
}

#[test]
fn a_signal_does_not_come_after_work_of_another_queue_nor_after_later_work() {
    let (mut d, [s]) = Device::with_semaphores(2);
    d.submit(1, &[], &[work(2)], None);
    d.go("1: w2 begins");
    d.submit(0, &[], &[work(1)], Some(at(s, 1)));
    d.submit(0, &[], &[work(4)], None);
    d.run(&["0: w1 begins", "0: w4 begins", "0: w1 ends", "0: batch ends, s0 = 1"]);
    assert_eq!(d.can(), ["0: w4 ends", "1: w2 ends"]);
}

#[test]
fn a_signal_of_the_host_takes_effect_at_once() {
    let (mut d, [s]) = Device::with_semaphores(1);
    d.submit(0, &[], &[work(1)], None);
    d.submit(0, &[at(s, 3)], &[work(2)], None);
    assert_eq!(d.can(), ["0: w1 begins"]);
    d.gpu.signal_semaphore(s, 3);
    assert_eq!(d.can(), ["0: w1 begins", "0: starts at s0 >= 3"], "whatever the queue is doing");
}

#[test]
fn the_end_of_a_batch_frees_its_buffer_and_gives_its_fence() {
    let mut d = Device::new(Family::Vulkan, 1);
    let fence = d.gpu.create_fence();
    assert!(d.gpu.fence(fence), "made signalled");
    d.gpu.reset_fence(fence);
    let buffer = d.buffer(0, &[work(1)]);
    assert_eq!((d.gpu.open_lease(buffer), d.gpu.in_flight(buffer)), (Some(0), false));
    d.gpu.submit(0, &Submit { buffer: Some(buffer), fence: Some(fence), ..Submit::default() });
    assert_eq!((d.gpu.open_lease(buffer), d.gpu.in_flight(buffer)), (None, true));
    d.run(&["0: w1 begins", "0: w1 ends"]);
    assert_eq!((d.gpu.in_flight(buffer), d.gpu.fence_in_flight(fence), d.gpu.fence(fence)), (true, true, false));
    d.go("0: batch ends");
    assert_eq!((d.gpu.in_flight(buffer), d.gpu.fence_in_flight(fence), d.gpu.fence(fence)), (false, false, true));
}

#[test]
fn an_open_buffer_does_nothing_and_beginning_it_again_or_discarding_it_empties_it() {
    let mut d = Device::new(Family::Vulkan, 1);
    let buffer = d.buffer(0, &[work(1)]);
    assert_eq!((d.can().len(), d.gpu.is_idle(), d.gpu.open_ops(buffer).len()), (0, true, 1));
    d.gpu.begin(buffer, 0, 7);
    assert_eq!((d.gpu.open_ops(buffer).len(), d.gpu.open_lease(buffer), d.gpu.open_extent().1), (0, Some(7), 1));
    d.gpu.record(buffer, work(2));
    d.gpu.discard(buffer);
    d.gpu.submit(0, &Submit { buffer: Some(buffer), ..Submit::default() });
    assert_eq!(d.can(), ["0: batch ends"]);
}

#[test]
fn wait_before_signal_resolves_across_queues() {
    let (mut d, [s]) = Device::with_semaphores(2);
    d.submit(0, &[at(s, 1)], &[work(1)], None);
    assert!(!d.gpu.can_step() && !d.gpu.is_idle());
    d.submit(1, &[], &[work(2)], Some(at(s, 1)));
    assert_eq!(d.can(), ["1: w2 begins"]);
    d.drain();
    assert!(d.gpu.is_idle());
}

#[test]
fn wait_before_signal_on_one_queue_is_a_deadlock() {
    let (mut d, [s]) = Device::with_semaphores(2);
    d.submit(0, &[at(s, 1)], &[work(1)], None);
    d.submit(0, &[], &[work(2)], Some(at(s, 1)));
    d.drain();
    assert!(!d.gpu.can_step() && !d.gpu.is_idle());
    d.submit(1, &[], &[work(4)], None);
    assert_eq!(d.can(), ["1: w4 begins"], "the other queue is not concerned");
    d.drain();
    assert!(!d.gpu.can_step() && !d.gpu.is_idle());
}

#[test]
fn a_batch_that_waits_for_its_own_signal_is_a_deadlock() {
    let (mut d, [s]) = Device::with_semaphores(1);
    d.submit(0, &[at(s, 1)], &[], Some(at(s, 1)));
    assert!(!d.gpu.can_step() && !d.gpu.is_idle());
}

#[test]
fn two_queues_that_wait_for_each_other_are_a_deadlock() {
    let (mut d, [s, t]) = Device::with_semaphores(2);
    d.submit(0, &[at(s, 1)], &[], Some(at(t, 1)));
    d.submit(1, &[at(t, 1)], &[], Some(at(s, 1)));
    assert!(!d.gpu.can_step() && !d.gpu.is_idle());
}

// Work ---------------------------------------------------------------------------------------------

/// Beginning is eager, and what is eager is taken from the front.
#[test]
fn works_begin_in_submission_order() {
    let mut d = Device::new(Family::Vulkan, 1);
    d.submit(0, &[], &[work(1), work(2)], None);
    d.submit(0, &[], &[work(4)], None);
    assert_eq!(d.settle(), ["0: w1 begins", "0: w2 begins", "0: w4 begins"]);
}

#[test]
fn works_overlap_and_end_in_any_order() {
    for order in [[1, 2, 4], [1, 4, 2], [2, 1, 4], [2, 4, 1], [4, 1, 2], [4, 2, 1]] {
        let mut d = Device::new(Family::Vulkan, 1);
        d.submit(0, &[], &[work(1), work(2)], None);
        d.submit(0, &[], &[work(4)], None);
        d.settle();
        assert_eq!(d.can(), ["0: w1 ends", "0: w2 ends", "0: w4 ends"]);
        for tracked in order {
            assert_eq!(d.go(&format!("0: w{tracked} ends")), tracked, "a step tells which work ended");
        }
    }
}

#[test]
fn a_barrier_lies_between_what_is_before_and_what_is_after() {
    let mut d = Device::new(Family::Vulkan, 1);
    d.submit(0, &[], &[work(1), work(2), BARRIER], None);
    d.submit(0, &[], &[work(4)], None);
    d.run(&["0: w2 begins", "0: w2 ends"]);
    assert_eq!(d.can(), ["0: w1 begins"]);
    d.run(&["0: w1 begins", "0: w1 ends"]);
    assert_eq!(d.can(), ["0: barrier passes"]);
    d.go("0: barrier passes");
    assert_eq!(d.can(), ["0: batch ends", "0: w4 begins"], "it reaches into the next batch");
}

#[test]
fn a_semaphore_orders_the_works_of_two_queues() {
    let (mut d, [s]) = Device::with_semaphores(2);
    d.submit(0, &[], &[work(1)], Some(at(s, 1)));
    d.submit(1, &[], &[work(2)], None);
    d.submit(1, &[at(s, 1)], &[work(4)], None);
    assert_eq!(d.can(), ["0: w1 begins", "1: w2 begins"], "w1 and w2 overlap, w1 and w4 do not");
    d.run(&["1: w2 begins", "0: w1 begins", "0: w1 ends", "0: batch ends, s0 = 1", "1: starts at s0 >= 1"]);
    assert_eq!(d.can(), ["1: w2 ends", "1: w4 begins"]);
}

// Events -------------------------------------------------------------------------------------------

#[test]
fn a_set_takes_effect_when_everything_before_it_has_ended() {
    let mut d = Device::new(Family::Vulkan, 1);
    let e = d.gpu.create_event();
    d.submit(0, &[], &[work(1)], None);
    d.submit(0, &[], &[work(2), Command::Set(e), work(4)], None);
    assert_eq!(d.can(), ["0: w1 begins", "0: w2 begins", "0: w4 begins"], "a set holds nothing back");
    d.run(&["0: w2 begins", "0: w2 ends", "0: w1 begins"]);
    assert_eq!(d.can(), ["0: w1 ends", "0: w4 begins"]);
    d.run(&["0: w1 ends", "0: batch ends"]);
    assert_eq!(d.gpu.set_by(e), None);
    d.go("0: e0 set by 1");
    assert_eq!(d.gpu.set_by(e), Some(1));
    assert_eq!(d.can(), ["0: w4 begins"]);
}

#[test]
fn a_wait_holds_what_comes_after_it_and_nothing_before() {
    let mut d = Device::new(Family::Vulkan, 1);
    let e = d.gpu.create_event();
    d.submit(0, &[], &[work(1), Command::Set(e), work(2), Command::Wait(e)], None);
    d.submit(0, &[], &[work(4)], None);
    assert_eq!(d.can(), ["0: w1 begins", "0: w2 begins"]);
    d.run(&["0: w2 begins", "0: w1 begins", "0: w1 ends", "0: e0 set by 1"]);
    assert_eq!(d.can(), ["0: w2 ends", "0: e0 waited for 1"], "work between set and wait is not waited for");
    d.go("0: e0 waited for 1");
    assert_eq!(d.can(), ["0: w2 ends", "0: w4 begins"]);
}

#[test]
fn a_wait_passes_at_once_on_an_event_that_is_set_and_in_order_behind_another_wait() {
    let mut d = Device::new(Family::Vulkan, 1);
    let [e, f] = [d.gpu.create_event(), d.gpu.create_event()];
    d.gpu.set_event(f);
    d.submit(0, &[], &[Command::Wait(e), Command::Wait(f)], None);
    assert_eq!(d.can(), NOTHING, "the second is held by the first");
    d.gpu.set_event(e);
    d.run(&["0: e0 waited for 0", "0: e1 waited for 1", "0: batch ends"]);
}

/// Vulkan: an event has no generations. Whether the wait should have passed is for the judge to say.
#[test]
fn any_set_releases_a_wait() {
    let mut d = Device::new(Family::Vulkan, 2);
    let e = d.gpu.create_event();
    d.submit(0, &[], &[work(1), Command::Set(e), Command::Wait(e)], None);
    d.submit(1, &[], &[Command::Set(e)], None);
    d.go("1: e0 set by 2");
    assert_eq!(d.can(), ["0: w1 begins", "0: e0 waited for 1", "1: batch ends"]);
}

#[test]
fn a_queue_that_waits_for_its_own_later_set_is_a_deadlock_that_the_host_can_end() {
    let mut d = Device::new(Family::Vulkan, 1);
    let e = d.gpu.create_event();
    d.submit(0, &[], &[Command::Wait(e)], None);
    d.submit(0, &[], &[Command::Set(e)], None);
    assert!(!d.gpu.can_step() && !d.gpu.is_idle());
    d.gpu.set_event(e);
    assert_eq!(d.can(), ["0: e0 waited for 0"]);
}

#[test]
fn a_queue_reset_overtakes_an_earlier_wait() {
    let mut d = Device::new(Family::Vulkan, 1);
    let e = d.gpu.create_event();
    d.submit(0, &[], &[Command::Set(e), Command::Wait(e)], None);
    d.submit(0, &[], &[Command::Reset(e)], None);
    assert_eq!(d.can(), ["0: e0 set by 1"], "the set that it undoes comes first");
    d.go("0: e0 set by 1");
    assert_eq!(d.can(), ["0: e0 waited for 1", "0: e0 reset at 1"]);

    let mut in_order = d.clone();
    in_order.run(&["0: e0 waited for 1", "0: batch ends", "0: e0 reset at 1", "0: batch ends"]);
    assert!(in_order.gpu.is_idle());

    d.go("0: e0 reset at 1");
    assert!(!d.gpu.can_step() && !d.gpu.is_idle(), "the wait hangs");
}

#[test]
fn a_queue_reset_behind_a_barrier_does_not_overtake() {
    let mut d = Device::new(Family::Vulkan, 1);
    let e = d.gpu.create_event();
    d.submit(0, &[], &[Command::Set(e), Command::Wait(e), BARRIER, Command::Reset(e)], None);
    d.go("0: e0 set by 1");
    assert_eq!(d.can(), ["0: e0 waited for 1"]);
    d.go("0: e0 waited for 1");
    assert_eq!(d.can(), ["0: barrier passes"]);
    d.go("0: barrier passes");
    assert_eq!(d.can(), ["0: e0 reset at 1"]);
}

#[test]
fn a_queue_reset_overtakes_work_and_waits_of_other_events_but_no_reset_of_its_own() {
    let mut d = Device::new(Family::Vulkan, 1);
    let [e, f] = [d.gpu.create_event(), d.gpu.create_event()];
    d.gpu.set_event(e);
    d.submit(0, &[], &[work(1), Command::Wait(f), Command::Reset(f), Command::Reset(e), Command::Reset(e)], None);
    assert_eq!(d.can(), ["0: w1 begins", "0: e1 reset at 0", "0: e0 reset at 1"]);
    d.go("0: e0 reset at 1");
    assert_eq!(d.gpu.set_by(e), None);
}

#[test]
fn the_host_sets_and_resets_at_once_whatever_the_queue_is_doing() {
    let mut d = Device::new(Family::Vulkan, 1);
    let e = d.gpu.create_event();
    d.submit(0, &[], &[work(1), BARRIER, Command::Set(e)], None);
    d.go("0: w1 begins");
    d.gpu.set_event(e);
    assert_eq!((d.gpu.set_by(e), d.gpu.newest_set(e)), (Some(2), 2), "a set of its own");
    d.gpu.reset_event(e);
    assert_eq!(d.gpu.set_by(e), None);
    assert_eq!(d.can(), ["0: w1 ends"], "the queue did not move");

    // Under a submitted wait: it hangs where it would have passed.
    d.submit(0, &[], &[Command::Wait(e)], None);
    d.run(&["0: w1 ends", "0: barrier passes", "0: e0 set by 1", "0: batch ends"]);
    assert_eq!(d.can(), ["0: e0 waited for 2"]);
    d.gpu.reset_event(e);
    assert!(!d.gpu.can_step() && !d.gpu.is_idle());
}

#[test]
fn the_number_of_a_destroyed_event_is_used_again_and_its_sets_count_on() {
    let mut d = Device::new(Family::Vulkan, 1);
    let [e, f] = [d.gpu.create_event(), d.gpu.create_event()];
    assert_eq!(d.gpu.event_count(), 2);
    d.gpu.set_event(e);
    d.gpu.destroy_event(e);
    assert_eq!(d.gpu.event_count(), 1);
    assert_eq!((d.gpu.create_event(), d.gpu.create_event()), (e, f + 1));
    assert_eq!((d.gpu.set_by(e), d.gpu.newest_set(e)), (None, 1), "unset, and no old set is taken for a new one");
}

// Loss ---------------------------------------------------------------------------------------------

#[test]
fn loss_empties_the_queues_and_a_lost_device_takes_nothing_more() {
    for family in [Family::Vulkan, Family::Cuda] {
        let mut d = Device::new(family, 2);
        let s = d.gpu.create_semaphore();
        let e = d.gpu.create_event();
        d.submit(0, &[at(s, 1)], &[work(1)], None);
        d.submit(1, &[], &[work(2)], Some(at(s, 1)));
        d.go("1: w2 begins");
        assert!(!d.gpu.is_lost());
        d.gpu.lose();
        assert!(d.gpu.is_lost() && d.gpu.is_idle());
        let buffer = d.submit(0, &[], &[work(4)], Some(at(s, 1)));
        assert_eq!((d.gpu.in_flight(buffer), d.gpu.open_lease(buffer)), (false, None), "the buffer is not kept open");
        d.gpu.issue(1, Command::Set(e));
        assert!(d.gpu.is_idle());
        assert_eq!((d.can(), d.gpu.semaphore(s)), (vec![], 0), "nothing that it held was carried out");
    }
}

// CUDA-like ----------------------------------------------------------------------------------------

#[test]
fn cuda_a_stream_runs_in_order_and_two_overlap() {
    let mut d = Device::new(Family::Cuda, 2);
    let e = d.gpu.create_event();
    d.issue(0, &[work(1), work(2), Command::Set(e), work(4)]);
    d.issue(1, &[work(8)]);
    assert_eq!(d.can(), ["0: w1 begins", "1: w8 begins"]);
    d.run(&["0: w1 begins", "1: w8 begins"]);
    assert_eq!(d.can(), ["0: w1 ends", "1: w8 ends"], "w2 does not begin under w1");
    d.run(&["0: w1 ends", "0: w2 begins", "0: w2 ends"]);
    assert_eq!(d.can(), ["0: e0 set by 1", "1: w8 ends"]);
    d.run(&["0: e0 set by 1", "0: w4 begins"]);
}

#[test]
fn cuda_a_wait_binds_to_the_newest_recording_when_it_was_issued() {
    let mut d = Device::new(Family::Cuda, 3);
    let e = d.gpu.create_event();
    d.issue(0, &[work(1), Command::Set(e)]);
    d.issue(2, &[Command::Wait(e), work(4)]);
    d.issue(1, &[work(2), Command::Set(e)]);

    let mut later_first = d.clone();
    later_first.run(&["1: w2 begins", "1: w2 ends", "1: e0 set by 2"]);
    assert_eq!(later_first.can(), ["0: w1 begins"], "a later recording does not release it");
    assert!(!later_first.gpu.recording_done(e, 1) && later_first.gpu.recording_done(e, 2));

    d.run(&["0: w1 begins", "0: w1 ends", "0: e0 set by 1"]);
    assert_eq!(d.can(), ["1: w2 begins", "2: e0 waited for 1"], "nor does it hold it");
    d.run(&["2: e0 waited for 1", "2: w4 begins"]);
}

#[test]
fn cuda_a_wait_for_an_event_never_recorded_or_recorded_only_later_passes() {
    let mut d = Device::new(Family::Cuda, 2);
    let e = d.gpu.create_event();
    d.issue(1, &[Command::Wait(e)]);
    d.issue(0, &[work(1), Command::Set(e)]);
    d.go("1: e0 waited for 0");
}

#[test]
fn cuda_destroying_an_event_leaves_its_recording_and_its_waits_alone() {
    let mut d = Device::new(Family::Cuda, 2);
    let e = d.gpu.create_event();
    d.issue(0, &[work(1), Command::Set(e)]);
    d.issue(1, &[Command::Wait(e), work(2)]);
    d.gpu.destroy_event(e);
    assert_eq!(d.can(), ["0: w1 begins"], "the wait is neither dropped nor released");
    assert_eq!(d.gpu.create_event(), e);
    d.issue(1, &[Command::Set(e)]);
    assert_eq!(d.can(), ["0: w1 begins"], "nor is it the new event's");
    d.run(&["0: w1 begins", "0: w1 ends", "0: e0 set by 1", "1: e0 waited for 1", "1: w2 begins"]);
}

// Occurrences --------------------------------------------------------------------------------------

#[test]
fn a_step_tells_the_judge_what_it_means() {
    let (mut d, [s]) = Device::with_semaphores(2);
    let e = d.gpu.create_event();
    let follower = Command::Work(Work { tracked: 2, after: 1 });
    d.submit(1, &[], &[], Some(at(s, 1)));
    d.submit(0, &[at(s, 1)], &[follower, Command::Set(e), Command::Wait(e), BARRIER, Command::Reset(e)], None);
    let mut told = Vec::new();
    while let Some((step, name)) = d.named_steps().into_iter().next_back() {
        told.push((name, d.gpu.occurrence(step)));
        d.gpu.take(step);
    }
    let told: Vec<_> = told.iter().map(|(name, o)| (name.as_str(), *o)).collect();
    assert_eq!(
        told,
        [
            ("1: batch ends, s0 = 1", Some(Occurrence::Signalled(at(s, 1)))),
            ("0: starts at s0 >= 1", None),
            ("0: w2 begins", Some(Occurrence::WorkBegins { after: 1 })),
            ("0: w2 ends", None),
            ("0: e0 set by 1", Some(Occurrence::EventSet { event: e, set: 1 })),
            ("0: e0 waited for 1", Some(Occurrence::WaitPasses { event: e, set: 1 })),
            ("0: barrier passes", None),
            ("0: e0 reset at 1", Some(Occurrence::QueueReset { event: e, set: 1 })),
            ("0: batch ends", None),
        ]
    );
}

// Questions -----------------------------------------------------------------------------------------

/// Two batches and an open buffer: a semaphore wait, two works, a set and three waits.
fn busy() -> (Device, [DeviceEvent; 2]) {
    let (mut d, [s]) = Device::with_semaphores(2);
    let [e, f] = [d.gpu.create_event(), d.gpu.create_event()];
    d.gpu.set_event(f);
    d.submit(0, &[], &[work(1), Command::Set(e), Command::Wait(e)], None);
    d.submit(0, &[at(s, 1)], &[work(2)], None);
    d.buffer(1, &[Command::Wait(f), Command::Wait(e)]);
    (d, [e, f])
}

#[test]
fn what_has_not_run_can_be_counted() {
    let (mut d, [e, f]) = busy();
    assert_eq!(d.gpu.family(), Family::Vulkan);
    assert_eq!((d.gpu.batch_count(0), d.gpu.batch_count(1)), (2, 0), "an open buffer is no batch yet");
    assert_eq!(d.gpu.live_count(), 7, "ends of batches are no commands");
    assert_eq!(d.gpu.unset_wait_count(), 2, "one of the three waits has its event set");
    assert_eq!(d.gpu.open_extent(), (2, 1));
    let waits = |d: &Device, event| d.gpu.waits(event).collect::<Vec<_>>();
    assert_eq!((waits(&d, e), waits(&d, f)), (vec![1, 1], vec![1]));
    let is_reset = |op: &Op| matches!(op, Op::Reset { .. });
    assert!(d.gpu.any_op(|op| *op == Op::Wait { event: f, set: 1 }) && !d.gpu.any_op(is_reset));
    assert!(d.gpu.names_event(e) && d.gpu.names_event(f));
    assert_eq!((d.gpu.set_queue(e), d.gpu.set_queue(f)), (Some(0), None), "the host sets on no queue");

    d.run(&["0: w1 begins", "0: w1 ends", "0: e0 set by 1", "0: e0 waited for 1", "0: batch ends"]);
    assert_eq!((d.gpu.batch_count(0), d.gpu.live_count(), d.gpu.unset_wait_count()), (1, 4, 0));
    assert_eq!(waits(&d, e), [1], "the open one");
    d.gpu.discard(d.buffer_count - 1);
    assert_eq!((d.gpu.live_count(), waits(&d, e)), (2, vec![]));
    assert!(!d.gpu.names_event(e) && !d.gpu.names_event(f));
}

#[test]
fn a_work_that_ended_is_owed_nothing() {
    let follower = |tracked, after| Command::Work(Work { tracked, after });
    let owed = |d: &Device| {
        let open = d.gpu.open_ops(d.buffer_count - 1);
        let works = d.gpu.queues()[0].iter().chain(open).filter_map(|op| match op {
            Op::Work { work, .. } => Some((work.tracked, work.after)),
            _ => None,
        });
        works.collect::<Vec<_>>()
    };
    for drops in [false, true] {
        let mut d = Device::new(Family::Vulkan, 1);
        d.submit(0, &[], &[follower(2, 5), follower(0, 1), follower(0, 4)], None);
        d.buffer(0, &[BARRIER, follower(4, 1), follower(0, 3)]);
        d.gpu.forget(1, drops);
        let settled = if drops { None } else { Some((0, 0)) };
        let expected = [Some((2, 4)), settled, Some((0, 4)), Some((4, 0)), Some((0, 2))];
        assert_eq!(owed(&d), expected.into_iter().flatten().collect::<Vec<_>>(), "drops what is settled: {drops}");
        assert_eq!(d.gpu.open_ops(d.buffer_count - 1)[0], Op::Barrier, "a barrier owes nothing and stays");
    }
}

// Eager steps --------------------------------------------------------------------------------------

#[test]
fn what_is_eager_and_what_is_a_choice() {
    let (mut d, [s]) = Device::with_semaphores(2);
    let e = d.gpu.create_event();
    d.submit(1, &[], &[], Some(at(s, 1)));
    d.submit(0, &[at(s, 1)], &[work(0), BARRIER, work(1), BARRIER, Command::Set(e), Command::Wait(e)], None);
    d.submit(0, &[], &[Command::Reset(e)], None);
    let begins = ["0: starts at s0 >= 1", "0: w0 begins", "0: w0 ends", "0: barrier passes", "0: w1 begins"];
    assert_eq!(d.settle(), [&["1: batch ends, s0 = 1"], &begins[..]].concat());
    assert_eq!(d.can(), ["0: w1 ends"], "the end of tracked work is a choice");
    d.go("0: w1 ends");
    assert_eq!(d.settle(), ["0: barrier passes"]);
    assert_eq!((d.can(), d.settle()), (vec!["0: e0 set by 1".into()], vec![]), "so is a set");
    d.go("0: e0 set by 1");
    assert_eq!(d.settle(), NOTHING, "so are a wait and a reset");
    assert_eq!(d.can(), ["0: e0 waited for 1", "0: e0 reset at 1"]);
    d.run(&["0: e0 waited for 1"]);
    assert_eq!(d.settle(), ["0: batch ends"]);
    assert_eq!(d.can(), ["0: e0 reset at 1"]);
}

/// In every state of two busy devices.
#[test]
fn an_eager_step_is_possible_disables_no_other_and_is_no_set_wait_or_reset() {
    for d in [busy_vulkan(), busy_cuda()] {
        let mut eager_count = 0;
        everywhere(&d, &mut |d| {
            let Some(eager) = d.gpu.eager_step() else { return };
            eager_count += 1;
            assert!(!matches!(d.op(eager), Op::Set { .. } | Op::Wait { .. } | Op::Reset { .. }), "{:?}", d.op(eager));
            let mut others: Vec<String> = d.named_steps().into_iter().map(|(_, name)| name).collect();
            let own = others.iter().position(|name| *name == d.name(eager)).expect("an eager step is possible");
            others.remove(own);
            let mut after = d.clone();
            after.gpu.take(eager);
            let after = after.can();
            assert!(others.iter().all(|name| after.contains(name)), "{others:?}, then {after:?}");
        });
        assert!(eager_count > 0);
    }
}

/// What is a choice happens in the same orders, whether or not the rest is taken at once.
#[test]
fn taking_eager_steps_at_once_loses_no_behaviour() {
    for d in [busy_vulkan(), busy_cuda()] {
        let (mut all, mut hasty) = (BTreeSet::new(), BTreeSet::new());
        let mut seen = BTreeSet::new();
        orders(&d, false, &mut Vec::new(), &mut seen, &mut all);
        seen.clear();
        orders(&d, true, &mut Vec::new(), &mut seen, &mut hasty);
        assert!(all.len() > 1, "there is something to choose");
        assert_eq!(all, hasty);
    }
}

fn busy_vulkan() -> Device {
    let (mut d, [s]) = Device::with_semaphores(2);
    let e = d.gpu.create_event();
    d.submit(0, &[], &[work(1), Command::Set(e), work(0)], Some(at(s, 1)));
    d.submit(0, &[], &[Command::Wait(e), work(2), Command::Reset(e)], None);
    d.submit(1, &[at(s, 1)], &[work(4), BARRIER, work(8)], None);
    d
}

fn busy_cuda() -> Device {
    let mut d = Device::new(Family::Cuda, 2);
    let e = d.gpu.create_event();
    d.issue(0, &[work(1), Command::Set(e), work(0), work(2)]);
    d.issue(1, &[work(4), Command::Wait(e), work(8), Command::Set(e)]);
    d
}

/// Every state that can be reached.
fn everywhere(d: &Device, visit: &mut impl FnMut(&Device)) {
    let (mut seen, mut open) = (BTreeSet::new(), vec![d.clone()]);
    while let Some(d) = open.pop() {
        if !seen.insert(format!("{:?}", d.gpu)) {
            continue;
        }
        visit(&d);
        for (step, _) in d.named_steps() {
            let mut next = d.clone();
            next.gpu.take(step);
            open.push(next);
        }
    }
}

/// The orders in which choices can happen until nothing can.
fn orders(
    d: &Device,
    hasty: bool,
    order: &mut Vec<String>,
    seen: &mut BTreeSet<(String, Vec<String>)>,
    out: &mut BTreeSet<Vec<String>>,
) {
    if !seen.insert((format!("{:?}", d.gpu), order.clone())) {
        return;
    }
    let steps = match d.gpu.eager_step() {
        Some(eager) if hasty => vec![(eager, d.name(eager))],
        _ => d.named_steps(),
    };
    if steps.is_empty() {
        out.insert(order.clone());
    }
    for (step, name) in steps {
        let choice = match d.op(step) {
            Op::Work { work, begun } => begun && work.tracked != 0,
            Op::Start { .. } | Op::Barrier | Op::End { .. } => false,
            Op::Set { .. } | Op::Wait { .. } | Op::Reset { .. } => true,
        };
        let mut next = d.clone();
        next.gpu.take(step);
        order.extend(choice.then_some(name));
        orders(&next, hasty, order, seen, out);
        order.truncate(order.len() - usize::from(choice));
    }
}

// Canonical form -----------------------------------------------------------------------------------

/// A queue that waits for another, an event with an old wait, an open buffer; after `spent` earlier uses of everything.
fn used(spent: u32) -> Device {
    let (mut d, [s]) = Device::with_semaphores(2);
    (0..spent).for_each(|_| _ = d.gpu.create_event());
    let e = d.gpu.create_event();
    for round in 1..=spent {
        d.submit(0, &[], &[Command::Set(e), Command::Wait(e)], Some(at(s, u64::from(10 * round))));
        d.drain();
        d.gpu.reset_event(e);
    }
    let base = d.gpu.semaphore(s);
    d.submit(0, &[], &[work(1), Command::Set(e)], Some(at(s, base + 1 + u64::from(spent))));
    d.submit(1, &[at(s, base + 1 + u64::from(spent))], &[work(2)], None);
    d.submit(0, &[], &[Command::Wait(e)], None);
    d.submit(0, &[], &[Command::Set(e)], None);
    d.buffer(0, &[Command::Wait(e), work(4)]);
    d
}

#[test]
fn names_of_events_and_buffers_and_absolute_values_are_not_written() {
    let [fresh, worn] = [used(0), used(3)];
    assert_ne!(fresh.gpu, worn.gpu);
    assert_eq!(fresh.canonical(), worn.canonical());

    // And so it stays, step for step.
    let (mut a, mut b) = (fresh, worn);
    loop {
        let (of_a, of_b) = (a.named_steps(), b.named_steps());
        assert_eq!(of_a.len(), of_b.len());
        let Some(((step, _), (same, _))) = of_a.into_iter().zip(of_b).next() else { break };
        assert_eq!(step, same);
        a.gpu.take(step);
        b.gpu.take(step);
        assert_eq!(a.canonical(), b.canonical());
    }
}

#[test]
fn queues_and_semaphores_are_written_by_the_names_they_were_given() {
    let build = |[p, q]: [QueueId; 2]| {
        let (mut d, s) = Device::with_semaphores::<2>(2);
        d.submit(p, &[], &[work(1)], Some(at(s[p as usize], 1)));
        d.submit(q, &[at(s[p as usize], 1)], &[work(2)], Some(at(s[q as usize], 1)));
        d
    };
    assert_eq!(build([0, 1]).canonical_as([0, 1]), build([1, 0]).canonical_as([1, 0]));
    assert_ne!(build([0, 1]).canonical_as([0, 1]), build([1, 0]).canonical_as([0, 1]));
}

#[test]
fn which_value_a_batch_waits_for_is_written_until_it_has_come() {
    let waits = |come: u64, value: u64| {
        let (mut d, [s]) = Device::with_semaphores(2);
        d.gpu.signal_semaphore(s, come);
        d.submit(1, &[], &[], Some(at(s, come + 1)));
        d.submit(1, &[], &[], Some(at(s, come + 2)));
        d.submit(0, &[at(s, value)], &[work(1)], None);
        d.canonical()
    };
    assert_ne!(waits(0, 1), waits(0, 2));
    assert_eq!(waits(0, 1), waits(6, 7), "its number means nothing");
    assert_eq!(waits(3, 3), waits(3, 1), "nor does how long ago it came");
    assert_ne!(waits(3, 3), waits(3, 4));
}

/// Of one queue's signals in order nobody asks how high they are; of others a rule does.
#[test]
fn the_order_of_signals_is_written_where_it_could_be_wrong() {
    let signals = |of_first: &[u64], of_second: &[u64]| {
        let (mut d, [s, t]) = Device::with_semaphores(2);
        of_first.iter().for_each(|value| _ = d.submit(0, &[], &[], Some(at(s, *value))));
        of_second.iter().for_each(|value| _ = d.submit(1, &[], &[], Some(at(s, *value))));
        d.submit(1, &[], &[], Some(at(t, 1)));
        d.canonical()
    };
    assert_eq!(signals(&[1, 2], &[]), signals(&[4, 9], &[]));
    assert_ne!(signals(&[1, 2], &[]), signals(&[2, 1], &[]), "the second falls");
    assert_ne!(signals(&[1, 2], &[]), signals(&[2, 2], &[]), "the second stays");
    assert_ne!(signals(&[2, 1], &[]), signals(&[2, 2], &[]));
    assert_ne!(signals(&[1], &[2]), signals(&[2], &[1]), "whichever queue is first");
    assert_ne!(signals(&[1], &[1]), signals(&[1], &[2]));
    assert_eq!(signals(&[1], &[2]), signals(&[3], &[7]));
}

#[test]
fn the_age_of_a_pending_wait_is_written() {
    let build = |old: bool| {
        let mut d = Device::new(Family::Vulkan, 1);
        let e = d.gpu.create_event();
        d.gpu.set_event(e);
        if !old {
            d.gpu.set_event(e);
        }
        d.submit(0, &[], &[work(1), BARRIER, Command::Wait(e)], None);
        if old {
            d.gpu.set_event(e);
        }
        d
    };
    assert_eq!(build(true).gpu.newest_set(0), build(false).gpu.newest_set(0));
    assert_ne!(build(true).canonical(), build(false).canonical());
}

#[test]
fn which_of_several_sets_a_wait_is_for_is_written() {
    let waits_for = |set: u64| {
        let mut d = Device::new(Family::Vulkan, 2);
        let e = d.gpu.create_event();
        let [sets, waits] = [d.buffer(0, &[]), d.buffer(1, &[])];
        for newest in 1..=2 {
            d.gpu.record(sets, Command::Set(e));
            if newest == set {
                d.gpu.record(waits, Command::Wait(e));
            }
        }
        d.gpu.set_event(e);
        d.canonical()
    };
    assert_ne!(waits_for(1), waits_for(2));
}

#[test]
fn sets_of_another_event_do_not_age_a_wait() {
    let build = |of_another: usize| {
        let mut d = Device::new(Family::Vulkan, 1);
        let [e, f] = [d.gpu.create_event(), d.gpu.create_event()];
        (0..of_another).for_each(|_| d.gpu.set_event(f));
        d.gpu.set_event(e);
        d.submit(0, &[], &[work(1), BARRIER, Command::Wait(e), Command::Set(f), Command::Set(e)], None);
        d.canonical()
    };
    // That it is set is written, by which of its sets is not.
    assert_eq!(build(1), build(5));
}

#[test]
fn whether_an_event_is_set_is_written() {
    let build = |is_set: bool| {
        let mut d = Device::new(Family::Vulkan, 1);
        let e = d.gpu.create_event();
        d.gpu.set_event(e);
        d.submit(0, &[], &[work(1), BARRIER, Command::Wait(e)], None);
        if !is_set {
            d.gpu.reset_event(e);
        }
        d.canonical()
    };
    assert_ne!(build(true), build(false));
}

#[test]
fn what_an_open_buffer_holds_is_written_under_its_name() {
    let build = |commands: &[Command]| {
        let mut d = Device::new(Family::Vulkan, 1);
        let buffer = d.buffer(0, commands);
        let mut c = Canon::new();
        c.assign(Space::Queue, 0);
        c.assign(Space::Buffer, u64::from(buffer));
        d.gpu.write(&mut c, |_, _| ());
        c.bytes().to_vec()
    };
    assert_ne!(build(&[work(1)]), build(&[]));
    assert_ne!(build(&[work(1)]), build(&[work(2)]));
}

#[test]
fn sets_that_nothing_names_do_not_age_a_wait() {
    let build = |later: usize| {
        let mut d = Device::new(Family::Vulkan, 1);
        let e = d.gpu.create_event();
        d.gpu.set_event(e);
        d.submit(0, &[], &[work(1), BARRIER, Command::Wait(e)], None);
        (0..later).for_each(|_| d.gpu.set_event(e));
        d.canonical()
    };
    assert_eq!(build(1), build(3));
    assert_ne!(build(0), build(1));
}

#[test]
fn a_loss_and_the_queue_of_an_open_buffer_are_written() {
    let mut lost = Device::new(Family::Vulkan, 2);
    let idle = lost.clone();
    lost.gpu.lose();
    assert_ne!(idle.canonical(), lost.canonical());
    let open = |queue| {
        let mut d = idle.clone();
        d.buffer(queue, &[work(1)]);
        d.canonical()
    };
    assert_ne!(open(0), open(1));
}

#[test]
fn cuda_which_recording_a_wait_is_bound_to_is_written_and_its_number_is_not() {
    let build = |spent: usize, wait_late: bool| {
        let mut d = Device::new(Family::Cuda, 3);
        let e = d.gpu.create_event();
        (0..spent).for_each(|_| d.issue(0, &[Command::Set(e)]));
        d.drain();
        d.issue(0, &[work(1), Command::Set(e)]);
        if !wait_late {
            d.issue(2, &[Command::Wait(e)]);
        }
        d.issue(1, &[work(2), Command::Set(e)]);
        if wait_late {
            d.issue(2, &[Command::Wait(e)]);
        }
        d.canonical()
    };
    assert_eq!(build(0, false), build(4, false));
    assert_eq!(build(0, true), build(4, true));
    assert_ne!(build(0, false), build(0, true));
}

#[test]
fn cuda_recordings_of_two_events_are_kept_apart() {
    let waits_for = |at: usize| {
        let mut d = Device::new(Family::Cuda, 2);
        let events = [d.gpu.create_event(), d.gpu.create_event()];
        d.issue(0, &[work(1), Command::Set(events[0]), Command::Set(events[1])]);
        d.issue(1, &[Command::Wait(events[at])]);
        d.canonical()
    };
    assert_ne!(waits_for(0), waits_for(1));
}

#[test]
fn a_work_that_may_begin_one_that_has_begun_and_a_batch_that_may_start_are_kept_apart() {
    let (mut starts, [_, t]) = Device::with_semaphores(1);
    let (mut begins, _) = Device::with_semaphores::<2>(1);
    starts.gpu.submit(0, &Submit { waits: vec![at(t, 0)], ..Submit::default() });
    begins.gpu.issue(0, work(1));
    begins.gpu.submit(0, &Submit::default());
    let mut begun = begins.clone();
    begun.go("0: w1 begins");
    let forms = [starts.canonical(), begins.canonical(), begun.canonical()];
    assert_eq!(forms.iter().collect::<BTreeSet<_>>().len(), 3, "{forms:?}");
}

#[test]
fn what_the_future_depends_on_is_written() {
    let mut d = used(0);
    let mut forms = vec![d.canonical()];
    for step in ["0: w1 begins", "0: w1 ends", "0: e0 set by 1", "0: batch ends, s0 = 1", "1: starts at s0 >= 1"] {
        d.go(step);
        forms.push(d.canonical());
    }
    d.gpu.reset_event(0);
    forms.push(d.canonical());
    d.gpu.discard(d.buffer_count - 1);
    forms.push(d.canonical());
    d.gpu.lose();
    forms.push(d.canonical());
    let different: BTreeSet<_> = forms.iter().collect();
    assert_eq!(different.len(), forms.len());
}

// A device that speaks -----------------------------------------------------------------------------

fn work(tracked: u8) -> Command {
    Command::Work(Work { tracked, after: 0 })
}

fn at(semaphore: Semaphore, value: u64) -> Signal {
    Signal { semaphore, value }
}

#[derive(Clone)]
struct Device {
    gpu: Gpu,
    semaphore_count: Semaphore,
    buffer_count: BufferId,
}

impl Device {
    fn new(family: Family, queue_count: usize) -> Self {
        Device { gpu: Gpu::new(family, queue_count), semaphore_count: 0, buffer_count: 0 }
    }

    /// Vulkan, with semaphores at 0.
    fn with_semaphores<const N: usize>(queue_count: usize) -> (Self, [Semaphore; N]) {
        let mut d = Device::new(Family::Vulkan, queue_count);
        let semaphores = [(); N].map(|()| d.gpu.create_semaphore());
        d.semaphore_count = N as Semaphore;
        (d, semaphores)
    }

    /// A new buffer, left open.
    fn buffer(&mut self, queue: QueueId, commands: &[Command]) -> BufferId {
        let buffer = self.buffer_count;
        self.buffer_count += 1;
        self.gpu.begin(buffer, queue, 0);
        commands.iter().for_each(|c| self.gpu.record(buffer, *c));
        buffer
    }

    fn submit(&mut self, queue: QueueId, waits: &[Signal], commands: &[Command], signal: Option<Signal>) -> BufferId {
        let buffer = self.buffer(queue, commands);
        self.gpu.submit(queue, &Submit { waits: waits.to_vec(), buffer: Some(buffer), signal, fence: None });
        buffer
    }

    fn issue(&mut self, queue: QueueId, commands: &[Command]) {
        commands.iter().for_each(|c| self.gpu.issue(queue, *c));
    }

    fn op(&self, step: DeviceStep) -> Op {
        self.gpu.queues()[step.queue as usize][step.index as usize]
    }

    fn name(&self, step: DeviceStep) -> String {
        let what = match self.op(step) {
            Op::Start { semaphore, value } => format!("starts at s{semaphore} >= {value}"),
            Op::Work { work, begun: false } => format!("w{} begins", work.tracked),
            Op::Work { work, begun: true } => format!("w{} ends", work.tracked),
            Op::Barrier => "barrier passes".into(),
            Op::Set { event, set } => format!("e{event} set by {set}"),
            Op::Wait { event, set } => format!("e{event} waited for {set}"),
            Op::Reset { event, set } => format!("e{event} reset at {set}"),
            Op::End { signal: Some(Signal { semaphore, value }), .. } => format!("batch ends, s{semaphore} = {value}"),
            Op::End { .. } => "batch ends".into(),
        };
        format!("{}: {what}", step.queue)
    }

    /// What is possible; the device's three answers agree.
    fn named_steps(&self) -> Vec<(DeviceStep, String)> {
        let mut steps = Vec::new();
        self.gpu.steps(&mut steps);
        assert_eq!(self.gpu.can_step(), !steps.is_empty());
        assert!(self.gpu.eager_step().is_none_or(|eager| steps.contains(&eager)));
        steps.into_iter().map(|step| (step, self.name(step))).collect()
    }

    fn can(&self) -> Vec<String> {
        self.named_steps().into_iter().map(|(_, name)| name).collect()
    }

    /// Takes a step that has to be possible; returns the work that ended.
    fn go(&mut self, name: &str) -> u8 {
        let steps = self.named_steps();
        let Some((step, _)) = steps.iter().find(|(_, n)| n == name) else {
            panic!("{name:?} is not possible, but {:?}", self.can())
        };
        self.gpu.take(*step)
    }

    fn run(&mut self, names: &[&str]) {
        names.iter().for_each(|name| _ = self.go(name));
    }

    /// Takes whatever is eager; returns what that was.
    fn settle(&mut self) -> Vec<String> {
        let mut taken = Vec::new();
        while let Some(step) = self.gpu.eager_step() {
            taken.push(self.name(step));
            self.gpu.take(step);
        }
        taken
    }

    /// Runs until nothing is possible.
    fn drain(&mut self) {
        while let Some((step, _)) = self.named_steps().first() {
            self.gpu.take(*step);
        }
    }

    fn canonical(&self) -> Vec<u8> {
        let queues: Vec<u64> = (0..self.gpu.queues().len() as u64).collect();
        let semaphores: Vec<u64> = (0..u64::from(self.semaphore_count)).collect();
        self.form(&queues, &semaphores)
    }

    /// With one order for queues and semaphores.
    fn canonical_as(&self, order: [u64; 2]) -> Vec<u8> {
        self.form(&order, &order)
    }

    fn form(&self, queues: &[u64], semaphores: &[u64]) -> Vec<u8> {
        let mut c = Canon::new();
        self.gpu.name_values(&mut c);
        queues.iter().for_each(|q| c.assign(Space::Queue, *q));
        semaphores.iter().for_each(|s| c.assign(Space::Semaphore, *s));
        self.gpu.write(&mut c, |_, _| ());
        for event in c.assigned(Space::DeviceEvent).to_vec() {
            self.gpu.write_event(event as DeviceEvent, &mut c);
        }
        c.bytes().to_vec()
    }
}
