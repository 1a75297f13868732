//! What can go wrong, in one sentence each.

use ash::vk;

/// A driver call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} returned {result}")]
pub struct DriverError {
    /// The call, by its Vulkan name.
    pub call: &'static str,
    /// What it returned.
    pub result: vk::Result,
}

impl DriverError {
    /// For `map_err`.
    pub fn of(call: &'static str) -> impl Fn(vk::Result) -> DriverError {
        move |result| DriverError { call, result }
    }

    /// Whether the device is gone, so that no call will succeed any more.
    pub fn is_lost(&self) -> bool {
        self.result == vk::Result::ERROR_DEVICE_LOST
    }
}

/// Why a call was not accepted. Except after [`Error::Lost`] it may be made again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no Vulkan on this machine.
    #[error("no Vulkan loader: {0}; install it (Debian: libvulkan1), or run on the simulated GPU")]
    NoLoader(String),
    /// There is a loader and no driver, or a broken one.
    #[error("no Vulkan driver: {0}; install one (Debian: mesa-vulkan-drivers), or run on the simulated GPU")]
    NoDriver(DriverError),
    /// No device of that name, number or UUID.
    #[error("no device is called {wanted:?}; there are: {found}")]
    NoDevice {
        /// What was asked for.
        wanted: String,
        /// The devices there are, by number, name and UUID.
        found: String,
    },
    /// The device lacks what fencepost needs.
    #[error("{device} has no {missing}, which fencepost needs")]
    Unsuitable {
        /// Its name.
        device: String,
        /// What it lacks.
        missing: &'static str,
    },
    /// No queue like that.
    #[error("{device} has no queue {wanted}; it has: {found}")]
    NoQueue {
        /// The device's name.
        device: String,
        /// What was asked for.
        wanted: String,
        /// The queues there are.
        found: String,
    },
    /// A validation layer was asked for and is not installed.
    #[error("VK_LAYER_KHRONOS_validation is not installed (Debian: vulkan-validationlayers)")]
    NoValidation,
    /// The driver refused a call, and no other way keeps the order.
    #[error("the driver refused a call: {0}; nothing was lost, and the call may be made again")]
    Refused(DriverError),
    /// The device is lost. Everything can still be dropped.
    #[error("the device is lost: {0}")]
    Lost(DriverError),
    /// An object of one device was handed to another.
    #[error("{object} belongs to {owner}, and was used with {user}")]
    OtherDevice {
        /// What kind of object.
        object: &'static str,
        /// Its device.
        owner: String,
        /// The other.
        user: String,
    },
    /// A call from inside the closure of [`Stream::record`](crate::Stream::record), which holds the stream's buffer.
    #[error("fencepost was called from inside the closure of Stream::record; call it before or after")]
    InsideRecord,
    /// A time was asked for and an event has not passed.
    #[error("the time between two events is known once both have passed; call synchronize first")]
    NotPassed,
    /// A time was asked for and the device has none.
    #[error("an event has no time: it was made without timing, or recorded on a queue that cannot tell")]
    NotTimed,
    /// A range outside of a buffer, or not a multiple of 4 where it has to be.
    #[error("bytes {offset} to {end} of a buffer of {size}: a range lies within and is a multiple of 4")]
    BadRange {
        /// The first byte.
        offset: u64,
        /// One after the last.
        end: u64,
        /// The buffer's size.
        size: u64,
    },
    /// A copy onto itself.
    #[error("a copy of {size} bytes from {from} to {to} of one buffer: the ranges overlap")]
    Overlap {
        /// The first byte to copy.
        from: u64,
        /// Where it goes.
        to: u64,
        /// How many.
        size: u64,
    },
    /// The system gives no thread to wait for another device.
    #[error("no thread to wait for another device: {0}")]
    NoThread(String),
    /// The simulated GPU has no shaders.
    #[error("the simulated GPU runs fills and copies, no shaders")]
    NoShaders,
    /// The machine says no.
    #[error(transparent)]
    Machine(#[from] fencepost::Error),
}
