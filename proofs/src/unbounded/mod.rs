//! The proof for any number of streams, queues, events, slots, batches and calls.
pub mod algebra;
pub mod facts;
pub mod invariant;
pub mod mutants;
pub mod progress;
pub mod prove;
pub mod refinement;
pub mod relation;
pub mod solver;
pub mod vocabulary;
