//! The calls that are looked into: each tells the judge, and asks the driver.

use std::ffi::{CStr, c_void};

use ash::vk::{self, Handle as _, TaggedStructure};
use fencepost::judge::{Blocking, Call, Dependency, Handle, Kind, SemaphoreValue, Stages, SubmitInfo};
use smallvec::SmallVec;

use crate::chain::{device_of, forget};
use crate::device::Device;
use crate::session::Session;

type Few<T> = SmallVec<[T; 8]>;
type Allocator<'a> = *const vk::AllocationCallbacks<'a>;

/// What is answered where no driver can be asked.
trait Missing {
    fn missing() -> Self;
}

impl Missing for vk::Result {
    fn missing() -> vk::Result {
        vk::Result::ERROR_EXTENSION_NOT_PRESENT
    }
}

impl Missing for () {
    fn missing() {}
}

/// The device of an object, or an answer without one.
macro_rules! device {
    ($handle:expr) => {{
        // SAFETY: the application's object lives during its call.
        let Some(device) = (unsafe { device_of($handle) }) else { return Missing::missing() };
        device
    }};
}

/// The same call, on the next layer or the driver.
macro_rules! next {
    ($device:ident.$function:ident($($argument:expr),*)) => {
        match $device.next.$function {
            // SAFETY: the application's own arguments.
            Some(function) => unsafe { function($($argument),*) },
            None => Missing::missing(),
        }
    };
}

mod bind;
mod pass;
mod work;

pub use bind::*;
pub use pass::*;
pub use work::*;

/// # Safety
/// `first` points to `count` of them, or is null.
pub unsafe fn list<'a, T>(first: *const T, count: u32) -> &'a [T] {
    if first.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: as the caller says.
    unsafe { std::slice::from_raw_parts(first, count as usize) }
}

/// The structure of this type in a chain.
///
/// # Safety
/// The chain is one of Vulkan structures, or null.
pub unsafe fn chained<'a, T: TaggedStructure>(chain: *const c_void) -> Option<&'a T> {
    let mut at = chain.cast::<vk::BaseInStructure<'a>>();
    // SAFETY: every structure in a chain begins with its type and the next one.
    while let Some(structure) = unsafe { at.as_ref() } {
        if structure.s_type == T::STRUCTURE_TYPE {
            // SAFETY: its type says so.
            return Some(unsafe { &*at.cast::<T>() });
        }
        at = structure.p_next;
    }
    None
}

// The device and its queues ----------------------------------------------------------------------

pub unsafe extern "system" fn destroy_device(handle: vk::Device, allocator: Allocator<'_>) {
    let device = device!(handle);
    device.close();
    // SAFETY: the device lives until the driver is asked.
    unsafe { forget(handle) };
    next!(device.destroy_device(handle, allocator))
}

pub unsafe extern "system" fn get_device_queue(handle: vk::Device, family: u32, index: u32, queue: *mut vk::Queue) {
    let device = device!(handle);
    next!(device.get_device_queue(handle, family, index, queue));
    // SAFETY: the driver wrote it.
    queue_got(&device, "vkGetDeviceQueue", unsafe { *queue });
}

pub unsafe extern "system" fn get_device_queue2(
    handle: vk::Device,
    info: *const vk::DeviceQueueInfo2<'_>,
    queue: *mut vk::Queue,
) {
    let device = device!(handle);
    next!(device.get_device_queue2(handle, info, queue));
    // SAFETY: the driver wrote it.
    queue_got(&device, "vkGetDeviceQueue2", unsafe { *queue });
}

fn queue_got(device: &Device, call: &'static str, queue: vk::Queue) {
    if queue != vk::Queue::null() {
        device.judge(|s| {
            let queue = s.number(Kind::Queue, queue.as_raw());
            s.call(call, &Call::GetDeviceQueue { queue });
        });
    }
}

pub unsafe extern "system" fn device_wait_idle(handle: vk::Device) -> vk::Result {
    let device = device!(handle);
    let call = |s: &mut Session| s.call("vkDeviceWaitIdle", &Call::Wait(Blocking::DeviceIdle));
    device.blocking("vkDeviceWaitIdle", call, || next!(device.device_wait_idle(handle)))
}

pub unsafe extern "system" fn queue_wait_idle(queue: vk::Queue) -> vk::Result {
    let device = device!(queue);
    let call = |s: &mut Session| {
        let queue = s.number(Kind::Queue, queue.as_raw());
        s.call("vkQueueWaitIdle", &Call::Wait(Blocking::QueueIdle { queue }));
    };
    device.blocking("vkQueueWaitIdle", call, || next!(device.queue_wait_idle(queue)))
}

// Submissions ------------------------------------------------------------------------------------

/// One batch, with its lists.
#[derive(Default)]
struct Batch {
    waits: Few<SemaphoreValue>,
    command_buffers: Few<Handle>,
    signals: Few<SemaphoreValue>,
}

