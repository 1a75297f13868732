//! What stands between the machine and a device.

use std::sync::{Arc, PoisonError};

use ash::vk;
use fencepost::{Lease, QueueId};

use crate::error::{DriverError, Error};
use crate::sync::{Mutex, lock};

/// A queue that streams can be placed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its family.
    pub family: u32,
    /// Its position among the family's queues.
    pub index: u32,
    /// What it can do.
    pub flags: vk::QueueFlags,
}

impl Queue {
    /// Whether `vkCmdSetEvent` is allowed: not where a queue only copies.
    pub fn has_events(&self) -> bool {
        self.flags.intersects(vk::QueueFlags::GRAPHICS | vk::QueueFlags::COMPUTE)
    }
}

/// Keeps everybody else, the application that owns the queue included, from submitting to it.
pub trait QueueLock: Send + Sync {
    /// Submits while nobody else does. Whoever holds the lock elsewhere may not call fencepost under it.
    fn alone(&self, submit: &mut dyn FnMut());
}

impl QueueLock for std::sync::Mutex<()> {
    fn alone(&self, submit: &mut dyn FnMut()) {
        let _alone = self.lock().unwrap_or_else(PoisonError::into_inner);
        submit();
    }
}

/// One batch for a queue.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Where it goes.
    pub queue: QueueId,
    /// The timeline to signal.
    pub timeline: u32,
    /// The value to signal.
    pub value: u64,
    /// The command buffer; `None` for waits alone.
    pub lease: Option<Lease>,
    /// Timelines and values to wait for.
    pub waits: &'a [(u32, u64)],
}

/// A number for a buffer of memory.
pub type BufferId = u32;

/// What a driver answers.
pub type Answer<T> = Result<T, DriverError>;

/// Says that the runtime asks, which keeps to a driver's contract: buffers and slots exist, ranges lie within them, a
/// command buffer is recording, nothing is destroyed in use. Only the runtime makes one.
#[derive(Clone, Copy, Debug)]
pub struct Asked(());

pub(crate) const ASKED: Asked = Asked(());

/// A device as the machine's effects need it. It decides nothing: objects go by the machine's numbers, each call is one
/// thing to do, and a call that fails has changed nothing (unless the device is lost).
///
/// Calls that name a timeline's buffers are made by one thread at a time for each timeline, and no object is made by two
/// threads at once. Everything else may be called from anywhere.
///
/// # Safety
/// A driver that wraps another hands on what it was asked for, as it was asked, and nothing else.
pub unsafe trait Driver: Send + Sync {
    /// Its name, for messages.
    fn name(&self) -> &str;
    /// Its queues. The number after the last stands for the host, which signals by [`Driver::signal`].
    fn queues(&self) -> &[Queue];

    /// A timeline semaphore at 0, with a pool of command buffers for that queue.
    fn create_timeline(&self, timeline: u32, queue: QueueId) -> Answer<()>;
    /// A device event, unset.
    fn create_event(&self, slot: u32) -> Answer<()>;
    /// Resets a device event, and its timestamp, from the host.
    fn reset_event(&self, asked: Asked, slot: u32) -> Answer<()>;
    /// Memory that host and device share.
    fn create_buffer(&self, size: u64) -> Answer<BufferId>;
    /// Nothing uses it any more.
    fn destroy_buffer(&self, asked: Asked, buffer: BufferId);
    /// Its handle; `None` where there is no Vulkan.
    fn raw_buffer(&self, buffer: BufferId) -> Option<vk::Buffer>;
    /// The host writes. The range was checked.
    fn write(&self, asked: Asked, buffer: BufferId, offset: u64, bytes: &[u8]);
    /// The host reads. The range was checked.
    fn read(&self, asked: Asked, buffer: BufferId, offset: u64, bytes: &mut [u8]);

    /// Begins a command buffer; allocates it first if it is new.
    fn begin(&self, asked: Asked, lease: Lease, new: bool) -> Answer<()>;
    /// Sets a device event after all earlier commands, with what they wrote.
    fn set(&self, asked: Asked, lease: Lease, slot: u32);
    /// Writes the time at which all earlier commands have ended. Where there is no clock, nothing is written.
    fn timestamp(&self, asked: Asked, lease: Lease, slot: u32);
    /// Later commands start after the event is set, and see what was written before.
    fn wait(&self, asked: Asked, lease: Lease, slot: u32);
    /// Later commands start after earlier ones, and see what they wrote.
    fn barrier(&self, asked: Asked, lease: Lease);
    /// Later commands see what was available before the batch was submitted; they wait for nothing.
    fn acquire(&self, asked: Asked, lease: Lease);
    /// Fills a range with a word.
    fn fill(&self, asked: Asked, lease: Lease, buffer: BufferId, offset: u64, size: u64, word: u32);
    /// Copies between buffers; the ranges do not overlap.
    fn copy(&self, asked: Asked, lease: Lease, from: (BufferId, u64), to: (BufferId, u64), size: u64);
    /// Runs a shader.
    fn dispatch(&self, asked: Asked, lease: Lease, dispatch: &Dispatch) -> Result<(), Error>;
    /// The command buffer, for a caller's own commands; `None` where there is no Vulkan.
    fn raw(&self, lease: Lease) -> Option<Raw<'_>>;

    /// Ends the batch's buffer, makes its writes visible to the host, and hands it to the queue.
    fn submit(&self, asked: Asked, batch: &Batch) -> Answer<()>;
    /// The host signals a timeline of its own.
    fn signal(&self, asked: Asked, timeline: u32, value: u64) -> Answer<()>;
    /// The value of a timeline.
    fn counter(&self, timeline: u32) -> Answer<u64>;
    /// Blocks until a timeline has a value: `false` if the nanoseconds ran out first.
    fn block(&self, timeline: u32, value: u64, nanoseconds: u64) -> Answer<bool>;
    /// The timestamp beside a slot in nanoseconds, and the number of its valid bits' wrap (0: none).
    fn time(&self, slot: u32) -> Answer<Option<Time>>;
}

/// Where a validation layer, or the simulated GPU's judge, says what is wrong. It outlives the device, which may be wrong
/// to the end; clones are one list.
#[derive(Clone, Debug, Default)]
pub struct Messages(pub(crate) Arc<Mutex<Vec<String>>>);

impl Messages {
    /// Everything said so far.
    pub fn heard(&self) -> Vec<String> {
        lock(&self.0).clone()
    }

    pub(crate) fn say(&self, message: String) {
        lock(&self.0).push(message);
    }
}

/// A timestamp as the device wrote it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time {
    /// Ticks.
    pub ticks: u64,
    /// How many of its bits count.
    pub valid_bits: u32,
    /// Nanoseconds in a tick.
    pub period: f32,
}

/// A shader to run: handles of the caller, which live until the batch has ended.
#[derive(Clone, Copy, Debug)]
pub struct Dispatch<'a> {
    /// A compute pipeline.
    pub pipeline: vk::Pipeline,
    /// Its layout.
    pub layout: vk::PipelineLayout,
    /// Sets 0, 1, ..
    pub descriptor_sets: &'a [vk::DescriptorSet],
    /// Push constants for the compute stage, from offset 0.
    pub push_constants: &'a [u8],
    /// How many workgroups.
    pub groups: [u32; 3],
}

/// The Vulkan behind an open batch.
#[derive(Clone, Copy)]
pub struct Raw<'a> {
    /// The device.
    pub device: &'a ash::Device,
    /// The command buffer; recording, and not to be ended, reset or submitted.
    pub buffer: vk::CommandBuffer,
}
