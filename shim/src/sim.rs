//! The driver on the simulated GPU of `fencepost`: for people without a GPU, and for orders that no GPU at hand shows.
//!
//! Its scheduler draws the next step from a seed. Work reads when it begins and writes when it ends, so two works
//! that nothing orders can be seen to overlap. Every step is judged by the rules; [`Simulated::messages`] tells which broke.

use std::collections::HashMap;
use std::time::Duration;

use ash::vk;
use fencepost::{Command, DeviceStep, Family, Ghost, Gpu, Lease, Occurrence, Op, QueueId, Rule, Signal, Submit, Work};

use crate::driver::{Answer, Asked, Batch, BufferId, Dispatch, Driver, Messages, Queue, Raw, Time};
use crate::error::{DriverError, Error};
use crate::sync::{Condvar, Instant, Mutex, MutexGuard, lock, wait_timeout};

/// A simulated device.
pub struct Simulated {
    queues: Vec<Queue>,
    state: Mutex<State>,
    submitted: Condvar,
}

struct State {
    gpu: Gpu,
    /// Nothing is tracked: the rules are asked about objects alone.
    ghost: Ghost,
    random: fastrand::Rng,
    /// The queue of each timeline.
    timelines: Vec<QueueId>,
    /// What stands behind the operations of each queue, one for one.
    queued: Vec<Vec<Payload>>,
    /// The same for open buffers.
    open: HashMap<u32, Vec<Payload>>,
    buffers: Vec<Option<Vec<u8>>>,
    /// When each slot was set, if it was to be timed.
    times: Vec<Timing>,
    /// Steps taken, in nanoseconds.
    clock: u64,
    broken: Messages,
    steps: Vec<DeviceStep>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Timing {
    wanted: bool,
    at: Option<u64>,
}

#[derive(Clone, Debug)]
enum Payload {
    Nothing,
    Fill { buffer: BufferId, offset: u64, size: u64, word: u32 },
    Copy { from: (BufferId, u64), to: (BufferId, u64), size: u64, read: Vec<u8> },
}

impl Simulated {
    /// A device with a queue for everything, one for compute and one that only copies. The same seed and the
    /// same calls by one thread give the same run.
    pub fn new(seed: u64) -> Simulated {
        use vk::QueueFlags as Q;
        let queue = |family, flags| Queue { family, index: 0, flags };
        let all = Q::GRAPHICS | Q::COMPUTE | Q::TRANSFER;
        Simulated::with_queues(seed, vec![queue(0, all), queue(1, Q::COMPUTE | Q::TRANSFER), queue(2, Q::TRANSFER)])
    }

    /// A device with these queues.
    pub fn with_queues(seed: u64, queues: Vec<Queue>) -> Simulated {
        let state = State {
            gpu: Gpu::new(Family::Vulkan, queues.len()),
            ghost: Ghost::new(0, 0),
            random: fastrand::Rng::with_seed(seed),
            timelines: Vec::new(),
            queued: vec![Vec::new(); queues.len()],
            open: HashMap::new(),
            buffers: Vec::new(),
            times: Vec::new(),
            clock: 0,
            broken: Messages::default(),
            steps: Vec::new(),
        };
        Simulated { queues, state: Mutex::new(state), submitted: Condvar::new() }
    }

    /// Which rules were broken, to be kept and read at any time.
    pub fn messages(&self) -> Messages {
        self.state().broken.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn record(&self, lease: Lease, command: Command, payload: Payload) {
        let mut state = self.state();
        state.judge(Occurrence::BufferUsed { buffer: lease.id() });
        state.gpu.record(lease.id(), command);
        state.open.entry(lease.id()).or_default().push(payload);
    }
}

impl State {
    fn judge(&mut self, occurrence: Occurrence) {
        let broken = |rule: &&Rule| rule.broken_by(&self.gpu, &self.ghost, &occurrence);
        if let Some(rule) = Rule::ALL.iter().find(broken) {
            self.broken.say(format!("{}: {occurrence:?}", rule.name()));
        }
    }

