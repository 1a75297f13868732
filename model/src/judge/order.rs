//! What is certain to come before what: execution dependencies, by queue, stage and position.
//!
//! Operations of a queue have positions. A barrier orders positions of its first scope's stages before what comes later in
//! stages of its second scope, and chains with earlier ones where the scopes meet (Vulkan specification, "Execution and Memory
//! Dependencies"). Stages are taken in classes: finer stages would show more missing dependencies, never fewer orders.

use alloc::vec::Vec;

use super::call::Stages;

/// Classes of stages, as bits.
pub(super) type Classes = u8;

const TRANSFER: Classes = 1;
const COMPUTE: Classes = 2;
const GRAPHICS: Classes = 4;
const OTHER: Classes = 8;
const HOST: Classes = 16;
const COMMANDS: Classes = TRANSFER | COMPUTE | GRAPHICS | OTHER;
/// All of them.
pub(super) const EVERY: Classes = COMMANDS | HOST;
const CLASS_COUNT: usize = 5;

const TOP_OF_PIPE: Stages = 0x1;
const BOTTOM_OF_PIPE: Stages = 0x2000;

/// Each class and the bits of `VkPipelineStageFlags2` that are in it.
const BITS: [(Stages, Classes); 6] = [
    (super::ALL_COMMANDS, COMMANDS),
    (0x1000 | 0xf << 32, TRANSFER),
    (0x800, COMPUTE),
    (0x2, COMPUTE | GRAPHICS), // DRAW_INDIRECT is that of dispatches too.
    (0x7fc | 0x8000 | 0x1dc_0000 | 0x70 << 32, GRAPHICS),
    (0x4000, HOST),
];

fn classes(stages: Stages) -> Classes {
    let known = BITS.iter().fold(TOP_OF_PIPE | BOTTOM_OF_PIPE, |all, (bits, _)| all | bits);
    let named = BITS.iter().filter(|(bits, _)| stages & bits != 0).fold(0, |all, (_, class)| all | class);
    if stages & !known == 0 { named } else { named | OTHER }
}

/// The classes of a first scope: `srcStageMask`. The bottom of the pipe is all that came before, the top nothing.
pub(super) fn first_scope(stages: Stages) -> Classes {
    classes(stages) | if stages & BOTTOM_OF_PIPE == 0 { 0 } else { COMMANDS }
}

/// The classes of a second scope: `dstStageMask`. The top of the pipe is all that comes after, the bottom nothing.
pub(super) fn second_scope(stages: Stages) -> Classes {
    classes(stages) | if stages & TOP_OF_PIPE == 0 { 0 } else { COMMANDS }
}

/// Where an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The number of the queue.
    pub queue: usize,
    /// The stages that have to end for it to have ended: one of them is enough to know.
    pub classes: Classes,
    /// Its position in the queue, from 1.
    pub position: u64,
}

/// Positions that come before something, for each queue and class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Past(Vec<[u64; CLASS_COUNT]>);

impl Past {
    pub(super) fn join(&mut self, other: &Past) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), [0; CLASS_COUNT]);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine = (*mine).max(*theirs);
            }
        }
    }

    /// Everything up to the place comes before, too.
    pub(super) fn reach(&mut self, place: Place) {
        if self.0.len() <= place.queue {
            self.0.resize(place.queue + 1, [0; CLASS_COUNT]);
        }
        for class in each(place.classes) {
            let mine = &mut self.0[place.queue][class];
            *mine = (*mine).max(place.position);
        }
    }

    /// Whether the operation comes before.
    pub(super) fn covers(&self, place: Place) -> bool {
        let Some(row) = self.0.get(place.queue) else { return false };
        each(if place.classes == 0 { EVERY } else { place.classes }).any(|class| row[class] >= place.position)
    }

    /// Whether all stages up to this position come before.
    pub(super) fn covers_all(&self, queue: usize, position: u64) -> bool {
        position == 0 || self.0.get(queue).is_some_and(|row| each(COMMANDS).all(|class| row[class] >= position))
    }
}

fn each(classes: Classes) -> impl Iterator<Item = usize> {
    (0..CLASS_COUNT).filter(move |class| classes >> class & 1 == 1)
}

/// What comes before the next operation of a queue, by its stages.
#[derive(Clone, Debug, Default)]
pub(super) struct Scopes {
    queue: usize,
    position: u64,
    ahead: [Past; CLASS_COUNT],
}

impl Scopes {
    pub(super) fn new(queue: usize) -> Scopes {
        Scopes { queue, ..Scopes::default() }
    }

    /// The next operation.
    pub(super) fn next(&mut self, classes: Classes) -> Place {
        self.position += 1;
        Place { queue: self.queue, classes, position: self.position }
    }

    pub(super) fn queue(&self) -> usize {
        self.queue
    }

    /// What an operation whose first scope is this comes after.
    pub(super) fn upto(&self, first: Classes) -> Past {
        let mut past = Past::default();
        each(first).for_each(|class| past.join(&self.ahead[class]));
        past.reach(Place { queue: self.queue, classes: first, position: self.position });
        past
    }

    /// What comes later in these stages comes after all this.
    pub(super) fn after(&mut self, second: Classes, past: &Past) {
        each(second).for_each(|class| self.ahead[class].join(past));
    }

    pub(super) fn barrier(&mut self, first: Classes, second: Classes) {
        if first != 0 {
            let past = self.upto(first);
            self.after(second, &past);
        }
    }

    /// Whether an earlier operation comes before the next one in any of these stages.
    pub(super) fn follows(&self, place: Place, classes: Classes) -> bool {
        each(classes).any(|class| self.ahead[class].covers(place))
    }
}
