//! Random programs: the runtime against the naive reference, on the simulated GPU and on a Vulkan driver.

use fencepost_tests::program::{Program, QUEUES, WORKS_MAX};
use fencepost_tests::reference::{Call, Reference};
use fencepost_vulkan::{Messages, OpenOptions, Policy, Vulkan};
use proptest::prelude::*;
use proptest::test_runner::Config;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

const STREAMS: usize = 6;
const EVENTS: usize = 16;

struct Programs;

impl ReferenceStateMachine for Programs {
    type State = Reference;
    type Transition = Call;

    fn init_state() -> BoxedStrategy<Reference> {
        Just(Reference::default()).boxed()
    }

    fn transitions(state: &Reference) -> BoxedStrategy<Call> {
        let (stream, event, queue) = (0..STREAMS, 0..EVENTS, 0..QUEUES);
        let streams: Vec<usize> = state.streams.keys().copied().collect();
        let events: Vec<usize> = state.events.keys().copied().collect();
        let any_stream =
            if streams.is_empty() { stream.clone().boxed() } else { prop::sample::select(streams).boxed() };
        let any_event = if events.is_empty() { event.clone().boxed() } else { prop::sample::select(events).boxed() };
        prop_oneof![
            3 => (stream, queue).prop_map(|(s, q)| Call::Stream(s, q)),
            3 => event.prop_map(Call::Event),
            12 => any_stream.clone().prop_map(Call::Work),
            10 => (any_event.clone(), any_stream.clone()).prop_map(|(e, s)| Call::Record(e, s)),
            12 => (any_stream.clone(), any_event.clone()).prop_map(|(s, e)| Call::Wait(s, e)),
            4 => any_stream.clone().prop_map(Call::Flush),
            3 => any_event.clone().prop_map(Call::Synchronize),
            2 => any_stream.clone().prop_map(Call::SynchronizeStream),
            3 => any_event.clone().prop_map(Call::Query),
            2 => any_event.clone().prop_map(Call::TimeOut),
            2 => any_event.prop_map(Call::DropEvent),
            1 => any_stream.prop_map(Call::DropStream),
            2 => (0..6u64).prop_map(Call::Refuse),
        ]
        .boxed()
    }

    fn preconditions(state: &Reference, call: &Call) -> bool {
        state.allows(*call) && !(matches!(call, Call::Work(_)) && state.after.len() == WORKS_MAX)
    }

    fn apply(mut state: Reference, call: &Call) -> Reference {
        state.take(*call);
        state
    }
}

/// The same with a device that is lost at some time.
struct ProgramsWithLoss;

impl ReferenceStateMachine for ProgramsWithLoss {
    type State = Reference;
    type Transition = Call;

    fn init_state() -> BoxedStrategy<Reference> {
        Programs::init_state()
    }

    fn transitions(state: &Reference) -> BoxedStrategy<Call> {
        prop_oneof![20 => Programs::transitions(state), 1 => Just(Call::Lose)].boxed()
    }

    fn preconditions(state: &Reference, call: &Call) -> bool {
        Programs::preconditions(state, call)
    }

    fn apply(state: Reference, call: &Call) -> Reference {
        Programs::apply(state, call)
    }
}

macro_rules! against {
    ($name:ident, $programs:ty, $make:expr) => {
        struct $name;

        impl StateMachineTest for $name {
            type SystemUnderTest = Program;
            type Reference = $programs;

            fn init_test(_: &Reference) -> Program {
                $make
            }

            fn apply(mut program: Program, _: &Reference, call: Call) -> Program {
                program.take(call);
                program
            }

            fn teardown(program: Program, _: Reference) {
                program.finish();
            }
        }
    };
}

/// One seed, so that a failure shrinks; the programs are what is random.
const SEED: u64 = 20_518;

fn vulkan() -> Program {
    let messages = Messages::default();
    let options = OpenOptions { validation: Some(messages.clone()), ..OpenOptions::default() };
    Program::new(Vulkan::open(&options).unwrap(), messages, Policy { events: true })
}

fn cases(count: u32) -> Config {
    // More with PROPTEST_CASES.
    let default = Config::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { count };
    Config { cases, failure_persistence: None, max_shrink_iters: 4000, max_local_rejects: 10_000_000, ..default }
}

against!(Events, Programs, Program::simulated(SEED, Policy { events: true }));
against!(Barriers, Programs, Program::simulated(SEED, Policy { events: false }));
against!(Loss, ProgramsWithLoss, Program::simulated(SEED, Policy { events: true }));
against!(OnVulkan, Programs, vulkan());

#[test]
fn what_fails_reads_as_a_scenario() {
    use Call::*;
    let calls = [
        Stream(0, 0),
        Stream(1, 3),
        Event(0),
        Event(1),
        Refuse(7),
        Work(0),
        Record(0, 0),
        Work(0),
        Wait(1, 0),
        Work(1),
        TimeOut(0),
        Query(0),
        Flush(1),
        Synchronize(0),
        Synchronize(1),
        SynchronizeStream(1),
        DropEvent(0),
        Event(0),
        Record(0, 1),
        DropStream(1),
        Stream(1, 2),
        Lose,
    ];
    let text = calls.iter().fold("# a random program".to_string(), |text, call| text + &format!("{call:?}")) + "\n";
    let script: fencepost_tests::scenario::Script = text.parse().unwrap_or_else(|e| panic!("{e}"));
    let outcome = script.run().unwrap_or_else(|e| panic!("{e}"));
    assert!(outcome.broken.is_empty() && outcome.script.calls().count() > calls.len(), "{}", outcome.script);
}

prop_state_machine! {
    #![proptest_config(cases(1500))]
    #[test]
    fn with_vkevents_on_the_simulated_gpu(sequential 1..120 => Events);
}

prop_state_machine! {
    #![proptest_config(cases(1000))]
    #[test]
    fn with_barriers_on_the_simulated_gpu(sequential 1..120 => Barriers);
}

prop_state_machine! {
    #![proptest_config(cases(500))]
    #[test]
    fn with_loss_on_the_simulated_gpu(sequential 1..80 => Loss);
}

mod on_a_driver {
    use super::*;

    prop_state_machine! {
        #![proptest_config(cases(60))]
        fn run(sequential 1..120 => OnVulkan);
    }

    #[test]
    fn on_vulkan() {
        if let Err(error) = Vulkan::open(&OpenOptions::default()).map(drop) {
            assert!(std::env::var_os("CI").is_none(), "in CI nothing is skipped: {error}");
            eprintln!("SKIPPED on Vulkan: {error}");
            return;
        }
        run();
    }
}
