//! What the events of rows 3 to 7 share: a timeline semaphore each.

use fencepost::{Canon, Gpu, Semaphore, Signal, Space};

use super::ggml::Contexts;
use crate::host::{Host, Until};

/// A timeline semaphore for an event, which every recording counts up.
#[derive(Clone, Debug)]
pub struct Timeline {
    semaphore: Semaphore,
    value: u64,
}

impl Timeline {
    pub fn new(gpu: &mut Gpu) -> Self {
        Timeline { semaphore: gpu.create_semaphore(), value: 0 }
    }

    /// Submits the recording's batch with the next value.
    pub fn submit(&mut self, contexts: &mut Contexts, host: &mut Host, event: usize, stream: usize) {
        self.value += 1;
        contexts.submit_recording(host, event, stream, Some(self.point()), None);
    }

    pub const fn point(&self) -> Signal {
        Signal { semaphore: self.semaphore, value: self.value }
    }

    pub const fn until(&self) -> Until {
        Until::Semaphore(self.point())
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
