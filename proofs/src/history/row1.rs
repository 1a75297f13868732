//! Rows 1 and 2: one VkEvent and one fence for each event, both reset by the host at `record`.
//!
//! Row 1 is llama.cpp before pull request 20518: `wait` ends the batch and forgets it. Row 2 is the
//! pull request's first fix, in `row2.rs`: the wait stays in the open batch and goes out with it. Traces
//! `pr20518-before.*`.

use fencepost::{Canon, Command, DeviceEvent, FenceId, Gpu, Space};

use super::ggml::{Contexts, Events};
use crate::host::{Host, Until};

/// One event of rows 1 and 2.
#[derive(Clone, Debug)]
struct OneEvent {
    event: DeviceEvent,
    fence: FenceId,
}

impl OneEvent {
    fn new(gpu: &mut Gpu) -> Self {
        let event = gpu.create_event();
        gpu.set_event(event); // A wait before the first record passes.
        OneEvent { event, fence: gpu.create_fence() }
    }

    fn destroy(&mut self, host: &mut Host) {
        host.destroy_event(self.event);
        *self = OneEvent { fence: self.fence, ..OneEvent::new(host.gpu) };
    }

    fn assign(&self, c: &mut Canon) {
        c.assign(Space::Fence, u64::from(self.fence));
    }

    fn write(&self, c: &mut Canon) {
        c.name(Space::DeviceEvent, u64::from(self.event));
    }
}

/// The events of rows 1 and 2.
#[derive(Clone, Debug)]
pub struct OneEach<const ROW: u8>(Vec<OneEvent>);

/// Row 1.
pub type Row1 = OneEach<1>;

impl<const ROW: u8> Events for OneEach<ROW> {
    const COUNTS_LEASES: bool = false;

    fn new(event_count: usize, gpu: &mut Gpu) -> Self {
        OneEach((0..event_count).map(|_| OneEvent::new(gpu)).collect())
    }

    fn record(&mut self, contexts: &mut Contexts, host: &mut Host, event: usize, stream: usize) {
        let OneEvent { event: slot, fence } = self.0[event];
        contexts.open(host, stream);
        host.reset_event(slot);
        host.reset_fence(fence);
        contexts.command(host, stream, Command::Set(slot));
        contexts.submit_recording(host, event, stream, None, Some(fence));
    }

    fn wait(&mut self, contexts: &mut Contexts, host: &mut Host, stream: usize, event: usize) {
        contexts.command(host, stream, Command::Wait(self.0[event].event));
        if ROW == 1 {
            contexts.abandon(stream);
        }
    }

    fn until(&self, event: usize) -> Option<Until> {
        Some(Until::Fence(self.0[event].fence))
    }

    fn destroy(&mut self, host: &mut Host, event: usize) {
        self.0[event].destroy(host);
    }

    fn name_values(&self, _gpu: &Gpu, _c: &mut Canon) {}

    fn assign(&self, events: &[usize], c: &mut Canon) {
        events.iter().for_each(|e| self.0[*e].assign(c));
    }

    fn write(&self, event: usize, c: &mut Canon) {
        self.0[event].write(c);
    }
}
