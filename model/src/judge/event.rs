//! What is known of a device event: its generations, who changes it, who waits for it.

use alloc::vec::Vec;

use super::call::{Handle, Site};
use super::order::{Past, Place, Scopes};
use super::verdict::{Moment, Reason};

/// How many moments are kept for the lanes around a verdict.
const STORY: usize = 12;

#[derive(Debug, Default)]
pub(super) struct Event {
    /// It was created in view; of any other nothing is certain until it is reset or set.
    pub created: bool,
    /// When it was destroyed.
    pub gone: Option<Site>,
    /// The newest generation: recorded, or set by the host.
    pub newest: u64,
    /// The generation that a wait recorded now is for: none after a reset.
    pub live: Option<u64>,
    /// Generations whose set was recorded and not submitted.
    pub unsubmitted: Vec<u64>,
    /// Waits in command buffers that were not submitted, or whose batch cannot start.
    pub open: Vec<OpenWait>,
    /// Commands in batches that cannot start.
    pub held: Vec<Held>,
    /// Waits handed to queues that may not have executed.
    pub waits: Vec<Wait>,
    /// Sets and resets that may not have taken effect, in submission order; before them, the newest that has.
    changes: Vec<Change>,
    /// The last reset by the host.
    pub host_reset: Option<Site>,
    pub story: Vec<Moment>,
}

/// A wait that no queue has met.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenWait {
    pub command_buffer: Handle,
    pub generation: Option<u64>,
    pub site: Site,
    /// Its command buffer was submitted.
    pub submitted: bool,
}

/// A command in a batch that cannot start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub batch: u64,
    pub queue: usize,
    pub site: Site,
    pub sets: bool,
}

/// A wait that a queue holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub place: Place,
    pub generation: u64,
    pub batch: u64,
    pub site: Site,
    pub command_buffer: Handle,
}

/// Where a change comes from.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    /// Its place in a queue; `None` if the host made it.
    pub place: Option<Place>,
    pub batch: u64,
    /// The command, or the host's call.
    pub site: Site,
}

#[derive(Clone, Debug)]
enum Change {
    Set {
        generation: u64,
        origin: Origin,
        /// What comes before it in its queue: a wait that it ends comes after all of that.
        past: Past,
        /// A reset that may come before or after it.
        doubt: Option<Site>,
    },
    Reset {
        origin: Origin,
    },
}

impl Change {
    fn origin(&self) -> &Origin {
        match self {
            Change::Set { origin, .. } | Change::Reset { origin } => origin,
        }
    }

    fn took_effect(&self, known: &Past) -> bool {
        self.origin().place.is_none_or(|place| known.covers(place))
    }
}

/// A set that may end a wait.
struct Candidate<'a> {
    generation: u64,
    origin: &'a Origin,
    past: &'a Past,
    /// A reset that may undo it before the wait.
    reset: Option<Site>,
}

/// How a wait will end.
#[derive(Debug, Default)]
pub(super) struct Release {
    /// Set by another than its own generation, or possibly so.
    pub stale: Option<(u64, Site, Reason)>,
    /// Possibly never set.
    pub never: Option<(Option<Site>, Reason)>,
    /// Its generation: its own, or the newest set before it.
    pub generation: u64,
    /// The queue of the set of that generation.
    pub set_on: Option<(usize, Site)>,
    /// What comes before that set.
    pub past: Past,
}

impl Event {
    pub fn created() -> Event {
        Event { created: true, ..Event::default() }
    }

    /// Forgets what has certainly executed.
    pub fn settle(&mut self, known: &Past) {
        self.waits.retain(|wait| !known.covers(wait.place));
        while let [first, second, ..] = &self.changes[..]
            && first.took_effect(known)
            && second.took_effect(known)
        {
            self.changes.remove(0);
        }
        if let [Change::Reset { origin }] = &self.changes[..]
            && origin.place.is_some_and(|place| known.covers(place))
        {
            self.changes.clear();
        }
    }

    /// A set or reset that may not have taken effect, or a command of a batch that cannot start.
    pub fn in_use(&self, known: &Past) -> Option<Site> {
        let change = self.changes.iter().find(|c| !c.took_effect(known)).map(|c| c.origin().site);
        change.or(self.held.first().map(|held| held.site))
    }

    /// The next generation.
    pub fn generate(&mut self) -> u64 {
        self.newest += 1;
        self.live = Some(self.newest);
        self.newest
    }

    pub fn host_set(&mut self, generation: u64, site: Site, known: &Past) {
        let doubt = self.changes.iter().find_map(|change| match change {
            Change::Reset { origin } if !change.took_effect(known) => Some(origin.site),
            _ => None,
        });
        let origin = Origin { place: None, batch: 0, site };
        self.changes.push(Change::Set { generation, origin, past: Past::default(), doubt });
        self.created = true;
    }

    /// Sets that have taken effect are undone; whether others come before or after nobody knows.
    pub fn host_reset(&mut self, site: Site, known: &Past) {
        self.changes.retain(|change| !change.took_effect(known));
        for change in &mut self.changes {
            if let Change::Set { doubt, .. } = change {
                doubt.get_or_insert(site);
            }
        }
        self.host_reset = Some(site);
        self.live = None;
        self.created = true;
    }

