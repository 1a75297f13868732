//! CUDA as a backend, through `cudarc`, which loads the driver at run time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::{CudaContext, CudaEvent, CudaSlice, CudaStream, DriverError, sys};

use super::{Answer, Backend, WORKS_MAX, Work};

/// What a work clears before it leaves its mark, and how often: long enough for a missing order to show.
const WORK_BYTES: usize = 64 << 20;
const WORK_TIMES: usize = 16;

/// The first device, with memory for marks.
pub struct Cuda {
    context: Arc<CudaContext>,
    /// Reads while the others run.
    reader: Arc<CudaStream>,
    one: CudaSlice<u32>,
    marks: CudaSlice<u32>,
    /// What each work found of the marks of the others.
    found: CudaSlice<u32>,
    scratch: CudaSlice<u8>,
}

impl Cuda {
    /// Whether there is a driver to load.
    #[expect(unsafe_code, reason = "cudarc has no safe way to ask")]
    pub fn is_installed() -> bool {
        // SAFETY: the driver is a library made to be loaded like this.
        unsafe { sys::is_culib_present() }
    }

    /// Fails where no device answers.
    ///
    /// # Panics
    /// Panics where no driver [is installed](Cuda::is_installed).
    #[expect(unsafe_code, reason = "cudarc orders streams by events of its own unless it is told not to")]
    pub fn new() -> Result<Cuda, DriverError> {
        let context = CudaContext::new(0)?;
        // SAFETY: memory is allocated before any stream uses it, and freed when the device is idle: see below, and `drop`.
        // Works write to parts of their own, and read what they are told to follow.
        unsafe { context.disable_event_tracking() };
        let reader = context.new_stream()?;
        let one = reader.clone_htod(&[1])?;
        let (marks, found) = (reader.alloc_zeros(WORKS_MAX)?, reader.alloc_zeros(WORKS_MAX * WORKS_MAX)?);
        let scratch = reader.alloc_zeros(WORKS_MAX * WORK_BYTES)?;
        context.synchronize()?;
        Ok(Cuda { context, reader, one, marks, found, scratch })
    }

    fn read(&self, memory: &CudaSlice<u32>) -> Answer<Vec<u32>> {
        let words = self.reader.clone_dtoh(memory)?;
        self.reader.synchronize()?;
        Ok(words)
    }
}

fn marked(words: &[u32]) -> Vec<usize> {
    (0..words.len()).filter(|at| words[*at] != 0).collect()
}

impl Drop for Cuda {
    fn drop(&mut self) {
        self.context.synchronize().expect("memory is freed when nothing uses it");
    }
}

impl Backend for Cuda {
    type Stream = Arc<CudaStream>;
    type Event = CudaEvent;

    fn stream(&mut self, _queue: u32) -> Answer<Arc<CudaStream>> {
        Ok(self.context.new_stream()?)
    }

    fn event(&mut self) -> Answer<CudaEvent> {
        Ok(self.context.new_event(None)?)
    }

    fn work(&mut self, stream: &Arc<CudaStream>, work: Work) -> Answer<()> {
        let Work { number, after } = work;
        for &other in after {
            let at = number * WORKS_MAX + other;
            stream.memcpy_dtod(&self.marks.slice(other..other + 1), &mut self.found.slice_mut(at..at + 1))?;
        }
        for _ in 0..WORK_TIMES {
            stream.memset_zeros(&mut self.scratch.slice_mut(number * WORK_BYTES..(number + 1) * WORK_BYTES))?;
        }
        stream.memcpy_dtod(&self.one, &mut self.marks.slice_mut(number..number + 1))?;
        Ok(())
    }

    fn record(&mut self, event: &CudaEvent, stream: &Arc<CudaStream>) -> Answer<()> {
        Ok(event.record(stream)?)
    }

    fn wait(&mut self, stream: &Arc<CudaStream>, event: &CudaEvent) -> Answer<()> {
        Ok(stream.wait(event)?)
    }

    fn flush(&mut self, _stream: &Arc<CudaStream>) -> Answer<()> {
        Ok(())
    }

    /// CUDA's own has no timeout.
    fn synchronize(&mut self, event: &CudaEvent, timeout: Duration) -> Answer<bool> {
        let start = Instant::now();
        loop {
            if event.try_is_complete()? {
                return Ok(true);
            }
            if start.elapsed() >= timeout {
                return Ok(false);
            }
        }
    }

    fn synchronize_stream(&mut self, stream: &Arc<CudaStream>, timeout: Duration) -> Answer<bool> {
        self.synchronize(&stream.record_event(None)?, timeout)
    }

    fn query(&mut self, event: &CudaEvent) -> Answer<bool> {
        Ok(event.try_is_complete()?)
    }

    fn destroy_event(&mut self, event: CudaEvent) -> Answer<()> {
        drop(event);
        Ok(())
    }

    fn destroy_stream(&mut self, stream: Arc<CudaStream>) -> Answer<()> {
        drop(stream);
        Ok(())
    }

    fn ended(&mut self) -> Answer<Vec<usize>> {
        Ok(marked(&self.read(&self.marks)?))
    }

    fn found(&mut self, work: usize) -> Answer<Vec<usize>> {
        Ok(marked(&self.read(&self.found)?[work * WORKS_MAX..][..WORKS_MAX]))
    }
}
