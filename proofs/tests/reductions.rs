//! Every reduction of the space finds what the space without it finds.

mod common;

use std::collections::BTreeSet;

use fencepost::{Family, Rule};
use fencepost_proofs::mutants::CASES;
use fencepost_proofs::search::Limits;
use fencepost_proofs::setup::{Bounds, Calls, Reductions, Setup, Topology};

/// One reduction off at a time, then all of them.
const LESS: [(&str, Reductions); 5] = [
    ("eager", Reductions { eager: false, ..Reductions::ALL }),
    ("symmetry", Reductions { symmetry: false, ..Reductions::ALL }),
    ("watch_one", Reductions { watch_one: false, ..Reductions::ALL }),
    ("drop_slots", Reductions { drop_slots: false, ..Reductions::ALL }),
    ("all", Reductions::NONE),
];

/// Mutants that still break their rule at the sizes below.
const MUTANTS: [&str; 9] = [
    "recycle_ignores_open_waits",
    "wait_bound_at_submit",
    "accepted_wait_dropped_with_its_batch",
    "wait_covers_one_of_two_queues",
    "buffer_leased_before_its_point",
    "submitted_taken_as_done",
    "pushed_free_before_its_frontier",
    "wait_submitted_ahead_of_its_signal",
    "destroy_frees_instead_of_quarantining",
];

fn rows() -> Vec<Setup> {
    let calls = Calls { synchronize: true, ..Calls::default() };
    let setup = |row, topology, events, live, slots| Setup {
        row,
        family: Family::Vulkan,
        topology,
        bounds: Bounds { events, open: 2, in_flight: 1, live, slots },
        calls,
        reductions: Reductions::ALL,
        mutant: None,
        without: &[],
    };
    vec![
        setup(5, Topology::OneStream, 1, 3, 2),
        setup(5, Topology::TwoStreamsOneQueue, 1, 3, 2),
        setup(9, Topology::OneStream, 1, 4, 2),
        setup(10, Topology::OneStream, 2, 3, usize::MAX),
        setup(10, Topology::TwoStreamsOneQueue, 1, 2, usize::MAX),
        setup(10, Topology::TwoQueues, 1, 2, usize::MAX),
        setup(11, Topology::TwoStreamsOneQueue, 1, 3, usize::MAX),
        setup(11, Topology::ComputeTransfer, 1, 3, usize::MAX),
    ]
}

#[test]
fn verdicts_are_those_of_the_unreduced_space() {
    let setups = rows();
    assert_same(&setups, Limits { states: STATES_MAX, ..Limits::NONE }, |reduced, full| reduced == full);
}

/// A mutant is searched until its first finding, so the rule that it offends has to be among those of either search.
#[test]
fn mutants_are_caught_in_the_unreduced_space_too() {
    let cases: Vec<_> = CASES.iter().filter(|case| MUTANTS.contains(&case.name)).collect();
    assert_eq!(cases.len(), MUTANTS.len());
    for case in cases {
        let limits = Limits { states: STATES_MAX, first_finding: true, ..Limits::NONE };
        assert_same(&[case.setup()], limits, |reduced, full| reduced.contains(&case.rule) && full.contains(&case.rule));
    }
}

/// An unreduced space that is larger proves nothing here, and fails.
const STATES_MAX: usize = 4_000_000;

fn assert_same(setups: &[Setup], limits: Limits, agree: impl Fn(&BTreeSet<Rule>, &BTreeSet<Rule>) -> bool + Sync) {
    let pairs: Vec<(Setup, &str, Reductions)> =
        setups.iter().flat_map(|s| LESS.map(|(name, less)| (*s, name, less))).collect();
    let faults = common::on_two_threads(&pairs, |(setup, name, less)| {
        let reduced = common::search(*setup, limits);
        let full = common::search(Setup { reductions: *less, ..*setup }, limits);
        let (ours, theirs) = (common::broken(&reduced), common::broken(&full));
        let factor = full.unique_count as f64 / reduced.unique_count as f64;
        println!("{setup} without {name}: {} states, {factor:.1} times as many", full.unique_count);
        let ended = limits.first_finding && !theirs.is_empty() || full.exhaustive;
        (!ended || !agree(&ours, &theirs))
            .then(|| format!("{setup} without {name}: {ours:?}, {theirs:?}, ended {ended}\n"))
    });
    assert_eq!(faults.into_iter().flatten().collect::<String>(), "");
}
