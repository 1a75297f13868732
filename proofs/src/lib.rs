//! Model checks of GPU event protocols.
//!
//! [`table`] lists what is searched, [`search`] and [`engines`] search it, [`history`] holds the
//! protocols, [`mutants`] the ways to be wrong, [`explain`] tells a counterexample as a story. The
//! command `fencepost` is a thin layer over these.
#![allow(missing_docs)] // Names here are a command's inside, not an interface; those that need words have them.

pub mod action;
pub mod canonical;
pub mod engines;
pub mod expected;
pub mod explain;
pub mod history;
pub mod host;
pub mod mutants;
pub mod protocol;
pub mod search;
pub mod setup;
pub mod table;
pub mod trace;
pub mod unbounded;
pub mod world;
