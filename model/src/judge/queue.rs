//! Queues: batches in submission order, and what their commands meet there.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::call::{Handle, SemaphoreValue, Site, SubmitInfo};
use super::command_buffer::{Command, Recorded, State};
use super::event::{Held, Origin, Wait};
use super::order::{EVERY, Past, Scopes, first_scope, second_scope};
use super::race::Seen;
use super::verdict::{Kind, Moment, Object, Reason, Verdict};
use super::{Case, Certain, Judge, Why, ask, nothing_tracked};
use crate::{Occurrence, QueueId};

#[derive(Debug)]
pub(super) struct Queue {
    pub handle: Handle,
    pub scopes: Scopes,
    /// Batches that may not have ended, in submission order.
    batches: VecDeque<u64>,
    /// Those of them that wait for a signal which has not been seen.
    pub unstarted: VecDeque<u64>,
    /// The state of the host's knowledge that its scopes have taken in.
    seen_version: u64,
    /// The first wait that nothing may ever end.
    hung: Option<Hung>,
}

#[derive(Clone, Copy, Debug)]
struct Hung {
    batch: u64,
    event: Handle,
    /// The wait, and the command buffer that holds it.
    site: Site,
    command_buffer: Handle,
    missing: Option<Site>,
}

#[derive(Debug)]
pub(super) struct Batch {
    queue: usize,
    pub site: Site,
    pub waits: Vec<SemaphoreValue>,
    /// Batches whose binary signals it takes, and the stages that wait.
    takes: Vec<(u64, u8)>,
    command_buffers: Vec<Part>,
    signals: Vec<SemaphoreValue>,
    /// What the host knew when it was submitted, if the batch could not start at once.
    known: Option<Past>,
    /// Its last position and what comes before its end, once it could start.
    end: Option<(u64, Past)>,
}

/// A command where a queue meets it.
#[derive(Clone, Copy)]
struct Here<'a> {
    batch: u64,
    queue: usize,
    /// The submission.
    site: Site,
    recorded: &'a Recorded,
    /// Its command buffer was not submitted before since it was begun.
    first: bool,
}

impl Here<'_> {
    fn case(&self, event: Handle, reason: Reason) -> Case {
        Case { command: Some(self.recorded.site), ..Case::new(self.site, Object::new(Kind::Event, event), reason) }
    }
}

/// A command buffer as it was submitted.
#[derive(Debug)]
struct Part {
    commands: Arc<Vec<Recorded>>,
    /// It was not submitted before since it was begun.
    first: bool,
}

impl Judge {
    /// The number of a queue.
    pub(super) fn queue(&mut self, handle: Handle) -> usize {
        if let Some(at) = self.queues.iter().position(|queue| queue.handle == handle) {
            return at;
        }
        let at = self.queues.len();
        self.queues.push(Queue {
            handle,
            scopes: Scopes::new(at),
            batches: VecDeque::new(),
            unstarted: VecDeque::new(),
            seen_version: 0,
            hung: None,
        });
        at
    }

