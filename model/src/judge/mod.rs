//! A judge of the calls that an application makes: which of the [rules](crate::Rule) they break, by what is certain from the
//! calls alone.
//!
//! Nothing is guessed. A batch has ended when a fence, a semaphore wait or an idle call says so, of it or of what comes after
//! it; an operation comes after another when an execution dependency says so. What is not certain to have executed is taken as
//! not executed, and the rules are asked with that ([`Facts`]).
//!
//! **Generations.** A wait is for the event's set that was live when the wait was recorded: recorded or made by the host, and
//! not reset since. If there is none, or the command buffer is submitted again, or a reset is recorded into another command
//! buffer before it is submitted, the wait is for the newest set before it on its queue.

mod call;
mod command_buffer;
mod event;
mod order;
mod queue;
mod race;
mod semaphore;
mod verdict;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

pub use call::{ALL_COMMANDS, Access, Blocking, Call, Dependency, Handle, SemaphoreValue, Site, Stages, SubmitInfo};
pub use verdict::{Kind, Moment, Object, Reason, Verdict};

use crate::{DeviceEvent, Facts, Family, Ghost, Occurrence, QueueId, Rule};
use command_buffer::{Command, CommandBuffer, Recorded, State};
use event::{Event, OpenWait};
use order::{Past, first_scope, second_scope};
use queue::{Batch, Queue};
use race::Buffer;
use semaphore::{Fence, Semaphore};

/// Judges the calls on one device. Calls of several threads go in one after the other, in an order that they may have happened in.
#[derive(Debug, Default)]
pub struct Judge {
    pools: BTreeMap<Handle, Pool>,
    command_buffers: BTreeMap<Handle, CommandBuffer>,
    events: BTreeMap<Handle, Event>,
    semaphores: BTreeMap<Handle, Semaphore>,
    fences: BTreeMap<Handle, Fence>,
    buffers: BTreeMap<Handle, Buffer>,
    queues: Vec<Queue>,
    batches: BTreeMap<u64, Batch>,
    batch_count: u64,
    /// What the host knows to have ended.
    known: Past,
    /// Grows with `known`.
    known_version: u64,
    /// Calls that have not returned, by thread.
    entered: BTreeMap<u32, Entered>,
    lost: bool,
}

#[derive(Debug, Default)]
struct Pool {
    command_buffers: Vec<Handle>,
    /// When the newest of those that were submitted was begun.
    newest_submitted: u64,
}

/// A call that has not returned.
#[derive(Debug)]
struct Entered {
    site: Site,
    why: Why,
}

#[derive(Debug)]
enum Why {
    Submit { batches: Vec<u64> },
    Semaphores { waits: Vec<(Handle, u64)>, any: bool },
    Fences { fences: Vec<Handle>, any: bool },
    QueueIdle { queue: Handle },
    DeviceIdle,
}

/// What is certain of the one object that an occurrence is about.
#[derive(Debug, Default)]
struct Certain {
    waits: Vec<u64>,
    named: bool,
    set_by: Option<u64>,
    set_queue: Option<QueueId>,
    in_flight: bool,
    open: bool,
    fence_in_flight: bool,
    value: u64,
}

impl Facts for Certain {
    fn family(&self) -> Family {
        Family::Vulkan
    }
    fn is_lost(&self) -> bool {
        false
    }
    fn waits(&self, _: DeviceEvent) -> impl Iterator<Item = u64> {
        self.waits.iter().copied()
    }
    fn names_event(&self, _: DeviceEvent) -> bool {
        self.named
    }
    fn set_by(&self, _: DeviceEvent) -> Option<u64> {
        self.set_by
    }
    fn set_queue(&self, _: DeviceEvent) -> Option<QueueId> {
        self.set_queue
    }
    fn in_flight(&self, _: u32) -> bool {
        self.in_flight
    }
    fn open_lease(&self, _: u32) -> Option<u64> {
        self.open.then_some(0)
    }
    fn fence_in_flight(&self, _: u32) -> bool {
        self.fence_in_flight
    }
    fn semaphore(&self, _: u32) -> u64 {
        self.value
    }
}

/// What a verdict says beside its rule, ready in case there is one.
struct Case {
    object: Object,
    generation: Option<u64>,
    site: Site,
    command: Option<Site>,
    conflict: Option<Site>,
    place: Option<Object>,
    reason: Reason,
}

