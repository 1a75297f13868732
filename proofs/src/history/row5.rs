//! Row 5: several VkEvents, a list of submitted ones recycled at `synchronize`, a timeline semaphore for
//! the host: llama.cpp pull request 20518 as merged. Traces `pr20518-merged.*`.
//!
//! Row 4, the third try, has one list more: a superseded VkEvent is *pending* until its event is recorded again, or the
//! stream that recorded it submits. The review thread says no more of when it moves; what matters is that no
//! version looks at which stream's batch holds the wait. Rows 6 and 7 add the transfer queue.

use fencepost::{Canon, Command, DeviceEvent, Gpu, Space};

use super::ggml::{Contexts, Events};
use super::timeline::Timeline;
use crate::host::{Host, Until};

/// The events of rows 4 to 7.
#[derive(Clone, Debug)]
pub struct Lists<const ROW: u8>(Vec<Event>);

/// Row 5.
pub type Row5 = Lists<5>;

#[derive(Clone, Debug)]
struct Event {
    current: Option<DeviceEvent>,
    stream: usize,
    free: Vec<DeviceEvent>,
    /// Row 4 only.
    pending: Vec<DeviceEvent>,
    submitted: Vec<DeviceEvent>,
    timeline: Timeline,
}

impl<const ROW: u8> Events for Lists<ROW> {
    const TRANSFERS: bool = ROW >= 6;

    fn new(event_count: usize, gpu: &mut Gpu) -> Self {
        let event = |_| Event {
            current: None,
            stream: 0,
            free: Vec::new(),
            pending: Vec::new(),
            submitted: Vec::new(),
            timeline: Timeline::new(gpu),
        };
        Lists((0..event_count).map(event).collect())
    }

    fn record(&mut self, contexts: &mut Contexts, host: &mut Host, event: usize, stream: usize) {
        contexts.open(host, stream);
        let its = &mut self.0[event];
        its.submitted.append(&mut its.pending);
        let superseded = if ROW == 4 { &mut its.pending } else { &mut its.submitted };
        superseded.extend(its.current);
        let slot = its.free.pop().unwrap_or_else(|| host.gpu.create_event());
        (its.current, its.stream) = (Some(slot), stream);
        contexts.command(host, stream, Command::Set(slot));
        its.timeline.submit(contexts, host, event, stream);
    }

    fn wait(&mut self, contexts: &mut Contexts, host: &mut Host, stream: usize, event: usize) {
        contexts.open(host, stream);
        let Some(slot) = self.0[event].current else { return };
        contexts.command(host, stream, Command::Wait(slot));
        if ROW == 7 {
            contexts.transfer_waits(host, stream, self.0[event].timeline.point());
        }
    }

    fn until(&self, event: usize) -> Option<Until> {
        self.0[event].current.map(|_| self.0[event].timeline.until())
    }

    fn synchronized(&mut self, host: &mut Host, event: usize) {
        let event = &mut self.0[event];
        for slot in event.submitted.drain(..) {
            host.reset_event(slot);
            event.free.push(slot);
        }
    }

    fn destroy(&mut self, host: &mut Host, event: usize) {
        let event = &mut self.0[event];
        let lists = [&mut event.free, &mut event.submitted, &mut event.pending];
        for slot in lists.into_iter().flat_map(|list| list.drain(..)).chain(event.current.take()) {
            host.destroy_event(slot);
        }
    }

    fn flushed(&mut self, stream: usize) {
        for event in self.0.iter_mut().filter(|e| e.stream == stream) {
            event.submitted.append(&mut event.pending);
        }
    }

    fn name_values(&self, gpu: &Gpu, c: &mut Canon) {
        self.0.iter().for_each(|e| e.timeline.name_values(gpu, c));
    }

    fn assign(&self, events: &[usize], c: &mut Canon) {
        events.iter().for_each(|e| self.0[*e].timeline.assign(c));
    }

    fn write(&self, event: usize, c: &mut Canon) {
        let Event { current, stream, free, pending, submitted, timeline } = &self.0[event];
        match current {
            Some(slot) => c.name(Space::DeviceEvent, u64::from(*slot)),
            None => c.number(255),
        }
        if ROW == 4 {
            c.name(Space::Stream, *stream as u64);
        }
        // How many lie free, and in which order the others do, matters little; which ones do matters.
        for list in [free, pending, submitted] {
            c.number(list.len() as u64);
            list.iter().for_each(|slot| c.name(Space::DeviceEvent, u64::from(*slot)));
        }
        timeline.write(c);
    }
}
