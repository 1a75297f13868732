//! Row 9: CubeCL's event pool (cubecl-runtime, device_events/event.rs and profiler.rs): timed events that go back
//! to the pool the moment they are dropped, recorded, waited for, in flight or not.

use fencepost::{Canon, Command, DeviceEvent, Gpu, Space, Work};

use super::native::{Native, Streams};
use crate::host::{Host, Target, Until};
use crate::protocol::{Blocking, Order, Part, Protocol};
use crate::setup::Setup;

/// Row 9.
#[derive(Clone, Debug)]
pub struct Row9 {
    streams: Streams,
    events: Vec<Option<Native>>,
    /// Taken from the end.
    pool: Vec<DeviceEvent>,
    tokens: u64,
}

impl Protocol for Row9 {
    fn new(setup: &Setup, _gpu: &mut Gpu) -> Self {
        let events = vec![None; setup.bounds.events];
        Row9 { streams: Streams::new(setup), events, pool: Vec::new(), tokens: 0 }
    }

    fn work(&mut self, host: &mut Host, stream: usize, _part: Part, work: Option<Work>) -> bool {
        self.streams.work(host, stream, work)
    }

    fn record(&mut self, host: &mut Host, event: usize, stream: usize) -> bool {
        let native = match self.pool.pop() {
            Some(native) => native,
            None => match host.create_event() {
                Ok(native) => native,
                Err(_) => return false,
            },
        };
        if !self.streams.command(host, stream, Command::Set(native)) {
            self.pool.push(native);
            return false;
        }
        let recorded = Native { event: native, set: host.gpu.newest_set(native), stream };
        self.pool.extend(self.events[event].replace(recorded).map(|n| n.event));
        true
    }

    fn wait(&mut self, host: &mut Host, stream: usize, event: usize) -> bool {
        self.events[event].is_none_or(|native| self.streams.command(host, stream, Command::Wait(native.event)))
    }

    fn flush(&mut self, host: &mut Host, stream: usize) -> bool {
        self.streams.flush(host, stream)
    }

    fn synchronize(&mut self, host: &mut Host, target: Target) -> Blocking {
        let Target::Event(event) = target else { return Blocking::Failed };
        let Some(native) = self.events[event] else { return Blocking::Done };
        let Some(until) = self.streams.until(host, native) else { return Blocking::Failed };
        self.tokens += 1;
        Blocking::Block { until, token: self.tokens }
    }

    fn returned(&mut self, host: &mut Host, _target: Target, _until: Until, token: u64) {
        host.wake(token, false);
    }

    fn destroy(&mut self, _host: &mut Host, event: usize) {
        self.pool.extend(self.events[event].take().map(|n| n.event));
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
            self.streams.write_native(self.events[*e], c);
        }
        c.number(self.pool.len() as u64);
        self.pool.iter().for_each(|native| c.name(Space::DeviceEvent, u64::from(*native)));
    }

    fn write_until(&self, until: Until, _token: u64, c: &mut Canon) {
        self.streams.write_until(until, c);
    }
}