impl Case {
    fn new(site: Site, object: Object, reason: Reason) -> Case {
        Case { object, generation: None, site, command: None, conflict: None, place: None, reason }
    }
}

/// Asks the rules; `true` if one is broken.
fn ask(certain: &Certain, ghost: &Ghost, occurrence: &Occurrence, case: &Case, out: &mut Vec<Verdict>) -> bool {
    let before = out.len();
    for rule in Rule::ALL.into_iter().chain([Rule::DataRace]) {
        if rule.broken_by(certain, ghost, occurrence) {
            let Case { object, generation, site, command, conflict, place, reason } = *case;
            let (lost, story) = (Vec::new(), Vec::new());
            out.push(Verdict { rule, object, generation, site, command, conflict, place, reason, lost, story });
        }
    }
    out.len() > before
}

fn nothing_tracked() -> Ghost {
    Ghost::new(0, 0)
}

impl Judge {
    /// Nothing happened yet.
    pub fn new() -> Judge {
        Judge::default()
    }

    /// Whether the device was lost: nothing is judged any more.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Batches that may not have ended.
    pub fn batch_count(&self) -> usize {
        self.batches.len()
    }

    /// A call. [`Call::Submit`] and [`Call::Wait`] are given when they are entered, all others when they have succeeded.
    pub fn call(&mut self, site: Site, call: &Call<'_>, out: &mut Vec<Verdict>) {
        if self.lost {
            return;
        }
        let from = out.len();
        match *call {
            Call::GetDeviceQueue { queue } => {
                self.queue(queue);
            }
            Call::DestroyDevice => self.destroy_device(site, out),
            Call::CreateCommandPool { pool } => drop(self.pools.insert(pool, Pool::default())),
            Call::ResetCommandPool { pool } => self.reset_pool(pool, site, out),
            Call::DestroyCommandPool { pool } => {
                self.reset_pool(pool, site, out);
                for command_buffer in self.pools.remove(&pool).unwrap_or_default().command_buffers {
                    self.command_buffers.remove(&command_buffer);
                }
            }
            Call::AllocateCommandBuffers { pool, command_buffers } => {
                self.pools.entry(pool).or_default().command_buffers.extend(command_buffers);
                self.command_buffers.extend(command_buffers.iter().map(|c| (*c, CommandBuffer::new(pool))));
            }
            Call::FreeCommandBuffers { command_buffers } => {
                for command_buffer in command_buffers {
                    self.reset_command_buffer(*command_buffer, site, out);
                    let freed = self.command_buffers.remove(command_buffer);
                    if let Some(pool) = freed.and_then(|freed| self.pools.get_mut(&freed.pool)) {
                        pool.command_buffers.retain(|c| c != command_buffer);
                    }
                }
            }
            Call::BeginCommandBuffer { command_buffer, one_time, simultaneous } => {
                self.begin(command_buffer, one_time, simultaneous, site, out);
            }
            Call::EndCommandBuffer { command_buffer } => {
                let command_buffer = self.command_buffer(command_buffer);
                command_buffer.state = State::Executable;
                command_buffer.site = Some(site);
            }
            Call::ResetCommandBuffer { command_buffer } => self.reset_command_buffer(command_buffer, site, out),
            Call::CreateEvent { event } => {
                self.events.insert(event, Event::created());
                self.remember(event, site, None, None);
            }
            Call::DestroyEvent { event } => self.destroy_event(event, site, out),
            Call::SetEvent { event } => self.set_event(event, site, out),
            Call::ResetEvent { event } => self.reset_event(event, site, out),
            Call::GetEventStatus { event, set } => self.event_status(event, set, site, out),
            Call::CreateSemaphore { semaphore, initial_value, external } => {
                self.semaphores.insert(semaphore, Semaphore::new(initial_value, external));
            }
            Call::DestroySemaphore { semaphore } => {
                self.semaphore_gone(semaphore, site, out);
                self.semaphores.remove(&semaphore);
            }
            Call::SignalSemaphore { semaphore, value } => self.signal_semaphore(semaphore, value, site, out),
            Call::GetSemaphoreCounterValue { semaphore, value } => self.counter_is(semaphore, value, out),
            Call::SignalledOutside { semaphore, fence } => {
                if let Some(semaphore) = semaphore {
                    self.semaphores.entry(semaphore).or_default().external = true;
                }
                if let Some(fence) = fence {
                    self.fences.entry(fence).or_default().batches.clear();
                }
            }
            Call::CreateFence { fence } => drop(self.fences.insert(fence, Fence::default())),
            Call::DestroyFence { fence } => {
                self.reset_fence(fence, site, out);
                self.fences.remove(&fence);
            }
            Call::ResetFences { fences } => fences.iter().for_each(|fence| self.reset_fence(*fence, site, out)),
            Call::GetFenceStatus { fence, signaled } => {
                if signaled {
                    self.fence_signaled(fence, out);
                }
            }
            Call::CreateBuffer { buffer, size } => {
                self.buffers.insert(buffer, Buffer::new(size));
            }
            Call::DestroyBuffer { buffer } => drop(self.buffers.remove(&buffer)),
            Call::Submit { queue, submits, fence } => {
                let batches = self.submit(queue, submits, fence, site, out);
                self.entered.insert(site.thread, Entered { site, why: Why::Submit { batches } });
            }
            Call::Wait(blocking) => {
                let why = match blocking {
                    Blocking::Semaphores { waits, any } => {
                        Why::Semaphores { waits: waits.iter().map(|w| (w.semaphore, w.value)).collect(), any }
                    }
                    Blocking::Fences { fences, any } => Why::Fences { fences: fences.to_vec(), any },
                    Blocking::QueueIdle { queue } => Why::QueueIdle { queue },
                    Blocking::DeviceIdle => Why::DeviceIdle,
                };
                self.entered.insert(site.thread, Entered { site, why });
            }
            _ => self.record(site, call, out),
        }
        self.tell_stories(out, from);
    }

