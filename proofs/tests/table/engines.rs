//! Two engines over one model say the same: a fault in one of them, or a collision of stateright's
//! fingerprints, would show as a difference.

use std::collections::BTreeMap;

use fencepost::Rule;
use fencepost_proofs::engines::{self, Found};
use fencepost_proofs::with_row;

use super::{Searched, TABLE};
use crate::common::{self, End};

#[test]
fn stateright_counts_the_same_states_and_finds_the_same_rules_as_soon() {
    let differences = common::on_two_threads(&TABLE, |Searched { setup, outcome, .. }| {
        let found: Found = with_row!(setup.row, system => engines::stateright(system), *setup);
        // Worlds that can step and never drain are found on the graph, which stateright does not keep.
        let ends_broken = |f: &&_| matches!(common::replay(*setup, f), End::Broken);
        let ours = outcome.findings.iter().filter(ends_broken).map(|f| (f.rule, f.path.len()));
        let ours = (outcome.unique_count, ours.collect::<BTreeMap<Rule, usize>>());
        let theirs = found.findings.iter().map(|(rule, path)| (*rule, path.len()));
        let theirs = (found.unique_count, theirs.collect::<BTreeMap<Rule, usize>>());
        (ours != theirs).then(|| format!("{setup}: ours {ours:?}, stateright's {theirs:?}\n"))
    });
    assert_eq!(differences.into_iter().flatten().collect::<String>(), "");
}
