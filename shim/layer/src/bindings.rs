//! Which storage buffers are bound when a command buffer dispatches.

use std::sync::Arc;

use ash::vk;
use fencepost::judge::{Access, Handle};
use rustc_hash::FxHashMap;

use crate::shader::Used;

/// What was last written to one place of a descriptor set.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// The buffer's number: its handle may be another's by now.
    pub buffer: Handle,
    pub offset: u64,
    pub size: u64,
    /// An offset is added when the set is bound.
    pub dynamic: bool,
}

/// Binding and place in its array.
type Place = (u32, u32);
type Places = FxHashMap<Place, Bound>;

/// One binding of a layout.
pub struct Binding {
    pub number: u32,
    /// How many descriptors it has.
    pub count: u32,
    /// Whether with dynamic offsets.
    pub dynamic: bool,
    /// It may be updated after it was bound: what a dispatch will find there is not known when it is recorded.
    pub late: bool,
}

/// The bindings of a layout, by number.
pub type Layout = Arc<Vec<Binding>>;

#[derive(Default)]
struct Set {
    layout: Layout,
    places: Places,
}

/// What a command buffer that is being recorded has bound for dispatches.
#[derive(Default)]
struct Recording {
    pipeline: Option<vk::Pipeline>,
    sets: FxHashMap<u32, Slot>,
}

enum Slot {
    /// A set, and the offsets of its dynamic descriptors, in the order of their places.
    Set(vk::DescriptorSet, Vec<(Place, u64)>),
    Pushed(Places),
}

/// Shaders, pipelines, descriptor sets, and what command buffers have bound.
#[derive(Default)]
pub struct Bindings {
    pub shaders: FxHashMap<vk::ShaderModule, Arc<Vec<Used>>>,
    pub pipelines: FxHashMap<vk::Pipeline, Arc<Vec<Used>>>,
    pub layouts: FxHashMap<vk::DescriptorSetLayout, Layout>,
    pub templates: FxHashMap<vk::DescriptorUpdateTemplate, Arc<Vec<vk::DescriptorUpdateTemplateEntry>>>,
    sets: FxHashMap<vk::DescriptorSet, Set>,
    pools: FxHashMap<vk::DescriptorPool, Vec<vk::DescriptorSet>>,
    recordings: FxHashMap<Handle, Recording>,
}

/// Whether a descriptor is a storage buffer, and if so, whether with a dynamic offset.
pub fn storage(kind: vk::DescriptorType) -> Option<bool> {
    match kind {
        vk::DescriptorType::STORAGE_BUFFER => Some(false),
        vk::DescriptorType::STORAGE_BUFFER_DYNAMIC => Some(true),
        _ => None,
    }
}

/// Whether a descriptor takes a dynamic offset.
pub fn dynamic(kind: vk::DescriptorType) -> bool {
    kind == vk::DescriptorType::STORAGE_BUFFER_DYNAMIC || kind == vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC
}

/// The place that follows: past the end of a binding's array, the next binding begins ("Descriptor Set Updates").
fn following(layout: &Layout, (binding, element): Place) -> Place {
    let count = layout.iter().find(|known| known.number == binding).map_or(u32::MAX, |known| known.count);
    let next = layout.iter().map(|known| known.number).find(|known| *known > binding);
    match next {
        Some(next) if element + 1 >= count => (next, 0),
        _ => (binding, element.saturating_add(1)),
    }
}

fn put(places: &mut Places, at: Place, bound: Option<Bound>) {
    match bound {
        Some(bound) => places.insert(at, bound),
        None => places.remove(&at),
    };
}

impl Bindings {
    pub fn allocated(&mut self, pool: vk::DescriptorPool, set: vk::DescriptorSet, layout: vk::DescriptorSetLayout) {
        let layout = self.layouts.get(&layout).cloned().unwrap_or_default();
        self.sets.insert(set, Set { layout, places: Places::default() });
        self.pools.entry(pool).or_default().push(set);
    }

    pub fn freed(&mut self, pool: vk::DescriptorPool, sets: &[vk::DescriptorSet]) {
        self.pools.entry(pool).or_default().retain(|set| !sets.contains(set));
        sets.iter().for_each(|set| drop(self.sets.remove(set)));
    }

    pub fn pool_gone(&mut self, pool: vk::DescriptorPool) {
        let sets = self.pools.remove(&pool).unwrap_or_default();
        sets.iter().for_each(|set| drop(self.sets.remove(set)));
    }

