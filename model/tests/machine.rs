//! Stories about the machine. `L3b` and the like are rows of CASES.md.

mod driver;

use driver::{BARE, Driver, block, image, lease, point, set, slot};
use fencepost::Lifecycle::{Pending, Reusable, Submitted};
use fencepost::{
    Effect, Error, EventId, Machine, Policy, Query, Reply, Step, StreamId, Synchronize, TimedOut, Waited, WaiterId,
};

const NOTHING: Result<Waited, Error> = Ok(Waited::Nothing);
const NO_EFFECT: [&str; 0] = [];

// A slot is recycled only behind its frontier ------------------------------------------------------

/// L3b: the race that the pull request was merged with.
#[test]
fn a_slot_is_not_recycled_while_another_streams_batch_is_open() {
    let (mut d, [a, b]) = Driver::with_streams(true, [0, 0]);
    let e = d.machine.create_event();
    assert_eq!(d.record(e, a), set(lease(0, 0, 0), slot(0, 1)));
    d.work(a).unwrap();
    assert_eq!(d.wait(b, e), Ok(Waited::Event(lease(1, 0, 0), slot(0, 1))));
    assert_eq!(d.told(), ["allocate t0.b0", "create slot 0", "submit t0.b0 = 1", "allocate t1.b0"]);

    assert_eq!(d.record(e, a), set(lease(0, 1, 0), slot(1, 1)));
    assert_eq!(d.machine.slot(0), Some(Pending));
    assert_eq!(d.synchronize(e), block((0, 0), point(a, 2)));
    d.reached(a, 2).unwrap();
    assert_eq!(d.told(), ["allocate t0.b1", "create slot 1", "submit t0.b1 = 2", "wake 0"]);
    assert_eq!(d.machine.slot(0), Some(Pending), "b has not even submitted its wait");

    assert_eq!(d.record(e, a), set(lease(0, 1, 1), slot(2, 1)));
    assert_eq!(d.record(e, a), set(lease(0, 1, 1), slot(1, 2)));
    assert_eq!(d.told(), ["begin t0.b1 lease 1", "create slot 2", "reset slot 1"]);

    d.flush(b).unwrap();
    assert_eq!(d.machine.slot(0), Some(Submitted));
    d.reached(b, 1).unwrap();
    assert_eq!(d.machine.slot(0), Some(Reusable));
}

#[test]
fn l3_submitted_waits_hold_the_slot_until_the_last_has_run() {
    let (mut d, [a, b, c]) = Driver::with_streams(true, [0, 0, 0]);
    let e = d.machine.create_event();
    d.record(e, a).unwrap();
    d.work(a).unwrap();
    for stream in [b, c] {
        d.wait(stream, e).unwrap();
        d.flush(stream).unwrap();
    }
    d.reached(a, 1).unwrap();
    d.told();

    assert_eq!(d.record(e, a), set(lease(0, 0, 1), slot(1, 1)));
    assert_eq!(d.told(), ["begin t0.b0 lease 1", "create slot 1"], "no reset of slot 0 under the waits");
    d.reached(c, 1).unwrap();
    assert_eq!(d.machine.slot(0), Some(Submitted), "b still waits");
    d.reached(b, 1).unwrap();
    assert_eq!(d.machine.slot(0), Some(Reusable));
}

#[test]
fn a1_a_destroyed_events_slot_lives_until_its_batch_has_retired() {
    let (mut d, [a]) = Driver::with_streams(true, [0]);
    let e = d.machine.create_event();
    d.record(e, a).unwrap();
    d.work(a).unwrap();
    assert_eq!(d.wait(a, e), Ok(Waited::Event(lease(0, 0, 0), slot(0, 1))));
    d.machine.destroy_event(e).unwrap();
    assert_eq!(d.machine.slot(0), Some(Pending));
    d.flush(a).unwrap();
    assert_eq!(d.machine.slot(0), Some(Submitted));
    d.reached(a, 1).unwrap();
    assert_eq!(d.machine.slot(0), Some(Reusable));
}

#[test]
fn a4_recording_and_destroying_for_ever_needs_as_many_slots_as_batches_in_flight() {
    const IN_FLIGHT: u64 = 3;
    let (mut d, [a]) = Driver::with_streams(true, [0]);
    for round in 1..=10_000_u64 {
        let e = d.machine.create_event();
        d.record(e, a).unwrap();
        d.machine.destroy_event(e).unwrap();
        d.flush(a).unwrap();
        d.reached(a, round.saturating_sub(IN_FLIGHT)).unwrap();
        assert_eq!(d.machine.stranded_slots(), 0);
    }
    assert_eq!(d.machine.slot_counts(), [1, 0, 0, IN_FLIGHT as usize]);
    d.reached(a, 10_000).unwrap();
    assert_eq!(d.machine.slot_counts(), [4, 0, 0, 0]);
}

