//! The machine: streams, events, slots, batches, points.
//!
//! It is sans-IO. A call either returns its answer, [`Step::Done`], or the one effect that has to be
//! carried out before the call can be answered, [`Step::First`]: carry it out, hand the driver's
//! reply to [`Machine::reply`], make the same call again. Between two calls nothing is left to
//! drain. A call that returns an error was not accepted and changed nothing itself; what it had done first,
//! such as submitting a batch, stays done.
//!
//! ```
//! use fencepost::{Machine, Policy, Reply, Step};
//! # fn main() -> Result<(), fencepost::Error> {
//! let mut machine = Machine::new(Policy { events: true });
//! let stream = loop {
//!     match machine.create_stream(0)? {
//!         Step::First(effect) => machine.reply(effect, Reply::Done)?, // here the driver would be called
//!         Step::Done(stream) => break stream,
//!     }
//! };
//! let event = machine.create_event();
//! assert_eq!(machine.query(event)?, fencepost::Query::Done); // never recorded
//! # let _ = stream; Ok(()) }
//! ```
//!
//! The caller holds one lock across a call, its effects and their replies, so the value of a
//! batch is taken under the lock that submits it. It never holds that lock while the host
//! blocks: [`Machine::synchronize`] registers a waiter and returns the point to block on.

mod answer;
mod facts;
mod form;

pub use self::answer::{Effect, Error, Lease, Point, Query, Recorded, Reply, Step, Synchronize, TimedOut, Waited};
pub use self::facts::Fact;
use crate::gpu::QueueId;
use crate::guard::{Guard, Guards};
use crate::handle::{EventId, SlotId, StreamId, Table, WaiterId, clone_in_place};
use crate::slot::{Lifecycle, SlotInput, Transition};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// How same-queue waits are expressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Record a `VkEvent` set with each recording, so that a wait on the same queue leaves work
    /// issued between the two free to run. Without it every same-queue wait is a pipeline barrier:
    /// cheaper (4.5 instead of 17 µs on one H200), and it orders more than was asked for.
    pub events: bool,
}

/// The end of an intrusive list.
const NONE: u32 = u32::MAX;

/// The state machine. See the crate's documentation for its place, and [`Lifecycle`] for slots.
#[derive(Debug)]
pub struct Machine {
    policy: Policy,
    lost: bool,
    /// The driver refused something for the call in progress, which takes its fallback.
    refused: bool,
    queues: Vec<Queue>,
    streams: Table<Stream>,
    /// What closed streams left for streams to come.
    idle: Vec<Lane>,
    lanes: u32,
    events: Table<Event>,
    slots: Vec<Slot>,
    /// Reusable slots; the last is taken first.
    free: Vec<u32>,
    waiters: Table<Waiter>,
    guards: Guards,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    policy: Policy,
    /// Commands issued: whether anything stands between a set and a wait.
    issued: u64,
}

/// A timeline, with the buffers whose execution it reports.
#[derive(Debug)]
struct Lane {
    queue: QueueId,
    timeline: u32,
    /// The newest value promised.
    submitted: u64,
    /// Leases each buffer has had.
    leases: Vec<u64>,
    free_buffers: Vec<u32>,
}

#[derive(Debug)]
struct Stream {
    lane: Lane,
    companion: Option<StreamId>,
    /// The companion's newest value that a submitted batch of this stream waits for.
    follows: u64,
    /// Destroyed by the caller; stays until its points have passed.
    closed: bool,
    /// The highest value known to have passed.
    reached: u64,
    /// The value of the newest batch taken off `in_flight`: equals `reached` between calls.
    retired: u64,
    /// Batches submitted and not retired; the first signals `retired + 1`.
    in_flight: VecDeque<Batch>,
    open: Option<Open>,
    /// Slots that the open batch names, one entry for each set and wait.
    open_slots: Vec<u32>,
    /// Points that the open batch waits for before it starts; one for each stream.
    open_points: Vec<Point>,
    /// The first waiter parked on the open batch's point.
    open_waiters: u32,
}

/// A batch that still takes commands.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// `None` while the batch holds only waits on points.
    lease: Option<Lease>,
    /// The buffer was ended for a submit that the driver refused: submit again before anything is added.
    ended: bool,
}

#[derive(Clone, Copy, Debug)]
struct Batch {
    buffer: Option<u32>,
    /// The first slot, and the first waiter, parked on this batch's point.
    slots: u32,
    waiters: u32,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    recording: Option<Recording>,
}

#[derive(Clone, Copy, Debug)]
struct Recording {
    point: Point,
    queue: QueueId,
    slot: Option<u32>,
    /// Commands issued on the queue up to the recording.
    mark: u64,
}

#[derive(Debug)]
struct Slot {
    state: Lifecycle,
    generation: u64,
    /// Unset on the device, as far as the machine asked for it.
    clean: bool,
    /// Sets and waits in open batches.
    open_count: u32,
    /// The point of the batch that sets it, then one for each stream that waits.
    frontier: Vec<Point>,
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    point: Point,
    next: u32,
}

