//! The conformance suite on its members: two families of simulated GPU, a Vulkan driver, and three backends that are wrong.

use std::io::Write;
use std::sync::LazyLock;
use std::time::Duration;

use fencepost::Rule;
use fencepost_tests::conformance::history::{Row, Wrong};
use fencepost_tests::conformance::runtime::Runtime;
use fencepost_tests::conformance::simulated::Native;
use fencepost_tests::conformance::{CHECKS, Capability, Expectations, WORKS_MAX, report, run};
use fencepost_tests::reference::Call;
use fencepost_vulkan::{Driver, Messages, OpenOptions, Policy, Vulkan};

const ROUNDS: u64 = 50;
const RANDOM: Expectations =
    Expectations { rounds: ROUNDS, never: &[], failing: &[], patience: Duration::from_secs(5) };
/// The CUDA-like backend, and the wrong ones.
const NO_FAULTS: Expectations = Expectations { never: &[Capability::Refusals, Capability::Loss], ..RANDOM };
const ONE_QUEUE: Expectations =
    Expectations { never: &[Capability::Queues, Capability::Refusals, Capability::Loss], ..RANDOM };

#[test]
fn checks_are_named_apart_and_small() {
    for (at, check) in CHECKS.iter().enumerate() {
        assert!(CHECKS[..at].iter().all(|other| other.name != check.name), "{} is there twice", check.name);
        let works = check.calls.iter().filter(|call| matches!(call, Call::Work(_))).count();
        assert!(works <= WORKS_MAX, "{}: {works} works", check.name);
    }
    let is_checked = |rule: &Rule| CHECKS.iter().any(|check| check.rule == *rule);
    let unchecked: Vec<Rule> = Rule::ALL.into_iter().filter(|rule| !is_checked(rule)).collect();
    assert_eq!(unchecked, [Rule::Bounded], "what a backend leaks does not show in what it does");
}

#[test]
fn fencepost_conforms_on_the_simulated_gpu() {
    for events in [true, false] {
        run(|seed| Runtime::simulated(seed, Policy { events }).expect("there is memory"), &RANDOM);
    }
}

#[test]
fn native_events_conform() {
    run(Native::new, &NO_FAULTS);
}

#[test]
fn a_list_that_is_wrong_is_told() {
    let [never_recorded, lost] =
        ["a query of an event never recorded (L5)", "host waits end when the device is lost (G6)"];
    let failing = &[(never_recorded, Rule::UnrecordedWait), (lost, Rule::Loss), ("no such case", Rule::Loss)];
    let report = report(Native::new, &Expectations { failing, ..NO_FAULTS });
    let surprises = [
        format!("{never_recorded} passes and is expected to fail"),
        format!("{lost} is expected to fail and never supported"),
        "no such case is expected to fail, and no case has that name".into(),
    ];
    assert_eq!(report.surprises, surprises);
}

#[test]
#[should_panic(expected = "NOT EXPECTED: an accepted wait is never dropped (L1) fails")]
fn a_wrong_backend_fails_its_test() {
    run(|seed| Wrong::new(Row::WaitNeverSubmitted, seed), &NO_FAULTS);
}

/// The wait is lost, and a recording may reset the event under a wait that was never submitted.
#[test]
fn row_1_is_rejected_for_its_lost_wait() {
    let report = report(|seed| Wrong::new(Row::WaitNeverSubmitted, seed), &NO_FAULTS);
    let rules = |name: &str| report.case(name).expect("there is such a case").rules();
    assert_eq!(rules("an accepted wait is never dropped (L1)"), [Rule::LostWait]);
    assert_eq!(rules("the waiter may be flushed first (L6)"), [Rule::LostWait]);
    assert_eq!(rules("recorded again under a submitted wait (L3)")[0], Rule::ReuseWhileWaited);
}

