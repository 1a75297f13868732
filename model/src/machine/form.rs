//! The machine's part of a canonical state; see [`Canon`].

use super::{Lease, Machine, Open, Point, Stream};
use crate::canon::{Canon, Space};
use crate::handle::{EventId, StreamId, WaiterId};
use crate::slot::Lifecycle;

impl Machine {
    /// Names streams, those that still drain after the given ones, and their timelines.
    pub fn assign(&self, c: &mut Canon, streams: &[StreamId]) {
        let draining = self.streams.iter().filter(|(_, _, s)| s.closed).map(|(i, g, _)| StreamId::from((i, g)));
        for id in streams.iter().copied().chain(draining) {
            if let Some(s) = self.streams.get(id.index, id.generation) {
                c.assign(Space::Stream, u64::from(id.index));
                c.assign(Space::Semaphore, u64::from(s.lane.timeline));
            }
        }
    }

    /// Every point that something names and that has not passed, as (timeline, value): recordings,
    /// frontiers of the slots that matter, waits of open batches, waiters, and each stream's newest promise.
    pub fn named_points<'a>(&'a self, matters: impl Fn(u32) -> bool + 'a) -> impl Iterator<Item = (u32, u64)> + 'a {
        let recordings = self.events.iter().filter_map(|(_, _, e)| Some(e.recording?.point));
        let slots = (0..).zip(&self.slots).filter(move |(i, s)| s.state != Lifecycle::Reusable && matters(*i));
        // Of two points of one stream the later one decides.
        let last =
            |frontier: &'a [Point], p: &Point| !frontier.iter().any(|q| q.stream == p.stream && q.value > p.value);
        let frontiers = slots.flat_map(move |(_, s)| s.frontier.iter().filter(move |p| last(&s.frontier, p)).copied());
        let waits = self.streams.iter().flat_map(|(_, _, s)| s.open_points.iter().copied());
        let waiters = self.waiters.iter().map(|(_, _, w)| w.point);
        // A recording without a slot, or a host wait for the stream, can name what was submitted last.
        let newest = self
            .streams
            .iter()
            .map(|(index, generation, s)| Point { stream: (index, generation).into(), value: s.lane.submitted });
        let all = recordings.chain(frontiers).chain(waits).chain(waiters).chain(newest);
        all.filter(|p| !self.passed(*p)).filter_map(|p| Some((self.timeline(p.stream)?, p.value)))
    }

    /// Writes streams in the order of their names, then the given events. What is left out cannot
    /// matter: which of several free buffers or slots is taken next, in which order slots were
    /// parked, by how much a point was passed, and a recording that has passed and holds no slot.
    pub fn write(&self, c: &mut Canon, events: &[EventId]) {
        c.flag(self.lost);
        for name in 0..c.assigned(Space::Stream).len() {
            let index = c.raw(Space::Stream, name).unwrap_or(0) as u32;
            if let Some((_, s)) = self.streams.at(index) {
                self.write_stream(s, c);
            }
        }
        for event in events {
            let recording = self.events.get(event.index, event.generation).and_then(|e| e.recording);
            match recording {
                Some(r) if r.slot.is_some() || !self.passed(r.point) => {
                    c.number(1);
                    self.write_point(r.point, c);
                    c.name(Space::Queue, u64::from(r.queue));
                    match r.slot {
                        Some(slot) => c.name(Space::DeviceEvent, u64::from(slot)),
                        None => c.number(255),
                    }
                    c.flag(r.mark == self.queues[r.queue as usize].issued);
                }
                _ => c.number(0),
            }
        }
        if !self.guards.are_complete() {
            // A machine without a guard may free what is still in use.
            self.free.iter().for_each(|slot| c.name(Space::DeviceEvent, u64::from(*slot)));
        }
    }

