//! Values that the device still uses.

use std::sync::Arc;
use std::time::Duration;

use fencepost::StreamId;

use crate::device::Device;
use crate::error::Error;
use crate::runtime::Gone;
use crate::stream::Stream;
use crate::sync::{Mutex, lock, sleep};

/// When streams that a queue's values wait for are flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushPolicy {
    /// After this many values.
    pub count_max: usize,
    /// After this many bytes.
    pub bytes_max: u64,
}

impl Default for FlushPolicy {
    fn default() -> Self {
        FlushPolicy { count_max: 64, bytes_max: 16 << 20 }
    }
}

/// Keeps values (host buffers, descriptor sets, handles) until everything issued so far on the streams that use them has
/// passed, then drops them: on whichever thread brings the news, outside of every lock. After loss they are dropped at once.
///
/// Its end waits for its values: they may hold the device, which could not end before them.
///
/// Vulkan: what `vkDestroy*` asks for ("must have completed execution"). CubeCL: the drop queue.
pub struct DropQueue<T: Send + 'static> {
    device: Device,
    policy: FlushPolicy,
    counts: Arc<Mutex<Counts>>,
    held: std::marker::PhantomData<fn(T)>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Values not dropped yet, and their bytes.
    held: (usize, u64),
    /// The same of those pushed since the last flush.
    unflushed: (usize, u64),
    /// The streams that use held values.
    streams: Vec<StreamId>,
}

/// A value with what it counts for.
struct Item<T> {
    /// Nobody locks it: only the last holder touches the value.
    value: Mutex<Option<T>>,
    bytes: u64,
    counts: Arc<Mutex<Counts>>,
}

impl<T: Send + 'static> DropQueue<T> {
    /// An empty queue.
    pub fn new(device: &Device, policy: FlushPolicy) -> Self {
        DropQueue { device: device.clone(), policy, counts: Arc::default(), held: std::marker::PhantomData }
    }

    /// Keeps the value until what was issued on the streams so far has passed. Never blocks on the device. Streams of
    /// other devices are refused, and the value is handed back with the error.
    ///
    /// Once more was pushed than the policy allows, the queue is flushed; if the driver refuses that, it is tried again
    /// with the next push.
    pub fn push(&self, value: T, bytes: u64, streams: &[&Stream]) -> Result<(), (T, Error)> {
        for stream in streams {
            if let Err(error) = stream.device().same_as(&self.device, "a stream") {
                return Err((value, error));
            }
        }
        let item = Item { value: Mutex::new(Some(value)), bytes, counts: self.counts.clone() };
        let ids: Vec<StreamId> = streams.iter().map(|stream| stream.id).collect();
        let full = {
            let mut counts = lock(&self.counts);
            counts.held = (counts.held.0 + 1, counts.held.1 + bytes);
            counts.unflushed = (counts.unflushed.0 + 1, counts.unflushed.1 + bytes);
            counts.streams.extend_from_slice(&ids);
            counts.streams.sort_unstable();
            counts.streams.dedup();
            counts.unflushed.0 >= self.policy.count_max || counts.unflushed.1 >= self.policy.bytes_max
        };
        self.device.runtime.leave(Gone::Value(Arc::new(item), Some(ids)));
        if full && let Err(error) = self.flush() {
            tracing::warn!(%error, "a drop queue cannot flush");
        }
        Ok(())
    }

    /// Submits what the values wait for, and drops those whose streams have got there. Does not block on the device.
    pub fn flush(&self) -> Result<(), Error> {
        let mut locked = self.device.runtime.lock()?;
        let (streams, unflushed) = {
            let mut counts = lock(&self.counts);
            counts.streams.retain(|stream| locked.machine.timeline(*stream).is_some());
            (counts.streams.clone(), std::mem::take(&mut counts.unflushed))
        };
        let flush = |stream: StreamId| match locked.drive(|m| m.flush(stream)) {
            Ok(()) | Err(Error::Machine(_)) => locked.poll(stream), // A dropped stream is flushed.
            Err(error) => Err(error),
        };
        let flushed = streams.into_iter().try_for_each(flush);
        if flushed.is_err() {
            let mut counts = lock(&self.counts);
            counts.unflushed = (counts.unflushed.0 + unflushed.0, counts.unflushed.1 + unflushed.1);
        }
        flushed
    }

    /// How many values are held, and their bytes.
    pub fn held(&self) -> (usize, u64) {
        lock(&self.counts).held
    }
}

impl<T: Send + 'static> Drop for DropQueue<T> {
    fn drop(&mut self) {
        // A refusal is tried again; after loss, or inside a closure, there is nothing to wait for or no way to.
        while self.held().0 > 0 && !matches!(self.flush(), Err(Error::Lost(_) | Error::InsideRecord)) {
            sleep(Duration::from_micros(20));
        }
    }
}

impl<T> Drop for Item<T> {
    fn drop(&mut self) {
        drop(lock(&self.value).take());
        let held = &mut lock(&self.counts).held;
        *held = (held.0 - 1, held.1 - self.bytes);
    }
}
