//! The judge against the simulated GPU: a program breaks a rule, says the judge, exactly if some schedule of the device does.

use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;

use fencepost::{Command, DeviceStep, Family, Ghost, Gpu, Occurrence, Op, Rule, Signal, Submit};
use proptest::prelude::*;

use crate::story;

const QUEUES: usize = 2;
/// Each queue has two: an event means nothing outside the queue that sets it.
const EVENTS: u32 = 4;

/// A step of a host that has one thread.
#[derive(Clone, Debug)]
enum Step {
    /// Records and submits a command buffer; the batch signals the next value of its queue's timeline.
    Submit {
        queue: usize,
        commands: Vec<Command>,
        wait: Option<(usize, u64)>,
    },
    Set(u32),
    Reset(u32),
    Idle(usize),
}

fn command() -> impl Strategy<Value = Command> {
    let event = 0..2u32;
    prop_oneof![
        2 => Just(Command::Barrier),
        4 => event.clone().prop_map(Command::Set),
        4 => event.clone().prop_map(Command::Wait),
        2 => event.prop_map(Command::Reset),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let queue = prop_oneof![5 => Just(0), 1 => Just(1)];
    // Which value of the other queue's timeline, counted back from its next one.
    let wait = prop_oneof![3 => Just(None), 1 => (0..3u64).prop_map(Some)];
    let submit = (queue.clone(), proptest::collection::vec(command(), 0..5), wait)
        .prop_map(|(queue, commands, back)| Step::Submit { queue, commands, wait: back.map(|back| (1 - queue, back)) });
    prop_oneof![
        5 => submit,
        1 => (0..EVENTS).prop_map(Step::Set),
        2 => (0..EVENTS).prop_map(Step::Reset),
        2 => queue.prop_map(Step::Idle),
    ]
}

/// The waits get their values: a signal that is there, or the next one.
fn program() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(step(), 1..7).prop_map(|mut steps| {
        let mut signalled = [0; QUEUES];
        for step in &mut steps {
            let Step::Submit { queue, commands, wait } = step else { continue };
            for command in commands {
                if let Command::Set(event) | Command::Wait(event) | Command::Reset(event) = command {
                    *event += 2 * *queue as u32;
                }
            }
            *wait = wait
                .map(|(of, back)| (of, (signalled[of] + 1u64).saturating_sub(back)))
                .filter(|(_, value)| *value > 0);
            signalled[*queue] += 1;
        }
        steps
    })
}

fn told(program: &[Step]) -> String {
    let mut text =
        String::from("queue Q1\nqueue Q2\ncreate E1\ncreate E2\ncreate E3\ncreate E4\ncreate S1\ncreate S2\n");
    let mut signalled = [0; QUEUES];
    for (at, step) in program.iter().enumerate() {
        let _ = match step {
            Step::Set(event) => writeln!(text, "set E{}", event + 1),
            Step::Reset(event) => writeln!(text, "reset E{}", event + 1),
            Step::Idle(queue) => writeln!(text, "idle Q{}", queue + 1),
            Step::Submit { queue, commands, wait } => {
                let word = |command: &Command| match command {
                    Command::Set(e) => format!("set E{}", e + 1),
                    Command::Wait(e) => format!("wait E{}", e + 1),
                    Command::Reset(e) => format!("reset E{}", e + 1),
                    _ => "barrier".into(),
                };
                let commands: Vec<String> = commands.iter().map(word).collect();
                signalled[*queue] += 1;
                let wait = wait.map_or(String::new(), |(of, value)| format!(", wait S{}={value}", of + 1));
                let signal = format!("signal S{}={}", queue + 1, signalled[*queue]);
                writeln!(text, "C{at} = {}\nQ{}: C{at}{wait}, {signal}", commands.join(" | "), queue + 1)
            }
        };
    }
    text
}