#[test]
fn a_steady_state_makes_no_new_objects() {
    for (events, queue) in [(true, 0), (true, 1), (false, 0), (false, 1)] {
        let (mut d, [a, b]) = Driver::with_streams(events, [0, queue]);
        let e = d.machine.create_event();
        for round in 1..=1_000 {
            d.work(a).unwrap();
            d.record(e, a).unwrap();
            d.work(a).unwrap(); // keeps the wait from being a mere barrier
            d.wait(b, e).unwrap();
            d.work(b).unwrap();
            d.flush(b).unwrap();
            let Ok(Synchronize::Block { point, .. }) = d.synchronize(e) else { panic!("round {round} did not block") };
            d.reached(a, point.value).unwrap();
            d.reached(b, d.machine.progress(b).unwrap().0 - 1).unwrap(); // one batch behind
            let passing = d.drive(|m| m.create_stream(0)).unwrap();
            d.work(passing).unwrap();
            d.destroy_stream(passing).unwrap();
            d.reached(passing, round).unwrap();

            let told = d.told();
            let made = told.iter().find(|l| ["allocate", "create", "timeline"].iter().any(|w| l.starts_with(w)));
            assert!(round < 4 || made.is_none(), "events {events}, queue {queue}, round {round}: {made:?}");
            assert_eq!(told.iter().filter(|l| l.starts_with("wake")).count(), 1);
            assert_eq!(d.machine.query(e), Ok(Query::Done));
        }
    }
}

// A wait orders ------------------------------------------------------------------------------------

#[test]
fn l1_an_accepted_wait_is_in_the_batch_that_carries_later_work() {
    let (mut d, [a, b, c]) = Driver::with_streams(true, [0, 0, 1]);
    let e = d.machine.create_event();
    d.record(e, a).unwrap();
    d.work(a).unwrap();
    d.flush(a).unwrap();
    d.told();

    assert_eq!(d.wait(b, e), Ok(Waited::Event(lease(1, 0, 0), slot(0, 1))));
    assert_eq!(d.work(b), Ok(lease(1, 0, 0)));
    assert_eq!(d.flush(b), Ok(()));
    assert_eq!(d.told(), ["allocate t1.b0", "submit t1.b0 = 1"]);

    // On another queue: whether or not the wait's batch is flushed before the work is issued.
    assert_eq!(d.wait(c, e), NOTHING);
    assert_eq!(d.flush(c), Ok(()));
    assert_eq!(d.told(), ["submit t2 = 1 after t0@1"]);
    assert_eq!(d.wait(c, e), NOTHING);
    assert_eq!(d.work(c), Ok(lease(2, 0, 0)));
    assert_eq!(d.flush(c), Ok(()));
    assert_eq!(d.told(), ["allocate t2.b0", "submit t2.b0 = 2 after t0@1"]);
}

#[test]
fn l5_p6_an_event_never_recorded_orders_nothing_and_is_done() {
    let (mut d, [a, b]) = Driver::with_streams(true, [0, 1]);
    let e = d.machine.create_event();
    assert_eq!(d.synchronize(e), Ok(Synchronize::Done));
    assert_eq!(d.machine.query(e), Ok(Query::Done));
    assert_eq!(d.wait(b, e), NOTHING);
    assert_eq!(d.flush(b), Ok(()));
    assert_eq!(d.told(), NO_EFFECT);

    // A later recording does not reach back.
    d.wait(b, e).unwrap();
    d.record(e, a).unwrap();
    d.work(b).unwrap();
    d.told();
    d.flush(b).unwrap();
    assert_eq!(d.told(), ["submit t1.b0 = 1"]);
}

#[test]
fn l6_whoever_flushes_first_the_reader_follows_the_upload() {
    let (mut d, [transfer, compute]) = Driver::with_streams(false, [1, 0]);
    let uploaded = d.machine.create_event();
    d.work(transfer).unwrap();
    d.record(uploaded, transfer).unwrap();
    d.wait(compute, uploaded).unwrap();
    d.work(compute).unwrap();
    d.flush(compute).unwrap();
    d.flush(transfer).unwrap();
    assert_eq!(d.told(), ["allocate t0.b0", "submit t0.b0 = 1", "allocate t1.b0", "submit t1.b0 = 1 after t0@1"]);
}

#[test]
fn l9_a_recording_covers_what_its_stream_still_holds_open() {
    let (mut d, [a, c]) = Driver::with_streams(false, [0, 1]);
    let e = d.machine.create_event();
    d.work(a).unwrap();
    assert_eq!(d.record(e, a), BARE);
    assert_eq!(d.machine.query(e), Ok(Query::Open(point(a, 1))));
    d.work(c).unwrap();
    d.told();

    assert_eq!(d.wait(c, e), NOTHING);
    // c's own batch goes first: work issued before the wait is not held back by it.
    assert_eq!(d.told(), ["submit t0.b0 = 1", "submit t1.b0 = 1"]);
    assert_eq!(d.machine.query(e), Ok(Query::Pending(point(a, 1))));
    assert_eq!(d.machine.open_waits(c).collect::<Vec<_>>(), [(0, 1)]);
}

#[test]
fn p9_a_wait_keeps_the_generation_it_was_called_for() {
    let (mut d, [a, b, c]) = Driver::with_streams(true, [0, 0, 1]);
    let e = d.machine.create_event();
    d.record(e, a).unwrap();
    d.work(a).unwrap();
    assert_eq!(d.wait(b, e), Ok(Waited::Event(lease(1, 0, 0), slot(0, 1))));
    d.wait(c, e).unwrap();
    assert_eq!(d.record(e, a), set(lease(0, 1, 0), slot(1, 1)), "not the slot that b waits on");
    d.flush(a).unwrap();
    d.told();
    d.flush(c).unwrap();
    assert_eq!(d.told(), ["submit t2 = 1 after t0@1"]);
}

