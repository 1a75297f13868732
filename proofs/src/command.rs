//! What the command line asks for.

use std::io::{IsTerminal, Read, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use fencepost::{Family, Rule};
use fencepost_proofs::action::Action;
use fencepost_proofs::explain::{self, Impossible};
use fencepost_proofs::history::{Fencepost, ROWS};
use fencepost_proofs::mutants::CASES;
use fencepost_proofs::search::{self, Limits, Outcome, Pulse};
use fencepost_proofs::setup::{Setup, Topology};
use fencepost_proofs::table::{self, LINES, Part, TableRow};
use fencepost_proofs::world::System;
use fencepost_proofs::{engines, expected, with_row};
use serde_json::{Value, json};

use crate::report::{
    EXHAUSTIVE, NO_PROGRESS, SAFETY, SCHEMA, SURVIVED, Searched, USAGE, Verdict, finding_json, print_json,
    print_search, print_table, print_totals, search_json,
};

/// Checks GPU event protocols against the rules, exhaustively.
#[derive(Parser)]
#[command(version, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// How answers are printed
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    format: Format,
}

const EXIT_CODES: &str = "Exit codes: 0 exhaustive and as expected, 2 usage, 11 no progress, 12 a safety rule is broken, \
20 vacuous, 21 bounded or timed out, 22 a mutant survived, 23 counts differ from the pinned ones, 24 a condition is not proved, 70 a bug of ours";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Subcommand)]
enum Command {
    /// Search the whole table (the default), or one row of it, or one configuration of your own size
    Check(Check),
    /// Tell the shortest counterexample of a cell, in lanes
    Explain {
        /// The row, 1 to 11
        row: u8,
        /// The topology, or its first letters
        topology: String,
        /// The rule; without it, the one that is broken in the fewest steps
        rule: Option<String>,
        /// The CUDA-like family (rows 8 and 9)
        #[arg(long)]
        cuda: bool,
    },
    /// Take the steps of a trace, one by one, and judge them
    Replay {
        /// A file with one step a line, `-` for standard input, or the steps themselves separated by `;`
        trace: String,
        #[arg(long)]
        row: u8,
        #[arg(long, default_value = "one-stream")]
        topology: String,
        /// The CUDA-like family (rows 8 and 9)
        #[arg(long)]
        cuda: bool,
        /// Take the steps on a mutant of row 10
        #[arg(long)]
        mutant: Option<String>,
    },
    /// Prove the safety rules and progress for any size, with z3 and cvc5
    Prove {
        /// Instead, have every mutant of the relation refuted
        #[arg(long)]
        mutants: bool,
    },
    /// Judge what an application asked Vulkan to do: traces with one JSON object a line
    Trace {
        /// Traces; `-` for standard input
        #[arg(required = true)]
        files: Vec<String>,
        /// Go on when the file ends, and read what is added
        #[arg(long)]
        follow: bool,
    },
    /// Search every mutant of the machine until it is caught
    Mutants,
    /// List rows, topologies, rules and mutants
    List,
    /// Browse the states of a configuration with stateright's Explorer
    Explore {
        row: u8,
        topology: String,
        /// On which loopback port
        #[arg(long, default_value_t = 3000)]
        port: u16,
    },
}

#[derive(Args, Default)]
struct Check {
    /// The row, 1 to 11; without it, all
    row: Option<u8>,
    /// The topology, or its first letters; without it, all
    #[arg(long)]
    topology: Option<String>,
    /// The CUDA-like family (rows 8 and 9)
    #[arg(long)]
    cuda: bool,
    /// Streams, 1 to 4: a configuration of your own
    #[arg(long)]
    streams: Option<u8>,
    /// Queues, 1 to 4; streams are spread over them in turn
    #[arg(long)]
    queues: Option<u8>,
    /// Host threads, 1 to 3
    #[arg(long)]
    threads: Option<u8>,
    /// Events, 1 to 4
    #[arg(long)]
    events: Option<usize>,
    /// Commands in one open command buffer, 1 to 8
    #[arg(long)]
    open: Option<usize>,
    /// Batches of one stream that the host does not know to be done, 1 to 8
    #[arg(long)]
    in_flight: Option<usize>,
    /// Commands in all, 1 to 16
    #[arg(long)]
    live: Option<usize>,
    /// Stop after this many seconds; the verdict is then BOUNDED
    #[arg(long)]
    seconds: Option<u64>,
}

