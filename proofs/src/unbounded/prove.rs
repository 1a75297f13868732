//! The conditions that make the theorem, decided by both solvers.

use std::io;
use std::time::{Duration, Instant};

use fencepost::Rule;

use super::algebra::{Claim, View, When, all};
use super::invariant::{NAMES, clauses};
use super::mutants::Mutant;
use super::progress;
use super::relation::{Actor, Move, Text};
use super::solver::{Goal, Program, Session, Smt, Verdict};
use super::vocabulary::{Batch, Shape, Symbol};

/// One condition, as one solver sees it.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The kind of step, or where else it comes from.
    pub step: &'static str,
    /// The clause or rule that has to hold then.
    pub claim: String,
    pub verdict: Verdict,
    pub time: Duration,
}

/// What a run leaves out or alters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Variant<'a> {
    pub mutant: Option<Mutant>,
    /// A clause that is not part of the invariant.
    pub without: Option<&'a str>,
    /// Stop at the first condition that is not proved.
    pub first: bool,
}

/// Decides every condition with one solver.
pub fn prove(program: Program, variant: Variant) -> io::Result<Vec<Condition>> {
    let mut run = Run { session: Session::start(program)?, conditions: Vec::new(), variant };
    run.initially()?;
    run.session.assume_invariant(variant.without)?;
    for step in Move::ALL {
        if run.is_over() {
            break;
        }
        run.step(*step)?;
    }
    if !run.is_over() {
        run.progress()?;
    }
    Ok(run.conditions)
}

struct Run<'a> {
    session: Session,
    conditions: Vec<Condition>,
    variant: Variant<'a>,
}

/// The state before any call: nothing holds of anything.
const START: &str = "(start)";
const DRAIN: &str = "(progress)";

impl Run<'_> {
    fn is_over(&self) -> bool {
        self.variant.first && self.conditions.last().is_some_and(|c| c.verdict != Verdict::Proved)
    }

    fn decide(&mut self, step: &'static str, claim: impl Into<String>, goal: Goal) -> io::Result<()> {
        if self.is_over() {
            return Ok(());
        }
        let started = Instant::now();
        let verdict = self.session.decide(goal)?;
        self.conditions.push(Condition { step, claim: claim.into(), verdict, time: started.elapsed() });
        Ok(())
    }

    fn initially(&mut self) -> io::Result<()> {
        self.session.push()?;
        for symbol in Symbol::ALL {
            if matches!(symbol.signature().0, Shape::Unary | Shape::Binary | Shape::Map) {
                self.session.assume_nothing_is(*symbol)?;
            }
        }
        for clause in self.clauses() {
            let goal = self.session.goal(|a| (clauses::<Smt>()[clause].claim)(View { algebra: a, when: When::Pre }));
            self.decide(START, NAMES[clause], goal)?;
        }
        self.session.pop()
    }

    fn clauses(&self) -> Vec<usize> {
        (0..NAMES.len()).filter(|c| self.variant.without != Some(NAMES[*c])).collect()
    }

    fn step(&mut self, step: Move) -> io::Result<()> {
        let mutant = self.variant.mutant;
        self.session.push()?;
        let args = self.session.parameters(step.parameters())?;
        let read = self.session.read(|a| step.step(Text::new(a, mutant), &args));
        self.session.assume_step(&read)?;
        let rules: Vec<Rule> = self.session.with(|a| {
            let told = step.step(Text::new(a, mutant), &args);
            told.rules.iter().map(|(rule, _)| *rule).collect()
        });
        for (at, rule) in rules.into_iter().enumerate() {
            let goal = self.session.goal(|a| step.step(Text::new(a, mutant), &args).rules[at].1);
            self.decide(step.name(), rule.name(), goal)?;
        }
        for clause in self.clauses() {
            if let Some(goal) = self.session.clause_after(clause) {
                self.decide(step.name(), NAMES[clause], goal)?;
            }
        }
        if step.actor() == Actor::Device {
            let goal = self.session.goal(|algebra| {
                let [s, after] = [When::Pre, When::Post].map(|when| View { algebra, when });
                progress::shrinks(step, s, after, &args)
            });
            self.decide(step.name(), "what_is_left_shrinks", goal)?;
        }
        self.session.pop()
    }

    fn progress(&mut self) -> io::Result<()> {
        for step in progress::STEPS {
            self.session.push()?;
            let args = self.session.parameters(step.parameters())?;
            self.session.assume_all(|algebra| progress::turn(step, View { algebra, when: When::Pre }, &args))?;
            let goal = self.session.goal(|a| progress::is_possible(step, Text::new(a, None), &args));
            self.decide(DRAIN, format!("the_least_can_{}", step.name()), goal)?;
            self.session.pop()?;
        }
        self.session.push()?;
        self.session.assume_all(|algebra| {
            let s = View { algebra, when: When::Pre };
            let ended: Claim<Smt> = all(algebra, |b: Batch<Smt>| s.submitted(b).implies(|| s.ended(b)));
            vec![ended]
        })?;
        let goal = self.session.goal(|algebra| progress::threads_return(View { algebra, when: When::Pre }));
        self.decide(DRAIN, "threads_return_when_all_has_ended", goal)?;
        self.session.pop()
    }
}