    /// Takes one of the possible steps; `false` if there is none.
    fn step(&mut self) -> bool {
        let mut steps = std::mem::take(&mut self.steps);
        steps.clear();
        self.gpu.steps(&mut steps);
        let chosen = self.random.choice(&steps).copied();
        self.steps = steps;
        let Some(step) = chosen else { return false };
        if let Some(occurrence) = self.gpu.occurrence(step) {
            self.judge(occurrence);
        }
        let (queue, index) = (step.queue as usize, step.index as usize);
        let (op, held) = (self.gpu.queues()[queue][index], self.gpu.queues()[queue].len());
        self.gpu.take(step);
        self.clock += 1;
        if self.gpu.queues()[queue].len() == held {
            self.begin(queue, index);
            return true;
        }
        let payload = self.queued[queue].remove(index);
        self.end(payload);
        if let Op::Set { event, .. } = op {
            let timing = &mut self.times[event as usize];
            timing.at = timing.wanted.then_some(self.clock);
        }
        true
    }

    fn begin(&mut self, queue: usize, index: usize) {
        if let Payload::Copy { from, size, read, .. } = &mut self.queued[queue][index] {
            let memory = self.buffers[from.0 as usize].as_deref().unwrap_or_default();
            *read = memory[range(from.1, *size)].to_vec();
        }
    }

    fn end(&mut self, payload: Payload) {
        match payload {
            Payload::Nothing => {}
            Payload::Fill { buffer, offset, size, word } => {
                if let Some(memory) = &mut self.buffers[buffer as usize] {
                    memory[range(offset, size)]
                        .chunks_exact_mut(4)
                        .for_each(|c| c.copy_from_slice(&word.to_le_bytes()));
                }
            }
            Payload::Copy { to, size, read, .. } => {
                if let Some(memory) = &mut self.buffers[to.0 as usize] {
                    memory[range(to.1, size)].copy_from_slice(&read);
                }
            }
        }
    }
}

fn range(offset: u64, size: u64) -> std::ops::Range<usize> {
    offset as usize..(offset + size) as usize
}

// SAFETY: It wraps no driver.
unsafe impl Driver for Simulated {
    fn name(&self) -> &str {
        "the simulated GPU"
    }

    fn queues(&self) -> &[Queue] {
        &self.queues
    }

    fn create_timeline(&self, _timeline: u32, queue: QueueId) -> Answer<()> {
        let mut state = self.state();
        state.gpu.create_semaphore();
        state.timelines.push(queue);
        Ok(())
    }

    fn create_event(&self, _slot: u32) -> Answer<()> {
        let mut state = self.state();
        state.gpu.create_event();
        state.times.push(Timing::default());
        Ok(())
    }

    fn reset_event(&self, _: Asked, slot: u32) -> Answer<()> {
        let mut state = self.state();
        state.judge(Occurrence::HostReset { event: slot });
        state.gpu.reset_event(slot);
        state.times[slot as usize] = Timing::default();
        Ok(())
    }

    fn create_buffer(&self, size: u64) -> Answer<BufferId> {
        let (mut memory, refused) = (Vec::new(), vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        let size = usize::try_from(size).map_err(|_| refused);
        let reserved = size.and_then(|size| memory.try_reserve_exact(size).map(|()| size).map_err(|_| refused));
        memory.resize(reserved.map_err(DriverError::of("vkAllocateMemory"))?, 0);
        let buffers = &mut self.state().buffers;
        buffers.push(Some(memory));
        Ok(buffers.len() as BufferId - 1)
    }

    fn destroy_buffer(&self, _: Asked, buffer: BufferId) {
        self.state().buffers[buffer as usize] = None;
    }

    fn raw_buffer(&self, _buffer: BufferId) -> Option<vk::Buffer> {
        None
    }

    fn write(&self, _: Asked, buffer: BufferId, offset: u64, bytes: &[u8]) {
        if let Some(memory) = &mut self.state().buffers[buffer as usize] {
            memory[range(offset, bytes.len() as u64)].copy_from_slice(bytes);
        }
    }

    fn read(&self, _: Asked, buffer: BufferId, offset: u64, bytes: &mut [u8]) {
        if let Some(memory) = &self.state().buffers[buffer as usize] {
            bytes.copy_from_slice(&memory[range(offset, bytes.len() as u64)]);
        }
    }

    fn begin(&self, _: Asked, lease: Lease, _new: bool) -> Answer<()> {
        let mut state = self.state();
        let queue = state.timelines[lease.timeline as usize];
        // The host's batches hold nothing.
        if (queue as usize) < self.queues.len() {
            state.judge(Occurrence::BufferBegun { buffer: lease.id() });
            state.gpu.begin(lease.id(), queue, lease.generation);
            state.open.entry(lease.id()).or_default().clear();
        }
        Ok(())
    }

    fn set(&self, _: Asked, lease: Lease, slot: u32) {
        self.record(lease, Command::Set(slot), Payload::Nothing);
    }

    fn timestamp(&self, _: Asked, _lease: Lease, slot: u32) {
        self.state().times[slot as usize].wanted = true;
    }

    fn wait(&self, _: Asked, lease: Lease, slot: u32) {
        let mut state = self.state();
        let queue = state.timelines[lease.timeline as usize];
        state.judge(Occurrence::WaitRecorded { event: slot, queue });
        drop(state);
        self.record(lease, Command::Wait(slot), Payload::Nothing);
    }

    fn barrier(&self, _: Asked, lease: Lease) {
        self.record(lease, Command::Barrier, Payload::Nothing);
    }

    /// Memory is never stale here.
    fn acquire(&self, _: Asked, _lease: Lease) {}

    fn fill(&self, _: Asked, lease: Lease, buffer: BufferId, offset: u64, size: u64, word: u32) {
        let work = Command::Work(Work { tracked: 0, after: 0 });
        self.record(lease, work, Payload::Fill { buffer, offset, size, word });
    }

    fn copy(&self, _: Asked, lease: Lease, from: (BufferId, u64), to: (BufferId, u64), size: u64) {
        let work = Command::Work(Work { tracked: 0, after: 0 });
        self.record(lease, work, Payload::Copy { from, to, size, read: Vec::new() });
    }

    fn dispatch(&self, _: Asked, _lease: Lease, _dispatch: &Dispatch) -> Result<(), Error> {
        Err(Error::NoShaders)
    }

    fn raw(&self, _lease: Lease) -> Option<Raw<'_>> {
        None
    }