type Answer = Result<u8, String>;

/// Carries out the command line.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version are answers; a mistake is one line.
        Err(error) if !error.use_stderr() => error.exit(),
        Err(error) => {
            let text = error.render().to_string();
            let line = text.lines().next().unwrap_or_default();
            eprintln!("fencepost: {}; see --help", line.trim_start_matches("error: "));
            return ExitCode::from(USAGE);
        }
    };
    let answer = match cli.command.unwrap_or_else(|| Command::Check(Check::default())) {
        Command::Check(check) => self::check(&check, cli.format),
        Command::Explain { row, topology, rule, cuda } => explain(row, &topology, rule.as_deref(), cuda, cli.format),
        Command::Replay { trace, row, topology, cuda, mutant } => {
            replay(&trace, row, &topology, cuda, mutant.as_deref(), cli.format)
        }
        Command::Prove { mutants: false } => crate::proven::conditions(cli.format == Format::Json),
        Command::Prove { mutants: true } => crate::proven::mutants(cli.format == Format::Json),
        Command::Trace { files, follow } => crate::judged::run(&files, follow, cli.format == Format::Json),
        Command::Mutants => mutants(cli.format),
        Command::List => list(cli.format),
        Command::Explore { row, topology, port } => explore(row, &topology, port),
    };
    ExitCode::from(answer.unwrap_or_else(|message| {
        eprintln!("fencepost: {message}");
        USAGE
    }))
}

// Check ------------------------------------------------------------------------------------------

fn check(check: &Check, format: Format) -> Answer {
    let work = configurations(check)?;
    let limits = check.seconds.map_or(Limits::NONE, |s| Limits { time: Duration::from_secs(s), ..Limits::NONE });
    let results = search_all(&work, limits);
    let own = [check.events, check.open, check.in_flight, check.live].iter().any(Option::is_some)
        || check.streams.is_some()
        || check.queues.is_some()
        || check.threads.is_some();
    let whole = check.row.is_none() && check.topology.is_none() && !own;
    let verdict = Verdict::of(&results, whole, own);
    match format {
        Format::Json => {
            let searches: Vec<Value> = results.iter().map(search_json).collect();
            print_json(
                &json!({ "schema": SCHEMA, "verdict": verdict.name, "exit": verdict.exit, "searches": searches }),
            );
        }
        Format::Text => {
            if own || results.len() < 8 {
                results.iter().for_each(print_search);
            } else {
                print_table(&results);
            }
            print_totals(&results);
            verdict.notes.iter().for_each(|note| println!("{note}"));
            println!("{}", verdict.name);
        }
    }
    Ok(verdict.exit)
}

