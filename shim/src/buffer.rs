//! Memory that host and device share.

use std::sync::Arc;

use ash::vk;

use crate::device::Device;
use crate::driver::{ASKED, BufferId, Driver};
use crate::error::Error;
use crate::runtime::Gone;
use crate::sync::{Mutex, lock};

/// A buffer, mapped for the host. Dropped at any time: its memory stays until every stream has done what was issued
/// on it by then.
pub struct Buffer {
    memory: Arc<Memory>,
    size: u64,
    /// Goes last: the end of a device waits for its driver to be let go.
    pub(crate) device: Device,
}

struct Memory {
    driver: Arc<dyn Driver>,
    id: BufferId,
    /// Held by the host thread that reads or writes.
    host: Mutex<()>,
}

impl Buffer {
    pub(crate) fn new(device: &Device, size: u64) -> Result<Buffer, Error> {
        let driver = device.runtime.link.driver.clone();
        let mut locked = device.runtime.lock()?; // As for every object that is made.
        let id = driver.create_buffer(size).map_err(|error| locked.driver_error(error))?;
        drop(locked);
        Ok(Buffer { device: device.clone(), memory: Arc::new(Memory { driver, id, host: Mutex::new(()) }), size })
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The host writes; the device sees it in batches submitted later. What it reads or writes meanwhile is the caller's
    /// affair.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.check(offset, bytes.len() as u64, 1)?;
        let _alone = lock(&self.memory.host);
        self.memory.driver.write(ASKED, self.memory.id, offset, bytes);
        Ok(())
    }

    /// The host reads what the device wrote before a `synchronize` that has returned.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.check(offset, bytes.len() as u64, 1)?;
        let _alone = lock(&self.memory.host);
        self.memory.driver.read(ASKED, self.memory.id, offset, bytes);
        Ok(())
    }

    /// All of it, in whole words.
    pub fn words(&self) -> Result<Vec<u32>, Error> {
        let mut bytes = vec![0; self.size as usize];
        self.read(0, &mut bytes)?;
        Ok(bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect())
    }

    /// The Vulkan handle, for commands and descriptors of your own; `None` on the simulated GPU.
    pub fn raw(&self) -> Option<vk::Buffer> {
        self.memory.driver.raw_buffer(self.memory.id)
    }

    pub(crate) fn id(&self) -> BufferId {
        self.memory.id
    }

    pub(crate) fn check(&self, offset: u64, size: u64, multiple: u64) -> Result<(), Error> {
        let end = offset.saturating_add(size);
        let fits = end <= self.size && offset.is_multiple_of(multiple) && size.is_multiple_of(multiple);
        if fits { Ok(()) } else { Err(Error::BadRange { offset, end, size: self.size }) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.device.runtime.leave(Gone::Value(self.memory.clone(), None));
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.driver.destroy_buffer(ASKED, self.id);
    }
}
