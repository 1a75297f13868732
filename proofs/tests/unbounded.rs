//! The proof for any size: its conditions, the fragment they stay in, and what makes them fail.

use std::collections::BTreeSet;
use std::process::Command;

use fencepost_proofs::unbounded::algebra::{Algebra, View, When};
use fencepost_proofs::unbounded::invariant::{NAMES, STRUCTURAL, clauses};
use fencepost_proofs::unbounded::mutants::Mutant;
use fencepost_proofs::unbounded::prove::{Variant, prove};
use fencepost_proofs::unbounded::relation::{Move, Text, Update};
use fencepost_proofs::unbounded::solver::{Program, Verdict};
use fencepost_proofs::unbounded::vocabulary::{Shape, Sort, Symbol};

/// Without the solvers there is nothing to test; in CI that is a failure.
fn solvers() -> bool {
    let there = |p: &Program| Command::new(p.name()).arg("--version").output().is_ok();
    let all = Program::ALL.iter().all(there);
    assert!(all || std::env::var_os("CI").is_none(), "z3 and cvc5 are needed");
    if !all {
        eprintln!("SKIPPED: z3 and cvc5 are not installed");
    }
    all
}

fn each_program<T: Send>(run: impl Fn(Program) -> T + Sync) -> [T; 2] {
    std::thread::scope(|scope| {
        let run = &run;
        Program::ALL.map(|program| scope.spawn(move || run(program))).map(|thread| thread.join().expect("it ran"))
    })
}

#[test]
fn every_condition_is_proved_by_both_solvers() {
    if !solvers() {
        return;
    }
    let [z3, cvc5] = each_program(|program| prove(program, Variant::default()).expect("the solver runs"));
    for condition in z3.iter().chain(&cvc5) {
        assert_eq!(condition.verdict, Verdict::Proved, "{} {}", condition.step, condition.claim);
    }
    assert_eq!(z3.len(), cvc5.len());
    // Every clause is asked of the start, every step of something.
    let asked = |step: &str| z3.iter().filter(|c| c.step == step).count();
    assert_eq!(asked("(start)"), NAMES.len());
    // Whether a thread still waits is read by `wake` alone, as its guard.
    let silent: Vec<&str> = Move::ALL.iter().map(|m| m.name()).filter(|name| asked(name) == 0).collect();
    assert_eq!(silent, ["give_up"]);
    let rules: BTreeSet<&str> = z3.iter().map(|c| c.claim.as_str()).filter(|c| !NAMES.contains(c)).collect();
    for rule in [
        "reuse_while_waited",
        "stale_wait",
        "lost_wait",
        "early_completion",
        "batch_reuse",
        "timeline_order",
        "wrong_queue",
    ] {
        assert!(rules.contains(rule), "{rule}");
    }
    println!("counts: {} conditions proved by z3 and by cvc5", z3.len());
}

#[test]
fn every_mutant_of_the_relation_is_refuted_by_both_solvers() {
    if !solvers() {
        return;
    }
    let survivors = each_program(|program| {
        let survives = |mutant: &&Mutant| {
            let variant = Variant { mutant: Some(**mutant), first: true, ..Variant::default() };
            let conditions = prove(program, variant).expect("the solver runs");
            !matches!(conditions.last().map(|c| &c.verdict), Some(Verdict::Refuted(_)))
        };
        Mutant::ALL.iter().filter(survives).map(|m| m.name()).collect::<Vec<_>>()
    });
    assert_eq!(survivors, [Vec::<&str>::new(), Vec::new()]);
}

/// Clauses that no condition but their own needs, each with the reason for which it stays.
const KEPT: &[(&str, &str)] = &[];

#[test]
fn every_clause_is_needed() {
    if !solvers() {
        return;
    }
    // That a map gives one value is how a map is declared.
    let half = |odd: bool| {
        let mine = (STRUCTURAL..NAMES.len()).filter(|n| (n % 2 == 1) == odd).map(|n| NAMES[n]);
        let idle = mine.filter(|name| {
            let variant = Variant { without: Some(name), first: true, ..Variant::default() };
            let conditions = prove(Program::Z3, variant).expect("the solver runs");
            conditions.iter().all(|c| c.verdict == Verdict::Proved)
        });
        idle.collect::<Vec<&str>>()
    };
    let idle = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(true));
        let mut idle = half(false);
        idle.extend(other.join().expect("it ran"));
        idle
    });
    let kept: Vec<&str> = KEPT.iter().map(|(name, _)| *name).collect();
    assert_eq!(idle, kept, "clauses that nothing needs");
}

/// Formulas as whether they hold a quantifier. One under a negation, in a condition or on the left of an implication is refused.
#[derive(Clone, Copy)]
struct Fragment;

impl Algebra for Fragment {
    type Bool = bool;
    type Term = ();

    fn truth(self, _: bool) -> bool {
        false
    }
    fn not(self, a: bool) -> bool {
        assert!(!a, "a quantifier under a negation");
        false
    }
    fn and(self, a: bool, b: bool) -> bool {
        a || b
    }
    fn or(self, a: bool, b: bool) -> bool {
        a || b
    }
    fn implies(self, a: bool, b: impl FnOnce() -> bool) -> bool {
        assert!(!a, "a quantifier on the left of an implication");
        b()
    }
    fn same(self, _: (), _: ()) -> bool {
        false
    }
    fn choose(self, a: bool, _: (), _: ()) {
        assert!(!a, "a quantifier in a choice");
    }
    fn all(self, _: Sort, body: impl Fn(()) -> bool) -> bool {
        body(());
        true
    }
    fn atom(self, _: When, _: Symbol, _: [(); 2]) -> bool {
        false
    }
    fn each(self, _: When, _: Symbol, _: (), body: impl Fn(()) -> bool) -> bool {
        body(());
        true
    }
    fn apply(self, _: When, _: Symbol, _: ()) {}
    fn constant(self, _: Symbol) {}
}

/// Clauses, guards and rules are universal and updates have no quantifier, so a condition asks whether universal formulas and a
/// negated one can hold together; the functions go round in no circle of sorts. Such questions are decidable: the terms are finitely many.
#[test]
fn conditions_stay_in_a_decidable_fragment() {
    let mutants = Mutant::ALL.iter().copied().map(Some).chain([None]);
    for mutant in mutants {
        for step in Move::ALL {
            let told = step.step(Text::new(Fragment, mutant), &vec![(); step.parameters().len()]);
            for (symbol, update) in &told.updates {
                if let Update::Holds(f) = update {
                    assert!(!f([(), ()]), "{} gives {} by a quantifier", step.name(), symbol.name());
                }
            }
        }
    }
    for when in [When::Pre, When::Post] {
        clauses::<Fragment>().iter().for_each(|clause| {
            (clause.claim)(View { algebra: Fragment, when });
        });
    }
    // Sorts that functions lead on from, until none is left.
    let mut edges: Vec<(Sort, Sort)> = Vec::new();
    for symbol in Symbol::ALL {
        if let (Shape::Function, [from, to]) = symbol.signature() {
            edges.push((*from, *to));
        }
    }
    while !edges.is_empty() {
        let before = edges.len();
        let targets: Vec<Sort> = edges.iter().map(|e| e.1).collect();
        edges.retain(|(from, _)| targets.contains(from));
        assert!(edges.len() < before, "functions go round: {edges:?}");
    }
}
