//! What every search of the table has to find, to the state: pinned in `expected.txt`.

use crate::search::Outcome;
use crate::setup::Setup;

/// One line for each configuration, as [`line()`] writes it.
pub const PINNED: &str = include_str!("expected.txt");

/// An outcome in one line.
pub fn line(setup: &Setup, outcome: &Outcome) -> String {
    let mut line = format!("{setup}: unique {}, depth {}", outcome.unique_count, outcome.depth);
    if outcome.findings.is_empty() {
        line += ", holds";
    }
    for finding in &outcome.findings {
        line += &format!(", {} {}", finding.rule.name(), finding.path.len());
    }
    line
}

/// How an outcome differs from what is pinned.
pub fn difference(setup: &Setup, outcome: &Outcome) -> Option<String> {
    let found = line(setup, outcome);
    match pinned(setup) {
        Some(pinned) if pinned == found => None,
        Some(pinned) => Some(format!("found:  {found}\npinned: {pinned}")),
        None => Some(format!("not pinned: {found}")),
    }
}

/// How large the search is known to be.
pub fn unique_count(setup: &Setup) -> usize {
    let count = |line: &str| line.split("unique ").nth(1)?.split(',').next()?.parse().ok();
    pinned(setup).and_then(count).unwrap_or(0)
}

fn pinned(setup: &Setup) -> Option<&'static str> {
    let head = format!("{setup}: ");
    PINNED.lines().find(|line| line.starts_with(&head))
}