fn configurations(check: &Check) -> Result<Vec<(TableRow, Topology, Part, Setup)>, String> {
    if let Some(row) = check.row {
        known_row(row)?;
    }
    let topology = check.topology.as_deref().map(known_topology).transpose()?;
    let own_topology = own_topology(check)?;
    if topology.is_some() && own_topology.is_some() {
        return Err("--topology names streams and queues already: leave out --streams, --queues and --threads".into());
    }
    let family = if check.cuda { Family::Cuda } else { Family::Vulkan };
    if check.cuda && !matches!(check.row, Some(8 | 9)) {
        return Err("--cuda goes with row 8 or 9: the others are Vulkan protocols".into());
    }
    let sizes = [
        ("--events", check.events, 4),
        ("--open", check.open, 8),
        ("--in-flight", check.in_flight, 8),
        ("--live", check.live, 16),
    ];
    for (name, size, max) in sizes {
        if size.is_some_and(|size| size == 0 || size > max) {
            return Err(format!("{name} {} is out of range: 1 to {max}", size.unwrap_or(0)));
        }
    }
    let own = own_topology.is_some() || sizes.iter().any(|(_, size, _)| size.is_some());
    if own {
        let row = check.row.ok_or("sizes of your own need a row: fencepost check ROW --events 2 ...")?;
        let topology = own_topology.or(topology).unwrap_or(Topology::TwoStreamsOneQueue);
        let line = TableRow { row, family };
        let base = table::setups(line, topology);
        let (part, mut setup) = base[0];
        let bounds = &mut setup.bounds;
        for (bound, size) in [
            (&mut bounds.events, check.events),
            (&mut bounds.open, check.open),
            (&mut bounds.in_flight, check.in_flight),
            (&mut bounds.live, check.live),
        ] {
            *bound = size.unwrap_or(*bound);
        }
        return Ok(vec![(line, topology, part, setup)]);
    }
    let lines =
        LINES.into_iter().filter(|l| check.row.is_none_or(|row| row == l.row) && (!check.cuda || l.family == family));
    let topologies = Topology::TABLE.into_iter().filter(move |t| topology.is_none_or(|wanted| wanted == *t));
    let cells = lines.flat_map(|l| topologies.clone().map(move |t| (l, t)));
    Ok(cells.flat_map(|(l, t)| table::setups(l, t).into_iter().map(move |(part, setup)| (l, t, part, setup))).collect())
}

fn own_topology(check: &Check) -> Result<Option<Topology>, String> {
    if check.streams.is_none() && check.queues.is_none() && check.threads.is_none() {
        return Ok(None);
    }
    let (streams, queues, threads) =
        (check.streams.unwrap_or(2), check.queues.unwrap_or(1), check.threads.unwrap_or(1));
    for (name, size, max) in [("--streams", streams, 4), ("--queues", queues, 4), ("--threads", threads, 3)] {
        if size == 0 || size > max {
            return Err(format!("{name} {size} is out of range: 1 to {max}"));
        }
    }
    if queues > streams {
        return Err(format!("--queues {queues} is out of range: at most one for each of the {streams} streams"));
    }
    Ok(Some(Topology::Custom { streams, queues, threads }))
}

/// Searches on two threads, the largest first, each search on one.
fn search_all(work: &[(TableRow, Topology, Part, Setup)], limits: Limits) -> Vec<Searched> {
    let mut order: Vec<usize> = (0..work.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(expected::unique_count(&work[*at].3)));
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Outcome>>> = work.iter().map(|_| Mutex::new(None)).collect();
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(work.len()).min(2);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let setup = work[*at].3;
                    let name = setup.to_string();
                    let outcome =
                        with_row!(setup.row, system => search::run(&system, limits, |p| pulse(&name, p)), setup);
                    if !std::io::stderr().is_terminal() {
                        let seconds = outcome.elapsed.as_secs_f64();
                        eprintln!("{name}: {} states, {seconds:.1} s", outcome.unique_count);
                    }
                    if let Ok(mut result) = results[*at].lock() {
                        *result = Some(outcome);
                    }
                }
            });
        }
    });
    clear_line();
    let outcomes = results.into_iter().filter_map(|r| r.into_inner().ok().flatten());
    work.iter()
        .zip(outcomes)
        .map(|(&(line, topology, part, setup), outcome)| Searched { line, topology, part, setup, outcome })
        .collect()
}

/// One line on stderr, on a terminal only.
fn pulse(name: &str, p: Pulse) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let rate = p.generated_count as f64 / p.elapsed.as_secs_f64().max(1e-3) / 1e3;
    eprint!(
        "\r\x1b[K{name}: depth {} unique {} generated {} frontier {} {rate:.0} k/s {:.1} s {} MB",
        p.depth,
        p.unique_count,
        p.generated_count,
        p.frontier_count,
        p.elapsed.as_secs_f64(),
        p.bytes >> 20
    );
    let _ = std::io::stderr().flush();
}

