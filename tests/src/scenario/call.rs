//! A call, as a line of a script.

use std::fmt;
use std::str::FromStr;

use fencepost::{Effect, QueueId};

use super::Mistake;

/// How many queues the device has.
pub const QUEUES: QueueId = 8;

/// A name that a script gives to a stream, an event, a work or a host thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(String);

/// An effect that can be refused, by the word for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusable {
    /// [`Effect::CreateTimeline`].
    Timeline,
    /// [`Effect::Begin`].
    Begin,
    /// [`Effect::Submit`].
    Submit,
    /// [`Effect::CreateSlot`].
    Create,
    /// [`Effect::ResetSlot`].
    Reset,
}

/// A line of a script.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// `stream A on q0`: a stream is made.
    Stream {
        /// Its name.
        name: Name,
        /// Its queue.
        queue: QueueId,
    },
    /// `companion T of A`: one stream carries another's transfers.
    Companion {
        /// The one that carries.
        companion: Name,
        /// The other.
        stream: Name,
    },
    /// `slots off on q0`: recordings on the queue go without device events from now on; `slots on on q0`: with.
    Policy {
        /// Which queue.
        queue: QueueId,
        /// With device events.
        events: bool,
    },
    /// `event E`: an event is made.
    Event {
        /// Its name.
        name: Name,
    },
    /// `work A`, `work A upload`: work is issued on a stream. The judge watches eight that live at once.
    Work {
        /// Where.
        stream: Name,
        /// What the device calls it in its lines.
        name: Option<Name>,
    },
    /// `record E A`.
    Record {
        /// Which event.
        event: Name,
        /// On which stream.
        stream: Name,
    },
    /// `wait A E`: a stream waits for an event.
    Wait {
        /// Which stream.
        stream: Name,
        /// For which event.
        event: Name,
    },
    /// `flush A`.
    Flush {
        /// Which stream.
        stream: Name,
    },
    /// `synchronize E H0`: a host thread waits for an event or a stream.
    Synchronize {
        /// For what.
        target: Name,
        /// Which thread.
        host: Name,
    },
    /// `return H0`: the driver lets a thread go, if what it waits for has happened.
    Return {
        /// Which thread.
        host: Name,
    },
    /// `timeout H0`: the driver lets a thread go because its time is over.
    Timeout {
        /// Which thread.
        host: Name,
    },
    /// `query E`.
    Query {
        /// Which event.
        event: Name,
    },
    /// `destroy E`, `destroy A`.
    Destroy {
        /// The event or the stream.
        target: Name,
    },
    /// `refuse submit`: the driver refuses the next effect of a kind, once.
    Refuse {
        /// Which kind.
        effect: Refusable,
    },
    /// `lose`: the device is lost. The host finds out at its next call to the driver.
    Lose,
    /// `device`, `device q0`, `device 3`, `device q0 3`: the device takes steps, as many as it can or as many as said.
    /// Of the steps possible it takes the one that shows missing order: work begins early and ends late, the oldest
    /// first.
    Device {
        /// One queue alone.
        queue: Option<QueueId>,
        /// At most this many steps.
        steps: Option<u32>,
    },
    /// `poll A`, `poll`: the host reads a timeline, or all that have news.
    Poll {
        /// Whose.
        stream: Option<Name>,
    },
    /// `reached A 1`: a thread that read a timeline earlier reports it only now.
    Reached {
        /// Whose timeline.
        stream: Name,
        /// The value it read.
        value: u64,
    },
    /// `expect read after upload`: one work began after another had ended. Says nothing where that is so.
    Expect {
        /// What began.
        later: Name,
        /// What had ended.
        earlier: Name,
    },
    /// `slots`: shows every slot.
    Slots,
    /// `batches`: shows what each stream holds.
    Batches,
}