#[test]
fn a_wait_is_as_cheap_as_its_order_allows() {
    let (mut d, [a, b, c]) = Driver::with_streams(true, [0, 0, 1]);
    let e = d.machine.create_event();
    d.record(e, a).unwrap();
    // Nothing was issued on the queue since the set: a barrier orders no more than an event would.
    assert_eq!(d.wait(b, e), Ok(Waited::Barrier(lease(1, 0, 0))));
    assert_eq!(d.wait(c, e), NOTHING);
    assert_eq!(d.machine.open_waits(c).collect::<Vec<_>>(), [(0, 1)]);

    d.record(e, a).unwrap();
    d.work(b).unwrap();
    assert_eq!(d.wait(b, e), Ok(Waited::Event(lease(1, 0, 0), slot(1, 1))));
    assert_eq!(d.machine.open_batch(b), (Some(lease(1, 0, 0)), 1));
    assert_eq!(d.wait(b, e), NOTHING, "b follows this generation already");
    assert_eq!(d.machine.open_batch(b), (Some(lease(1, 0, 0)), 1));
    assert_eq!(d.wait(a, e), Ok(Waited::Event(lease(0, 2, 0), slot(1, 1))), "a does not");

    assert_eq!(d.wait(c, e), NOTHING);
    assert_eq!(d.machine.open_waits(c).collect::<Vec<_>>(), [(0, 2)], "the later point is enough");
    d.told();
    d.reached(a, 2).unwrap();
    assert_eq!(d.wait(b, e), NOTHING);
    assert_eq!(d.machine.open_waits(c).count(), 0, "what has passed is not waited for");
    assert_eq!(d.told(), NO_EFFECT);
}

#[test]
fn the_slot_of_the_current_generation_is_told_as_long_as_it_is_current() {
    let (mut d, [a]) = Driver::with_streams(true, [0]);
    let e = d.machine.create_event();
    assert_eq!(d.machine.recorded_slot(e), Ok(None), "never recorded");
    d.record(e, a).unwrap();
    assert_eq!(d.machine.recorded_slot(e), Ok(Some(slot(0, 1))));
    d.record(e, a).unwrap();
    assert_eq!(d.machine.recorded_slot(e), Ok(Some(slot(1, 1))), "the former one is superseded");
    d.flush(a).unwrap();
    d.reached(a, 1).unwrap();
    assert_eq!(d.machine.recorded_slot(e), Ok(Some(slot(1, 1))), "passed, and still current");
    d.machine.destroy_event(e).unwrap();
    assert_eq!(d.machine.recorded_slot(e), Err(Error::UnknownEvent(e)));
}

#[test]
fn without_device_events_every_wait_on_its_queue_is_a_barrier() {
    let (mut d, [a, b]) = Driver::with_streams(false, [0, 0]);
    let e = d.machine.create_event();
    d.work(a).unwrap();
    assert_eq!(d.record(e, a), BARE);
    d.work(a).unwrap();
    assert_eq!(d.wait(b, e), Ok(Waited::Barrier(lease(1, 0, 0))));
    assert_eq!(d.told(), ["allocate t0.b0", "submit t0.b0 = 1", "allocate t1.b0"]);
    assert_eq!(d.machine.slot_counts(), [0; 4]);
}

/// VUID-vkCmdSetEvent2-commandBuffer-cmdpool: a queue that only copies has no `VkEvent`s.
#[test]
fn a_queue_with_a_policy_of_its_own_follows_that() {
    let (mut d, [copies, also_copies, computes]) = Driver::with_streams(true, [1, 1, 0]);
    let (e, f) = (d.machine.create_event(), d.machine.create_event());
    assert_eq!([copies, computes].map(|stream| d.machine.queue(stream)), [Some(1), Some(0)]);
    d.machine.set_policy(1, Policy { events: false });
    d.work(copies).unwrap();
    assert_eq!(d.record(e, copies), BARE);
    assert_eq!(d.wait(also_copies, e), Ok(Waited::Barrier(lease(1, 0, 0))));
    d.work(computes).unwrap();
    assert_eq!(d.record(f, computes), set(lease(2, 0, 0), slot(0, 1)));
}

// The host waits -----------------------------------------------------------------------------------

#[test]
fn l11_an_idle_stream_is_synchronized_without_the_driver() {
    let (mut d, [a]) = Driver::with_streams(true, [0]);
    d.work(a).unwrap();
    assert_eq!(d.synchronize_stream(a), block((0, 0), point(a, 1)));
    d.reached(a, 1).unwrap();
    assert_eq!(d.told(), ["allocate t0.b0", "submit t0.b0 = 1", "wake 0"]);
    for _ in 0..3 {
        assert_eq!(d.synchronize_stream(a), Ok(Synchronize::Done));
        assert_eq!(d.flush(a), Ok(()));
    }
    assert_eq!(d.told(), NO_EFFECT);
}

