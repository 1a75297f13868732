//! An event.

use std::time::Duration;

use fencepost::{EventId, Query};

use crate::device::Device;
use crate::driver::{ASKED, Time};
use crate::error::Error;
use crate::relay;
use crate::runtime::{Gone, Locked};
use crate::stream::Stream;

/// A mark in a stream that others wait for, recorded again any number of times. Dropped at any time: waits keep their
/// meaning.
///
/// Vulkan: a `VkEvent`, or a value of a timeline semaphore, or a barrier; fencepost chooses. CUDA: `cudaEvent_t`.
/// ggml: `ggml_backend_event_t`.
pub struct Event {
    pub(crate) device: Device,
    pub(crate) id: EventId,
    pub(crate) timed: bool,
}

impl Event {
    /// Names everything issued on the stream so far. Waits for earlier recordings keep those.
    ///
    /// Vulkan: `vkCmdSetEvent2`. CUDA: `cudaEventRecord`. ggml: `event_record`.
    pub fn record(&self, stream: &Stream) -> Result<(), Error> {
        self.device.same_as(&stream.device, "an event")?;
        let mut locked = self.device.runtime.lock()?;
        locked.poll(stream.id)?; // A slot may be free by now.
        let Some((lease, slot)) = locked.drive(|m| m.record(self.id, stream.id))?.set else { return Ok(()) };
        let driver = &self.device.runtime.link.driver;
        locked.with_pool(lease, || {
            if self.timed {
                driver.timestamp(ASKED, lease, slot.index);
            }
            driver.set(ASKED, lease, slot.index);
        });
        Ok(())
    }

    /// Work issued on the stream from now on starts after what was recorded, and sees what that wrote. An event never
    /// recorded orders nothing. Does not block.
    ///
    /// A stream of another device waits through the host: a thread of fencepost's passes the news on. If the event's device is
    /// lost such a wait ends, or has ended already, since nothing is left to wait for.
    ///
    /// Vulkan: `vkCmdWaitEvents2`, or a semaphore wait, or a barrier. CUDA: `cudaStreamWaitEvent`. ggml: `event_wait`.
    pub fn wait(&self, stream: &Stream) -> Result<(), Error> {
        let (mine, its) = (&self.device.runtime, &stream.device.runtime);
        if mine.number != its.number {
            return relay::wait(its, stream.id, mine, self.id);
        }
        mine.lock()?.wait(stream.id, self.id)
    }

    /// Blocks until what was recorded has ended, and makes it visible to the host. Never recorded: at once. Work that
    /// is submitted afterwards comes after it; [`Event::wait`] is what makes memory visible to it by the letter of Vulkan.
    ///
    /// Vulkan: `vkWaitSemaphores`. CUDA: `cudaEventSynchronize`. ggml: `event_synchronize`.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.block(None).map(|_| ())
    }

    /// The same for a time: `false` if it ran out first.
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<bool, Error> {
        self.block(Some(timeout))
    }

    fn block(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        self.device.runtime.block(timeout, |m| m.synchronize(self.id))
    }

    /// Whether what was recorded has ended. Never waits for the device and submits nothing: a recording in an open batch
    /// stays undone until somebody flushes. Never recorded: `true`.
    ///
    /// Vulkan: `vkGetSemaphoreCounterValue`. CUDA: `cudaEventQuery`.
    pub fn query(&self) -> Result<bool, Error> {
        self.query_locked(&mut self.device.runtime.lock()?)
    }

    fn query_locked(&self, locked: &mut Locked) -> Result<bool, Error> {
        if let Query::Pending(point) = locked.ask(|m| m.query(self.id))? {
            locked.poll_one(point.stream)?;
        }
        Ok(locked.ask(|m| m.query(self.id))? == Query::Done)
    }

    /// The time on the device from the other event's recording to this one's, both passed; zero if this one was first.
    ///
    /// Vulkan: two timestamp queries. CUDA: `cudaEventElapsedTime`.
    pub fn elapsed_since(&self, earlier: &Event) -> Result<Duration, Error> {
        self.device.same_as(&earlier.device, "an event")?;
        let mut locked = self.device.runtime.lock()?;
        let (start, end) = (earlier.time(&mut locked)?, self.time(&mut locked)?);
        let bits = start.valid_bits.min(end.valid_bits).clamp(1, 64);
        // Counters wrap; half a turn back is a step back.
        let ticks = (end.ticks.wrapping_sub(start.ticks)) << (64 - bits) >> (64 - bits);
        let ticks = if ticks >> (bits - 1) == 1 { 0 } else { ticks };
        Ok(Duration::from_nanos((ticks as f64 * f64::from(end.period)) as u64))
    }

    fn time(&self, locked: &mut Locked) -> Result<Time, Error> {
        if !self.query_locked(locked)? {
            return Err(Error::NotPassed);
        }
        let slot = locked.ask(|m| m.recorded_slot(self.id))?.filter(|_| self.timed).ok_or(Error::NotTimed)?;
        let time = self.device.runtime.link.driver.time(slot.index).map_err(|error| locked.driver_error(error))?;
        time.ok_or(Error::NotTimed)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        self.device.runtime.leave(Gone::Event(self.id));
    }
}