/// Takes every schedule: the rules that some schedule breaks first.
struct Schedules<'a> {
    program: &'a [Step],
    seen: HashSet<String>,
    broken: BTreeSet<&'static str>,
    /// The furthest step that some schedule reaches: a wait that none gets past ends the trace.
    reached: usize,
    /// An event is set while it is set.
    twice: bool,
}

/// Whether a queue's reset stands before every wait on its event: numbers of sets do not tell such waits from those for the set
/// that it undoes. `None` for other steps.
fn after_all_waits(gpu: &Gpu, step: DeviceStep) -> Option<bool> {
    let at = |queue: usize, index| (queue, index) == (step.queue as usize, step.index as usize);
    let ops =
        || gpu.queues().iter().enumerate().flat_map(|(q, ops)| ops.iter().enumerate().map(move |(i, op)| (q, i, op)));
    let event = ops().find_map(|(q, i, op)| match op {
        Op::Reset { event, .. } if at(q, i) => Some(*event),
        _ => None,
    })?;
    let endangered = |(q, i, op): (usize, usize, &Op)| {
        matches!(op, Op::Wait { event: e, .. } if *e == event) && (q != step.queue as usize || i < step.index as usize)
    };
    Some(!ops().any(endangered))
}

/// Whether a queue's reset stands behind set and wait of another event. The GPU lets it overtake them; Vulkan does not, since they
/// are an execution dependency as a barrier is: the reset comes after all that comes before the set.
fn behind_set_and_wait(gpu: &Gpu, step: DeviceStep) -> bool {
    let (before, from) = gpu.queues()[step.queue as usize].split_at(step.index as usize);
    let Some(Op::Reset { event, .. }) = from.first() else { return false };
    let set_before =
        |at: usize, event: u32| before[..at].iter().any(|op| matches!(op, Op::Set { event: e, .. } if *e == event));
    before
        .iter()
        .enumerate()
        .any(|(at, op)| matches!(op, Op::Wait { event: e, .. } if e != event && set_before(at, *e)))
}

const STATES_MAX: usize = 60_000;

impl Schedules<'_> {
    fn ask(&mut self, gpu: &Gpu, occurrence: &Occurrence) -> bool {
        let ghost = Ghost::new(0, 0);
        let rules = Rule::ALL.into_iter().filter(|rule| rule.broken_by(gpu, &ghost, occurrence));
        let broken: Vec<_> = rules.map(Rule::name).collect();
        self.broken.extend(&broken);
        !broken.is_empty()
    }

    /// `false` if it cannot say.
    fn explore(&mut self, at: usize, gpu: &Gpu) -> bool {
        let mut open = vec![(at, gpu.clone())];
        while let Some((at, mut gpu)) = open.pop() {
            let mut broken = false;
            while let Some(step) = gpu.eager_step() {
                broken |= gpu.occurrence(step).is_some_and(|occurrence| self.ask(&gpu, &occurrence));
                gpu.take(step);
            }
            if broken || !self.seen.insert(format!("{at} {gpu:?}")) {
                continue;
            }
            self.reached = self.reached.max(at);
            if self.seen.len() > STATES_MAX || self.twice {
                return false;
            }
            let mut steps = Vec::new();
            gpu.steps(&mut steps);
            steps.retain(|step| !behind_set_and_wait(&gpu, *step));
            for step in &steps {
                let breaks = |occurrence| after_all_waits(&gpu, *step) != Some(true) && self.ask(&gpu, &occurrence);
                if !gpu.occurrence(*step).is_some_and(breaks) {
                    let mut next = gpu.clone();
                    next.take(*step);
                    open.push((at, next));
                }
            }
            match self.host(at, &gpu) {
                Some(next) => open.extend(next.map(|next| (at + 1, next))),
                None if steps.is_empty() && (at < self.program.len() || !gpu.is_idle()) => {
                    self.ask(&gpu, &Occurrence::Stuck);
                }
                None => {}
            }
        }
        true
    }

    /// The host's next step: `None` if it is blocked or done, `Some(None)` if it breaks a rule.
    fn host(&mut self, at: usize, gpu: &Gpu) -> Option<Option<Gpu>> {
        let mut next = gpu.clone();
        let broken = match self.program.get(at)? {
            Step::Idle(queue) => {
                if !gpu.queues()[*queue].is_empty() {
                    return None;
                }
                false
            }
            Step::Set(event) => {
                // A pending set then repeats the host's. The GPU knows only who was last.
                self.twice |= gpu.any_op(|op| matches!(op, Op::Set { event: e, .. } if e == event));
                let broken = self.ask(gpu, &Occurrence::EventSet { event: *event, set: gpu.newest_set(*event) + 1 });
                next.set_event(*event);
                broken
            }
            Step::Reset(event) => {
                let broken = self.ask(gpu, &Occurrence::HostReset { event: *event });
                next.reset_event(*event);
                broken
            }
            Step::Submit { queue, commands, wait } => {
                let id = at as u32;
                next.begin(id, *queue as u32, 0);
                commands.iter().for_each(|command| next.record(id, *command));
                let value = self.program[..=at]
                    .iter()
                    .filter(|s| matches!(s, Step::Submit { queue: q, .. } if q == queue))
                    .count();
                let waits = wait.iter().map(|(of, value)| Signal { semaphore: *of as u32, value: *value });
                next.submit(
                    *queue as u32,
                    &Submit {
                        waits: waits.collect(),
                        buffer: Some(id),
                        signal: Some(Signal { semaphore: *queue as u32, value: value as u64 }),
                        fence: None,
                    },
                );
                false
            }
        };
        Some((!broken).then_some(next))
    }
}