fn clear_line() {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
}

// Explain, replay --------------------------------------------------------------------------------

fn explain(row: u8, topology: &str, rule: Option<&str>, cuda: bool, format: Format) -> Answer {
    known_row(row)?;
    let topology = known_topology(topology)?;
    let rule = rule.map(known_rule).transpose()?;
    let line = known_line(row, cuda)?;
    let mut best: Option<(Setup, search::Finding)> = None;
    let work: Vec<_> = table::setups(line, topology).into_iter().map(|(part, s)| (line, topology, part, s)).collect();
    let mut results = search_all(&work, Limits::NONE);
    // The cell's own verdict comes before what destroying adds.
    results.sort_by_key(|r| r.part != Part::Main);
    let seen = results.iter().fold(0, |seen, r| seen | r.outcome.seen);
    for part in [Part::Main, Part::Destroy] {
        let findings = results.iter().filter(|r| r.part == part && best.is_none());
        let findings = findings.flat_map(|r| r.outcome.findings.iter().map(move |f| (r.setup, f.clone())));
        let wanted = findings.filter(|(_, f)| rule.is_none_or(|rule| rule == f.rule));
        best = best.clone().or(wanted.min_by_key(|(_, f)| f.path.len()));
    }
    let Some((setup, finding)) = best else {
        let judged = |rule: Rule| Rule::ALL.iter().position(|r| *r == rule).is_some_and(|bit| seen >> bit & 1 == 1);
        let what = match rule {
            None => "no rule is broken",
            Some(rule) if judged(rule) => "the rule holds",
            Some(_) => "the rule was never in question in these searches",
        };
        match format {
            Format::Json => {
                print_json(&json!({ "schema": SCHEMA, "row": row, "topology": topology.name(), "finding": null }))
            }
            Format::Text => println!("row {row} {}: {what}; there is nothing to explain", topology.name()),
        }
        return Ok(EXHAUSTIVE);
    };
    let story =
        with_row!(setup.row, system => explain::tell(&system, &finding.path), setup).map_err(|i| impossible(&i))?;
    let family = if cuda { " --cuda" } else { "" };
    let again = format!(
        "fencepost replay '{}' --row {row} --topology {}{family}",
        explain::script(&finding.path),
        topology.name()
    );
    match format {
        Format::Json => print_json(&json!({
            "schema": SCHEMA,
            "row": row,
            "topology": topology.name(),
            "configuration": setup.to_string(),
            "finding": finding_json(finding.rule, &finding.path),
            "replay": again,
        })),
        Format::Text => {
            println!("{setup}: {} in {} steps\n", finding.rule.name(), finding.path.len());
            println!("{}\n{again}", explain::lanes(&setup, &story));
        }
    }
    Ok(broken_exit(Some(finding.rule)))
}

