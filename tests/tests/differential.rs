//! Random programs: the runtime against the naive reference, on the simulated GPU and on a Vulkan driver.

use std::io::Write;
use std::sync::{Arc, Mutex};

use fencepost::judge::Verdict;
use fencepost_proofs::trace::Reader;
use fencepost_tests::program::{Program, QUEUES, WORKS_MAX};
use fencepost_tests::reference::{Call, Reference};
use fencepost_vulkan::{Policy, Simulated, Tracer};
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

/// A program whose trace is judged.
struct JudgedProgram {
    program: Program,
    told: Told,
}

/// What the judge says of a trace while it is written.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<(Reader, Vec<Verdict>)>>);

impl Write for Told {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let (reader, verdicts) = &mut *self.0.lock().unwrap();
        for line in bytes.split(|b| *b == b'\n') {
            reader.line(line, verdicts).unwrap_or_else(|bad| panic!("{bad}: {}", String::from_utf8_lossy(line)));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Judged;

impl StateMachineTest for Judged {
    type SystemUnderTest = JudgedProgram;
    type Reference = ProgramsWithLoss;

    fn init_test(_: &Reference) -> JudgedProgram {
        let told = Told::default();
        // Whole lines go out one by one.
        let out = std::io::LineWriter::with_capacity(1 << 16, told.clone());
        let simulated = Simulated::with_queues(SEED, Program::queues());
        let messages = simulated.messages();
        let program = Program::new(Tracer::new(simulated, out), messages, Policy { events: true });
        JudgedProgram { program, told }
    }

    fn apply(mut judged: JudgedProgram, _: &Reference, call: Call) -> JudgedProgram {
        judged.program.take(call);
        judged
    }

    fn teardown(judged: JudgedProgram, _: Reference) {
        judged.program.finish();
        let (reader, verdicts) = &mut *judged.told.0.lock().unwrap();
        reader.line(br#"{"end":"ok"}"#, verdicts).unwrap();
        reader.finish(verdicts);
        let sentences: Vec<String> = verdicts.iter().map(|v| v.sentence(&|object| reader.name(object))).collect();
        assert_eq!(sentences, Vec::<String>::new());
        assert!(reader.calls_read > 5, "the trace was read: {} calls", reader.calls_read);
    }
}

/// One seed, so that a failure shrinks; the programs are what is random.
const SEED: u64 = 20_518;

fn cases(count: u32) -> Config {
    // More with PROPTEST_CASES.
    let default = Config::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { count };
    Config { cases, failure_persistence: None, max_shrink_iters: 4000, max_local_rejects: 10_000_000, ..default }
}

against!(Events, Programs, Program::simulated(SEED, Policy { events: true }));
against!(Barriers, Programs, Program::simulated(SEED, Policy { events: false }));
against!(Loss, ProgramsWithLoss, Program::simulated(SEED, Policy { events: true }));
against!(OnVulkan, Programs, Program::vulkan().expect("the test looked")(Policy { events: true }));

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

prop_state_machine! {
    #![proptest_config(cases(500))]
    #[test]
    fn what_the_runtime_asks_for_breaks_no_rule(sequential 1..120 => Judged);
}

mod on_a_driver {
    use super::*;

    prop_state_machine! {
        #![proptest_config(cases(60))]
        fn run(sequential 1..120 => OnVulkan);
    }

    #[test]
    fn on_vulkan() {
        if Program::vulkan().is_some() {
            run();
        }
    }
}
