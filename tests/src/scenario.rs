//! Scenarios: text scripts that read as stories.
//!
//! ```text
//! # llama.cpp 20518 (a), case L1
//! stream A on q0
//!     timeline t0 on q0
//! event E
//! record E A
//!     allocate t0.b0
//!     create slot 0
//!     set slot 0 generation 1 in t0.b0
//! ```
//!
//! A line that begins with `#` is a remark; the first one says where the script comes from. A line at the margin
//! is a [`Call`]. The indented lines below it are what it led to: the effects that the machine asked for, the
//! answer, and what the device did; `breaks` where a [`Rule`] was broken, `not so` where `expect` does not hold.
//! [`Script::run`] writes them anew; [`Script::differences`] compares.
//!
//! Reading a text and running what was read never panic: whatever is wrong is an [`Error`] with a line.

mod call;
mod run;

use std::fmt;
use std::str::FromStr;

use fencepost::Rule;

pub use self::call::{Call, Name, QUEUES, Refusable};
use self::run::World;

/// A script: calls, and what is expected of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    title: String,
    /// Everything below the title.
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    /// A remark, or an empty line.
    Remark(String),
    Call {
        line: usize,
        call: Call,
        told: Vec<String>,
    },
}

/// What running a script led to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The same calls, with what they led to.
    pub script: Script,
    /// The rules broken on the way.
    pub broken: Vec<Rule>,
    /// How many lines `expect` did not hold.
    pub unmet: usize,
}

/// What is wrong, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// What is wrong.
    pub what: String,
    /// What is allowed instead.
    pub allowed: String,
}

/// A mistake in a script. With the file's name and a colon before it, it reads as a compiler's message does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Where, counted from 1.
    pub line: usize,
    /// What.
    pub mistake: Mistake,
}

/// How far what is expected is indented.
const INDENT: &str = "    ";

impl Script {
    /// A script of these calls, of which nothing is expected yet. The title becomes one line.
    pub fn new(title: &str, calls: impl IntoIterator<Item = Call>) -> Script {
        let title = format!("# {}", title.split_whitespace().collect::<Vec<_>>().join(" "));
        let call = |(at, call)| Entry::Call { line: at + 2, call, told: Vec::new() };
        Script { title, entries: calls.into_iter().enumerate().map(call).collect() }
    }

    /// The first line, which says where the script comes from.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.entries.iter().filter_map(|p| match p {
            Entry::Call { call, .. } => Some(call),
            Entry::Remark(_) => None,
        })
    }

    /// Makes the calls, on a machine and a device of their own.
    pub fn run(&self) -> Result<Outcome, Error> {
        let mut script = self.clone();
        let mut world = World::new();
        for entry in &mut script.entries {
            if let Entry::Call { line, call, told } = entry {
                *told = world.make(call).map_err(|mistake| Error { line: *line, mistake })?;
            }
        }
        Ok(Outcome { script, broken: world.broken, unmet: world.unmet })
    }

    /// Where another run of the same calls led to something else: a line number and a message for each call.
    pub fn differences(&self, other: &Script) -> Vec<(usize, String)> {
        let pairs = self.entries.iter().zip(&other.entries);
        pairs
            .filter_map(|pair| match pair {
                (Entry::Call { line, call, told }, Entry::Call { told: now, .. }) if told != now => {
                    Some((*line, format!("{call}\n{}", difference(told, now))))
                }
                _ => None,
            })
            .collect()
    }
}

/// `-` before what was expected and did not come, `+` before what came and was not expected.
fn difference(expected: &[String], got: &[String]) -> String {
    let same = |(a, b): &(&String, &String)| a == b;
    let head = expected.iter().zip(got).take_while(same).count();
    let tail = expected[head..].iter().rev().zip(got[head..].iter().rev()).take_while(same).count();
    let lines = |sign: char, lines: &[String]| lines.iter().map(|l| format!("  {sign} {l}\n")).collect::<String>();
    [
        lines(' ', &expected[..head]),
        lines('-', &expected[head..expected.len() - tail]),
        lines('+', &got[head..got.len() - tail]),
        lines(' ', &expected[expected.len() - tail..]),
    ]
    .concat()
}

impl FromStr for Script {
    type Err = Error;

    fn from_str(text: &str) -> Result<Script, Error> {
        let mut lines = text.lines().map(str::trim_end).enumerate().map(|(at, line)| (at + 1, line));
        let title = match lines.next() {
            Some((_, title)) if title.starts_with('#') => title.to_string(),
            _ => {
                let mistake = Mistake::new("a script begins with a title", "a line `# where this comes from`");
                return Err(Error { line: 1, mistake });
            }
        };
        let mut entries = Vec::new();
        for (line, text) in lines {
            let error = |mistake| Error { line, mistake };
            if text.is_empty() || text.starts_with('#') {
                entries.push(Entry::Remark(text.to_string()));
            } else if text.starts_with(char::is_whitespace) {
                let Some(Entry::Call { told, .. }) = entries.last_mut() else {
                    let what = format!("`{}` is indented, and no call is above it", text.trim());
                    return Err(error(Mistake::new(what, "what is indented is expected of the call right above it")));
                };
                told.push(text.trim().to_string());
            } else {
                let call = text.parse().map_err(error)?;
                entries.push(Entry::Call { line, call, told: Vec::new() });
            }
        }
        Ok(Script { title, entries })
    }
}

/// What [`FromStr`] reads.
impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        for entry in &self.entries {
            match entry {
                Entry::Remark(text) => writeln!(f, "{text}")?,
                Entry::Call { call, told, .. } => {
                    writeln!(f, "{call}")?;
                    told.iter().try_for_each(|line| writeln!(f, "{INDENT}{line}"))?;
                }
            }
        }
        Ok(())
    }
}

impl Mistake {
    fn new(what: impl Into<String>, allowed: impl Into<String>) -> Mistake {
        Mistake { what: what.into(), allowed: allowed.into() }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; allowed: {}", self.what, self.allowed)
    }
}

impl std::error::Error for Mistake {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.mistake)
    }
}

impl std::error::Error for Error {}
