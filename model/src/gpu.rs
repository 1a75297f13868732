//! The GPU: what Vulkan, or a CUDA-like driver, allows, step by step.
//!
//! Vulkan:
//! * A queue takes batches in order. A batch starts after the batches before it have started and
//!   its semaphore waits are satisfied.
//! * Work begins in submission order and may end in any order. (Begins that are taken one by one may come in any
//!   order here, which allows more; taken eagerly they come in order.)
//! * A set takes effect when everything before it on its queue has ended; a wait holds what comes
//!   after it until the event is set.
//! * A reset in a queue is not ordered after an earlier wait unless a barrier lies between
//!   (VUID-vkCmdResetEvent-event-03834): it may overtake it.
//! * A batch's signal happens after all earlier work of the queue.
//! * Host sets and resets take effect at once, whatever the queue is doing.
//!
//! CUDA-like: each stream is a lane of its own in which everything runs in order. A recording is a
//! set, a wait names the recording that was newest when it was issued, and destroying an event
//! leaves both alone.
//!
//! A step is either *eager* or a choice. Eager steps only enable others: a batch that starts, a
//! command that begins, a barrier that has nothing before it, untracked work that ends, a batch whose last command has
//! ended. Taking them at once loses no behaviour: they disable no other step, and sooner is the worst case
//! for every rule but `batch_reuse`. There, a set, a wait or tracked work keeps a batch in flight as long as
//! it likes, and a run that reuses a buffer of other batches has a sibling whose batch holds one of those. What the host knows of them stays a choice: it has to read the
//! counter. Sets and waits are never eager: that would close the window in which a wait is
//! submitted and has not executed.

use alloc::vec::Vec;

use crate::handle::clone_in_place;

use crate::canon::{Canon, Space};
use crate::rules::Occurrence;

/// A queue. Vulkan: `VkQueue`. CUDA: the lane of one stream.
pub type QueueId = u32;
/// A timeline semaphore. Vulkan: `VkSemaphore`.
pub type Semaphore = u32;
/// A command buffer. Vulkan: `VkCommandBuffer`.
pub type BufferId = u32;
/// A device event. Vulkan: `VkEvent`. CUDA: the event itself.
pub type DeviceEvent = u32;
/// A fence. Vulkan: `VkFence`.
pub type FenceId = u32;

/// Whose semantics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Vulkan: events are set, reset and waited for as objects.
    Vulkan,
    /// CUDA-like: events are recorded, and a wait binds to one recording.
    Cuda,
}

/// Work for the device, with what the judge needs to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Work {
    /// The work's bit in the judge's sets; 0 if it is not tracked.
    pub tracked: u8,
    /// Tracked works that must have ended before it begins.
    pub after: u8,
}

/// A command in a command buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// A dispatch, copy or fill.
    Work(Work),
    /// `vkCmdPipelineBarrier2` from all commands to all commands.
    Barrier,
    /// `vkCmdSetEvent2` after all commands; CUDA: `cudaEventRecord`.
    Set(DeviceEvent),
    /// `vkCmdWaitEvents2` before all commands; CUDA: `cudaStreamWaitEvent`.
    Wait(DeviceEvent),
    /// `vkCmdResetEvent2`.
    Reset(DeviceEvent),
}

/// An operation that a queue holds until it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A batch waits for a semaphore before it starts.
    Start {
        /// Which semaphore.
        semaphore: Semaphore,
        /// The value to reach.
        value: u64,
    },
    /// Work; `begun` once nothing holds it.
    Work {
        /// What it is.
        work: Work,
        /// Whether it runs.
        begun: bool,
    },
    /// A barrier.
    Barrier,
    /// A set, by its number among the sets of the event.
    Set {
        /// Which event.
        event: DeviceEvent,
        /// Its number.
        set: u64,
    },
    /// A wait, by the set it was recorded for.
    Wait {
        /// Which event.
        event: DeviceEvent,
        /// The number of the newest set when the wait was recorded.
        set: u64,
    },
    /// A reset in the queue, by the set it is to undo.
    Reset {
        /// Which event.
        event: DeviceEvent,
        /// The number of the newest set when the reset was recorded.
        set: u64,
    },
    /// The end of a batch: its buffer is free, its signal and its fence are given.
    End {
        /// The buffer, if the batch had one.
        buffer: Option<BufferId>,
        /// The signal, if it has one.
        signal: Option<Signal>,
        /// The fence, if it has one.
        fence: Option<FenceId>,
    },
}