    /// What a submission or a call that blocks returned on its thread: a `VkResult`.
    pub fn returned(&mut self, site: Site, result: i32, out: &mut Vec<Verdict>) {
        const ERROR_DEVICE_LOST: i32 = -4;
        self.lost |= result == ERROR_DEVICE_LOST;
        let Some(Entered { why, .. }) = self.entered.remove(&site.thread) else { return };
        if self.lost {
            return;
        }
        let from = out.len();
        match why {
            Why::Submit { batches } if result < 0 => batches.into_iter().for_each(|batch| self.refuse(batch)),
            _ if result != 0 => {}
            Why::Submit { .. } => {}
            Why::Semaphores { waits, any } => {
                if !any || waits.len() == 1 {
                    waits.into_iter().for_each(|(semaphore, value)| self.counter_is(semaphore, value, out));
                }
            }
            Why::Fences { fences, any } => {
                if !any || fences.len() == 1 {
                    fences.into_iter().for_each(|fence| self.fence_signaled(fence, out));
                }
            }
            Why::QueueIdle { queue } => {
                let queue = self.queue(queue);
                self.queue_idle(queue, out);
            }
            Why::DeviceIdle => (0..self.queues.len()).for_each(|queue| self.queue_idle(queue, out)),
        }
        self.tell_stories(out, from);
    }

    /// Nothing more will come: what can only be said now.
    pub fn end(&mut self, site: Site, out: &mut Vec<Verdict>) {
        if self.lost {
            return;
        }
        let from = out.len();
        let command_buffers: Vec<Handle> = self.command_buffers.keys().copied().collect();
        command_buffers.into_iter().for_each(|c| self.discard(c, site, out));
        self.never_signalled(out);
        self.tell_stories(out, from);
    }

    // Command buffers ----------------------------------------------------------------------------

    fn command_buffer(&mut self, handle: Handle) -> &mut CommandBuffer {
        self.command_buffers.entry(handle).or_insert_with(|| CommandBuffer::new(0))
    }

    /// The call that submitted a batch of this command buffer that may not have ended.
    fn in_flight(&self, command_buffer: &CommandBuffer) -> Option<Site> {
        command_buffer.batches.iter().find_map(|batch| Some(self.batches.get(batch)?.site))
    }

