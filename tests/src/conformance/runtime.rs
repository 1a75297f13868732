//! The runtime of `fencepost-vulkan` as a backend, on any of its drivers.

use std::time::Duration;

use fencepost_vulkan::ash::vk;
use fencepost_vulkan::{
    Buffer, Device, Driver, Error, Event, Fault, Faults, Messages, Options, Placement, Policy, Simulated, Stream,
};

use super::{Answer, Backend, WORKS_MAX, Work};

const MARK: u32 = 0x5EED_F00D;

/// A device, and memory for marks.
pub struct Runtime {
    device: Device,
    fault: Fault,
    messages: Messages,
    marks: Buffer,
    /// What each work found of the marks of the others.
    found: Buffer,
    /// What a work fills before it leaves its mark, a part for each: work takes a while.
    scratch: Option<Buffer>,
}

impl Runtime {
    /// On any driver; messages are those of its judge, and each work fills so many bytes.
    pub fn new(driver: impl Driver + 'static, messages: Messages, policy: Policy, work_bytes: u64) -> Answer<Runtime> {
        let driver = Faults::new(driver);
        let fault = driver.switch();
        let device = Device::with_driver(driver, Options { policy, ..Options::default() });
        let zeroed = |words: usize| -> Answer<Buffer> {
            let buffer = device.buffer(words as u64 * 4)?;
            buffer.write(0, &vec![0; words * 4])?;
            Ok(buffer)
        };
        let (marks, found) = (zeroed(WORKS_MAX)?, zeroed(WORKS_MAX * WORKS_MAX)?);
        let scratch = if work_bytes > 0 { Some(device.buffer(work_bytes * WORKS_MAX as u64)?) } else { None };
        Ok(Runtime { device, fault, messages, marks, found, scratch })
    }

    /// On the simulated GPU, where work takes as long as the scheduler likes.
    pub fn simulated(seed: u64, policy: Policy) -> Answer<Runtime> {
        let driver = Simulated::new(seed);
        let messages = driver.messages();
        Runtime::new(driver, messages, policy, 0)
    }
}

fn marked(words: &[u32]) -> Vec<usize> {
    (0..words.len()).filter(|at| words[*at] == MARK).collect()
}

impl Backend for Runtime {
    type Stream = Stream;
    type Event = Event;

    fn stream(&mut self, queue: u32) -> Answer<Stream> {
        Ok(self.device.stream(Placement::Queue(queue))?)
    }

    fn event(&mut self) -> Answer<Event> {
        Ok(self.device.event()?)
    }

    fn work(&mut self, stream: &Stream, work: Work) -> Answer<()> {
        let word = |number: usize| number as u64 * 4;
        stream.record(|commands| -> Result<(), Error> {
            for other in work.after {
                let to = word(work.number * WORKS_MAX + other);
                commands.copy((&self.marks, word(*other)), (&self.found, to), 4)?;
            }
            if let Some(scratch) = &self.scratch {
                let size = scratch.size() / WORKS_MAX as u64;
                commands.fill(scratch, size * work.number as u64, size, MARK)?;
                commands.barrier();
            }
            commands.fill(&self.marks, word(work.number), 4, MARK)
        })??;
        Ok(())
    }

    fn record(&mut self, event: &Event, stream: &Stream) -> Answer<()> {
        Ok(event.record(stream)?)
    }

    fn wait(&mut self, stream: &Stream, event: &Event) -> Answer<()> {
        Ok(event.wait(stream)?)
    }

    fn flush(&mut self, stream: &Stream) -> Answer<()> {
        Ok(stream.flush()?)
    }

    fn synchronize(&mut self, event: &Event, timeout: Duration) -> Answer<bool> {
        Ok(event.synchronize_timeout(timeout)?)
    }

    fn synchronize_stream(&mut self, stream: &Stream, timeout: Duration) -> Answer<bool> {
        Ok(stream.synchronize_timeout(timeout)?)
    }

    fn query(&mut self, event: &Event) -> Answer<bool> {
        Ok(event.query()?)
    }

    fn destroy_event(&mut self, event: Event) -> Answer<()> {
        drop(event);
        Ok(())
    }

    fn destroy_stream(&mut self, stream: Stream) -> Answer<()> {
        drop(stream);
        Ok(())
    }

    fn ended(&mut self) -> Answer<Vec<usize>> {
        Ok(marked(&self.marks.words()?))
    }

    fn found(&mut self, work: usize) -> Answer<Vec<usize>> {
        Ok(marked(&self.found.words()?[work * WORKS_MAX..][..WORKS_MAX]))
    }

    fn refuse(&mut self, others: u64) -> Answer<()> {
        self.fault.after(others, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        Ok(())
    }

    /// By a call that touches nothing else.
    fn lose(&mut self) -> Answer<()> {
        self.fault.next("vkCreateBuffer", vk::Result::ERROR_DEVICE_LOST);
        match self.device.buffer(4) {
            Err(Error::Lost(_)) => Ok(()),
            _ => Err("a lost device makes a buffer".into()),
        }
    }

    fn complaints(&mut self) -> Vec<String> {
        self.messages.heard()
    }
}
