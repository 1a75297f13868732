//! The C interface: `include/fencepost.h`, which is generated from this file.
//!
//! Every function that can fail returns a status; [`fencepost_last_error`] tells more. Handles are made and destroyed once,
//! in any order; a null handle is refused.

// Pointers come from C: each function says in the header what they have to be, and looks for null.
#![allow(clippy::missing_safety_doc)]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use ash::vk::{self, Handle};

use crate::buffer::Buffer;
use crate::device::{Device, Options, Placement};
use crate::driver::QueueLock;
use crate::error::Error;
use crate::event::Event;
use crate::stream::{Commands, Stream};
use crate::vulkan::{Adopted, AdoptedQueue, OpenOptions};

/// How a call ended.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FencepostStatus {
    /// Done.
    Ok = 0,
    /// Not done yet: a query of a recording that has not ended, or a wait that ran out of time.
    NotReady = 1,
    /// The driver refused; the call may be made again.
    Refused = -1,
    /// The device is lost; handles can still be destroyed.
    Lost = -2,
    /// The caller's mistake.
    Invalid = -3,
    /// No such device, driver or loader.
    NoDevice = -4,
}

/// A device.
pub struct FencepostDevice(Device);
/// A stream.
pub struct FencepostStream(Stream);
/// An event.
pub struct FencepostEvent(Event);
/// Memory that host and device share.
pub struct FencepostBuffer(Buffer);

/// A queue that an application lends.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FencepostQueue {
    /// Its family.
    pub family: u32,
    /// Its position in the family.
    pub index: u32,
    /// Called before a submit; the application calls it too, or has one lock of its own in both. May be null, with `unlock`, if
    /// nobody else submits to the queue.
    pub lock: Option<unsafe extern "C" fn(*mut c_void)>,
    /// Called after it.
    pub unlock: Option<unsafe extern "C" fn(*mut c_void)>,
    /// Handed to both.
    pub user: *mut c_void,
}

/// An application's Vulkan. It outlives the fencepost device and what is made on it.
#[repr(C)]
pub struct FencepostAdopted {
    /// `vkGetInstanceProcAddr`, a `PFN_vkGetInstanceProcAddr`.
    pub get_instance_proc_addr: *mut c_void,
    /// A `VkInstance`.
    pub instance: *mut c_void,
    /// A `VkPhysicalDevice`.
    pub physical_device: *mut c_void,
    /// A `VkDevice` of Vulkan 1.2 with `timelineSemaphore`.
    pub device: *mut c_void,
    /// The queues that fencepost may use.
    pub queues: *const FencepostQueue,
    /// How many.
    pub queue_count: usize,
    /// Whether the feature `synchronization2` is enabled.
    pub synchronization2: bool,
    /// Whether the feature `hostQueryReset` is enabled.
    pub host_query_reset: bool,
}

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// What the last call of this thread that failed says. Valid until the next one fails.
#[unsafe(no_mangle)]
pub extern "C" fn fencepost_last_error() -> *const c_char {
    LAST_ERROR.with_borrow(|error| error.as_ptr())
}

fn failed(error: &Error) -> FencepostStatus {
    say(&error.to_string());
    match error {
        Error::Refused(_) => FencepostStatus::Refused,
        Error::Lost(_) => FencepostStatus::Lost,
        Error::NoLoader(_) | Error::NoDriver(_) | Error::NoDevice { .. } | Error::Unsuitable { .. } => {
            FencepostStatus::NoDevice
        }
        _ => FencepostStatus::Invalid,
    }
}

fn say(message: &str) {
    let text = CString::new(message.replace('\0', " ")).unwrap_or_default();
    LAST_ERROR.set(text);
}

fn status(result: Result<bool, Error>) -> FencepostStatus {
    match result {
        Ok(true) => FencepostStatus::Ok,
        Ok(false) => FencepostStatus::NotReady,
        Err(error) => failed(&error),
    }
}

fn boxed<T, H>(made: Result<T, Error>, handle: impl FnOnce(T) -> H) -> *mut H {
    match made {
        Ok(made) => Box::into_raw(Box::new(handle(made))),
        Err(error) => {
            failed(&error);
            ptr::null_mut()
        }
    }
}

/// The thing behind a handle, or the word that it is null.
macro_rules! borrow {
    ($handle:ident, $otherwise:expr) => {
        // SAFETY: not null, so it came from this file and was not destroyed, as the header asks.
        match unsafe { $handle.as_ref() } {
            Some(handle) => &handle.0,
            None => {
                say(concat!(stringify!($handle), " is null"));
                return $otherwise;
            }
        }
    };
}

