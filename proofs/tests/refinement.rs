//! The machine and the GPU take only steps of the relation that `fencepost prove` proves things of: every step of
//! searches to the end, and samples of programs too large to search.

mod common;

use std::sync::Arc;

use fencepost::Family;
use fencepost_proofs::action::{Action, Kind};
use fencepost_proofs::history::Fencepost;
use fencepost_proofs::host::Target;
use fencepost_proofs::mutants::{CASES, Case};
use fencepost_proofs::protocol::Part;
use fencepost_proofs::search::{self, Limits};
use fencepost_proofs::setup::{Bounds, Calls, Reductions, Setup, Topology};
use fencepost_proofs::table::{self, TableRow};
use fencepost_proofs::unbounded::mutants::Mutant;
use fencepost_proofs::unbounded::refinement::Tally;
use fencepost_proofs::unbounded::relation::Move;
use fencepost_proofs::world::System;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// With `FENCEPOST_LONG=1`, everything that the table searches of rows 10 and 11, and more samples.
fn is_long() -> bool {
    std::env::var("FENCEPOST_LONG").is_ok_and(|value| value == "1")
}

/// Every setup of rows 10 and 11; the short run takes those with a small space.
fn setups() -> Vec<Setup> {
    let rows = [10, 11].map(|row| TableRow { row, family: Family::Vulkan });
    let all = rows.into_iter().flat_map(|row| Topology::TABLE.into_iter().flat_map(move |t| table::setups(row, t)));
    let small = |setup: &Setup| fencepost_proofs::expected::unique_count(setup) < 6_000;
    all.map(|(_, setup)| setup).filter(|setup| is_long() || small(setup)).collect()
}

#[test]
fn every_step_of_the_searched_configurations_is_one_of_the_relation() {
    let tally = Arc::new(Tally::default());
    let setups = setups();
    common::on_two_threads(&setups, |setup| {
        let outcome = search::run(&System::<Fencepost>::watched(*setup, &tally), Limits::NONE, |_| ());
        assert!(outcome.exhaustive && outcome.findings.is_empty(), "{setup}: {:?}", common::broken(&outcome));
        assert_eq!(tally.failure(), None, "{setup}");
    });
    println!("counts: {} searches, {} steps checked against the relation", setups.len(), tally.observed());
    assert!(tally.observed() > if is_long() { 10_000_000 } else { 200_000 }, "{}", tally.observed());
}

#[test]
fn mutants_of_the_machine_that_offend_a_safety_rule_are_refused_by_the_relation() {
    let cases: Vec<&Case> =
        Mutant::ALL.iter().map(|m| CASES.iter().find(|c| c.name == m.name()).expect("the same names")).collect();
    let missed = common::on_two_threads(&cases, |case| {
        let tally = Arc::new(Tally::default());
        let limits = Limits { first_finding: true, ..Limits::NONE };
        search::run(&System::<Fencepost>::watched(case.setup(), &tally), limits, |_| ());
        tally.failure().is_none().then_some(case.name)
    });
    assert_eq!(missed.into_iter().flatten().collect::<Vec<_>>(), Vec::<&str>::new());
}

const EVENTS: usize = 10;

/// Eight streams on four queues, with events and batches enough to be far from what a search covers.
fn wide(row: u8, refuse: bool, eager: bool) -> Setup {
    Setup {
        row,
        family: Family::Vulkan,
        topology: Topology::Wide,
        bounds: Bounds { events: EVENTS, open: 10, in_flight: 6, live: 60, slots: usize::MAX },
        calls: Calls {
            synchronize: true,
            synchronize_stream: true,
            destroy: true,
            renew_stream: true,
            refuse,
            lose: false,
            time_out: true,
        },
        reductions: Reductions { symmetry: false, eager, ..Reductions::ALL },
        mutant: None,
        without: &[],
    }
}

/// A choice of a step: what it is depends on where it is made.
type Choice = (u8, u8, u8, u8);

