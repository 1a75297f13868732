//! Semaphores and fences: who signals them, and what a signal proves.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::call::{Handle, Site};
use super::order::{Past, Place};
use super::verdict::{Kind, Object, Reason, Verdict};
use super::{Case, Certain, Judge, Why, ask, nothing_tracked};
use crate::{Occurrence, Rule, Signal};

#[derive(Debug, Default)]
pub(super) struct Semaphore {
    /// It was created in view.
    created: bool,
    /// Others may signal it.
    pub external: bool,
    /// The value that it is certain to have reached.
    reached: u64,
    pub signals: Vec<Promise>,
    /// Signals of a binary semaphore that nothing waits for yet, by batch.
    pub unclaimed: VecDeque<u64>,
}

/// A signal that may not have executed.
#[derive(Clone, Debug)]
pub(super) struct Promise {
    pub value: u64,
    pub batch: u64,
    pub site: Site,
    /// Where it is in its queue and what comes before it, once its batch can start.
    pub started: Option<(Place, Past)>,
}

impl Semaphore {
    pub fn new(reached: u64, external: bool) -> Semaphore {
        Semaphore { created: true, external, reached, ..Semaphore::default() }
    }

    /// What a wait for this value comes after: `None` if no such signal is known yet.
    pub fn after(&self, value: u64, known: &Past) -> Option<Past> {
        if self.reached >= value || self.external || !self.created && self.signals.is_empty() {
            return Some(known.clone());
        }
        let enough = self.signals.iter().filter(|s| s.value >= value && s.started.is_some());
        enough.min_by_key(|s| s.value).and_then(|s| Some(s.started.as_ref()?.1.clone()))
    }

    /// The batch that is to signal exactly this value and has not started.
    pub fn unstarted(&self, value: u64) -> Option<(u64, Site)> {
        self.signals.iter().find(|s| s.value == value && s.started.is_none()).map(|s| (s.batch, s.site))
    }

    /// The greatest value that anybody was asked to signal.
    fn promised(&self) -> u64 {
        self.signals.iter().map(|s| s.value).max().unwrap_or(0)
    }

    /// The newest signal that anybody has asked for.
    pub fn newest(&self) -> Option<Site> {
        self.signals.iter().max_by_key(|s| s.value).map(|s| s.site)
    }

    pub fn forget(&mut self, value: u64) {
        self.reached = self.reached.max(value);
        self.signals.retain(|s| s.value > value || s.started.is_none());
    }
}

/// A wait for a value that no signal brings yet.
struct Missing {
    /// Who waits.
    site: Site,
    semaphore: Handle,
    value: u64,
}

/// A fence: batches that signal it and may not have ended, oldest first. Seen signalled, it proves the oldest.
#[derive(Debug, Default)]
pub(super) struct Fence {
    pub batches: VecDeque<u64>,
}

impl Judge {
    /// A signal of a timeline takes effect at a place in a queue: is it greater than all that may come before?
    pub(super) fn judge_signal(&mut self, semaphore: Handle, signal: &Promise, out: &mut Vec<Verdict>) {
        let Some((place, past)) = &signal.started else { return };
        let state = self.semaphores.entry(semaphore).or_default();
        let others = state.signals.iter().filter(|s| s.batch != signal.batch || s.value != signal.value);
        let started: Vec<&Promise> = others.filter(|s| s.started.is_some()).collect();
        let object = Object::new(Kind::Semaphore, semaphore);
        let ordered = |other: &Promise| {
            let Some((earlier, _)) = &other.started else { return true };
            other.batch != signal.batch && (earlier.queue == place.queue || past.covers(*earlier))
        };
        let highest = started.iter().max_by_key(|s| s.value);
        let value = highest.map_or(state.reached, |s| s.value.max(state.reached));
        let mut case = Case {
            generation: Some(signal.value),
            conflict: highest.map(|s| s.site),
            ..Case::new(signal.site, object, Reason::NotGreater)
        };
        let occurrence = |value| Occurrence::Signalled(Signal { semaphore: 0, value });
        let certain = Certain { value, ..Certain::default() };
        if !ask(&certain, &nothing_tracked(), &occurrence(signal.value), &case, out)
            && let Some(other) = started.iter().find(|other| !ordered(other))
        {
            // The other one may come later, and is smaller.
            (case.conflict, case.reason) = (Some(other.site), Reason::SignalsUnordered);
            let certain = Certain { value: signal.value, ..Certain::default() };
            ask(&certain, &nothing_tracked(), &occurrence(other.value), &case, out);
        }
    }

