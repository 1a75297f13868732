//! A step of the system, in the words that traces and stories use.

use std::fmt;
use std::str::FromStr;

use fencepost::DeviceStep;

use crate::host::Target;
use crate::protocol::Part;

/// What the client knows of a work that it issues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Nobody watches it; only the protocol takes note of it.
    Plain,
    /// It is tracked: nothing that waits for it may come early.
    Watched,
    /// It depends on tracked work.
    Dependent,
}

/// A step of the system. Of a call, two things are not the client's: `refuse`, which driver call is refused, and
/// `lease`, which of the free command buffers that are not as good as new it gets; both count from 1, 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Work {
        stream: usize,
        part: Part,
        kind: Kind,
        refuse: u8,
        lease: u8,
    },
    Record {
        event: usize,
        stream: usize,
        refuse: u8,
        lease: u8,
    },
    Wait {
        stream: usize,
        event: usize,
        refuse: u8,
        lease: u8,
    },
    Flush {
        stream: usize,
        refuse: u8,
    },
    Synchronize {
        target: Target,
        refuse: u8,
    },
    Destroy {
        event: usize,
    },
    RenewStream {
        stream: usize,
        refuse: u8,
    },
    /// The host reads a timeline.
    Poll {
        stream: usize,
    },
    /// The device takes a step.
    Device(DeviceStep),
    /// The driver lets a blocked thread go.
    Return {
        thread: usize,
    },
    /// The second half of a check that a mutant splits.
    Register {
        thread: usize,
    },
    TimeOut {
        thread: usize,
    },
    Lose,
}

impl Action {
    /// Whether it happens while the client is silent, sooner or later: what progress may count on.
    pub fn is_device(self) -> bool {
        matches!(self, Action::Device(_) | Action::Return { .. } | Action::Register { .. })
    }

    /// The kind of step, for vacuity: every kind that a configuration has must fire.
    pub fn kind(self) -> &'static str {
        match self {
            Action::Work { refuse, .. }
            | Action::Record { refuse, .. }
            | Action::Wait { refuse, .. }
            | Action::Flush { refuse, .. }
            | Action::Synchronize { refuse, .. }
            | Action::RenewStream { refuse, .. }
                if refuse > 0 =>
            {
                "refuse"
            }
            Action::Work { kind: Kind::Plain, .. } => "work",
            Action::Work { kind: Kind::Watched, .. } => "watched work",
            Action::Work { kind: Kind::Dependent, .. } => "dependent work",
            Action::Record { .. } => "record",
            Action::Wait { .. } => "wait",
            Action::Flush { .. } => "flush",
            Action::Synchronize { target: Target::Event(_), .. } => "synchronize",
            Action::Synchronize { target: Target::Stream(_), .. } => "synchronize stream",
            Action::Destroy { .. } => "destroy",
            Action::RenewStream { .. } => "renew stream",
            Action::Poll { .. } => "poll",
            Action::Device(_) => "device",
            Action::Return { .. } => "return",
            Action::Register { .. } => "register",
            Action::TimeOut { .. } => "time out",
            Action::Lose => "lose",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |word: &str, n: u8| if n > 0 { format!(" {word} {n}") } else { String::new() };
        let refused = |refuse: u8| counted("refuse", refuse);
        let leased = |lease: u8| counted("lease", lease);
        match *self {
            Action::Work { stream, part, kind, refuse, lease } => {
                let kind = match kind {
                    Kind::Plain => "",
                    Kind::Watched => " W",
                    Kind::Dependent => " D",
                };
                let part = if part == Part::Copy { "copy" } else { "work" };
                write!(f, "{part}{kind} S{stream}{}{}", refused(refuse), leased(lease))
            }
            Action::Record { event, stream, refuse, lease } => {
                write!(f, "record E{event} S{stream}{}{}", refused(refuse), leased(lease))
            }
            Action::Wait { stream, event, refuse, lease } => {
                write!(f, "wait S{stream} E{event}{}{}", refused(refuse), leased(lease))
            }
            Action::Flush { stream, refuse } => write!(f, "flush S{stream}{}", refused(refuse)),
            Action::Synchronize { target: Target::Event(e), refuse } => {
                write!(f, "synchronize E{e}{}", refused(refuse))
            }
            Action::Synchronize { target: Target::Stream(s), refuse } => {
                write!(f, "synchronize S{s}{}", refused(refuse))
            }
            Action::Destroy { event } => write!(f, "destroy E{event}"),
            Action::RenewStream { stream, refuse } => write!(f, "renew S{stream}{}", refused(refuse)),
            Action::Poll { stream } => write!(f, "poll S{stream}"),
            Action::Device(step) => write!(f, "device Q{} {}", step.queue, step.index),
            Action::Return { thread } => write!(f, "return H{thread}"),
            Action::Register { thread } => write!(f, "register H{thread}"),
            Action::TimeOut { thread } => write!(f, "time-out H{thread}"),
            Action::Lose => write!(f, "lose"),
        }
    }
}