    fn submit(&self, _: Asked, batch: &Batch) -> Answer<()> {
        let mut guard = self.state();
        let state = &mut *guard;
        let buffer = batch.lease.map(|lease| lease.id());
        buffer.into_iter().for_each(|buffer| state.judge(Occurrence::BufferUsed { buffer }));
        let signal = |&(semaphore, value): &(u32, u64)| Signal { semaphore, value };
        let submit = Submit {
            waits: batch.waits.iter().map(signal).collect(),
            buffer,
            signal: Some(signal(&(batch.timeline, batch.value))),
            fence: None,
        };
        state.gpu.submit(batch.queue, &submit);
        let queued = &mut state.queued[batch.queue as usize];
        queued.extend(batch.waits.iter().map(|_| Payload::Nothing));
        queued.extend(buffer.and_then(|buffer| state.open.get_mut(&buffer)).into_iter().flat_map(std::mem::take));
        queued.push(Payload::Nothing);
        drop(guard);
        self.submitted.notify_all();
        Ok(())
    }

    fn signal(&self, _: Asked, timeline: u32, value: u64) -> Answer<()> {
        let mut state = self.state();
        state.judge(Occurrence::Signalled(Signal { semaphore: timeline, value }));
        state.gpu.signal_semaphore(timeline, value);
        drop(state);
        self.submitted.notify_all();
        Ok(())
    }

    fn counter(&self, timeline: u32) -> Answer<u64> {
        let mut state = self.state();
        // The device may go on between two looks, or not.
        for _ in 0..state.random.u8(0..4) {
            state.step();
        }
        Ok(state.gpu.semaphore(timeline))
    }

    fn block(&self, timeline: u32, value: u64, nanoseconds: u64) -> Answer<bool> {
        let deadline = Instant::now().checked_add(Duration::from_nanos(nanoseconds));
        let mut state = self.state();
        loop {
            if state.gpu.semaphore(timeline) >= value {
                return Ok(true);
            }
            if state.step() {
                continue;
            }
            let left = deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(false);
            }
            state = wait_timeout(&self.submitted, &self.state, state, left);
        }
    }

    fn time(&self, slot: u32) -> Answer<Option<Time>> {
        let at = self.state().times[slot as usize].at;
        Ok(at.map(|ticks| Time { ticks, valid_bits: 64, period: 1.0 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::ASKED;

    /// Else no message would mean nothing.
    #[test]
    fn steps_and_calls_are_judged() {
        let simulated = Simulated::new(1);
        let lease = Lease { timeline: 0, buffer: 0, generation: 0 };
        simulated.create_timeline(0, 0).unwrap();
        simulated.create_event(0).unwrap();
        simulated.begin(ASKED, lease, true).unwrap();
        simulated.wait(ASKED, lease, 0);
        simulated.reset_event(ASKED, 0).unwrap();
        let heard = simulated.messages().heard();
        assert!(heard[0].starts_with("reuse_while_waited"), "{heard:?}");
    }
}
