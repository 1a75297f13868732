//! What `fencepost prove` prints.

use std::io;
use std::time::{Duration, Instant};

use fencepost_proofs::unbounded::mutants::Mutant;
use fencepost_proofs::unbounded::prove::{Condition, Variant, prove};
use fencepost_proofs::unbounded::solver::{Program, Verdict};
use serde_json::{Value, json};

use crate::report::{EXHAUSTIVE, SCHEMA, SURVIVED, UNPROVED, print_json};

/// Both solvers side by side.
fn both(variant: Variant) -> Result<[Vec<Condition>; 2], String> {
    let run = |program: Program| prove(program, variant).map_err(|error| trouble(program, &error));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run(Program::Cvc5));
        let first = run(Program::Z3);
        let second = other.join().map_err(|_| "a solver's thread ended early".to_string())?;
        Ok([first?, second?])
    })
}

fn trouble(program: Program, error: &io::Error) -> String {
    let name = program.name();
    match error.kind() {
        io::ErrorKind::NotFound => {
            format!("{name} is not installed, and prove needs both solvers: on Debian, apt-get install z3 cvc5")
        }
        _ => format!("{name} gave up: {error}"),
    }
}

const fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Proved => "proved",
        Verdict::Refuted(_) => "refuted",
        Verdict::Unknown => "unknown",
    }
}

/// Decides every condition, and prints each.
pub fn conditions(json: bool) -> Result<u8, String> {
    let started = Instant::now();
    let [z3, cvc5] = both(Variant::default())?;
    let is_proved = |c: &&Condition| c.verdict == Verdict::Proved;
    let both_proved = z3.iter().zip(&cvc5).filter(|(a, b)| is_proved(a) && is_proved(b)).count();
    let all = both_proved == z3.len() && z3.len() == cvc5.len();
    let exit = if all { EXHAUSTIVE } else { UNPROVED };
    if json {
        let rows: Vec<Value> = z3.iter().zip(&cvc5).map(|(a, b)| condition_json(a, b)).collect();
        let verdict = if all { "PROVED" } else { "NOT PROVED" };
        print_json(&json!({ "schema": SCHEMA, "verdict": verdict, "exit": exit, "conditions": rows }));
        return Ok(exit);
    }
    let width = z3.iter().map(|c| c.step.len()).max().unwrap_or(0);
    let clause = z3.iter().map(|c| c.claim.len()).max().unwrap_or(0);
    let column = |c: &Condition| format!("{:>5} ms {:<7}", c.time.as_millis(), word(&c.verdict));
    println!("{:<width$}  {:<clause$}  {:<16}  cvc5", "step", "clause or rule", "z3");
    for (a, b) in z3.iter().zip(&cvc5) {
        println!("{:<width$}  {:<clause$}  {}  {}", a.step, a.claim, column(a), column(b).trim_end());
        for (program, condition) in Program::ALL.into_iter().zip([a, b]) {
            if let Verdict::Refuted(story) = &condition.verdict {
                println!("{} found:\n{story}", program.name());
            }
        }
    }
    let time = |c: &[Condition]| c.iter().map(|c| c.time).sum::<Duration>().as_secs_f64();
    println!(
        "{} conditions, {both_proved} proved by both; z3 {:.1} s, cvc5 {:.1} s, together {:.1} s",
        z3.len(),
        time(&z3),
        time(&cvc5),
        started.elapsed().as_secs_f64()
    );
    println!("{}", if all { "PROVED" } else { "NOT PROVED" });
    Ok(exit)
}

fn condition_json(a: &Condition, b: &Condition) -> Value {
    let one = |c: &Condition| {
        let story = if let Verdict::Refuted(story) = &c.verdict { Some(story.as_str()) } else { None };
        json!({ "verdict": word(&c.verdict), "ms": c.time.as_millis() as u64, "model": story })
    };
    json!({ "step": a.step, "claim": a.claim, "z3": one(a), "cvc5": one(b) })
}

/// Every mutant of the relation has to be refuted by both.
pub fn mutants(json: bool) -> Result<u8, String> {
    let mut survivors = 0;
    let mut rows = Vec::new();
    for mutant in Mutant::ALL {
        let results = both(Variant { mutant: Some(*mutant), first: true, ..Variant::default() })?;
        let refuted = results.map(|r| r.into_iter().last().filter(|c| matches!(c.verdict, Verdict::Refuted(_))));
        match &refuted {
            [Some(a), Some(b)] => {
                rows.push(json!({ "name": mutant.name(), "refuted": condition_json(a, b) }));
                if let (false, Verdict::Refuted(story)) = (json, &a.verdict) {
                    println!("{}: {} breaks {}; before it:\n{story}", mutant.name(), a.step, a.claim);
                }
            }
            _ => {
                survivors += 1;
                rows.push(json!({ "name": mutant.name(), "refuted": null }));
                if !json {
                    println!("{}: SURVIVED", mutant.name());
                }
            }
        }
    }
    let count = Mutant::ALL.len();
    if json {
        print_json(&json!({ "schema": SCHEMA, "survivors": survivors, "mutants": rows }));
    } else {
        println!("{count} mutants of the relation, {} refuted by both, {survivors} survived", count - survivors);
    }
    Ok(if survivors == 0 { EXHAUSTIVE } else { SURVIVED })
}