/// A signal of a timeline semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Signal {
    /// Which semaphore.
    pub semaphore: Semaphore,
    /// Its new value.
    pub value: u64,
}

/// A submission of one batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submit {
    /// Semaphores and values to wait for before the batch starts.
    pub waits: Vec<Signal>,
    /// The commands.
    pub buffer: Option<BufferId>,
    /// What to signal at the end.
    pub signal: Option<Signal>,
    /// The fence to signal.
    pub fence: Option<FenceId>,
}

/// A step of the device: the operation at `index` of `queue` begins (work that has not begun) or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Step {
    /// Which queue.
    pub queue: QueueId,
    /// Which of its operations.
    pub index: u32,
}

/// The device.
#[derive(Debug, PartialEq, Eq)]
pub struct Gpu {
    family: Family,
    lost: bool,
    queues: Vec<Vec<Op>>,
    semaphores: Vec<u64>,
    fences: Vec<bool>,
    events: Vec<Event>,
    /// Buffers that were begun and not submitted.
    open: Vec<OpenBuffer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Event {
    alive: bool,
    /// The set that it was set by.
    set: Option<u64>,
    /// How many sets were recorded.
    newest: u64,
    /// Where the newest set runs.
    queue: Option<QueueId>,
}

#[derive(Debug, PartialEq, Eq)]
struct OpenBuffer {
    id: BufferId,
    queue: QueueId,
    lease: u64,
    ops: Vec<Op>,
}

clone_in_place!(Gpu { family, lost, queues, semaphores, fences, events, open });

clone_in_place!(OpenBuffer { id, queue, lease, ops });

impl Gpu {
    /// A device with queues and nothing else.
    pub fn new(family: Family, queue_count: usize) -> Self {
        Gpu {
            family,
            lost: false,
            queues: alloc::vec![Vec::new(); queue_count],
            semaphores: Vec::new(),
            fences: Vec::new(),
            events: Vec::new(),
            open: Vec::new(),
        }
    }

    // Host calls ---------------------------------------------------------------------------------

    /// A new device event, unset. The lowest free number is used.
    pub fn create_event(&mut self) -> DeviceEvent {
        let fresh = Event { alive: true, set: None, newest: 0, queue: None };
        if let Some(at) = self.events.iter().position(|e| !e.alive) {
            self.events[at] = Event { newest: self.events[at].newest, ..fresh };
            return at as DeviceEvent;
        }
        self.events.push(fresh);
        self.events.len() as DeviceEvent - 1
    }

    /// `vkDestroyEvent`.
    pub fn destroy_event(&mut self, event: DeviceEvent) {
        self.events[event as usize].alive = false;
        self.events[event as usize].set = None;
    }

    /// `vkSetEvent`: recorded as a set of its own.
    pub fn set_event(&mut self, event: DeviceEvent) {
        let event = &mut self.events[event as usize];
        event.newest += 1;
        event.set = Some(event.newest);
    }

    /// `vkResetEvent`.
    pub fn reset_event(&mut self, event: DeviceEvent) {
        self.events[event as usize].set = None;
    }

    /// `vkResetFences`.
    pub fn reset_fence(&mut self, fence: FenceId) {
        self.fences[fence as usize] = false;
    }

    /// A further timeline semaphore, at 0.
    pub fn create_semaphore(&mut self) -> Semaphore {
        self.semaphores.push(0);
        self.semaphores.len() as Semaphore - 1
    }