clone_in_place!(Machine { policy, lost, refused, queues, streams, idle, lanes, events, slots, free, waiters, guards });
clone_in_place!(Lane { queue, timeline, submitted, leases, free_buffers });
clone_in_place!(Stream {
    lane,
    companion,
    follows,
    closed,
    reached,
    retired,
    in_flight,
    open,
    open_slots,
    open_points,
    open_waiters
});
clone_in_place!(Slot { state, generation, clean, open_count, frontier, next });

type Answer<T> = Result<Step<T>, Error>;

/// `None` when the order holds, else what has to come first.
type Ordered = Option<Effect>;

impl Machine {
    /// A machine without streams or events.
    pub const fn new(policy: Policy) -> Self {
        Machine {
            policy,
            lost: false,
            refused: false,
            queues: Vec::new(),
            streams: Table::new(),
            idle: Vec::new(),
            lanes: 0,
            events: Table::new(),
            slots: Vec::new(),
            free: Vec::new(),
            waiters: Table::new(),
            guards: Guards::ALL,
        }
    }

    /// A machine that lacks some of its guards, to show what they are for.
    #[cfg(feature = "unguarded")]
    pub fn without(policy: Policy, guards: &[Guard]) -> Self {
        Machine { guards: Guards::without(guards), ..Machine::new(policy) }
    }

    const fn keeps(&self, guard: Guard) -> bool {
        self.guards.keep(guard)
    }

    // Streams ------------------------------------------------------------------------------------

    /// Recordings on this queue follow another policy from now on. A queue that only copies has no device
    /// events.
    ///
    /// Vulkan: `vkCmdSetEvent2` needs a queue with graphics or compute (VUID-vkCmdSetEvent2-commandBuffer-cmdpool).
    pub fn set_policy(&mut self, queue: QueueId, policy: Policy) {
        self.queue_mut(queue).policy = policy;
    }

    /// A new stream on a queue. First: [`Effect::CreateTimeline`], unless a closed stream of that
    /// queue left its own.
    ///
    /// Vulkan: `vkCreateSemaphore` (timeline). CUDA: `cudaStreamCreate`.
    pub fn create_stream(&mut self, queue: QueueId) -> Answer<StreamId> {
        self.alive()?;
        let Some(at) = self.idle.iter().rposition(|lane| lane.queue == queue) else {
            let refused = core::mem::take(&mut self.refused);
            let effect = Effect::CreateTimeline { timeline: self.lanes, queue };
            return if refused { Err(Error::Refused(effect)) } else { Ok(Step::First(effect)) };
        };
        let lane = self.idle.swap_remove(at);
        self.queue_mut(queue);
        Ok(Step::Done(self.streams.insert(Stream {
            companion: None,
            follows: 0,
            closed: false,
            reached: lane.submitted,
            retired: lane.submitted,
            in_flight: VecDeque::new(),
            open: None,
            open_slots: Vec::new(),
            open_points: Vec::new(),
            open_waiters: NONE,
            lane,
        })))
    }

    /// Makes `companion` carry the transfers of `stream`: every later wait and recording of the
    /// stream covers both. It is destroyed with the stream, and not alone.
    ///
    /// ggml: `async_use_transfer_queue`, llama.cpp pull request 25229.
    pub fn set_companion(&mut self, stream: StreamId, companion: StreamId) -> Result<(), Error> {
        let alone = |id| Ok(self.stream(id)?.companion.is_none() && !self.is_companion(id));
        if stream == companion || !alone(companion)? {
            return Err(Error::BadCompanion(companion));
        }
        if !alone(stream)? {
            return Err(Error::BadCompanion(stream));
        }
        self.stream_mut(stream)?.companion = Some(companion);
        Ok(())
    }

    /// The position of the stream's timeline (and pool of buffers); used again after the stream is gone.
    pub fn timeline(&self, stream: StreamId) -> Option<u32> {
        Some(self.streams.get(stream.index, stream.generation)?.lane.timeline)
    }

    /// The queue that the stream was placed on.
    pub fn queue(&self, stream: StreamId) -> Option<QueueId> {
        Some(self.streams.get(stream.index, stream.generation)?.lane.queue)
    }

