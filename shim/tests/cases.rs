//! The cases of the field that are legal Vulkan, by the names of their reports: what real backends got wrong.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{DEVICE_LOST, OUT_OF_MEMORY, run, value};
use fencepost_vulkan::{Device, DropQueue, Error, Fence, FlushPolicy, Placement};

#[test]
fn l1_an_accepted_wait_is_never_dropped() {
    run(|b| {
        for [s1, s2] in b.pairs() {
            let (e, a, out, word) = (b.event(), b.buffer(), b.buffer(), b.word());
            b.produce(&s1, &a, word);
            b.record(&e, &s1);
            s1.flush().unwrap();
            e.wait(&s2).unwrap();
            s2.flush().unwrap(); // The wait's own batch is nothing but the wait.
            b.consume(&s2, &a, &out);
            s2.synchronize().unwrap();
            assert_eq!(value(&out), word);
        }
    });
}

#[test]
fn l2_a_buffer_leased_again_is_not_reset_by_an_event() {
    run(|b| {
        let (s, e) = (b.stream(), b.event());
        let (a, c) = (b.buffer(), b.buffer());
        let (first, second) = (b.word(), b.word());
        b.produce(&s, &a, first);
        b.record(&e, &s);
        s.synchronize().unwrap();
        b.produce(&s, &c, second); // Into the same command buffer.
        s.flush().unwrap();
        e.synchronize().unwrap();
        s.synchronize().unwrap();
        assert_eq!([value(&a), value(&c)], [first, second]);
    });
}

#[test]
fn l3_an_event_is_recorded_again_under_a_submitted_wait() {
    run(|b| {
        for [s1, s2] in b.pairs() {
            let e = b.event();
            let (a, out, word) = (b.buffer(), b.buffer(), b.word());
            b.produce(&s1, &a, word);
            b.record(&e, &s1);
            e.wait(&s2).unwrap();
            b.consume(&s2, &a, &out);
            s2.flush().unwrap();
            for _ in 0..4 {
                b.record(&e, &s1);
                s1.flush().unwrap();
            }
            e.synchronize().unwrap();
            s2.synchronize().unwrap();
            assert_eq!(value(&out), word);
        }
    });
}

/// Hangs ggml-vulkan of July 2026.
#[test]
fn l3b_an_event_is_recorded_again_and_synchronized_under_an_open_wait() {
    run(|b| {
        for [s1, s2] in b.pairs() {
            let e = b.event();
            let (a, out, word) = (b.buffer(), b.buffer(), b.word());
            b.produce(&s1, &a, word);
            b.record(&e, &s1);
            e.wait(&s2).unwrap(); // Stays open.
            b.record(&e, &s1);
            e.synchronize().unwrap();
            b.record(&e, &s1);
            b.consume(&s2, &a, &out);
            s2.flush().unwrap();
            s2.synchronize().unwrap();
            assert_eq!(value(&out), word);
        }
    });
}

#[test]
fn l4_work_follows_a_wait_in_one_buffer() {
    run(|b| {
        for [s1, s2] in b.pairs() {
            let e = b.event();
            let (a, c, out, word) = (b.buffer(), b.buffer(), b.buffer(), b.word());
            b.produce(&s1, &a, word);
            b.record(&e, &s1);
            b.produce(&s2, &c, !word);
            e.wait(&s2).unwrap();
            b.consume(&s2, &a, &out);
            s2.synchronize().unwrap();
            assert_eq!([value(&c), value(&out)], [!word, word]);
        }
    });
}

#[test]
fn l5_an_event_never_recorded_is_no_obstacle() {
    run(|b| {
        b.event().synchronize().unwrap();
        assert!(b.event().query().unwrap());
        let (s, out, word) = (b.stream(), b.buffer(), b.word());
        b.event().wait(&s).unwrap();
        b.produce(&s, &out, word);
        s.synchronize().unwrap();
        assert_eq!(value(&out), word);
    });
}