    pub(super) fn signal_semaphore(&mut self, semaphore: Handle, value: u64, site: Site, out: &mut Vec<Verdict>) {
        let host = self.queue(HOST_QUEUE);
        let place = self.queues[host].scopes.next(super::order::EVERY);
        let mut past = self.known.clone();
        past.reach(place);
        let started = Some((place, past.clone()));
        self.batch_count += 1;
        let signal = Promise { value, batch: self.batch_count, site, started };
        // It takes effect at once. What queues are still to signal has to be greater (VUID-VkSemaphoreSignalInfo-value-03259).
        let state = self.semaphores.entry(semaphore).or_default();
        let pending = state.signals.iter().min_by_key(|s| s.value);
        let object = Object::new(Kind::Semaphore, semaphore);
        let mut case = Case { generation: Some(value), ..Case::new(site, object, Reason::NotGreater) };
        let occurrence = |value| Occurrence::Signalled(Signal { semaphore: 0, value });
        let certain = |value| Certain { value, ..Certain::default() };
        if !ask(&certain(state.reached), &nothing_tracked(), &occurrence(value), &case, out)
            && let Some(pending) = pending
        {
            (case.conflict, case.reason) = (Some(pending.site), Reason::SignalsUnordered);
            ask(&certain(value), &nothing_tracked(), &occurrence(pending.value), &case, out);
        }
        let state = self.semaphores.entry(semaphore).or_default();
        state.signals.push(signal);
        self.learn(&past);
        self.advance(out);
        self.semaphores.entry(semaphore).or_default().forget(value);
    }

    /// The counter has reached a value: every signal up to it has executed.
    pub(super) fn counter_is(&mut self, semaphore: Handle, value: u64, out: &mut Vec<Verdict>) {
        let Some(state) = self.semaphores.get(&semaphore) else { return };
        let done: Vec<u64> = state.signals.iter().filter(|s| s.value <= value).map(|s| s.batch).collect();
        done.into_iter().for_each(|batch| self.batch_ended(batch, out));
        self.semaphores.entry(semaphore).or_default().forget(value);
        self.advance(out);
    }

    pub(super) fn fence_signaled(&mut self, fence: Handle, out: &mut Vec<Verdict>) {
        let oldest = self.fences.get(&fence).and_then(|fence| fence.batches.front().copied());
        if let Some(batch) = oldest {
            self.batch_ended(batch, out);
        }
    }

    pub(super) fn reset_fence(&mut self, fence: Handle, site: Site, out: &mut Vec<Verdict>) {
        let batches = &self.batches;
        let state = self.fences.entry(fence).or_default();
        state.batches.retain(|batch| batches.contains_key(batch));
        let conflict = state.batches.front().map(|batch| batches[batch].site);
        let certain = Certain { fence_in_flight: conflict.is_some(), ..Certain::default() };
        let case = Case { conflict, ..Case::new(site, Object::new(Kind::Fence, fence), Reason::InFlight) };
        ask(&certain, &nothing_tracked(), &Occurrence::FenceReset { fence: 0 }, &case, out);
    }

    /// The semaphore is destroyed: what waits for a signal of it waits for ever.
    pub(super) fn semaphore_gone(&mut self, semaphore: Handle, site: Site, out: &mut Vec<Verdict>) {
        for missing in self.missing().into_iter().filter(|missing| missing.semaphore == semaphore) {
            self.never_comes(&missing, site, Some(missing.site), out);
        }
    }

    /// Batches and host waits for values that nobody signals.
    pub(super) fn never_signalled(&mut self, out: &mut Vec<Verdict>) {
        for missing in self.missing() {
            let state = &self.semaphores[&missing.semaphore];
            if state.promised() < missing.value {
                self.never_comes(&missing, missing.site, state.newest(), out);
            }
        }
        for entered in self.entered.values() {
            let Why::Semaphores { waits, any: false } = &entered.why else { continue };
            for (semaphore, value) in waits {
                let Some(state) = self.semaphores.get(semaphore) else { continue };
                if !state.external && state.created && state.reached.max(state.promised()) < *value {
                    let missing = Missing { site: entered.site, semaphore: *semaphore, value: *value };
                    self.never_comes(&missing, entered.site, state.newest(), out);
                }
            }
        }
    }

    /// What the first batches of queues wait for.
    fn missing(&self) -> Vec<Missing> {
        let fronts = self.queues.iter().filter_map(|queue| self.batches.get(queue.unstarted.front()?));
        let waits = fronts.flat_map(|batch| batch.waits.iter().map(|wait| (batch.site, wait)));
        let none_yet = |semaphore, value| {
            self.semaphores.get(&semaphore).is_some_and(|state| state.after(value, &self.known).is_none())
        };
        waits
            .filter(|(_, wait)| wait.value > 0 && none_yet(wait.semaphore, wait.value))
            .map(|(site, wait)| Missing { site, semaphore: wait.semaphore, value: wait.value })
            .collect()
    }

    fn never_comes(&self, missing: &Missing, site: Site, conflict: Option<Site>, out: &mut Vec<Verdict>) {
        let object = Object::new(Kind::Semaphore, missing.semaphore);
        let case =
            Case { generation: Some(missing.value), conflict, ..Case::new(site, object, Reason::NeverSignalled) };
        let reported = |v: &Verdict| v.rule == Rule::Progress && v.site == site && v.object == object;
        if !out.iter().any(reported) {
            ask(&Certain::default(), &nothing_tracked(), &Occurrence::Stuck, &case, out);
        }
    }

    pub(super) fn promise(signal: &super::SemaphoreValue, batch: u64, site: Site) -> Promise {
        Promise { value: signal.value, batch, site, started: None }
    }
}

/// The host signals semaphores as a queue of its own would.
pub(super) const HOST_QUEUE: Handle = Handle::MAX;