    /// `vkSignalSemaphore`: takes effect at once.
    pub fn signal_semaphore(&mut self, semaphore: Semaphore, value: u64) {
        self.semaphores[semaphore as usize] = value;
    }

    /// A further fence, signalled.
    pub fn create_fence(&mut self) -> FenceId {
        self.fences.push(true);
        self.fences.len() as FenceId - 1
    }

    /// `vkBeginCommandBuffer`: whatever the buffer held is gone.
    pub fn begin(&mut self, id: BufferId, queue: QueueId, lease: u64) {
        self.discard(id);
        self.open.push(OpenBuffer { id, queue, lease, ops: Vec::new() });
    }

    /// `vkResetCommandBuffer`, `vkFreeCommandBuffers`: whatever the buffer held is gone.
    pub fn discard(&mut self, id: BufferId) {
        self.open.retain(|b| b.id != id);
    }

    /// Adds a command to an open buffer.
    ///
    /// # Panics
    /// Panics if the buffer was not begun.
    pub fn record(&mut self, id: BufferId, command: Command) {
        let at = self.open.iter().position(|b| b.id == id).expect("commands go into a buffer that was begun");
        let op = self.op(self.open[at].queue, command);
        self.open[at].ops.push(op);
    }

    /// Issues a command straight to a queue, as CUDA does.
    pub fn issue(&mut self, queue: QueueId, command: Command) {
        let op = self.op(queue, command);
        if !self.lost {
            self.queues[queue as usize].push(op);
        }
    }

    fn op(&mut self, queue: QueueId, command: Command) -> Op {
        let newest = |event: DeviceEvent| self.events[event as usize].newest;
        match command {
            Command::Work(work) => Op::Work { work, begun: false },
            Command::Barrier => Op::Barrier,
            Command::Wait(event) => Op::Wait { event, set: newest(event) },
            Command::Reset(event) => Op::Reset { event, set: newest(event) },
            Command::Set(event) => {
                let state = &mut self.events[event as usize];
                state.newest += 1;
                state.queue = Some(queue);
                Op::Set { event, set: state.newest }
            }
        }
    }

    /// `vkQueueSubmit2` with one batch. A lost device takes nothing.
    pub fn submit(&mut self, queue: QueueId, batch: &Submit) {
        let at = batch.buffer.and_then(|id| self.open.iter().position(|b| b.id == id));
        let commands = at.map(|at| self.open.remove(at));
        if self.lost {
            return;
        }
        let ops = &mut self.queues[queue as usize];
        ops.extend(batch.waits.iter().map(|w| Op::Start { semaphore: w.semaphore, value: w.value }));
        ops.extend(commands.into_iter().flat_map(|b| b.ops));
        ops.push(Op::End { buffer: batch.buffer, signal: batch.signal, fence: batch.fence });
    }

    /// The device is lost: nothing that it holds will run.
    pub fn lose(&mut self) {
        self.lost = true;
        self.queues.iter_mut().for_each(Vec::clear);
    }

    // Steps --------------------------------------------------------------------------------------

    /// Every step that is possible now.
    pub fn steps(&self, out: &mut Vec<Step>) {
        for (queue, ops) in self.queues.iter().enumerate() {
            let mut ahead = Ahead::default();
            for (index, op) in ops.iter().enumerate() {
                if self.possible(op, index, &ahead, &ops[..index]) {
                    out.push(Step { queue: queue as QueueId, index: index as u32 });
                }
                ahead.pass(op, self.family);
            }
        }
    }

