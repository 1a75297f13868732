//! What a fuzzer does with bytes of its own: they are read as a script, or as calls of the C interface.
//!
//! `tests/fuzz` runs each body under libFuzzer; `tests/tests/fuzz.rs` runs what it found, and mutations of it, as ordinary tests.
//! A body panics if something is wrong with the code, and not if something is wrong with the bytes.

use crate::scenario::{Call, Script};

mod capi;

pub use self::capi::run as capi;

/// What is done with the bytes.
pub type Body = fn(&[u8]);

/// Bodies, by their names in `fuzz/fuzz_targets` and `fuzz/corpus`. A new one is added here, there, and to `fuzz/Cargo.toml`.
pub const TARGETS: [(&str, Body); 2] = [("scenario", scenario), ("capi", capi)];

/// A text is read and run, or refused with the line where it is wrong. Whatever the calls, the machine breaks no rule.
pub fn scenario(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().count().max(1);
    let script: Script = match text.parse() {
        Ok(script) => script,
        Err(error) => {
            let error: crate::scenario::Error = error;
            assert!((1..=lines).contains(&error.line), "there is no line {}", error.line);
            assert!(!error.mistake.what.is_empty() && !error.mistake.allowed.is_empty());
            return;
        }
    };
    assert_eq!(script.to_string().parse().as_ref(), Ok(&script), "what is written can be read");
    let outcome = match script.run() {
        Ok(outcome) => outcome,
        Err(error) => {
            assert!((1..=lines).contains(&error.line), "there is no line {}", error.line);
            return;
        }
    };
    // Only a host that reports what it did not see can make the machine break a rule.
    let is_honest = !script.calls().any(|call| matches!(call, Call::Reached { .. }));
    assert!(outcome.broken.is_empty() || !is_honest, "{:?} broken:\n{}", outcome.broken, outcome.script);
    // What came of it was expected, so the next run differs in nothing.
    let again = outcome.script.run().expect("it ran before");
    assert_eq!(outcome.script.differences(&again.script), []);
}