    fn begin(&mut self, handle: Handle, one_time: bool, simultaneous: bool, site: Site, out: &mut Vec<Verdict>) {
        let command_buffer = self.command_buffers.entry(handle).or_insert_with(|| CommandBuffer::new(0)).clone();
        let in_flight = self.in_flight(&command_buffer);
        let recording = command_buffer.state == State::Recording;
        let certain = Certain { in_flight: in_flight.is_some(), open: recording, ..Certain::default() };
        let object = Object::new(Kind::CommandBuffer, handle);
        let case = Case {
            conflict: in_flight.or(command_buffer.site),
            ..Case::new(site, object, if in_flight.is_some() { Reason::InFlight } else { Reason::Recording })
        };
        ask(&certain, &nothing_tracked(), &Occurrence::BufferBegun { buffer: 0 }, &case, out);
        self.discard(handle, site, out);
        let command_buffer = self.command_buffer(handle);
        command_buffer.clear(site);
        command_buffer.state = State::Recording;
        command_buffer.begun = site.n;
        (command_buffer.one_time, command_buffer.simultaneous) = (one_time, simultaneous);
    }

    fn reset_pool(&mut self, pool: Handle, site: Site, out: &mut Vec<Verdict>) {
        let command_buffers = self.pools.entry(pool).or_default().command_buffers.clone();
        command_buffers.into_iter().for_each(|c| self.reset_command_buffer(c, site, out));
    }

    fn reset_command_buffer(&mut self, handle: Handle, site: Site, out: &mut Vec<Verdict>) {
        let in_flight = self.command_buffers.get(&handle).and_then(|c| self.in_flight(c));
        let certain = Certain { in_flight: in_flight.is_some(), ..Certain::default() };
        let object = Object::new(Kind::CommandBuffer, handle);
        let case = Case { conflict: in_flight, ..Case::new(site, object, Reason::InFlight) };
        ask(&certain, &nothing_tracked(), &Occurrence::BufferReset { buffer: 0, lease: 0 }, &case, out);
        self.discard(handle, site, out);
        self.command_buffer(handle).clear(site);
    }

    /// What a command buffer held goes. A wait that was never submitted is lost if its command pool's later work was.
    fn discard(&mut self, handle: Handle, site: Site, out: &mut Vec<Verdict>) {
        let Some(command_buffer) = self.command_buffers.get(&handle) else { return };
        if command_buffer.submitted || command_buffer.commands.is_empty() {
            return;
        }
        let (commands, refused) = (Arc::clone(&command_buffer.commands), command_buffer.refused);
        let newest_submitted = self.pools.get(&command_buffer.pool).map_or(0, |pool| pool.newest_submitted);
        for (at, recorded) in commands.iter().enumerate().filter(|(_, recorded)| recorded.command_buffer == handle) {
            match recorded.command {
                Command::Set { event, generation, .. } => {
                    if let Some(state) = self.events.get_mut(&event) {
                        state.unsubmitted.retain(|g| *g != generation);
                        state.live = state.live.filter(|live| *live != generation);
                    }
                    self.forget_event(event);
                }
                Command::Wait { event, .. } => {
                    let state = self.events.entry(event).or_default();
                    let open = state.open.iter().position(|o| o.command_buffer == handle && o.site == recorded.site);
                    let Some(open) = open.map(|at| state.open.remove(at)) else { continue };
                    let overtaken = newest_submitted > recorded.site.n;
                    let mut ghost = nothing_tracked();
                    (ghost.live, ghost.refused) = (u8::from(overtaken), refused);
                    let case = Case {
                        generation: open.generation,
                        conflict: Some(recorded.site),
                        place: Some(Object::new(Kind::CommandBuffer, handle)),
                        ..Case::new(site, Object::new(Kind::Event, event), Reason::Discarded)
                    };
                    let before = out.len();
                    ask(&Certain::default(), &ghost, &Occurrence::WorkBegins { after: 1 }, &case, out);
                    let access = |r: &&Recorded| matches!(r.command, Command::Access { .. });
                    let mut lost: Vec<Site> = commands[..at].iter().filter(access).map(|r| r.site).collect();
                    lost.dedup();
                    out[before..].iter_mut().for_each(|verdict| verdict.lost.clone_from(&lost));
                    self.tell_stories(out, before);
                    self.forget_event(event);
                }
                _ => {}
            }
        }
    }

