//! What the model checker walked, walked by the runtime: the same host calls in the same order, on the simulated GPU and on
//! Vulkan. The device goes its own way there; what the host may see is compared after every call.
//!
//! Streams with a transfer companion are left out: the runtime has none.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use fencepost_proofs::host::Target;
use fencepost_proofs::protocol::Protocol;
use fencepost_proofs::search::{self, Limits};
use fencepost_proofs::setup::{Setup, Topology};
use fencepost_proofs::table::{self, LINES};
use fencepost_proofs::world::{Action, System};
use fencepost_proofs::{canonical, with_row};
use fencepost_tests::program::{Program, WORKS_MAX};
use fencepost_tests::reference::Call;
use fencepost_vulkan::Policy;

/// Random walks of each configuration.
const WALKS: usize = 20;
/// States of each configuration in which actions are looked for.
const STATES: usize = 2_000;
const WALK_STEPS_MAX: usize = 80;

const TOPOLOGIES: [Topology; 4] =
    [Topology::OneStream, Topology::TwoStreamsOneQueue, Topology::TwoQueues, Topology::TwoThreads];

fn setups(rows: std::ops::RangeInclusive<u8>) -> Vec<Setup> {
    let lines = LINES.into_iter().filter(|line| rows.contains(&line.row));
    let cells = lines.flat_map(|line| TOPOLOGIES.map(|topology| table::setups(line, topology)));
    cells.flatten().map(|(_, setup)| setup).collect()
}

/// The shortest way to each action, as far as a search of this size meets it, and to each kind of action in any case.
fn ways<P: Protocol>(system: &System<P>) -> Vec<Vec<Action>> {
    let mut kinds: BTreeSet<&str> = table::kinds(&system.setup).into_iter().filter(|kind| *kind != "refuse").collect();
    let mut met = BTreeMap::<String, usize>::new();
    // For each state: the one before it, and the step from there.
    let mut steps: Vec<(usize, Option<Action>)> = vec![(0, None)];
    let mut forms = HashSet::from([canonical::with_form(system, &system.start(), <[u8]>::to_vec)]);
    let mut pending = VecDeque::from([(0, system.start())]);
    while let Some((at, world)) = pending.pop_front()
        && (forms.len() < STATES || !kinds.is_empty())
    {
        let mut listed = Vec::new();
        system.list(&world, &mut listed);
        for action in listed {
            let mut next = world.clone();
            if !system.take(&mut next, action, None) {
                continue;
            }
            let is_new_form = forms.insert(canonical::with_form(system, &next, <[u8]>::to_vec));
            kinds.remove(action.kind());
            let is_new_action = !met.contains_key(&action.to_string());
            if is_new_form || is_new_action {
                steps.push((at, Some(action)));
                met.entry(action.to_string()).or_insert(steps.len() - 1);
            }
            if is_new_form {
                pending.push_back((steps.len() - 1, next));
            }
        }
    }
    assert!(kinds.is_empty(), "{}: no way to {kinds:?} among {} states", system.setup, forms.len());
    let way = |mut at: usize| {
        let mut path = Vec::new();
        while let (before, Some(action)) = steps[at] {
            path.push(action);
            at = before;
        }
        path.reverse();
        path
    };
    met.into_values().map(way).collect()
}

/// Random walks, in which the device lags behind the host: else all has ended before anything can wait for it.
fn walks<P: Protocol>(system: &System<P>) -> Vec<Vec<Action>> {
    let mut random = fastrand::Rng::with_seed(20_518);
    let walk = |_| {
        let (mut world, mut path, mut works) = (system.start(), Vec::new(), 0);
        while path.len() < WALK_STEPS_MAX && works < WORKS_MAX && !world.gpu.is_lost() {
            let mut listed = Vec::new();
            system.list(&world, &mut listed);
            listed.retain(|action| *action != Action::Lose || path.len() > WALK_STEPS_MAX / 2); // It ends the walk.
            if random.u8(0..4) > 0 && listed.iter().any(|action| !action.is_device()) {
                listed.retain(|action| !action.is_device());
            }
            random.shuffle(&mut listed);
            let mut next = world.clone();
            let possible = listed.into_iter().find(|action| {
                next = world.clone();
                system.take(&mut next, *action, None)
            });
            let Some(action) = possible else { break };
            works += usize::from(matches!(action, Action::Work { .. }));
            path.push(action);
            world = next;
        }
        path
    };
    (0..WALKS).map(walk).collect()
}