#[test]
fn d2_w5_a_timeout_is_not_taken_as_done() {
    let (mut d, [a]) = Driver::with_streams(true, [0]);
    let e = d.machine.create_event();
    d.record(e, a).unwrap();
    let waiters = [(0, 0), (1, 0), (2, 0)];
    waiters.iter().for_each(|w| assert_eq!(d.synchronize(e), block(*w, point(a, 1))));
    assert_eq!(d.machine.waiter_count(), 3);
    d.told();

    // The middle one of three; a wake that went astray would show.
    assert_eq!(d.machine.timed_out(WaiterId::from((1, 0))), TimedOut::Forgotten);
    assert_eq!(d.machine.query(e), Ok(Query::Pending(point(a, 1))));
    assert_eq!(d.synchronize(e), block((1, 1), point(a, 1)));
    assert_eq!(d.machine.timed_out(WaiterId::from((1, 0))), TimedOut::AlreadyWoken, "its number has a new holder");
    assert_eq!(d.machine.timed_out(WaiterId::from((0, 0))), TimedOut::Forgotten);
    d.reached(a, 1).unwrap();
    assert_eq!(d.told(), ["wake 1", "wake 2"]);
    assert_eq!(d.machine.timed_out(WaiterId::from((2, 0))), TimedOut::AlreadyWoken);
    assert_eq!(d.machine.waiter_count(), 0);
}

#[test]
fn v3_an_older_value_reported_late_changes_nothing() {
    let (mut d, [a]) = Driver::with_streams(true, [0]);
    let e = d.machine.create_event();
    d.work(a).unwrap();
    d.flush(a).unwrap();
    d.record(e, a).unwrap();
    d.flush(a).unwrap();
    d.reached(a, 2).unwrap();
    let before = image(&d.machine);
    d.reached(a, 1).unwrap();
    assert_eq!(image(&d.machine), before);
    assert_eq!(d.machine.progress(a), Some((2, 2)));
    assert_eq!(d.machine.query(e), Ok(Query::Done));
}

#[test]
fn n1_r2_between_the_check_and_the_registration_nothing_fits() {
    let (mut d, [a]) = Driver::with_streams(true, [0]);
    d.work(a).unwrap();
    let newest = d.machine.newest(a).unwrap();
    let early = d.machine.watch(newest).unwrap();
    assert_eq!(early, Some(WaiterId::from((0, 0))), "the batch is still open");
    d.flush(a).unwrap();
    d.told();
    d.reached(a, 1).unwrap();
    assert_eq!(d.told(), ["wake 0"]);
    assert_eq!(d.machine.watch(newest), Ok(None), "too late to wait, so nobody waits");
    assert_eq!(d.machine.waiter_count(), 0);
}

#[test]
fn r5_the_value_is_published_before_anybody_wakes() {
    let (mut d, [a]) = Driver::with_streams(true, [0]);
    let e = d.machine.create_event();
    d.record(e, a).unwrap();
    d.synchronize(e).unwrap();
    let wake = Effect::Wake { waiter: WaiterId::from((0, 0)), lost: false };
    assert_eq!(d.machine.reached(a, 1), Ok(Step::First(wake)));
    assert_eq!(d.machine.query(e), Ok(Query::Done), "as the woken thread sees it");
    assert_eq!(d.machine.timed_out(WaiterId::from((0, 0))), TimedOut::AlreadyWoken);
    assert_eq!(d.machine.reached(a, 1), Ok(Step::Done(())));
}

#[test]
fn c2_bytes_behind_a_refused_fence_are_held_until_the_stream_has_run() {
    let (mut d, [a]) = Driver::with_streams(true, [0]);
    let fence = d.machine.create_event();
    d.work(a).unwrap();
    d.flush(a).unwrap();
    d.told();
    d.will_say([Reply::Refused]);
    assert_eq!(d.record(fence, a), BARE);
    assert_eq!(d.told(), ["allocate t0.b1: Refused"]);
    assert_eq!(d.machine.query(fence), Ok(Query::Pending(point(a, 1))));
    assert_eq!(d.synchronize(fence), block((0, 0), point(a, 1)));
    assert_eq!(d.told(), NO_EFFECT);
    d.reached(a, 1).unwrap();
    assert_eq!(d.told(), ["wake 0"]);
}

#[test]
fn p10_an_event_outlives_its_stream() {
    let (mut d, [a, c]) = Driver::with_streams(true, [0, 1]);
    let e = d.machine.create_event();
    d.record(e, a).unwrap();
    d.told();
    assert_eq!(d.destroy_stream(a), Ok(()));
    assert_eq!(d.told(), ["submit t0.b0 = 1"]);
    assert_eq!(d.synchronize(e), block((0, 0), point(a, 1)));
    assert_eq!(d.wait(c, e), NOTHING);
    assert_eq!(d.machine.open_waits(c).collect::<Vec<_>>(), [(0, 1)]);
    d.reached(a, 1).unwrap();
    assert_eq!(d.told(), ["wake 0"]);
    assert_eq!(d.machine.streams().collect::<Vec<_>>(), [c]);
    assert_eq!(d.synchronize(e), Ok(Synchronize::Done));

    // The next stream of the queue goes on where the timeline stands.
    let next = d.drive(|m| m.create_stream(0)).unwrap();
    assert_ne!(next, a);
    d.work(next).unwrap();
    d.flush(next).unwrap();
    assert_eq!(d.told(), ["begin t0.b0 lease 1", "submit t0.b0 = 2"]);
}

// Refusals -----------------------------------------------------------------------------------------