/// With streams on one queue it is right but for waits in batches that are still open, and for what is destroyed.
#[test]
fn row_5_is_rejected_for_its_open_wait_race() {
    let failing = &[
        ("recorded again and synchronized under an open wait (L3b)", Rule::ReuseWhileWaited),
        ("destroyed under an open wait (A1)", Rule::ReuseWhileWaited),
        ("destroyed and made again under an open wait (P11)", Rule::ReuseWhileWaited),
    ];
    run(|seed| Wrong::new(Row::SubmittedList, seed), &Expectations { failing, ..ONE_QUEUE });
}

/// What was set once stays set, and the next wait passes.
#[test]
fn row_9_is_rejected_for_a_wait_that_an_older_recording_releases() {
    let failing = &[
        ("recorded again and synchronized under an open wait (L3b)", Rule::ReuseWhileWaited),
        ("destroyed and made again under an open wait (P11)", Rule::ReuseWhileWaited),
        ("a wait is not released by an earlier recording", Rule::StaleWait),
        ("a wait is not released by a destroyed event's recording (P11)", Rule::StaleWait),
        ("two streams pass a token", Rule::StaleWait),
        ("a ring of three streams and one event", Rule::StaleWait),
    ];
    run(|seed| Wrong::new(Row::PooledWhenDropped, seed), &Expectations { failing, ..ONE_QUEUE });
}

/// None of them knows that a `VkEvent` works inside one queue only.
#[test]
fn rows_are_rejected_on_two_queues() {
    for row in [Row::WaitNeverSubmitted, Row::SubmittedList, Row::PooledWhenDropped] {
        let report = report(|seed| Wrong::new(row, seed), &NO_FAULTS);
        let case = report.case("an event is waited for where it is not recorded, two queues");
        assert!(case.expect("there is such a case").rules().contains(&Rule::WrongQueue), "{row:?}: {report}");
    }
}

/// Drivers that are unloaded and loaded again for each test run out of static thread-local storage (NVIDIA 580): one
/// device stays for the life of the process.
static KEEP: LazyLock<Option<Vulkan>> = LazyLock::new(|| Vulkan::open(&OpenOptions::default()).ok());

#[test]
fn fencepost_conforms_on_vulkan() {
    LazyLock::force(&KEEP);
    let validation = Some(Messages::default());
    let queues = match Vulkan::open(&OpenOptions { validation, ..OpenOptions::default() }) {
        Ok(vulkan) => vulkan.queues().len(),
        Err(why) => {
            assert!(std::env::var_os("CI").is_none(), "in CI nothing is skipped: {why}");
            return skip("Vulkan", why);
        }
    };
    let never: &[Capability] = if queues > 1 { &[] } else { &[Capability::Queues] };
    for (synchronization2, events) in [(true, true), (false, true), (true, false)] {
        // A device may still be wrong when it is destroyed.
        let messages = Messages::default();
        let open = || {
            let validation = Some(messages.clone());
            Vulkan::open(&OpenOptions { synchronization2, validation, ..OpenOptions::default() })
        };
        let make = |_| {
            let vulkan = open().expect("it opened before");
            Runtime::new(vulkan, messages.clone(), Policy { events }, 1 << 20).expect("there is memory")
        };
        run(make, &Expectations { never, ..Expectations::default() });
        assert_eq!(messages.heard(), Vec::<String>::new());
    }
}

/// In CI too it is skipped where there is no driver: none can be installed there without a device.
#[cfg(feature = "cuda")]
#[test]
fn cuda_conforms() {
    use fencepost_tests::conformance::cuda::Cuda;
    if !Cuda::is_installed() {
        return skip("CUDA", "no driver");
    }
    if let Err(why) = Cuda::new() {
        return skip("CUDA", why);
    }
    // A GPU does not do the same each time.
    run(|_| Cuda::new().expect("it opened before"), &Expectations { rounds: 5, ..NO_FAULTS });
}

fn skip(device: &str, why: impl std::fmt::Display) {
    // Past the test harness, which keeps the output of tests that pass.
    let _ = writeln!(std::io::stderr().lock(), "SKIPPED on {device}: conformance: {why}");
}
