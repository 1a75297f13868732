//! A device: where streams, events and buffers come from.

use std::sync::Arc;
use std::time::Duration;

use ash::vk;
use fencepost::{Policy, QueueId, StreamId};

use crate::buffer::Buffer;
use crate::driver::{Driver, Queue};
use crate::error::Error;
use crate::event::Event;
use crate::runtime::Runtime;
use crate::sim::Simulated;
use crate::stream::Stream;
use crate::vulkan::{Adopted, OpenOptions, Vulkan};

/// How a device is used.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How waits within one queue are expressed; where only barriers are, no event has a time.
    pub policy: Policy,
    /// How long a host wait looks at the counter before it lets the thread sleep. On an H200 a wait that sleeps takes
    /// 36 µs for an empty batch, and one that looks takes 11.
    pub spin: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options { policy: Policy { events: true }, spin: Duration::from_micros(50) }
    }
}

/// Where a stream goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On some queue that can do this: of the family with the fewest streams, of those on the most special one.
    Any(vk::QueueFlags),
    /// On this queue, by its position in [`Device::queues`].
    Queue(QueueId),
}

impl Default for Placement {
    fn default() -> Self {
        Placement::Any(vk::QueueFlags::COMPUTE)
    }
}

/// A device; clones are the same one. It ends when the last stream, event, buffer and clone is gone, and then waits for
/// everything it was given to do.
///
/// Vulkan: `VkDevice`. CUDA: a context. ggml: a backend device.
#[derive(Clone)]
pub struct Device {
    pub(crate) runtime: Arc<Runtime>,
}

impl Device {
    /// Opens a Vulkan device.
    pub fn open(open: &OpenOptions, options: Options) -> Result<Device, Error> {
        Ok(Device::with_driver(Vulkan::open(open)?, options))
    }

    /// Uses the Vulkan device of an application.
    ///
    /// # Safety
    /// What `adopted` says is true, and the application's device outlives this one with its streams, events and buffers.
    pub unsafe fn adopt(adopted: Adopted, options: Options) -> Result<Device, Error> {
        // SAFETY: the caller's promise is the same.
        Ok(Device::with_driver(unsafe { Vulkan::adopt(adopted) }?, options))
    }

    /// The simulated GPU, whose scheduler draws from a seed.
    pub fn simulated(seed: u64, options: Options) -> Device {
        Device::with_driver(Simulated::new(seed), options)
    }

    /// A device on any driver, decorated ones included.
    pub fn with_driver(driver: impl Driver + 'static, options: Options) -> Device {
        Device { runtime: Arc::new(Runtime::new(Arc::new(driver), options.policy, options.spin)) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.runtime.link.driver.name()
    }

    /// Its queues.
    pub fn queues(&self) -> &[Queue] {
        self.runtime.link.driver.queues()
    }

    /// A new stream.
    ///
    /// Vulkan: a timeline semaphore and a command pool. CUDA: `cudaStreamCreate`.
    pub fn stream(&self, placement: Placement) -> Result<Stream, Error> {
        let mut locked = self.runtime.lock()?;
        let queue = self.place(placement, &locked.placed)?;
        let id: StreamId = locked.drive(|m| m.create_stream(queue))?;
        locked.placed[queue as usize] += 1;
        drop(locked);
        Ok(Stream { device: self.clone(), id, queue })
    }

    /// A new event, never recorded: whoever waits for it goes on at once.
    ///
    /// CUDA: `cudaEventCreateWithFlags(cudaEventDisableTiming)`. ggml: `event_new`.
    pub fn event(&self) -> Result<Event, Error> {
        self.new_event(false)
    }

    /// A new event that also remembers when it passed.
    ///
    /// Vulkan: with a timestamp query. CUDA: `cudaEventCreate`.
    pub fn timed_event(&self) -> Result<Event, Error> {
        self.new_event(true)
    }

    fn new_event(&self, timed: bool) -> Result<Event, Error> {
        let id = self.runtime.lock()?.machine.create_event();
        Ok(Event { device: self.clone(), id, timed })
    }

    /// Zeroed or stale memory that host and device share: for tests, examples and small transfers, no allocator.
    pub fn buffer(&self, size: u64) -> Result<Buffer, Error> {
        Buffer::new(self, size)
    }

    /// How many slots (VkEvents) the device has made, and how many of them can be used at once.
    pub fn slot_count(&self) -> Result<(usize, usize), Error> {
        let counts = self.runtime.lock()?.machine.slot_counts();
        Ok((counts.iter().sum(), counts[0]))
    }

    /// Whether the device was lost.
    pub fn is_lost(&self) -> bool {
        self.runtime.is_lost()
    }

    pub(crate) fn same_as(&self, user: &Device, object: &'static str) -> Result<(), Error> {
        if self.runtime.number == user.runtime.number {
            return Ok(());
        }
        let named = |device: &Device| format!("device {} ({})", device.runtime.number, device.name());
        Err(Error::OtherDevice { object, owner: named(self), user: named(user) })
    }

    fn place(&self, placement: Placement, placed: &[u32]) -> Result<QueueId, Error> {
        let queues = self.queues();
        let able = |q: &Queue| {
            // Graphics and compute imply transfer.
            q.flags | if q.has_events() { vk::QueueFlags::TRANSFER } else { vk::QueueFlags::empty() }
        };
        let of_family =
            |family| queues.iter().zip(placed).filter(|(q, _)| q.family == family).map(|(_, n)| n).sum::<u32>();
        let chosen = match placement {
            Placement::Queue(queue) => Some(queue as usize).filter(|at| *at < queues.len()),
            Placement::Any(flags) => {
                (0..queues.len()).filter(|at| able(&queues[*at]).contains(flags)).min_by_key(|at| {
                    let queue = &queues[*at];
                    (of_family(queue.family), able(queue).as_raw().count_ones(), placed[*at])
                })
            }
        };
        chosen.map(|at| at as QueueId).ok_or_else(|| Error::NoQueue {
            device: self.name().into(),
            wanted: match placement {
                Placement::Any(flags) => format!("with {flags:?}"),
                Placement::Queue(queue) => format!("number {queue}"),
            },
            found: queues
                .iter()
                .map(|q| format!("{:?} in family {}", q.flags, q.family))
                .collect::<Vec<_>>()
                .join("; "),
        })
    }
}
