//! Results in print: the table, a search, totals, JSON, and what they amount to.

use fencepost::{Family, Rule};
use fencepost_proofs::action::Action;
use fencepost_proofs::history::ROWS;
use fencepost_proofs::search::Outcome;
use fencepost_proofs::setup::{Setup, Topology};
use fencepost_proofs::table::{self, LINES, Part, TableRow};
use fencepost_proofs::{expected, explain};
use serde_json::{Value, json};

/// The version of every JSON answer.
pub const SCHEMA: u32 = 1;

pub const EXHAUSTIVE: u8 = 0;
pub const USAGE: u8 = 2;
pub const NO_PROGRESS: u8 = 11;
pub const SAFETY: u8 = 12;
pub const VACUOUS: u8 = 20;
pub const BOUNDED: u8 = 21;
pub const SURVIVED: u8 = 22;
pub const DIFFERS: u8 = 23;
pub const UNPROVED: u8 = 24;

/// One search of a cell, with its result.
pub struct Searched {
    pub line: TableRow,
    pub topology: Topology,
    pub part: Part,
    pub setup: Setup,
    pub outcome: Outcome,
}

/// What all searches together say.
pub struct Verdict {
    pub name: &'static str,
    pub exit: u8,
    pub notes: Vec<String>,
}

impl Verdict {
    /// A table is as expected if every search is as it is pinned; a search of one's own, if nothing is broken.
    pub fn of(results: &[Searched], whole: bool, own: bool) -> Verdict {
        let mut notes = Vec::new();
        let cut = results.iter().filter(|r| !r.outcome.exhaustive).count();
        if cut > 0 {
            notes.push(format!("{cut} searches were stopped before their end: what they did not find proves nothing"));
            return Verdict { name: "BOUNDED", exit: BOUNDED, notes };
        }
        for r in results {
            let missing: Vec<&str> =
                table::kinds(&r.setup).into_iter().filter(|kind| !r.outcome.fired.contains(kind)).collect();
            if r.outcome.findings.is_empty() && !missing.is_empty() {
                notes.push(format!("{}: never happened: {}", r.setup, missing.join(", ")));
            }
        }
        let seen = results.iter().fold(0, |seen, r| seen | r.outcome.seen);
        let silent = Rule::ALL.iter().enumerate().filter(|(bit, _)| whole && seen >> bit & 1 == 0);
        notes.extend(silent.map(|(_, rule)| format!("{}: its condition never arose", rule.name())));
        if !notes.is_empty() {
            return Verdict { name: "VACUOUS", exit: VACUOUS, notes };
        }
        if own {
            let broken =
                |rule: &dyn Fn(Rule) -> bool| results.iter().flat_map(|r| &r.outcome.findings).any(|f| rule(f.rule));
            return if broken(&|rule| rule != Rule::Progress) {
                Verdict { name: "BROKEN", exit: SAFETY, notes }
            } else if broken(&|rule| rule == Rule::Progress) {
                Verdict { name: "NO PROGRESS", exit: NO_PROGRESS, notes }
            } else {
                Verdict { name: "EXHAUSTIVE", exit: EXHAUSTIVE, notes }
            };
        }
        let differs = results.iter().filter_map(|r| expected::difference(&r.setup, &r.outcome));
        notes.extend(differs);
        if notes.is_empty() {
            return Verdict { name: "EXHAUSTIVE", exit: EXHAUSTIVE, notes };
        }
        // A row that holds and was found broken is worse than a count that moved.
        let new = |r: &&Searched| r.line.row >= 10 && !r.outcome.findings.is_empty();
        let exit = match results.iter().find(new).map(|r| r.outcome.findings[0].rule) {
            None => DIFFERS,
            Some(Rule::Progress) => NO_PROGRESS,
            Some(_) => SAFETY,
        };
        Verdict { name: "DIFFERS", exit, notes }
    }
}

pub fn print_table(results: &[Searched]) {
    let lines = LINES.into_iter().filter(|line| results.iter().any(|r| r.line == *line));
    let columns: Vec<Topology> =
        Topology::TABLE.into_iter().filter(|t| results.iter().any(|r| r.topology == *t)).collect();
    let mut rows: Vec<Vec<Vec<String>>> = Vec::new();
    for line in lines {
        let row = &ROWS[usize::from(line.row) - 1];
        let family = if line.family == Family::Cuda { " (CUDA-like)" } else { "" };
        let carried = if matches!(line.row, 8 | 9) && family.is_empty() { " (carried to Vulkan)" } else { "" };
        let mut cells = vec![
            vec![line.row.to_string()],
            vec![format!("{}{family}{carried}", row.protocol), format!("  {}", row.source)],
        ];
        for column in &columns {
            let here = results.iter().filter(|r| r.line == line && r.topology == *column);
            cells.push(cell(here.clone().filter(|r| r.part == Part::Main).collect()));
        }
        let destroy: Vec<&Searched> = results.iter().filter(|r| r.line == line && r.part == Part::Destroy).collect();
        cells.push(if destroy.is_empty() {
            vec![if line.row >= 8 { "in all" } else { "" }.into()]
        } else {
            cell(destroy)
        });
        rows.push(cells);
    }
    let mut head = vec![vec!["row".to_string()], vec!["protocol".to_string()]];
    head.extend(columns.iter().map(|t| vec![t.name()]));
    head.push(vec!["one-stream, destroy".into()]);
    rows.insert(0, head);
    let count = rows[0].len();
    let widths: Vec<usize> =
        (0..count).map(|c| rows.iter().flat_map(|r| &r[c]).map(String::len).max().unwrap_or(0)).collect();
    for (at, row) in rows.iter().enumerate() {
        for line in 0..row.iter().map(Vec::len).max().unwrap_or(0) {
            let texts =
                row.iter().zip(&widths).map(|(cell, w)| format!("{:<w$}", cell.get(line).map_or("", String::as_str)));
            println!("{}", texts.collect::<Vec<_>>().join("  ").trim_end());
        }
        if at == 0 {
            println!("{}", "-".repeat(widths.iter().sum::<usize>() + 2 * (count - 1)));
        }
    }
    println!("\nA number is the length of the shortest counterexample; fencepost explain ROW TOPOLOGY RULE tells it.");
}