fn semaphore(s: &mut Session, semaphore: vk::Semaphore, value: u64, stages: Stages) -> SemaphoreValue {
    let raw = semaphore.as_raw();
    SemaphoreValue { semaphore: s.number(Kind::Semaphore, raw), value: s.value(raw, value), stages }
}

fn command_buffer(s: &mut Session, command_buffer: vk::CommandBuffer) -> Handle {
    s.number(Kind::CommandBuffer, command_buffer.as_raw())
}

fn submit(s: &mut Session, call: &'static str, queue: vk::Queue, batches: &[Batch], fence: vk::Fence) {
    let queue = s.number(Kind::Queue, queue.as_raw());
    let fence = (fence != vk::Fence::null()).then(|| s.number(Kind::Fence, fence.as_raw()));
    let submits: Few<SubmitInfo<'_>> = batches
        .iter()
        .map(|b| SubmitInfo { waits: &b.waits, command_buffers: &b.command_buffers, signals: &b.signals })
        .collect();
    s.call(call, &Call::Submit { queue, submits: &submits, fence });
}

pub unsafe extern "system" fn queue_submit(
    queue: vk::Queue,
    count: u32,
    submits: *const vk::SubmitInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    let device = device!(queue);
    device.judge(|s| {
        // SAFETY: the application's structures, as Vulkan demands.
        let batches: Few<Batch> =
            unsafe { list(submits, count) }.iter().map(|info| unsafe { batch(s, info) }).collect();
        submit(s, "vkQueueSubmit", queue, &batches, fence);
    });
    let result = next!(device.queue_submit(queue, count, submits, fence));
    device.judge(|s| s.returned("vkQueueSubmit", result));
    result
}

/// # Safety
/// The structure is valid.
unsafe fn batch(s: &mut Session, info: &vk::SubmitInfo<'_>) -> Batch {
    // SAFETY: as the caller says.
    let (waits, stages, signals, buffers, values) = unsafe {
        (
            list(info.p_wait_semaphores, info.wait_semaphore_count),
            list(info.p_wait_dst_stage_mask, info.wait_semaphore_count),
            list(info.p_signal_semaphores, info.signal_semaphore_count),
            list(info.p_command_buffers, info.command_buffer_count),
            chained::<vk::TimelineSemaphoreSubmitInfo<'_>>(info.p_next),
        )
    };
    // SAFETY: as above.
    let (wait_values, signal_values) = unsafe { timeline_values(values) };
    let stage = |at| stages.get(at).map_or(ALL, |stages: &vk::PipelineStageFlags| u64::from(stages.as_raw()));
    Batch {
        waits: valued(s, waits, wait_values, stage),
        command_buffers: buffers.iter().map(|c| command_buffer(s, *c)).collect(),
        signals: valued(s, signals, signal_values, |_| ALL),
    }
}

const ALL: Stages = fencepost::judge::ALL_COMMANDS;

unsafe fn timeline_values<'a>(values: Option<&'a vk::TimelineSemaphoreSubmitInfo<'_>>) -> (&'a [u64], &'a [u64]) {
    values.map_or((&[], &[]), |values| {
        // SAFETY: the structure is valid.
        unsafe {
            (
                list(values.p_wait_semaphore_values, values.wait_semaphore_value_count),
                list(values.p_signal_semaphore_values, values.signal_semaphore_value_count),
            )
        }
    })
}

fn valued(
    s: &mut Session,
    semaphores: &[vk::Semaphore],
    values: &[u64],
    stages: impl Fn(usize) -> Stages,
) -> Few<SemaphoreValue> {
    let value = |at| values.get(at).copied().unwrap_or(0);
    semaphores.iter().enumerate().map(|(at, handle)| semaphore(s, *handle, value(at), stages(at))).collect()
}

pub unsafe extern "system" fn queue_submit2(
    queue: vk::Queue,
    count: u32,
    submits: *const vk::SubmitInfo2<'_>,
    fence: vk::Fence,
) -> vk::Result {
    let device = device!(queue);
    device.judge(|s| {
        // SAFETY: the application's structures, as Vulkan demands.
        let infos = unsafe { list(submits, count) };
        let batches: Few<Batch> = infos
            .iter()
            .map(|info| {
                // SAFETY: as above.
                let (waits, buffers, signals) = unsafe {
                    (
                        list(info.p_wait_semaphore_infos, info.wait_semaphore_info_count),
                        list(info.p_command_buffer_infos, info.command_buffer_info_count),
                        list(info.p_signal_semaphore_infos, info.signal_semaphore_info_count),
                    )
                };
                let mut values = |infos: &[vk::SemaphoreSubmitInfo<'_>]| {
                    infos.iter().map(|i| semaphore(s, i.semaphore, i.value, i.stage_mask.as_raw())).collect()
                };
                let (waits, signals) = (values(waits), values(signals));
                let command_buffers = buffers.iter().map(|info| command_buffer(s, info.command_buffer)).collect();
                Batch { waits, command_buffers, signals }
            })
            .collect();
        submit(s, "vkQueueSubmit2", queue, &batches, fence);
    });
    let result = next!(device.queue_submit2(queue, count, submits, fence));
    device.judge(|s| s.returned("vkQueueSubmit2", result));
    result
}

