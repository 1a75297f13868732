//! Each way to be wrong is caught by the rule that it offends, in a pinned story.

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use fencepost::Guard;
use fencepost_proofs::explain;
use fencepost_proofs::history::Fencepost;
use fencepost_proofs::mutants::{CASES, Case};
use fencepost_proofs::search::{self, Limits};
use fencepost_proofs::world::System;

/// Guards that no rule misses when they alone are gone, each with the reason.
const KEPT_FOR_SPEED: &[(Guard, &str)] = &[];

#[test]
fn every_mutant_is_caught_by_its_own_rule_in_the_pinned_story() {
    let faults =
        common::on_two_threads(CASES, |case| std::panic::catch_unwind(|| catch(case)).err().map(|_| case.name));
    let names: Vec<_> = faults.into_iter().flatten().collect();
    assert!(names.is_empty(), "see above: {names:?}");
}

fn catch(case: &Case) {
    let system = System::<Fencepost>::new(case.setup());
    let outcome = search::run(&system, Limits { first_finding: true, ..Limits::NONE }, |_| ());
    let caught = outcome.findings.iter().find(|f| f.rule == case.rule);
    let finding =
        caught.unwrap_or_else(|| panic!("{}: {} finds {:?}", case.name, case.rule.name(), common::broken(&outcome)));
    common::replay(system.setup, finding);
    let story = explain::tell(&system, &finding.path).unwrap_or_else(|e| panic!("{}: {e:?}", case.name));
    let lanes = explain::lanes(&system.setup, &story);
    let text = format!("{}\n{}\n\n{lanes}", system.setup, explain::script(&finding.path));
    common::assert_pinned(&format!("mutants/{}.txt", case.name), &text);
}

#[test]
fn there_are_at_least_24_mutants_with_a_name_and_a_file_each() {
    let names: BTreeSet<&str> = CASES.iter().map(|case| case.name).collect();
    assert!(names.len() == CASES.len() && names.len() >= 24, "{} names of {} cases", names.len(), CASES.len());
    // A story whose mutant is gone would be read as one that is still caught.
    let files =
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mutants")).expect("stories are pinned");
    for file in files {
        let file = file.expect("the folder can be read").file_name();
        let name = file.to_string_lossy();
        assert!(name.strip_suffix(".txt").is_some_and(|name| names.contains(name)), "{name} is nobody's story");
    }
}

#[test]
fn every_guard_is_missed_by_a_rule_when_it_is_gone() {
    let taken: Vec<Guard> = CASES.iter().flat_map(|case| case.without).copied().collect();
    for guard in Guard::ALL {
        let exempt = KEPT_FOR_SPEED.iter().any(|(g, _)| g == guard);
        assert_ne!(taken.contains(guard), exempt, "{} is taken away: {}", guard.name(), !exempt);
    }
}
