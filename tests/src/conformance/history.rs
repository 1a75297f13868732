//! Three backends that are wrong on purpose, after rows 1, 5 and 9 of the history table: each is Vulkan by hand, and loses
//! track of its `VkEvent`s in its own way.

use std::cell::RefCell;
use std::time::Duration;

use fencepost::{BufferId, Command, DeviceEvent, Family, Gpu, Occurrence, QueueId, Semaphore, Signal, Submit};

use super::simulated::Simulated;
use super::{Answer, Backend, Work};

/// What a backend does with its `VkEvent`s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// Row 1, llama.cpp before PR 20518: one for each event, reset by the host; the batch that holds a wait is ended and
    /// never submitted.
    WaitNeverSubmitted,
    /// Row 5, PR 20518 as merged: a list of superseded ones, reset when the host has waited for the newest recording.
    SubmittedList,
    /// Row 9, CubeCL's pool carried to Vulkan: back into a pool when dropped, and recorded again as they are.
    PooledWhenDropped,
}

/// Such a backend on the simulated GPU.
pub struct Wrong {
    row: Row,
    device: Simulated,
    buffers: BufferId,
    pool: Vec<DeviceEvent>,
}

/// A stream: batches on a queue, each of which signals the next value of a timeline.
pub struct Stream {
    queue: QueueId,
    semaphore: Semaphore,
    state: RefCell<Batches>,
}

#[derive(Default)]
struct Batches {
    open: Option<BufferId>,
    value: u64,
}

/// An event with what it has made.
pub struct Event(RefCell<Slots>);

#[derive(Default)]
struct Slots {
    current: Option<DeviceEvent>,
    /// The batch that sets it.
    point: Option<Signal>,
    submitted: Vec<DeviceEvent>,
    free: Vec<DeviceEvent>,
}

impl Wrong {
    /// A device of its own, with two queues.
    pub fn new(row: Row, seed: u64) -> Wrong {
        Wrong { row, device: Simulated::new(Family::Vulkan, 2, seed), buffers: 0, pool: Vec::new() }
    }

    fn command(&mut self, stream: &Stream, command: Command) {
        let buffer = *stream.state.borrow_mut().open.get_or_insert_with(|| {
            self.buffers += 1;
            self.device.gpu.begin(self.buffers, stream.queue, 0);
            self.buffers
        });
        self.device.gpu.record(buffer, command);
        self.device.drift();
    }

    /// Submits the open batch; answers the newest value.
    fn submit(&mut self, stream: &Stream) -> Signal {
        let mut batches = stream.state.borrow_mut();
        let buffer = batches.open.take();
        batches.value += u64::from(buffer.is_some());
        let signal = Signal { semaphore: stream.semaphore, value: batches.value };
        if buffer.is_some() {
            let submit = Submit { buffer, signal: Some(signal), ..Submit::default() };
            self.device.gpu.submit(stream.queue, &submit);
        }
        self.device.drift();
        signal
    }

    fn reset(&mut self, event: DeviceEvent) {
        self.device.judge(Occurrence::HostReset { event });
        self.device.gpu.reset_event(event);
    }

    fn passed(gpu: &Gpu, point: Signal) -> bool {
        gpu.semaphore(point.semaphore) >= point.value
    }
}

impl Backend for Wrong {
    type Stream = Stream;
    type Event = Event;

    fn stream(&mut self, queue: u32) -> Answer<Stream> {
        Ok(Stream { queue, semaphore: self.device.gpu.create_semaphore(), state: RefCell::default() })
    }

    fn event(&mut self) -> Answer<Event> {
        let mut slots = Slots::default();
        if self.row == Row::WaitNeverSubmitted {
            let event = self.device.gpu.create_event();
            self.device.gpu.set_event(event); // A wait before the first recording passes.
            slots.current = Some(event);
        }
        Ok(Event(RefCell::new(slots)))
    }

    fn work(&mut self, stream: &Stream, work: Work) -> Answer<()> {
        self.command(stream, Simulated::work(work.number));
        Ok(())
    }

    fn record(&mut self, event: &Event, stream: &Stream) -> Answer<()> {
        let mut slots = event.0.borrow_mut();
        let next = match self.row {
            Row::WaitNeverSubmitted => {
                slots.current.into_iter().for_each(|slot| self.reset(slot));
                slots.current
            }
            Row::SubmittedList => {
                let superseded = slots.current.take();
                slots.submitted.extend(superseded);
                slots.free.pop()
            }
            Row::PooledWhenDropped => {
                let next = self.pool.pop();
                self.pool.extend(slots.current.take());
                next
            }
        };
        let slot = next.unwrap_or_else(|| self.device.gpu.create_event());
        slots.current = Some(slot);
        self.command(stream, Command::Set(slot));
        slots.point = Some(self.submit(stream));
        Ok(())
    }

    fn wait(&mut self, stream: &Stream, event: &Event) -> Answer<()> {
        let Some(slot) = event.0.borrow().current else { return Ok(()) };
        self.device.judge(Occurrence::WaitRecorded { event: slot, queue: stream.queue });
        self.command(stream, Command::Wait(slot));
        if self.row == Row::WaitNeverSubmitted {
            stream.state.borrow_mut().open = None;
        }
        Ok(())
    }

    fn flush(&mut self, stream: &Stream) -> Answer<()> {
        self.submit(stream);
        Ok(())
    }

    fn synchronize(&mut self, event: &Event, timeout: Duration) -> Answer<bool> {
        let mut slots = event.0.borrow_mut();
        let Some(point) = slots.point else { return Ok(true) };
        let done = self.device.until(timeout, |gpu| Wrong::passed(gpu, point));
        if done {
            let superseded: Vec<DeviceEvent> = slots.submitted.drain(..).collect();
            superseded.iter().for_each(|slot| self.reset(*slot));
            slots.free.extend(superseded);
        }
        Ok(done)
    }

    fn synchronize_stream(&mut self, stream: &Stream, timeout: Duration) -> Answer<bool> {
        let point = self.submit(stream);
        Ok(self.device.until(timeout, |gpu| Wrong::passed(gpu, point)))
    }

    fn query(&mut self, event: &Event) -> Answer<bool> {
        let point = event.0.borrow().point;
        Ok(point.is_none_or(|point| self.device.until(Duration::ZERO, |gpu| Wrong::passed(gpu, point))))
    }

    fn destroy_event(&mut self, event: Event) -> Answer<()> {
        let Slots { current, submitted, free, .. } = event.0.into_inner();
        for event in current.into_iter().chain(submitted).chain(free) {
            if self.row == Row::PooledWhenDropped {
                self.pool.push(event);
            } else {
                self.device.judge(Occurrence::EventDestroyed { event });
                self.device.gpu.destroy_event(event);
            }
        }
        Ok(())
    }

    fn destroy_stream(&mut self, stream: Stream) -> Answer<()> {
        self.submit(&stream);
        Ok(())
    }

    fn ended(&mut self) -> Answer<Vec<usize>> {
        Ok(self.device.ended())
    }

    fn found(&mut self, work: usize) -> Answer<Vec<usize>> {
        Ok(self.device.found(work))
    }

    fn complaints(&mut self) -> Vec<String> {
        self.device.complaints()
    }
}
