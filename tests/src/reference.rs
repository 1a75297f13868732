//! What events mean, told naively: sets of works, and which of them have to have ended when another begins.
//!
//! It shares no code with the machine, and knows no queue, slot, batch or value. Streams and events go by small numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Works by the order in which they were issued.
pub type Works = BTreeSet<usize>;

/// A call. It is written in the words of a [`scenario`](crate::scenario), where the device drains before the host comes back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// A new stream, on a queue.
    Stream(usize, u32),
    /// A new event.
    Event(usize),
    /// Work on a stream.
    Work(usize),
    /// Record an event on a stream.
    Record(usize, usize),
    /// A stream waits for an event.
    Wait(usize, usize),
    /// Submit what a stream holds.
    Flush(usize),
    /// The host waits for an event.
    Synchronize(usize),
    /// The host waits for an event and gives up at once.
    TimeOut(usize),
    /// The host waits for a stream.
    SynchronizeStream(usize),
    /// Ask about an event.
    Query(usize),
    /// Destroy an event.
    DropEvent(usize),
    /// Destroy a stream.
    DropStream(usize),
    /// The driver refuses the call after so many more.
    Refuse(u64),
    /// The device is lost.
    Lose,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Call::Stream(s, queue) => write!(f, "stream S{s} on q{queue}"),
            Call::Event(e) => write!(f, "event E{e}"),
            Call::Work(s) => write!(f, "work S{s}"),
            Call::Record(e, s) => write!(f, "record E{e} S{s}"),
            Call::Wait(s, e) => write!(f, "wait S{s} E{e}"),
            Call::Flush(s) => write!(f, "flush S{s}"),
            Call::Synchronize(e) => write!(f, "synchronize E{e} H\ndevice\nreturn H"),
            Call::TimeOut(e) => write!(f, "synchronize E{e} H\ntimeout H"),
            Call::SynchronizeStream(s) => write!(f, "synchronize S{s} H\ndevice\nreturn H"),
            Call::Query(e) => write!(f, "query E{e}"),
            Call::DropEvent(e) => write!(f, "destroy E{e}"),
            Call::DropStream(s) => write!(f, "destroy S{s}"),
            Call::Refuse(others) => write!(f, "# the driver refuses the call after {others} more"),
            Call::Lose => f.write_str("lose"),
        }
    }
}

/// A failure that a test framework prints reads as a script.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

/// Everything asked for so far.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    /// For each live stream: what was issued on it, and what it waited for.
    pub streams: BTreeMap<usize, (Works, Works)>,
    /// For each live event: the works that its recording covers, if it has one.
    pub events: BTreeMap<usize, Option<Works>>,
    /// Events whose recording the host has waited for.
    pub passed: BTreeSet<usize>,
    /// For each work: those that have to have ended when it begins.
    pub after: Vec<Works>,
    /// Works that the host has waited for.
    pub known: Works,
    /// The device is gone.
    pub lost: bool,
}

impl Reference {
    /// Whether the call names what there is.
    pub fn allows(&self, call: Call) -> bool {
        let (stream, event) = (|s| self.streams.contains_key(&s), |e| self.events.contains_key(&e));
        match call {
            Call::Stream(s, _) => !stream(s) && !self.lost,
            Call::Event(e) => !event(e),
            Call::Work(s) | Call::Flush(s) | Call::SynchronizeStream(s) | Call::DropStream(s) => stream(s),
            Call::Record(e, s) | Call::Wait(s, e) => stream(s) && event(e),
            Call::Synchronize(e) | Call::TimeOut(e) | Call::Query(e) | Call::DropEvent(e) => event(e),
            Call::Refuse(_) | Call::Lose => !self.lost,
        }
    }

    /// Takes a call that was accepted.
    pub fn take(&mut self, call: Call) {
        match call {
            Call::Stream(s, _) => drop(self.streams.insert(s, <(Works, Works)>::default())),
            Call::Event(e) => {
                self.events.insert(e, None);
                self.passed.insert(e);
            }
            Call::DropEvent(e) => drop(self.events.remove(&e)),
            Call::DropStream(s) => drop(self.streams.remove(&s)),
            Call::Lose => self.lost = true,
            _ if self.lost => {}
            Call::Work(s) => {
                if let Some((issued, depends)) = self.streams.get_mut(&s) {
                    issued.insert(self.after.len());
                    self.after.push(depends.clone());
                }
            }
            Call::Record(e, s) => {
                self.events.insert(e, Some(self.covered(s)));
                self.passed.remove(&e);
            }
            Call::Wait(s, e) => {
                let covers = self.events.get(&e).cloned().flatten().unwrap_or_default();
                if let Some((_, depends)) = self.streams.get_mut(&s) {
                    depends.extend(covers);
                }
            }
            Call::Synchronize(e) => {
                self.known.extend(self.events.get(&e).into_iter().flatten().flatten());
                self.passed.insert(e);
            }
            Call::SynchronizeStream(s) => self.known.extend(self.covered(s)),
            Call::Flush(_) | Call::TimeOut(_) | Call::Query(_) | Call::Refuse(_) => {}
        }
    }

    /// What a recording on the stream covers now.
    pub fn covered(&self, stream: usize) -> Works {
        self.streams.get(&stream).map(|(issued, depends)| issued | depends).unwrap_or_default()
    }
}
