//! What the tests share: searches, replays and pinned text.
#![allow(dead_code)] // Each test binary uses a part of it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fencepost::Rule;
use fencepost_proofs::protocol::Protocol;
use fencepost_proofs::search::{self, Finding, Limits, Outcome};
use fencepost_proofs::setup::Setup;
use fencepost_proofs::world::{Action, System, World};
use fencepost_proofs::{canonical, explain, with_row};

/// One answer for each item, in order, from two threads.
pub fn on_two_threads<T: Sync, R: Send>(items: &[T], answer: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let answers: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let at = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(item) = items.get(at)
                {
                    let answer = answer(item);
                    answers.lock().expect("a thread that panicked ends the test").push((at, answer));
                }
            });
        }
    });
    let mut answers = answers.into_inner().expect("no thread panicked");
    answers.sort_by_key(|(at, _)| *at);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

pub fn search(setup: Setup, limits: Limits) -> Outcome {
    with_row!(setup.row, system => search::run(&system, limits, |_| ()), setup)
}

pub fn broken(outcome: &Outcome) -> BTreeSet<Rule> {
    outcome.findings.iter().map(|f| f.rule).collect()
}

/// Whether a counterexample ends in its rule: broken by its last step or, for progress, in a world from
/// which device steps lead to no quiescent one.
pub enum End {
    Broken,
    NeverDrains,
}

/// Takes the steps of a counterexample again.
pub fn replay(setup: Setup, finding: &Finding) -> End {
    with_row!(setup.row, system => replay_in(&system, finding), setup)
}

fn replay_in<P: Protocol>(system: &System<P>, finding: &Finding) -> End {
    let setup = &system.setup;
    let mut world = system.start();
    for (at, action) in finding.path.iter().enumerate() {
        assert_eq!(world.broken, None, "{setup}: {:?} is broken before step {}", finding.rule, at + 1);
        let mut listed = Vec::new();
        system.list(&world, &mut listed);
        assert!(listed.contains(action), "{setup}: {action} is not possible at step {}", at + 1);
        assert!(system.take(&mut world, *action, None), "{setup}: {action} is refused at step {}", at + 1);
    }
    if world.broken == Some(finding.rule) {
        return End::Broken;
    }
    let text = format!("{setup}: {} ends with {:?}", finding.rule.name(), world.broken);
    assert!(
        finding.rule == Rule::Progress && world.broken.is_none() && explain::never_drains(system, &world),
        "{text}"
    );
    End::NeverDrains
}

pub fn successors<P: Protocol>(system: &System<P>, world: &World<P>) -> Vec<(Action, World<P>)> {
    let mut actions = Vec::new();
    system.list(world, &mut actions);
    let take = |action: Action| {
        let mut next = world.clone();
        system.take(&mut next, action, None).then_some((action, next))
    };
    actions.into_iter().filter_map(take).collect()
}

pub fn form<P: Protocol>(system: &System<P>, world: &World<P>) -> Vec<u8> {
    canonical::with_form(system, world, <[u8]>::to_vec)
}

/// Compares text with a file under `tests/`; with `REWRITE=1` the file becomes the text.
pub fn assert_pinned(file: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file);
    if std::env::var("REWRITE").is_ok_and(|v| v == "1") {
        eprintln!("WARNING: {file} is rewritten, not compared");
        std::fs::write(&path, actual).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        return;
    }
    let pinned =
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}; REWRITE=1 writes it", path.display()));
    if pinned != actual {
        let without = |a: &str, sign: char, b: &str| -> String {
            a.lines().filter(|l| !b.lines().any(|m| m == *l)).map(|l| format!("{sign} {l}\n")).collect()
        };
        let difference = without(&pinned, '-', actual) + &without(actual, '+', &pinned);
        panic!("tests/{file} says otherwise (REWRITE=1 if it is wrong):\n{difference}");
    }
}
