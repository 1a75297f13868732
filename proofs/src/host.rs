//! The host's side of a step: driver calls, each judged before it takes effect.

use std::fmt;

use fencepost::{
    BufferId, Command, DeviceEvent, FenceId, Ghost, Gpu, Machine, Occurrence, QueueId, Reply, Rule, Signal, Submit,
};

use crate::unbounded::refinement::{Change, Watch};

/// What a blocked host thread waits for in the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// `vkWaitSemaphores`.
    Semaphore(Signal),
    /// `vkWaitForFences`.
    Fence(FenceId),
    /// `cudaEventSynchronize`, bound to the recording current at the call; or the host polling a `VkEvent`.
    Native { event: DeviceEvent, set: u64 },
}

impl Until {
    /// Whether the driver lets the thread go.
    pub fn is_over(self, gpu: &Gpu) -> bool {
        match self {
            Until::Semaphore(signal) => gpu.semaphore(signal.semaphore) >= signal.value,
            Until::Fence(fence) => gpu.fence(fence),
            Until::Native { event, set } => gpu.recording_done(event, set),
        }
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Until::Semaphore(s) => write!(f, "T{}>={}", s.semaphore, s.value),
            Until::Fence(fence) => write!(f, "F{fence}"),
            Until::Native { event, set } => write!(f, "V{event} is set (set {set})"),
        }
    }
}

/// What a host thread waits for: in the client's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    Event(usize),
    Stream(usize),
}

/// The token of a thread that nobody will wake.
pub const NOBODY: u64 = u64::MAX;

/// A host thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thread {
    Idle,
    Blocked {
        target: Target,
        until: Until,
        /// What the protocol knows the thread by.
        token: u64,
        /// Tracked works that the caller may take for done on return.
        covers: u8,
    },
    /// Woken by another thread's report, and not back from the driver: it still reports what it saw there.
    Late {
        target: Target,
        until: Until,
    },
    /// Between a check that said "not done" and the registration: only where a mutant splits them.
    Checked {
        target: Target,
        until: Until,
        covers: u8,
    },
}

/// One line of a story: where it happened, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub lane: Lane,
    pub text: String,
}

/// A column of a story.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    Host(usize),
    /// What goes into the stream's open batch.
    Stream(usize),
    Queue(QueueId),
}

/// The driver, as one step of a protocol sees it.
pub struct Host<'a> {
    pub gpu: &'a mut Gpu,
    pub ghost: &'a mut Ghost,
    pub threads: &'a mut Vec<Thread>,
    pub broken: &'a mut Option<Rule>,
    /// Rules whose antecedent held, as bits in the order of [`Rule::ALL`].
    pub seen: &'a mut u16,
    /// Which refusable call of this step the driver refuses, counted from 1.
    pub refuse_at: u8,
    pub refusable: u8,
    /// Which of the free buffers that are not as good as new the pool hands out, counted from 1; 0 for another.
    pub lease: u8,
    /// The stream that the call is about.
    pub stream: usize,
    /// The thread that is back from the driver in this step.
    pub returning: Option<usize>,
    pub story: Option<&'a mut Vec<Line>>,
    /// Compares each step with the relation of the unbounded proof.
    pub watch: Option<&'a mut Watch>,
}