    /// Descriptors from this place on; `None` where they are no storage buffers.
    pub fn write(&mut self, set: vk::DescriptorSet, first: Place, all: impl Iterator<Item = Option<Bound>>) {
        let Some(Set { layout, places }) = self.sets.get_mut(&set) else { return };
        let mut at = first;
        for bound in all {
            put(places, at, bound);
            at = following(layout, at);
        }
    }

    pub fn copy(&mut self, copy: &vk::CopyDescriptorSet<'_>) {
        let Some(Set { layout, places }) = self.sets.get(&copy.src_set) else { return };
        let mut at = (copy.src_binding, copy.src_array_element);
        let mut copied = Vec::new();
        for _ in 0..copy.descriptor_count {
            copied.push(places.get(&at).copied());
            at = following(layout, at);
        }
        self.write(copy.dst_set, (copy.dst_binding, copy.dst_array_element), copied.into_iter());
    }

    pub fn begun(&mut self, command_buffer: Handle) {
        self.recordings.remove(&command_buffer);
    }

    pub fn bind_pipeline(&mut self, command_buffer: Handle, pipeline: vk::Pipeline) {
        self.recordings.entry(command_buffer).or_default().pipeline = Some(pipeline);
    }

    pub fn bind_sets(&mut self, command_buffer: Handle, first: u32, sets: &[vk::DescriptorSet], offsets: &[u32]) {
        let mut offsets = offsets.iter().copied().map(u64::from);
        for (at, set) in (first..).zip(sets) {
            let layout = self.sets.get(set).map(|set| set.layout.clone()).unwrap_or_default();
            let dynamic = layout.iter().filter(|binding| binding.dynamic);
            let places = dynamic.flat_map(|of| (0..of.count).map(|element| (of.number, element)));
            let taken = places.map_while(|place| Some((place, offsets.next()?))).collect();
            let recording = self.recordings.entry(command_buffer).or_default();
            recording.sets.insert(at, Slot::Set(*set, taken));
        }
    }

    /// Descriptors that are pushed: what was pushed before stays, a bound set goes.
    pub fn push(&mut self, command_buffer: Handle, set: u32, all: impl Iterator<Item = (Place, Option<Bound>)>) {
        let slot = self.recordings.entry(command_buffer).or_default().sets.entry(set);
        let slot = slot.or_insert_with(|| Slot::Pushed(Places::default()));
        if let Slot::Set(..) = slot {
            *slot = Slot::Pushed(Places::default());
        }
        if let Slot::Pushed(places) = slot {
            for (at, bound) in all {
                put(places, at, bound);
            }
        }
    }

    /// Shader objects take the pipeline's place: what they use is not known.
    pub fn unbind_pipeline(&mut self, command_buffer: Handle) {
        self.recordings.entry(command_buffer).or_default().pipeline = None;
    }

    /// What a dispatch may read and write.
    pub fn dispatched(&self, command_buffer: Handle) -> Vec<Access> {
        let mut accesses = Vec::new();
        let Some(recording) = self.recordings.get(&command_buffer) else { return accesses };
        let used = recording.pipeline.and_then(|pipeline| self.pipelines.get(&pipeline));
        for Used { set, binding, write } in used.into_iter().flat_map(|used| used.iter()) {
            let none = Vec::new();
            let (places, offsets) = match recording.sets.get(set) {
                Some(Slot::Set(set, offsets)) => match self.sets.get(set) {
                    Some(set) if !set.layout.iter().any(|of| of.number == *binding && (of.late || of.count > 1)) => {
                        (&set.places, offsets)
                    }
                    _ => continue,
                },
                Some(Slot::Pushed(places)) => (places, &none),
                None => continue,
            };
            // Of an array nobody knows which places the shader takes.
            let one = places.get(&(*binding, 0)).filter(|_| places.keys().filter(|(at, _)| at == binding).count() == 1);
            let Some(bound) = one else { continue };
            let added = offsets.iter().find(|(place, _)| bound.dynamic && *place == (*binding, 0));
            accesses.push(Access {
                buffer: bound.buffer,
                offset: bound.offset.saturating_add(added.map_or(0, |(_, offset)| *offset)),
                size: bound.size,
                write: *write,
                through_binding: true,
            });
        }
        accesses
    }
}