    /// A step that is possible now and only enables others.
    pub fn eager_step(&self) -> Option<Step> {
        for (queue, ops) in self.queues.iter().enumerate() {
            let mut ahead = Ahead::default();
            for (index, op) in ops.iter().enumerate() {
                let eager = match op {
                    Op::Start { .. } | Op::Barrier | Op::End { .. } => true,
                    Op::Work { work, begun } => !begun || work.tracked == 0,
                    _ => false,
                };
                if eager && self.possible(op, index, &ahead, &ops[..index]) {
                    return Some(Step { queue: queue as QueueId, index: index as u32 });
                }
                ahead.pass(op, self.family);
            }
        }
        None
    }

    /// Whether some step is possible now.
    pub fn can_step(&self) -> bool {
        self.queues.iter().any(|ops| {
            let mut ahead = Ahead::default();
            ops.iter().enumerate().any(|(index, op)| {
                let possible = self.possible(op, index, &ahead, &ops[..index]);
                ahead.pass(op, self.family);
                possible
            })
        })
    }

    fn possible(&self, op: &Op, index: usize, ahead: &Ahead, before: &[Op]) -> bool {
        match *op {
            Op::Start { semaphore, value } => !ahead.start && self.semaphores[semaphore as usize] >= value,
            Op::Work { begun, .. } => begun || !ahead.holds,
            Op::Barrier | Op::Set { .. } | Op::End { .. } => index == 0,
            Op::Wait { event, set } => !ahead.holds && self.released(event, set),
            Op::Reset { event, .. } => {
                let same = |op: &Op| matches!(op, Op::Set { event: e, .. } | Op::Reset { event: e, .. } if *e == event);
                !ahead.start && !ahead.barrier && !before.iter().any(same)
            }
        }
    }

    /// Whether a wait for this set would pass.
    fn released(&self, event: DeviceEvent, set: u64) -> bool {
        match self.family {
            Family::Vulkan => self.events[event as usize].set.is_some(),
            Family::Cuda => !self.queues.iter().flatten().any(|op| *op == Op::Set { event, set }),
        }
    }

    /// What a step would mean to a judge; `None` if it means nothing.
    pub fn occurrence(&self, step: Step) -> Option<Occurrence> {
        match self.queues[step.queue as usize][step.index as usize] {
            Op::Work { work, begun: false } => Some(Occurrence::WorkBegins { after: work.after }),
            Op::Set { event, set } => Some(Occurrence::EventSet { event, set }),
            Op::Wait { event, set } => Some(Occurrence::WaitPasses { event, set }),
            Op::Reset { event, set } => Some(Occurrence::QueueReset { event, set }),
            Op::End { signal: Some(signal), .. } => Some(Occurrence::Signalled(signal)),
            _ => None,
        }
    }

    /// Takes a step; returns the tracked works that ended.
    pub fn take(&mut self, step: Step) -> u8 {
        let ops = &mut self.queues[step.queue as usize];
        let op = ops[step.index as usize];
        if let Op::Work { work, begun: false } = op {
            ops[step.index as usize] = Op::Work { work, begun: true };
            return 0;
        }
        ops.remove(step.index as usize);
        match op {
            Op::Work { work, .. } => return work.tracked,
            Op::Set { event, set } => self.events[event as usize].set = Some(set),
            Op::Reset { event, .. } => self.events[event as usize].set = None,
            Op::End { signal, fence, .. } => {
                if let Some(signal) = signal {
                    self.semaphores[signal.semaphore as usize] = signal.value;
                }
                if let Some(fence) = fence {
                    self.fences[fence as usize] = true;
                }
            }
            Op::Start { .. } | Op::Barrier | Op::Wait { .. } => {}
        }
        0
    }

    /// Works that have to follow an ended work follow it: forgets the debt.
    pub fn forget(&mut self, work: u8, drop_settled: bool) {
        let clear = |op: &mut Op| {
            if let Op::Work { work: w, .. } = op {
                w.after &= !work;
            }
        };
        let settled = |op: &Op| !drop_settled || !matches!(op, Op::Work { work: Work { tracked: 0, after: 0 }, .. });
        for ops in self.queues.iter_mut().chain(self.open.iter_mut().map(|b| &mut b.ops)) {
            ops.iter_mut().for_each(clear);
            ops.retain(settled);
        }
    }