/// What schedules break, and how many steps of the program happen.
fn by_schedules(program: &[Step]) -> Option<(BTreeSet<&'static str>, usize)> {
    let mut gpu = Gpu::new(Family::Vulkan, QUEUES);
    for _ in 0..EVENTS {
        gpu.create_event();
    }
    for _ in 0..QUEUES {
        gpu.create_semaphore();
    }
    let mut schedules = Schedules { program, seen: HashSet::new(), broken: BTreeSet::new(), reached: 0, twice: false };
    schedules.explore(0, &gpu).then_some((schedules.broken, schedules.reached))
}

#[test]
fn the_judge_reports_what_some_schedule_breaks() {
    let cases = if std::env::var_os("FENCEPOST_LONG").is_some() { 300_000 } else { 5_000 };
    let (broken, kept) = (Cell::new(0), Cell::new(0));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases,
        max_global_rejects: cases,
        max_shrink_iters: 2_000,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        ..ProptestConfig::default()
    });
    let result = runner.run(&program(), |program| {
        let found = by_schedules(&program);
        let Some((schedules, reached)) = found else { return Err(TestCaseError::reject("the schedules cannot say")) };
        let blocked = matches!(program.get(reached), Some(Step::Idle(_)));
        let text = told(if blocked { &program[..reached] } else { &program });
        let judged = story::judged(&text);
        let sentences: Vec<&String> = judged.iter().map(|(_, _, sentence)| sentence).collect();
        // Schedules end at the first rule that they break; the judge goes on.
        let alike =
            judged.iter().any(|(rule, ..)| schedules.contains(&rule[..])) || schedules.is_empty() && judged.is_empty();
        prop_assert!(alike, "schedules break {schedules:?}, the judge says {sentences:#?} of\n{text}");
        let count = if schedules.is_empty() { &kept } else { &broken };
        count.set(count.get() + 1);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let (broken, kept) = (broken.get(), kept.get());
    println!("counts: traces: {broken} random programs that a schedule breaks and {kept} that none does, judged alike");
    assert!(broken > cases / 20 && kept > cases / 20, "{broken} and {kept}: both kinds are needed");
}