fn action(system: &System<Fencepost>, world: &fencepost_proofs::world::World<Fencepost>, choice: Choice) -> Action {
    let (what, a, b, c) = choice;
    let streams = system.setup.topology.streams();
    let (stream, event) = (a as usize % streams.len(), b as usize % EVENTS);
    let refuse = if system.setup.calls.refuse && c >= 240 { 1 + c % 3 } else { 0 };
    let part = if c % 3 == 0 && streams[stream].transfer.is_some() { Part::Copy } else { Part::Compute };
    let lease = 0;
    match what {
        0..40 => Action::Record { event, stream, refuse, lease },
        40..90 => Action::Wait { stream, event, refuse, lease },
        90..120 => Action::Work { stream, part, kind: Kind::Watched, refuse, lease },
        120..140 => Action::Work { stream, part, kind: Kind::Dependent, refuse, lease },
        140..150 => Action::Flush { stream, refuse },
        150..154 => Action::Destroy { event },
        154..156 => Action::RenewStream { stream, refuse },
        156..162 => Action::Synchronize { target: Target::Event(event), refuse },
        162..165 => Action::Synchronize { target: Target::Stream(stream), refuse },
        165..180 => Action::Poll { stream },
        180..186 => Action::Return { thread: a as usize % 3 },
        186..188 => Action::TimeOut { thread: a as usize % 3 },
        _ => {
            let mut steps = Vec::new();
            world.gpu.steps(&mut steps);
            match steps.len() {
                0 => Action::Poll { stream },
                n => Action::Device(steps[(a as usize * 256 + b as usize) % n]),
            }
        }
    }
}

/// Takes a program; steps that are not possible are left out, and it ends where its state outgrows what a watch holds.
/// The steps taken.
fn walk(system: &System<Fencepost>, choices: &[Choice]) -> Vec<Action> {
    let mut world = system.start();
    let mut scratch = world.clone();
    let mut path = Vec::new();
    let mut possible = Vec::new();
    for choice in choices {
        if world.watch.as_ref().is_some_and(|watch| watch.facts().is_crowded()) {
            break;
        }
        let action = action(system, &world, *choice);
        possible.clear();
        system.list(&world, &mut possible);
        if !possible.contains(&action) {
            continue;
        }
        scratch.clone_from(&world);
        if system.take(&mut scratch, action, None) {
            std::mem::swap(&mut world, &mut scratch);
            path.push(action);
        }
        assert_eq!(world.broken, None, "{}", fencepost_proofs::explain::script(&path));
    }
    path
}

#[test]
fn random_programs_too_large_to_search_take_steps_of_the_relation() {
    let tally = Arc::new(Tally::default());
    let cases = if is_long() { 6000 } else { 150 };
    let mut runner =
        TestRunner::new(Config { cases, failure_persistence: None, max_shrink_iters: 400, ..Config::default() });
    let program = (any::<[bool; 3]>(), prop::collection::vec(any::<Choice>(), 50..1500));
    let result = runner.run(&program, |([slots, refuse, eager], choices)| {
        let tally_here = Arc::new(Tally::default());
        let system = System::<Fencepost>::watched(wide(if slots { 10 } else { 11 }, refuse, eager), &tally_here);
        let path = walk(&system, &choices);
        tally.add(&tally_here);
        match tally_here.failure() {
            None => Ok(()),
            Some(text) => Err(TestCaseError::fail(format!("{}\n{text}", fencepost_proofs::explain::script(&path)))),
        }
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    println!("counts: {cases} random programs, {} steps checked against the relation", tally.observed());
    assert!(tally.observed() > if is_long() { 2_000_000 } else { 50_000 }, "{}", tally.observed());
    let never: Vec<&str> = Move::ALL.iter().filter(|m| tally.taken(**m) == 0).map(|m| m.name()).collect();
    // Nobody who keeps to the machine resets a buffer by an old lease.
    assert_eq!(never, ["reset_buffer"], "steps that never happened");
}
