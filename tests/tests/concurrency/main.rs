//! Threads that share a device, under schedules that shuttle draws from a seed: no deadlock, each waiter is woken once and
//! told what is so, order is kept, everything drops.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test --release -p fencepost-tests --test concurrency`, as `tests/run concurrency` does.
//! The seeds are fixed. A failure prints its schedule; `SCHEDULE=...` with the name of the one test runs that again.
//!
//! The device is the simulated GPU. Time is the scheduler's: a wait that has a time may end at any moment.
#![cfg(shuttle)]

mod history;
mod program;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fencepost_tests::budget;
use fencepost_tests::reference::Works;
use fencepost_vulkan::ash::vk;
use fencepost_vulkan::{Device, Error, Options, Placement, Stream, Tracer};
use shuttle::scheduler::{
    PctScheduler, RandomScheduler, ReplayScheduler, Scheduler, UncontrolledNondeterminismCheckScheduler,
};
use shuttle::sync::mpsc;
use shuttle::thread::{self, JoinHandle};
use shuttle::{Config, MaxSteps, Runner};

use self::program::{Marks, options, simulated};

const SEED: u64 = 20_518;
/// Switches between threads that PCT forces in a run.
const PCT_DEPTHS: [usize; 2] = [2, 4];
/// A run that takes more steps than this goes on for ever.
const STEPS_MAX: usize = 200_000;

/// Runs a story under so many schedules of each scheduler.
fn explore(name: &str, schedules: usize, story: impl Fn() + Send + Sync + 'static) {
    let (story, started) = (Arc::new(story), Instant::now());
    let run = |scheduler: Box<dyn Scheduler + Send>| {
        let mut config = Config::new();
        (config.max_steps, config.stack_size) = (MaxSteps::FailAfter(STEPS_MAX), 1 << 18);
        config.silence_warnings = true;
        let story = story.clone();
        Runner::new(scheduler, config).run(move || story())
    };
    if let Ok(schedule) = std::env::var("SCHEDULE") {
        run(Box::new(ReplayScheduler::new_from_encoded(&schedule)));
        return;
    }
    let random = RandomScheduler::new_from_seed(SEED, schedules);
    let pct = PCT_DEPTHS.map(|depth| PctScheduler::new_from_seed(SEED, depth, schedules));
    let count = run(Box::new(random)) + pct.map(|pct| run(Box::new(pct))).iter().sum::<usize>();
    println!("counts: concurrency: {name}: {count} schedules, {} s", started.elapsed().as_secs());
    assert_eq!(count, schedules * (1 + PCT_DEPTHS.len()));
    // Nothing but the schedule decides what happens, or a failure could not be run again.
    let twice = UncontrolledNondeterminismCheckScheduler::new(RandomScheduler::new_from_seed(SEED, schedules / 20));
    run(Box::new(twice));
}

fn device() -> Device {
    Device::with_driver(simulated().0, options(true))
}

fn stream(device: &Device, queue: u32) -> Stream {
    device.stream(Placement::Queue(queue)).expect("nothing fails yet")
}

fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    let threads: Vec<_> = threads.into_iter().collect(); // All run before one is waited for.
    threads.into_iter().for_each(|thread| thread.join().expect("a panic ends the test"));
}

#[test]
fn random_calls() {
    for (threads, calls, events, with_loss) in
        [(2, 8, true, false), (3, 10, true, false), (3, 8, false, false), (3, 8, true, true), (4, 6, true, true)]
    {
        let name = format!("{threads} threads of {calls} calls, events {events}, loss {with_loss}");
        explore(&name, budget::count(6_000, 300_000), move || program::run(threads, calls, events, with_loss));
    }
}

