//! What rows 1 to 7 share: a ggml-vulkan backend context as a stream.
//!
//! Source: llama.cpp, ggml/src/ggml-vulkan/ggml-vulkan.cpp. A context has at most one open batch; `record`
//! submits it, `wait` adds to it. A pool hands out the first command buffer that is not flagged in
//! use. `flush` stands for what graph compute does at its end; `synchronize` of a stream submits, waits on a
//! fence and resets the whole pool.
//!
//! ggml also puts a full barrier before work that may conflict with earlier work. It is left out: it
//! orders by luck of submission what the event was asked to order.

use std::fmt::Debug;

use fencepost::{BufferId, Canon, Command, FenceId, Gpu, QueueId, Semaphore, Signal, Space, Submit, Work};

use crate::host::{Host, Target, Until};
use crate::protocol::{Blocking, Order, Part, Protocol};
use crate::setup::{Setup, StreamQueues};

/// The events of one row.
pub trait Events: Clone + Debug + Send + Sync + 'static {
    /// Whether the row copies on the transfer queue where there is one.
    const TRANSFERS: bool = false;

    fn new(event_count: usize, gpu: &mut Gpu) -> Self;
    fn record(&mut self, contexts: &mut Contexts, host: &mut Host, event: usize, stream: usize);
    fn wait(&mut self, contexts: &mut Contexts, host: &mut Host, stream: usize, event: usize);
    /// What `synchronize` waits for; `None` if nothing.
    fn until(&self, event: usize) -> Option<Until>;
    /// What it does afterwards.
    fn synchronized(&mut self, contexts: &mut Contexts, host: &mut Host, event: usize);
    fn destroy(&mut self, host: &mut Host, event: usize);
    /// A batch of this stream was submitted outside of `record`.
    fn flushed(&mut self, _stream: usize) {}
    /// The command buffer that the event points at.
    fn pointer(&self, event: usize) -> Option<Pointer>;
    fn name_values(&self, gpu: &Gpu, c: &mut Canon);
    /// Gives semaphores and fences that belong to events their names.
    fn assign(&self, events: &[usize], c: &mut Canon);
    fn write(&self, event: usize, c: &mut Canon);
}

/// A command buffer as an event remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    pub stream: usize,
    pub index: usize,
    pub use_counter: u64,
}

/// Contexts with the events of a row.
#[derive(Clone, Debug)]
pub struct Ggml<E> {
    contexts: Contexts,
    events: E,
    tokens: u64,
}

/// Every backend context of one device.
#[derive(Clone, Debug)]
pub struct Contexts {
    all: Vec<Context>,
    topology: &'static [StreamQueues],
}

#[derive(Clone, Debug)]
struct Context {
    queue: QueueId,
    pool: Vec<PoolBuffer>,
    open: Option<Open>,
    fence: FenceId,
    submit_pending: bool,
    transfer: Option<Transfer>,
}

/// The transfer queue of a context, and the timeline that compute waits for.
#[derive(Clone, Debug)]
struct Transfer {
    queue: QueueId,
    pool: Vec<PoolBuffer>,
    open: Option<Open>,
    semaphore: Semaphore,
    value: u64,
    last_submitted: u64,
}

#[derive(Clone, Copy, Debug)]
struct PoolBuffer {
    in_use: bool,
    use_counter: u64,
}

#[derive(Clone, Debug)]
struct Open {
    index: usize,
    waits: Vec<Signal>,
}

impl Contexts {
    /// The open batch of a stream, begun if there is none; it waits for copies submitted meanwhile.
    pub fn open(&mut self, host: &mut Host, stream: usize) -> BufferId {
        let context = &mut self.all[stream];
        let open = context.open.get_or_insert_with(|| {
            let index = lease(&mut context.pool, host, stream, 0, context.queue);
            Open { index, waits: Vec::new() }
        });
        if let Some(transfer) = &mut context.transfer
            && transfer.last_submitted < transfer.value
        {
            transfer.last_submitted = transfer.value;
            open.waits.push(Signal { semaphore: transfer.semaphore, value: transfer.value });
        }
        buffer_id(stream, 0, open.index)
    }

    /// Where the open batch's buffer is, for an event to remember.
    pub fn pointer(&self, stream: usize) -> Option<Pointer> {
        let context = &self.all[stream];
        let index = context.open.as_ref()?.index;
        Some(Pointer { stream, index, use_counter: context.pool[index].use_counter })
    }

