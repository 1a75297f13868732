//! A decorator that has a driver refuse calls, or lose the device.

use std::sync::Arc;

use ash::vk;
use fencepost::{Lease, QueueId};

use crate::driver::{Answer, Asked, Batch, BufferId, Dispatch, Driver, Queue, Raw, Time};
use crate::error::{DriverError, Error};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};

/// A driver in which chosen calls fail. Handles of [`Faults::switch`] choose them while it is in use.
pub struct Faults<D: Driver> {
    inner: D,
    switch: Fault,
    /// The newest value submitted on each timeline: the device is not really lost, and has to be waited for.
    submitted: Mutex<Vec<u64>>,
}

/// Which call fails, and how.
#[derive(Clone, Debug, Default)]
pub struct Fault(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    calls: AtomicU64,
    plan: Mutex<Option<(Which, vk::Result)>>,
    lost: Mutex<Option<DriverError>>,
}

#[derive(Clone, Copy, Debug)]
enum Which {
    Number(u64),
    Named(&'static str),
}

impl Fault {
    /// The call after `others` more calls that can fail returns this. `ERROR_DEVICE_LOST` is for good.
    pub fn after(&self, others: u64, result: vk::Result) {
        *lock(&self.0.plan) = Some((Which::Number(self.calls() + others + 1), result));
    }

    /// The next call of this name, such as `vkCreateEvent`, returns this.
    pub fn next(&self, call: &'static str, result: vk::Result) {
        *lock(&self.0.plan) = Some((Which::Named(call), result));
    }

    /// Nothing fails any more that has not failed yet.
    pub fn clear(&self) {
        *lock(&self.0.plan) = None;
    }

    /// How many calls that can fail were made.
    pub fn calls(&self) -> u64 {
        self.0.calls.load(Ordering::SeqCst)
    }

    fn call(&self, call: &'static str) -> Answer<()> {
        if let Some(lost) = *lock(&self.0.lost) {
            return Err(lost);
        }
        let number = self.0.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let failing = lock(&self.0.plan).take_if(|(which, _)| match which {
            Which::Number(at) => *at <= number,
            Which::Named(name) => *name == call,
        });
        let Some((_, result)) = failing else { return Ok(()) };
        let error = DriverError { call, result };
        if error.is_lost() {
            *lock(&self.0.lost) = Some(error);
        }
        Err(error)
    }
}

impl<D: Driver> Faults<D> {
    /// A driver in which nothing fails yet.
    pub fn new(inner: D) -> Faults<D> {
        Faults { inner, switch: Fault::default(), submitted: Mutex::new(Vec::new()) }
    }

    /// What decides which calls fail.
    pub fn switch(&self) -> Fault {
        self.switch.clone()
    }

    fn promised(&self, timeline: u32, value: u64) {
        lock(&self.submitted)[timeline as usize] = value;
    }
}

// SAFETY: What it does not refuse, it hands on as it is.
unsafe impl<D: Driver> Driver for Faults<D> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn queues(&self) -> &[Queue] {
        self.inner.queues()
    }

    fn create_timeline(&self, timeline: u32, queue: QueueId) -> Answer<()> {
        self.switch.call("vkCreateSemaphore")?;
        self.inner.create_timeline(timeline, queue)?;
        lock(&self.submitted).push(0);
        Ok(())
    }

    fn create_event(&self, slot: u32) -> Answer<()> {
        self.switch.call("vkCreateEvent")?;
        self.inner.create_event(slot)
    }

    fn reset_event(&self, asked: Asked, slot: u32) -> Answer<()> {
        self.switch.call("vkResetEvent")?;
        self.inner.reset_event(asked, slot)
    }

    fn create_buffer(&self, size: u64) -> Answer<BufferId> {
        self.switch.call("vkCreateBuffer")?;
        self.inner.create_buffer(size)
    }

    fn destroy_buffer(&self, asked: Asked, buffer: BufferId) {
        // The device of a loss that was made up may still use it.
        if lock(&self.switch.0.lost).is_none() {
            self.inner.destroy_buffer(asked, buffer);
        }
    }

    fn raw_buffer(&self, buffer: BufferId) -> Option<vk::Buffer> {
        self.inner.raw_buffer(buffer)
    }

    fn write(&self, asked: Asked, buffer: BufferId, offset: u64, bytes: &[u8]) {
        self.inner.write(asked, buffer, offset, bytes);
    }

    fn read(&self, asked: Asked, buffer: BufferId, offset: u64, bytes: &mut [u8]) {
        self.inner.read(asked, buffer, offset, bytes);
    }

    fn begin(&self, asked: Asked, lease: Lease, new: bool) -> Answer<()> {
        self.switch.call("vkBeginCommandBuffer")?;
        self.inner.begin(asked, lease, new)
    }

    fn set(&self, asked: Asked, lease: Lease, slot: u32) {
        self.inner.set(asked, lease, slot);
    }

    fn timestamp(&self, asked: Asked, lease: Lease, slot: u32) {
        self.inner.timestamp(asked, lease, slot);
    }

    fn wait(&self, asked: Asked, lease: Lease, slot: u32) {
        self.inner.wait(asked, lease, slot);
    }

    fn barrier(&self, asked: Asked, lease: Lease) {
        self.inner.barrier(asked, lease);
    }

    fn acquire(&self, asked: Asked, lease: Lease) {
        self.inner.acquire(asked, lease);
    }

    fn fill(&self, asked: Asked, lease: Lease, buffer: BufferId, offset: u64, size: u64, word: u32) {
        self.inner.fill(asked, lease, buffer, offset, size, word);
    }

    fn copy(&self, asked: Asked, lease: Lease, from: (BufferId, u64), to: (BufferId, u64), size: u64) {
        self.inner.copy(asked, lease, from, to, size);
    }

    fn dispatch(&self, asked: Asked, lease: Lease, dispatch: &Dispatch) -> Result<(), Error> {
        self.inner.dispatch(asked, lease, dispatch)
    }

    fn raw(&self, lease: Lease) -> Option<Raw<'_>> {
        self.inner.raw(lease)
    }

    fn submit(&self, asked: Asked, batch: &Batch) -> Answer<()> {
        self.switch.call("vkQueueSubmit")?;
        self.inner.submit(asked, batch)?;
        self.promised(batch.timeline, batch.value);
        Ok(())
    }

    fn signal(&self, asked: Asked, timeline: u32, value: u64) -> Answer<()> {
        let answer = self.switch.call("vkSignalSemaphore");
        match answer {
            Err(error) if !error.is_lost() => return Err(error),
            // Of a loss too: a device that is not really lost would wait for ever.
            _ => self.inner.signal(asked, timeline, value)?,
        }
        answer
    }

    fn counter(&self, timeline: u32) -> Answer<u64> {
        self.switch.call("vkGetSemaphoreCounterValue")?;
        self.inner.counter(timeline)
    }

    fn block(&self, timeline: u32, value: u64, nanoseconds: u64) -> Answer<bool> {
        self.switch.call("vkWaitSemaphores")?;
        self.inner.block(timeline, value, nanoseconds)
    }

    fn time(&self, slot: u32) -> Answer<Option<Time>> {
        self.switch.call("vkGetQueryPoolResults")?;
        self.inner.time(slot)
    }
}

impl<D: Driver> Drop for Faults<D> {
    fn drop(&mut self) {
        for (timeline, value) in (0..).zip(&*lock(&self.submitted)) {
            let _ = self.inner.block(timeline, *value, u64::MAX);
        }
    }
}