#[test]
fn k2_a_refused_submit_keeps_batch_value_waits_and_slots() {
    let (mut d, [a, c]) = Driver::with_streams(true, [0, 1]);
    let (e, f) = (d.machine.create_event(), d.machine.create_event());
    d.record(e, a).unwrap();
    d.wait(c, e).unwrap();
    d.record(f, c).unwrap();
    d.told();
    let before = image(&d.machine);

    let submit = Effect::Submit { stream: c, lease: Some(lease(1, 0, 0)), value: 1 };
    d.will_say([Reply::Refused]);
    assert_eq!(d.synchronize(f), Err(Error::Refused(submit)));
    // Of the whole state, only that the buffer was ended.
    assert_eq!(image(&d.machine), before.replace("ended: false", "ended: true"));
    assert_eq!(d.machine.query(f), Ok(Query::Open(point(c, 1))));
    assert_eq!(d.told(), ["submit t1.b0 = 1 after t0@1: Refused"]);

    // The same submit, before anything is added to a buffer that was ended.
    assert_eq!(d.work(c), Ok(lease(1, 1, 0)));
    assert_eq!(d.told(), ["submit t1.b0 = 1 after t0@1", "allocate t1.b1"]);
    assert_eq!(d.synchronize(f), block((0, 0), point(c, 1)));
}

#[test]
fn a10_an_event_whose_slot_is_refused_orders_all_the_same() {
    let (mut d, [a, b]) = Driver::with_streams(true, [0, 0]);
    let e = d.machine.create_event();
    d.work(a).unwrap();
    d.will_say([Reply::Refused]);
    assert_eq!(d.record(e, a), BARE);
    d.work(a).unwrap();
    assert_eq!(d.wait(b, e), Ok(Waited::Barrier(lease(1, 0, 0))));
    assert_eq!(d.told(), ["allocate t0.b0", "create slot 0: Refused", "submit t0.b0 = 1", "allocate t1.b0"]);
    assert_eq!(d.synchronize(e), block((0, 0), point(a, 1)));
    d.machine.destroy_event(e).unwrap();
    assert_eq!(d.machine.slot_counts(), [0; 4]);
    d.reached(a, 1).unwrap();

    // One refusal is not held against the next recording.
    let e = d.machine.create_event();
    assert_eq!(d.record(e, a), set(lease(0, 0, 1), slot(0, 1)));
}

#[test]
fn a_slot_whose_reset_is_refused_stays_free_and_is_reset_later() {
    let (mut d, [a]) = Driver::with_streams(true, [0]);
    let once = d.machine.create_event();
    d.record(once, a).unwrap();
    d.machine.destroy_event(once).unwrap();
    d.flush(a).unwrap();
    d.reached(a, 1).unwrap();
    d.told();

    let e = d.machine.create_event();
    d.will_say([Reply::Done, Reply::Refused]);
    assert_eq!(d.record(e, a), BARE);
    assert_eq!(d.told(), ["begin t0.b0 lease 1", "reset slot 0: Refused"]);
    assert_eq!(d.machine.query(e), Ok(Query::Open(point(a, 2))));
    assert_eq!(d.record(e, a), set(lease(0, 0, 1), slot(0, 2)));
    assert_eq!(d.told(), ["reset slot 0"]);
}

#[test]
fn a_wait_without_a_buffer_becomes_a_wait_for_the_point() {
    let (mut d, [a, b]) = Driver::with_streams(true, [0, 0]);
    let e = d.machine.create_event();
    d.record(e, a).unwrap();
    d.work(a).unwrap();
    d.told();
    d.will_say([Reply::Done, Reply::Refused]);
    assert_eq!(d.wait(b, e), NOTHING);
    d.work(b).unwrap();
    d.flush(b).unwrap();
    let submit = "submit t1.b0 = 1 after t0@1";
    assert_eq!(d.told(), ["submit t0.b0 = 1", "allocate t1.b0: Refused", "allocate t1.b0", submit]);
}

#[test]
fn a_stream_without_a_buffer_waits_for_its_own_open_recording() {
    let (mut d, [a, c]) = Driver::with_streams(false, [0, 1]);
    let (e, f) = (d.machine.create_event(), d.machine.create_event());
    d.work(a).unwrap();
    d.record(e, a).unwrap();
    d.wait(c, e).unwrap();
    d.record(f, c).unwrap(); // in a batch of waits alone
    d.told();
    d.will_say([Reply::Refused, Reply::Done, Reply::Refused]);
    assert_eq!(d.wait(c, f), NOTHING);
    assert_eq!(d.told(), ["allocate t1.b0: Refused", "submit t1 = 1 after t0@1", "allocate t1.b0: Refused"]);
    assert_eq!(d.machine.open_waits(c).collect::<Vec<_>>(), [(1, 1)]);
}

#[test]
fn what_has_no_fallback_is_refused_and_can_be_tried_again() {
    let mut d = Driver::new(true);
    d.will_say([Reply::Refused]);
    let refused = Error::Refused(Effect::CreateTimeline { timeline: 0, queue: 0 });
    assert_eq!(d.drive(|m| m.create_stream(0)), Err(refused));
    let a = d.drive(|m| m.create_stream(0)).unwrap();

    d.will_say([Reply::Refused]);
    let begin = Effect::Begin { stream: a, lease: lease(0, 0, 0), new: true };
    assert_eq!(d.work(a), Err(Error::Refused(begin)));
    assert_eq!(d.work(a), Ok(lease(0, 0, 0)));

    d.told();
    d.will_say([Reply::Refused]);
    let submit = Effect::Submit { stream: a, lease: Some(lease(0, 0, 0)), value: 1 };
    assert_eq!(d.destroy_stream(a), Err(Error::Refused(submit)));
    assert_eq!(d.destroy_stream(a), Ok(()), "it was not closed with work in hand");
    assert_eq!(d.told(), ["submit t0.b0 = 1: Refused", "submit t0.b0 = 1"]);
}

