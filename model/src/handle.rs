//! Handles, and the table they index.

use alloc::vec::Vec;

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name {
            /// Position in the machine's table; used again after the object is gone.
            pub index: u32,
            /// How many objects held this position before: a handle kept too long names nothing.
            pub generation: u32,
        }

        impl From<(u32, u32)> for $name {
            fn from((index, generation): (u32, u32)) -> Self {
                $name { index, generation }
            }
        }
    };
}

handle! {
    /// A stream: an ordered lane of work placed on a queue.
    ///
    /// Vulkan: the batches one holder submits to a `VkQueue`, with one timeline semaphore.
    /// CUDA: `cudaStream_t`. ggml: a backend context. CubeCL: a stream.
    StreamId
}
handle! {
    /// An event: what the caller holds, recorded any number of times.
    ///
    /// Vulkan: none (a `VkEvent` is a [`SlotId`]). CUDA: `cudaEvent_t`. ggml: `ggml_backend_event_t`.
    /// CubeCL: the event inside an `EventFence`.
    EventId
}
handle! {
    /// One party to be woken when a point passes: a thread that blocks, or a value whose memory the
    /// GPU still uses.
    ///
    /// Vulkan: a pending `vkWaitSemaphores`. CUDA: a pending `cudaEventSynchronize`, or a host function.
    WaiterId
}

/// A slot: the recyclable device object behind one generation of an event.
///
/// The index is what a runtime maps to its `VkEvent`; it stays valid as long as the machine.
/// Vulkan: `VkEvent`. CUDA: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId {
    /// Position in the machine's table of slots.
    pub index: u32,
    /// How many generations the slot has carried; for messages, two generations of one slot differ in it.
    pub generation: u64,
}

/// `Clone` whose `clone_from` keeps the memory of the vectors inside: a search clones millions of states.
macro_rules! clone_in_place {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl Clone for $name {
            fn clone(&self) -> Self {
                $name { $($field: self.$field.clone()),* }
            }

            fn clone_from(&mut self, other: &Self) {
                $(self.$field.clone_from(&other.$field);)*
            }
        }
    };
}
pub(crate) use clone_in_place;

/// Objects by handle. A removed object's position is used again under the next generation.
#[derive(Debug)]
pub(crate) struct Table<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<T: Clone> Clone for Table<T> {
    fn clone(&self) -> Self {
        Table { entries: self.entries.clone(), free: self.free.clone() }
    }

    fn clone_from(&mut self, other: &Self) {
        self.entries.clone_from(&other.entries);
        self.free.clone_from(&other.free);
    }
}

impl<T: Clone> Clone for Entry<T> {
    fn clone(&self) -> Self {
        Entry { generation: self.generation, value: self.value.clone() }
    }

    fn clone_from(&mut self, other: &Self) {
        self.generation = other.generation;
        self.value.clone_from(&other.value);
    }
}

impl<T> Table<T> {
    pub(crate) const fn new() -> Self {
        Table { entries: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn insert<H: From<(u32, u32)>>(&mut self, value: T) -> H {
        if let Some(index) = self.free.pop() {
            let entry = &mut self.entries[index as usize];
            entry.value = Some(value);
            return (index, entry.generation).into();
        }
        let index = u32::try_from(self.entries.len()).expect("fewer than 2^32 objects live at once");
        self.entries.push(Entry { generation: 0, value: Some(value) });
        (index, 0).into()
    }

    pub(crate) fn get(&self, index: u32, generation: u32) -> Option<&T> {
        self.entries.get(index as usize).filter(|e| e.generation == generation)?.value.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: u32, generation: u32) -> Option<&mut T> {
        self.entries.get_mut(index as usize).filter(|e| e.generation == generation)?.value.as_mut()
    }

    pub(crate) fn remove(&mut self, index: u32, generation: u32) -> Option<T> {
        let entry = self.entries.get_mut(index as usize).filter(|e| e.generation == generation)?;
        let value = entry.value.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(index);
        Some(value)
    }

    /// The object at a position, whatever its generation.
    pub(crate) fn at(&self, index: u32) -> Option<(u32, &T)> {
        let entry = self.entries.get(index as usize)?;
        Some((entry.generation, entry.value.as_ref()?))
    }

    /// The object at a position, whatever its generation.
    pub(crate) fn at_mut(&mut self, index: u32) -> Option<(u32, &mut T)> {
        let entry = self.entries.get_mut(index as usize)?;
        Some((entry.generation, entry.value.as_mut()?))
    }

    /// The last live object.
    pub(crate) fn last<H: From<(u32, u32)>>(&mut self) -> Option<H> {
        while self.entries.last()?.value.is_none() {
            self.entries.pop();
        }
        let index = self.entries.len() - 1;
        Some((index as u32, self.entries[index].generation).into())
    }

    /// Removes the last live object. The table is not inserted into again.
    pub(crate) fn pop<H: From<(u32, u32)>>(&mut self) -> Option<H> {
        let last = self.last();
        self.entries.pop();
        last
    }

    /// Live objects in the order of their positions.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32, &T)> {
        self.entries.iter().enumerate().filter_map(|(i, e)| Some((i as u32, e.generation, e.value.as_ref()?)))
    }

    pub(crate) fn len(&self) -> usize {
        self.iter().count()
    }
}
