//! The history table: what it says is pinned, what history says of it is asserted, and a second engine
//! says the same. Each configuration is searched once for all of these.

#[path = "../common/mod.rs"]
mod common;
mod engines;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use fencepost::{Family, Rule};
use fencepost_proofs::expected;
use fencepost_proofs::search::{Limits, Outcome};
use fencepost_proofs::setup::{Setup, Topology};
use fencepost_proofs::table::{self, LINES, Part};

struct Searched {
    part: Part,
    setup: Setup,
    outcome: Outcome,
}

static TABLE: LazyLock<Vec<Searched>> = LazyLock::new(|| {
    let cells = LINES.into_iter().flat_map(|line| Topology::TABLE.map(|topology| table::setups(line, topology)));
    let all: Vec<(Part, Setup)> = cells.flatten().collect();
    let outcomes = common::on_two_threads(&all, |(_, setup)| common::search(*setup, Limits::NONE));
    all.into_iter().zip(outcomes).map(|((part, setup), outcome)| Searched { part, setup, outcome }).collect()
});

#[test]
fn counts_depths_and_lengths_are_the_pinned_ones() {
    let line = |s: &Searched| expected::line(&s.setup, &s.outcome) + "\n";
    let text: String = TABLE.iter().map(line).collect();
    // Two configurations with one name could not be told apart in the file.
    let names: BTreeSet<String> = TABLE.iter().map(|s| s.setup.to_string()).collect();
    assert_eq!(names.len(), TABLE.len());
    common::assert_pinned("../src/expected.txt", &text);
}

#[test]
fn every_search_ends_by_itself() {
    for Searched { setup, outcome, .. } in TABLE.iter() {
        assert!(outcome.exhaustive, "{setup} is BOUNDED");
    }
}

#[test]
fn every_counterexample_ends_in_its_rule() {
    for Searched { setup, outcome, .. } in TABLE.iter() {
        for finding in &outcome.findings {
            common::replay(*setup, finding);
        }
    }
}

/// A rule whose antecedent never holds is kept by everybody.
#[test]
fn every_rule_had_something_to_say() {
    let seen = TABLE.iter().fold(0, |seen, s| seen | s.outcome.seen);
    let silent = (0..Rule::ALL.len()).filter(|bit| seen >> bit & 1 == 0).map(|bit| Rule::ALL[bit]);
    assert_eq!(silent.collect::<Vec<_>>(), []);
}

/// A configuration that holds because a kind of step never happened does not hold.
#[test]
fn every_kind_of_step_fired_where_nothing_is_broken() {
    for Searched { setup, outcome, .. } in TABLE.iter().filter(|s| s.outcome.findings.is_empty()) {
        let missing: Vec<_> = table::kinds(setup).into_iter().filter(|k| !outcome.fired.contains(k)).collect();
        assert!(missing.is_empty(), "{setup} is VACUOUS: {missing:?}");
    }
}

/// The main verdict of a cell: the rules broken in any of its configurations, without those that destroy events.
fn verdict(row: u8, family: Family, topology: Topology) -> BTreeSet<Rule> {
    let of = |s: &&Searched| (s.setup.row, s.setup.family, s.setup.topology) == (row, family, topology);
    let cell: Vec<_> = TABLE.iter().filter(of).filter(|s| s.part == Part::Main).collect();
    assert!(!cell.is_empty(), "row {row} has no {topology:?}");
    cell.into_iter().flat_map(|s| common::broken(&s.outcome)).collect()
}

fn vulkan(row: u8, topology: Topology) -> BTreeSet<Rule> {
    verdict(row, Family::Vulkan, topology)
}

#[test]
fn row_1_loses_waits_and_reuses_buffers_everywhere() {
    for topology in Topology::TABLE {
        let broken = vulkan(1, topology);
        assert!(broken.contains(&Rule::LostWait) && broken.contains(&Rule::BatchReuse), "{topology:?}: {broken:?}");
    }
}

#[test]
fn row_2_resets_while_waited_everywhere() {
    for topology in Topology::TABLE {
        assert!(vulkan(2, topology).contains(&Rule::ReuseWhileWaited), "{topology:?}");
    }
}

#[test]
fn row_3_resets_in_the_queue_ahead_of_an_earlier_wait_everywhere() {
    for topology in Topology::TABLE {
        assert!(vulkan(3, topology).contains(&Rule::ReuseWhileWaited), "{topology:?}");
    }
}

#[test]
fn rows_4_and_5_hold_on_one_stream_and_reuse_while_waited_with_two_on_one_queue() {
    for row in [4, 5] {
        assert_eq!(vulkan(row, Topology::OneStream), BTreeSet::new(), "row {row}");
        assert!(vulkan(row, Topology::TwoStreamsOneQueue).contains(&Rule::ReuseWhileWaited), "row {row}");
    }
}

#[test]
fn row_5_reuses_while_waited_when_a_second_thread_records() {
    assert!(vulkan(5, Topology::TwoThreads).contains(&Rule::ReuseWhileWaited));
}

/// The sequence that hangs the merged code has 12 steps; the search must not need more.
#[test]
fn row_5_reuses_while_waited_within_12_steps() {
    let of = |s: &&Searched| s.setup.row == 5 && s.setup.topology == Topology::TwoStreamsOneQueue;
    let findings = TABLE.iter().filter(of).flat_map(|s| &s.outcome.findings);
    let lengths = findings.filter(|f| f.rule == Rule::ReuseWhileWaited).map(|f| f.path.len());
    assert!(lengths.min().is_some_and(|length| length <= 12));
}

/// One timeline for an event is signalled from every queue that records it.
#[test]
fn rows_3_to_7_break_the_order_of_timelines_on_two_queues() {
    for row in 3..=7 {
        assert!(vulkan(row, Topology::TwoQueues).contains(&Rule::TimelineOrder), "row {row}");
    }
}

#[test]
fn row_6_loses_waits_on_the_transfer_queue_and_row_7_does_not() {
    assert!(vulkan(6, Topology::ComputeTransfer).contains(&Rule::LostWait));
    assert!(!vulkan(7, Topology::ComputeTransfer).contains(&Rule::LostWait));
}

#[test]
fn rows_8_and_9_hold_on_the_devices_they_were_written_for_and_break_on_vulkan() {
    for (row, topology) in [8, 9].into_iter().flat_map(|row| Topology::TABLE.map(|topology| (row, topology))) {
        assert_eq!(verdict(row, Family::Cuda, topology), BTreeSet::new(), "row {row} {topology:?}");
        assert_ne!(vulkan(row, topology), BTreeSet::new(), "row {row} {topology:?}");
    }
}

#[test]
fn rows_10_and_11_hold_everywhere() {
    for (row, topology) in [10, 11].into_iter().flat_map(|row| Topology::TABLE.map(|topology| (row, topology))) {
        assert_eq!(vulkan(row, topology), BTreeSet::new(), "row {row} {topology:?}");
    }
}
