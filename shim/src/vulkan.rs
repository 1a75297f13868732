//! The driver on ash.
//!
//! Memory: every set, wait and barrier carries all writes, and a batch's buffer ends by making them visible to the host.

mod open;

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ash::khr::synchronization2;
use ash::vk;
use fencepost::{Lease, QueueId};
use smallvec::SmallVec;

use self::open::Messenger;
pub use self::open::{Adopted, AdoptedQueue, OpenOptions};
use crate::driver::{Answer, Asked, Batch, BufferId, Dispatch, Driver, Queue, QueueLock, Raw, Time};
use crate::error::{DriverError, Error};
use crate::runtime::surely;

/// Queries in one pool.
const QUERIES: u32 = 64;

/// A Vulkan device.
pub struct Vulkan {
    name: String,
    queues: Vec<Queue>,
    handles: Vec<QueueHandle>,
    memory: vk::PhysicalDeviceMemoryProperties,
    period: f32,
    /// `vkResetQueryPool` may be called.
    host_query_reset: bool,
    synchronization2: Option<synchronization2::DeviceFn>,
    device: ash::Device,
    tables: RwLock<Tables>,
    /// What to destroy last; `None` if an application lent it.
    owned: Option<Owned>,
}

struct QueueHandle {
    queue: vk::Queue,
    valid_bits: u32,
    /// `vkQueueSubmit` is called by one thread at a time.
    lock: Arc<dyn QueueLock>,
}

struct Owned {
    instance: ash::Instance,
    messenger: Option<Messenger>,
    /// Holds the loader.
    _entry: ash::Entry,
}

#[derive(Default)]
struct Tables {
    timelines: Vec<Timeline>,
    events: Vec<vk::Event>,
    /// Query pools; the slot's query is at `slot % QUERIES`.
    queries: Vec<vk::QueryPool>,
    /// Valid bits of the timestamp that each slot was last written with.
    bits: Vec<u32>,
    buffers: Vec<Option<Buffer>>,
}

struct Timeline {
    semaphore: vk::Semaphore,
    /// `None` for a timeline of the host.
    pool: Option<vk::CommandPool>,
    queue: QueueId,
    buffers: Vec<CommandBuffer>,
    /// The newest value that a batch will signal.
    submitted: AtomicU64,
}

struct CommandBuffer {
    handle: vk::CommandBuffer,
    /// `vkEndCommandBuffer` was called, and a submit refused.
    ended: AtomicBool,
}

#[derive(Clone, Copy)]
struct Buffer {
    handle: vk::Buffer,
    memory: vk::DeviceMemory,
    mapped: *mut c_void,
}

// SAFETY: the pointer is to memory mapped for the buffer's life; what the threads write there is their own affair,
// as it is with the device.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

/// From everything written before to everything after.
const WRITES: vk::AccessFlags = vk::AccessFlags::MEMORY_WRITE;
const ALL: vk::AccessFlags =
    vk::AccessFlags::from_raw(vk::AccessFlags::MEMORY_READ.as_raw() | vk::AccessFlags::MEMORY_WRITE.as_raw());

/// A memory barrier between stages, in the words of both interfaces.
#[derive(Clone, Copy)]
struct Dependency {
    from: (vk::PipelineStageFlags, vk::AccessFlags),
    to: (vk::PipelineStageFlags, vk::AccessFlags),
}

impl Dependency {
    const FULL: Dependency = Dependency {
        from: (vk::PipelineStageFlags::ALL_COMMANDS, WRITES),
        to: (vk::PipelineStageFlags::ALL_COMMANDS, ALL),
    };
    /// Waits for nothing; sees what was made available before the submission.
    const ACQUIRE: Dependency =
        Dependency { from: (vk::PipelineStageFlags::TOP_OF_PIPE, vk::AccessFlags::empty()), ..Dependency::FULL };
    const HOST: Dependency =
        Dependency { to: (vk::PipelineStageFlags::HOST, vk::AccessFlags::HOST_READ), ..Dependency::FULL };