/// How each call is written.
const FORMS: [&str; 21] = [
    "stream NAME on qN",
    "companion STREAM of STREAM",
    "slots on|off on qN",
    "event NAME",
    "work STREAM [NAME]",
    "record EVENT STREAM",
    "wait STREAM EVENT",
    "flush STREAM",
    "synchronize EVENT|STREAM HOST",
    "return HOST",
    "timeout HOST",
    "query EVENT",
    "destroy EVENT|STREAM",
    "refuse timeline|begin|submit|create|reset",
    "lose",
    "device [qN] [STEPS]",
    "poll [STREAM]",
    "reached STREAM VALUE",
    "expect WORK after WORK",
    "slots",
    "batches",
];

impl FromStr for Call {
    type Err = Mistake;

    fn from_str(line: &str) -> Result<Call, Mistake> {
        let words: Vec<&str> = line.split_whitespace().collect();
        Ok(match words[..] {
            ["stream", name, "on", queue] => Call::Stream { name: name.parse()?, queue: read_queue(queue)? },
            ["companion", companion, "of", stream] => {
                Call::Companion { companion: companion.parse()?, stream: stream.parse()? }
            }
            ["slots", "on", "on", queue] => Call::Policy { queue: read_queue(queue)?, events: true },
            ["slots", "off", "on", queue] => Call::Policy { queue: read_queue(queue)?, events: false },
            ["event", name] => Call::Event { name: name.parse()? },
            ["work", stream] => Call::Work { stream: stream.parse()?, name: None },
            ["work", stream, name] => Call::Work { stream: stream.parse()?, name: Some(name.parse()?) },
            ["record", event, stream] => Call::Record { event: event.parse()?, stream: stream.parse()? },
            ["wait", stream, event] => Call::Wait { stream: stream.parse()?, event: event.parse()? },
            ["flush", stream] => Call::Flush { stream: stream.parse()? },
            ["synchronize", target, host] => Call::Synchronize { target: target.parse()?, host: host.parse()? },
            ["return", host] => Call::Return { host: host.parse()? },
            ["timeout", host] => Call::Timeout { host: host.parse()? },
            ["query", event] => Call::Query { event: event.parse()? },
            ["destroy", target] => Call::Destroy { target: target.parse()? },
            ["refuse", effect] => Call::Refuse { effect: effect.parse()? },
            ["lose"] => Call::Lose,
            ["device"] => Call::Device { queue: None, steps: None },
            ["device", queue] if queue.starts_with('q') => {
                Call::Device { queue: Some(read_queue(queue)?), steps: None }
            }
            ["device", steps] => Call::Device { queue: None, steps: Some(read_number(steps)?) },
            ["device", queue, steps] => {
                Call::Device { queue: Some(read_queue(queue)?), steps: Some(read_number(steps)?) }
            }
            ["poll"] => Call::Poll { stream: None },
            ["poll", stream] => Call::Poll { stream: Some(stream.parse()?) },
            ["reached", stream, value] => Call::Reached { stream: stream.parse()?, value: read_number(value)? },
            ["expect", later, "after", earlier] => Call::Expect { later: later.parse()?, earlier: earlier.parse()? },
            ["slots"] => Call::Slots,
            ["batches"] => Call::Batches,
            _ => {
                let first = words.first().copied().unwrap_or_default();
                let forms: Vec<_> = FORMS.iter().filter(|f| f.split(' ').next() == Some(first)).copied().collect();
                return Err(if forms.is_empty() {
                    Mistake::new(format!("`{first}` is no call"), FORMS.join(", "))
                } else {
                    Mistake::new(format!("`{line}` is not how `{first}` is written"), forms.join(", "))
                });
            }
        })
    }
}

