//! What the machine holds, one fact at a time, for whoever compares it with a description.

use super::{EventId, Lease, Machine, Point, StreamId, WaiterId};
use crate::gpu::{BufferId, QueueId};

/// Something that holds now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A stream exists; closed ones that have not drained too.
    Stream {
        /// Which.
        stream: StreamId,
        /// Where it was placed.
        queue: QueueId,
        /// What it signals.
        timeline: u32,
        /// The newest value promised.
        submitted: u64,
        /// The highest value reported.
        reached: u64,
        /// Whether a batch is open; it will signal `submitted + 1`.
        open: bool,
    },
    /// A stream carries another's transfers.
    Companion {
        /// Whose.
        stream: StreamId,
        /// Which one carries them.
        companion: StreamId,
    },
    /// The open batch of a stream is to start after a point.
    Start {
        /// Whose.
        stream: StreamId,
        /// Which point.
        point: Point,
    },
    /// A batch that is open, or that the host does not know to be done, has a buffer.
    Leased {
        /// The batch.
        point: Point,
        /// Its buffer, by [`Lease::id`].
        buffer: BufferId,
    },
    /// A buffer may be leased.
    Idle {
        /// Which.
        buffer: BufferId,
    },
    /// An event exists, with its current recording.
    Event {
        /// Which.
        event: EventId,
        /// Its point and its slot; `None` if it was never recorded.
        recording: Option<(Point, Option<u32>)>,
    },
    /// A slot exists.
    Slot {
        /// Which.
        slot: u32,
        /// Whether it is in the list of reusable ones.
        free: bool,
        /// Whether it is unset, as far as the machine asked for it.
        clean: bool,
    },
    /// A point that has to pass before a slot is reusable.
    Frontier {
        /// Which slot.
        slot: u32,
        /// Which point.
        point: Point,
    },
    /// A waiter is registered.
    Waiter {
        /// Which.
        waiter: WaiterId,
        /// For what.
        point: Point,
    },
}

impl Machine {
    /// Names everything that the machine holds. Streams come before what speaks of them, slots before their frontiers.
    pub fn facts(&self, mut see: impl FnMut(Fact)) {
        for (index, generation, s) in self.streams.iter() {
            let stream = StreamId { index, generation };
            see(Fact::Stream {
                stream,
                queue: s.lane.queue,
                timeline: s.lane.timeline,
                submitted: s.lane.submitted,
                reached: s.reached,
                open: s.open.is_some(),
            });
        }
        for (index, generation, s) in self.streams.iter() {
            let stream = StreamId { index, generation };
            s.companion.into_iter().for_each(|companion| see(Fact::Companion { stream, companion }));
            s.open_points.iter().for_each(|point| see(Fact::Start { stream, point: *point }));
            for (at, batch) in s.in_flight.iter().enumerate() {
                let point = Point { stream, value: s.retired + 1 + at as u64 };
                let id = |buffer| Lease::at(s.lane.timeline, buffer);
                batch.buffer.into_iter().for_each(|buffer| see(Fact::Leased { point, buffer: id(buffer) }));
            }
            if let Some(lease) = s.open.and_then(|open| open.lease) {
                let point = Point { stream, value: s.lane.submitted + 1 };
                see(Fact::Leased { point, buffer: lease.id() });
            }
        }
        for lane in self.streams.iter().map(|(_, _, s)| &s.lane).chain(&self.idle) {
            let ids = lane.free_buffers.iter().map(|buffer| Lease::at(lane.timeline, *buffer));
            ids.for_each(|buffer| see(Fact::Idle { buffer }));
        }
        for (index, generation, event) in self.events.iter() {
            let recording = event.recording.map(|r| (r.point, r.slot));
            see(Fact::Event { event: EventId { index, generation }, recording });
        }
        for (slot, s) in (0..).zip(&self.slots) {
            see(Fact::Slot { slot, free: self.free.contains(&slot), clean: s.clean });
            s.frontier.iter().for_each(|point| see(Fact::Frontier { slot, point: *point }));
        }
        for (index, generation, waiter) in self.waiters.iter() {
            see(Fact::Waiter { waiter: WaiterId { index, generation }, point: waiter.point });
        }
    }
}