pub unsafe extern "system" fn queue_bind_sparse(
    queue: vk::Queue,
    count: u32,
    infos: *const vk::BindSparseInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    let device = device!(queue);
    device.judge(|s| {
        // SAFETY: the application's structures, as Vulkan demands.
        let batches = unsafe { list(infos, count) }.iter().map(|info| {
            // SAFETY: as above.
            let (waits, signals, (wait_values, signal_values)) = unsafe {
                (
                    list(info.p_wait_semaphores, info.wait_semaphore_count),
                    list(info.p_signal_semaphores, info.signal_semaphore_count),
                    timeline_values(chained(info.p_next)),
                )
            };
            let (waits, signals) = (valued(s, waits, wait_values, |_| ALL), valued(s, signals, signal_values, |_| ALL));
            Batch { waits, signals, ..Batch::default() }
        });
        let batches: Few<Batch> = batches.collect();
        submit(s, "vkQueueBindSparse", queue, &batches, fence);
    });
    let result = next!(device.queue_bind_sparse(queue, count, infos, fence));
    device.judge(|s| s.returned("vkQueueBindSparse", result));
    result
}

pub unsafe extern "system" fn queue_present(queue: vk::Queue, info: *const vk::PresentInfoKHR<'_>) -> vk::Result {
    let device = device!(queue);
    device.judge(|s| {
        // SAFETY: the application's structures, as Vulkan demands.
        let semaphores = unsafe { list((*info).p_wait_semaphores, (*info).wait_semaphore_count) };
        let batch = Batch { waits: valued(s, semaphores, &[], |_| ALL), ..Batch::default() };
        submit(s, "vkQueuePresentKHR", queue, &[batch], vk::Fence::null());
    });
    let result = next!(device.queue_present(queue, info));
    // A swapchain that is out of date does not keep the semaphores from being waited for ("vkQueuePresentKHR").
    let refused =
        [vk::Result::ERROR_OUT_OF_HOST_MEMORY, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY, vk::Result::ERROR_DEVICE_LOST];
    let judged = if refused.contains(&result) { result } else { vk::Result::SUCCESS };
    device.judge(|s| s.returned("vkQueuePresentKHR", judged));
    result
}

// Payloads from outside --------------------------------------------------------------------------

fn signalled_outside(device: &Device, call: &'static str, semaphore: vk::Semaphore, fence: vk::Fence) {
    device.judge(|s| {
        let semaphore = Some(semaphore.as_raw()).filter(|raw| *raw != 0).map(|raw| s.number(Kind::Semaphore, raw));
        let fence = Some(fence.as_raw()).filter(|raw| *raw != 0).map(|raw| s.number(Kind::Fence, raw));
        s.call(call, &Call::SignalledOutside { semaphore, fence });
    });
}

pub unsafe extern "system" fn acquire_next_image(
    handle: vk::Device,
    swapchain: vk::SwapchainKHR,
    timeout: u64,
    semaphore: vk::Semaphore,
    fence: vk::Fence,
    index: *mut u32,
) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.acquire_next_image(handle, swapchain, timeout, semaphore, fence, index));
    if result == vk::Result::SUCCESS || result == vk::Result::SUBOPTIMAL_KHR {
        signalled_outside(&device, "vkAcquireNextImageKHR", semaphore, fence);
    }
    device.answered("vkAcquireNextImageKHR", result)
}

pub unsafe extern "system" fn acquire_next_image2(
    handle: vk::Device,
    info: *const vk::AcquireNextImageInfoKHR<'_>,
    index: *mut u32,
) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.acquire_next_image2(handle, info, index));
    if result == vk::Result::SUCCESS || result == vk::Result::SUBOPTIMAL_KHR {
        // SAFETY: the application's structure.
        let (semaphore, fence) = unsafe { ((*info).semaphore, (*info).fence) };
        signalled_outside(&device, "vkAcquireNextImage2KHR", semaphore, fence);
    }
    device.answered("vkAcquireNextImage2KHR", result)
}

pub unsafe extern "system" fn import_semaphore_fd(
    handle: vk::Device,
    info: *const vk::ImportSemaphoreFdInfoKHR<'_>,
) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.import_semaphore_fd(handle, info));
    if result == vk::Result::SUCCESS {
        // SAFETY: the application's structure.
        let semaphore = unsafe { (*info).semaphore };
        signalled_outside(&device, "vkImportSemaphoreFdKHR", semaphore, vk::Fence::null());
    }
    result
}

pub unsafe extern "system" fn import_fence_fd(
    handle: vk::Device,
    info: *const vk::ImportFenceFdInfoKHR<'_>,
) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.import_fence_fd(handle, info));
    if result == vk::Result::SUCCESS {
        // SAFETY: the application's structure.
        let fence = unsafe { (*info).fence };
        signalled_outside(&device, "vkImportFenceFdKHR", vk::Semaphore::null(), fence);
    }
    result
}

