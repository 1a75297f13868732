//! Every driver call fails once, at every position of some programs: nothing hangs, order is kept, nothing is lost.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fencepost_tests::program::Program;
use fencepost_tests::reference::Call::{self, *};
use fencepost_vulkan::Policy;
use fencepost_vulkan::ash::vk;

/// What a call of the driver may return instead of succeeding.
const ERRORS: [vk::Result; 3] =
    [vk::Result::ERROR_OUT_OF_HOST_MEMORY, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY, vk::Result::ERROR_DEVICE_LOST];

/// No run takes longer than this.
const PATIENCE: Duration = Duration::from_secs(60);

fn programs() -> Vec<(&'static str, Vec<Call>)> {
    let two = |queue| vec![Stream(0, 0), Stream(1, queue), Event(0), Event(1)];
    let with = |start: Vec<Call>, then: &[Call]| start.into_iter().chain(then.iter().copied()).collect::<Vec<_>>();
    let open_wait =
        [Work(0), Record(0, 0), Wait(1, 0), Record(0, 0), Synchronize(0), Record(0, 0), Work(1), Flush(1), Query(0)];
    let pipeline = [Work(0), Record(0, 0), Work(0), Wait(1, 0), Work(1), Record(1, 1), Wait(0, 1)];
    let rounds = |count: usize| pipeline.repeat(count);
    let dropped =
        [Work(0), Record(0, 0), Work(0), Wait(1, 0), DropEvent(0), Work(1), DropStream(0), Work(1), DropStream(1)];
    let chain = [
        Stream(0, 0),
        Stream(1, 1),
        Stream(2, 2),
        Stream(3, 3),
        Event(0),
        Work(0),
        Record(0, 0),
        Wait(1, 0),
        Work(1),
        Record(0, 1),
        Wait(2, 0),
        Work(2),
        Record(0, 2),
        Wait(3, 0),
        Work(3),
        Record(0, 3),
        Wait(0, 0),
        Work(0),
        SynchronizeStream(0),
        Query(0),
    ];
    vec![
        ("an open wait, one queue", with(two(0), &open_wait)),
        ("an open wait, two queues", with(two(1), &open_wait)),
        ("a pipeline, one queue", with(two(0), &rounds(4))),
        ("a pipeline, two queues", with(two(1), &rounds(4))),
        ("a pipeline into a queue that only copies", with(two(3), &rounds(3))),
        ("everything is dropped under open waits", with(two(0), &dropped)),
        ("everything is dropped under waits across queues", with(two(1), &dropped)),
        ("a chain around four queues", chain.to_vec()),
    ]
}

/// How many driver calls a program makes that can fail.
fn calls(program: &[Call], make: &impl Fn() -> Program) -> u64 {
    let mut run = make();
    let fault = run.fault().clone();
    let before = fault.calls();
    program.iter().for_each(|call| run.take(*call));
    let calls = fault.calls() - before;
    run.finish();
    calls
}

fn every_position(programs: &[(&str, Vec<Call>)], every: usize, make: impl Fn() -> Program) -> u64 {
    let (now, runs) = (Mutex::new(String::new()), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (now, runs) = (&now, &runs);
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            let mut seen = u64::MAX;
            while is_done.recv_timeout(PATIENCE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                let run = runs.load(Ordering::Relaxed);
                if run == seen {
                    eprintln!("hangs: {}", now.lock().unwrap_or_else(|e| e.into_inner()));
                    std::process::abort();
                }
                seen = run;
            }
        });
        for (name, program) in programs {
            let calls = calls(program, &make);
            for at in (0..calls).step_by(every) {
                for error in ERRORS {
                    *now.lock().unwrap_or_else(|e| e.into_inner()) =
                        format!("{name}: call {at} of {calls} returns {error:?}");
                    let mut run = make();
                    run.fault().after(at, error);
                    program.iter().for_each(|call| run.take(*call));
                    run.finish();
                    runs.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        drop(done);
    });
    runs.into_inner()
}

#[test]
fn on_the_simulated_gpu() {
    for events in [true, false] {
        for seed in 0..4 {
            let make = || Program::simulated(seed, Policy { events });
            let triples = every_position(&programs(), 1, make);
            println!(
                "counts: faults on the simulated GPU, events {events}, seed {seed}: {triples} triples of program, call and error"
            );
            assert!(triples > 300, "{triples} triples");
        }
    }
}

#[test]
fn on_vulkan() {
    let Some(vulkan) = Program::vulkan() else { return };
    let triples = every_position(&programs(), 5, || vulkan(Policy { events: true }));
    println!("counts: faults on Vulkan: {triples} triples of program, call and error");
    assert!(triples > 60, "{triples} triples");
}