    pub fn command(&mut self, host: &mut Host, stream: usize, command: Command) {
        let buffer = self.open(host, stream);
        host.record(buffer, self.all[stream].queue, command);
    }

    /// Ends the open batch and submits it.
    pub fn submit(&mut self, host: &mut Host, stream: usize, signal: Option<Signal>, fence: Option<FenceId>) {
        let context = &mut self.all[stream];
        if let Some(open) = context.open.take() {
            let buffer = Some(buffer_id(stream, 0, open.index));
            host.submit(context.queue, &Submit { waits: open.waits, buffer, signal, fence });
            context.submit_pending = true;
        }
    }

    /// Ends the open batch and forgets it.
    pub fn abandon(&mut self, stream: usize) {
        self.all[stream].open = None;
    }

    pub fn submit_transfer(&mut self, host: &mut Host, stream: usize) {
        let Some(transfer) = &mut self.all[stream].transfer else { return };
        if let Some(open) = transfer.open.take() {
            transfer.value += 1;
            let signal = Some(Signal { semaphore: transfer.semaphore, value: transfer.value });
            let buffer = Some(buffer_id(stream, 1, open.index));
            host.submit(transfer.queue, &Submit { waits: open.waits, buffer, signal, fence: None });
        }
    }

    /// The open transfer batch waits for a point, if the stream has a transfer queue.
    pub fn transfer_waits(&mut self, host: &mut Host, stream: usize, point: Signal) {
        if let Some(open) = self.open_transfer(host, stream) {
            open.waits.retain(|w| w.semaphore != point.semaphore || w.value > point.value);
            if !open.waits.iter().any(|w| w.semaphore == point.semaphore) {
                open.waits.push(point);
            }
        }
    }

    fn open_transfer(&mut self, host: &mut Host, stream: usize) -> Option<&mut Open> {
        let transfer = self.all[stream].transfer.as_mut()?;
        Some(transfer.open.get_or_insert_with(|| {
            let index = lease(&mut transfer.pool, host, stream, 1, transfer.queue);
            Open { index, waits: Vec::new() }
        }))
    }

    /// Flags a buffer as free and resets it, if it has not been leased again since.
    pub fn release_by_counter(&mut self, host: &mut Host, pointer: Pointer) {
        let buffer = &mut self.all[pointer.stream].pool[pointer.index];
        if buffer.use_counter == pointer.use_counter {
            buffer.in_use = false;
            host.reset_buffer(buffer_id(pointer.stream, 0, pointer.index), pointer.use_counter);
        }
    }

    /// Flags a buffer as free, whoever has it by now.
    pub fn release_by_pointer(&mut self, pointer: Pointer) {
        self.all[pointer.stream].pool[pointer.index].in_use = false;
    }

    pub fn use_counter(&self, pointer: Pointer) -> u64 {
        self.all[pointer.stream].pool[pointer.index].use_counter
    }

    fn write(&self, order: &Order, gpu: &Gpu, pointed: impl Fn(usize, usize) -> bool, c: &mut Canon) {
        for s in &order.streams {
            let Context { queue: _, pool, open, fence: _, submit_pending, transfer } = &self.all[*s];
            c.flag(*submit_pending);
            write_pool(*s, 0, pool, open.as_ref(), gpu, &|index| pointed(*s, index), c);
            if let Some(Transfer { pool, open, semaphore, value, last_submitted, .. }) = transfer {
                c.value(*semaphore, *value);
                c.flag(last_submitted < value);
                write_pool(*s, 1, pool, open.as_ref(), gpu, &|_| false, c);
            }
        }
    }
}