/// A sync file takes the payload with it, as a reset does.
pub unsafe extern "system" fn get_fence_fd(
    handle: vk::Device,
    info: *const vk::FenceGetFdInfoKHR<'_>,
    fd: *mut std::ffi::c_int,
) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.get_fence_fd(handle, info, fd));
    // SAFETY: the application's structure.
    let (fence, kind) = unsafe { ((*info).fence, (*info).handle_type) };
    if result == vk::Result::SUCCESS && kind == vk::ExternalFenceHandleTypeFlags::SYNC_FD {
        signalled_outside(&device, "vkGetFenceFdKHR", vk::Semaphore::null(), fence);
    }
    result
}

// Command pools and command buffers --------------------------------------------------------------

pub unsafe extern "system" fn create_command_pool(
    handle: vk::Device,
    info: *const vk::CommandPoolCreateInfo<'_>,
    allocator: Allocator<'_>,
    pool: *mut vk::CommandPool,
) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.create_command_pool(handle, info, allocator, pool));
    if result == vk::Result::SUCCESS {
        device.judge(|s| {
            // SAFETY: the driver wrote it.
            let pool = s.made(Kind::CommandPool, unsafe { *pool }.as_raw());
            s.call("vkCreateCommandPool", &Call::CreateCommandPool { pool });
        });
    }
    result
}

pub unsafe extern "system" fn reset_command_pool(
    handle: vk::Device,
    pool: vk::CommandPool,
    flags: vk::CommandPoolResetFlags,
) -> vk::Result {
    let device = device!(handle);
    device.judge(|s| {
        let pool = s.number(Kind::CommandPool, pool.as_raw());
        s.call("vkResetCommandPool", &Call::ResetCommandPool { pool });
    });
    let result = next!(device.reset_command_pool(handle, pool, flags));
    device.answered("vkResetCommandPool", result)
}

pub unsafe extern "system" fn destroy_command_pool(
    handle: vk::Device,
    pool: vk::CommandPool,
    allocator: Allocator<'_>,
) {
    let device = device!(handle);
    if pool != vk::CommandPool::null() {
        device.judge(|s| {
            let pool = s.pool_gone(pool.as_raw());
            s.call("vkDestroyCommandPool", &Call::DestroyCommandPool { pool });
        });
    }
    next!(device.destroy_command_pool(handle, pool, allocator))
}

pub unsafe extern "system" fn allocate_command_buffers(
    handle: vk::Device,
    info: *const vk::CommandBufferAllocateInfo<'_>,
    command_buffers: *mut vk::CommandBuffer,
) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.allocate_command_buffers(handle, info, command_buffers));
    if result == vk::Result::SUCCESS {
        device.judge(|s| {
            // SAFETY: the application's structure; the driver wrote that many.
            let (info, handles) = unsafe { (&*info, list(command_buffers, (*info).command_buffer_count)) };
            let raw = info.command_pool.as_raw();
            let pool = s.number(Kind::CommandPool, raw);
            let command_buffers: Few<Handle> = handles.iter().map(|c| s.allocated(raw, c.as_raw())).collect();
            let call = Call::AllocateCommandBuffers { pool, command_buffers: &command_buffers };
            s.call("vkAllocateCommandBuffers", &call);
        });
    }
    result
}

pub unsafe extern "system" fn free_command_buffers(
    handle: vk::Device,
    pool: vk::CommandPool,
    count: u32,
    command_buffers: *const vk::CommandBuffer,
) {
    let device = device!(handle);
    device.judge(|s| {
        // SAFETY: the application's list.
        let raw = unsafe { list(command_buffers, count) }.iter().map(|c| c.as_raw()).filter(|raw| *raw != 0);
        let raw: Few<u64> = raw.collect();
        s.freed(pool.as_raw(), &raw);
        let command_buffers: Few<Handle> = raw.iter().map(|c| s.gone(Kind::CommandBuffer, *c)).collect();
        s.call("vkFreeCommandBuffers", &Call::FreeCommandBuffers { command_buffers: &command_buffers });
    });
    next!(device.free_command_buffers(handle, pool, count, command_buffers))
}

pub unsafe extern "system" fn begin_command_buffer(
    handle: vk::CommandBuffer,
    info: *const vk::CommandBufferBeginInfo<'_>,
) -> vk::Result {
    let device = device!(handle);
    device.judge(|s| {
        // SAFETY: the application's structure.
        let flags = unsafe { (*info).flags };
        let command_buffer = command_buffer(s, handle);
        s.bindings.begun(command_buffer);
        let call = Call::BeginCommandBuffer {
            command_buffer,
            one_time: flags.contains(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT),
            simultaneous: flags.contains(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE),
        };
        s.call("vkBeginCommandBuffer", &call);
    });
    let result = next!(device.begin_command_buffer(handle, info));
    device.answered("vkBeginCommandBuffer", result)
}

