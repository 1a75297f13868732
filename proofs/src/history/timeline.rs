//! What the events of rows 3 to 7 share: a timeline semaphore each, and the buffer of the last recording.

use fencepost::{Canon, Gpu, Semaphore, Signal, Space};

use super::ggml::{Contexts, Pointer};
use crate::host::{Host, Until};

/// A timeline semaphore for an event, which every recording counts up.
#[derive(Clone, Debug)]
pub struct Timeline {
    semaphore: Semaphore,
    value: u64,
    buffer: Option<Pointer>,
}

impl Timeline {
    pub fn new(gpu: &mut Gpu) -> Self {
        Timeline { semaphore: gpu.create_semaphore(), value: 0, buffer: None }
    }

    /// Submits the recording's batch with the next value.
    pub fn submit(&mut self, contexts: &mut Contexts, host: &mut Host, stream: usize) {
        self.value += 1;
        self.buffer = contexts.pointer(stream);
        contexts.submit(host, stream, Some(self.point()), None);
    }

    pub const fn point(&self) -> Signal {
        Signal { semaphore: self.semaphore, value: self.value }
    }

    pub const fn until(&self) -> Until {
        Until::Semaphore(self.point())
    }

    /// The buffer is reset and flagged as free, if nobody leased it since.
    pub fn release_buffer(&mut self, contexts: &mut Contexts, host: &mut Host) {
        if let Some(buffer) = self.buffer.take() {
            contexts.release_by_counter(host, buffer);
        }
    }

    pub const fn pointer(&self) -> Option<Pointer> {
        self.buffer
    }

    pub fn forget(&mut self) {
        self.buffer = None;
    }

    /// The newest value is compared by `synchronize`; older ones by whoever waits.
    pub fn name_values(&self, gpu: &Gpu, c: &mut Canon) {
        if self.value > gpu.semaphore(self.semaphore) {
            c.name_value(self.semaphore, self.value);
        }
        // Two queues may run the recordings in another order: every signal to come matters.
        for op in gpu.queues().iter().flatten() {
            if let fencepost::Op::End { signal: Some(signal), .. } = op
                && signal.semaphore == self.semaphore
            {
                c.name_value(signal.semaphore, signal.value);
            }
        }
        c.name_value(self.semaphore, gpu.semaphore(self.semaphore));
    }

    pub fn assign(&self, c: &mut Canon) {
        c.assign(Space::Semaphore, u64::from(self.semaphore));
    }

    pub fn write(&self, c: &mut Canon) {
        c.value(self.semaphore, self.value);
    }
}
