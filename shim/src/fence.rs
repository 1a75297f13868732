//! A one-shot mark that is handed out: CubeCL's `EventFence`.

use crate::error::Error;
use crate::event::Event;
use crate::stream::Stream;

/// Everything issued on a stream when the fence was made, to be waited for once, from anywhere.
///
/// What a driver refuses, the host makes up for: a fence that cannot be recorded synchronizes the stream on the spot, and
/// a device wait that cannot be recorded becomes a host wait. Each time a warning goes to `tracing`.
///
/// CubeCL: `EventFence`. Vulkan: closest to a `VkFence` for several waiters. CUDA: an event recorded once.
pub struct Fence(Result<Option<Event>, Error>);

impl Fence {
    /// Marks what was issued on the stream so far. If even the host wait fails, the fence holds the error.
    pub fn new(stream: &Stream) -> Fence {
        let recorded = stream.device().event().and_then(|event| event.record(stream).map(|()| event));
        Fence(recorded.map(Some).or_else(|error| {
            tracing::warn!(%error, "a fence cannot be recorded: the stream is synchronized instead");
            stream.synchronize().map(|()| None)
        }))
    }

    /// Blocks the host until it is reached.
    ///
    /// CubeCL: `wait_sync`. CUDA: `cudaEventSynchronize`.
    pub fn wait_sync(self) -> Result<(), Error> {
        match self.0? {
            Some(event) => event.synchronize(),
            None => Ok(()),
        }
    }

    /// Work issued on the stream from now on starts after it is reached; the host goes on.
    ///
    /// CubeCL: `wait_async`. CUDA: `cudaStreamWaitEvent`.
    pub fn wait_async(self, stream: &Stream) -> Result<(), Error> {
        let refused = match self.0? {
            None => None,
            Some(event) => match event.wait(stream) {
                Err(error @ Error::Refused(_)) => Some((event, error)),
                answer => return answer,
            },
        };
        if let Some((event, error)) = refused {
            tracing::warn!(%error, "a stream cannot wait for a fence: the host waits instead");
            event.synchronize()?;
        }
        // The host has waited; what ended may still have to be made visible.
        stream.device().runtime.lock()?.acquire(stream.id);
        Ok(())
    }
}