    /// The points that the stream's open batch waits for before it starts, as (timeline, value).
    /// Those that have passed meanwhile are left out.
    pub fn open_waits(&self, stream: StreamId) -> impl Iterator<Item = (u32, u64)> + '_ {
        let points = self.streams.get(stream.index, stream.generation).map_or(&[][..], |s| &s.open_points);
        points.iter().filter(|p| !self.passed(**p)).filter_map(|p| Some((self.timeline(p.stream)?, p.value)))
    }

    /// Commands are about to be added to the stream's buffer. First: submits a batch that was
    /// refused before, begins a buffer.
    ///
    /// Vulkan: `vkCmd*`. CUDA: a kernel launch.
    pub fn work(&mut self, stream: StreamId) -> Answer<Lease> {
        self.alive()?;
        self.stream(stream)?;
        match self.lease(stream) {
            Err(_) if core::mem::take(&mut self.refused) => Err(Error::Refused(self.begin(stream))),
            Err(first) => Ok(Step::First(first)),
            Ok(lease) => {
                self.issue(stream);
                Ok(Step::Done(lease))
            }
        }
    }

    /// Hands the stream's open batch to its queue. First: [`Effect::Submit`].
    ///
    /// Vulkan: `vkQueueSubmit2`. CUDA: none, work is submitted as it is issued.
    pub fn flush(&mut self, stream: StreamId) -> Answer<()> {
        self.alive()?;
        let open = self.stream(stream)?.open;
        match open {
            None => Ok(Step::Done(())),
            Some(open) if open.lease.is_none() && !self.keeps(Guard::WaitsAloneAreSubmitted) => {
                let s = self.stream_mut(stream)?;
                s.open = None;
                s.open_points.clear();
                Ok(Step::Done(()))
            }
            Some(_) => Ok(Step::First(self.submit(stream))),
        }
    }

    /// The stream is no longer used, and neither is its companion. What it holds is submitted; its points keep their meaning.
    /// First: [`Effect::Submit`]. After loss it succeeds without.
    ///
    /// Vulkan: `vkDestroySemaphore`, once nothing uses it. CUDA: `cudaStreamDestroy`.
    pub fn destroy_stream(&mut self, stream: StreamId) -> Answer<()> {
        let companion = self.stream(stream)?.companion;
        if self.is_companion(stream) {
            return Err(Error::BadCompanion(stream));
        }
        let drains = !self.lost && self.keeps(Guard::ClosedStreamDrains);
        for id in [Some(stream), companion].into_iter().flatten() {
            if self.stream(id)?.open.is_some() && drains {
                return Ok(Step::First(self.submit(id)));
            }
        }
        for id in [Some(stream), companion].into_iter().flatten() {
            let s = self.stream_mut(id)?;
            s.companion = None;
            s.closed = true;
            if s.in_flight.is_empty() || !drains {
                self.retire_stream(id);
            }
        }
        Ok(Step::Done(()))
    }

    fn is_companion(&self, stream: StreamId) -> bool {
        self.streams.iter().any(|(_, _, s)| s.companion == Some(stream))
    }

    /// A closed stream has drained: its lane serves the next stream.
    fn retire_stream(&mut self, stream: StreamId) {
        if let Some(s) = self.streams.remove(stream.index, stream.generation) {
            self.idle.push(s.lane);
        }
    }

    // Events -------------------------------------------------------------------------------------

    /// A new event, never recorded: whoever waits for it goes on at once.
    ///
    /// Vulkan: none. CUDA: `cudaEventCreate`. ggml: `event_new`.
    pub fn create_event(&mut self) -> EventId {
        self.events.insert(Event { recording: None })
    }

    /// Names everything issued on the stream so far, its companion included, as the event's
    /// current generation; the former one is superseded. First: submits the companion's batch,
    /// submits the stream's own batch if a wait for the companion would hold it back or if it was refused before,
    /// begins a buffer, makes or resets a device event. If the last three are refused the generation has
    /// no device event and the recording still succeeds.
    ///
    /// Vulkan: `vkCmdSetEvent2`. CUDA: `cudaEventRecord`. ggml: `event_record`.
    pub fn record(&mut self, event: EventId, stream: StreamId) -> Answer<Recorded> {
        self.alive()?;
        self.event(event)?;
        if self.keeps(Guard::RecordCoversCompanion)
            && let Some(first) = self.join_companion(stream)?
        {
            return Ok(Step::First(first));
        }
        let slot = match self.slot_for_record(stream) {
            Ok(slot) => slot,
            Err(first) => return Ok(Step::First(first)),
        };
        self.refused = false;
        let (queue, point) = (self.stream(stream)?.lane.queue, self.newest(stream)?);
        let set = slot.map(|(lease, index)| {
            self.free.pop();
            let slot = &mut self.slots[index as usize];
            slot.on(SlotInput::Record);
            slot.clean = false;
            slot.generation += 1;
            slot.open_count = 1;
            slot.frontier.clear();
            slot.frontier.push(point);
            (lease, SlotId { index, generation: slot.generation })
        });
        if let Some((_, slot)) = set {
            self.stream_mut(stream)?.open_slots.push(slot.index);
            self.issue(stream);
        }
        let mark = self.queues[queue as usize].issued;
        let recording = Recording { point, queue, slot: set.map(|(_, slot)| slot.index), mark };
        if let Some(former) = self.event_mut(event)?.recording.replace(recording) {
            self.supersede(former);
        }
        Ok(Step::Done(Recorded { set }))
    }

    /// Work issued on the stream from now on starts after the work before the event's current
    /// recording has ended. Never recorded: nothing. First: submits the recording's batch if it is
    /// another stream's and open, submits the stream's own batch, or its companion's, if the wait would hold back
    /// commands that came before it, begins a buffer.
    ///
    /// Vulkan: `vkCmdWaitEvents2`, `vkCmdPipelineBarrier2`, or a semaphore wait, whichever is enough.
    /// CUDA: `cudaStreamWaitEvent`. ggml: `event_wait`. CubeCL: `wait_async`.
    pub fn wait(&mut self, stream: StreamId, event: EventId) -> Answer<Waited> {
        self.alive()?;
        let s = self.stream(stream)?;
        let (queue, companion) = (s.lane.queue, s.companion);
        let recording = match self.event(event)?.recording {
            Some(recording) => recording,
            None if self.keeps(Guard::UnrecordedIsNoOp) => return Ok(Step::Done(Waited::Nothing)),
            None => return Err(Error::UnknownEvent(event)),
        };
        let point = recording.point;
        if self.passed(point) {
            return Ok(Step::Done(Waited::Nothing));
        }
        if let Some(companion) = companion
            && self.keeps(Guard::WaitCoversCompanion)
            && let Some(first) = self.order_after(companion, point)
        {
            return Ok(Step::First(first));
        }
        if queue != recording.queue && (recording.slot.is_none() || self.keeps(Guard::SlotsStayOnQueue)) {
            return Ok(self.order_after(stream, point).map_or(Step::Done(Waited::Nothing), Step::First));
        }
        if point.stream != stream && self.is_open(point) && self.keeps(Guard::FlushBeforeWait) {
            return Ok(Step::First(self.submit(point.stream)));
        }
        let slot = recording.slot.filter(|_| recording.mark != self.queues[queue as usize].issued);
        if let Some(slot) = slot
            && self.slots[slot as usize].frontier[1..].iter().any(|p| p.stream == stream)
        {
            return Ok(Step::Done(Waited::Nothing));
        }
        let lease = match self.lease(stream) {
            Ok(lease) => lease,
            // A semaphore wait needs no command buffer.
            Err(_) if core::mem::take(&mut self.refused) => {
                let first = if self.keeps(Guard::FallbackKeepsOrder) { self.order_after(stream, point) } else { None };
                return Ok(first.map_or(Step::Done(Waited::Nothing), Step::First));
            }
            Err(first) => return Ok(Step::First(first)),
        };
        self.issue(stream);
        let Some(index) = slot else {
            return Ok(Step::Done(Waited::Barrier(lease)));
        };
        let keeps = self.keeps(Guard::WaitsJoinFrontier);
        let s = self.stream_mut(stream)?;
        s.open_slots.push(index);
        let point = Point { stream, value: s.lane.submitted + 1 };
        let slot = &mut self.slots[index as usize];
        slot.on(SlotInput::Wait);
        slot.open_count += 1;
        if keeps || slot.frontier.len() < 2 {
            slot.frontier.push(point);
        } else {
            slot.frontier[1] = point;
        }
        Ok(Step::Done(Waited::Event(lease, SlotId { index, generation: slot.generation })))
    }

    /// The first half of a host wait. First: [`Effect::Submit`], if the recording's batch is open.
    ///
    /// Vulkan: `vkWaitSemaphores`. CUDA: `cudaEventSynchronize`. CubeCL: `wait_sync`.
    pub fn synchronize(&mut self, event: EventId) -> Answer<Synchronize> {
        match self.event(event)?.recording {
            Some(recording) => self.block_on(recording.point),
            None if self.keeps(Guard::UnrecordedIsNoOp) => self.alive().map(|()| Step::Done(Synchronize::Done)),
            None => Err(Error::UnknownEvent(event)),
        }
    }

    /// The first half of a host wait for everything issued on the stream so far, its companion
    /// included. Nothing is submitted for an idle stream.
    ///
    /// Vulkan: `vkWaitSemaphores`. CUDA: `cudaStreamSynchronize`.
    pub fn synchronize_stream(&mut self, stream: StreamId) -> Answer<Synchronize> {
        self.alive()?;
        if let Some(first) = self.join_companion(stream)? {
            return Ok(Step::First(first));
        }
        self.block_on(self.newest(stream)?)
    }

    fn block_on(&mut self, point: Point) -> Answer<Synchronize> {
        self.alive()?;
        if self.is_open(point) {
            return Ok(Step::First(self.submit(point.stream)));
        }
        Ok(Step::Done(match self.watch(point)? {
            Some(waiter) => Synchronize::Block { waiter, point },
            None => Synchronize::Done,
        }))
    }

    /// Registers a waiter for a point of a batch that is open or in flight; `None` if it has
    /// passed. The check and the registration are one step, so no wake is lost between them.
    ///
    /// Vulkan: none. CUDA: `cudaLaunchHostFunc`. CubeCL: an entry of the drop queue.
    pub fn watch(&mut self, point: Point) -> Result<Option<WaiterId>, Error> {
        self.alive()?;
        if self.keeps(Guard::RegisterChecks) && self.passed(point) {
            return Ok(None);
        }
        let stream = self.streams.get(point.stream.index, point.stream.generation);
        if stream.is_some_and(|s| point.value > s.lane.submitted + u64::from(s.open.is_some())) {
            return Err(Error::NeverPromised(point));
        }
        let next = self.waiters_of(point).map_or(NONE, |head| *head);
        let waiter: WaiterId = self.waiters.insert(Waiter { point, next });
        self.waiters_of(point).into_iter().for_each(|head| *head = waiter.index);
        Ok(Some(waiter))
    }

    /// The point that covers everything issued on the stream so far. A companion has its own.
    pub fn newest(&self, stream: StreamId) -> Result<Point, Error> {
        let s = self.stream(stream)?;
        Ok(Point { stream, value: s.lane.submitted + u64::from(s.open.is_some()) })
    }

    /// What is known about the event's current generation. Pure: blocks on nothing, submits nothing.
    ///
    /// Vulkan: `vkGetSemaphoreCounterValue`. CUDA: `cudaEventQuery`.
    pub fn query(&self, event: EventId) -> Result<Query, Error> {
        self.alive()?;
        Ok(match self.event(event)?.recording {
            None => Query::Done,
            Some(r) if self.passed(r.point) => Query::Done,
            Some(r) if self.is_open(r.point) => Query::Open(r.point),
            Some(r) => Query::Pending(r.point),
        })
    }

    /// The slot of the event's current generation, if it has one. As long as the generation is current nobody
    /// resets the slot, so what the device wrote beside it may be read.
    ///
    /// Vulkan: the query of a `vkCmdWriteTimestamp2`. CUDA: what `cudaEventElapsedTime` reads.
    pub fn recorded_slot(&self, event: EventId) -> Result<Option<SlotId>, Error> {
        let slot = self.event(event)?.recording.and_then(|r| r.slot);
        Ok(slot.map(|index| SlotId { index, generation: self.slots[index as usize].generation }))
    }

    /// The event is no longer used. Waits on it keep their meaning; its slot is superseded. Succeeds
    /// after loss too.
    ///
    /// Vulkan: none. CUDA: `cudaEventDestroy`. ggml: `event_free`.
    pub fn destroy_event(&mut self, event: EventId) -> Result<(), Error> {
        self.event(event)?;
        if let Some(Event { recording: Some(recording) }) = self.events.remove(event.index, event.generation) {
            match recording.slot {
                Some(slot) if !self.keeps(Guard::DestroyQuarantines) => self.release(slot),
                _ => self.supersede(recording),
            }
        }
        Ok(())
    }

    // News from the driver -----------------------------------------------------------------------

    /// What the driver said to the effect of the last [`Step::First`]. An error ends the call in progress.
    pub fn reply(&mut self, effect: Effect, reply: Reply) -> Result<(), Error> {
        if let Effect::Wake { .. } = effect {
            return Ok(());
        }
        if reply == Reply::Lost {
            self.lost = true;
            return Err(Error::Lost);
        }
        let done = reply == Reply::Done;
        match effect {
            Effect::CreateTimeline { timeline, queue } if timeline == self.lanes => {
                self.refused = !done;
                if done {
                    self.lanes += 1;
                    let (leases, free_buffers) = (Vec::new(), Vec::new());
                    self.idle.push(Lane { queue, timeline, submitted: 0, leases, free_buffers });
                }
            }
            Effect::Begin { stream, lease, new } if self.lease(stream) == Err(effect) => {
                self.refused = !done;
                if done {
                    let s = self.stream_mut(stream)?;
                    if new {
                        s.lane.leases.push(0);
                    } else {
                        s.lane.free_buffers.pop();
                    }
                    s.lane.leases[lease.buffer as usize] = lease.generation;
                    s.open = Some(Open { lease: Some(lease), ended: false });
                }
            }
            Effect::Submit { stream, .. } if self.is_opened(stream) && self.submit(stream) == effect => {
                if done || !self.keeps(Guard::RefusedSubmitKeepsValue) {
                    self.submitted(stream);
                } else {
                    let keeps = self.keeps(Guard::RefusedSubmitKeepsBatch);
                    let s = self.stream_mut(stream)?;
                    match &mut s.open {
                        Some(open) if keeps => open.ended = true,
                        open => *open = None,
                    }
                    return Err(Error::Refused(effect));
                }
            }
            Effect::CreateSlot { slot } if slot.index as usize == self.slots.len() => {
                self.refused = !done;
                if done {
                    self.slots.push(Slot {
                        state: Lifecycle::Reusable,
                        generation: 0,
                        clean: true,
                        open_count: 0,
                        frontier: Vec::new(),
                        next: NONE,
                    });
                    self.free.push(slot.index);
                }
            }
            Effect::ResetSlot { slot } if self.free.last() == Some(&slot.index) => {
                self.refused = !done;
                if done {
                    let slot = &mut self.slots[slot.index as usize];
                    slot.on(SlotInput::Reset);
                    slot.clean = true;
                }
            }
            _ => return Err(Error::UnexpectedReply(effect)),
        }
        Ok(())
    }

    /// The stream's timeline was seen at this value. First: [`Effect::Wake`] for each waiter whose
    /// point has passed, once the value is published. A value beyond the newest promise is what a lost
    /// device returns, and is taken as that.
    ///
    /// Vulkan: the value of `vkGetSemaphoreCounterValue`, or of a `vkWaitSemaphores` that succeeded.
    pub fn reached(&mut self, stream: StreamId, value: u64) -> Answer<()> {
        if self.lost {
            return self.lose();
        }
        let (highest, within) = (self.keeps(Guard::ReachedNeverGoesBack), self.keeps(Guard::ReachedWithinPromise));
        let (triggers, forgets) = (self.keeps(Guard::PointTriggersSlots), self.keeps(Guard::WokenOnce));
        let holds = self.keeps(Guard::PointHoldsBuffers);
        // A stream that is gone had all its points passed.
        let Some(s) = self.streams.get_mut(stream.index, stream.generation) else {
            return Ok(Step::Done(()));
        };
        if value > s.lane.submitted && within {
            return self.lose();
        }
        s.reached = if highest { s.reached.max(value) } else { value };
        while let Some(s) = self.streams.get_mut(stream.index, stream.generation)
            && s.retired < s.reached
            && let Some(batch) = s.in_flight.front_mut()
        {
            if let Some((generation, waiter)) = self.waiters.at_mut(batch.waiters) {
                let id = WaiterId { index: batch.waiters, generation };
                if forgets {
                    batch.waiters = waiter.next;
                    self.waiters.remove(id.index, id.generation);
                }
                return Ok(Step::First(Effect::Wake { waiter: id, lost: false }));
            }
            let batch = *batch;
            s.in_flight.pop_front();
            s.retired += 1;
            if holds {
                s.lane.free_buffers.extend(batch.buffer);
            }
            let mut next = batch.slots;
            while next != NONE && triggers {
                let slot = next;
                next = self.slots[slot as usize].next;
                self.park(slot);
            }
        }
        if self.streams.get(stream.index, stream.generation).is_some_and(|s| s.closed && s.in_flight.is_empty()) {
            self.retire_stream(stream);
        }
        Ok(Step::Done(()))
    }

    /// The device is lost. First: [`Effect::Wake`] for every waiter. Sticky: from now on every call
    /// that asks something of the device returns [`Error::Lost`]; destroying succeeds.
    ///
    /// Vulkan: `VK_ERROR_DEVICE_LOST` from any call. CUDA: a sticky error.
    pub fn lose(&mut self) -> Answer<()> {
        self.lost = true;
        if !self.keeps(Guard::LossWakes) {
            return Ok(Step::Done(()));
        }
        let waiter = if self.keeps(Guard::WokenOnce) { self.waiters.pop() } else { self.waiters.last() };
        Ok(waiter.map_or(Step::Done(()), |waiter| Step::First(Effect::Wake { waiter, lost: true })))
    }

    /// Whether the device was lost.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// A host wait ran out of time. A different answer from done.
    ///
    /// Vulkan: `VK_TIMEOUT` from `vkWaitSemaphores`.
    pub fn timed_out(&mut self, waiter: WaiterId) -> TimedOut {
        let Some(entry) = self.waiters.remove(waiter.index, waiter.generation) else {
            return TimedOut::AlreadyWoken;
        };
        let mut at = self.waiters_of(entry.point).map_or(NONE, |head| *head);
        if at == waiter.index {
            self.waiters_of(entry.point).into_iter().for_each(|head| *head = entry.next);
        }
        while let Some((_, other)) = self.waiters.at_mut(at) {
            at = other.next;
            if at == waiter.index {
                other.next = entry.next;
            }
        }
        if self.keeps(Guard::TimeoutIsNotDone) { TimedOut::Forgotten } else { TimedOut::AlreadyWoken }
    }

    // What the tests and the checker look at -----------------------------------------------------

    /// Whether the point has passed, as far as the machine was told. A stream that is gone had all
    /// its points passed.
    pub fn passed(&self, point: Point) -> bool {
        self.streams.get(point.stream.index, point.stream.generation).is_none_or(|s| {
            point.value <= if self.keeps(Guard::SubmittedIsNotDone) { s.reached } else { s.lane.submitted }
        })
    }

    /// The newest value promised on the stream's timeline, and the highest one reported.
    pub fn progress(&self, stream: StreamId) -> Option<(u64, u64)> {
        self.streams.get(stream.index, stream.generation).map(|s| (s.lane.submitted, s.reached))
    }

    /// The buffer of the stream's open batch, and how many sets and waits it holds.
    pub fn open_batch(&self, stream: StreamId) -> (Option<Lease>, usize) {
        let stream = self.streams.get(stream.index, stream.generation);
        stream.map_or((None, 0), |s| (s.open.and_then(|open| open.lease), s.open_slots.len()))
    }

    /// The buffer that takes the stream's next command; `None` if something has to come first.
    pub fn open_lease(&self, stream: StreamId) -> Option<Lease> {
        self.lease(stream).ok()
    }

    /// Every stream, closed ones that have not drained included.
    pub fn streams(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.streams.iter().map(|(index, generation, _)| (index, generation).into())
    }

    /// The stream that owns a timeline, closed ones included.
    pub fn stream_of(&self, timeline: u32) -> Option<StreamId> {
        let mut streams = self.streams.iter();
        streams.find(|(_, _, s)| s.lane.timeline == timeline).map(|(i, g, _)| (i, g).into())
    }

    /// Where a slot is in its life.
    pub fn slot(&self, index: u32) -> Option<Lifecycle> {
        self.slots.get(index as usize).map(|slot| slot.state)
    }

    /// How many slots are in each state, in the order of [`Lifecycle::ALL`].
    pub fn slot_counts(&self) -> [usize; 4] {
        Lifecycle::ALL.map(|state| self.slots.iter().filter(|slot| slot.state == state).count())
    }

    /// Submitted slots whose frontier has passed: there must be none, they are reusable.
    pub fn stranded_slots(&self) -> usize {
        let passed = |slot: &&Slot| slot.frontier.iter().all(|p| self.passed(*p));
        self.slots.iter().filter(|slot| slot.state == Lifecycle::Submitted).filter(passed).count()
    }

    /// Waiters registered and not woken.
    pub fn waiter_count(&self) -> usize {
        self.waiters.len()
    }

    // Helpers ------------------------------------------------------------------------------------

    const fn alive(&self) -> Result<(), Error> {
        if self.lost { Err(Error::Lost) } else { Ok(()) }
    }

    fn stream(&self, id: StreamId) -> Result<&Stream, Error> {
        self.streams.get(id.index, id.generation).filter(|s| !s.closed).ok_or(Error::UnknownStream(id))
    }

    fn stream_mut(&mut self, id: StreamId) -> Result<&mut Stream, Error> {
        self.streams.get_mut(id.index, id.generation).filter(|s| !s.closed).ok_or(Error::UnknownStream(id))
    }

    fn event(&self, id: EventId) -> Result<&Event, Error> {
        self.events.get(id.index, id.generation).ok_or(Error::UnknownEvent(id))
    }

    fn event_mut(&mut self, id: EventId) -> Result<&mut Event, Error> {
        self.events.get_mut(id.index, id.generation).ok_or(Error::UnknownEvent(id))
    }

    fn is_open(&self, point: Point) -> bool {
        let stream = self.streams.get(point.stream.index, point.stream.generation);
        stream.is_some_and(|s| point.value > s.lane.submitted)
    }

    /// The batch that signals the point, if it is in flight.
    fn batch_mut(&mut self, point: Point) -> Option<&mut Batch> {
        let s = self.streams.get_mut(point.stream.index, point.stream.generation)?;
        s.in_flight.get_mut(point.value.checked_sub(s.retired + 1)? as usize)
    }

    /// The first of the waiters parked on the point, which is in flight or open.
    fn waiters_of(&mut self, point: Point) -> Option<&mut u32> {
        let s = self.streams.get_mut(point.stream.index, point.stream.generation)?;
        if point.value > s.lane.submitted {
            return Some(&mut s.open_waiters);
        }
        let batch = s.in_flight.get_mut(point.value.checked_sub(s.retired + 1)? as usize)?;
        Some(&mut batch.waiters)
    }

    /// A command was issued on the stream's queue.
    fn issue(&mut self, stream: StreamId) {
        if let Some(queue) = self.queue(stream) {
            self.queue_mut(queue).issued += 1;
        }
    }

    fn queue_mut(&mut self, queue: QueueId) -> &mut Queue {
        if self.queues.len() <= queue as usize {
            self.queues.resize(queue as usize + 1, Queue { policy: self.policy, issued: 0 });
        }
        &mut self.queues[queue as usize]
    }

    /// The open batch's buffer, or what has to come first.
    fn lease(&self, stream: StreamId) -> Result<Lease, Effect> {
        let open = self.streams.get(stream.index, stream.generation).and_then(|s| s.open);
        match open {
            Some(Open { ended: true, .. }) => Err(self.submit(stream)),
            Some(Open { lease: Some(lease), .. }) => Ok(lease),
            _ => Err(self.begin(stream)),
        }
    }

    fn is_opened(&self, stream: StreamId) -> bool {
        self.streams.get(stream.index, stream.generation).is_some_and(|s| s.open.is_some())
    }

    fn begin(&self, stream: StreamId) -> Effect {
        let lane = self.streams.get(stream.index, stream.generation).map(|s| &s.lane);
        let free = lane.and_then(|lane| lane.free_buffers.last().copied());
        let buffer = free.unwrap_or_else(|| lane.map_or(0, |lane| lane.leases.len() as u32));
        let generation = lane.and_then(|lane| lane.leases.get(buffer as usize)).map_or(0, |n| n + 1);
        let timeline = lane.map_or(0, |lane| lane.timeline);
        Effect::Begin { stream, lease: Lease { timeline, buffer, generation }, new: free.is_none() }
    }

    fn submit(&self, stream: StreamId) -> Effect {
        let s = self.streams.get(stream.index, stream.generation);
        let lease = s.and_then(|s| s.open).and_then(|open| open.lease);
        Effect::Submit { stream, lease, value: s.map_or(0, |s| s.lane.submitted + 1) }
    }

    /// Has the stream's later batches start after the point: `None` when that is so.
    fn order_after(&mut self, stream: StreamId, point: Point) -> Ordered {
        if self.passed(point) {
            return None;
        }
        if self.is_open(point) && (point.stream == stream || self.keeps(Guard::FlushBeforeWait)) {
            return Some(self.submit(point.stream));
        }
        let splits = self.keeps(Guard::SplitBeforeWait);
        let s = self.streams.get_mut(stream.index, stream.generation)?;
        let known = s.open_points.iter().position(|p| p.stream == point.stream);
        if known.is_some_and(|at| s.open_points[at].value >= point.value) {
            return None;
        }
        // The wait would hold back the commands that the batch has, and what is recorded behind them.
        if s.open.is_some_and(|open| open.lease.is_some()) && splits {
            return Some(self.submit(stream));
        }
        match known {
            Some(at) => s.open_points[at] = point,
            None => s.open_points.push(point),
        }
        s.open.get_or_insert(Open { lease: None, ended: false });
        None
    }

    /// Has the stream's newest point cover its companion.
    fn join_companion(&mut self, stream: StreamId) -> Result<Ordered, Error> {
        let s = self.stream(stream)?;
        let Some(companion) = s.companion else { return Ok(None) };
        let newest = self.newest(companion)?;
        if newest.value <= s.follows {
            return Ok(None);
        }
        Ok(self.order_after(stream, newest))
    }

    /// A buffer and a slot for a recording; `Ok(None)` if it goes without.
    fn slot_for_record(&self, stream: StreamId) -> Result<Option<(Lease, u32)>, Effect> {
        let ended = self.streams.get(stream.index, stream.generation).and_then(|s| s.open).is_some_and(|o| o.ended);
        if ended {
            return Err(self.submit(stream));
        }
        let policy = self.queue(stream).map_or(self.policy, |queue| self.queues[queue as usize].policy);
        if !policy.events || self.refused {
            return Ok(None);
        }
        let lease = self.lease(stream)?;
        match self.free.last() {
            Some(&index) if self.slots[index as usize].clean => Ok(Some((lease, index))),
            Some(&index) => {
                Err(Effect::ResetSlot { slot: SlotId { index, generation: self.slots[index as usize].generation } })
            }
            None => Err(Effect::CreateSlot { slot: SlotId { index: self.slots.len() as u32, generation: 0 } }),
        }
    }

    /// The generation is no longer current.
    fn supersede(&mut self, recording: Recording) {
        let Some(index) = recording.slot else { return };
        let open = self.slots[index as usize].open_count > 0;
        if open && self.keeps(Guard::OpenBatchesHoldSlots) {
            self.slots[index as usize].on(SlotInput::SupersedeOpen);
        } else {
            self.slots[index as usize].on(SlotInput::SupersedeClosed);
            self.park(index);
        }
    }

    /// The stream's open batch is with its queue.
    fn submitted(&mut self, stream: StreamId) {
        let keeps_buffer = self.keeps(Guard::PointHoldsBuffers);
        let Some(s) = self.streams.get_mut(stream.index, stream.generation) else { return };
        let buffer = s.open.take().and_then(|open| open.lease).map(|lease| lease.buffer);
        s.lane.submitted += 1;
        let waiters = core::mem::replace(&mut s.open_waiters, NONE);
        s.in_flight.push_back(Batch { buffer, slots: NONE, waiters });
        let joined = s.open_points.iter().filter(|p| Some(p.stream) == s.companion).map(|p| p.value).max();
        s.follows = s.follows.max(joined.unwrap_or(0));
        s.open_points.clear();
        if !keeps_buffer {
            s.lane.free_buffers.extend(buffer);
        }
        while let Some(index) = self.streams.get_mut(stream.index, stream.generation).and_then(|s| s.open_slots.pop()) {
            let slot = &mut self.slots[index as usize];
            slot.open_count = slot.open_count.saturating_sub(1);
            let last = slot.open_count == 0;
            slot.on(if last { SlotInput::SubmitLast } else { SlotInput::SubmitOne });
            if last && slot.state == Lifecycle::Submitted {
                self.park(index);
            }
        }
    }

    /// Looks at a Submitted slot's frontier: parks the slot on a point that has not passed, or frees it.
    fn park(&mut self, index: u32) {
        while let Some(&point) = self.slots[index as usize].frontier.last() {
            if !self.passed(point)
                && self.keeps(Guard::FrontierHoldsSlots)
                && let Some(batch) = self.batch_mut(point)
            {
                let next = core::mem::replace(&mut batch.slots, index);
                self.slots[index as usize].next = next;
                return;
            }
            self.slots[index as usize].frontier.pop();
        }
        self.slots[index as usize].on(SlotInput::FrontierPassed);
        self.free.push(index);
    }

    /// Frees a slot whatever its state: what the quarantine prevents.
    fn release(&mut self, index: u32) {
        self.slots[index as usize].state = Lifecycle::Reusable;
        self.free.push(index);
    }
}

impl Slot {
    /// Takes a transition of the table. The machine asks only for allowed ones; a machine that lacks
    /// a guard may not.
    fn on(&mut self, input: SlotInput) {
        match self.state.on(input) {
            Transition::To(state) => self.state = state,
            Transition::Stay | Transition::Gone => {}
            Transition::Refused => {
                let bug = cfg!(debug_assertions) && !cfg!(feature = "unguarded");
                assert!(!bug, "{input:?} is refused in {:?}", self.state);
            }
        }
    }
}