#[test]
fn l6_an_upload_is_ordered_whoever_flushes_first() {
    run(|b| {
        for compute_first in [true, false] {
            let upload = b.on_queue(b.device.queues().len() as u32 - 1);
            let compute = b.on_queue(0);
            let (staging, data, out) = (b.buffer(), b.buffer(), b.buffer());
            let word = b.word();
            staging.write(0, &word.to_le_bytes().repeat(4)).unwrap();
            b.copy(&upload, &staging, &data);
            let uploaded = b.event();
            uploaded.record(&upload).unwrap();
            uploaded.wait(&compute).unwrap();
            b.consume(&compute, &data, &out);
            let order = if compute_first { [&compute, &upload] } else { [&upload, &compute] };
            order.into_iter().for_each(|s| s.flush().unwrap());
            compute.synchronize().unwrap();
            assert_eq!(value(&out), word);
        }
    });
}

#[test]
fn l8_a_host_buffer_is_kept_until_the_device_has_read_it() {
    run(|b| {
        let (s, out, word) = (b.stream(), b.buffer(), b.word());
        let drops = DropQueue::new(&b.device, FlushPolicy::default());
        let staging = b.buffer();
        staging.write(0, &word.to_le_bytes().repeat(4)).unwrap();
        b.copy(&s, &staging, &out);
        drops.push(staging, 16, &[&s]).map_err(|(_, error)| error).unwrap();
        assert_eq!(drops.held(), (1, 16), "the batch is open");
        s.synchronize().unwrap();
        assert_eq!(drops.held(), (0, 0));
        assert_eq!(value(&out), word);
    });
}

#[test]
fn l9_a_recording_covers_batches_before_its_own() {
    run(|b| {
        for [s1, s2] in b.pairs() {
            let e = b.event();
            let (a, out, word) = (b.buffer(), b.buffer(), b.word());
            b.produce(&s1, &a, word);
            s1.flush().unwrap();
            b.record(&e, &s1);
            s1.flush().unwrap();
            e.wait(&s2).unwrap();
            b.consume(&s2, &a, &out);
            s2.synchronize().unwrap();
            assert_eq!(value(&out), word);
        }
    });
}

#[test]
fn l11_an_idle_stream_costs_no_driver_call() {
    run(|b| {
        let s = b.stream();
        b.produce(&s, &b.buffer(), 1);
        s.synchronize().unwrap();
        let calls = b.fault.calls();
        (0..100).for_each(|_| s.synchronize().unwrap());
        assert_eq!(b.fault.calls(), calls);
    });
}

#[test]
fn a1_an_event_is_dropped_under_an_open_wait() {
    run(|b| {
        let (s, e, a, out, word) = (b.stream(), b.event(), b.buffer(), b.buffer(), b.word());
        b.produce(&s, &a, word);
        b.record(&e, &s);
        b.produce(&s, &b.buffer(), 1);
        e.wait(&s).unwrap();
        drop(e);
        b.consume(&s, &a, &out);
        s.synchronize().unwrap();
        assert_eq!(value(&out), word);
    });
}

#[test]
fn a4_events_made_and_dropped_for_ever_need_few_slots() {
    run(|b| {
        let s = b.stream();
        for _ in 0..200 {
            let e = b.event();
            b.record(&e, &s);
            drop(e);
            s.flush().unwrap();
            // Nobody synchronizes; a device that never ends anything would be another matter.
            std::thread::sleep(Duration::from_micros(if b.is_simulated { 0 } else { 200 }));
        }
        let (made, _) = b.device.slot_count().unwrap();
        assert!(made < 150, "{made} slots for one event at a time");
    });
}

#[test]
fn a6_a_submit_that_loses_the_device_deadlocks_nobody() {
    run(|b| {
        let [s1, s2] = [b.stream(), b.stream()];
        let e = b.event();
        b.produce(&s1, &b.buffer(), 1);
        b.record(&e, &s1);
        b.fault.after(0, DEVICE_LOST);
        assert!(matches!(s1.flush(), Err(Error::Lost(_))));
        assert!(matches!(e.synchronize(), Err(Error::Lost(_))));
        assert!(matches!(s2.synchronize(), Err(Error::Lost(_))));
        assert!(b.device.is_lost());
    });
}

