//! Calls of the C interface on simulated devices, one after another as the bytes say.
//!
//! It keeps to what the header asks of a caller: a handle was made and is destroyed once. Handles may be null, objects of
//! different devices may be mixed, and everything may be destroyed in any order.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};
use std::ptr;

use fencepost_vulkan::capi::*;

/// More handles of a kind than this are not made.
const HANDLES_MAX: usize = 6;
const DEVICES_MAX: usize = 2;

/// Bytes as numbers; after the last, zeros.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A size or an offset: mostly small, now and then where arithmetic ends.
    fn size(&mut self) -> u64 {
        match self.next() {
            250 => u64::MAX,
            251 => u64::MAX - 3,
            252 => i64::MAX as u64,
            253 => i64::MAX as u64 + 1,
            254 => 1 << 48,
            255 => u64::from(u32::MAX) + 1,
            small => u64::from(small),
        }
    }
}

/// Handles of one kind that live.
struct Handles<H>(Vec<*mut H>);

impl<H> Handles<H> {
    /// One of them, or null.
    fn one(&self, bytes: &mut Bytes) -> *mut H {
        let at = bytes.next() as usize % (self.0.len() + 1);
        self.0.get(at).copied().unwrap_or(ptr::null_mut())
    }

    fn keep(&mut self, handle: *mut H) {
        if handle.is_null() {
            assert!(!said().is_empty(), "nothing was made, and nothing says why");
        } else {
            self.0.push(handle);
        }
    }

    /// One of them, which is now the caller's to destroy, or null.
    fn take(&mut self, bytes: &mut Bytes) -> *mut H {
        let at = bytes.next() as usize % (self.0.len() + 1);
        if at < self.0.len() { self.0.swap_remove(at) } else { ptr::null_mut() }
    }
}

struct Caller {
    devices: Handles<FencepostDevice>,
    streams: Handles<FencepostStream>,
    events: Handles<FencepostEvent>,
    buffers: Handles<FencepostBuffer>,
}

/// What the last call that failed says.
fn said() -> String {
    // SAFETY: a string that ends in a zero, valid until the next call fails.
    unsafe { CStr::from_ptr(fencepost_last_error()) }.to_str().expect("it is UTF-8").to_owned()
}

/// A status that is one of the header's, told in words if it is an error; a null handle is the caller's mistake.
fn judge(status: FencepostStatus, has_null: bool) {
    match status {
        FencepostStatus::Ok | FencepostStatus::NotReady => assert!(!has_null, "a null handle is accepted"),
        FencepostStatus::Invalid => {
            let is_null = said().ends_with("is null");
            assert!(is_null == has_null, "{:?} of a call with a null handle: {has_null}", said());
        }
        status => panic!("{status:?} on a simulated device: {}", said()),
    }
}

/// Called back for the commands of a batch: a call from here is refused.
///
/// # Safety
/// `user` is a [`Callback`].
unsafe extern "C" fn record(buffer: *mut c_void, user: *mut c_void) {
    // SAFETY: as asked.
    let callback = unsafe { &mut *user.cast::<Callback>() };
    callback.calls += 1;
    callback.is_simulated = buffer.is_null();
    // SAFETY: the handle is null or lives.
    callback.inside = unsafe { fencepost_stream_flush(callback.stream) };
}

struct Callback {
    stream: *mut FencepostStream,
    calls: u32,
    is_simulated: bool,
    inside: FencepostStatus,
}

/// Makes the calls, then destroys everything.
pub fn run(bytes: &[u8]) {
    let bytes = &mut Bytes(bytes);
    let mut caller = Caller {
        devices: Handles(Vec::new()),
        streams: Handles(Vec::new()),
        events: Handles(Vec::new()),
        buffers: Handles(Vec::new()),
    };
    let devices_first = bytes.next() % 2 == 0;
    caller.devices.keep(fencepost_device_simulated(u64::from(bytes.next())));
    while !bytes.0.is_empty() {
        // SAFETY: every handle is null, or was made and not destroyed.
        unsafe { caller.call(bytes) };
    }
    // SAFETY: as above, and each is taken once.
    unsafe { caller.end(devices_first) };
}