/// The rules broken in a cell, with the fewest steps each.
fn cell(results: Vec<&Searched>) -> Vec<String> {
    let shortest = |rule: Rule| {
        let findings = results.iter().flat_map(|r| &r.outcome.findings).filter(|f| f.rule == rule);
        findings.map(|f| f.path.len()).min().map(|length| format!("{} {length}", rule.name()))
    };
    let broken: Vec<String> = Rule::ALL.into_iter().filter_map(shortest).collect();
    if !broken.is_empty() || results.is_empty() {
        return broken;
    }
    let exhaustive = results.iter().all(|r| r.outcome.exhaustive);
    vec![if exhaustive { "holds".into() } else { "BOUNDED".into() }]
}

pub fn print_search(r: &Searched) {
    let Outcome { unique_count, generated_count, depth, elapsed, bytes, .. } = r.outcome;
    let rate = generated_count as f64 / elapsed.as_secs_f64().max(1e-6);
    println!(
        "{}\n  unique {unique_count}, generated {generated_count}, depth {depth}, {:.2} s, {:.0} k/s, {} bytes a state{}",
        r.setup,
        elapsed.as_secs_f64(),
        rate / 1e3,
        bytes / unique_count,
        if r.outcome.exhaustive { ", exhaustive" } else { ", BOUNDED" }
    );
    for finding in &r.outcome.findings {
        println!("  {} in {} steps: {}", finding.rule.name(), finding.path.len(), explain::script(&finding.path));
    }
    let whole = table::kinds(&r.setup).iter().all(|kind| r.outcome.fired.contains(kind));
    match (r.outcome.findings.is_empty(), r.outcome.exhaustive && whole) {
        (true, true) => println!("  holds"),
        (true, false) => println!("  nothing found, which proves nothing"),
        (false, _) => {}
    }
}

pub fn print_totals(results: &[Searched]) {
    let sum = |of: &dyn Fn(&Outcome) -> f64| results.iter().map(|r| of(&r.outcome)).sum::<f64>();
    let generated = sum(&|o| o.generated_count as f64);
    let seconds = sum(&|o| o.elapsed.as_secs_f64());
    println!(
        "{} searches: {} states, {} generated, {:.1} s of one core, {:.0} k generated/s, peak {} MB",
        results.len(),
        sum(&|o| o.unique_count as f64),
        generated,
        seconds,
        generated / seconds.max(1e-6) / 1e3,
        peak_memory().map_or("?".into(), |kib| (kib >> 10).to_string())
    );
    let measured = |r: &&Searched| r.line.row == 10 && r.topology == Topology::TwoStreamsOneQueue;
    if let Some(r) = results.iter().find(measured) {
        let rate = r.outcome.generated_count as f64 / r.outcome.elapsed.as_secs_f64().max(1e-6);
        println!(
            "{}: {:.0} k generated/s on one core, {} bytes for each unique state",
            r.setup,
            rate / 1e3,
            r.outcome.bytes / r.outcome.unique_count
        );
    }
    println!(
        "Fairness assumed for progress: a device step or a thread's return that stays possible is taken sooner or later."
    );
}

/// The process's peak resident memory in KiB, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

pub fn search_json(r: &Searched) -> Value {
    let o = &r.outcome;
    let findings: Vec<Value> = o.findings.iter().map(|f| finding_json(f.rule, &f.path)).collect();
    json!({
        "row": r.line.row,
        "family": family_name(r.line.family),
        "topology": r.topology.name(),
        "configuration": r.setup.to_string(),
        "exhaustive": o.exhaustive,
        "unique": o.unique_count,
        "generated": o.generated_count,
        "depth": o.depth,
        "seconds": o.elapsed.as_secs_f64(),
        "bytes": o.bytes,
        "findings": findings,
    })
}

pub fn finding_json(rule: Rule, path: &[Action]) -> Value {
    json!({ "rule": rule.name(), "length": path.len(), "steps": path.iter().map(ToString::to_string).collect::<Vec<_>>() })
}

pub fn print_json(value: &Value) {
    println!("{value:#}");
}

const fn family_name(family: Family) -> &'static str {
    match family {
        Family::Vulkan => "vulkan",
        Family::Cuda => "cuda",
    }
}
