//! Conformance: what every event backend owes its callers, asked from outside.
//!
//! A backend implements [`Backend`], about 60 lines, and a test calls [`run`]. Each [check](checks) is a short program of
//! calls. Every work in it notes which of the works that it has to follow had ended when it began, so order is judged by data,
//! on devices that can say nothing about themselves too. `docs/conformance.md` has an example.

pub mod checks;
mod player;
mod report;

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod history;
pub mod runtime;
pub mod simulated;

use std::error::Error;
use std::time::Duration;

use fencepost::Rule;

pub use self::checks::{CHECKS, Check};
pub use self::report::{Broken, Case, Report, Verdict};
use crate::reference::Call;

/// Compiles and runs the example.
#[cfg(doctest)]
#[doc = include_str!("../../docs/conformance.md")]
struct Page;

/// What a backend answers; an error is told in its own words.
pub type Answer<T> = Result<T, Box<dyn Error>>;

/// How many works a check has at most; each goes by a smaller number.
pub const WORKS_MAX: usize = 8;

/// Work to be issued.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// Its number, below [`WORKS_MAX`].
    pub number: usize,
    /// The works that have to have ended when it begins.
    pub after: &'a [usize],
}

/// An implementation of streams and events, with a device that is its own.
///
/// No method but the two `synchronize` may block the host, and those keep their timeout. A handle that is dropped without
/// [`Backend::destroy_stream`] or [`Backend::destroy_event`] may be leaked.
pub trait Backend {
    /// An ordered lane of work. Vulkan: batches on a queue. CUDA: a stream.
    type Stream;
    /// What others wait for, recorded any number of times. Vulkan: up to the backend. CUDA: an event.
    type Event;

    /// A new stream. Streams with one number for their queue share it; where queues cannot be chosen, leave the number out.
    fn stream(&mut self, queue: u32) -> Answer<Self::Stream>;
    /// A new event, never recorded.
    fn event(&mut self) -> Answer<Self::Event>;
    /// Issues work that takes a while. It first notes which of `work.after` have ended (those that it has not to follow
    /// may run at the same time, and be left alone); its last act is to leave the mark that says it has ended itself.
    fn work(&mut self, stream: &Self::Stream, work: Work) -> Answer<()>;
    /// The event names everything issued on the stream so far.
    fn record(&mut self, event: &Self::Event, stream: &Self::Stream) -> Answer<()>;
    /// What is issued on the stream from now on starts after what the event names now.
    fn wait(&mut self, stream: &Self::Stream, event: &Self::Event) -> Answer<()>;
    /// Hands what the stream holds back to the device; nothing to do where calls take effect at once.
    fn flush(&mut self, stream: &Self::Stream) -> Answer<()>;
    /// Blocks until what the event names has ended: `false` if the time ran out first.
    fn synchronize(&mut self, event: &Self::Event, timeout: Duration) -> Answer<bool>;
    /// The same for everything issued on a stream.
    fn synchronize_stream(&mut self, stream: &Self::Stream, timeout: Duration) -> Answer<bool>;
    /// Whether what the event names has ended.
    fn query(&mut self, event: &Self::Event) -> Answer<bool>;
    /// The event is gone; waits keep their meaning.
    fn destroy_event(&mut self, event: Self::Event) -> Answer<()>;
    /// The stream is gone; what it was given still runs.
    fn destroy_stream(&mut self, stream: Self::Stream) -> Answer<()>;

    /// The works that have left their marks, in any order. Read while the device may still run.
    fn ended(&mut self) -> Answer<Vec<usize>>;
    /// Those that a work, which has ended, found ended when it began.
    fn found(&mut self, work: usize) -> Answer<Vec<usize>>;

    /// The driver refuses the call that follows `others` more, once. A call of the backend that fails then is made again.
    fn refuse(&mut self, _others: u64) -> Answer<()> {
        Err(format!(
            "nothing can be refused here: {:?} belongs into the list of what is never supported",
            Capability::Refusals
        )
        .into())
    }
    /// The device is lost.
    fn lose(&mut self) -> Answer<()> {
        Err(format!("no loss can be had here: {:?} belongs into the list of what is never supported", Capability::Loss)
            .into())
    }
    /// What a judge inside, such as a validation layer, found wrong. A line that starts with a rule's name and a
    /// colon tells of that rule.
    fn complaints(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// Something that not every backend has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// Streams on more than one queue.
    Queues,
    /// [`Backend::query`].
    Query,
    /// [`Backend::synchronize`] with a time that runs out.
    TimeOut,
    /// [`Backend::destroy_event`] under work and waits.
    DestroyEvent,
    /// [`Backend::destroy_stream`] under work.
    DestroyStream,
    /// [`Backend::refuse`].
    Refusals,
    /// [`Backend::lose`].
    Loss,
}

impl Capability {
    /// What a call needs; most need nothing.
    pub(crate) fn of(call: Call) -> Option<Capability> {
        match call {
            Call::Stream(_, queue) => (queue > 0).then_some(Capability::Queues),
            Call::Query(_) => Some(Capability::Query),
            Call::TimeOut(_) => Some(Capability::TimeOut),
            Call::DropEvent(_) => Some(Capability::DestroyEvent),
            Call::DropStream(_) => Some(Capability::DestroyStream),
            Call::Refuse(_) => Some(Capability::Refusals),
            Call::Lose => Some(Capability::Loss),
            _ => None,
        }
    }
}

/// What is known of a backend beforehand.
#[derive(Clone, Copy, Debug)]
pub struct Expectations<'a> {
    /// What it never supports: checks that need it are left out.
    pub never: &'a [Capability],
    /// Cases that fail today, each with the rule that it fails by, by the names that a report prints. One that passes,
    /// fails by other rules, or is not run is a mistake in this list.
    pub failing: &'a [(&'a str, Rule)],
    /// How often each case is played, with seeds from 0: more than once where the backend does something at random.
    pub rounds: u64,
    /// How long a host wait may take before it counts as hanging.
    pub patience: Duration,
}

impl Default for Expectations<'_> {
    fn default() -> Self {
        Expectations { never: &[], failing: &[], rounds: 1, patience: Duration::from_secs(5) }
    }
}

/// Plays every check on a backend that is made anew for each round from its seed.
///
/// # Panics
/// Panics with the [`Report`] if something is not as expected.
pub fn run<B: Backend>(make: impl FnMut(u64) -> B, expected: &Expectations) {
    let report = report(make, expected);
    assert!(report.is_as_expected(), "{report}");
    println!("{report}");
}

/// The same without a verdict.
pub fn report<B: Backend>(mut make: impl FnMut(u64) -> B, expected: &Expectations) -> Report {
    let cases = CHECKS.iter().flat_map(Check::programs).map(|(name, check, program)| {
        let lacks = program.iter().filter_map(|call| Capability::of(*call)).find(|c| expected.never.contains(c));
        let verdict = match lacks {
            Some(capability) => Verdict::Unsupported(capability),
            None => (0..expected.rounds)
                .find_map(|seed| {
                    let broken = player::play(&mut make(seed), &name, check.rule, &program, expected.patience);
                    (!broken.is_empty()).then_some(Verdict::Failed { seed, broken })
                })
                .unwrap_or(Verdict::Passed),
        };
        Case { name, rule: check.rule, verdict }
    });
    Report::new(cases.collect(), expected.failing)
}