    /// `past` is what comes before the set. Sets and resets of one queue take effect in their order.
    pub fn queue_set(&mut self, generation: u64, origin: Origin, past: Past, known: &Past) {
        let unordered = |reset: &Origin| {
            reset.place.is_some_and(|place| {
                origin.place.is_some_and(|mine| mine.queue != place.queue)
                    && !past.covers(place)
                    && !known.covers(place)
            })
        };
        let doubt = self.changes.iter().find_map(|change| match change {
            Change::Reset { origin } if unordered(origin) => Some(origin.site),
            _ => None,
        });
        self.created = true;
        self.changes.push(Change::Set { generation, origin, past, doubt });
    }

    pub fn queue_reset(&mut self, origin: Origin) {
        self.created = true;
        self.changes.push(Change::Reset { origin });
    }

    /// What the device never took: its waits are open again.
    pub fn refuse(&mut self, batch: u64) {
        let back = self.waits.iter().filter(|wait| wait.batch == batch).map(|wait| OpenWait {
            command_buffer: wait.command_buffer,
            generation: Some(wait.generation),
            site: wait.site,
            submitted: false,
        });
        self.open.extend(back);
        self.held.retain(|held| held.batch != batch);
        self.waits.retain(|wait| wait.batch != batch);
        self.changes.retain(|change| change.origin().place.is_none() || change.origin().batch != batch);
    }

    /// What may end a wait at this point of a queue. Every set counts that no reset certainly undoes before the wait.
    pub fn release(&self, own: Option<u64>, scopes: &Scopes, known: &Past) -> Release {
        let precedes = |place: Option<Place>| {
            place.is_none_or(|place| known.covers(place) || scopes.follows(place, super::order::EVERY))
        };
        let mut sets: Vec<Candidate> = Vec::new(); // Newest first.
        let mut loose = None; // A reset that may come after them, or after the wait.
        let mut undone = self.host_reset;
        for change in self.changes.iter().rev() {
            match change {
                Change::Reset { origin } if precedes(origin.place) => {
                    undone = Some(origin.site);
                    break;
                }
                Change::Reset { origin } => loose = loose.or(Some(origin.site)),
                Change::Set { generation, origin, past, doubt } => {
                    sets.push(Candidate { generation: *generation, origin, past, reset: loose.or(*doubt) });
                }
            }
        }
        let at = own.map_or(Some(0), |own| sets.iter().position(|set| set.generation == own));
        let mine = at.and_then(|at| sets.get(at));
        let stale = match (at, mine) {
            (Some(at), Some(mine)) => {
                let newer = sets[..at].iter().rev().find(|set| set.reset != mine.reset);
                let earlier = sets.get(at + 1).filter(|_| !precedes(mine.origin.place));
                let newer = newer.map(|set| (set.generation, set.origin.site, Reason::OtherSet));
                newer.or(earlier.map(|set| (set.generation, set.origin.site, Reason::EarlierSet)))
            }
            _ => sets.first().map(|set| (set.generation, set.origin.site, Reason::OtherSet)),
        };
        let never = match sets.first() {
            None => Some((undone, Reason::NeverSet)),
            Some(set) => set.reset.map(|reset| (Some(reset), Reason::MaybeReset)),
        };
        let set = mine.or(sets.first());
        Release {
            stale,
            never: never.filter(|_| self.created && sets.iter().all(|set| set.reset.is_some())),
            generation: own.or(set.map(|set| set.generation)).unwrap_or(self.newest),
            set_on: set.and_then(|set| Some((set.origin.place?.queue, set.origin.site))),
            past: set.map_or(Past::default(), |set| set.past.clone()),
        }
    }

    /// The queue of the newest set that is not undone for certain.
    pub fn queue_of_newest(&self) -> Option<(usize, Site)> {
        self.changes.iter().rev().find_map(|change| match change {
            Change::Set { origin, .. } => Some((origin.place?.queue, origin.site)),
            Change::Reset { .. } => None,
        })
    }

    /// Whether a set of this queue comes after the place: later resets of the event there come after both.
    pub fn set_after(&self, queue: usize, place: Place) -> bool {
        self.changes.iter().any(|change| match change {
            Change::Set { origin, past, .. } => origin.place.is_some_and(|p| p.queue == queue) && past.covers(place),
            Change::Reset { .. } => false,
        })
    }

    /// A set that another queue holds.
    pub fn held_elsewhere(&self, queue: usize) -> Option<(usize, Site)> {
        self.held.iter().find(|held| held.sets && held.queue != queue).map(|held| (held.queue, held.site))
    }

    /// Whether the answer that the event is set says nothing of its newest generation: that set may not have taken effect,
    /// and an earlier one, not undone, has.
    pub fn still_set(&self, known: &Past) -> Option<(u64, Site)> {
        let mut newest = None;
        for change in self.changes.iter().rev() {
            match (change, newest) {
                (Change::Reset { .. }, _) => return None,
                (Change::Set { generation, origin, .. }, None) => {
                    if change.took_effect(known) {
                        return None;
                    }
                    newest = Some((*generation, origin.site));
                }
                (Change::Set { .. }, Some(_)) if change.took_effect(known) => return newest,
                _ => {}
            }
        }
        None
    }

    pub fn remember(&mut self, moment: Moment) {
        if self.story.len() == STORY {
            self.story.remove(0);
        }
        self.story.push(moment);
    }
}