    fn memory(self) -> vk::MemoryBarrier<'static> {
        vk::MemoryBarrier::default().src_access_mask(self.from.1).dst_access_mask(self.to.1)
    }

    /// The lower 32 bits of the newer flags are the older ones.
    fn memory2(self) -> vk::MemoryBarrier2<'static> {
        let stage = |flags: vk::PipelineStageFlags| vk::PipelineStageFlags2::from_raw(flags.as_raw().into());
        let access = |flags: vk::AccessFlags| vk::AccessFlags2::from_raw(flags.as_raw().into());
        vk::MemoryBarrier2::default()
            .src_stage_mask(stage(self.from.0))
            .src_access_mask(access(self.from.1))
            .dst_stage_mask(stage(self.to.0))
            .dst_access_mask(access(self.to.1))
    }
}

fn check<T>(call: &'static str, result: Result<T, vk::Result>) -> Answer<T> {
    result.map_err(DriverError::of(call))
}

impl Vulkan {
    fn tables(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn tables_mut(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn command_buffer(&self, lease: Lease) -> vk::CommandBuffer {
        self.tables().timelines[lease.timeline as usize].buffers[lease.buffer as usize].handle
    }

    fn semaphore(&self, timeline: u32) -> vk::Semaphore {
        self.tables().timelines[timeline as usize].semaphore
    }

    fn event(&self, slot: u32) -> vk::Event {
        self.tables().events[slot as usize]
    }

    fn pipeline_barrier(&self, buffer: vk::CommandBuffer, dependency: Dependency) {
        match &self.synchronization2 {
            Some(fp) => {
                let memory = [dependency.memory2()];
                let info = vk::DependencyInfo::default().memory_barriers(&memory);
                // SAFETY: the buffer is recording, and its timeline is ours alone for this call.
                unsafe { (fp.cmd_pipeline_barrier2_khr)(buffer, &info) };
            }
            None => {
                let ((from, _), (to, _), none) = (dependency.from, dependency.to, vk::DependencyFlags::empty());
                let memory = [dependency.memory()];
                // SAFETY: as above.
                unsafe { self.device.cmd_pipeline_barrier(buffer, from, to, none, &memory, &[], &[]) };
            }
        }
    }

    fn begin_buffer(&self, buffer: vk::CommandBuffer) -> Answer<()> {
        let once = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the machine leases a buffer only when it does not execute; the pool allows the implicit reset.
        check("vkBeginCommandBuffer", unsafe { self.device.begin_command_buffer(buffer, &once) })
    }

    /// The pool of a slot's query, made if it is missing. The second says which query it is.
    fn query(&self, slot: u32) -> Answer<(vk::QueryPool, u32)> {
        let mut tables = self.tables_mut();
        while tables.queries.len() <= (slot / QUERIES) as usize {
            let info = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(QUERIES);
            // SAFETY: the device lives, and the pool is reset before its first use.
            let pool = check("vkCreateQueryPool", unsafe { self.device.create_query_pool(&info, None) })?;
            // SAFETY: hostQueryReset is enabled, or nobody asks for a query.
            unsafe { self.device.reset_query_pool(pool, 0, QUERIES) };
            tables.queries.push(pool);
            let slots = tables.queries.len() * QUERIES as usize;
            tables.bits.resize(slots, 0);
        }
        Ok((tables.queries[(slot / QUERIES) as usize], slot % QUERIES))
    }

    /// Waits for every batch that was submitted, or for the loss of the device.
    fn wait_for_all(&self, tables: &Tables) {
        let semaphores: Vec<vk::Semaphore> = tables.timelines.iter().map(|t| t.semaphore).collect();
        let values: Vec<u64> = tables.timelines.iter().map(|t| t.submitted.load(Ordering::Relaxed)).collect();
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        // SAFETY: timelines live as long as the driver.
        let _ = surely(|| check("vkWaitSemaphores", unsafe { self.device.wait_semaphores(&info, u64::MAX) }));
    }

    fn allocate_memory(&self, buffer: vk::Buffer) -> Answer<(vk::DeviceMemory, *mut c_void)> {
        // SAFETY: the buffer is ours and new.
        let needs = unsafe { self.device.get_buffer_memory_requirements(buffer) };
        let shared = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let allowed = |wanted| {
            let types = self.memory.memory_types_as_slice();
            let fits = |at: &usize| needs.memory_type_bits >> at & 1 == 1 && types[*at].property_flags.contains(wanted);
            (0..types.len()).find(fits)
        };
        // The specification promises one that is visible and coherent; cached is faster to read.
        let kind = allowed(shared | vk::MemoryPropertyFlags::HOST_CACHED).or_else(|| allowed(shared)).unwrap_or(0);
        let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(kind as u32);
        // SAFETY: size and type are the device's own.
        let memory = check("vkAllocateMemory", unsafe { self.device.allocate_memory(&info, None) })?;
        // SAFETY: memory and buffer are new and fit each other; the mapping lasts until the memory is freed.
        let bound = unsafe {
            self.device
                .bind_buffer_memory(buffer, memory, 0)
                .and_then(|()| self.device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()))
        };
        check("vkMapMemory", bound).map(|mapped| (memory, mapped)).inspect_err(|_| {
            // SAFETY: nothing uses it.
            unsafe { self.device.free_memory(memory, None) }
        })
    }
}

// SAFETY: It wraps no driver.
unsafe impl Driver for Vulkan {
    fn name(&self) -> &str {
        &self.name
    }

