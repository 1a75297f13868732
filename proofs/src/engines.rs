//! The second engine: stateright's breadth-first checker over the same model.
//!
//! 0.30.2, one thread, no depth limit, no symmetry switch, `always` properties only. 0.31.0 returns
//! long counterexamples as soon as there are two properties and clones the whole path for every successor;
//! two threads lose the order of levels; limits report done; `eventually` misses cycles. It keeps 64-bit
//! fingerprints without a check, so that equal counts from both engines also say that none collided.

use fencepost::Rule;
use stateright::{Checker, Model};

use crate::action::Action;
use crate::protocol::Protocol;
use crate::world::System;

/// What stateright found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub unique_count: usize,
    /// Broken rules with their shortest ways, in the order of the rules.
    pub findings: Vec<(Rule, Vec<Action>)>,
}

/// Explores every state with stateright.
pub fn stateright<P: Protocol>(system: System<P>) -> Found {
    let checker = system.checker().threads(1).spawn_bfs().join();
    let findings = Rule::ALL.into_iter().filter_map(|rule| {
        let path = checker.discovery(rule.name())?;
        Some((rule, path.into_actions()))
    });
    Found { findings: findings.collect(), unique_count: checker.unique_state_count() }
}

/// Serves stateright's Explorer on an address until the process is ended.
pub fn explore<P: Protocol>(system: System<P>, address: std::net::SocketAddr) {
    system.checker().threads(1).serve(address);
}
