//! What rows 8 and 9 share: a device whose events are recorded and waited for as they are, and the
//! same calls carried to Vulkan unchanged, where `record` is a set and `wait` a wait in the open batch.

use fencepost::{Canon, Command, DeviceEvent, Family, Gpu, QueueId, Reply, Space, Submit, Work};

use crate::host::{Host, Until};
use crate::protocol::Order;
use crate::setup::Setup;

/// A native event with the recording that it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Native {
    pub event: DeviceEvent,
    pub set: u64,
    pub stream: usize,
}

/// Streams of a device with native events.
#[derive(Clone, Debug)]
pub struct Streams {
    family: Family,
    queues: Vec<QueueId>,
    /// Vulkan: the lease of the open batch, and how many leases there were.
    open: Vec<Option<u64>>,
    leases: Vec<u64>,
}

impl Streams {
    pub fn new(setup: &Setup) -> Self {
        let queues: Vec<QueueId> = setup.topology.streams().iter().map(|s| s.queue).collect();
        Streams { family: setup.family, open: vec![None; queues.len()], leases: vec![0; queues.len()], queues }
    }

    pub fn work(&mut self, host: &mut Host, stream: usize, work: Option<Work>) -> bool {
        if self.family == Family::Vulkan && self.buffer(host, stream).is_none() {
            return false;
        }
        work.is_none_or(|work| self.command(host, stream, Command::Work(work)))
    }

    /// Adds a command; `false` if the driver refused.
    pub fn command(&mut self, host: &mut Host, stream: usize, command: Command) -> bool {
        let queue = self.queues[stream];
        if self.family == Family::Cuda {
            if host.call("the driver call") != Reply::Done {
                return false;
            }
            host.issue(queue, command);
            return true;
        }
        let Some(buffer) = self.buffer(host, stream) else { return false };
        host.record(buffer, queue, command);
        true
    }

    fn buffer(&mut self, host: &mut Host, stream: usize) -> Option<u32> {
        let id = |lease: u64| (stream as u32) << 16 | lease as u32;
        if let Some(lease) = self.open[stream] {
            return Some(id(lease));
        }
        let lease = self.leases[stream];
        if host.begin(id(lease), self.queues[stream], lease) != Reply::Done {
            return None;
        }
        self.leases[stream] += 1;
        self.open[stream] = Some(lease);
        Some(id(lease))
    }

    pub fn flush(&mut self, host: &mut Host, stream: usize) -> bool {
        let Some(lease) = self.open[stream] else { return true };
        let buffer = Some((stream as u32) << 16 | lease as u32);
        if host.submit(self.queues[stream], &Submit { buffer, ..Submit::default() }) != Reply::Done {
            return false;
        }
        self.open[stream] = None;
        true
    }

    /// Whether a host that synchronized the stream on the spot would return now. While it blocks only the device
    /// and other threads move, so the call is taken to happen when it returns.
    pub fn is_drained(&mut self, host: &mut Host, stream: usize) -> bool {
        self.flush(host, stream) && host.gpu.queues()[self.queues[stream] as usize].is_empty()
    }

    /// What a host wait for a recording waits for.
    pub fn until(&mut self, host: &mut Host, native: Native) -> Option<Until> {
        self.flush(host, native.stream).then_some(Until::Native { event: native.event, set: native.set })
    }

    pub fn in_flight(&self, gpu: &Gpu) -> usize {
        match self.family {
            Family::Vulkan => self.queues.iter().map(|q| gpu.batch_count(*q)).max().unwrap_or(0),
            Family::Cuda => 0,
        }
    }

    pub fn assign(&self, order: &Order, c: &mut Canon) {
        order.streams.iter().for_each(|s| c.assign(Space::Stream, *s as u64));
    }

    pub fn write(&self, order: &Order, c: &mut Canon) {
        for s in &order.streams {
            match self.open[*s] {
                Some(lease) => c.name(Space::Buffer, (*s as u64) << 16 | lease),
                None => c.number(255),
            }
        }
    }

    pub fn write_native(&self, native: Option<Native>, c: &mut Canon) {
        match native {
            None => c.number(255),
            Some(Native { event, set, stream }) => {
                let (space, raw) = self.recording(event, set);
                c.name(space, raw);
                c.name(Space::Stream, stream as u64);
            }
        }
    }

    /// What nothing else names was set, and stays so. A name given here would tell threads apart.
    pub fn write_until(&self, until: Until, c: &mut Canon) {
        c.number(until.tag());
        if let Until::Native { event, set } = until {
            let (space, raw) = self.recording(event, set);
            if c.assigned(space).contains(&raw) {
                c.name(space, raw);
            } else {
                c.number(255);
            }
        }
    }

    /// What a recording is known by: the event, or where the event may be gone (CUDA-like) the recording itself.
    fn recording(&self, event: DeviceEvent, set: u64) -> (Space, u64) {
        match self.family {
            Family::Vulkan => (Space::DeviceEvent, u64::from(event)),
            Family::Cuda => (Space::Ordinal, u64::from(event) << 48 | set),
        }
    }
}