// Loss ---------------------------------------------------------------------------------------------

#[test]
fn g6_x1_after_loss_each_waiter_wakes_once_with_an_error() {
    let (mut d, [a, b]) = Driver::with_streams(true, [0, 1]);
    let (e, f) = (d.machine.create_event(), d.machine.create_event());
    d.record(e, a).unwrap();
    d.record(f, b).unwrap();
    d.synchronize(e).unwrap();
    d.synchronize(f).unwrap();
    d.synchronize(f).unwrap();
    d.told();
    d.reached(a, 1).unwrap();
    assert_eq!(d.told(), ["wake 0"]);

    assert!(!d.machine.is_lost());
    assert_eq!(d.lose(), Ok(()));
    assert!(d.machine.is_lost());
    assert_eq!(d.told(), ["wake 2, lost", "wake 1, lost"]);
    assert_eq!(d.synchronize(f), Err(Error::Lost));
    d.machine.destroy_event(f).unwrap();
    assert_eq!(d.reached(b, 1), Ok(()), "news that comes too late");
    assert_eq!(d.lose(), Ok(()));
    assert_eq!(d.told(), NO_EFFECT);
    assert_eq!(d.machine.timed_out(WaiterId::from((2, 0))), TimedOut::AlreadyWoken);
}

#[test]
fn x1_a_loss_in_the_middle_of_waking_tells_only_the_rest() {
    let (mut d, [a]) = Driver::with_streams(true, [0]);
    let e = d.machine.create_event();
    d.record(e, a).unwrap();
    d.synchronize(e).unwrap();
    d.synchronize(e).unwrap();
    let woken = Effect::Wake { waiter: WaiterId::from((1, 0)), lost: false };
    assert_eq!(d.machine.reached(a, 1), Ok(Step::First(woken)));
    d.told();
    d.lose().unwrap();
    assert_eq!(d.told(), ["wake 0, lost"]);
}

#[test]
fn x3_a_counter_beyond_every_promise_is_a_loss() {
    for value in [2, u64::MAX] {
        let (mut d, [a]) = Driver::with_streams(true, [0]);
        let e = d.machine.create_event();
        d.record(e, a).unwrap();
        d.synchronize(e).unwrap();
        d.told();
        assert_eq!(d.reached(a, value), Ok(()));
        assert_eq!(d.told(), ["wake 0, lost"]);
        assert_eq!(d.machine.query(e), Err(Error::Lost));
        assert_eq!(d.machine.progress(a), Some((1, 0)));
    }
}

#[test]
fn after_loss_every_call_fails_and_everything_can_be_destroyed() {
    let (mut d, [a, b, c]) = Driver::with_streams(true, [0, 0, 1]);
    let (e, f, never) = (d.machine.create_event(), d.machine.create_event(), d.machine.create_event());
    d.machine.set_companion(a, c).unwrap();
    d.record(e, a).unwrap();
    d.work(a).unwrap();
    d.wait(b, e).unwrap();
    d.record(f, b).unwrap();
    d.record(e, a).unwrap(); // its former slot is Pending in b's open batch
    d.work(c).unwrap();
    let waiter = d.machine.watch(point(b, 1)).unwrap();
    assert_eq!(waiter, Some(WaiterId::from((0, 0))));
    d.told();
    d.will_say([Reply::Lost]);
    assert_eq!(d.flush(b), Err(Error::Lost));
    d.lose().unwrap();
    assert_eq!(d.told(), ["submit t1.b0 = 1: Lost", "wake 0, lost"]);

    assert!(d.machine.is_lost());
    assert_eq!(d.drive(|m| m.create_stream(0)), Err(Error::Lost));
    assert_eq!(d.work(a), Err(Error::Lost));
    assert_eq!(d.flush(b), Err(Error::Lost));
    assert_eq!(d.record(e, a), Err(Error::Lost));
    assert_eq!(d.wait(b, e), Err(Error::Lost));
    assert_eq!(d.synchronize(never), Err(Error::Lost));
    assert_eq!(d.synchronize_stream(a), Err(Error::Lost));
    assert_eq!(d.machine.watch(point(b, 1)), Err(Error::Lost));

    [e, f, never].iter().for_each(|event| assert_eq!(d.machine.destroy_event(*event), Ok(())));
    assert_eq!(d.destroy_stream(b), Ok(()));
    assert_eq!(d.destroy_stream(a), Ok(()), "and c with it");
    assert_eq!(d.told(), NO_EFFECT);
    assert_eq!(d.machine.streams().count(), 0);
    assert_eq!(d.machine.waiter_count(), 0);
}

// Questions -----------------------------------------------------------------------------------------

/// What a runtime asks about streams that it does not name: whose news a counter is, and where a command would go.
#[test]
fn a_timeline_is_of_the_stream_that_has_it_until_it_has_drained() {
    let (mut d, [a, b]) = Driver::with_streams(true, [0, 1]);
    let timelines = [0, 1].map(|timeline| d.machine.stream_of(timeline));
    assert_eq!(timelines, [Some(a), Some(b)]);
    d.work(b).unwrap();
    d.destroy_stream(b).unwrap();
    assert_eq!(d.machine.stream_of(1), Some(b), "it drains");
    d.reached(b, 1).unwrap();
    assert_eq!(d.machine.stream_of(1), None);
    let successor = d.drive(|m| m.create_stream(1)).unwrap();
    assert_eq!(d.machine.stream_of(1), Some(successor));
}