impl Host<'_> {
    /// Has every rule look at it; the first one broken is remembered.
    pub fn judge(&mut self, o: Occurrence) {
        for (bit, rule) in Rule::ALL.into_iter().enumerate() {
            if rule.concerns(self.gpu, self.ghost, &o) {
                *self.seen |= 1 << bit;
                if self.broken.is_none() && rule.broken_by(self.gpu, self.ghost, &o) {
                    *self.broken = Some(rule);
                }
            }
        }
    }

    /// Something happened; without a machine, that is as it was.
    pub fn observe(&mut self, machine: Option<&Machine>, change: Change) {
        if let Some(watch) = &mut self.watch {
            watch.observe(machine, self.gpu, change);
        }
    }

    /// Adds a line to the story, if one is told.
    pub fn note(&mut self, lane: Lane, text: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(Line { lane, text: text() });
        }
    }

    /// A native command goes straight to its queue.
    pub fn issue(&mut self, queue: QueueId, command: Command) {
        if let Command::Wait(event) = command {
            self.judge(Occurrence::WaitRecorded { event, queue });
        }
        self.gpu.issue(queue, command);
        self.note(Lane::Queue(queue), || command_text(command));
    }

    /// Whether the driver refuses this call.
    pub fn call(&mut self, what: &str) -> Reply {
        if self.gpu.is_lost() {
            return Reply::Lost;
        }
        self.refusable += 1;
        if self.refusable != self.refuse_at {
            return Reply::Done;
        }
        self.ghost.refused |= self.ghost.live != 0;
        self.note(Lane::Host(0), || format!("{what} is refused"));
        Reply::Refused
    }

    pub fn begin(&mut self, buffer: BufferId, queue: QueueId, lease: u64) -> Reply {
        let reply = self.call("vkBeginCommandBuffer");
        if reply == Reply::Done {
            self.judge(Occurrence::BufferBegun { buffer });
            self.gpu.begin(buffer, queue, lease);
        }
        reply
    }

    pub fn record(&mut self, buffer: BufferId, queue: QueueId, command: Command) {
        if let Command::Wait(event) = command {
            self.judge(Occurrence::WaitRecorded { event, queue });
        }
        self.judge(Occurrence::BufferUsed { buffer });
        if self.gpu.open_lease(buffer).is_some() {
            self.gpu.record(buffer, command);
        }
        self.note(Lane::Stream(self.stream), || format!("b{buffer}: {}", command_text(command)));
    }

    pub fn submit(&mut self, queue: QueueId, batch: &Submit) -> Reply {
        let reply = self.call("vkQueueSubmit");
        if reply == Reply::Done {
            batch.buffer.into_iter().for_each(|buffer| self.judge(Occurrence::BufferUsed { buffer }));
            self.note(Lane::Queue(queue), || batch_text(batch));
            self.gpu.submit(queue, batch);
        }
        reply
    }

    pub fn create_event(&mut self) -> Result<DeviceEvent, Reply> {
        match self.call("vkCreateEvent") {
            Reply::Done => Ok(self.gpu.create_event()),
            reply => Err(reply),
        }
    }

    pub fn reset_event(&mut self, event: DeviceEvent) -> Reply {
        let reply = self.call("vkResetEvent");
        if reply == Reply::Done {
            self.judge(Occurrence::HostReset { event });
            self.gpu.reset_event(event);
            self.note(Lane::Host(0), || format!("vkResetEvent(V{event})"));
        }
        reply
    }

    pub fn destroy_event(&mut self, event: DeviceEvent) {
        self.judge(Occurrence::EventDestroyed { event });
        self.gpu.destroy_event(event);
        self.note(Lane::Host(0), || format!("destroys V{event}"));
    }

    pub fn reset_fence(&mut self, fence: FenceId) {
        self.judge(Occurrence::FenceReset { fence });
        self.gpu.reset_fence(fence);
        self.note(Lane::Host(0), || format!("vkResetFences(F{fence})"));
    }

    /// `vkResetCommandBuffer` by the holder of a lease.
    pub fn reset_buffer(&mut self, buffer: BufferId, lease: u64) {
        self.judge(Occurrence::BufferReset { buffer, lease });
        self.gpu.discard(buffer);
        self.note(Lane::Host(0), || format!("resets buffer b{buffer}"));
    }

    /// Wakes the thread that the protocol knows by a token.
    pub fn wake(&mut self, token: u64, lost: bool) {
        let at = self.threads.iter().position(|t| matches!(t, Thread::Blocked { token: k, .. } if *k == token));
        self.judge(Occurrence::Woken { waiting: at.is_some(), lost });
        if let Some(at) = at {
            if let Thread::Blocked { target, until, covers, .. } = self.threads[at] {
                if !lost {
                    self.judge(Occurrence::Reported { covers });
                }
                let back = self.returning == Some(at);
                self.threads[at] = if back { Thread::Idle } else { Thread::Late { target, until } };
            }
            self.note(Lane::Host(at), || if lost { "returns: device lost" } else { "returns: done" }.into());
        }
    }
}

/// A command in words.
pub fn command_text(command: Command) -> String {
    match command {
        Command::Work(w) if w.tracked != 0 => "work W".into(),
        Command::Work(w) if w.after != 0 => "work D, which must follow W".into(),
        Command::Work(_) => "work".into(),
        Command::Barrier => "barrier".into(),
        Command::Set(e) => format!("set V{e}"),
        Command::Wait(e) => format!("wait V{e}"),
        Command::Reset(e) => format!("reset V{e}"),
    }
}

fn batch_text(batch: &Submit) -> String {
    let mut text = String::from("submit");
    for wait in &batch.waits {
        text += &format!(" [waits T{}>={}]", wait.semaphore, wait.value);
    }
    if let Some(buffer) = batch.buffer {
        text += &format!(" b{buffer}");
    }
    if let Some(signal) = batch.signal {
        text += &format!(" [signals T{}={}]", signal.semaphore, signal.value);
    }
    if let Some(fence) = batch.fence {
        text += &format!(" [fence F{fence}]");
    }
    text
}
