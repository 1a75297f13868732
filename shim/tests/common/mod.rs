//! Runs a test on the simulated GPU and on a Vulkan driver, with validation, in every way that waits can be expressed.
#![allow(dead_code)] // Each test file uses its part.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fencepost_vulkan::ash::vk;
use fencepost_vulkan::{
    Buffer, Commands, Device, Driver, Error, Event, Fault, Faults, Messages, OpenOptions, Options, Placement, Policy,
    Simulated, Stream, Vulkan,
};

/// A device to test on, and what is random.
pub struct Bench {
    pub device: Device,
    pub fault: Fault,
    pub random: Mutex<fastrand::Rng>,
    pub is_simulated: bool,
    scratch: Buffer,
}

/// How long a test may take before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a story on every device there is. Fails on a rule broken, on a validation message, and when it hangs.
pub fn run(story: impl Fn(&Bench)) {
    on_simulated(&story);
    on_vulkan(&story);
}

pub fn on_simulated(story: impl Fn(&Bench)) {
    for _ in 0..24 {
        for events in [true, false] {
            let seed = fastrand::u64(..);
            let simulated = Simulated::new(seed);
            let messages = simulated.messages();
            play(simulated, &messages, 64, seed, events, true, &story);
        }
    }
}

pub fn on_vulkan(story: impl Fn(&Bench)) {
    on_vulkan_validated(true, story);
}

pub fn on_vulkan_validated(validated: bool, story: impl Fn(&Bench)) {
    // One at a time: validation layers and software drivers are heavy.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for (synchronization2, events) in [(true, true), (false, true), (true, false)] {
        let Some((vulkan, messages)) = vulkan(synchronization2, validated) else { return };
        play(vulkan, &messages, 1 << 20, fastrand::u64(..), events, false, &story);
    }
}

fn play(
    driver: impl Driver + 'static,
    messages: &Messages,
    work_bytes: u64,
    seed: u64,
    events: bool,
    is_simulated: bool,
    story: impl Fn(&Bench),
) {
    println!("{}, seed {seed}, events {events}", driver.name());
    let _watchdog = Watchdog::start();
    let faults = Faults::new(driver);
    let fault = faults.switch();
    let device = Device::with_driver(faults, Options { policy: Policy { events }, ..Options::default() });
    let scratch = device.buffer(work_bytes).expect("there is memory");
    let random = Mutex::new(fastrand::Rng::with_seed(seed));
    let bench = Bench { device, fault, random, is_simulated, scratch };
    story(&bench);
    drop(bench);
    let heard = messages.heard();
    assert!(heard.is_empty(), "{} messages, the first: {}", heard.len(), heard[0]);
}

/// Drivers that are unloaded and loaded again for each test run out of static thread-local storage (NVIDIA 580): one
/// device stays for the life of the process.
static KEEP: LazyLock<Option<Vulkan>> = LazyLock::new(|| Vulkan::open(&OpenOptions::default()).ok());

/// A Vulkan driver with validation; `None`, and a line that says why, where there is none.
pub fn vulkan(synchronization2: bool, validated: bool) -> Option<(Vulkan, Messages)> {
    LazyLock::force(&KEEP);
    let messages = Messages::default();
    let validation = validated.then(|| messages.clone());
    match Vulkan::open(&OpenOptions { synchronization2, validation, ..OpenOptions::default() }) {
        Ok(vulkan) => Some((vulkan, messages)),
        Err(error) => {
            skip(&error);
            None
        }
    }
}

/// Layers before 1.3.296 wait for themselves, for 10 seconds, where the host signals a timeline semaphore
/// (KhronosGroup/Vulkan-ValidationLayers #4968, mended by #8519).
pub fn host_signals_are_validated() -> bool {
    // SAFETY: the loader is a library made to be loaded like this.
    let Ok(entry) = (unsafe { fencepost_vulkan::ash::Entry::load() }) else { return true };
    // SAFETY: the loader lives.
    let layers = unsafe { entry.enumerate_instance_layer_properties() }.unwrap_or_default();
    let khronos = layers.iter().find(|l| l.layer_name_as_c_str() == Ok(c"VK_LAYER_KHRONOS_validation"));
    khronos.is_none_or(|layer| layer.spec_version >= vk::make_api_version(0, 1, 3, 296))
}