#[test]
fn the_next_command_goes_into_the_open_buffer_unless_that_was_ended() {
    let (mut d, [a, b]) = Driver::with_streams(true, [0, 0]);
    d.work(a).unwrap();
    d.work(b).unwrap();
    assert_eq!(d.machine.open_lease(b), Some(lease(1, 0, 0)));
    d.will_say([Reply::Refused]);
    d.flush(b).unwrap_err();
    assert_eq!(d.machine.open_lease(b), None, "the refused batch goes first");
    assert_eq!(d.machine.open_batch(b), (Some(lease(1, 0, 0)), 0), "and is still there");
    d.flush(b).unwrap();
    assert_eq!((d.machine.open_lease(b), d.machine.open_batch(b)), (None, (None, 0)));
}

// Callers' mistakes --------------------------------------------------------------------------------

#[test]
fn w2_a_value_belongs_to_whoever_submits_it() {
    let (mut d, [a]) = Driver::with_streams(true, [0]);
    d.work(a).unwrap();
    let submit = Effect::Submit { stream: a, lease: Some(lease(0, 0, 0)), value: 1 };
    assert_eq!(d.machine.flush(a), Ok(Step::First(submit)));
    assert_eq!(d.machine.flush(a), Ok(Step::First(submit)), "a value that was not submitted is not consumed");
    assert_eq!(d.machine.progress(a), Some((0, 0)));
    assert_eq!(d.machine.reply(submit, Reply::Done), Ok(()));
    assert_eq!(d.machine.progress(a), Some((1, 0)));
    unexpected(&mut d.machine, submit);
}

#[test]
fn k3_a_reply_that_was_not_asked_for_is_an_error() {
    let (mut d, [a]) = Driver::with_streams(true, [0]);
    let e = d.machine.create_event();
    d.record(e, a).unwrap();
    d.flush(a).unwrap();
    // The slot is recorded, then superseded and in flight: never one to reset.
    unexpected(&mut d.machine, Effect::ResetSlot { slot: slot(0, 1) });
    d.machine.destroy_event(e).unwrap();
    unexpected(&mut d.machine, Effect::ResetSlot { slot: slot(0, 1) });
    unexpected(&mut d.machine, Effect::CreateSlot { slot: slot(0, 0) });
    unexpected(&mut d.machine, Effect::CreateTimeline { timeline: 0, queue: 0 });
    unexpected(&mut d.machine, Effect::Begin { stream: a, lease: lease(0, 0, 0), new: true });
    unexpected(&mut d.machine, Effect::Submit { stream: a, lease: Some(lease(0, 0, 0)), value: 1 });
}

/// The host would block on a value that no batch signals.
#[test]
fn a_submit_that_was_not_asked_for_promises_no_value() {
    let (mut d, [a]) = Driver::with_streams(true, [0]);
    unexpected(&mut d.machine, Effect::Submit { stream: a, lease: None, value: 1 });
    assert_eq!(d.synchronize_stream(a), Ok(Synchronize::Done));
}

/// The commands of the open batch would never be submitted.
#[test]
fn a_begin_that_was_not_asked_for_replaces_no_open_buffer() {
    let (mut d, [a]) = Driver::with_streams(true, [0]);
    d.work(a).unwrap();
    unexpected(&mut d.machine, Effect::Begin { stream: a, lease: lease(0, 1, 0), new: true });
    assert_eq!(d.work(a), Ok(lease(0, 0, 0)));
}

fn unexpected(machine: &mut Machine, effect: Effect) {
    for reply in [Reply::Done, Reply::Refused] {
        let before = image(machine);
        assert_eq!(machine.reply(effect, reply), Err(Error::UnexpectedReply(effect)), "{reply:?}");
        assert_eq!(image(machine), before, "{effect:?} changed the state");
    }
}

#[test]
fn a_handle_kept_too_long_names_nothing() {
    let (mut d, [a, b]) = Driver::with_streams(true, [0, 0]);
    let (e, f) = (d.machine.create_event(), d.machine.create_event());
    d.record(e, b).unwrap();
    d.work(a).unwrap();
    d.destroy_stream(a).unwrap();
    assert_eq!(every_stream_call(&mut d, a, e), [Err(Error::UnknownStream(a)); 9], "while it drains");
    d.reached(a, 1).unwrap();
    assert_eq!(every_stream_call(&mut d, a, e), [Err(Error::UnknownStream(a)); 9], "when it is gone");
    let successor = d.drive(|m| m.create_stream(0)).unwrap();
    assert_eq!(successor.index, a.index);
    assert_eq!(every_stream_call(&mut d, a, e), [Err(Error::UnknownStream(a)); 9], "when another has its place");

    d.machine.destroy_event(f).unwrap();
    assert_eq!(every_event_call(&mut d, b, f), [Err(Error::UnknownEvent(f)); 5]);
    let successor = d.machine.create_event();
    assert_eq!(successor.index, f.index);
    assert_eq!(every_event_call(&mut d, b, f), [Err(Error::UnknownEvent(f)); 5]);
}