    // Questions ----------------------------------------------------------------------------------

    /// Whether the device was lost.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Whose semantics.
    pub fn family(&self) -> Family {
        self.family
    }

    /// The value of a semaphore.
    pub fn semaphore(&self, semaphore: Semaphore) -> u64 {
        self.semaphores[semaphore as usize]
    }

    /// Whether a fence is signalled.
    pub fn fence(&self, fence: FenceId) -> bool {
        self.fences[fence as usize]
    }

    /// What each queue holds, in submission order.
    pub fn queues(&self) -> &[Vec<Op>] {
        &self.queues
    }

    /// The queue that the newest set of an event was recorded for.
    pub fn set_queue(&self, event: DeviceEvent) -> Option<QueueId> {
        self.events[event as usize].queue
    }

    /// The set that an event was set by.
    pub fn set_by(&self, event: DeviceEvent) -> Option<u64> {
        self.events[event as usize].set
    }

    /// How many device events exist.
    pub fn event_count(&self) -> usize {
        self.events.iter().filter(|e| e.alive).count()
    }

    /// The number of the newest set recorded for an event.
    pub fn newest_set(&self, event: DeviceEvent) -> u64 {
        self.events[event as usize].newest
    }

    /// Whether no native recording of this number is outstanding (CUDA-like).
    pub fn recording_done(&self, event: DeviceEvent, set: u64) -> bool {
        self.released(event, set)
    }

    /// Waits on an event that have not executed: in open buffers and in queues.
    pub fn waits(&self, event: DeviceEvent) -> impl Iterator<Item = u64> + '_ {
        self.ops().filter_map(move |op| match *op {
            Op::Wait { event: e, set } if e == event => Some(set),
            _ => None,
        })
    }

    /// Whether any operation that has not executed names the event.
    pub fn names_event(&self, event: DeviceEvent) -> bool {
        let names = |op: &Op| match *op {
            Op::Wait { event: e, .. } | Op::Set { event: e, .. } | Op::Reset { event: e, .. } => e == event,
            _ => false,
        };
        self.ops().any(names)
    }

    /// Whether a buffer is part of a batch that has not ended.
    pub fn in_flight(&self, buffer: BufferId) -> bool {
        let holds = |op: &Op| matches!(op, Op::End { buffer: Some(b), .. } if *b == buffer);
        self.queues.iter().flatten().any(holds)
    }

    /// The lease under which a buffer is open.
    pub fn open_lease(&self, buffer: BufferId) -> Option<u64> {
        self.open.iter().find(|b| b.id == buffer).map(|b| b.lease)
    }

    /// Whether a fence will be signalled by a batch that has not ended.
    pub fn fence_in_flight(&self, fence: FenceId) -> bool {
        self.queues.iter().flatten().any(|op| matches!(op, Op::End { fence: Some(f), .. } if *f == fence))
    }

    /// The operations of an open buffer.
    pub fn open_ops(&self, buffer: BufferId) -> &[Op] {
        self.open.iter().find(|b| b.id == buffer).map_or(&[], |b| &b.ops)
    }

    /// Commands in open buffers and queues, semaphore waits among them, ends of batches not.
    pub fn live_count(&self) -> usize {
        self.ops().filter(|op| !matches!(op, Op::End { .. })).count()
    }

    /// Whether some operation that has not executed is like this.
    pub fn any_op(&self, like: impl FnMut(&Op) -> bool) -> bool {
        self.ops().any(like)
    }

    /// Waits that have not executed and whose event is not set.
    pub fn unset_wait_count(&self) -> usize {
        self.ops().filter(|op| matches!(op, Op::Wait { event, .. } if self.set_by(*event).is_none())).count()
    }

    /// The longest open buffer, and how many there are.
    pub fn open_extent(&self) -> (usize, usize) {
        (self.open.iter().map(|b| b.ops.len()).max().unwrap_or(0), self.open.len())
    }

