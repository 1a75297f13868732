//! The canonical form of a state: equal bytes are meant to mean equal futures.
//!
//! A state is written once, front to back. Names of objects that only the machine chose (device
//! events, command buffers, draining streams) are replaced by the order in which the writing first
//! meets them; names that the client chose are given beforehand, in the order that is tried. Timeline
//! values are written as ranks among those that something names. What nothing in the future can
//! depend on is not written. `tests` compare, for every pair of
//! states merged this way, the canonical successors of both.

use alloc::vec::Vec;

/// A kind of name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Streams.
    Stream,
    /// Events of the client.
    Event,
    /// Queues.
    Queue,
    /// Semaphores.
    Semaphore,
    /// Fences.
    Fence,
    /// Device events.
    DeviceEvent,
    /// Command buffers.
    Buffer,
    /// Recordings of native events.
    Ordinal,
}

const SPACES: usize = 8;

/// A writer of canonical states. Reusable: [`Canon::clear`] keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct Canon {
    bytes: Vec<u8>,
    names: [Vec<u64>; SPACES],
    /// The values of semaphores that something names, each above what is told apart by nobody.
    values: Vec<(u32, u64)>,
}

impl Canon {
    /// A writer with nothing written.
    pub fn new() -> Self {
        Canon::default()
    }

    /// Forgets what was written and all names; values stay named.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.names.iter_mut().for_each(Vec::clear);
    }

    /// Forgets which values are named.
    pub fn clear_values(&mut self) {
        self.values.clear();
    }

    /// Takes over which values are named.
    pub fn copy_values(&mut self, other: &Canon) {
        self.values.clone_from(&other.values);
    }

    /// Something in the state names this value. Values are only ever compared, so a value is written
    /// as how many named ones do not exceed it.
    pub fn name_value(&mut self, semaphore: u32, value: u64) {
        if let Err(at) = self.values.binary_search(&(semaphore, value)) {
            self.values.insert(at, (semaphore, value));
        }
    }

    /// How many named values of the semaphore do not exceed this one.
    pub fn rank(&self, semaphore: u32, value: u64) -> u64 {
        self.values.iter().filter(|(s, v)| *s == semaphore && *v <= value).count() as u64
    }

    /// What was written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Gives the next name of a space.
    pub fn assign(&mut self, space: Space, raw: u64) {
        self.names[space as usize].push(raw);
    }

    /// The raw names of a space in the order of their canonical ones.
    pub fn assigned(&self, space: Space) -> &[u64] {
        &self.names[space as usize]
    }

    /// The raw object with this canonical name.
    pub fn raw(&self, space: Space, name: usize) -> Option<u64> {
        self.names[space as usize].get(name).copied()
    }

    /// Writes a number that is small by construction.
    ///
    /// # Panics
    /// Panics above 255: a search that gets there has a bound missing.
    pub fn number(&mut self, number: u64) {
        self.bytes.push(u8::try_from(number).expect("a canonical number fits in a byte"));
    }

    /// Writes a choice.
    pub fn flag(&mut self, flag: bool) {
        self.bytes.push(u8::from(flag));
    }

    /// Writes an object by its canonical name; a new object gets the next one.
    pub fn name(&mut self, space: Space, raw: u64) {
        let names = &mut self.names[space as usize];
        let name = names.iter().position(|n| *n == raw).unwrap_or_else(|| {
            names.push(raw);
            names.len() - 1
        });
        self.number(name as u64);
    }

    /// Writes a value of a semaphore by its rank.
    pub fn value(&mut self, semaphore: u32, value: u64) {
        self.name(Space::Semaphore, u64::from(semaphore));
        self.number(self.rank(semaphore, value));
    }

    /// Writes a signal to come: its rank, and whether it would not raise the value that stands now.
    pub fn signal(&mut self, semaphore: u32, value: u64, now: u64) {
        self.value(semaphore, value);
        self.flag(value <= now);
    }

    /// Takes back what was written from `start` on; names stay given.
    pub fn cut(&mut self, start: usize) -> Vec<u8> {
        self.bytes.split_off(start)
    }

    /// Writes what was taken back.
    pub fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Sorts what was written from `start` on in records of `width` bytes: their order carries no meaning.
    pub fn sort_records(&mut self, start: usize, width: usize) {
        let records = &mut self.bytes[start..];
        for i in (width..records.len()).step_by(width) {
            let mut at = i;
            while at >= width && records[at - width..at] > records[at..at + width] {
                let (left, right) = records.split_at_mut(at);
                left[at - width..].swap_with_slice(&mut right[..width]);
                at -= width;
            }
        }
    }
}
