//! What the client asked for, remembered beside the system to judge it.

use alloc::vec::Vec;

use crate::handle::clone_in_place;

/// Tracked works are bits of a set. Streams and events are numbered by the client.
#[derive(Debug, PartialEq, Eq)]
pub struct Ghost {
    /// Tracked works that were issued and have not ended.
    pub live: u8,
    /// Works issued on each stream.
    pub issued: Vec<u8>,
    /// Works that later work on each stream has to follow, because the stream waited.
    pub depends: Vec<u8>,
    /// Works before each event's current recording.
    pub covers: Vec<u8>,
    /// Whether each event was ever recorded.
    pub recorded: Vec<bool>,
    /// A driver call was refused while a tracked work lived.
    pub refused: bool,
}

clone_in_place!(Ghost { live, issued, depends, covers, recorded, refused });

impl Ghost {
    /// Nothing asked for yet.
    pub fn new(stream_count: usize, event_count: usize) -> Self {
        let zeros = |n| alloc::vec![0; n];
        Ghost {
            live: 0,
            issued: zeros(stream_count),
            depends: zeros(stream_count),
            covers: zeros(event_count),
            recorded: alloc::vec![false; event_count],
            refused: false,
        }
    }

    /// A tracked work was issued.
    pub fn issue(&mut self, stream: usize, work: u8) {
        self.live |= work;
        self.issued[stream] |= work;
    }

    /// The event's generation is what the stream holds now, and what it waited for.
    pub fn record(&mut self, event: usize, stream: usize) {
        self.covers[event] = self.issued[stream] | self.depends[stream];
        self.recorded[event] = true;
    }

    /// The stream waits for the event.
    pub fn wait(&mut self, stream: usize, event: usize) {
        self.depends[stream] |= self.covers[event];
    }

    /// The event is a new one.
    pub fn renew(&mut self, event: usize) {
        self.covers[event] = 0;
        self.recorded[event] = false;
    }

    /// A tracked work ended: nothing depends on it any more.
    pub fn end(&mut self, work: u8) {
        self.live &= !work;
        for set in self.issued.iter_mut().chain(&mut self.depends).chain(&mut self.covers) {
            *set &= !work;
        }
        self.refused &= self.live != 0;
    }
}
