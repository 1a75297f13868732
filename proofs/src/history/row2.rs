//! Row 2: row 1 with the wait submitted: llama.cpp pull request 20518, first fix.

use fencepost::{Canon, Command, Gpu};

use super::ggml::{Contexts, Events, Pointer};
use super::row1::OneEvent;
use crate::host::{Host, Until};

/// Row 2.
#[derive(Clone, Debug)]
pub struct Row2(Vec<OneEvent>);

impl Events for Row2 {
    fn new(event_count: usize, gpu: &mut Gpu) -> Self {
        Row2((0..event_count).map(|_| OneEvent::new(gpu)).collect())
    }

    fn record(&mut self, contexts: &mut Contexts, host: &mut Host, event: usize, stream: usize) {
        self.0[event].record(contexts, host, stream);
    }

    fn wait(&mut self, contexts: &mut Contexts, host: &mut Host, stream: usize, event: usize) {
        contexts.command(host, stream, Command::Wait(self.0[event].event));
    }

    fn until(&self, event: usize) -> Option<Until> {
        Some(self.0[event].until())
    }

    fn synchronized(&mut self, contexts: &mut Contexts, _host: &mut Host, event: usize) {
        self.0[event].synchronized(contexts);
    }

    fn destroy(&mut self, host: &mut Host, event: usize) {
        self.0[event].destroy(host);
    }

    fn pointer(&self, event: usize) -> Option<Pointer> {
        self.0[event].pointer()
    }

    fn name_values(&self, _gpu: &Gpu, _c: &mut Canon) {}

    fn assign(&self, events: &[usize], c: &mut Canon) {
        events.iter().for_each(|e| self.0[*e].assign(c));
    }

    fn write(&self, event: usize, c: &mut Canon) {
        self.0[event].write(c);
    }
}