impl Action {
    /// The stream it names.
    pub fn stream(self) -> Option<usize> {
        match self {
            Action::Work { stream, .. }
            | Action::Record { stream, .. }
            | Action::Wait { stream, .. }
            | Action::Flush { stream, .. }
            | Action::RenewStream { stream, .. }
            | Action::Poll { stream }
            | Action::Synchronize { target: Target::Stream(stream), .. } => Some(stream),
            _ => None,
        }
    }

    /// The event it names.
    pub fn event(self) -> Option<usize> {
        match self {
            Action::Record { event, .. } | Action::Wait { event, .. } | Action::Destroy { event } => Some(event),
            Action::Synchronize { target: Target::Event(event), .. } => Some(event),
            _ => None,
        }
    }
}

impl FromStr for Action {
    type Err = String;

    /// Reads what `Display` writes.
    fn from_str(text: &str) -> Result<Self, String> {
        const FORMS: &str = "work [W|D] S0, copy [W|D] S0, record E0 S0, wait S0 E0, flush S0, synchronize E0 or S0, destroy E0, renew S0, poll S0, device Q0 0, return H0, register H0, time-out H0, lose; a call may end in 'refuse 1' or 'lease 1'";
        let shown: String = text.chars().take(60).collect();
        let wrong = || format!("{shown:?} is no step; steps are: {FORMS}");
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let mut counted = |word: &str| match words[..] {
            [.., last, n] if last == word => {
                words.truncate(words.len() - 2);
                n.parse().map_err(|_| wrong())
            }
            _ => Ok(0),
        };
        let lease = counted("lease")?;
        let refuse = counted("refuse")?;
        let name = |word: &str, letter: char| word.strip_prefix(letter)?.parse::<usize>().ok();
        let number = |word: &str, letter: char| name(word, letter).filter(|n| *n < 16).ok_or_else(wrong);
        Ok(match words[..] {
            [what @ ("work" | "copy"), ref rest @ ..] => {
                let part = if what == "copy" { Part::Copy } else { Part::Compute };
                let (kind, stream) = match *rest {
                    ["W", stream] => (Kind::Watched, stream),
                    ["D", stream] => (Kind::Dependent, stream),
                    [stream] => (Kind::Plain, stream),
                    _ => return Err(wrong()),
                };
                Action::Work { stream: number(stream, 'S')?, part, kind, refuse, lease }
            }
            ["record", event, stream] => {
                Action::Record { event: number(event, 'E')?, stream: number(stream, 'S')?, refuse, lease }
            }
            ["wait", stream, event] => {
                Action::Wait { stream: number(stream, 'S')?, event: number(event, 'E')?, refuse, lease }
            }
            ["flush", stream] => Action::Flush { stream: number(stream, 'S')?, refuse },
            ["synchronize", what] if what.starts_with('S') => {
                Action::Synchronize { target: Target::Stream(number(what, 'S')?), refuse }
            }
            ["synchronize", event] => Action::Synchronize { target: Target::Event(number(event, 'E')?), refuse },
            ["destroy", event] => Action::Destroy { event: number(event, 'E')? },
            ["renew", stream] => Action::RenewStream { stream: number(stream, 'S')?, refuse },
            ["poll", stream] => Action::Poll { stream: number(stream, 'S')? },
            ["device", queue, index] => {
                let index = index.parse().map_err(|_| wrong())?;
                Action::Device(DeviceStep { queue: number(queue, 'Q')? as u32, index })
            }
            ["return", thread] => Action::Return { thread: number(thread, 'H')? },
            ["register", thread] => Action::Register { thread: number(thread, 'H')? },
            ["time-out", thread] => Action::TimeOut { thread: number(thread, 'H')? },
            ["lose"] => Action::Lose,
            _ => return Err(wrong()),
        })
    }
}