#[test]
fn a10_an_event_that_cannot_be_made_still_orders() {
    run(|b| {
        for [s1, s2] in b.pairs() {
            let (e, a, out, word) = (b.event(), b.buffer(), b.buffer(), b.word());
            b.produce(&s1, &a, word);
            b.fault.next("vkCreateEvent", OUT_OF_MEMORY); // Where the machine makes one.
            b.record(&e, &s1);
            b.fault.clear();
            e.wait(&s2).unwrap();
            b.consume(&s2, &a, &out);
            s2.synchronize().unwrap();
            drop(e);
            assert_eq!(value(&out), word);
        }
    });
}

#[test]
fn a12_a_recycled_event_stands_for_its_last_recording() {
    run(|b| {
        for [s1, s2] in b.pairs() {
            let (a, out, word) = (b.buffer(), b.buffer(), b.word());
            let old = b.event();
            b.produce(&s1, &b.buffer(), 1);
            old.record(&s1).unwrap();
            old.synchronize().unwrap();
            drop(old);
            let e = b.event(); // With what the old one left.
            b.produce(&s1, &a, word);
            b.record(&e, &s1);
            e.wait(&s2).unwrap();
            b.consume(&s2, &a, &out);
            s2.synchronize().unwrap();
            assert_eq!(value(&out), word);
        }
    });
}

#[test]
fn d2_w5_a_timeout_is_not_done() {
    common::on_simulated(|b| {
        let (s, other, gate) = (b.stream(), Device::simulated(1, Default::default()), b.event());
        // Held back by another device, which does not submit until it is asked to.
        let held = other.stream(Placement::default()).unwrap();
        let e = other.event().unwrap();
        held.record(|_| ()).unwrap();
        e.record(&held).unwrap();
        e.wait(&s).unwrap();
        b.produce(&s, &b.buffer(), 1);
        gate.record(&s).unwrap();
        while !gate.synchronize_timeout(Duration::ZERO).unwrap() {}
        assert!(gate.query().unwrap());
    });
}

#[test]
fn v5_a_stream_is_dropped_under_a_queued_wait() {
    run(|b| {
        for [s1, s2] in b.pairs() {
            let (e, a, out, word) = (b.event(), b.buffer(), b.buffer(), b.word());
            b.produce(&s1, &a, word);
            b.record(&e, &s1);
            e.wait(&s2).unwrap();
            b.consume(&s2, &a, &out);
            s2.flush().unwrap();
            drop((s1, e));
            s2.synchronize().unwrap();
            assert_eq!(value(&out), word);
        }
    });
}

#[test]
fn w2_threads_submit_in_the_order_of_their_values() {
    run(|b| {
        let (s, rounds) = (b.stream(), if b.is_simulated { 20 } else { 50 });
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let (out, word) = (b.buffer(), b.word());
                        b.produce(&s, &out, word);
                        s.synchronize().unwrap();
                        assert_eq!(value(&out), word);
                    }
                });
            }
        });
    });
}

#[test]
fn w4_a_dropped_stream_still_runs_what_it_was_given() {
    run(|b| {
        let (s, e, out, word) = (b.stream(), b.event(), b.buffer(), b.word());
        b.produce(&s, &out, word);
        b.record(&e, &s);
        drop(s);
        drop(b.stream()); // May take the place of the first.
        e.synchronize().unwrap();
        assert_eq!(value(&out), word);
    });
}

#[test]
fn k2_a_refused_submit_leaves_no_promise_behind() {
    run(|b| {
        let (s, e, out, word) = (b.stream(), b.event(), b.buffer(), b.word());
        b.produce(&s, &out, word);
        b.record(&e, &s);
        b.fault.after(0, OUT_OF_MEMORY);
        assert!(matches!(s.flush(), Err(Error::Refused(_))));
        assert!(!e.query().unwrap());
        e.synchronize().unwrap(); // Submits again.
        assert_eq!(value(&out), word);
    });
}

