//! What rows 1 to 7 share: a ggml-vulkan backend context as a stream.
//!
//! Source: llama.cpp, ggml/src/ggml-vulkan/ggml-vulkan.cpp. A context has at most one open batch; `record`
//! submits it, `wait` adds to it. `flush` stands for what graph compute does at its end; `synchronize` of a stream
//! submits, waits on a fence and resets the whole pool.
//!
//! A pool hands out the first command buffer that is not flagged in use. Which one that is depends on how many were
//! leaked before it, and nothing bounds those, so here any free one may be next. Free buffers are alike, since a
//! lease begins them anew, unless one is *marked*: busy on the device, or pointed at by an event that may
//! flag it as free under its next holder. So the choice is between the marked ones and one that is as good as new
//! (`Action`'s `lease`), and buffers that are not marked need not be remembered.
//!
//! Only rows 1 and 2 have that choice. Where leases are counted nothing is flagged as free without a reset, which is
//! judged if the buffer is busy, and a pointer says nothing once its batch has ended: what it frees is idle, or
//! leased again. There every order of the pool comes to the same.
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
    /// Whether `synchronize` leaves a buffer alone that was leased again since, and resets it otherwise.
    const COUNTS_LEASES: bool = true;

    fn new(event_count: usize, gpu: &mut Gpu) -> Self;
    fn record(&mut self, contexts: &mut Contexts, host: &mut Host, event: usize, stream: usize);
    fn wait(&mut self, contexts: &mut Contexts, host: &mut Host, stream: usize, event: usize);
    /// What `synchronize` waits for; `None` if nothing.
    fn until(&self, event: usize) -> Option<Until>;
    /// What it does afterwards, before the event's buffer is flagged as free.
    fn synchronized(&mut self, _host: &mut Host, _event: usize) {}
    fn destroy(&mut self, host: &mut Host, event: usize);
    /// A batch of this stream was submitted outside of `record`.
    fn flushed(&mut self, _stream: usize) {}
    fn name_values(&self, gpu: &Gpu, c: &mut Canon);
    /// Gives semaphores and fences that belong to events their names.
    fn assign(&self, events: &[usize], c: &mut Canon);
    fn write(&self, event: usize, c: &mut Canon);
}

/// A command buffer as an event remembers it.
#[derive(Clone, Copy, Debug)]
struct Pointer {
    stream: usize,
    index: usize,
    use_counter: u64,
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
    /// What each event points at: the buffer of its last recording.
    pointers: Vec<Option<Pointer>>,
    counts_leases: bool,
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
        if self.all[stream].open.is_none() {
            let marked: Vec<usize> = self.marked(host.gpu, stream).collect();
            let Context { pool, queue, open, .. } = &mut self.all[stream];
            let next = match host.lease {
                0 => free(pool).find(|index| !marked.contains(index)),
                n => Some(marked[usize::from(n) - 1]),
            };
            *open = Some(lease(pool, next, host, buffer_id(stream, 0, 0), *queue));
        }
        let context = &mut self.all[stream];
        let open = context.open.as_mut().expect("a batch was begun");
        if let Some(transfer) = &mut context.transfer
            && transfer.last_submitted < transfer.value
        {
            transfer.last_submitted = transfer.value;
            open.waits.push(Signal { semaphore: transfer.semaphore, value: transfer.value });
        }
        buffer_id(stream, 0, open.index)
    }

    /// The free buffers of a stream that are not as good as new.
    fn marked(&self, gpu: &Gpu, stream: usize) -> impl Iterator<Item = usize> {
        free(&self.all[stream].pool).filter(move |index| {
            let id = buffer_id(stream, 0, *index);
            is_busy(gpu, id) || (0..self.pointers.len()).any(|event| self.pointed(gpu, event) == Some(id))
        })
    }

    /// The buffer that `synchronize` of the event would flag as free, if that may matter.
    fn pointed(&self, gpu: &Gpu, event: usize) -> Option<BufferId> {
        let Pointer { stream, index, use_counter } = self.pointers[event]?;
        let id = buffer_id(stream, 0, index);
        let holds = self.all[stream].pool[index].use_counter == use_counter && gpu.in_flight(id);
        (holds || !self.counts_leases).then_some(id)
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

    /// Submits the batch that an event's recording ends; the event remembers its buffer.
    pub fn submit_recording(
        &mut self,
        host: &mut Host,
        event: usize,
        stream: usize,
        signal: Option<Signal>,
        fence: Option<FenceId>,
    ) {
        let Context { pool, open, .. } = &self.all[stream];
        let pointer = |open: &Open| Pointer { stream, index: open.index, use_counter: pool[open.index].use_counter };
        self.pointers[event] = open.as_ref().map(pointer);
        self.submit(host, stream, signal, fence);
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
            let next = free(&transfer.pool).next();
            lease(&mut transfer.pool, next, host, buffer_id(stream, 1, 0), transfer.queue)
        }))
    }

    /// Flags the event's buffer as free: whoever has it by now, or only if nobody leased it since.
    fn release(&mut self, host: &mut Host, event: usize) {
        let Some(Pointer { stream, index, use_counter }) = self.pointers[event].take() else { return };
        let buffer = &mut self.all[stream].pool[index];
        if !self.counts_leases {
            buffer.in_use = false;
        } else if buffer.use_counter == use_counter {
            buffer.in_use = false;
            host.reset_buffer(buffer_id(stream, 0, index), use_counter);
        }
    }

    /// Buffers that are neither marked nor busy are left out; [`Protocol::write_buffer`] tells of the others.
    fn write(&self, order: &Order, gpu: &Gpu, c: &mut Canon) {
        for s in &order.streams {
            let Context { queue: _, pool: _, open, fence: _, submit_pending, transfer } = &self.all[*s];
            c.flag(*submit_pending);
            write_open(buffer_id(*s, 0, 0), open.as_ref(), c);
            if let Some(Transfer { open, semaphore, value, last_submitted, .. }) = transfer {
                c.value(*semaphore, *value);
                c.flag(last_submitted < value);
                write_open(buffer_id(*s, 1, 0), open.as_ref(), c);
            }
        }
        for e in &order.events {
            match self.pointed(gpu, *e) {
                Some(id) => c.name(Space::Buffer, u64::from(id)),
                None => c.number(255),
            }
        }
    }
}