fn replay(trace: &str, row: u8, topology: &str, cuda: bool, mutant: Option<&str>, format: Format) -> Answer {
    known_row(row)?;
    let topology = known_topology(topology)?;
    let line = known_line(row, cuda)?;
    let mut setup = table::setups(line, topology)[0].1;
    if let Some(name) = mutant {
        let case = CASES.iter().find(|c| c.name == name);
        let case = case.ok_or_else(|| format!("no mutant is called {name:?}; fencepost list names them"))?;
        setup = case.setup();
        if row != setup.row || topology != setup.topology {
            return Err(format!("{name} is a mutant of row {} on {}", setup.row, setup.topology.name()));
        }
    }
    let text = read_trace(trace)?;
    let mut path = Vec::new();
    for (at, step) in text.split([';', '\n']).map(str::trim).enumerate() {
        if !step.is_empty() && !step.starts_with('#') {
            path.push(step.parse::<Action>().map_err(|error| format!("step {} of the trace: {error}", at + 1))?);
        }
    }
    // A replay is bounded by its own steps alone.
    setup.bounds = fencepost_proofs::setup::Bounds {
        open: usize::MAX,
        in_flight: usize::MAX - 1,
        live: usize::MAX,
        slots: usize::MAX,
        ..setup.bounds
    };
    setup.bounds.events = path.iter().filter_map(|a| a.event()).max().map_or(1, |e| e + 1);
    if path.is_empty() {
        return Err("the trace has no steps".into());
    }
    let streams = setup.topology.streams().len();
    if let Some((at, stream)) =
        path.iter().enumerate().find_map(|(at, a)| Some((at, a.stream().filter(|s| *s >= streams)?)))
    {
        return Err(format!("step {} names S{stream}; {} has S0 to S{}", at + 1, topology.name(), streams - 1));
    }
    if setup.bounds.events > 4 {
        return Err(format!("event E{} is out of range: E0 to E3", setup.bounds.events - 1));
    }
    if mutant.is_none() {
        setup.calls = fencepost_proofs::setup::Calls {
            synchronize: true,
            synchronize_stream: true,
            destroy: true,
            renew_stream: true,
            refuse: true,
            lose: true,
            time_out: true,
        };
    }
    let story = with_row!(setup.row, system => explain::tell(&system, &path), setup).map_err(|i| impossible(&i))?;
    match format {
        Format::Json => print_json(&json!({
            "schema": SCHEMA,
            "row": row,
            "topology": topology.name(),
            "steps": path.len(),
            "broken": story.broken.map(Rule::name),
        })),
        Format::Text => {
            println!("{}", explain::lanes(&setup, &story));
            println!("{}", story.broken.map_or("no rule is broken".into(), |rule| format!("BROKEN {}", rule.name())));
        }
    }
    Ok(broken_exit(story.broken))
}

/// At most this much of a trace is read.
const TRACE_MAX: u64 = 16 << 20;

fn read_trace(trace: &str) -> Result<String, String> {
    let read = |source: &mut dyn Read, name: &str| {
        let mut text = String::new();
        match source.take(TRACE_MAX + 1).read_to_string(&mut text) {
            Err(e) => Err(format!("{name} cannot be read: {e}")),
            Ok(_) if text.len() as u64 > TRACE_MAX => Err(format!("{name} is larger than {} MiB", TRACE_MAX >> 20)),
            Ok(_) => Ok(text),
        }
    };
    if trace == "-" {
        return read(&mut std::io::stdin(), "standard input");
    }
    match std::fs::File::open(trace) {
        Ok(mut file) => read(&mut file, "the trace"),
        // What names no file is the steps themselves.
        Err(_) => Ok(trace.into()),
    }
}

fn impossible(i: &Impossible) -> String {
    let Impossible { step, action, possible } = i;
    if possible.is_empty() {
        return format!("step {step} of the trace, '{action}', comes after a rule was broken; end the trace before it");
    }
    let possible: Vec<&str> = possible.iter().map(String::as_str).filter(|p| !p.contains("refuse")).collect();
    format!("step {step} of the trace, '{action}', is not possible there; possible are: {}", possible.join(", "))
}

const fn broken_exit(rule: Option<Rule>) -> u8 {
    match rule {
        None => EXHAUSTIVE,
        Some(Rule::Progress) => NO_PROGRESS,
        Some(_) => SAFETY,
    }
}

// Mutants, list, explore -------------------------------------------------------------------------