pub unsafe extern "system" fn end_command_buffer(handle: vk::CommandBuffer) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.end_command_buffer(handle));
    if result == vk::Result::SUCCESS {
        device.judge(|s| {
            let command_buffer = command_buffer(s, handle);
            s.call("vkEndCommandBuffer", &Call::EndCommandBuffer { command_buffer });
        });
    }
    device.answered("vkEndCommandBuffer", result)
}

pub unsafe extern "system" fn reset_command_buffer(
    handle: vk::CommandBuffer,
    flags: vk::CommandBufferResetFlags,
) -> vk::Result {
    let device = device!(handle);
    device.judge(|s| {
        let command_buffer = command_buffer(s, handle);
        s.call("vkResetCommandBuffer", &Call::ResetCommandBuffer { command_buffer });
    });
    let result = next!(device.reset_command_buffer(handle, flags));
    device.answered("vkResetCommandBuffer", result)
}

// Events, from the host --------------------------------------------------------------------------

pub unsafe extern "system" fn create_event(
    handle: vk::Device,
    info: *const vk::EventCreateInfo<'_>,
    allocator: Allocator<'_>,
    event: *mut vk::Event,
) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.create_event(handle, info, allocator, event));
    if result == vk::Result::SUCCESS {
        device.judge(|s| {
            // SAFETY: the driver wrote it.
            let event = s.made(Kind::Event, unsafe { *event }.as_raw());
            s.call("vkCreateEvent", &Call::CreateEvent { event });
        });
    }
    result
}

pub unsafe extern "system" fn destroy_event(handle: vk::Device, event: vk::Event, allocator: Allocator<'_>) {
    let device = device!(handle);
    if event != vk::Event::null() {
        device.judge(|s| {
            let event = s.gone(Kind::Event, event.as_raw());
            s.call("vkDestroyEvent", &Call::DestroyEvent { event });
        });
    }
    next!(device.destroy_event(handle, event, allocator))
}

pub unsafe extern "system" fn set_event(handle: vk::Device, event: vk::Event) -> vk::Result {
    let device = device!(handle);
    device.judge(|s| {
        let event = s.number(Kind::Event, event.as_raw());
        s.call("vkSetEvent", &Call::SetEvent { event });
    });
    let result = next!(device.set_event(handle, event));
    device.answered("vkSetEvent", result)
}

pub unsafe extern "system" fn reset_event(handle: vk::Device, event: vk::Event) -> vk::Result {
    let device = device!(handle);
    device.judge(|s| {
        let event = s.number(Kind::Event, event.as_raw());
        s.call("vkResetEvent", &Call::ResetEvent { event });
    });
    let result = next!(device.reset_event(handle, event));
    device.answered("vkResetEvent", result)
}

pub unsafe extern "system" fn get_event_status(handle: vk::Device, event: vk::Event) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.get_event_status(handle, event));
    if result == vk::Result::EVENT_SET || result == vk::Result::EVENT_RESET {
        device.judge(|s| {
            let event = s.number(Kind::Event, event.as_raw());
            s.call("vkGetEventStatus", &Call::GetEventStatus { event, set: result == vk::Result::EVENT_SET });
        });
    }
    device.answered("vkGetEventStatus", result)
}

// Semaphores -------------------------------------------------------------------------------------

pub unsafe extern "system" fn create_semaphore(
    handle: vk::Device,
    info: *const vk::SemaphoreCreateInfo<'_>,
    allocator: Allocator<'_>,
    semaphore: *mut vk::Semaphore,
) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.create_semaphore(handle, info, allocator, semaphore));
    if result == vk::Result::SUCCESS {
        device.judge(|s| {
            // SAFETY: the driver wrote it; the application's structures.
            let (raw, kind, export) = unsafe {
                let chain = (*info).p_next;
                (
                    (*semaphore).as_raw(),
                    chained::<vk::SemaphoreTypeCreateInfo<'_>>(chain),
                    chained::<vk::ExportSemaphoreCreateInfo<'_>>(chain),
                )
            };
            let timeline = kind.filter(|kind| kind.semaphore_type == vk::SemaphoreType::TIMELINE);
            let call = Call::CreateSemaphore {
                semaphore: s.semaphore_made(raw, timeline.is_some()),
                initial_value: timeline.map_or(0, |timeline| timeline.initial_value),
                external: export.is_some_and(|export| !export.handle_types.is_empty()),
            };
            s.call("vkCreateSemaphore", &call);
        });
    }
    result
}

pub unsafe extern "system" fn destroy_semaphore(
    handle: vk::Device,
    semaphore: vk::Semaphore,
    allocator: Allocator<'_>,
) {
    let device = device!(handle);
    if semaphore != vk::Semaphore::null() {
        device.judge(|s| {
            let semaphore = s.gone(Kind::Semaphore, semaphore.as_raw());
            s.call("vkDestroySemaphore", &Call::DestroySemaphore { semaphore });
        });
    }
    next!(device.destroy_semaphore(handle, semaphore, allocator))
}