    fn queues(&self) -> &[Queue] {
        &self.queues
    }

    fn create_timeline(&self, timeline: u32, queue: QueueId) -> Answer<()> {
        let mut kind =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE).initial_value(0);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: timeline semaphores are enabled.
        let semaphore = check("vkCreateSemaphore", unsafe { self.device.create_semaphore(&info, None) })?;
        let pool = self.queues.get(queue as usize).map(|queue| {
            let info = vk::CommandPoolCreateInfo::default()
                .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER)
                .queue_family_index(queue.family);
            // SAFETY: the family is one the device was made with.
            check("vkCreateCommandPool", unsafe { self.device.create_command_pool(&info, None) })
        });
        let pool = pool.transpose().inspect_err(|_| {
            // SAFETY: nothing knows it yet.
            unsafe { self.device.destroy_semaphore(semaphore, None) }
        })?;
        let mut tables = self.tables_mut();
        debug_assert_eq!(tables.timelines.len(), timeline as usize, "the machine numbers timelines without a gap");
        tables.timelines.push(Timeline { semaphore, pool, queue, buffers: Vec::new(), submitted: AtomicU64::new(0) });
        Ok(())
    }

    fn create_event(&self, slot: u32) -> Answer<()> {
        // SAFETY: the device lives.
        let event = unsafe { self.device.create_event(&vk::EventCreateInfo::default(), None) };
        let event = check("vkCreateEvent", event)?;
        let mut tables = self.tables_mut();
        debug_assert_eq!(tables.events.len(), slot as usize, "the machine numbers slots without a gap");
        tables.events.push(event);
        Ok(())
    }

    fn reset_event(&self, _: Asked, slot: u32) -> Answer<()> {
        // SAFETY: the machine resets a slot only when no command that names it is left on the device.
        check("vkResetEvent", unsafe { self.device.reset_event(self.event(slot)) })?;
        let pool = self.tables().queries.get((slot / QUERIES) as usize).copied();
        if let Some(pool) = pool {
            // SAFETY: the query lives by the slot's life cycle, so the same holds.
            unsafe { self.device.reset_query_pool(pool, slot % QUERIES, 1) };
        }
        Ok(())
    }

    fn create_buffer(&self, size: u64) -> Answer<BufferId> {
        let usage = vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST
            | vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::UNIFORM_BUFFER;
        let mut families: Vec<u32> = self.queues.iter().map(|q| q.family).collect();
        families.sort_unstable();
        families.dedup();
        // Any stream may use it, and no queue family has to hand it over.
        let info = vk::BufferCreateInfo::default().size(size.max(4)).usage(usage);
        let info = match families.len() {
            1 => info,
            _ => info.sharing_mode(vk::SharingMode::CONCURRENT).queue_family_indices(&families),
        };
        // SAFETY: the families are the device's.
        let handle = check("vkCreateBuffer", unsafe { self.device.create_buffer(&info, None) })?;
        let (memory, mapped) = self.allocate_memory(handle).inspect_err(|_| {
            // SAFETY: nothing knows it yet.
            unsafe { self.device.destroy_buffer(handle, None) }
        })?;
        let buffers = &mut self.tables_mut().buffers;
        let at = buffers.iter().position(Option::is_none).unwrap_or_else(|| {
            buffers.push(None);
            buffers.len() - 1
        });
        buffers[at] = Some(Buffer { handle, memory, mapped });
        Ok(at as BufferId)
    }

    fn destroy_buffer(&self, _: Asked, buffer: BufferId) {
        if let Some(buffer) = self.tables_mut().buffers[buffer as usize].take() {
            // SAFETY: the caller says that nothing uses it.
            unsafe {
                self.device.destroy_buffer(buffer.handle, None);
                self.device.free_memory(buffer.memory, None);
            }
        }
    }

    fn raw_buffer(&self, buffer: BufferId) -> Option<vk::Buffer> {
        Some(self.tables().buffer(buffer).handle)
    }

    fn write(&self, _: Asked, buffer: BufferId, offset: u64, bytes: &[u8]) {
        let mapped = self.tables().buffer(buffer).mapped.cast::<u8>();
        // SAFETY: the range lies in the mapping, which no Rust reference points into.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), mapped.add(offset as usize), bytes.len()) };
    }

    fn read(&self, _: Asked, buffer: BufferId, offset: u64, bytes: &mut [u8]) {
        let mapped = self.tables().buffer(buffer).mapped.cast::<u8>();
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(mapped.add(offset as usize), bytes.as_mut_ptr(), bytes.len()) };
    }

    fn begin(&self, _: Asked, lease: Lease, new: bool) -> Answer<()> {
        let pool = self.tables().timelines[lease.timeline as usize].pool;
        let Some(pool) = pool else { return Ok(()) }; // The host's batches hold nothing.
        if !new {
            self.tables().ended(lease).store(false, Ordering::Relaxed);
            return self.begin_buffer(self.command_buffer(lease));
        }
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        // SAFETY: the pool is the timeline's, which is ours alone for this call.
        let buffers = unsafe { self.device.allocate_command_buffers(&info) };
        let handle = check("vkAllocateCommandBuffers", buffers)?[0];
        self.begin_buffer(handle).inspect_err(|_| {
            // SAFETY: it never ran.
            unsafe { self.device.free_command_buffers(pool, &[handle]) }
        })?;
        let mut tables = self.tables_mut();
        let buffers = &mut tables.timelines[lease.timeline as usize].buffers;
        debug_assert_eq!(buffers.len(), lease.buffer as usize, "the machine numbers buffers without a gap");
        buffers.push(CommandBuffer { handle, ended: AtomicBool::new(false) });
        Ok(())
    }

    fn set(&self, _: Asked, lease: Lease, slot: u32) {
        let (buffer, event) = (self.command_buffer(lease), self.event(slot));
        match &self.synchronization2 {
            Some(fp) => {
                let memory = [Dependency::FULL.memory2()];
                let info = vk::DependencyInfo::default().memory_barriers(&memory);
                // SAFETY: the buffer is recording for a queue with events; the event was reset.
                unsafe { (fp.cmd_set_event2_khr)(buffer, event, &info) };
            }
            // SAFETY: as above.
            None => unsafe { self.device.cmd_set_event(buffer, event, Dependency::FULL.from.0) },
        }
    }

    fn timestamp(&self, _: Asked, lease: Lease, slot: u32) {
        let valid_bits = self.handles[self.tables().timelines[lease.timeline as usize].queue as usize].valid_bits;
        if valid_bits == 0 || !self.host_query_reset {
            return;
        }
        let Ok((pool, query)) = self.query(slot) else {
            tracing::warn!(slot, "no query pool could be made: this recording has no time");
            return;
        };
        self.tables_mut().bits[slot as usize] = valid_bits;
        let (buffer, stage) = (self.command_buffer(lease), vk::PipelineStageFlags::BOTTOM_OF_PIPE);
        // SAFETY: the query was reset with its slot, and the buffer is recording.
        unsafe { self.device.cmd_write_timestamp(buffer, stage, pool, query) };
    }

    fn wait(&self, _: Asked, lease: Lease, slot: u32) {
        let (buffer, event) = (self.command_buffer(lease), [self.event(slot)]);
        match &self.synchronization2 {
            Some(fp) => {
                let memory = [Dependency::FULL.memory2()];
                let info = [vk::DependencyInfo::default().memory_barriers(&memory)];
                // SAFETY: the event is set on this queue, earlier, with the same dependency.
                unsafe { (fp.cmd_wait_events2_khr)(buffer, 1, event.as_ptr(), info.as_ptr()) };
            }
            None => {
                let (from, to) = (Dependency::FULL.from.0, Dependency::FULL.to.0);
                let memory = [Dependency::FULL.memory()];
                // SAFETY: as above, with the same stage.
                unsafe { self.device.cmd_wait_events(buffer, &event, from, to, &memory, &[], &[]) };
            }
        }
    }

    fn barrier(&self, _: Asked, lease: Lease) {
        self.pipeline_barrier(self.command_buffer(lease), Dependency::FULL);
    }

    fn acquire(&self, _: Asked, lease: Lease) {
        self.pipeline_barrier(self.command_buffer(lease), Dependency::ACQUIRE);
    }

    fn fill(&self, _: Asked, lease: Lease, buffer: BufferId, offset: u64, size: u64, word: u32) {
        let (commands, buffer) = (self.command_buffer(lease), self.tables().buffer(buffer).handle);
        // SAFETY: the range was checked, and the buffer lives until the batch has ended.
        unsafe { self.device.cmd_fill_buffer(commands, buffer, offset, size, word) };
    }

    fn copy(&self, _: Asked, lease: Lease, from: (BufferId, u64), to: (BufferId, u64), size: u64) {
        let commands = self.command_buffer(lease);
        let region = vk::BufferCopy { src_offset: from.1, dst_offset: to.1, size };
        let (from, to) = (self.tables().buffer(from.0).handle, self.tables().buffer(to.0).handle);
        // SAFETY: as above, for both.
        unsafe { self.device.cmd_copy_buffer(commands, from, to, &[region]) };
    }

    fn dispatch(&self, _: Asked, lease: Lease, dispatch: &Dispatch) -> Result<(), Error> {
        let (buffer, point) = (self.command_buffer(lease), vk::PipelineBindPoint::COMPUTE);
        let Dispatch { pipeline, layout, descriptor_sets, push_constants, groups: [x, y, z] } = *dispatch;
        // SAFETY: handles are the caller's, who promised by the contract of `Commands::dispatch`.
        unsafe {
            self.device.cmd_bind_pipeline(buffer, point, pipeline);
            if !descriptor_sets.is_empty() {
                self.device.cmd_bind_descriptor_sets(buffer, point, layout, 0, descriptor_sets, &[]);
            }
            if !push_constants.is_empty() {
                self.device.cmd_push_constants(buffer, layout, vk::ShaderStageFlags::COMPUTE, 0, push_constants);
            }
            self.device.cmd_dispatch(buffer, x, y, z);
        }
        Ok(())
    }

    fn raw(&self, lease: Lease) -> Option<Raw<'_>> {
        Some(Raw { device: &self.device, buffer: self.command_buffer(lease) })
    }

    fn submit(&self, _: Asked, batch: &Batch) -> Answer<()> {
        let tables = self.tables();
        let buffer = batch.lease.map(|l| tables.timelines[l.timeline as usize].buffers[l.buffer as usize].handle);
        if let (Some(lease), Some(buffer)) = (batch.lease, buffer)
            && !tables.ended(lease).load(Ordering::Relaxed)
        {
            self.pipeline_barrier(buffer, Dependency::HOST);
            // SAFETY: the buffer is recording.
            let ended = unsafe { self.device.end_command_buffer(buffer) };
            if ended.is_err() {
                // The buffer is invalid: what was recorded is gone, and with it the order. Nobody may go on, and what
                // "lost" lets go of may not be in use.
                self.wait_for_all(&tables);
                return check("vkEndCommandBuffer", Err(vk::Result::ERROR_DEVICE_LOST));
            }
            tables.ended(lease).store(true, Ordering::Relaxed);
        }
        let semaphores = |&(timeline, _): &(u32, u64)| tables.timelines[timeline as usize].semaphore;
        let waits: SmallVec<[vk::Semaphore; 8]> = batch.waits.iter().map(semaphores).collect();
        let values: SmallVec<[u64; 8]> = batch.waits.iter().map(|(_, value)| *value).collect();
        let stages = SmallVec::<[_; 8]>::from_elem(vk::PipelineStageFlags::ALL_COMMANDS, waits.len());
        let signal = ([semaphores(&(batch.timeline, 0))], [batch.value]);
        let mut timeline = vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&values)
            .signal_semaphore_values(&signal.1);
        let submit = vk::SubmitInfo::default()
            .wait_semaphores(&waits)
            .wait_dst_stage_mask(&stages)
            .command_buffers(buffer.as_slice())
            .signal_semaphores(&signal.0)
            .push_next(&mut timeline);
        let (handle, newest) = (&self.handles[batch.queue as usize], batch.timeline as usize);
        drop(tables); // The lock may be the application's, and take its time.
        let mut submitted = Ok(());
        handle.lock.alone(&mut || {
            // SAFETY: the buffer has ended; the value is greater than every earlier one, which the machine sees to;
            // nobody else submits.
            submitted = unsafe { self.device.queue_submit(handle.queue, &[submit], vk::Fence::null()) };
        });
        check("vkQueueSubmit", submitted)?;
        self.tables().timelines[newest].submitted.store(batch.value, Ordering::Relaxed);
        Ok(())
    }

    fn signal(&self, _: Asked, timeline: u32, value: u64) -> Answer<()> {
        let info = vk::SemaphoreSignalInfo::default().semaphore(self.semaphore(timeline)).value(value);
        // SAFETY: nobody but the host signals this timeline, one value after the other.
        check("vkSignalSemaphore", unsafe { self.device.signal_semaphore(&info) })
    }

    fn counter(&self, timeline: u32) -> Answer<u64> {
        // SAFETY: timelines live as long as the driver.
        let value = unsafe { self.device.get_semaphore_counter_value(self.semaphore(timeline)) };
        check("vkGetSemaphoreCounterValue", value)
    }

    fn block(&self, timeline: u32, value: u64, nanoseconds: u64) -> Answer<bool> {
        let (semaphores, values) = ([self.semaphore(timeline)], [value]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        // SAFETY: as above.
        match unsafe { self.device.wait_semaphores(&info, nanoseconds) } {
            Ok(()) => Ok(true),
            Err(vk::Result::TIMEOUT) => Ok(false),
            Err(result) => check("vkWaitSemaphores", Err(result)),
        }
    }

    fn time(&self, slot: u32) -> Answer<Option<Time>> {
        let tables = self.tables();
        let Some(pool) = tables.queries.get((slot / QUERIES) as usize) else { return Ok(None) };
        let mut ticks = [0u64];
        let flags = vk::QueryResultFlags::TYPE_64;
        // SAFETY: the query exists; without WAIT the call returns at once.
        match unsafe { self.device.get_query_pool_results(*pool, slot % QUERIES, &mut ticks, flags) } {
            Ok(()) => Ok(Some(Time { ticks: ticks[0], valid_bits: tables.bits[slot as usize], period: self.period })),
            Err(vk::Result::NOT_READY) => Ok(None),
            Err(result) => check("vkGetQueryPoolResults", Err(result)),
        }
    }
}

