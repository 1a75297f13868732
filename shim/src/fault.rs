//! A decorator that has a driver refuse calls, or lose the device.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ash::vk;
use fencepost::{Lease, QueueId};

use crate::driver::{Answer, Batch, BufferId, Dispatch, Driver, Queue, Raw, Time};
use crate::error::{DriverError, Error};
use crate::runtime::lock;

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

impl<D: Driver> Driver for Faults<D> {
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

    fn reset_event(&self, slot: u32) -> Answer<()> {
        self.switch.call("vkResetEvent")?;
        self.inner.reset_event(slot)
    }

    fn create_buffer(&self, size: u64) -> Answer<BufferId> {
        self.switch.call("vkCreateBuffer")?;
        self.inner.create_buffer(size)
    }

    fn destroy_buffer(&self, buffer: BufferId) {
        // The device of a loss that was made up may still use it.
        if lock(&self.switch.0.lost).is_none() {
            self.inner.destroy_buffer(buffer);
        }
    }

    fn raw_buffer(&self, buffer: BufferId) -> Option<vk::Buffer> {
        self.inner.raw_buffer(buffer)
    }

    fn write(&self, buffer: BufferId, offset: u64, bytes: &[u8]) {
        self.inner.write(buffer, offset, bytes);
    }

    fn read(&self, buffer: BufferId, offset: u64, bytes: &mut [u8]) {
        self.inner.read(buffer, offset, bytes);
    }

    fn begin(&self, lease: Lease, new: bool) -> Answer<()> {
        self.switch.call("vkBeginCommandBuffer")?;
        self.inner.begin(lease, new)
    }

    fn set(&self, lease: Lease, slot: u32) {
        self.inner.set(lease, slot);
    }

    fn timestamp(&self, lease: Lease, slot: u32) {
        self.inner.timestamp(lease, slot);
    }

    fn wait(&self, lease: Lease, slot: u32) {
        self.inner.wait(lease, slot);
    }

    fn barrier(&self, lease: Lease) {
        self.inner.barrier(lease);
    }

    fn acquire(&self, lease: Lease) {
        self.inner.acquire(lease);
    }

    fn fill(&self, lease: Lease, buffer: BufferId, offset: u64, size: u64, word: u32) {
        self.inner.fill(lease, buffer, offset, size, word);
    }

    fn copy(&self, lease: Lease, from: BufferId, from_offset: u64, to: BufferId, to_offset: u64, size: u64) {
        self.inner.copy(lease, from, from_offset, to, to_offset, size);
    }

    fn dispatch(&self, lease: Lease, dispatch: &Dispatch) -> Result<(), Error> {
        self.inner.dispatch(lease, dispatch)
    }

    fn raw(&self, lease: Lease) -> Option<Raw<'_>> {
        self.inner.raw(lease)
    }

    fn submit(&self, batch: &Batch) -> Answer<()> {
        self.switch.call("vkQueueSubmit")?;
        self.inner.submit(batch)?;
        self.promised(batch.timeline, batch.value);
        Ok(())
    }

    fn signal(&self, timeline: u32, value: u64) -> Answer<()> {
        // Whatever happens: else a device that is not really lost waits for ever.
        let answer = self.switch.call("vkSignalSemaphore");
        self.inner.signal(timeline, value)?;
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