    /// Batches of a queue that have not ended.
    pub fn batch_count(&self, queue: QueueId) -> usize {
        self.queues[queue as usize].iter().filter(|op| matches!(op, Op::End { .. })).count()
    }

    /// Whether every queue is empty.
    pub fn is_idle(&self) -> bool {
        self.queues.iter().all(Vec::is_empty)
    }

    fn ops(&self) -> impl Iterator<Item = &Op> {
        self.queues.iter().flatten().chain(self.open.iter().flat_map(|b| &b.ops))
    }

    // Canonical form -----------------------------------------------------------------------------

    /// Names the values that batches wait for, and those to be signalled where their order does not show
    /// in the order of one queue.
    pub fn name_values(&self, c: &mut Canon) {
        for op in self.ops() {
            if let Op::Start { semaphore, value } = *op
                && value > self.semaphores[semaphore as usize]
            {
                c.name_value(semaphore, value);
            }
        }
        let signal = |op: &Op| if let Op::End { signal, .. } = op { *signal } else { None };
        for (queue, ops) in self.queues.iter().enumerate() {
            for (at, this) in ops.iter().enumerate().filter_map(|(at, op)| Some((at, signal(op)?))) {
                let unordered = |q: usize, n: usize, other: &Signal| {
                    other.semaphore == this.semaphore && (q != queue || n < at && other.value >= this.value)
                };
                let all = self
                    .queues
                    .iter()
                    .enumerate()
                    .flat_map(|(q, ops)| ops.iter().enumerate().map(move |(n, op)| (q, n, op)));
                for other in all.filter_map(|(q, n, op)| signal(op).filter(|other| unordered(q, n, other))) {
                    c.name_value(this.semaphore, self.semaphores[this.semaphore as usize]);
                    c.name_value(this.semaphore, this.value);
                    c.name_value(this.semaphore, other.value);
                }
            }
        }
    }

    /// Writes queues and open buffers. Queues, streams and semaphores have their names already; device
    /// events and buffers are named as they are met, and [`Gpu::write_event`] follows for each event. `write_buffer`
    /// adds what the owner of the buffers knows of each. Open buffers that nobody names are in no order.
    pub fn write(&self, c: &mut Canon, write_buffer: impl Fn(BufferId, &mut Canon)) {
        c.flag(self.lost);
        for name in 0..self.queues.len() {
            let Some(queue) = c.raw(Space::Queue, name) else { continue };
            let ops = &self.queues[queue as usize];
            c.number(ops.len() as u64);
            ops.iter().for_each(|op| self.write_op(op, c));
        }
        for name in 0..self.semaphores.len() {
            if let Some(semaphore) = c.raw(Space::Semaphore, name) {
                c.value(semaphore as u32, self.semaphores[semaphore as usize]);
            }
        }
        for name in 0..c.assigned(Space::Fence).len() {
            c.flag(c.raw(Space::Fence, name).is_some_and(|f| self.fences[f as usize]));
        }
        let write_open = |buffer: &OpenBuffer, c: &mut Canon| {
            c.name(Space::Queue, u64::from(buffer.queue));
            c.number(buffer.ops.len() as u64);
            buffer.ops.iter().for_each(|op| self.write_op(op, c));
        };
        for name in 0..c.assigned(Space::Buffer).len() {
            let Some(id) = c.raw(Space::Buffer, name) else { continue };
            write_buffer(id as BufferId, c);
            let open = self.open.iter().find(|b| u64::from(b.id) == id);
            c.flag(open.is_some());
            open.into_iter().for_each(|buffer| write_open(buffer, c));
        }
        let is_named = |b: &&OpenBuffer| c.assigned(Space::Buffer).contains(&u64::from(b.id));
        let unnamed: Vec<&OpenBuffer> = self.open.iter().filter(|b| !is_named(b)).collect();
        c.number(unnamed.len() as u64);
        let record = |buffer: &OpenBuffer| {
            let start = c.bytes().len();
            write_buffer(buffer.id, c);
            write_open(buffer, c);
            c.cut(start)
        };
        let mut records: Vec<Vec<u8>> = unnamed.into_iter().map(record).collect();
        records.sort_unstable();
        records.iter().for_each(|record| c.append(record));
    }

