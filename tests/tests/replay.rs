//! What the model checker walked, walked by the runtime: the same host calls in the same order, on the simulated GPU and on
//! Vulkan. The device goes its own way there; what the host may see is compared after every call.
//!
//! Streams with a transfer companion are left out: the runtime has none.

use std::collections::{BTreeMap, BTreeSet};

use fencepost::Family;
use fencepost_proofs::host::Target;
use fencepost_proofs::protocol::Protocol;
use fencepost_proofs::search::{self, Limits};
use fencepost_proofs::setup::{Setup, Topology};
use fencepost_proofs::table::{self, LINES};
use fencepost_proofs::with_row;
use fencepost_proofs::world::{Action, System};
use fencepost_tests::program::{Program, WORKS_MAX};
use fencepost_tests::reference::Call;
use fencepost_vulkan::{Messages, OpenOptions, Policy, Vulkan};

/// Walks of each configuration.
const WALKS: usize = 40;
const WALK_STEPS_MAX: usize = 80;

const TOPOLOGIES: [Topology; 4] =
    [Topology::OneStream, Topology::TwoStreamsOneQueue, Topology::TwoQueues, Topology::TwoThreads];

fn setups(rows: std::ops::RangeInclusive<u8>) -> Vec<Setup> {
    let lines =
        LINES.into_iter().filter(|l| rows.contains(&l.row) && (l.row < 8 || l.family == Family::Vulkan || l.row < 10));
    let cells = lines.flat_map(|line| TOPOLOGIES.map(|topology| table::setups(line, topology)));
    cells.flatten().map(|(_, setup)| setup).collect()
}

/// Walks that prefer what was taken least, and how often each action was taken.
fn walks<P: Protocol>(system: &System<P>) -> (Vec<Vec<Action>>, BTreeMap<String, usize>) {
    let mut taken = BTreeMap::<String, usize>::new();
    let mut random = fastrand::Rng::with_seed(20_518);
    let walk = |_| {
        let (mut world, mut path, mut works) = (system.start(), Vec::new(), 0);
        while path.len() < WALK_STEPS_MAX && works < WORKS_MAX && !world.gpu.is_lost() {
            let mut listed = Vec::new();
            system.list(&world, &mut listed);
            random.shuffle(&mut listed);
            listed.sort_by_key(|action| taken.get(&action.to_string()).copied().unwrap_or(0) / 4);
            let mut next = world.clone();
            let possible = listed.into_iter().find(|action| {
                next = world.clone();
                system.take(&mut next, *action, None)
            });
            let Some(action) = possible else { break };
            *taken.entry(action.to_string()).or_default() += 1;
            works += usize::from(matches!(action, Action::Work { .. }));
            path.push(action);
            world = next;
        }
        path
    };
    let paths = (0..WALKS).map(walk).collect();
    (paths, taken)
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

fn vulkan() -> Option<impl Fn(Policy) -> Program> {
    if let Err(error) = Vulkan::open(&OpenOptions::default()).map(drop) {
        assert!(std::env::var_os("CI").is_none(), "in CI nothing is skipped: {error}");
        eprintln!("SKIPPED on Vulkan: {error}");
        return None;
    }
    Some(|policy| {
        let messages = Messages::default();
        let options = OpenOptions { validation: Some(messages.clone()), ..OpenOptions::default() };
        Program::new(Vulkan::open(&options).expect("it opened before"), messages, policy)
    })
}

#[test]
fn walks_of_rows_10_and_11() {
    let vulkan = vulkan();
    let (mut paths, mut steps, mut actions, mut on_vulkan) = (0, 0, 0, 0);
    for setup in setups(10..=11) {
        let (walks, taken) = with_row!(setup.row, system => walks(&system), setup);
        let kinds: BTreeSet<&str> = walks.iter().flatten().map(|action| action.kind()).collect();
        for kind in table::kinds(&setup).into_iter().filter(|kind| *kind != "refuse") {
            assert!(kinds.contains(kind), "{setup}: no walk has {kind}; there are {kinds:?}");
        }
        actions += taken.len();
        let policy = Policy { events: setup.row == 10 };
        for (at, walk) in walks.iter().enumerate() {
            let calls = calls(&setup, walk);
            run(Program::simulated(at as u64, policy), &calls);
            if let (Some(vulkan), 0) = (&vulkan, at % 20) {
                run(vulkan(policy), &calls);
                on_vulkan += 1;
            }
            paths += 1;
            steps += walk.len();
        }
    }
    println!("{paths} walks, {steps} steps, {actions} different actions; {on_vulkan} walks on Vulkan too");
    assert!(paths > 1000 && actions > 500);
}

#[test]
fn counterexamples_of_rows_1_to_9() {
    let (vulkan, policy) = (vulkan(), Policy { events: true });
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
    println!("{} different counterexamples; {on_vulkan} on Vulkan too", seen.len());
    assert!(seen.len() > 10);
}