fn mutants(format: Format) -> Answer {
    let mut survivors = 0;
    let mut answers = Vec::new();
    let width = CASES.iter().map(|c| c.name.len()).max().unwrap_or(0);
    for case in CASES {
        let setup = case.setup();
        let system = System::<Fencepost>::new(setup);
        let limits = Limits { first_finding: true, ..Limits::NONE };
        let outcome = search::run(&system, limits, |p| pulse(case.name, p));
        clear_line();
        let caught = outcome.findings.iter().find(|f| f.rule == case.rule);
        survivors += usize::from(caught.is_none());
        match (format, caught) {
            (Format::Json, _) => answers.push(json!({
                "name": case.name,
                "rule": case.rule.name(),
                "caught": caught.is_some(),
                "finding": caught.map(|f| finding_json(f.rule, &f.path)),
                "configuration": setup.to_string(),
            })),
            (Format::Text, Some(f)) => println!("{:<width$}  {} {}", case.name, f.rule.name(), f.path.len()),
            (Format::Text, None) => println!("{:<width$}  SURVIVED {}", case.name, case.rule.name()),
        }
    }
    match format {
        Format::Json => print_json(&json!({ "schema": SCHEMA, "survivors": survivors, "mutants": answers })),
        Format::Text => println!("{} mutants, {} caught, {survivors} survived", CASES.len(), CASES.len() - survivors),
    }
    Ok(if survivors == 0 { EXHAUSTIVE } else { SURVIVED })
}

fn list(format: Format) -> Answer {
    if format == Format::Json {
        let rows: Vec<Value> =
            ROWS.iter().map(|r| json!({ "row": r.number, "protocol": r.protocol, "source": r.source })).collect();
        print_json(&json!({
            "schema": SCHEMA,
            "rows": rows,
            "topologies": Topology::TABLE.map(Topology::name),
            "rules": Rule::ALL.map(Rule::name),
            "mutants": CASES.iter().map(|c| c.name).collect::<Vec<_>>(),
        }));
        return Ok(EXHAUSTIVE);
    }
    println!("rows");
    ROWS.iter().for_each(|r| println!("  {:>2}  {} ({})", r.number, r.protocol, r.source));
    println!("topologies");
    Topology::TABLE.iter().for_each(|t| println!("  {}", t.name()));
    println!("rules");
    Rule::ALL.iter().for_each(|r| println!("  {:<18}  broken: {}", r.name(), r.matters()));
    println!("mutants");
    CASES.iter().for_each(|c| println!("  {} ({})", c.name, c.rule.name()));
    Ok(EXHAUSTIVE)
}

fn explore(row: u8, topology: &str, port: u16) -> Answer {
    known_row(row)?;
    let topology = known_topology(topology)?;
    let setup = table::setups(known_line(row, false)?, topology)[0].1;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    std::net::TcpListener::bind(address).map_err(|e| format!("port {port} cannot be used: {e}"))?;
    println!("{setup}: http://{address}");
    with_row!(setup.row, system => engines::explore(system, address), setup);
    Ok(EXHAUSTIVE)
}

// Names ------------------------------------------------------------------------------------------

fn known_row(row: u8) -> Result<(), String> {
    if (1..=11).contains(&row) { Ok(()) } else { Err(format!("row {row} does not exist: rows are 1 to 11")) }
}

fn known_line(row: u8, cuda: bool) -> Result<TableRow, String> {
    if cuda && !matches!(row, 8 | 9) {
        return Err("--cuda goes with row 8 or 9: the others are Vulkan protocols".into());
    }
    Ok(TableRow { row, family: if cuda { Family::Cuda } else { Family::Vulkan } })
}

fn known_topology(name: &str) -> Result<Topology, String> {
    let all = Topology::TABLE.map(Topology::name);
    let mut hits = Topology::TABLE.into_iter().filter(|t| !name.is_empty() && t.name().starts_with(name));
    match (hits.next(), hits.next()) {
        (Some(topology), None) => Ok(topology),
        _ => Err(format!("{name:?} names no single topology: {}", all.join(", "))),
    }
}

fn known_rule(name: &str) -> Result<Rule, String> {
    let names = Rule::ALL.map(Rule::name).join(", ");
    Rule::ALL.into_iter().find(|r| r.name() == name).ok_or_else(|| format!("{name:?} is no rule: {names}"))
}