    /// A command goes into a command buffer.
    fn record(&mut self, site: Site, call: &Call<'_>, out: &mut Vec<Verdict>) {
        let handle = match *call {
            Call::CmdSetEvent { command_buffer, event, stages } => {
                let generation = self.events.entry(event).or_default().generate();
                self.events.entry(event).or_default().unsubmitted.push(generation);
                let command = Command::Set { event, first: first_scope(stages), generation };
                self.push(command_buffer, site, command);
                self.remember(event, site, Some(command_buffer), None);
                command_buffer
            }
            Call::CmdResetEvent { command_buffer, event, stages } => {
                let state = self.events.entry(event).or_default();
                state.live = None;
                let others = state.open.iter_mut().filter(|wait| wait.command_buffer != command_buffer);
                others.for_each(|wait| wait.generation = None);
                self.push(command_buffer, site, Command::Reset { event, first: first_scope(stages) });
                self.remember(event, site, Some(command_buffer), None);
                command_buffer
            }
            Call::CmdWaitEvents { command_buffer, events, dependencies } => {
                for (at, event) in events.iter().enumerate() {
                    let scope = |dependency: &Dependency| second_scope(dependency.dst);
                    let one = dependencies.get(at).filter(|_| dependencies.len() == events.len()).map(scope);
                    let second = one.unwrap_or_else(|| dependencies.iter().fold(0, |all, d| all | scope(d)));
                    let state = self.events.entry(*event).or_default();
                    state.open.push(OpenWait { command_buffer, generation: state.live, site, submitted: false });
                    self.push(command_buffer, site, Command::Wait { event: *event, second });
                    self.remember(*event, site, Some(command_buffer), None);
                }
                command_buffer
            }
            Call::CmdPipelineBarrier { command_buffer, dependencies } => {
                for dependency in dependencies {
                    let (first, second) = (first_scope(dependency.src), second_scope(dependency.dst));
                    self.push(command_buffer, site, Command::Barrier { first, second });
                }
                command_buffer
            }
            Call::CmdExecuteCommands { command_buffer, secondaries } => {
                for secondary in secondaries {
                    let commands = Arc::clone(&self.command_buffer(*secondary).commands);
                    let primary = self.command_buffer(command_buffer);
                    primary.secondaries.push(*secondary);
                    Arc::make_mut(&mut primary.commands).extend(commands.iter().cloned());
                }
                command_buffer
            }
            Call::CmdWork { command_buffer, stages, accesses } => {
                for access in accesses {
                    let command = Command::Access { access: *access, classes: first_scope(stages) };
                    self.push(command_buffer, site, command);
                }
                command_buffer
            }
            _ => return,
        };
        let command_buffer = self.command_buffer(handle);
        let certain = Certain { open: command_buffer.state == State::Recording, ..Certain::default() };
        let conflict = command_buffer.site;
        let case = Case { conflict, ..Case::new(site, Object::new(Kind::CommandBuffer, handle), Reason::NotRecorded) };
        if conflict.is_some() {
            ask(&certain, &nothing_tracked(), &Occurrence::BufferUsed { buffer: 0 }, &case, out);
        }
    }

    fn push(&mut self, handle: Handle, site: Site, command: Command) {
        let recorded = Recorded { site, command_buffer: handle, command };
        Arc::make_mut(&mut self.command_buffer(handle).commands).push(recorded);
    }

    // Events -------------------------------------------------------------------------------------

    fn remember(&mut self, event: Handle, site: Site, command_buffer: Option<Handle>, queue: Option<Handle>) {
        let object = Object::new(Kind::Event, event);
        self.events.entry(event).or_default().remember(Moment { site, object, command_buffer, queue });
    }

    /// A wait on the event that is not certain to have executed, and what to say of it.
    fn waiting(&mut self, event: Handle, case: &mut Case) -> Vec<u64> {
        let state = self.events.entry(event).or_default();
        state.settle(&self.known);
        let unsubmitted = &state.unsubmitted;
        let set = |wait: &&OpenWait| wait.submitted || wait.generation.is_some_and(|g| !unsubmitted.contains(&g));
        let open = state.open.iter().filter(set);
        let first = open.clone().next();
        let held = |wait: &OpenWait| if wait.submitted { Reason::WaitPending } else { Reason::WaitOpen };
        let pending = state.waits.first().map(|wait| (wait.site, wait.command_buffer, Some(wait.generation)));
        let pending = pending.map(|wait| (wait, Reason::WaitPending));
        let found = pending.or(first.map(|wait| ((wait.site, wait.command_buffer, wait.generation), held(wait))));
        if let Some(((site, command_buffer, generation), reason)) = found {
            case.conflict = Some(site);
            case.place = Some(Object::new(Kind::CommandBuffer, command_buffer));
            (case.generation, case.reason) = (generation, reason);
        }
        state.waits.iter().map(|wait| wait.generation).chain(open.map(|wait| wait.generation.unwrap_or(0))).collect()
    }