fn write_open(first: BufferId, open: Option<&Open>, c: &mut Canon) {
    let Some(open) = open else { return c.number(255) };
    c.name(Space::Buffer, u64::from(first + open.index as u32));
    c.number(open.waits.len() as u64);
    let start = c.bytes().len();
    open.waits.iter().for_each(|w| c.value(w.semaphore, w.value));
    c.sort_records(start, 2);
}

fn buffer_id(stream: usize, part: u32, index: usize) -> BufferId {
    (stream as u32) << 16 | part << 15 | index as u32
}

fn is_busy(gpu: &Gpu, id: BufferId) -> bool {
    gpu.in_flight(id) || gpu.open_lease(id).is_some()
}

fn free(pool: &[PoolBuffer]) -> impl Iterator<Item = usize> {
    (0..pool.len()).filter(|index| !pool[*index].in_use)
}

/// Begins a batch with a buffer of the pool, or a further one. `first` is the pool's first.
fn lease(pool: &mut Vec<PoolBuffer>, next: Option<usize>, host: &mut Host, first: BufferId, queue: QueueId) -> Open {
    let index = next.unwrap_or(pool.len());
    if index == pool.len() {
        pool.push(PoolBuffer { in_use: true, use_counter: 0 });
    }
    pool[index].in_use = true;
    pool[index].use_counter += 1;
    host.begin(first + index as u32, queue, pool[index].use_counter);
    Open { index, waits: Vec::new() }
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
        let all = topology.iter().map(context).collect();
        let pointers = vec![None; setup.bounds.events];
        Ggml { contexts: Contexts { all, topology, pointers, counts_leases: E::COUNTS_LEASES }, events, tokens: 0 }
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
            Target::Event(event) => {
                self.events.synchronized(host, event);
                self.contexts.release(host, event);
            }
            Target::Stream(stream) => {
                // vkResetCommandPool: every buffer of the context, whoever thinks he has it.
                let context = &mut self.contexts.all[stream];
                let pools = [Some((0, &mut context.pool)), context.transfer.as_mut().map(|t| (1, &mut t.pool))];
                for (part, pool) in pools.into_iter().flatten() {
                    for (index, buffer) in pool.iter_mut().enumerate() {
                        let id = buffer_id(stream, part, index);
                        if is_busy(host.gpu, id) {
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
        self.contexts.pointers[event] = None;
    }

    fn leases(&self, gpu: &Gpu, stream: usize) -> u8 {
        let begins = self.contexts.all[stream].open.is_none();
        if begins { self.contexts.marked(gpu, stream).count() as u8 } else { 0 }
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
        self.contexts.write(order, gpu, c);
        order.events.iter().for_each(|e| self.events.write(*e, c));
    }

    fn write_buffer(&self, buffer: BufferId, c: &mut Canon) {
        let (stream, is_transfer, index) = (buffer >> 16, buffer >> 15 & 1 == 1, buffer as usize & 0x7fff);
        let Context { pool, transfer, .. } = &self.contexts.all[stream as usize];
        let pool = transfer.as_ref().filter(|_| is_transfer).map_or(pool, |t| &t.pool);
        c.name(Space::Stream, u64::from(stream));
        c.flag(pool[index].in_use);
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