/// Each of several threads that wait for one recording is woken, and finds it done.
#[test]
fn many_wait_for_one_recording() {
    explore("many wait for one recording", budget::count(5_000, 100_000), || {
        let device = device();
        let (marks, stream, event) = (Marks::new(&device), stream(&device, 0), device.event().unwrap());
        marks.work(&stream, 0, &[]).unwrap();
        event.record(&stream).unwrap();
        let shared = Arc::new((marks, stream, event));
        join((0..4).map(|number| {
            let shared = shared.clone();
            thread::spawn(move || {
                let (marks, stream, event) = &*shared;
                match number {
                    0 => while !event.synchronize_timeout(Duration::from_millis(150)).unwrap() {},
                    1 => stream.synchronize().unwrap(),
                    _ => event.synchronize().unwrap(),
                }
                marks.have_ended(&[0]);
                assert_eq!(event.query(), Ok(true));
            })
        }));
    });
}

/// Calls the test back when a host thread is about to block, and says when the driver is dropped.
struct Watch(Box<dyn FnMut() + Send>, Arc<()>);

impl io::Write for Watch {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if line.windows(15).any(|word| word == b"vkWaitSemaphore") {
            self.0();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A thread that blocks in the driver does not come back before another one has made a call.
#[test]
fn no_lock_is_held_while_the_host_blocks() {
    explore("no lock is held while the host blocks", budget::count(2_000, 50_000), || {
        let (called, is_called) = mpsc::channel::<()>();
        let watch = Watch(Box::new(move || _ = is_called.recv()), Arc::default());
        let dropped = Arc::downgrade(&watch.1);
        let device =
            Device::with_driver(Tracer::new(simulated().0, watch), Options { spin: Duration::ZERO, ..options(true) });
        let (stream, event) = (stream(&device, 0), device.event().unwrap());
        let marks = Marks::new(&device);
        marks.work(&stream, 0, &[]).unwrap();
        event.record(&stream).unwrap();
        let other = device.event().unwrap();
        join([
            thread::spawn(move || {
                event.synchronize().unwrap();
                marks.have_ended(&[0]);
            }),
            thread::spawn(move || {
                assert_eq!(other.query(), Ok(true));
                drop(called); // From now on nothing is held up.
            }),
        ]);
        drop((stream, device));
        assert!(dropped.upgrade().is_none(), "the driver is gone with the device");
    });
}

/// One thread records on a stream while others do on the same and on another, and flush and wait for both.
#[test]
fn closures_of_one_stream_take_turns() {
    explore("closures of one stream take turns", budget::count(5_000, 100_000), || {
        let device = device();
        let shared = Arc::new((Marks::new(&device), stream(&device, 0), stream(&device, 1)));
        let inside = Arc::new(AtomicUsize::new(0));
        let count = |number: usize| {
            let (shared, inside) = (shared.clone(), inside.clone());
            thread::spawn(move || {
                let (marks, stream, other) = &*shared;
                stream
                    .record(|commands| {
                        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "another thread is in a closure");
                        commands.barrier();
                        assert_eq!(other.flush(), Err(Error::InsideRecord));
                        thread::yield_now();
                        assert_eq!(inside.fetch_sub(1, Ordering::Relaxed), 1, "another thread was in a closure");
                    })
                    .unwrap();
                marks.work(if number == 0 { other } else { stream }, number, &[]).unwrap();
                stream.flush().unwrap();
                if number == 0 { other } else { stream }.synchronize().unwrap();
                marks.have_ended(&[number]);
            })
        };
        let threads = [0, 1, 2].map(count);
        join(threads);
    });
}

/// Handles are dropped by the thread that is inside another stream's closure, and by whoever is last.
#[test]
fn handles_are_dropped_anywhere() {
    explore("handles are dropped anywhere", budget::count(5_000, 100_000), || {
        let watch = Watch(Box::new(|| ()), Arc::default());
        let dropped = Arc::downgrade(&watch.1);
        let device = Device::with_driver(Tracer::new(simulated().0, watch), options(true));
        let (a, b) = (stream(&device, 0), stream(&device, 0));
        let marks = Arc::new(Marks::new(&device));
        let (first, second) = (device.event().unwrap(), device.event().unwrap());
        marks.work(&a, 0, &[]).unwrap();
        first.record(&a).unwrap();
        first.wait(&b).unwrap();
        second.record(&b).unwrap();
        let (given, taken) = mpsc::channel();
        join([
            thread::spawn({
                let marks = marks.clone();
                move || {
                    given.send(first).unwrap();
                    a.record(|_| drop(second)).unwrap();
                    marks.work(&a, 1, &[]).unwrap();
                    drop((a, marks));
                }
            }),
            thread::spawn(move || {
                let first = taken.recv().unwrap();
                marks.work(&b, 2, &[0]).unwrap();
                b.record(|_| drop(first)).unwrap();
                b.synchronize().unwrap();
                marks.have_ended(&[0, 2]);
                let after = Works::from([0]);
                assert_eq!(marks.not_found([(2, &after)]), []);
            }),
            thread::spawn(move || drop(device)),
        ]);
        assert!(dropped.upgrade().is_none(), "the driver is gone with the last handle");
    });
}

/// Two devices wait for each other, through threads of the runtime's own; one of them may be lost.
#[test]
fn devices_wait_for_each_other() {
    for lost in [false, true] {
        let name = format!("devices wait for each other, one is lost: {lost}");
        explore(&name, budget::count(2_000, 100_000), move || {
            let (driver, messages) = simulated();
            let fault = driver.switch();
            let watches = [0, 1].map(|_| Watch(Box::new(|| ()), Arc::default()));
            let dropped = watches.each_ref().map(|watch| Arc::downgrade(&watch.1));
            let [watch_here, watch_there] = watches;
            let here = Device::with_driver(Tracer::new(driver, watch_here), options(true));
            let there = Device::with_driver(Tracer::new(simulated().0, watch_there), options(true));
            let (marks_here, marks_there) = (Marks::new(&here), Marks::new(&there));
            let (on_here, on_there, late) = (stream(&here, 0), stream(&there, 0), stream(&here, 1));
            let (event, back) = (there.event().unwrap(), here.event().unwrap());
            marks_there.work(&on_there, 0, &[]).unwrap();
            event.record(&on_there).unwrap();
            event.wait(&on_here).unwrap();
            marks_here.work(&on_here, 1, &[]).unwrap();
            back.record(&on_here).unwrap();
            let shared = Arc::new((marks_here, marks_there, on_here, back));
            let waiter = |number: usize| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (marks_here, marks_there, on_here, back) = &*shared;
                    let done = match number {
                        0 => on_here.synchronize().map(|()| true),
                        1 => back.synchronize().map(|()| true),
                        _ => back.synchronize_timeout(Duration::from_millis(50)),
                    };
                    match done {
                        Ok(true) => {
                            marks_there.have_ended(&[0]);
                            marks_here.have_ended(&[1]);
                        }
                        Ok(false) => assert_eq!(number, 2, "a wait without a time runs out of it"),
                        Err(error) => assert!(lost && matches!(error, Error::Lost(_)), "{error}"),
                    }
                })
            };
            let threads = [0, 1, 2].map(waiter);
            let back_again = thread::spawn(move || {
                let (_, marks_there, _, back) = &*shared;
                match back.wait(&on_there) {
                    Ok(()) | Err(Error::Lost(_)) => marks_there.work(&on_there, 2, &[]).unwrap(),
                    Err(error) => panic!("{error}"),
                }
                on_there.synchronize().unwrap();
                marks_there.have_ended(&[0, 2]);
            });
            let loser = thread::spawn(move || {
                if lost {
                    fault.next("vkBeginCommandBuffer", vk::Result::ERROR_DEVICE_LOST);
                }
                assert_eq!(late.record(|_| ()).is_err(), lost);
            });
            join(threads.into_iter().chain([back_again, loser]));
            drop((here, there, event));
            assert!(dropped.iter().all(|driver| driver.upgrade().is_none()), "a driver is gone with its device");
            assert_eq!(messages.heard(), [""; 0]);
        });
    }
}