pub unsafe extern "system" fn signal_semaphore(
    handle: vk::Device,
    info: *const vk::SemaphoreSignalInfo<'_>,
) -> vk::Result {
    let device = device!(handle);
    device.judge(|s| {
        // SAFETY: the application's structure.
        let (semaphore, value) = unsafe { ((*info).semaphore, (*info).value) };
        let semaphore = s.number(Kind::Semaphore, semaphore.as_raw());
        s.call("vkSignalSemaphore", &Call::SignalSemaphore { semaphore, value });
    });
    let result = next!(device.signal_semaphore(handle, info));
    device.answered("vkSignalSemaphore", result)
}

pub unsafe extern "system" fn get_semaphore_counter_value(
    handle: vk::Device,
    semaphore: vk::Semaphore,
    value: *mut u64,
) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.get_semaphore_counter_value(handle, semaphore, value));
    if result == vk::Result::SUCCESS {
        device.judge(|s| {
            let semaphore = s.number(Kind::Semaphore, semaphore.as_raw());
            // SAFETY: the driver wrote it.
            let value = unsafe { *value };
            s.call("vkGetSemaphoreCounterValue", &Call::GetSemaphoreCounterValue { semaphore, value });
        });
    }
    device.answered("vkGetSemaphoreCounterValue", result)
}

pub unsafe extern "system" fn wait_semaphores(
    handle: vk::Device,
    info: *const vk::SemaphoreWaitInfo<'_>,
    timeout: u64,
) -> vk::Result {
    let device = device!(handle);
    let call = |s: &mut Session| {
        // SAFETY: the application's structure.
        let (flags, semaphores, values) = unsafe {
            let info = &*info;
            (info.flags, list(info.p_semaphores, info.semaphore_count), list(info.p_values, info.semaphore_count))
        };
        let waits = valued(s, semaphores, values, |_| ALL);
        let any = flags.contains(vk::SemaphoreWaitFlags::ANY);
        s.call("vkWaitSemaphores", &Call::Wait(Blocking::Semaphores { waits: &waits, any }));
    };
    device.blocking("vkWaitSemaphores", call, || next!(device.wait_semaphores(handle, info, timeout)))
}

// Fences -----------------------------------------------------------------------------------------

pub unsafe extern "system" fn create_fence(
    handle: vk::Device,
    info: *const vk::FenceCreateInfo<'_>,
    allocator: Allocator<'_>,
    fence: *mut vk::Fence,
) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.create_fence(handle, info, allocator, fence));
    if result == vk::Result::SUCCESS {
        device.judge(|s| {
            // SAFETY: the driver wrote it.
            let fence = s.made(Kind::Fence, unsafe { *fence }.as_raw());
            s.call("vkCreateFence", &Call::CreateFence { fence });
        });
    }
    result
}

pub unsafe extern "system" fn destroy_fence(handle: vk::Device, fence: vk::Fence, allocator: Allocator<'_>) {
    let device = device!(handle);
    if fence != vk::Fence::null() {
        device.judge(|s| {
            let fence = s.gone(Kind::Fence, fence.as_raw());
            s.call("vkDestroyFence", &Call::DestroyFence { fence });
        });
    }
    next!(device.destroy_fence(handle, fence, allocator))
}

/// # Safety
/// `first` points to `count` fences.
unsafe fn fence_list(s: &mut Session, first: *const vk::Fence, count: u32) -> Few<Handle> {
    // SAFETY: as the caller says.
    unsafe { list(first, count) }.iter().map(|fence| s.number(Kind::Fence, fence.as_raw())).collect()
}

pub unsafe extern "system" fn reset_fences(handle: vk::Device, count: u32, fences: *const vk::Fence) -> vk::Result {
    let device = device!(handle);
    device.judge(|s| {
        // SAFETY: the application's list.
        let fences = unsafe { fence_list(s, fences, count) };
        s.call("vkResetFences", &Call::ResetFences { fences: &fences });
    });
    let result = next!(device.reset_fences(handle, count, fences));
    device.answered("vkResetFences", result)
}

pub unsafe extern "system" fn get_fence_status(handle: vk::Device, fence: vk::Fence) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.get_fence_status(handle, fence));
    if result == vk::Result::SUCCESS || result == vk::Result::NOT_READY {
        device.judge(|s| {
            let fence = s.number(Kind::Fence, fence.as_raw());
            let signaled = result == vk::Result::SUCCESS;
            s.call("vkGetFenceStatus", &Call::GetFenceStatus { fence, signaled });
        });
    }
    device.answered("vkGetFenceStatus", result)
}

