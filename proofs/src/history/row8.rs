//! Row 8: CubeCL's `EventFence` (cubecl-runtime, device_events/fence.rs): create, record, wait once,
//! destroy. Refused at creation, the stream is synchronized on the spot and the fence is already
//! reached; a refused `wait_async` waits on the host. The client's event is the variable that holds a fence.

use fencepost::{Canon, Command, Gpu, Work};

use super::native::{Native, Streams};
use crate::host::{Host, Target, Until};
use crate::protocol::{Blocking, Order, Part, Protocol};
use crate::setup::Setup;

/// Row 8.
#[derive(Clone, Debug)]
pub struct Row8 {
    streams: Streams,
    fences: Vec<Fence>,
    /// Fences moved into a blocked call.
    waited: Vec<(u64, Native)>,
    tokens: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fence {
    /// Never made.
    None,
    /// Consumed: there is nothing left to call.
    Gone,
    /// Already reached when it was made.
    Reached,
    Recorded(Native),
}

impl Row8 {
    /// Drops what the variable held: the native event is destroyed at once.
    fn replace(&mut self, host: &mut Host, event: usize, fence: Fence) {
        if let Fence::Recorded(native) = std::mem::replace(&mut self.fences[event], fence) {
            host.destroy_event(native.event);
        }
    }
}

impl Protocol for Row8 {
    fn new(setup: &Setup, _gpu: &mut Gpu) -> Self {
        let fences = vec![Fence::None; setup.bounds.events];
        Row8 { streams: Streams::new(setup), fences, waited: Vec::new(), tokens: 0 }
    }

    fn work(&mut self, host: &mut Host, stream: usize, _part: Part, work: Option<Work>) -> bool {
        self.streams.work(host, stream, work)
    }

    fn record(&mut self, host: &mut Host, event: usize, stream: usize) -> bool {
        let mut made = None;
        if let Ok(native) = host.create_event() {
            if self.streams.command(host, stream, Command::Set(native)) {
                made = Some(Fence::Recorded(Native { event: native, set: host.gpu.newest_set(native), stream }));
            } else {
                host.destroy_event(native);
            }
        }
        let made = match made {
            Some(made) => made,
            None if self.streams.is_drained(host, stream) => Fence::Reached,
            None => return false,
        };
        self.replace(host, event, made);
        true
    }

    fn wait(&mut self, host: &mut Host, stream: usize, event: usize) -> bool {
        match self.fences[event] {
            Fence::None => true,
            Fence::Gone => false,
            Fence::Reached => {
                self.fences[event] = Fence::Gone;
                true
            }
            Fence::Recorded(native) => {
                let queued = self.streams.command(host, stream, Command::Wait(native.event));
                // Refused: the host waits instead, and the call is taken to happen when that returns.
                if !queued && !self.streams.until(host, native).is_some_and(|until| until.is_over(host.gpu)) {
                    return false;
                }
                self.replace(host, event, Fence::Gone);
                true
            }
        }
    }

    fn flush(&mut self, host: &mut Host, stream: usize) -> bool {
        self.streams.flush(host, stream)
    }

    fn synchronize(&mut self, host: &mut Host, target: Target) -> Blocking {
        let Target::Event(event) = target else { return Blocking::Failed };
        match self.fences[event] {
            Fence::None => Blocking::Done,
            Fence::Gone => Blocking::Failed,
            Fence::Reached => {
                self.fences[event] = Fence::Gone;
                Blocking::Done
            }
            Fence::Recorded(native) => {
                let Some(until) = self.streams.until(host, native) else { return Blocking::Failed };
                self.fences[event] = Fence::Gone;
                self.tokens += 1;
                self.waited.push((self.tokens, native));
                Blocking::Block { until, token: self.tokens }
            }
        }
    }

    fn returned(&mut self, host: &mut Host, _target: Target, _until: Until, token: u64) {
        host.wake(token, false);
        if let Some(at) = self.waited.iter().position(|(t, _)| *t == token) {
            let (_, native) = self.waited.swap_remove(at);
            host.destroy_event(native.event);
        }
    }

    fn destroy(&mut self, host: &mut Host, event: usize) {
        self.replace(host, event, Fence::None);
    }

    fn in_flight(&self, gpu: &Gpu) -> usize {
        self.streams.in_flight(gpu)
    }

    fn name_values(&self, _gpu: &Gpu, _c: &mut Canon) {}

    fn assign(&self, _gpu: &Gpu, order: &Order, c: &mut Canon) {
        self.streams.assign(order, c);
    }

    fn write(&self, _gpu: &Gpu, order: &Order, c: &mut Canon) {
        self.streams.write(order, c);
        for e in &order.events {
            let (tag, native) = match self.fences[*e] {
                Fence::None => (0, None),
                Fence::Gone => (1, None),
                Fence::Reached => (2, None),
                Fence::Recorded(native) => (3, Some(native)),
            };
            c.number(tag);
            self.streams.write_native(native, c);
        }
    }

    fn write_until(&self, until: Until, _token: u64, c: &mut Canon) {
        self.streams.write_until(until, c);
    }
}
