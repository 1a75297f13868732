//! What libFuzzer found (`fuzz/corpus`), and mutations of it, as ordinary tests.

use std::fs;
use std::path::Path;

use fencepost_tests::{budget, fuzz};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};

/// Input for a body: its corpus, and for the reader of scenarios the scenarios too.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![tests.join("fuzz/corpus").join(target)];
    folders.extend((target == "scenario").then(|| tests.join("scenarios")));
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap_or_else(|e| panic!("{folder:?}: {e}")));
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// A change to an input.
#[derive(Clone, Debug)]
enum Mutation {
    Set(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    /// A part of another input is put in; a line, where there are lines.
    Splice(Index, Index, Index, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    let bytes = prop::collection::vec(any::<u8>(), 1..6);
    prop_oneof![
        2 => (at(), any::<u8>()).prop_map(|(to, byte)| Mutation::Set(to, byte)),
        1 => (at(), bytes).prop_map(|(to, bytes)| Mutation::Insert(to, bytes)),
        1 => (at(), 1..40_usize).prop_map(|(from, count)| Mutation::Remove(from, count)),
        4 => (at(), at(), at(), 1..60_usize).prop_map(|(to, of, from, count)| Mutation::Splice(to, of, from, count)),
    ]
}

/// Where a line of a text begins, at or before; anything else has no lines.
fn line(bytes: &[u8], at: usize) -> usize {
    let is_text = std::str::from_utf8(bytes).is_ok_and(|text| text.starts_with('#'));
    if is_text { bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1) } else { at }
}

fn mutate(corpus: &[Vec<u8>], bytes: &mut Vec<u8>, mutation: &Mutation) {
    let within = |index: &Index, bytes: &[u8]| index.index(bytes.len() + 1);
    match mutation {
        Mutation::Set(to, byte) => {
            let to = within(to, bytes);
            bytes.splice(to..(to + 1).min(bytes.len()), [*byte]);
        }
        Mutation::Insert(to, inserted) => {
            let to = within(to, bytes);
            bytes.splice(to..to, inserted.iter().copied());
        }
        Mutation::Remove(from, count) => {
            let from = within(from, bytes);
            bytes.drain(from..(from + count).min(bytes.len()));
        }
        Mutation::Splice(to, of, from, count) => {
            let (to, other) = (within(to, bytes), of.get(corpus));
            let (to, from) = (line(bytes, to), line(other, within(from, other)));
            let end = line(other, (from + count).min(other.len())).max(from);
            bytes.splice(to..to, other[from..end].iter().copied());
        }
    }
}

fn run(target: &str, cases: u32) {
    let (_, body) = fuzz::TARGETS.into_iter().find(|(name, _)| *name == target).expect("it is one of them");
    let corpus = corpus(target);
    assert!(corpus.len() > 20, "{} inputs for {target}", corpus.len());
    corpus.iter().for_each(|bytes| body(bytes));
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let input = (any::<Index>(), prop::collection::vec(mutation(), 1..8)).prop_map(|(of, mutations)| {
        let mut bytes = of.get(&corpus).clone();
        mutations.iter().for_each(|mutation| mutate(&corpus, &mut bytes, mutation));
        Shown(bytes)
    });
    let found = TestRunner::new_with_rng(config, rng()).run(&input, |input| {
        body(&input.0);
        Ok(())
    });
    println!(
        "counts: fuzz: {target}: {} inputs found by libFuzzer or written, {cases} mutations of them",
        corpus.len()
    );
    found.unwrap_or_else(|error| panic!("{error}"));
}

/// So that a failure can be saved and run: `printf '...' > fuzz/corpus/...`.
struct Shown(Vec<u8>);

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// The same mutations each time.
fn rng() -> proptest::test_runner::TestRng {
    use proptest::test_runner::{RngAlgorithm, TestRng};
    TestRng::deterministic_rng(RngAlgorithm::ChaCha)
}

#[test]
fn scenario() {
    run("scenario", budget::count(40_000, 2_000_000));
}

#[test]
fn capi() {
    run("capi", budget::count(40_000, 2_000_000));
}