pub unsafe extern "system" fn wait_for_fences(
    handle: vk::Device,
    count: u32,
    fences: *const vk::Fence,
    wait_all: vk::Bool32,
    timeout: u64,
) -> vk::Result {
    let device = device!(handle);
    let call = |s: &mut Session| {
        // SAFETY: the application's list.
        let fences = unsafe { fence_list(s, fences, count) };
        let any = wait_all == vk::FALSE;
        s.call("vkWaitForFences", &Call::Wait(Blocking::Fences { fences: &fences, any }));
    };
    device.blocking("vkWaitForFences", call, || next!(device.wait_for_fences(handle, count, fences, wait_all, timeout)))
}

// Commands ---------------------------------------------------------------------------------------

/// The stages of the barriers of a dependency, one after the other.
///
/// # Safety
/// The structure is valid.
unsafe fn dependencies(info: *const vk::DependencyInfo<'_>) -> Few<Dependency> {
    // SAFETY: as the caller says.
    let (memory, buffers, images) = unsafe {
        let info = &*info;
        (
            list(info.p_memory_barriers, info.memory_barrier_count),
            list(info.p_buffer_memory_barriers, info.buffer_memory_barrier_count),
            list(info.p_image_memory_barriers, info.image_memory_barrier_count),
        )
    };
    let memory = memory.iter().map(|b| (b.src_stage_mask, b.dst_stage_mask));
    let buffers = buffers.iter().map(|b| (b.src_stage_mask, b.dst_stage_mask));
    let images = images.iter().map(|b| (b.src_stage_mask, b.dst_stage_mask));
    let all = memory.chain(buffers).chain(images);
    all.map(|(src, dst)| Dependency { src: src.as_raw(), dst: dst.as_raw() }).collect()
}

/// All of them as one.
fn together(all: &[Dependency]) -> Dependency {
    all.iter().fold(Dependency { src: 0, dst: 0 }, |a, b| Dependency { src: a.src | b.src, dst: a.dst | b.dst })
}

pub unsafe extern "system" fn cmd_set_event(
    handle: vk::CommandBuffer,
    event: vk::Event,
    stages: vk::PipelineStageFlags,
) {
    let device = device!(handle);
    device.judge(|s| {
        let (command_buffer, event) = (command_buffer(s, handle), s.number(Kind::Event, event.as_raw()));
        s.call("vkCmdSetEvent", &Call::CmdSetEvent { command_buffer, event, stages: stages.as_raw().into() });
    });
    next!(device.cmd_set_event(handle, event, stages))
}

pub unsafe extern "system" fn cmd_set_event2(
    handle: vk::CommandBuffer,
    event: vk::Event,
    info: *const vk::DependencyInfo<'_>,
) {
    let device = device!(handle);
    device.judge(|s| {
        let (command_buffer, event) = (command_buffer(s, handle), s.number(Kind::Event, event.as_raw()));
        // SAFETY: the application's structure.
        let stages = together(&unsafe { dependencies(info) }).src;
        s.call("vkCmdSetEvent2", &Call::CmdSetEvent { command_buffer, event, stages });
    });
    next!(device.cmd_set_event2(handle, event, info))
}

pub unsafe extern "system" fn cmd_reset_event(
    handle: vk::CommandBuffer,
    event: vk::Event,
    stages: vk::PipelineStageFlags,
) {
    let device = device!(handle);
    device.judge(|s| {
        let (command_buffer, event) = (command_buffer(s, handle), s.number(Kind::Event, event.as_raw()));
        s.call("vkCmdResetEvent", &Call::CmdResetEvent { command_buffer, event, stages: stages.as_raw().into() });
    });
    next!(device.cmd_reset_event(handle, event, stages))
}

pub unsafe extern "system" fn cmd_reset_event2(
    handle: vk::CommandBuffer,
    event: vk::Event,
    stages: vk::PipelineStageFlags2,
) {
    let device = device!(handle);
    device.judge(|s| {
        let (command_buffer, event) = (command_buffer(s, handle), s.number(Kind::Event, event.as_raw()));
        s.call("vkCmdResetEvent2", &Call::CmdResetEvent { command_buffer, event, stages: stages.as_raw() });
    });
    next!(device.cmd_reset_event2(handle, event, stages))
}

/// # Safety
/// `first` points to `count` events.
unsafe fn event_list(s: &mut Session, first: *const vk::Event, count: u32) -> Few<Handle> {
    // SAFETY: as the caller says.
    unsafe { list(first, count) }.iter().map(|event| s.number(Kind::Event, event.as_raw())).collect()
}

pub unsafe extern "system" fn cmd_wait_events(
    handle: vk::CommandBuffer,
    count: u32,
    events: *const vk::Event,
    src: vk::PipelineStageFlags,
    dst: vk::PipelineStageFlags,
    memory_count: u32,
    memory: *const vk::MemoryBarrier<'_>,
    buffer_count: u32,
    buffers: *const vk::BufferMemoryBarrier<'_>,
    image_count: u32,
    images: *const vk::ImageMemoryBarrier<'_>,
) {
    let device = device!(handle);
    device.judge(|s| {
        // SAFETY: the application's list.
        let (command_buffer, events) = (command_buffer(s, handle), unsafe { event_list(s, events, count) });
        let dependencies = [Dependency { src: src.as_raw().into(), dst: dst.as_raw().into() }];
        let call = Call::CmdWaitEvents { command_buffer, events: &events, dependencies: &dependencies };
        s.call("vkCmdWaitEvents", &call);
    });
    next!(device.cmd_wait_events(
        handle,
        count,
        events,
        src,
        dst,
        memory_count,
        memory,
        buffer_count,
        buffers,
        image_count,
        images
    ))
}