fn every_stream_call(d: &mut Driver, s: StreamId, e: EventId) -> [Result<(), Error>; 9] {
    let other = d.machine.streams().find(|other| *other != s).expect("another stream lives");
    let before = image(&d.machine);
    let calls = [
        d.work(s).map(drop),
        d.flush(s),
        d.record(e, s).map(drop),
        d.wait(s, e).map(drop),
        d.synchronize_stream(s).map(drop),
        d.destroy_stream(s),
        d.machine.newest(s).map(drop),
        d.machine.set_companion(s, other),
        d.machine.set_companion(other, s),
    ];
    assert_eq!(image(&d.machine), before);
    calls
}

fn every_event_call(d: &mut Driver, s: StreamId, e: EventId) -> [Result<(), Error>; 5] {
    let before = image(&d.machine);
    let calls = [
        d.record(e, s).map(drop),
        d.wait(s, e).map(drop),
        d.synchronize(e).map(drop),
        d.machine.query(e).map(drop),
        d.machine.destroy_event(e),
    ];
    assert_eq!(image(&d.machine), before);
    calls
}

// Companions ---------------------------------------------------------------------------------------

#[test]
fn a_recording_covers_the_companions_open_work() {
    for events in [true, false] {
        let (mut d, [compute, transfer, reader]) = Driver::with_streams(events, [0, 1, 2]);
        let e = d.machine.create_event();
        d.machine.set_companion(compute, transfer).unwrap();
        d.work(transfer).unwrap();
        d.told();
        d.record(e, compute).unwrap();
        assert_eq!(d.told()[0], "submit t1.b0 = 1");
        assert_eq!(d.machine.open_waits(compute).collect::<Vec<_>>(), [(1, 1)]);
        assert_eq!(d.wait(reader, e), NOTHING);
        d.flush(reader).unwrap();
        let buffer = if events { ".b0" } else { "" };
        assert_eq!(d.told(), [format!("submit t0{buffer} = 1 after t1@1"), "submit t2 = 1 after t0@1".into()]);
    }
}

#[test]
fn a_wait_holds_the_companion_too() {
    let (mut d, [a, compute, transfer]) = Driver::with_streams(true, [0, 0, 1]);
    let e = d.machine.create_event();
    d.machine.set_companion(compute, transfer).unwrap();
    d.work(transfer).unwrap();
    d.record(e, a).unwrap();
    d.told();
    assert_eq!(d.wait(compute, e), Ok(Waited::Barrier(lease(1, 0, 0))));
    d.work(transfer).unwrap();
    d.flush(transfer).unwrap();
    assert_eq!(
        d.told(),
        ["submit t0.b0 = 1", "submit t2.b0 = 1", "allocate t1.b0", "allocate t2.b1", "submit t2.b1 = 2 after t0@1"]
    );
}

#[test]
fn synchronizing_a_stream_covers_its_companion() {
    let (mut d, [compute, transfer]) = Driver::with_streams(true, [0, 1]);
    d.machine.set_companion(compute, transfer).unwrap();
    d.work(transfer).unwrap();
    d.told();
    assert_eq!(d.synchronize_stream(compute), block((0, 0), point(compute, 1)));
    assert_eq!(d.told(), ["submit t1.b0 = 1", "submit t0 = 1 after t1@1"]);
}

#[test]
fn a_stream_takes_its_companion_with_it() {
    let (mut d, [compute, transfer]) = Driver::with_streams(true, [0, 1]);
    d.machine.set_companion(compute, transfer).unwrap();
    d.work(compute).unwrap();
    d.work(transfer).unwrap();
    d.told();
    d.destroy_stream(compute).unwrap();
    assert_eq!(d.told(), ["submit t0.b0 = 1", "submit t1.b0 = 1"]);
    assert_eq!(d.work(transfer), Err(Error::UnknownStream(transfer)));
    d.reached(compute, 1).unwrap();
    d.reached(transfer, 1).unwrap();
    assert_eq!(d.machine.streams().count(), 0);
}

#[test]
fn a_companion_is_not_destroyed_alone() {
    let (mut d, [compute, transfer]) = Driver::with_streams(true, [0, 1]);
    d.machine.set_companion(compute, transfer).unwrap();
    d.work(transfer).unwrap();
    let before = image(&d.machine);
    assert_eq!(d.destroy_stream(transfer), Err(Error::BadCompanion(transfer)));
    assert_eq!(image(&d.machine), before);
}

#[test]
fn a_companion_is_a_second_stream_without_one() {
    let (mut d, [a, b, c, x]) = Driver::with_streams(true, [0, 1, 1, 0]);
    d.machine.set_companion(a, b).unwrap();
    let before = image(&d.machine);
    for (stream, companion, wrong) in [(c, c, c), (c, b, b), (c, a, a), (b, c, b), (a, c, a)] {
        assert_eq!(d.machine.set_companion(stream, companion), Err(Error::BadCompanion(wrong)), "{stream:?}");
    }
    assert_eq!(image(&d.machine), before);
    d.destroy_stream(a).unwrap();
    assert_eq!(d.machine.set_companion(x, c), Ok(()));
}

/// A point is a promise of its stream; nobody can wait for one that was not made.
#[test]
fn a_point_that_was_never_promised_wakes_nobody() {
    let (mut d, [a]) = Driver::with_streams(true, [0]);
    assert_eq!(d.machine.watch(point(a, 1)), Err(Error::NeverPromised(point(a, 1))));
    d.work(a).unwrap();
    assert!(d.machine.watch(point(a, 1)).unwrap().is_some());
    assert_eq!(d.machine.watch(point(a, 2)), Err(Error::NeverPromised(point(a, 2))));
}
