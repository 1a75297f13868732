//! The simulated GPU with a seeded scheduler, and the CUDA-like backend on it, where events are the driver's own.

use std::time::Duration;

use fencepost::{Command, DeviceEvent, Family, Ghost, Gpu, Occurrence, Op, QueueId, Rule};

use super::{Answer, Backend, WORKS_MAX, Work};

/// The device of `fencepost`, with works that leave marks, judged by the rules at each step.
pub struct Simulated {
    /// Calls that no rule looks at may be made directly.
    pub gpu: Gpu,
    /// Nothing is tracked here: order is judged by the marks.
    ghost: Ghost,
    random: fastrand::Rng,
    /// How many steps it takes at most between two calls; some devices are slow.
    pace: u8,
    ended: u8,
    /// What each work found ended when it began.
    found: [u8; WORKS_MAX],
    complaints: Vec<String>,
}

impl Simulated {
    /// The same seed and the same calls give the same run.
    pub fn new(family: Family, queue_count: usize, seed: u64) -> Simulated {
        let mut random = fastrand::Rng::with_seed(seed);
        Simulated {
            gpu: Gpu::new(family, queue_count),
            ghost: Ghost::new(0, 0),
            pace: random.u8(0..4),
            random,
            ended: 0,
            found: [0; WORKS_MAX],
            complaints: Vec::new(),
        }
    }

    /// Has every rule look at something that is about to happen.
    pub fn judge(&mut self, occurrence: Occurrence) {
        let broken = |rule: &Rule| rule.broken_by(&self.gpu, &self.ghost, &occurrence);
        self.complaints.extend(Rule::ALL.into_iter().find(broken).map(|r| format!("{}: {occurrence:?}", r.name())));
    }

    /// Takes one of the possible steps; `false` if there is none.
    fn step(&mut self) -> bool {
        let mut steps = Vec::new();
        self.gpu.steps(&mut steps);
        let Some(step) = self.random.choice(&steps).copied() else { return false };
        if let Some(occurrence) = self.gpu.occurrence(step) {
            self.judge(occurrence);
        }
        if let Op::Work { work, begun: false } = self.gpu.queues()[step.queue as usize][step.index as usize] {
            self.found[work.tracked.trailing_zeros() as usize] = self.ended;
        }
        self.ended |= self.gpu.take(step);
        true
    }

    /// The device goes on between two calls of the host, or not.
    pub fn drift(&mut self) {
        for _ in 0..self.random.u8(0..=self.pace) {
            self.step();
        }
    }

    /// The host blocks: `false` if the time is up or nothing can happen any more.
    pub fn until(&mut self, timeout: Duration, over: impl Fn(&Gpu) -> bool) -> bool {
        self.drift();
        while !over(&self.gpu) {
            if timeout.is_zero() || !self.step() {
                return false;
            }
        }
        true
    }

    /// A work of that number.
    pub fn work(number: usize) -> Command {
        Command::Work(fencepost::Work { tracked: 1 << number, after: 0 })
    }

    /// The works that have ended.
    pub fn ended(&mut self) -> Vec<usize> {
        self.drift();
        bits(self.ended)
    }

    /// Those that a work found ended.
    pub fn found(&self, work: usize) -> Vec<usize> {
        bits(self.found[work])
    }

    /// The rules that were broken, by name.
    pub fn complaints(&self) -> Vec<String> {
        self.complaints.clone()
    }
}

fn bits(set: u8) -> Vec<usize> {
    (0..WORKS_MAX).filter(|bit| set & 1 << bit != 0).collect()
}

/// A CUDA-like backend: each call is one call of the driver.
pub struct Native {
    device: Simulated,
    streams: QueueId,
}

impl Native {
    /// Room for this many streams is enough for every check.
    const STREAMS_MAX: usize = 4;

    /// A device of its own.
    pub fn new(seed: u64) -> Native {
        Native { device: Simulated::new(Family::Cuda, Native::STREAMS_MAX, seed), streams: 0 }
    }

    fn issue(&mut self, stream: QueueId, command: Command) -> Answer<()> {
        self.device.gpu.issue(stream, command);
        self.device.drift();
        Ok(())
    }
}

impl Backend for Native {
    type Stream = QueueId;
    type Event = DeviceEvent;

    /// A stream is a queue.
    fn stream(&mut self, _queue: u32) -> Answer<QueueId> {
        self.streams += 1;
        Ok(self.streams - 1)
    }

    fn event(&mut self) -> Answer<DeviceEvent> {
        Ok(self.device.gpu.create_event())
    }

    fn work(&mut self, stream: &QueueId, work: Work) -> Answer<()> {
        self.issue(*stream, Simulated::work(work.number))
    }

    fn record(&mut self, event: &DeviceEvent, stream: &QueueId) -> Answer<()> {
        self.issue(*stream, Command::Set(*event))
    }

    fn wait(&mut self, stream: &QueueId, event: &DeviceEvent) -> Answer<()> {
        self.issue(*stream, Command::Wait(*event))
    }

    fn flush(&mut self, _stream: &QueueId) -> Answer<()> {
        Ok(())
    }

    fn synchronize(&mut self, event: &DeviceEvent, timeout: Duration) -> Answer<bool> {
        let set = self.device.gpu.newest_set(*event);
        Ok(self.device.until(timeout, |gpu| gpu.recording_done(*event, set)))
    }

    fn synchronize_stream(&mut self, stream: &QueueId, timeout: Duration) -> Answer<bool> {
        Ok(self.device.until(timeout, |gpu| gpu.queues()[*stream as usize].is_empty()))
    }

    fn query(&mut self, event: &DeviceEvent) -> Answer<bool> {
        self.synchronize(event, Duration::ZERO)
    }

    fn destroy_event(&mut self, event: DeviceEvent) -> Answer<()> {
        self.device.gpu.destroy_event(event);
        Ok(())
    }

    fn destroy_stream(&mut self, _stream: QueueId) -> Answer<()> {
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