/// Takes back what [`boxed`] gave.
unsafe fn destroy<H>(handle: *mut H) {
    if !handle.is_null() {
        // SAFETY: it was boxed here, and the caller destroys it once.
        drop(unsafe { Box::from_raw(handle) });
    }
}

// Devices ---------------------------------------------------------------------------------------------

/// Opens a Vulkan device by number, UUID or a part of its name; null for the one that `FENCEPOST_DEVICE` names, or the
/// best. Null on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencepost_device_open(name: *const c_char) -> *mut FencepostDevice {
    // SAFETY: not null, so a string that ends in a zero.
    let device = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned());
    boxed(Device::open(&OpenOptions { device, ..OpenOptions::default() }, Options::default()), FencepostDevice)
}

/// A simulated device, whose scheduler draws from the seed.
#[unsafe(no_mangle)]
pub extern "C" fn fencepost_device_simulated(seed: u64) -> *mut FencepostDevice {
    boxed(Ok(Device::simulated(seed, Options::default())), FencepostDevice)
}

/// Uses an application's device. Null on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencepost_device_adopt(adopted: *const FencepostAdopted) -> *mut FencepostDevice {
    // SAFETY: null, or filled in as the header asks.
    let Some(a) = (unsafe { adopted.as_ref() }) else {
        say("adopted is null");
        return ptr::null_mut();
    };
    let handles = [a.get_instance_proc_addr, a.instance, a.physical_device, a.device];
    if handles.iter().any(|h| h.is_null()) || a.queues.is_null() {
        say("a handle of adopted is null");
        return ptr::null_mut();
    }
    // SAFETY: the handles are what the header says; the functions are loaded by the application's own loader.
    let device = unsafe {
        let get_instance_proc_addr =
            std::mem::transmute::<*mut c_void, vk::PFN_vkGetInstanceProcAddr>(a.get_instance_proc_addr);
        let entry = ash::StaticFn { get_instance_proc_addr };
        let instance = ash::Instance::load(&entry, vk::Instance::from_raw(a.instance as u64));
        let device = ash::Device::load(instance.fp_v1_0(), vk::Device::from_raw(a.device as u64));
        let queues = std::slice::from_raw_parts(a.queues, a.queue_count);
        let adopted = Adopted {
            physical_device: vk::PhysicalDevice::from_raw(a.physical_device as u64),
            instance,
            device,
            queues: queues
                .iter()
                .map(|q| AdoptedQueue { family: q.family, index: q.index, lock: Arc::new(Callbacks(*q)) })
                .collect(),
            synchronization2: a.synchronization2,
            host_query_reset: a.host_query_reset,
        };
        Device::adopt(adopted, Options::default())
    };
    boxed(device, FencepostDevice)
}

struct Callbacks(FencepostQueue);

// SAFETY: the header says that they are called from any thread.
unsafe impl Send for Callbacks {}
// SAFETY: as above.
unsafe impl Sync for Callbacks {}

impl QueueLock for Callbacks {
    fn alone(&self, submit: &mut dyn FnMut()) {
        // SAFETY: the application's functions, with what they are to be handed.
        self.0.lock.into_iter().for_each(|lock| unsafe { lock(self.0.user) });
        submit();
        // SAFETY: as above.
        self.0.unlock.into_iter().for_each(|unlock| unsafe { unlock(self.0.user) });
    }
}

/// The device ends with its last stream, event and buffer, and then waits for what it was given to do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencepost_device_close(device: *mut FencepostDevice) {
    // SAFETY: as the header asks.
    unsafe { destroy(device) }
}

// Streams ---------------------------------------------------------------------------------------------

/// A stream on the queue of this number, or, if it is negative, on one that can run shaders. Null on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencepost_stream_create(device: *const FencepostDevice, queue: i32) -> *mut FencepostStream {
    let device = borrow!(device, ptr::null_mut());
    let placement = u32::try_from(queue).map_or(Placement::default(), Placement::Queue);
    boxed(device.stream(placement), FencepostStream)
}

/// What the stream holds is submitted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencepost_stream_destroy(stream: *mut FencepostStream) {
    // SAFETY: as the header asks.
    unsafe { destroy(stream) }
}

/// Calls back with the `VkCommandBuffer` of the open batch (null on a simulated device), to add commands to it. The
/// function may not call fencepost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencepost_stream_record(
    stream: *const FencepostStream,
    commands: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    user: *mut c_void,
) -> FencepostStatus {
    let stream = borrow!(stream, FencepostStatus::Invalid);
    let Some(commands) = commands else {
        say("commands is null");
        return FencepostStatus::Invalid;
    };
    let call = |c: &mut Commands| {
        let buffer = c.raw().map_or(ptr::null_mut(), |raw| raw.buffer.as_raw() as *mut c_void);
        // SAFETY: the caller's function, with what it is to be handed.
        unsafe { commands(buffer, user) };
        true
    };
    status(stream.record(call))
}