/// A pool as far as it matters: the open batch, and the buffers that are open, in flight, or pointed at. How many
/// others there are, free or leaked, changes nothing, unless a buffer that is in flight is flagged as free:
/// then it matters how soon it is found.
fn write_pool(
    stream: usize,
    part: u32,
    pool: &[PoolBuffer],
    open: Option<&Open>,
    gpu: &Gpu,
    pointed: &dyn Fn(usize) -> bool,
    c: &mut Canon,
) {
    match open {
        None => c.number(255),
        Some(open) => {
            c.name(Space::Buffer, u64::from(buffer_id(stream, part, open.index)));
            c.number(open.waits.len() as u64);
            let start = c.bytes().len();
            open.waits.iter().for_each(|w| c.value(w.semaphore, w.value));
            c.sort_records(start, 2);
        }
    }
    let busy = |index: usize| {
        let id = buffer_id(stream, part, index);
        gpu.in_flight(id) || gpu.open_lease(id).is_some()
    };
    let treacherous = (0..pool.len()).any(|i| !pool[i].in_use && busy(i)) || (0..pool.len()).any(pointed);
    for (index, buffer) in pool.iter().enumerate() {
        if busy(index) || pointed(index) {
            c.name(Space::Buffer, u64::from(buffer_id(stream, part, index)));
            c.flag(buffer.in_use);
        } else if treacherous && !buffer.in_use {
            c.number(254);
        }
    }
    c.number(253);
}

fn buffer_id(stream: usize, part: u32, index: usize) -> BufferId {
    (stream as u32) << 16 | part << 15 | index as u32
}

/// The first buffer that is not flagged in use, or a new one.
fn lease(pool: &mut Vec<PoolBuffer>, host: &mut Host, stream: usize, part: u32, queue: QueueId) -> usize {
    let index = pool.iter().position(|b| !b.in_use).unwrap_or_else(|| {
        pool.push(PoolBuffer { in_use: true, use_counter: 0 });
        pool.len() - 1
    });
    pool[index].in_use = true;
    pool[index].use_counter += 1;
    host.begin(buffer_id(stream, part, index), queue, pool[index].use_counter);
    index
}

impl<E: Events> Protocol for Ggml<E> {
    fn new(setup: &Setup, gpu: &mut Gpu) -> Self {
        let events = E::new(setup.bounds.events, gpu);
        let topology = setup.topology.streams();
        let context = |queues: &StreamQueues| Context {
            queue: queues.queue,
            pool: Vec::new(),
            open: None,
            fence: gpu.create_fence(),
            submit_pending: false,
            transfer: queues.transfer.filter(|_| E::TRANSFERS).map(|queue| Transfer {
                queue,
                pool: Vec::new(),
                open: None,
                semaphore: gpu.create_semaphore(),
                value: 0,
                last_submitted: 0,
            }),
        };
        Ggml { contexts: Contexts { all: topology.iter().map(context).collect(), topology }, events, tokens: 0 }
    }

    fn work(&mut self, host: &mut Host, stream: usize, part: Part, work: Option<Work>) -> bool {
        if part == Part::Copy
            && let Some(open) = self.contexts.open_transfer(host, stream)
        {
            let buffer = buffer_id(stream, 1, open.index);
            let queue = self.contexts.all[stream].transfer.as_ref().map_or(0, |t| t.queue);
            work.into_iter().for_each(|work| host.record(buffer, queue, Command::Work(work)));
            return true;
        }
        self.contexts.open(host, stream);
        work.into_iter().for_each(|work| self.contexts.command(host, stream, Command::Work(work)));
        true
    }

    fn record(&mut self, host: &mut Host, event: usize, stream: usize) -> bool {
        self.contexts.submit_transfer(host, stream);
        self.events.record(&mut self.contexts, host, event, stream);
        true
    }

    fn wait(&mut self, host: &mut Host, stream: usize, event: usize) -> bool {
        self.events.wait(&mut self.contexts, host, stream, event);
        true
    }

    fn flush(&mut self, host: &mut Host, stream: usize) -> bool {
        self.contexts.submit_transfer(host, stream);
        if self.contexts.all[stream].open.is_some() {
            self.contexts.open(host, stream);
            self.contexts.submit(host, stream, None, None);
            self.events.flushed(stream);
        }
        true
    }

    fn synchronize(&mut self, host: &mut Host, target: Target) -> Blocking {
        let until = match target {
            Target::Event(event) => self.events.until(event),
            Target::Stream(stream) => {
                self.flush(host, stream);
                let context = &mut self.contexts.all[stream];
                // Copies that no compute batch waits for yet are waited for by the fence's own submission.
                let unwaited = context.transfer.as_mut().filter(|t| t.last_submitted < t.value);
                let copies = unwaited.map(|t| {
                    t.last_submitted = t.value;
                    Signal { semaphore: t.semaphore, value: t.value }
                });
                (std::mem::take(&mut context.submit_pending) || copies.is_some()).then(|| {
                    host.reset_fence(context.fence);
                    let waits = copies.into_iter().collect();
                    let fence = Some(context.fence);
                    host.submit(context.queue, &Submit { waits, fence, ..Submit::default() });
                    Until::Fence(context.fence)
                })
            }
        };
        let Some(until) = until else { return Blocking::Done };
        self.tokens += 1;
        Blocking::Block { until, token: self.tokens }
    }