    /// Writes the state of a device event.
    pub fn write_event(&self, event: DeviceEvent, c: &mut Canon) {
        let Some(state) = self.events.get(event as usize) else { return };
        c.flag(state.alive);
        match (self.family, state.set) {
            (Family::Vulkan, Some(set)) => c.number(1 + self.age(event, set)),
            _ => c.number(0),
        }
        match state.queue {
            Some(queue) => c.name(Space::Queue, u64::from(queue)),
            None => c.number(255),
        }
    }

    /// How many later sets of the event something still names.
    fn age(&self, event: DeviceEvent, set: u64) -> u64 {
        let state = &self.events[event as usize];
        if state.newest == set {
            return 0;
        }
        let named = self.ops().filter_map(|op| match *op {
            Op::Set { event: e, set } | Op::Wait { event: e, set } | Op::Reset { event: e, set } if e == event => {
                Some(set)
            }
            _ => None,
        });
        let mut later: Vec<u64> = named.chain(state.set).chain([state.newest]).filter(|s| *s > set).collect();
        later.sort_unstable();
        later.dedup();
        later.len() as u64
    }

    /// A set: its event and how many sets ago (Vulkan), or a name (CUDA-like, where only sameness matters and the
    /// event may be gone).
    fn write_set(&self, event: DeviceEvent, set: u64, c: &mut Canon) {
        match self.family {
            Family::Vulkan => {
                c.name(Space::DeviceEvent, u64::from(event));
                c.number(self.age(event, set));
            }
            Family::Cuda => c.name(Space::Ordinal, u64::from(event) << 48 | set),
        }
    }

    fn write_op(&self, op: &Op, c: &mut Canon) {
        match *op {
            Op::Start { semaphore, value } => {
                c.number(0);
                c.value(semaphore, value);
            }
            Op::Work { work, begun } => {
                c.number(1 + u64::from(begun));
                c.number(u64::from(work.tracked));
                c.number(u64::from(work.after));
            }
            Op::Barrier => c.number(3),
            Op::Set { event, set } => {
                c.number(4);
                self.write_set(event, set, c);
            }
            Op::Wait { event, set } => {
                c.number(5);
                self.write_set(event, set, c);
            }
            Op::Reset { event, set } => {
                c.number(6);
                self.write_set(event, set, c);
            }
            Op::End { buffer, signal, fence } => {
                c.number(7);
                match buffer {
                    Some(buffer) => c.name(Space::Buffer, u64::from(buffer)),
                    None => c.number(255),
                }
                match signal {
                    Some(Signal { semaphore, value }) => {
                        c.signal(semaphore, value, self.semaphores[semaphore as usize]);
                    }
                    None => c.number(255),
                }
                match fence {
                    Some(fence) => c.name(Space::Fence, u64::from(fence)),
                    None => c.number(255),
                }
            }
        }
    }
}

/// What lies ahead of an operation in its queue.
#[derive(Default)]
struct Ahead {
    start: bool,
    barrier: bool,
    /// Something that later commands wait for.
    holds: bool,
}

impl Ahead {
    fn pass(&mut self, op: &Op, family: Family) {
        self.start |= matches!(op, Op::Start { .. });
        self.barrier |= matches!(op, Op::Barrier);
        self.holds |= matches!(op, Op::Start { .. } | Op::Barrier | Op::Wait { .. });
        // A CUDA stream runs everything in order.
        self.holds |= family == Family::Cuda && !matches!(op, Op::End { .. });
    }
}