/// Hands the open batch to the queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencepost_stream_flush(stream: *const FencepostStream) -> FencepostStatus {
    status(borrow!(stream, FencepostStatus::Invalid).flush().map(|()| true))
}

/// Blocks until everything issued has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencepost_stream_synchronize(stream: *const FencepostStream) -> FencepostStatus {
    status(borrow!(stream, FencepostStatus::Invalid).synchronize().map(|()| true))
}

// Events ----------------------------------------------------------------------------------------------

/// An event, never recorded. Null on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencepost_event_create(device: *const FencepostDevice) -> *mut FencepostEvent {
    boxed(borrow!(device, ptr::null_mut()).event(), FencepostEvent)
}

/// Waits for the event keep their meaning.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencepost_event_destroy(event: *mut FencepostEvent) {
    // SAFETY: as the header asks.
    unsafe { destroy(event) }
}

/// Names everything issued on the stream so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencepost_event_record(
    event: *const FencepostEvent,
    stream: *const FencepostStream,
) -> FencepostStatus {
    let event = borrow!(event, FencepostStatus::Invalid);
    status(event.record(borrow!(stream, FencepostStatus::Invalid)).map(|()| true))
}

/// Work issued on the stream from now on starts after what was recorded. Does not block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencepost_event_wait(
    event: *const FencepostEvent,
    stream: *const FencepostStream,
) -> FencepostStatus {
    let event = borrow!(event, FencepostStatus::Invalid);
    status(event.wait(borrow!(stream, FencepostStatus::Invalid)).map(|()| true))
}

/// Blocks until what was recorded has ended, or for so many nanoseconds: `UINT64_MAX` for ever.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencepost_event_synchronize(
    event: *const FencepostEvent,
    nanoseconds: u64,
) -> FencepostStatus {
    let event = borrow!(event, FencepostStatus::Invalid);
    status(match nanoseconds {
        u64::MAX => event.synchronize().map(|()| true),
        n => event.synchronize_timeout(Duration::from_nanos(n)),
    })
}

/// Whether what was recorded has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencepost_event_query(event: *const FencepostEvent) -> FencepostStatus {
    status(borrow!(event, FencepostStatus::Invalid).query())
}

// Buffers ---------------------------------------------------------------------------------------------

/// Memory that host and device share. Null on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencepost_buffer_create(device: *const FencepostDevice, size: u64) -> *mut FencepostBuffer {
    boxed(borrow!(device, ptr::null_mut()).buffer(size), FencepostBuffer)
}

/// The memory stays until the device has done what was issued by now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencepost_buffer_destroy(buffer: *mut FencepostBuffer) {
    // SAFETY: as the header asks.
    unsafe { destroy(buffer) }
}

/// The host reads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencepost_buffer_read(
    buffer: *const FencepostBuffer,
    offset: u64,
    bytes: *mut c_void,
    size: usize,
) -> FencepostStatus {
    let buffer = borrow!(buffer, FencepostStatus::Invalid);
    if bytes.is_null() {
        say("bytes is null");
        return FencepostStatus::Invalid;
    }
    // SAFETY: the caller hands over that many bytes.
    let bytes = unsafe { std::slice::from_raw_parts_mut(bytes.cast(), size) };
    status(buffer.read(offset, bytes).map(|()| true))
}

/// Fills a part of a buffer with a word.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencepost_stream_fill(
    stream: *const FencepostStream,
    buffer: *const FencepostBuffer,
    offset: u64,
    size: u64,
    word: u32,
) -> FencepostStatus {
    let stream = borrow!(stream, FencepostStatus::Invalid);
    let buffer = borrow!(buffer, FencepostStatus::Invalid);
    status(stream.record(|c| c.fill(buffer, offset, size, word)).and_then(|done| done).map(|()| true))
}

/// Copies between buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencepost_stream_copy(
    stream: *const FencepostStream,
    from: *const FencepostBuffer,
    from_offset: u64,
    to: *const FencepostBuffer,
    to_offset: u64,
    size: u64,
) -> FencepostStatus {
    let stream = borrow!(stream, FencepostStatus::Invalid);
    let from = borrow!(from, FencepostStatus::Invalid);
    let to = borrow!(to, FencepostStatus::Invalid);
    status(stream.record(|c| c.copy((from, from_offset), (to, to_offset), size)).and_then(|done| done).map(|()| true))
}
