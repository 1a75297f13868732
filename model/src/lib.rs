//! What `record`, `wait`, `synchronize`, `query` and `destroy` mean for a GPU event whose device
//! objects, command buffers and timeline values are recycled.
//!
//! Three nouns carry the crate:
//!
//! * [`Machine`]: the sans-IO state machine that a runtime embeds. A call goes in; either its answer
//!   comes out, or the one [`Effect`] that has to be carried out first.
//! * [`Gpu`]: the device it runs on, as a small-step system that allows everything Vulkan (or a
//!   CUDA-like driver) allows and nothing more. A checker explores it; tests run on it.
//! * [`Rule`]: the claims both are held to, judged on every [`Occurrence`].
//!
//! The crate is `no_std`, has no dependency and no `unsafe`, reads no clock, draws no random number
//! and iterates over nothing unordered: the same calls give the same answers.
#![no_std]

extern crate alloc;

mod canon;
mod ghost;
mod gpu;
mod guard;
mod handle;
pub mod judge;
mod machine;
mod rules;
mod slot;

pub use canon::{Canon, Space};
pub use ghost::Ghost;
pub use gpu::{
    BufferId, Command, DeviceEvent, Family, FenceId, Gpu, Op, QueueId, Semaphore, Signal, Step as DeviceStep, Submit,
    Work,
};
pub use guard::Guard;
pub use handle::{EventId, SlotId, StreamId, WaiterId};
pub use machine::{
    Effect, Error, Fact, Lease, Machine, Point, Policy, Query, Recorded, Reply, Step, Synchronize, TimedOut, Waited,
};
pub use rules::{Facts, Occurrence, Rule};
pub use slot::{Lifecycle, SlotInput, Transition};
