//! What the judge says.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::call::{Handle, Site};
use crate::rules::Rule;

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `VkDevice`.
    Device,
    /// `VkQueue`.
    Queue,
    /// `VkCommandPool`.
    CommandPool,
    /// `VkCommandBuffer`.
    CommandBuffer,
    /// `VkEvent`.
    Event,
    /// `VkSemaphore`.
    Semaphore,
    /// `VkFence`.
    Fence,
    /// `VkBuffer`.
    Buffer,
}

/// An object that a verdict is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Object {
    /// Its kind.
    pub kind: Kind,
    /// Which one.
    pub handle: Handle,
}

impl Object {
    pub(super) const fn new(kind: Kind, handle: Handle) -> Object {
        Object { kind, handle }
    }
}

/// Something that happened to an object, for the lanes around a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The call.
    pub site: Site,
    /// What it was about.
    pub object: Object,
    /// The command buffer that it went into, or came from.
    pub command_buffer: Option<Handle>,
    /// The queue that got it; `None` if it happened on the host, at once.
    pub queue: Option<Handle>,
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Which rule.
    pub rule: Rule,
    /// What it is about.
    pub object: Object,
    /// The object's generation: which of the event's sets, counted from 1; which value of the semaphore.
    pub generation: Option<u64>,
    /// The call that breaks the rule.
    pub site: Site,
    /// The command that it handed to a queue, where a submission breaks the rule.
    pub command: Option<Site>,
    /// The call that it conflicts with.
    pub conflict: Option<Site>,
    /// The command buffer, queue or semaphore where the conflict is.
    pub place: Option<Object>,
    /// What was done, and what speaks against it.
    pub reason: Reason,
    /// Copies and other accesses that are lost with a wait.
    pub lost: Vec<Site>,
    /// What happened to the object before, oldest first.
    pub story: Vec<Moment>,
}

/// What was done to the object, and what speaks against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The wait is recorded and not submitted.
    WaitOpen,
    /// The wait is submitted and nothing says that it has executed.
    WaitPending,
    /// Nothing orders the queue's reset after the wait.
    WaitUnordered,
    /// A set or reset is submitted, and nothing says that it has executed.
    InUse,
    /// The command buffer names an event that was destroyed.
    EventGone,
    /// Another generation's set releases the wait.
    OtherSet,
    /// An earlier set, which nothing undoes before, may release the wait.
    EarlierSet,
    /// Nothing sets the event.
    NeverSet,
    /// A reset may undo the set before the wait.
    MaybeReset,
    /// The command buffer with the wait was thrown away, and later work of its pool went ahead.
    Discarded,
    /// An earlier generation's set gives the same answer.
    StillSet,
    /// The batch is not known to have ended.
    InFlight,
    /// The command buffer is being recorded.
    Recording,
    /// The command buffer has no commands to run: never recorded, or used up.
    NotRecorded,
    /// The semaphore has a value, or is promised one, that is not smaller.
    NotGreater,
    /// Nothing orders the two signals.
    SignalsUnordered,
    /// Another queue sets the event.
    OtherQueue,
    /// The value can only be signalled after the wait for it.
    Cycle,
    /// Nobody signals the value.
    NeverSignalled,
    /// Objects are left.
    Leaked,
    /// Nothing orders the accesses.
    Race,
    /// The same, and one of them is known only by what was bound.
    RaceThroughBinding,
}

impl Reason {
    /// What is wrong, as the middle of a sentence.
    const fn words(self) -> &'static str {
        match self {
            Reason::WaitOpen => "is recorded, not yet submitted, and waits for it",
            Reason::WaitPending => "waits for it, and no fence, semaphore or idle call says that it has executed",
            Reason::WaitUnordered => "waits for it, and no execution dependency orders the two",
            Reason::InUse => "was submitted, and no fence, semaphore or idle call says that it has executed",
            Reason::EventGone => "destroyed it while the command buffer named it",
            Reason::OtherSet => "sets it for another generation, and that ends the wait",
            Reason::EarlierSet => {
                "set it for another generation, which may end the wait: no reset lies certainly between"
            }
            Reason::NeverSet => "left it unset, and nothing that was submitted sets it before the wait",
            Reason::MaybeReset => "may take effect after the set and before the wait",
            Reason::Discarded => "was recorded for it and never submitted, while later work of its command pool was",
            Reason::StillSet => "was submitted for a later generation, and the answer is that of an earlier one",
            Reason::InFlight => "submitted it, and no fence, semaphore or idle call says that it has ended",
            Reason::Recording => "began it, and it was not ended",
            Reason::NotRecorded => "left it without commands",
            Reason::NotGreater => "signals a value that is not smaller",
            Reason::SignalsUnordered => "signals a smaller value, and nothing orders the two",
            Reason::OtherQueue => "sets it on another queue",
            Reason::Cycle => "would have to come first, and cannot start before",
            Reason::NeverSignalled => "is the newest signal; nobody signals the value waited for",
            Reason::Leaked => "made the first of those that are left",
            Reason::Race => {
                "accesses the same bytes on another queue, and no semaphore, event, barrier or host wait orders the two"
            }
            Reason::RaceThroughBinding => {
                "accesses the same bytes on another queue (through a binding), and no semaphore, event, barrier or host \
                 wait orders the two"
            }
        }
    }
}

impl Verdict {
    /// One sentence: what was done to what, what it conflicts with, and why it matters.
    pub fn sentence(&self, name: &dyn Fn(Object) -> String) -> String {
        let call = |site: Site| format!("{} (#{})", site.call, site.n);
        let generation = self.generation.map_or(String::new(), |g| match self.object.kind {
            Kind::Semaphore => format!(" = {g}"),
            _ => format!(", generation {g}"),
        });
        let command = self.command.map_or(String::new(), |c| format!(" of {}", call(c)));
        let place = self.place.map_or(String::new(), |o| format!(" in {}", name(o)));
        let against = match self.conflict {
            Some(conflict) => format!("{}{place} {}", call(conflict), self.reason.words()),
            None => format!("what came before{place} {}", self.reason.words()),
        };
        let (object, matters) = (name(self.object), self.rule.matters());
        let mut sentence = format!("{}{command} on {object}{generation}: {against}; {matters}", call(self.site));
        for (at, site) in self.lost.iter().enumerate() {
            sentence += if at == 0 { "; lost with it: " } else { ", " };
            sentence += &call(*site);
        }
        sentence
    }
}