impl Caller {
    /// # Safety
    /// Every handle that is kept lives.
    unsafe fn call(&mut self, bytes: &mut Bytes) {
        let Caller { devices, streams, events, buffers } = self;
        // SAFETY: handles are null or live, as the caller promises; pointers to memory are to what is on the stack here.
        unsafe {
            match bytes.next() % 20 {
                0 if devices.0.len() < DEVICES_MAX => {
                    devices.keep(fencepost_device_simulated(u64::from(bytes.next())));
                }
                0 => fencepost_device_close(devices.take(bytes)),
                1 if streams.0.len() < HANDLES_MAX => {
                    let queue = i32::from(bytes.next().cast_signed());
                    streams.keep(fencepost_stream_create(devices.one(bytes), queue));
                }
                2 if events.0.len() < HANDLES_MAX => events.keep(fencepost_event_create(devices.one(bytes))),
                3 if buffers.0.len() < HANDLES_MAX => {
                    // What could be had is small: memory is not what this is about.
                    let size = bytes.size();
                    let size = if size > 1 << 20 { size.max(1 << 63) } else { size };
                    buffers.keep(fencepost_buffer_create(devices.one(bytes), size));
                }
                4 => fencepost_stream_destroy(streams.take(bytes)),
                5 => fencepost_event_destroy(events.take(bytes)),
                6 => fencepost_buffer_destroy(buffers.take(bytes)),
                7 => {
                    let stream = streams.one(bytes);
                    judge(fencepost_stream_flush(stream), stream.is_null());
                }
                8 => {
                    let stream = streams.one(bytes);
                    judge(fencepost_stream_synchronize(stream), stream.is_null());
                }
                9 => {
                    let stream = streams.one(bytes);
                    let inside = FencepostStatus::Ok;
                    let mut callback = Callback { stream, calls: 0, is_simulated: false, inside };
                    let status = fencepost_stream_record(stream, Some(record), (&raw mut callback).cast());
                    let called = (callback.calls, callback.is_simulated, callback.inside);
                    if status == FencepostStatus::Ok {
                        assert_eq!(called, (1, true, FencepostStatus::Invalid));
                    } else {
                        assert_eq!(callback.calls, 0);
                        judge(status, stream.is_null());
                    }
                }
                10 => {
                    let status = fencepost_stream_record(streams.one(bytes), None, ptr::null_mut());
                    judge(status, true);
                }
                11 | 12 => {
                    let (event, stream) = (events.one(bytes), streams.one(bytes));
                    judge(fencepost_event_record(event, stream), event.is_null() || stream.is_null());
                }
                13 | 14 => {
                    let (event, stream) = (events.one(bytes), streams.one(bytes));
                    judge(fencepost_event_wait(event, stream), event.is_null() || stream.is_null());
                }
                15 => {
                    let event = events.one(bytes);
                    let nanoseconds = [0, 1000, u64::MAX][bytes.next() as usize % 3];
                    let status = fencepost_event_synchronize(event, nanoseconds);
                    judge(status, event.is_null());
                    if status == FencepostStatus::Ok {
                        assert_eq!(fencepost_event_query(event), FencepostStatus::Ok);
                    }
                    assert!(nanoseconds < u64::MAX || status != FencepostStatus::NotReady, "for ever is over");
                }
                16 => {
                    let event = events.one(bytes);
                    judge(fencepost_event_query(event), event.is_null());
                }
                17 => {
                    let (stream, buffer) = (streams.one(bytes), buffers.one(bytes));
                    let (offset, size, word) = (bytes.size(), bytes.size(), u32::from(bytes.next()));
                    let status = fencepost_stream_fill(stream, buffer, offset, size, word);
                    judge(status, stream.is_null() || buffer.is_null());
                }
                18 => {
                    let (stream, from, to) = (streams.one(bytes), buffers.one(bytes), buffers.one(bytes));
                    let (from_offset, to_offset, size) = (bytes.size(), bytes.size(), bytes.size());
                    let status = fencepost_stream_copy(stream, from, from_offset, to, to_offset, size);
                    judge(status, stream.is_null() || from.is_null() || to.is_null());
                }
                19 => {
                    let buffer = buffers.one(bytes);
                    let mut memory = [0_u8; 256];
                    let (offset, size) = (bytes.size(), bytes.next() as usize);
                    let to = if bytes.next() == 0 { ptr::null_mut() } else { memory.as_mut_ptr().cast() };
                    judge(fencepost_buffer_read(buffer, offset, to, size), buffer.is_null() || to.is_null());
                }
                _ => {
                    let mut adopted: FencepostAdopted = std::mem::zeroed();
                    adopted.queue_count = usize::from(bytes.next());
                    let null = bytes.next() == 0;
                    let made = fencepost_device_adopt(if null { ptr::null() } else { &raw const adopted });
                    assert!(made.is_null() && said().ends_with("is null"));
                }
            }
        }
    }

    /// # Safety
    /// Every handle that is kept lives.
    unsafe fn end(mut self, devices_first: bool) {
        // SAFETY: as the caller promises; each is destroyed once.
        unsafe {
            if devices_first {
                self.devices.0.drain(..).for_each(|device| fencepost_device_close(device));
            }
            self.events.0.drain(..).for_each(|event| fencepost_event_destroy(event));
            self.streams.0.drain(..).for_each(|stream| fencepost_stream_destroy(stream));
            self.buffers.0.drain(..).for_each(|buffer| fencepost_buffer_destroy(buffer));
            self.devices.0.drain(..).for_each(|device| fencepost_device_close(device));
        }
    }
}
