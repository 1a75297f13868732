//! GPU events on Vulkan: record, wait, synchronize, query and destroy, with everything below recycled.
//!
//! [`Device`], [`Stream`] and [`Event`] are what callers hold; [`Fence`] and [`DropQueue`] are built on them. The machine
//! of the crate `fencepost` decides order, reuse and lifetime; this crate carries out its effects on a [`Driver`]: Vulkan
//! by ash, or the simulated GPU, each of them decorated with a [`Tracer`] or with [`Faults`].
//!
//! ```
//! use fencepost_vulkan::{Device, Options, Placement};
//! # fn main() -> Result<(), fencepost_vulkan::Error> {
//! let device = Device::simulated(1, Options::default()); // or Device::open(..)
//! let (upload, compute) = (device.stream(Placement::default())?, device.stream(Placement::default())?);
//! let (staging, data) = (device.buffer(64)?, device.buffer(64)?);
//! staging.write(0, &[7; 64])?;
//!
//! let uploaded = device.event()?;
//! upload.record(|commands| commands.copy((&staging, 0), (&data, 0), 64))??;
//! uploaded.record(&upload)?;
//! uploaded.wait(&compute)?; // what follows on compute starts after the copy, and sees it
//! compute.record(|commands| commands.copy((&data, 0), (&staging, 0), 32))??;
//! compute.synchronize()?;
//! # assert_eq!(staging.words()?[15], 0x0707_0707);
//! # Ok(()) }
//! ```

mod buffer;
#[cfg(feature = "capi")]
pub mod capi;
mod device;
mod driver;
mod drop_queue;
mod error;
mod event;
mod fault;
mod fence;
mod relay;
mod runtime;
mod sim;
mod stream;
mod sync;
mod trace;
mod vulkan;

pub use ash;
pub use fencepost::Policy;

pub use crate::buffer::Buffer;
pub use crate::device::{Device, Options, Placement};
pub use crate::driver::{Answer, Asked, Batch, BufferId, Dispatch, Driver, Messages, Queue, QueueLock, Raw, Time};
pub use crate::drop_queue::{DropQueue, FlushPolicy};
pub use crate::error::{DriverError, Error};
pub use crate::event::Event;
pub use crate::fault::{Fault, Faults};
pub use crate::fence::Fence;
pub use crate::sim::Simulated;
pub use crate::stream::{Commands, Stream};
pub use crate::trace::Tracer;
pub use crate::vulkan::{Adopted, AdoptedQueue, OpenOptions, Vulkan};