    fn set_event(&mut self, event: Handle, site: Site, out: &mut Vec<Verdict>) {
        let mut case = Case::new(site, Object::new(Kind::Event, event), Reason::WaitPending);
        let waits = self.waiting(event, &mut case);
        let state = self.events.entry(event).or_default();
        let set = state.generate();
        // Waits that are not submitted may be for this very set.
        let submitted = state.waits.len() + state.open.iter().filter(|wait| wait.submitted).count();
        let certain = Certain { waits: if submitted > 0 { waits } else { Vec::new() }, ..Certain::default() };
        ask(&certain, &nothing_tracked(), &Occurrence::EventSet { event: 0, set }, &case, out);
        self.events.entry(event).or_default().host_set(set, site, &self.known);
        self.remember(event, site, None, None);
    }

    fn reset_event(&mut self, event: Handle, site: Site, out: &mut Vec<Verdict>) {
        let mut case = Case::new(site, Object::new(Kind::Event, event), Reason::WaitOpen);
        let certain = Certain { waits: self.waiting(event, &mut case), ..Certain::default() };
        ask(&certain, &nothing_tracked(), &Occurrence::HostReset { event: 0 }, &case, out);
        self.events.entry(event).or_default().host_reset(site, &self.known);
        self.remember(event, site, None, None);
    }

    fn destroy_event(&mut self, event: Handle, site: Site, out: &mut Vec<Verdict>) {
        let mut case = Case::new(site, Object::new(Kind::Event, event), Reason::InUse);
        self.waiting(event, &mut case);
        let state = self.events.entry(event).or_default();
        let in_use = state.in_use(&self.known);
        if state.waits.is_empty() {
            (case.conflict, case.place, case.generation) = (in_use, None, Some(state.newest));
            case.reason = Reason::InUse;
        }
        let certain = Certain { named: in_use.is_some() || !state.waits.is_empty(), ..Certain::default() };
        let from = out.len();
        ask(&certain, &nothing_tracked(), &Occurrence::EventDestroyed { event: 0 }, &case, out);
        self.remember(event, site, None, None);
        self.tell_stories(out, from);
        self.events.entry(event).or_default().gone = Some(site);
        self.forget_event(event);
    }

    /// Forgets a destroyed event that no command buffer names which is yet to be submitted.
    fn forget_event(&mut self, event: Handle) {
        let named = |state: &Event| !state.open.is_empty() || !state.unsubmitted.is_empty();
        if self.events.get(&event).is_some_and(|state| state.gone.is_some() && !named(state)) {
            self.events.remove(&event);
        }
    }

    fn event_status(&mut self, event: Handle, set: bool, site: Site, out: &mut Vec<Verdict>) {
        self.events.entry(event).or_default().settle(&self.known);
        let Some((generation, newest)) = self.events[&event].still_set(&self.known).filter(|_| set) else { return };
        let mut ghost = nothing_tracked();
        ghost.live = 1;
        let case = Case {
            generation: Some(generation),
            conflict: Some(newest),
            ..Case::new(site, Object::new(Kind::Event, event), Reason::StillSet)
        };
        ask(&Certain::default(), &ghost, &Occurrence::Reported { covers: 1 }, &case, out);
    }

    // The device ---------------------------------------------------------------------------------

    fn destroy_device(&mut self, site: Site, out: &mut Vec<Verdict>) {
        self.end(site, out);
        let left = self.events.iter().filter(|(_, event)| event.created && event.gone.is_none());
        let first = left.clone().filter_map(|(_, event)| event.story.first()).min_by_key(|moment| moment.site);
        let (live, object) = (left.count(), first.map(|moment| moment.object));
        let slots = Occurrence::Slots { live, allowed: 0, stranded: 0 };
        let case = Case {
            conflict: first.map(|moment| moment.site),
            ..Case::new(site, object.unwrap_or(Object::new(Kind::Device, 0)), Reason::Leaked)
        };
        ask(&Certain::default(), &nothing_tracked(), &slots, &case, out);
    }

    /// Adds what happened before to verdicts about events.
    fn tell_stories(&self, out: &mut [Verdict], from: usize) {
        for verdict in out[from..].iter_mut().filter(|v| v.object.kind == Kind::Event && v.story.is_empty()) {
            if let Some(event) = self.events.get(&verdict.object.handle) {
                verdict.story.clone_from(&event.story);
            }
        }
    }
}