pub unsafe extern "system" fn cmd_wait_events2(
    handle: vk::CommandBuffer,
    count: u32,
    events: *const vk::Event,
    infos: *const vk::DependencyInfo<'_>,
) {
    let device = device!(handle);
    device.judge(|s| {
        // SAFETY: the application's lists.
        let (events, infos) = unsafe { (event_list(s, events, count), list(infos, count)) };
        // SAFETY: as above.
        let all: Few<Dependency> = infos.iter().map(|info| together(&unsafe { dependencies(info) })).collect();
        let command_buffer = command_buffer(s, handle);
        s.call("vkCmdWaitEvents2", &Call::CmdWaitEvents { command_buffer, events: &events, dependencies: &all });
    });
    next!(device.cmd_wait_events2(handle, count, events, infos))
}

pub unsafe extern "system" fn cmd_pipeline_barrier(
    handle: vk::CommandBuffer,
    src: vk::PipelineStageFlags,
    dst: vk::PipelineStageFlags,
    flags: vk::DependencyFlags,
    memory_count: u32,
    memory: *const vk::MemoryBarrier<'_>,
    buffer_count: u32,
    buffers: *const vk::BufferMemoryBarrier<'_>,
    image_count: u32,
    images: *const vk::ImageMemoryBarrier<'_>,
) {
    let device = device!(handle);
    device.judge(|s| {
        let command_buffer = command_buffer(s, handle);
        let dependencies = [Dependency { src: src.as_raw().into(), dst: dst.as_raw().into() }];
        s.call("vkCmdPipelineBarrier", &Call::CmdPipelineBarrier { command_buffer, dependencies: &dependencies });
    });
    next!(device.cmd_pipeline_barrier(
        handle,
        src,
        dst,
        flags,
        memory_count,
        memory,
        buffer_count,
        buffers,
        image_count,
        images
    ))
}

pub unsafe extern "system" fn cmd_pipeline_barrier2(handle: vk::CommandBuffer, info: *const vk::DependencyInfo<'_>) {
    let device = device!(handle);
    device.judge(|s| {
        let command_buffer = command_buffer(s, handle);
        // SAFETY: the application's structure.
        let dependencies = unsafe { dependencies(info) };
        s.call("vkCmdPipelineBarrier2", &Call::CmdPipelineBarrier { command_buffer, dependencies: &dependencies });
    });
    next!(device.cmd_pipeline_barrier2(handle, info))
}

pub unsafe extern "system" fn cmd_execute_commands(
    handle: vk::CommandBuffer,
    count: u32,
    command_buffers: *const vk::CommandBuffer,
) {
    let device = device!(handle);
    device.judge(|s| {
        // SAFETY: the application's list.
        let secondaries = unsafe { list(command_buffers, count) }.iter().map(|c| command_buffer(s, *c));
        let secondaries: Few<Handle> = secondaries.collect();
        let command_buffer = command_buffer(s, handle);
        // What was bound is not, after this ("vkCmdExecuteCommands").
        s.bindings.begun(command_buffer);
        s.call("vkCmdExecuteCommands", &Call::CmdExecuteCommands { command_buffer, secondaries: &secondaries });
    });
    next!(device.cmd_execute_commands(handle, count, command_buffers))
}

// Names ------------------------------------------------------------------------------------------

pub unsafe extern "system" fn set_debug_utils_object_name(
    handle: vk::Device,
    info: *const vk::DebugUtilsObjectNameInfoEXT<'_>,
) -> vk::Result {
    let device = device!(handle);
    device.judge(|s| {
        // SAFETY: the application's structure; its name is a string or null.
        let (info, name) = unsafe {
            let info = &*info;
            (info, (!info.p_object_name.is_null()).then(|| CStr::from_ptr(info.p_object_name)))
        };
        let kind = match info.object_type {
            vk::ObjectType::QUEUE => Kind::Queue,
            vk::ObjectType::COMMAND_POOL => Kind::CommandPool,
            vk::ObjectType::COMMAND_BUFFER => Kind::CommandBuffer,
            vk::ObjectType::EVENT => Kind::Event,
            vk::ObjectType::SEMAPHORE => Kind::Semaphore,
            vk::ObjectType::FENCE => Kind::Fence,
            vk::ObjectType::BUFFER => Kind::Buffer,
            _ => return,
        };
        let name = name.map(|name| name.to_string_lossy().into_owned()).filter(|name| !name.is_empty());
        s.name(kind, info.object_handle, name);
    });
    next!(device.set_debug_utils_object_name(handle, info))
}
