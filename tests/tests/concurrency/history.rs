//! What must have happened before what, as far as that follows from which calls had returned when others were made.
//!
//! Calls of several threads overlap, so a thread that waits for an event cannot know which recording it got. It got one
//! that began before its own call returned, and that no other replaced before its call was made. What all of those cover
//! is what it may rely on.

use fencepost_tests::reference::Works;

/// Streams, events and works go by numbers that are not used again.
#[derive(Default)]
pub struct History {
    now: u64,
    /// For each stream: the works that were issued on it, and those that it waited for.
    streams: Vec<(Works, Works)>,
    /// For each event, from the first.
    recordings: Vec<Vec<Recording>>,
    /// For each work: what has to have ended when it begins; `None` if it was not issued.
    works: Vec<Option<Works>>,
}

struct Recording {
    covers: Works,
    began: u64,
    /// `None` while the call lasts.
    returned: Option<u64>,
}

/// A call that looks at an event has been made.
#[derive(Clone, Copy)]
pub struct Look {
    event: usize,
    began: u64,
}

impl History {
    pub fn stream(&mut self) -> usize {
        self.streams.push(Default::default());
        self.streams.len() - 1
    }

    /// An event stands for nothing until it is recorded.
    pub fn event(&mut self) -> usize {
        let never = Recording { covers: Works::new(), began: 0, returned: Some(0) };
        self.recordings.push(vec![never]);
        self.recordings.len() - 1
    }

    /// Everything on the stream that a call made now comes after.
    pub fn covered(&self, stream: usize) -> Works {
        let (issued, waited_for) = &self.streams[stream];
        issued | waited_for
    }

    /// A new work, and what it has to come after.
    pub fn work(&mut self, stream: usize) -> (usize, Works) {
        self.works.push(None);
        (self.works.len() - 1, self.streams[stream].1.clone())
    }

    pub fn work_was_issued(&mut self, stream: usize, work: usize, after: Works) {
        self.streams[stream].0.insert(work);
        self.works[work] = Some(after);
    }

    /// A recording is about to be made: its number.
    pub fn recording(&mut self, event: usize, stream: usize) -> usize {
        let covers = self.covered(stream);
        let began = self.tick();
        self.recordings[event].push(Recording { covers, began, returned: None });
        self.recordings[event].len() - 1
    }

    pub fn was_recorded(&mut self, event: usize, recording: usize) {
        self.recordings[event][recording].returned = Some(self.tick());
    }

    pub fn look(&mut self, event: usize) -> Look {
        Look { event, began: self.tick() }
    }

    /// What a call may rely on that looked at an event and has returned.
    pub fn seen(&self, look: Look) -> Works {
        let recordings = &self.recordings[look.event];
        let is_replaced = |recording: &Recording| {
            let ended_before = |at: u64| recording.returned.is_some_and(|returned| returned < at);
            recordings
                .iter()
                .any(|other| ended_before(other.began) && other.returned.is_some_and(|returned| returned < look.began))
        };
        let possible = recordings.iter().filter(|recording| !is_replaced(recording));
        possible.map(|recording| recording.covers.clone()).reduce(|a, b| &a & &b).unwrap_or_default()
    }

    /// A stream has waited for what was seen.
    pub fn waited(&mut self, stream: usize, seen: &Works) {
        self.streams[stream].1.extend(seen);
    }

    /// Works that were issued, each with what it has to come after.
    pub fn works(&self) -> impl Iterator<Item = (usize, &Works)> {
        self.works.iter().enumerate().filter_map(|(work, after)| Some((work, after.as_ref()?)))
    }

    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }
}
