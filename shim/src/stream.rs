//! A stream, and the commands that go into it.

use std::time::Duration;

use fencepost::{Lease, QueueId, StreamId};

use crate::buffer::Buffer;
use crate::device::Device;
use crate::driver::{ASKED, Dispatch, Driver, Raw};
use crate::error::Error;
use crate::runtime::{Gone, Inside};
use crate::sync::{MutexGuard, lock};

/// An ordered lane of work on a queue. What is recorded is kept in an open batch until something needs it to run: a
/// flush, a host wait, or another stream that waits for it. Dropped, it submits what it holds; events recorded on it keep
/// their meaning.
///
/// Commands of one stream start in order and may overlap, as in one `VkCommandBuffer`: put a barrier between those that
/// depend on each other. Vulkan: a queue with a timeline semaphore. CUDA: a stream, which has no overlap.
pub struct Stream {
    pub(crate) device: Device,
    pub(crate) id: StreamId,
    pub(crate) queue: QueueId,
}

impl Stream {
    /// Its device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Its queue, by the position in [`Device::queues`].
    pub fn queue(&self) -> QueueId {
        self.queue
    }

    /// Adds commands to the open batch. The closure may not call fencepost, except through its argument, and is told so.
    /// Other threads that need this stream's batch wait for it to end, and keep the rest of the device from going on
    /// meanwhile: so it is to be short, and waits for no other thread.
    ///
    /// Vulkan: `vkCmd*`.
    pub fn record<T>(&self, commands: impl FnOnce(&mut Commands) -> T) -> Result<T, Error> {
        let mut locked = self.device.runtime.lock()?;
        if locked.machine.open_batch(self.id).0.is_none() {
            locked.poll(self.id)?; // A buffer may be free by now.
        }
        let lease = locked.drive(|m| m.work(self.id))?;
        let pool = locked.pool(lease.timeline);
        let held = lock(&pool);
        let released = locked.unlock();
        let driver = &*self.device.runtime.link.driver;
        let inside = Inside::enter();
        let answer = commands(&mut Commands { device: &self.device, driver, lease, _pool: held });
        drop(inside);
        drop(released); // May be callers' values, whose drop uses this very stream.
        Ok(answer)
    }

    /// Hands the open batch to the queue, if there is one. Does not block.
    ///
    /// Vulkan: `vkQueueSubmit`.
    pub fn flush(&self) -> Result<(), Error> {
        let mut locked = self.device.runtime.lock()?;
        locked.drive(|m| m.flush(self.id))?;
        locked.poll(self.id)
    }

    /// Blocks until everything issued so far has ended, and makes it visible to the host. An idle stream costs no driver
    /// call.
    ///
    /// Vulkan: `vkWaitSemaphores`. CUDA: `cudaStreamSynchronize`.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.wait(None).map(|_| ())
    }

    /// The same for a time: `false` if it ran out first.
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<bool, Error> {
        self.wait(Some(timeout))
    }

    fn wait(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        self.device.runtime.block(timeout, |m| m.synchronize_stream(self.id))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.device.runtime.leave(Gone::Stream(self.id));
    }
}

/// The command buffer of an open batch.
pub struct Commands<'a> {
    device: &'a Device,
    driver: &'a dyn Driver,
    lease: Lease,
    _pool: MutexGuard<'a, ()>,
}

impl Commands<'_> {
    /// The command buffer, for commands of your own; `None` on the simulated GPU. Handles that the commands name have to
    /// live until the batch has ended: see [`DropQueue`](crate::DropQueue).
    pub fn raw(&self) -> Option<Raw<'_>> {
        self.driver.raw(self.lease)
    }

    /// Fills a part of a buffer with a word.
    ///
    /// Vulkan: `vkCmdFillBuffer`.
    pub fn fill(&mut self, buffer: &Buffer, offset: u64, size: u64, word: u32) -> Result<(), Error> {
        self.check(buffer, offset, size)?;
        if size > 0 {
            self.driver.fill(ASKED, self.lease, buffer.id(), offset, size, word);
        }
        Ok(())
    }

    /// Copies from one buffer to another, or within one where the ranges do not overlap.
    ///
    /// Vulkan: `vkCmdCopyBuffer`.
    pub fn copy(&mut self, from: (&Buffer, u64), to: (&Buffer, u64), size: u64) -> Result<(), Error> {
        self.check(from.0, from.1, size)?;
        self.check(to.0, to.1, size)?;
        if from.0.id() == to.0.id() && from.1 < to.1 + size && to.1 < from.1 + size {
            return Err(Error::Overlap { from: from.1, to: to.1, size });
        }
        if size > 0 {
            self.driver.copy(ASKED, self.lease, (from.0.id(), from.1), (to.0.id(), to.1), size);
        }
        Ok(())
    }

    /// Later commands of this stream's queue start after the earlier ones have ended, and see what they wrote.
    ///
    /// Vulkan: `vkCmdPipelineBarrier2`.
    pub fn barrier(&mut self) {
        self.driver.barrier(ASKED, self.lease);
    }

    /// Runs a compute shader. The simulated GPU has none.
    ///
    /// Vulkan: `vkCmdDispatch`.
    ///
    /// # Safety
    /// The handles fit each other and the device, and live until the batch has ended.
    pub unsafe fn dispatch(&mut self, dispatch: &Dispatch) -> Result<(), Error> {
        self.driver.dispatch(ASKED, self.lease, dispatch)
    }

    fn check(&self, buffer: &Buffer, offset: u64, size: u64) -> Result<(), Error> {
        buffer.device.same_as(self.device, "a buffer")?;
        buffer.check(offset, size, 4)
    }
}
