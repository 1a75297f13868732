//! The life cycle of a slot.
//!
//! 1. **Reusable**: nothing on the device names the slot. Only here may it be reset, set for a new
//!    generation, or destroyed.
//! 2. **Recorded**: it stands for the current generation of an event. Any stream may wait on it,
//!    any number of times.
//! 3. **Pending**: the generation was superseded (recorded again, or its event destroyed), and an
//!    open batch still names the slot. No new wait can. Vulkan calls a command buffer *pending* once
//!    it is submitted; this word is the opposite and comes from llama.cpp pull request 20518.
//! 4. **Submitted**: superseded, and every batch that names it was handed to its queue, so the
//!    frontier that retires it is known.
//!
//! Then the frontier passes and the slot is Reusable again. A slot that no open batch names when it
//! is superseded skips Pending.

/// Where a slot is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lifecycle {
    /// Nothing on the device names it.
    Reusable,
    /// The current generation of an event.
    Recorded,
    /// Superseded; an open batch still names it.
    Pending,
    /// Superseded; its frontier is known and has not passed.
    Submitted,
}

/// What can happen to a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SlotInput {
    /// Reset by the host, to be set again.
    Reset,
    /// A set is recorded for a new generation.
    Record,
    /// A wait on the slot's generation is recorded.
    Wait,
    /// A batch that names it was submitted, and others that name it are still open.
    SubmitOne,
    /// The last open batch that names it was submitted.
    SubmitLast,
    /// Its event was recorded again or destroyed while an open batch names it.
    SupersedeOpen,
    /// Its event was recorded again or destroyed, and no open batch names it.
    SupersedeClosed,
    /// Every point of its frontier has passed.
    FrontierPassed,
    /// The device object is destroyed.
    Destroy,
}

/// What a state answers to an input. A refusal and a no-op are different answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transition {
    /// The slot is in this state now.
    To(Lifecycle),
    /// Allowed, and nothing changes.
    Stay,
    /// Allowed, and the slot is gone.
    Gone,
    /// Not allowed in this state: carrying it out would break `reuse_while_waited` or `stale_wait`.
    Refused,
}

impl Lifecycle {
    /// Every state, in the order of a life.
    pub const ALL: [Lifecycle; 4] =
        [Lifecycle::Reusable, Lifecycle::Recorded, Lifecycle::Pending, Lifecycle::Submitted];

    /// The whole table. VUID-vkResetEvent-event-03821 and -03822 forbid a host reset, and
    /// VUID-vkDestroyEvent-event-01145 a destruction, that a submitted command can still see.
    pub const fn on(self, input: SlotInput) -> Transition {
        use Lifecycle::{Pending, Recorded, Reusable, Submitted};
        use SlotInput::{
            Destroy, FrontierPassed, Record, Reset, SubmitLast, SubmitOne, SupersedeClosed, SupersedeOpen, Wait,
        };
        match (self, input) {
            (Reusable, Record) => Transition::To(Recorded),
            (Recorded, SupersedeOpen) => Transition::To(Pending),
            (Recorded, SupersedeClosed) | (Pending, SubmitLast) => Transition::To(Submitted),
            (Submitted, FrontierPassed) => Transition::To(Reusable),
            (Reusable, Reset) | (Recorded, Wait | SubmitOne | SubmitLast) | (Pending, SubmitOne) => Transition::Stay,
            (Reusable, Destroy) => Transition::Gone,
            _ => Transition::Refused,
        }
    }
}

impl SlotInput {
    /// Every input.
    pub const ALL: [SlotInput; 9] = [
        SlotInput::Reset,
        SlotInput::Record,
        SlotInput::Wait,
        SlotInput::SubmitOne,
        SlotInput::SubmitLast,
        SlotInput::SupersedeOpen,
        SlotInput::SupersedeClosed,
        SlotInput::FrontierPassed,
        SlotInput::Destroy,
    ];
}
