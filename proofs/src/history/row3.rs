//! Row 3: one VkEvent, reset in the queue right before the set, and a timeline semaphore for the
//! host: llama.cpp pull request 20518, second try, judged unsafe in review.

use fencepost::{Canon, Command, DeviceEvent, Gpu, Space};

use super::ggml::{Contexts, Events};
use super::timeline::Timeline;
use crate::host::{Host, Until};

/// Row 3.
#[derive(Clone, Debug)]
pub struct Row3(Vec<(DeviceEvent, Timeline)>);

impl Events for Row3 {
    fn new(event_count: usize, gpu: &mut Gpu) -> Self {
        Row3((0..event_count).map(|_| (set_event(gpu), Timeline::new(gpu))).collect())
    }

    fn record(&mut self, contexts: &mut Contexts, host: &mut Host, event: usize, stream: usize) {
        let (slot, timeline) = &mut self.0[event];
        contexts.command(host, stream, Command::Reset(*slot));
        contexts.command(host, stream, Command::Set(*slot));
        timeline.submit(contexts, host, event, stream);
    }

    fn wait(&mut self, contexts: &mut Contexts, host: &mut Host, stream: usize, event: usize) {
        contexts.command(host, stream, Command::Wait(self.0[event].0));
    }

    fn until(&self, event: usize) -> Option<Until> {
        Some(self.0[event].1.until())
    }

    fn destroy(&mut self, host: &mut Host, event: usize) {
        let (slot, _) = &mut self.0[event];
        host.destroy_event(*slot);
        *slot = set_event(host.gpu);
    }

    fn name_values(&self, gpu: &Gpu, c: &mut Canon) {
        self.0.iter().for_each(|(_, timeline)| timeline.name_values(gpu, c));
    }

    fn assign(&self, events: &[usize], c: &mut Canon) {
        events.iter().for_each(|e| self.0[*e].1.assign(c));
    }

    fn write(&self, event: usize, c: &mut Canon) {
        let (slot, timeline) = &self.0[event];
        c.name(Space::DeviceEvent, u64::from(*slot));
        timeline.write(c);
    }
}

/// A wait before the first record passes.
fn set_event(gpu: &mut Gpu) -> DeviceEvent {
    let event = gpu.create_event();
    gpu.set_event(event);
    event
}