impl Tables {
    fn buffer(&self, buffer: BufferId) -> Buffer {
        self.buffers[buffer as usize].expect("a buffer is destroyed with its last handle")
    }

    fn ended(&self, lease: Lease) -> &AtomicBool {
        &self.timelines[lease.timeline as usize].buffers[lease.buffer as usize].ended
    }
}

/// Whoever drops the driver has waited for every batch.
impl Drop for Vulkan {
    fn drop(&mut self) {
        let tables = std::mem::take(&mut *self.tables_mut());
        // SAFETY: nothing runs, and every object is destroyed once. After loss nothing runs either.
        unsafe {
            for buffer in tables.buffers.into_iter().flatten() {
                self.device.destroy_buffer(buffer.handle, None);
                self.device.free_memory(buffer.memory, None);
            }
            tables.events.into_iter().for_each(|event| self.device.destroy_event(event, None));
            tables.queries.into_iter().for_each(|pool| self.device.destroy_query_pool(pool, None));
            for timeline in tables.timelines {
                timeline.pool.into_iter().for_each(|pool| self.device.destroy_command_pool(pool, None));
                self.device.destroy_semaphore(timeline.semaphore, None);
            }
        }
        if let Some(owned) = self.owned.take() {
            // SAFETY: nothing of the device is left. The messenger goes before the instance, which hears the device go.
            unsafe {
                self.device.destroy_device(None);
                owned.messenger.into_iter().for_each(Messenger::destroy);
                owned.instance.destroy_instance(None);
            }
        }
    }
}