#[test]
fn n1_r2_many_threads_wait_for_one_point() {
    run(|b| {
        for _ in 0..if b.is_simulated { 1 } else { 5 } {
            let (s, e, out, word) = (b.stream(), b.event(), b.buffer(), b.word());
            b.produce(&s, &out, word);
            b.record(&e, &s);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        e.synchronize().unwrap();
                        assert_eq!(value(&out), word);
                    });
                }
                scope.spawn(|| while !e.query().unwrap() {});
            });
        }
    });
}

#[test]
fn n3_a_fence_is_of_the_batch_that_carries_it() {
    run(|b| {
        let (s, a, out, word) = (b.stream(), b.buffer(), b.buffer(), b.word());
        b.produce(&s, &a, word);
        s.synchronize().unwrap(); // This value has passed; the fence's has not.
        b.produce(&s, &out, word);
        Fence::new(&s).wait_sync().unwrap();
        assert_eq!([value(&a), value(&out)], [word, word]);
    });
}

#[test]
fn p1_an_event_outlives_the_thread_that_made_it() {
    run(|b| {
        let (e, out, word) = std::thread::scope(|scope| {
            let made = scope.spawn(|| {
                let (s, e, out, word) = (b.stream(), b.event(), b.buffer(), b.word());
                b.produce(&s, &out, word);
                b.record(&e, &s);
                (e, out, word)
            });
            made.join().unwrap()
        });
        e.synchronize().unwrap();
        assert!(e.query().unwrap());
        assert_eq!(value(&out), word);
    });
}

#[test]
fn p5_what_is_given_up_before_its_submit_is_not_taken_too_soon() {
    run(|b| {
        for [s1, s2] in b.pairs() {
            let (a, out, word) = (b.buffer(), b.buffer(), b.word());
            let e = b.event();
            b.produce(&s1, &a, word);
            e.record(&s1).unwrap();
            e.wait(&s2).unwrap();
            drop(e);
            let other = b.event(); // Recorded and dropped while its set is in an open batch.
            other.record(&s2).unwrap();
            drop(other);
            let third = b.event();
            b.consume(&s2, &a, &out);
            third.record(&s2).unwrap();
            third.synchronize().unwrap();
            assert_eq!(value(&out), word);
        }
    });
}

#[test]
fn p6_a_wait_before_the_recording_orders_nothing() {
    run(|b| {
        let [s1, s2] = [b.stream(), b.stream()];
        let (e, out, word) = (b.event(), b.buffer(), b.word());
        e.wait(&s2).unwrap();
        b.produce(&s1, &b.buffer(), 1);
        b.record(&e, &s1);
        b.produce(&s2, &out, word);
        s2.synchronize().unwrap();
        s1.synchronize().unwrap();
        assert_eq!(value(&out), word);
    });
}

#[test]
fn p7_a_recording_on_another_device_names_both() {
    run(|b| {
        let other = Device::simulated(1, Default::default());
        let error = other.event().unwrap().record(&b.stream()).unwrap_err();
        assert!(matches!(&error, Error::OtherDevice { owner, user, .. } if owner != user), "{error}");
    });
}

#[test]
fn p9_x2_a_wait_keeps_the_recording_it_was_made_for() {
    run(|b| {
        for [s1, s2] in b.pairs() {
            let e = b.event();
            let (a, later, out, word) = (b.buffer(), b.buffer(), b.buffer(), b.word());
            b.produce(&s1, &a, word);
            b.record(&e, &s1);
            e.wait(&s2).unwrap();
            b.consume(&s2, &a, &out);
            b.produce(&s1, &later, !word);
            b.record(&e, &s1);
            s2.flush().unwrap();
            s1.flush().unwrap();
            s2.synchronize().unwrap();
            e.synchronize().unwrap();
            assert_eq!([value(&out), value(&later)], [word, !word]);
        }
    });
}

#[test]
fn p10_an_event_outlives_its_stream() {
    run(|b| {
        let (e, out, word) = (b.event(), b.buffer(), b.word());
        let s = b.stream();
        b.produce(&s, &out, word);
        b.record(&e, &s);
        drop(s);
        e.synchronize().unwrap();
        assert_eq!(value(&out), word);
    });
}