    pub(super) fn submit(
        &mut self,
        queue: Handle,
        submits: &[SubmitInfo<'_>],
        fence: Option<Handle>,
        site: Site,
        out: &mut Vec<Verdict>,
    ) -> Vec<u64> {
        let queue = self.queue(queue);
        let mut batches = Vec::with_capacity(submits.len().max(1));
        for submit in submits {
            batches.push(self.submit_batch(queue, submit, site, out));
        }
        if let Some(fence) = fence {
            let last = match batches.last() {
                Some(last) => *last,
                None => {
                    batches.push(self.submit_batch(queue, &SubmitInfo::default(), site, out));
                    self.batch_count
                }
            };
            let ended = &self.batches;
            let state = self.fences.entry(fence).or_default();
            state.batches.retain(|batch| ended.contains_key(batch));
            state.batches.push_back(last);
        }
        batches
    }

    fn submit_batch(&mut self, queue: usize, submit: &SubmitInfo<'_>, site: Site, out: &mut Vec<Verdict>) -> u64 {
        self.batch_count += 1;
        let id = self.batch_count;
        let mut takes = Vec::new();
        for wait in submit.waits.iter().filter(|wait| wait.value == 0) {
            let state = self.semaphores.entry(wait.semaphore).or_default();
            takes.extend(state.unclaimed.pop_front().map(|batch| (batch, second_scope(wait.stages))));
        }
        let mut command_buffers = Vec::with_capacity(submit.command_buffers.len());
        for handle in submit.command_buffers {
            command_buffers.push(self.submit_command_buffer(*handle, id, site, out));
        }
        for signal in submit.signals {
            let state = self.semaphores.entry(signal.semaphore).or_default();
            if signal.value == 0 {
                state.unclaimed.push_back(id);
            } else {
                state.signals.push(Judge::promise(signal, id, site));
            }
        }
        let batch = Batch {
            queue,
            site,
            waits: submit.waits.to_vec(),
            takes,
            command_buffers,
            signals: submit.signals.to_vec(),
            known: None,
            end: None,
        };
        self.batches.insert(id, batch);
        self.queues[queue].batches.push_back(id);
        self.queues[queue].unstarted.push_back(id);
        self.advance(out);
        if self.queues[queue].unstarted.back() == Some(&id) {
            let known = self.known.clone();
            self.hold(id, known);
            self.find_cycle(id, out);
        }
        id
    }

    /// The batch cannot start: its commands are submitted, and nothing is known of them.
    fn hold(&mut self, id: u64, known: Past) {
        let Some(batch) = self.batches.get_mut(&id) else { return };
        batch.known = Some(known);
        for recorded in batch.command_buffers.iter().flat_map(|part| part.commands.iter()) {
            let Some(state) = recorded.event().and_then(|event| self.events.get_mut(&event)) else { continue };
            let sets = matches!(recorded.command, Command::Set { .. });
            state.held.push(Held { batch: id, queue: batch.queue, site: recorded.site, sets });
            let open = state.open.iter_mut().filter(|wait| wait.site == recorded.site);
            open.for_each(|wait| wait.submitted = true);
        }
    }

    fn submit_command_buffer(&mut self, handle: Handle, id: u64, site: Site, out: &mut Vec<Verdict>) -> Part {
        let known = self.command_buffer(handle).clone();
        let object = Object::new(Kind::CommandBuffer, handle);
        let in_flight = self.in_flight(&known);
        if !known.simultaneous {
            let certain = Certain { in_flight: in_flight.is_some(), ..Certain::default() };
            let case = Case { conflict: in_flight, ..Case::new(site, object, Reason::InFlight) };
            ask(&certain, &nothing_tracked(), &Occurrence::BufferSubmitted { buffer: 0 }, &case, out);
        }
        if known.site.is_some() && in_flight.is_none() {
            let certain = Certain { open: known.state == State::Executable, ..Certain::default() };
            let case = Case { conflict: known.site, ..Case::new(site, object, Reason::NotRecorded) };
            ask(&certain, &nothing_tracked(), &Occurrence::BufferUsed { buffer: 0 }, &case, out);
        }
        for secondary in known.secondaries.iter().chain([&handle]) {
            let batches = &self.batches;
            let Some(command_buffer) = self.command_buffers.get_mut(secondary) else { continue };
            command_buffer.submitted = true;
            command_buffer.batches.retain(|batch| batches.contains_key(batch));
            command_buffer.batches.push(id);
        }
        let command_buffer = self.command_buffer(handle);
        if command_buffer.one_time {
            command_buffer.state = State::Initial;
            command_buffer.site = Some(site);
        }
        let (pool, begun) = (command_buffer.pool, command_buffer.begun);
        let newest = &mut self.pools.entry(pool).or_default().newest_submitted;
        *newest = begun.max(*newest);
        Part { commands: known.commands, first: !known.submitted }
    }

    /// Starts what can start.
    pub(super) fn advance(&mut self, out: &mut Vec<Verdict>) {
        let mut at = 0;
        while at < self.queues.len() {
            let Some(id) = self.queues[at].unstarted.front().copied() else {
                at += 1;
                continue;
            };
            match self.ready(&self.batches[&id]) {
                Some(after) => {
                    let signals = !self.batches[&id].signals.is_empty();
                    self.run(id, &after, out);
                    at = if signals { 0 } else { at };
                }
                None => at += 1,
            }
        }
    }

    /// What the batch's semaphore waits bring before which stages; `None` if a signal is missing.
    fn ready(&self, batch: &Batch) -> Option<Vec<(u8, Past)>> {
        let mut after = Vec::with_capacity(batch.waits.len());
        for wait in batch.waits.iter().filter(|wait| wait.value > 0) {
            let state = self.semaphores.get(&wait.semaphore);
            let past = state.map_or(Some(self.known.clone()), |state| state.after(wait.value, &self.known))?;
            after.push((second_scope(wait.stages), past));
        }
        for (taken, second) in &batch.takes {
            match self.batches.get(taken).map(|taken| &taken.end) {
                Some(Some((_, past))) => after.push((*second, past.clone())),
                Some(None) => return None,
                None => after.push((*second, self.known.clone())),
            }
        }
        Some(after)
    }

    /// A batch starts: its commands in order, then its signals.
    fn run(&mut self, id: u64, after: &[(u8, Past)], out: &mut Vec<Verdict>) {
        let Some(batch) = self.batches.get_mut(&id) else { return };
        let (at, site) = (batch.queue, batch.site);
        let (command_buffers, known) = (core::mem::take(&mut batch.command_buffers), batch.known.take());
        let signals = core::mem::take(&mut batch.signals);
        let queue = &mut self.queues[at];
        queue.unstarted.pop_front();
        match known {
            Some(known) => {
                queue.scopes.after(EVERY, &known);
                for event in command_buffers.iter().flat_map(|part| part.commands.iter().filter_map(Recorded::event)) {
                    if let Some(state) = self.events.get_mut(&event) {
                        state.held.retain(|held| held.batch != id);
                    }
                }
            }
            None if queue.seen_version != self.known_version => {
                queue.scopes.after(EVERY, &self.known);
                queue.seen_version = self.known_version;
            }
            None => {}
        }
        after.iter().for_each(|(second, past)| queue.scopes.after(*second, past));
        for part in &command_buffers {
            for recorded in part.commands.iter() {
                self.execute(Here { batch: id, queue: at, site, recorded, first: part.first }, out);
            }
        }
        let scopes = &mut self.queues[at].scopes;
        let place = scopes.next(EVERY);
        let end = scopes.upto(EVERY);
        for signal in &signals {
            let past = self.queues[at].scopes.upto(first_scope(signal.stages));
            let state = self.semaphores.entry(signal.semaphore).or_default();
            let promise = state.signals.iter_mut().find(|s| s.batch == id && s.value == signal.value);
            let promise = promise.map(|promise| {
                promise.started = Some((place, past));
                promise.clone()
            });
            if let Some(promise) = promise {
                self.judge_signal(signal.semaphore, &promise, out);
            }
        }
        if let Some(batch) = self.batches.get_mut(&id) {
            batch.signals = signals;
            batch.end = Some((place.position, end));
        }
    }

    fn execute(&mut self, here: Here<'_>, out: &mut Vec<Verdict>) {
        let Here { batch: id, queue: at, site, recorded, first } = here;
        let handle = self.queues[at].handle;
        match recorded.command {
            Command::Barrier { first, second } => self.queues[at].scopes.barrier(first, second),
            Command::Access { access, classes } => {
                let scopes = &mut self.queues[at].scopes;
                let place = scopes.next(classes);
                let Some(buffer) = self.buffers.get_mut(&access.buffer) else { return };
                if self.queues.len() > 1
                    && let Some((other, seen)) = buffer.races(&access, place, &self.queues[at].scopes)
                {
                    let binding = access.through_binding || other.through_binding;
                    let case = Case {
                        command: Some(recorded.site),
                        conflict: Some(seen.site),
                        place: Some(Object::new(Kind::Queue, self.queues[seen.place.queue].handle)),
                        ..Case::new(
                            site,
                            Object::new(Kind::Buffer, access.buffer),
                            if binding { Reason::RaceThroughBinding } else { Reason::Race },
                        )
                    };
                    let overlap = Occurrence::Overlap { write: access.write || other.write, ordered: false };
                    ask(&Certain::default(), &nothing_tracked(), &overlap, &case, out);
                }
                buffer.note(&access, Seen { place, batch: id, site: recorded.site }, &self.known);
            }
            Command::Set { event, first: scope, generation } => {
                self.gone(event, here, out);
                let state = self.events.entry(event).or_default();
                state.settle(&self.known);
                let generation = if first {
                    state.unsubmitted.retain(|g| *g != generation);
                    generation
                } else {
                    state.generate()
                };
                let scopes = &mut self.queues[at].scopes;
                let unordered = |wait: &&Wait| {
                    let meets = wait.place.queue == at && wait.place.classes & scope != 0;
                    !meets && !scopes.follows(wait.place, EVERY)
                };
                let waits: Vec<Wait> = state.waits.iter().filter(unordered).copied().collect();
                let place = scopes.next(scope);
                let past = scopes.upto(scope);
                self.judge_waits(event, here, waits, Some(generation), out);
                let state = self.events.entry(event).or_default();
                state.queue_set(
                    generation,
                    Origin { place: Some(place), batch: id, site: recorded.site },
                    past,
                    &self.known,
                );
                self.remember(event, site, Some(recorded.command_buffer), Some(handle));
            }
            Command::Reset { event, first: scope } => {
                self.gone(event, here, out);
                let state = self.events.entry(event).or_default();
                state.settle(&self.known);
                if !first {
                    state.live = None;
                }
                let scope = if scope == 0 { EVERY } else { scope };
                let scopes = &mut self.queues[at].scopes;
                let unordered = |wait: &&Wait| !scopes.follows(wait.place, scope) && !state.set_after(at, wait.place);
                let waits: Vec<Wait> = state.waits.iter().filter(unordered).copied().collect();
                let place = scopes.next(scope);
                let others = state.queue_of_newest().filter(|(queue, _)| *queue != at);
                let elsewhere = others.or(state.held_elsewhere(at));
                self.judge_queue(event, here, elsewhere, out);
                self.judge_waits(event, here, waits, None, out);
                let state = self.events.entry(event).or_default();
                state.queue_reset(Origin { place: Some(place), batch: id, site: recorded.site });
                self.remember(event, site, Some(recorded.command_buffer), Some(handle));
            }
            Command::Wait { event, second } => self.execute_wait(here, event, second, out),
        }
    }

    /// The command names an event that was destroyed before the command buffer was submitted.
    fn gone(&mut self, event: Handle, here: Here<'_>, out: &mut Vec<Verdict>) {
        let Some(gone) = self.events.get(&event).and_then(|state| state.gone) else { return };
        let place = Some(Object::new(Kind::CommandBuffer, here.recorded.command_buffer));
        let case = Case { conflict: Some(gone), place, ..here.case(event, Reason::EventGone) };
        let certain = Certain { named: true, ..Certain::default() };
        ask(&certain, &nothing_tracked(), &Occurrence::EventDestroyed { event: 0 }, &case, out);
    }

    /// The command sets the event for a generation, or resets it, and these waits are not ordered before.
    fn judge_waits(
        &mut self,
        event: Handle,
        here: Here<'_>,
        waits: Vec<Wait>,
        set: Option<u64>,
        out: &mut Vec<Verdict>,
    ) {
        let conflict = waits.iter().find(|wait| set.is_none_or(|set| wait.generation < set));
        let case = Case {
            generation: conflict.map(|wait| wait.generation),
            conflict: conflict.map(|wait| wait.site),
            place: conflict.map(|wait| Object::new(Kind::CommandBuffer, wait.command_buffer)),
            ..here.case(event, Reason::WaitUnordered)
        };
        let certain = Certain { waits: waits.iter().map(|wait| wait.generation).collect(), ..Certain::default() };
        let occurrence = match set {
            Some(set) => Occurrence::EventSet { event: 0, set },
            None => Occurrence::QueueReset { event: 0, set: u64::MAX },
        };
        ask(&certain, &nothing_tracked(), &occurrence, &case, out);
    }

    /// Whether the event is waited on or reset where it is set; `true` if not.
    fn judge_queue(
        &mut self,
        event: Handle,
        here: Here<'_>,
        set_on: Option<(usize, Site)>,
        out: &mut Vec<Verdict>,
    ) -> bool {
        let case = Case {
            conflict: set_on.map(|(_, site)| site),
            place: set_on.map(|(queue, _)| Object::new(Kind::Queue, self.queues[queue].handle)),
            ..here.case(event, Reason::OtherQueue)
        };
        let certain = Certain { set_queue: set_on.map(|(queue, _)| queue as QueueId), ..Certain::default() };
        let (event, queue) = (0, here.queue as QueueId);
        let occurrence = match here.recorded.command {
            Command::Reset { .. } => Occurrence::ResetRecorded { event, queue },
            _ => Occurrence::WaitRecorded { event, queue },
        };
        ask(&certain, &nothing_tracked(), &occurrence, &case, out)
    }

    fn execute_wait(&mut self, here: Here<'_>, event: Handle, second: u8, out: &mut Vec<Verdict>) {
        self.gone(event, here, out);
        let Here { batch: id, queue: at, site, recorded, .. } = here;
        let handle = self.queues[at].handle;
        let state = self.events.entry(event).or_default();
        state.settle(&self.known);
        let open =
            state.open.iter().position(|o| o.site == recorded.site && o.command_buffer == recorded.command_buffer);
        let own = open.and_then(|open| state.open.swap_remove(open).generation);
        let release = state.release(own, &self.queues[at].scopes, &self.known);
        let gone = state.gone.is_some();
        let object = Object::new(Kind::Event, event);
        let case =
            |conflict, reason| Case { generation: Some(release.generation), conflict, ..here.case(event, reason) };
        let set_on = release.set_on.or(state.held_elsewhere(at));
        let elsewhere = self.judge_queue(event, here, set_on, out);
        if gone || elsewhere {
            // What releases it there has no meaning.
        } else if let Some((missing, reason)) = release.never {
            ask(&Certain::default(), &nothing_tracked(), &Occurrence::Stuck, &case(missing, reason), out);
            let (site, command_buffer) = (recorded.site, recorded.command_buffer);
            self.queues[at].hung.get_or_insert(Hung { batch: id, event, site, command_buffer, missing });
        } else {
            let (set_by, conflict, reason) = match release.stale {
                Some((by, conflict, reason)) => (by, Some(conflict), reason),
                None => (release.generation, None, Reason::OtherSet),
            };
            let certain = Certain { set_by: Some(set_by), ..Certain::default() };
            let passes = Occurrence::WaitPasses { event: 0, set: release.generation };
            ask(&certain, &nothing_tracked(), &passes, &case(conflict, reason), out);
        }
        let scopes = &mut self.queues[at].scopes;
        let place = scopes.next(second);
        if release.set_on.is_some_and(|(queue, _)| queue == at) {
            scopes.after(second, &release.past);
        }
        let wait = Wait {
            place,
            generation: release.generation,
            batch: id,
            site: recorded.site,
            command_buffer: recorded.command_buffer,
        };
        let state = self.events.entry(event).or_default();
        // The newest of a queue and its stages stands for those before it.
        state.waits.retain(|w| w.place.queue != at || w.place.classes != second || w.generation != release.generation);
        state.waits.push(wait);
        let moment = Moment { site, object, command_buffer: Some(recorded.command_buffer), queue: Some(handle) };
        state.remember(moment);
    }

    // What the host comes to know ----------------------------------------------------------------

    /// The host knows that all this has ended.
    pub(super) fn learn(&mut self, past: &Past) {
        self.known.join(past);
        self.known_version += 1;
        for queue in &mut self.queues {
            while let Some(id) = queue.batches.front()
                && let Some(Some((end, _))) = self.batches.get(id).map(|batch| &batch.end)
                && self.known.covers_all(queue.scopes.queue(), *end)
            {
                let id = *id;
                queue.batches.pop_front();
                for signal in self.batches.remove(&id).into_iter().flat_map(|batch| batch.signals) {
                    if let Some(state) = self.semaphores.get_mut(&signal.semaphore) {
                        state.forget(signal.value);
                    }
                }
                queue.hung.take_if(|hung| hung.batch <= id);
            }
        }
    }

    /// A batch has ended: so has all before it.
    pub(super) fn batch_ended(&mut self, id: u64, out: &mut Vec<Verdict>) {
        let Some(batch) = self.batches.get(&id) else { return };
        let queue = batch.queue;
        // What was not seen to start has started all the same: something signalled out of view.
        while self.batches.get(&id).is_some_and(|batch| batch.end.is_none()) {
            let Some(front) = self.queues[queue].unstarted.front().copied() else { break };
            self.run(front, &[], out);
        }
        if let Some((_, past)) = self.batches.get(&id).and_then(|batch| batch.end.clone()) {
            self.learn(&past);
        }
        self.advance(out);
    }

    pub(super) fn queue_idle(&mut self, queue: usize, out: &mut Vec<Verdict>) {
        if let Some(last) = self.queues[queue].batches.back().copied() {
            self.batch_ended(last, out);
        }
    }

    /// The driver did not take a batch.
    pub(super) fn refuse(&mut self, id: u64) {
        let Some(batch) = self.batches.remove(&id) else { return };
        self.queues[batch.queue].batches.retain(|b| *b != id);
        self.queues[batch.queue].unstarted.retain(|b| *b != id);
        self.queues[batch.queue].hung.take_if(|hung| hung.batch == id);
        self.events.values_mut().for_each(|event| event.refuse(id));
        self.buffers.values_mut().for_each(|buffer| buffer.refuse(id));
        for state in self.semaphores.values_mut() {
            state.signals.retain(|signal| signal.batch != id);
            state.unclaimed.retain(|batch| *batch != id);
        }
        self.fences.values_mut().for_each(|fence| fence.batches.retain(|batch| *batch != id));
        for command_buffer in self.command_buffers.values_mut().filter(|c| c.batches.contains(&id)) {
            command_buffer.batches.retain(|batch| *batch != id);
            (command_buffer.refused, command_buffer.submitted) = (true, false);
            command_buffer.state = State::Executable;
        }
    }

    // What blocks --------------------------------------------------------------------------------

    /// Whether a batch that cannot start waits for a value that only comes after it.
    fn find_cycle(&mut self, id: u64, out: &mut Vec<Verdict>) {
        let mut path = Vec::new();
        let Some((semaphore, value, first)) = self.comes_before(id, id, &mut path) else { return };
        let case = Case {
            generation: Some(value),
            conflict: Some(first),
            ..Case::new(self.batches[&id].site, Object::new(Kind::Semaphore, semaphore), Reason::Cycle)
        };
        ask(&Certain::default(), &nothing_tracked(), &Occurrence::Stuck, &case, out);
    }

    /// Whether `goal` has to end before `id` can start: by which semaphore, value and submission.
    fn comes_before(&self, id: u64, goal: u64, path: &mut Vec<u64>) -> Option<(Handle, u64, Site)> {
        if path.contains(&id) {
            return None;
        }
        path.push(id);
        let queue = self.batches[&id].queue;
        for earlier in self.queues[queue].unstarted.iter().take_while(|b| **b <= id) {
            for wait in &self.batches[earlier].waits {
                let Some(state) = self.semaphores.get(&wait.semaphore) else { continue };
                if wait.value == 0 || state.external || state.after(wait.value, &self.known).is_some() {
                    continue;
                }
                let Some((signaller, site)) = state.unstarted(wait.value) else { continue };
                if signaller == goal || self.comes_before(signaller, goal, path).is_some() {
                    return Some((wait.semaphore, wait.value, site));
                }
            }
        }
        None
    }

    /// What keeps the host wait of a thread from returning: a sentence a line; nothing if the thread is not blocked.
    pub fn stuck(&self, thread: u32, name: &dyn Fn(Object) -> String) -> String {
        let Some(entered) = self.entered.get(&thread) else { return String::new() };
        let call = |site: Site| format!("{} (#{})", site.call, site.n);
        let mut lines = Vec::new();
        let mut batches = Vec::new();
        let semaphore = |handle, value| format!("{} = {value}", name(Object::new(Kind::Semaphore, handle)));
        match &entered.why {
            Why::Submit { .. } => return String::new(),
            Why::Semaphores { waits, .. } => {
                for (handle, value) in waits {
                    let signals = self.semaphores.get(handle).map_or(&[][..], |state| &state.signals);
                    let signal = signals.iter().filter(|s| s.value >= *value).min_by_key(|s| s.value);
                    match signal {
                        Some(signal) => batches.push(signal.batch),
                        None if self.semaphores.get(handle).is_some_and(|s| s.after(*value, &self.known).is_some()) => {
                        }
                        None => lines.push(format!("nobody was asked to signal {}", semaphore(*handle, *value))),
                    }
                }
            }
            Why::Fences { fences, .. } => {
                for fence in fences {
                    match self.fences.get(fence).and_then(|fence| fence.batches.back()) {
                        Some(batch) => batches.push(*batch),
                        None => {
                            let fence = name(Object::new(Kind::Fence, *fence));
                            lines.push(format!("no batch was submitted that signals {fence}"));
                        }
                    }
                }
            }
            Why::QueueIdle { queue } => {
                let queue = self.queues.iter().find(|q| q.handle == *queue);
                batches.extend(queue.and_then(|queue| queue.batches.back()));
            }
            Why::DeviceIdle => batches.extend(self.queues.iter().filter_map(|queue| queue.batches.back())),
        }
        let mut seen = Vec::new();
        while let Some(id) = batches.pop() {
            let Some(batch) = self.batches.get(&id).filter(|_| !seen.contains(&id)) else { continue };
            seen.push(id);
            let queue = &self.queues[batch.queue];
            let queue_name = name(Object::new(Kind::Queue, queue.handle));
            let waits_for =
                format!("{} waits for the batch of {} on {queue_name}", call(entered.site), call(batch.site));
            if let Some(hung) = queue.hung.filter(|hung| hung.batch <= id) {
                let event = name(Object::new(Kind::Event, hung.event));
                let buffer = name(Object::new(Kind::CommandBuffer, hung.command_buffer));
                let at = self.batches.get(&hung.batch).map_or(batch.site, |hung| hung.site);
                let missing = match hung.missing {
                    Some(reset) => format!("the last that was done to it is {}", call(reset)),
                    None => String::from("it was never set"),
                };
                lines.push(format!(
                    "{waits_for}; that queue stands at {} in {buffer}, submitted by {}: it waits for {event}, and no set \
                     of it was submitted before ({missing})",
                    call(hung.site),
                    call(at)
                ));
                continue;
            }
            let Some(front) = queue.unstarted.front().filter(|front| **front <= id) else {
                lines.push(format!("{waits_for}; nothing in the calls holds it up"));
                continue;
            };
            let front = &self.batches[front];
            for wait in &front.waits {
                let Some(state) = self.semaphores.get(&wait.semaphore) else { continue };
                if wait.value == 0 || state.after(wait.value, &self.known).is_some() {
                    continue;
                }
                let value = semaphore(wait.semaphore, wait.value);
                let stands = format!(
                    "{waits_for}; that queue stands at the batch of {}, which waits for {value}",
                    call(front.site)
                );
                match state.unstarted(wait.value) {
                    Some((signaller, site)) => {
                        lines.push(format!("{stands}, to be signalled by {}", call(site)));
                        batches.push(signaller);
                    }
                    None => lines.push(format!("{stands}, and nobody was asked to signal that")),
                }
            }
        }
        lines.join("\n")
    }
}