/// The host's part of a path.
fn calls(setup: &Setup, path: &[Action]) -> Vec<Call> {
    let streams = setup.topology.streams();
    let mut calls: Vec<Call> = (0..setup.bounds.events).map(Call::Event).collect();
    calls.extend(streams.iter().enumerate().map(|(s, queues)| Call::Stream(s, queues.queue)));
    let mut blocked: BTreeMap<usize, Target> = BTreeMap::new();
    let mut threads: BTreeSet<usize> = (0..setup.topology.thread_count()).collect();
    for action in path {
        match *action {
            Action::Work { refuse, .. }
            | Action::Record { refuse, .. }
            | Action::Wait { refuse, .. }
            | Action::Flush { refuse, .. }
            | Action::Synchronize { refuse, .. }
            | Action::RenewStream { refuse, .. }
                if refuse > 0 =>
            {
                calls.push(Call::Refuse(u64::from(refuse) - 1));
            }
            _ => {}
        }
        match *action {
            Action::Work { stream, .. } => calls.push(Call::Work(stream)),
            Action::Record { event, stream, .. } => calls.push(Call::Record(event, stream)),
            Action::Wait { stream, event, .. } => calls.push(Call::Wait(stream, event)),
            Action::Flush { stream, .. } => calls.push(Call::Flush(stream)),
            Action::Synchronize { target, .. } => {
                // The first half submits and looks; a thread that blocks comes back later.
                calls.push(match target {
                    Target::Event(event) => Call::TimeOut(event),
                    Target::Stream(stream) => Call::Flush(stream),
                });
                if let Some(thread) = threads.pop_first() {
                    blocked.insert(thread, target);
                }
            }
            Action::Return { thread } => {
                calls.extend(blocked.remove(&thread).map(|target| match target {
                    Target::Event(event) => Call::Synchronize(event),
                    Target::Stream(stream) => Call::SynchronizeStream(stream),
                }));
                threads.insert(thread);
            }
            Action::TimeOut { thread } => {
                blocked.remove(&thread);
                threads.insert(thread);
            }
            Action::Destroy { event } => calls.extend([Call::DropEvent(event), Call::Event(event)]),
            Action::RenewStream { stream, .. } => {
                calls.extend([Call::DropStream(stream), Call::Stream(stream, streams[stream].queue)]);
            }
            Action::Poll { .. } => calls.extend((0..setup.bounds.events).map(Call::Query)),
            Action::Lose => calls.push(Call::Lose),
            Action::Device(_) | Action::Register { .. } => {}
        }
    }
    calls
}

fn run(mut program: Program, calls: &[Call]) {
    calls.iter().for_each(|call| program.take(*call));
    program.finish();
}

#[test]
fn paths_of_rows_10_and_11() {
    let vulkan = Program::vulkan();
    let (mut paths, mut steps, mut actions, mut on_vulkan) = (0, 0, BTreeSet::new(), 0);
    for setup in setups(10..=11) {
        let (ways, walks) = with_row!(setup.row, system => (ways(&system), walks(&system)), setup);
        let policy = Policy { events: setup.row == 10 };
        for (at, path) in ways.iter().chain(&walks).enumerate() {
            actions.extend(path.iter().map(|action| format!("{setup}: {action}")));
            let calls = calls(&setup, path);
            run(Program::simulated(at as u64, policy), &calls);
            if let (Some(vulkan), 0) = (&vulkan, at % 25) {
                run(vulkan(policy), &calls);
                on_vulkan += 1;
            }
            (paths, steps) = (paths + 1, steps + path.len());
        }
    }
    println!(
        "counts: replay: {paths} paths, {steps} steps, {} actions of the configurations; {on_vulkan} on Vulkan too",
        actions.len()
    );
    assert!(paths > 1000 && actions.len() > 500);
}

#[test]
fn counterexamples_of_rows_1_to_9() {
    let (vulkan, policy) = (Program::vulkan(), Policy { events: true });
    let (mut seen, mut on_vulkan) = (BTreeSet::new(), 0);
    for setup in setups(1..=9) {
        let limits = Limits { first_finding: true, ..Limits::NONE };
        let outcome = with_row!(setup.row, system => search::run(&system, limits, |_| ()), setup);
        for finding in outcome.findings {
            let calls = calls(&setup, &finding.path);
            for seed in 0..10 {
                run(Program::simulated(seed, policy), &calls);
            }
            // Many rows break by the same calls.
            if let (true, Some(vulkan)) = (seen.insert(format!("{calls:?}")), &vulkan) {
                run(vulkan(policy), &calls);
                on_vulkan += 1;
            }
        }
    }
    println!("counts: replay: {} different counterexamples; {on_vulkan} on Vulkan too", seen.len());
    assert!(seen.len() > 10);
}