fn skip(why: &Error) {
    assert!(std::env::var_os("CI").is_none(), "in CI nothing is skipped: {why}");
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // Past the test harness, which keeps the output of tests that pass.
    let _ = writeln!(std::io::stderr().lock(), "SKIPPED on Vulkan: {test}: {why}");
}

/// A trace in memory.
#[derive(Clone, Default)]
pub struct Lines(pub Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Watchdog(Arc<AtomicBool>);

impl Watchdog {
    fn start() -> Watchdog {
        let done = Arc::new(AtomicBool::new(false));
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let (start, seen) = (Instant::now(), done.clone());
        std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(50));
                if start.elapsed() > PATIENCE {
                    let _ = writeln!(std::io::stderr().lock(), "{test} hangs");
                    std::process::abort();
                }
            }
        });
        Watchdog(done)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Bench {
    pub fn word(&self) -> u32 {
        self.random.lock().unwrap_or_else(PoisonError::into_inner).u32(1..)
    }

    pub fn buffer(&self) -> Buffer {
        let buffer = self.device.buffer(16).expect("there is memory");
        buffer.write(0, &[0; 16]).expect("it fits");
        buffer
    }

    pub fn event(&self) -> Event {
        self.device.event().expect("the device lives")
    }

    pub fn stream(&self) -> Stream {
        self.device.stream(Placement::default()).expect("there is a queue")
    }

    pub fn on_queue(&self, queue: u32) -> Stream {
        let queue = queue % self.device.queues().len() as u32;
        self.device.stream(Placement::Queue(queue)).expect("there is such a queue")
    }

    /// Two streams: on one queue, and on two where there are two.
    pub fn pairs(&self) -> Vec<[Stream; 2]> {
        let mut pairs = vec![[self.on_queue(0), self.on_queue(0)]];
        if self.device.queues().len() > 1 {
            pairs.push([self.on_queue(0), self.on_queue(1)]);
            pairs.push([self.on_queue(self.device.queues().len() as u32 - 1), self.on_queue(0)]);
        }
        pairs
    }

    /// Records the event, and half of the time issues something behind it, so that a barrier is not enough.
    pub fn record(&self, event: &Event, stream: &Stream) {
        event.record(stream).expect("it is recorded");
        if self.word().is_multiple_of(2) {
            let unrelated = self.buffer();
            stream.record(|c| c.fill(&unrelated, 0, 16, 1)).expect("it is recorded").expect("it fits");
        }
    }

    /// Much work, then a value for the buffer.
    pub fn produce(&self, stream: &Stream, buffer: &Buffer, word: u32) {
        stream.record(|c| self.slowly(c, |c| c.fill(buffer, 0, 16, word))).expect("it is recorded");
    }

    /// Much work, then a copy.
    pub fn copy(&self, stream: &Stream, from: &Buffer, to: &Buffer) {
        stream.record(|c| self.slowly(c, |c| c.copy((from, 0), (to, 0), 16))).expect("it is recorded");
    }

    /// A copy at once: what shows that a wait before it was no wait.
    pub fn consume(&self, stream: &Stream, from: &Buffer, to: &Buffer) {
        stream.record(|c| c.copy((from, 0), (to, 0), 16)).expect("it is recorded").expect("it fits");
    }

    /// The same on the stream that wrote.
    pub fn consume_after_barrier(&self, stream: &Stream, from: &Buffer, to: &Buffer) {
        stream.record(|c| c.barrier()).expect("it is recorded");
        self.consume(stream, from, to);
    }

    fn slowly(&self, commands: &mut Commands, then: impl FnOnce(&mut Commands) -> Result<(), Error>) {
        for word in 0..4 {
            commands.barrier(); // Streams share the scratch memory of their queue.
            commands.fill(&self.scratch, 0, self.scratch.size(), word).expect("it fits");
        }
        commands.barrier();
        then(commands).expect("it fits");
    }
}

/// What a buffer holds, once it is known to be done.
pub fn value(buffer: &Buffer) -> u32 {
    let words = buffer.words().expect("it is read");
    assert!(words.iter().all(|word| *word == words[0]), "half written: {words:?}");
    words[0]
}

pub const OUT_OF_MEMORY: vk::Result = vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
pub const DEVICE_LOST: vk::Result = vk::Result::ERROR_DEVICE_LOST;