#[test]
fn p11_a_slot_comes_back_only_when_its_frontier_has_passed() {
    run(|b| {
        for [s1, s2] in b.pairs() {
            let (a, out, word) = (b.buffer(), b.buffer(), b.word());
            let e = b.event();
            b.produce(&s1, &a, word);
            b.record(&e, &s1);
            e.wait(&s2).unwrap();
            b.consume(&s2, &a, &out);
            drop(e);
            s2.flush().unwrap();
            for _ in 0..8 {
                let e = b.event();
                b.record(&e, &s1);
                s1.flush().unwrap();
            }
            s2.synchronize().unwrap();
            assert_eq!(value(&out), word);
        }
    });
}

#[test]
fn r4_values_are_dropped_outside_of_every_lock() {
    struct Calls(Device, Arc<AtomicBool>);
    impl Drop for Calls {
        fn drop(&mut self) {
            let s = self.0.stream(Placement::default()).expect("no lock is held here");
            s.flush().expect("no lock is held here");
            self.1.store(true, Ordering::Relaxed);
        }
    }
    run(|b| {
        let (s, dropped) = (b.stream(), Arc::new(AtomicBool::new(false)));
        let drops = DropQueue::new(&b.device, FlushPolicy::default());
        b.produce(&s, &b.buffer(), 1);
        drops.push(Calls(b.device.clone(), dropped.clone()), 1, &[&s]).map_err(|(_, error)| error).unwrap();
        s.synchronize().unwrap();
        assert!(dropped.load(Ordering::Relaxed));
    });
}

#[test]
fn c2_bytes_wait_for_their_stream_when_a_flush_is_refused() {
    run(|b| {
        let s = b.stream();
        let drops = DropQueue::new(&b.device, FlushPolicy { count_max: 2, bytes_max: 1 << 30 });
        b.produce(&s, &b.buffer(), 1);
        drops.push((), 10, &[&s]).map_err(|(_, error)| error).unwrap();
        b.fault.after(0, OUT_OF_MEMORY);
        drops.push((), 20, &[&s]).map_err(|(_, error)| error).unwrap();
        assert_eq!(drops.held(), (2, 30), "the flush was refused");
        s.synchronize().unwrap();
        assert_eq!(drops.held(), (0, 0));
    });
}

#[test]
fn g6_x1_x3_loss_wakes_every_waiter_once_with_an_error() {
    run(|b| {
        let (s, e) = (b.stream(), b.event());
        b.produce(&s, &b.buffer(), 1);
        b.record(&e, &s);
        s.flush().unwrap();
        b.fault.after(3, DEVICE_LOST);
        let ended = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| e.synchronize())).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect::<Vec<_>>()
        });
        // Whoever was back before the loss saw the end of the work.
        assert!(ended.iter().all(|r| matches!(r, Ok(()) | Err(Error::Lost(_)))), "{ended:?}");
        while !b.device.is_lost() {
            let _ = s.flush();
            let _ = b.device.buffer(4);
            let _ = s.record(|_| ());
        }
        assert!(matches!(e.synchronize(), Err(Error::Lost(_))));
    });
}

#[test]
fn x7_a_batch_of_waits_alone() {
    run(|b| {
        for [s1, s2] in b.pairs() {
            let e = b.event();
            let (out, word) = (b.buffer(), b.word());
            b.produce(&s1, &out, word);
            b.record(&e, &s1);
            e.wait(&s2).unwrap();
            s2.synchronize().unwrap();
            assert_eq!(value(&out), word, "the wait makes the work visible to the host");
        }
    });
}

#[test]
fn a_fence_is_waited_for_by_host_or_stream() {
    run(|b| {
        for [s1, s2] in b.pairs() {
            let (a, out, word) = (b.buffer(), b.buffer(), b.word());
            b.produce(&s1, &a, word);
            let fence = Fence::new(&s1);
            fence.wait_async(&s2).unwrap();
            b.consume(&s2, &a, &out);
            Fence::new(&s2).wait_sync().unwrap();
            assert_eq!(value(&out), word);
        }
    });
}
