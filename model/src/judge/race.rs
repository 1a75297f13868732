//! Accesses to buffers that nothing orders.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::call::{Access, Site};
use super::order::{Past, Place, Scopes};

/// Above this many accesses of one queue to one buffer, those that are over are looked for.
const SWEEP: usize = 64;

/// What was done to a buffer by one queue.
#[derive(Debug, Default)]
struct Lane {
    accesses: BTreeMap<Key, Seen>,
    sweep_at: usize,
}

/// A later access of the same range, kind and stages stands for the earlier one: whatever follows it follows both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    start: u64,
    end: u64,
    pub write: bool,
    classes: u8,
    pub through_binding: bool,
}

/// An access that a queue holds or held.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub place: Place,
    pub batch: u64,
    /// The command.
    pub site: Site,
}

#[derive(Debug, Default)]
pub(super) struct Buffer {
    /// 0 if it was not created in view.
    size: u64,
    lanes: Vec<Lane>,
}

impl Buffer {
    pub fn new(size: u64) -> Buffer {
        Buffer { size, ..Buffer::default() }
    }

    /// Accesses of other queues to the same bytes, one of the two a write, that nothing orders before this one.
    pub fn races(&self, access: &Access, place: Place, scopes: &Scopes) -> Option<(Key, Seen)> {
        let (start, end) = self.range(access);
        let others = self.lanes.iter().enumerate().filter(|(queue, _)| *queue != place.queue);
        let mut overlapping = others
            .flat_map(|(_, lane)| &lane.accesses)
            .filter(|(key, _)| key.start < end && start < key.end && (key.write || access.write));
        overlapping.find(|(_, seen)| !scopes.follows(seen.place, place.classes)).map(|(key, seen)| (*key, *seen))
    }

    pub fn note(&mut self, access: &Access, seen: Seen, known: &Past) {
        let (start, end) = self.range(access);
        let queue = seen.place.queue;
        if self.lanes.len() <= queue {
            self.lanes.resize_with(queue + 1, Lane::default);
        }
        let lane = &mut self.lanes[queue];
        let (write, through_binding) = (access.write, access.through_binding);
        lane.accesses.insert(Key { start, end, write, classes: seen.place.classes, through_binding }, seen);
        if lane.accesses.len() > lane.sweep_at.max(SWEEP) {
            lane.accesses.retain(|_, seen| !known.covers(seen.place));
            lane.sweep_at = 2 * lane.accesses.len();
        }
    }

    pub fn refuse(&mut self, batch: u64) {
        self.lanes.iter_mut().for_each(|lane| lane.accesses.retain(|_, seen| seen.batch != batch));
    }

    fn range(&self, access: &Access) -> (u64, u64) {
        let size = if self.size == 0 { u64::MAX } else { self.size };
        (access.offset, access.offset.saturating_add(access.size).min(size.max(access.offset)))
    }
}