    fn returned(&mut self, host: &mut Host, target: Target, _until: Until, token: u64) {
        match target {
            Target::Event(event) => self.events.synchronized(&mut self.contexts, host, event),
            Target::Stream(stream) => {
                // vkResetCommandPool: every buffer of the context, whoever thinks he has it.
                let context = &mut self.contexts.all[stream];
                let pools = [Some((0, &mut context.pool)), context.transfer.as_mut().map(|t| (1, &mut t.pool))];
                for (part, pool) in pools.into_iter().flatten() {
                    for (index, buffer) in pool.iter_mut().enumerate() {
                        let id = buffer_id(stream, part, index);
                        if host.gpu.in_flight(id) || host.gpu.open_lease(id).is_some() {
                            host.reset_buffer(id, buffer.use_counter);
                        }
                        buffer.in_use = false;
                    }
                }
                self.contexts.all[stream].transfer.iter_mut().for_each(|t| t.open = None);
                self.contexts.all[stream].open = None;
            }
        }
        host.wake(token, false);
    }

    fn destroy(&mut self, host: &mut Host, event: usize) {
        self.events.destroy(host, event);
    }

    fn in_flight(&self, gpu: &Gpu) -> usize {
        let queues = |s: &StreamQueues| [Some(s.queue), s.transfer].into_iter().flatten();
        let sharing = |q: QueueId| self.contexts.topology.iter().filter(|s| queues(s).any(|x| x == q)).count();
        let loads = self.contexts.topology.iter().flat_map(queues).map(|q| gpu.batch_count(q).div_ceil(sharing(q)));
        loads.max().unwrap_or(0)
    }

    fn name_values(&self, gpu: &Gpu, c: &mut Canon) {
        self.events.name_values(gpu, c);
        for context in &self.contexts.all {
            let waits = context.open.iter().flat_map(|open| &open.waits);
            let transfer = context.transfer.iter();
            let waits = waits.chain(transfer.clone().flat_map(|t| &t.open).flat_map(|open| &open.waits));
            waits.for_each(|w| c.name_value(w.semaphore, w.value));
            // The compute batch to come waits for what was submitted; what was reached is told apart by nobody.
            for t in transfer.filter(|t| t.last_submitted < t.value && t.value > gpu.semaphore(t.semaphore)) {
                c.name_value(t.semaphore, t.value);
            }
        }
    }

    fn assign(&self, _gpu: &Gpu, order: &Order, c: &mut Canon) {
        self.events.assign(&order.events, c);
        for s in &order.streams {
            c.assign(Space::Stream, *s as u64);
            c.assign(Space::Fence, u64::from(self.contexts.all[*s].fence));
            if let Some(transfer) = &self.contexts.all[*s].transfer {
                c.assign(Space::Semaphore, u64::from(transfer.semaphore));
            }
        }
    }

    fn write(&self, gpu: &Gpu, order: &Order, c: &mut Canon) {
        let pointed = |stream: usize, index: usize| {
            let hit = |p: Pointer| (p.stream, p.index) == (stream, index);
            order.events.iter().any(|e| self.events.pointer(*e).is_some_and(hit))
        };
        self.contexts.write(order, gpu, pointed, c);
        for e in &order.events {
            self.events.write(*e, c);
            match self.events.pointer(*e) {
                None => c.number(255),
                Some(p) => {
                    c.name(Space::Stream, p.stream as u64);
                    c.name(Space::Buffer, u64::from(buffer_id(p.stream, 0, p.index)));
                    c.flag(self.contexts.use_counter(p) == p.use_counter);
                }
            }
        }
    }

    fn write_until(&self, until: Until, _token: u64, c: &mut Canon) {
        c.number(until.tag());
        match until {
            Until::Semaphore(signal) => c.value(signal.semaphore, signal.value),
            Until::Fence(fence) => c.name(Space::Fence, u64::from(fence)),
            Until::Native { .. } => {}
        }
    }
}