    fn write_stream(&self, s: &Stream, c: &mut Canon) {
        let Stream { lane, companion, closed, open, .. } = s;
        c.name(Space::Queue, u64::from(lane.queue));
        match companion {
            Some(companion) => c.name(Space::Stream, u64::from(companion.index)),
            None => c.number(255),
        }
        c.flag(*closed);
        c.flag(companion.is_some_and(|companion| {
            let newest = self.newest(companion);
            newest.is_ok_and(|newest| newest.value <= s.follows && !self.passed(newest))
        }));
        c.number(c.rank(lane.timeline, lane.submitted));
        c.flag(open.is_some());
        if let Some(Open { lease, ended }) = open {
            c.flag(*ended);
            match lease {
                Some(lease) => c.name(Space::Buffer, u64::from(lease.id())),
                None => c.number(255),
            }
        }
        c.number(s.open_slots.len() as u64);
        let start = c.bytes().len();
        s.open_slots.iter().for_each(|slot| c.name(Space::DeviceEvent, u64::from(*slot)));
        c.sort_records(start, 1);
        c.number(s.open_points.iter().filter(|p| !self.passed(**p)).count() as u64);
        let start = c.bytes().len();
        s.open_points.iter().filter(|p| !self.passed(**p)).for_each(|p| self.write_point(*p, c));
        c.sort_records(start, 2);
        if !self.guards.are_complete() {
            // So may a machine without a guard free buffers, and lose count of values.
            let id = |buffer: u32| u64::from(Lease::at(lane.timeline, buffer));
            lane.free_buffers.iter().for_each(|buffer| c.name(Space::Buffer, id(*buffer)));
            s.in_flight.iter().filter_map(|b| b.buffer).for_each(|buffer| c.name(Space::Buffer, id(buffer)));
            c.number(lane.submitted.saturating_sub(s.reached));
            c.number(lane.submitted.saturating_sub(s.retired));
        }
    }

    /// Writes the slots that were named, then, if asked for, the others that are not reusable, whose
    /// order means nothing. The device holds nothing that names those, so they matter to `bounded` alone.
    pub fn write_slots(&self, c: &mut Canon, others: bool) {
        let streams = c.assigned(Space::Stream).len();
        for name in 0..c.assigned(Space::DeviceEvent).len() {
            let index = c.raw(Space::DeviceEvent, name).unwrap_or(0) as usize;
            let Some(slot) = self.slots.get(index) else { continue };
            c.number(slot.state as u64);
            c.number(u64::from(slot.open_count));
            // The set's own point stands with the event while the slot is Recorded.
            let from = usize::from(slot.state == Lifecycle::Recorded);
            self.write_frontier(slot.frontier.get(from..).unwrap_or(&[]), streams, c);
            if slot.state == Lifecycle::Recorded && !self.passed(slot.frontier[0]) {
                self.write_waited(&slot.frontier[1..], streams, c);
            }
        }
        let start = c.bytes().len();
        for (index, slot) in self.slots.iter().enumerate() {
            if others && slot.state != Lifecycle::Reusable && !c.assigned(Space::DeviceEvent).contains(&(index as u64))
            {
                self.write_frontier(&slot.frontier, streams, c);
            }
        }
        c.sort_records(start, streams);
    }

    /// The newest point of each stream that has not passed.
    fn write_frontier(&self, frontier: &[Point], streams: usize, c: &mut Canon) {
        for name in 0..streams {
            let index = c.raw(Space::Stream, name).unwrap_or(0) as u32;
            let mine = frontier.iter().filter(|p| p.stream.index == index && !self.passed(**p));
            let newest = mine.map(|p| p.value).max();
            let timeline = self.streams.at(index).map_or(0, |(_, s)| s.lane.timeline);
            c.number(newest.map_or(0, |value| c.rank(timeline, value)));
        }
    }

    /// Streams that wait for the generation already, even where that wait is known to have passed: another is dropped.
    fn write_waited(&self, waits: &[Point], streams: usize, c: &mut Canon) {
        for name in 0..streams {
            let index = c.raw(Space::Stream, name).unwrap_or(0) as u32;
            let generation = self.streams.at(index).map(|(generation, _)| generation);
            c.flag(waits.iter().any(|p| p.stream.index == index && Some(p.stream.generation) == generation));
        }
    }

    /// Writes what a waiter waits for.
    pub fn write_waiter(&self, waiter: WaiterId, c: &mut Canon) {
        match self.waiters.get(waiter.index, waiter.generation) {
            Some(waiter) => self.write_point(waiter.point, c),
            None => c.number(254),
        }
    }

    /// Writes a point in two bytes.
    pub fn write_point(&self, point: Point, c: &mut Canon) {
        match self.streams.get(point.stream.index, point.stream.generation) {
            Some(s) if !self.passed(point) => {
                c.name(Space::Stream, u64::from(point.stream.index));
                c.number(c.rank(s.lane.timeline, point.value));
            }
            _ => {
                c.number(255);
                c.number(0);
            }
        }
    }
}