/// What [`FromStr`] reads.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Call::Stream { name, queue } => write!(f, "stream {name} on q{queue}"),
            Call::Companion { companion, stream } => write!(f, "companion {companion} of {stream}"),
            Call::Policy { queue, events } => write!(f, "slots {} on q{queue}", if *events { "on" } else { "off" }),
            Call::Event { name } => write!(f, "event {name}"),
            Call::Work { stream, name: None } => write!(f, "work {stream}"),
            Call::Work { stream, name: Some(name) } => write!(f, "work {stream} {name}"),
            Call::Record { event, stream } => write!(f, "record {event} {stream}"),
            Call::Wait { stream, event } => write!(f, "wait {stream} {event}"),
            Call::Flush { stream } => write!(f, "flush {stream}"),
            Call::Synchronize { target, host } => write!(f, "synchronize {target} {host}"),
            Call::Return { host } => write!(f, "return {host}"),
            Call::Timeout { host } => write!(f, "timeout {host}"),
            Call::Query { event } => write!(f, "query {event}"),
            Call::Destroy { target } => write!(f, "destroy {target}"),
            Call::Refuse { effect } => write!(f, "refuse {effect}"),
            Call::Lose => f.write_str("lose"),
            Call::Device { queue, steps } => {
                f.write_str("device")?;
                queue.iter().try_for_each(|queue| write!(f, " q{queue}"))?;
                steps.iter().try_for_each(|steps| write!(f, " {steps}"))
            }
            Call::Poll { stream: None } => f.write_str("poll"),
            Call::Poll { stream: Some(stream) } => write!(f, "poll {stream}"),
            Call::Reached { stream, value } => write!(f, "reached {stream} {value}"),
            Call::Expect { later, earlier } => write!(f, "expect {later} after {earlier}"),
            Call::Slots => f.write_str("slots"),
            Call::Batches => f.write_str("batches"),
        }
    }
}

fn read_queue(word: &str) -> Result<QueueId, Mistake> {
    let number = word.strip_prefix('q').and_then(|n| n.parse().ok());
    number
        .filter(|queue| *queue < QUEUES)
        .ok_or_else(|| Mistake::new(format!("`{word}` is no queue"), format!("q0 to q{}", QUEUES - 1)))
}

fn read_number<T: FromStr>(word: &str) -> Result<T, Mistake> {
    let bits = 8 * size_of::<T>();
    word.parse().map_err(|_| Mistake::new(format!("`{word}` is no number"), format!("0 to 2^{bits} - 1")))
}

impl FromStr for Name {
    type Err = Mistake;

    fn from_str(word: &str) -> Result<Name, Mistake> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if word.len() > 32 || !word.starts_with(|c: char| c.is_ascii_alphabetic()) || !word.chars().all(allowed) {
            let rule = "a letter, then letters, digits and _, 32 in all at most";
            return Err(Mistake::new(format!("`{word}` is no name"), rule));
        }
        Ok(Name(word.to_string()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Refusable {
    /// Every kind.
    pub const ALL: [Refusable; 5] =
        [Refusable::Timeline, Refusable::Begin, Refusable::Submit, Refusable::Create, Refusable::Reset];

    /// The kind of an effect; a wake cannot be refused.
    pub(super) fn of(effect: Effect) -> Option<Refusable> {
        Some(match effect {
            Effect::CreateTimeline { .. } => Refusable::Timeline,
            Effect::Begin { .. } => Refusable::Begin,
            Effect::Submit { .. } => Refusable::Submit,
            Effect::CreateSlot { .. } => Refusable::Create,
            Effect::ResetSlot { .. } => Refusable::Reset,
            Effect::Wake { .. } => return None,
        })
    }
}

impl FromStr for Refusable {
    type Err = Mistake;

    fn from_str(word: &str) -> Result<Refusable, Mistake> {
        let all = Refusable::ALL;
        all.into_iter().find(|kind| kind.to_string() == word).ok_or_else(|| {
            let names = all.map(|kind| kind.to_string()).join(", ");
            Mistake::new(format!("`{word}` cannot be refused"), names)
        })
    }
}

impl fmt::Display for Refusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusable::Timeline => "timeline",
            Refusable::Begin => "begin",
            Refusable::Submit => "submit",
            Refusable::Create => "create",
            Refusable::Reset => "reset",
        })
    }
}
