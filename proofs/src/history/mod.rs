//! The rows of the history table, each a protocol that somebody shipped or proposed.

mod fencepost;

pub use self::fencepost::Fencepost;
