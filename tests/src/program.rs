//! A program of calls on the runtime, watched by the naive reference.
//!
//! Each work reads the marks of the works it has to follow, and leaves one. A mark that is missing is a wait that did not
//! hold; a mark that the host misses after a wait is an early end. What is wrong panics.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::LazyLock;
use std::time::Duration;

use fencepost_vulkan::ash::vk;
use fencepost_vulkan::{
    Buffer, Device, Driver, Error, Event, Fault, Faults, Messages, OpenOptions, Options, Placement, Policy, Queue,
    Simulated, Stream, Vulkan,
};

use crate::reference::{Call, Reference, Works};

/// How many works a program has at most.
pub const WORKS_MAX: usize = 64;
/// How many queues the simulated GPU has here; others take queues modulo their own number.
pub const QUEUES: u32 = 4;

const MARK: u32 = 0x5EED_F00D;

/// A device, with what a program made of it.
pub struct Program {
    device: Device,
    fault: Fault,
    messages: Messages,
    reference: Reference,
    streams: BTreeMap<usize, Stream>,
    events: BTreeMap<usize, Event>,
    /// Recorded last on each stream that was dropped.
    ends: Vec<Event>,
    marks: Buffer,
    /// What each work found of the marks of the others.
    found: Buffer,
}

impl Program {
    /// On any driver; messages are those of its judge.
    pub fn new(driver: impl Driver + 'static, messages: Messages, policy: Policy) -> Program {
        let driver = Faults::new(driver);
        let fault = driver.switch();
        let device = Device::with_driver(driver, Options { policy, spin: Duration::from_micros(5) });
        let buffer = |words: usize| {
            let buffer = device.buffer(words as u64 * 4).expect("there is memory");
            buffer.write(0, &vec![0; words * 4]).expect("it fits");
            buffer
        };
        let (marks, found) = (buffer(WORKS_MAX), buffer(WORKS_MAX * WORKS_MAX));
        let (reference, streams, events, ends) = Default::default();
        Program { device, fault, messages, reference, streams, events, ends, marks, found }
    }

    /// On the simulated GPU, with a queue that only copies among the four.
    pub fn simulated(seed: u64, policy: Policy) -> Program {
        let simulated = Simulated::with_queues(seed, Program::queues());
        let messages = simulated.messages();
        Program::new(simulated, messages, policy)
    }

    /// The queues of the simulated GPU that programs run on; the last only copies.
    pub fn queues() -> Vec<Queue> {
        let all = vk::QueueFlags::COMPUTE | vk::QueueFlags::TRANSFER;
        let flags = |family| if family == QUEUES - 1 { vk::QueueFlags::TRANSFER } else { all };
        (0..QUEUES).map(|family| Queue { family, index: 0, flags: flags(family) }).collect()
    }

    /// Makes programs on a Vulkan driver, with validation. `None`, and a line on stderr that says why, where there is none; in
    /// CI that is a failure.
    pub fn vulkan() -> Option<fn(Policy) -> Program> {
        /// A driver that is unloaded and loaded again for each program runs out of static thread-local storage (NVIDIA 580):
        /// one device stays for the life of the process.
        static KEEP: LazyLock<Result<Vulkan, Error>> = LazyLock::new(|| Vulkan::open(&OpenOptions::default()));
        if let Err(error) = &*KEEP {
            assert!(std::env::var_os("CI").is_none(), "in CI nothing is skipped: {error}");
            let test = std::thread::current().name().unwrap_or("a test").to_owned();
            let _ = writeln!(std::io::stderr().lock(), "SKIPPED on Vulkan: {test}: {error}");
            return None;
        }
        Some(|policy| {
            let messages = Messages::default();
            let options = OpenOptions { validation: Some(messages.clone()), ..OpenOptions::default() };
            Program::new(Vulkan::open(&options).unwrap_or_else(|error| panic!("{error}")), messages, policy)
        })
    }

    /// What decides which driver calls fail.
    pub fn fault(&self) -> &Fault {
        &self.fault
    }

    /// A call, made once more if the driver refused it; `None` on a lost device.
    fn again<T>(&self, mut call: impl FnMut() -> Result<T, Error>) -> Option<T> {
        let was_lost = self.device.is_lost();
        let answer = call();
        let answer = if matches!(answer, Err(Error::Refused(_))) { call() } else { answer };
        match answer {
            Ok(answer) => {
                assert!(!was_lost, "a call succeeds on a lost device");
                Some(answer)
            }
            Err(Error::Lost(_)) => {
                assert!(self.device.is_lost(), "a call says that the device is lost, and the device does not");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Makes the call, and looks whether everything is as the reference says. A call that names nothing is left out: a
    /// device that is lost makes no streams.
    pub fn take(&mut self, call: Call) {
        if !self.reference.allows(call) {
            return;
        }
        if self.make(call).is_some() {
            self.reference.take(call);
        }
        if self.device.is_lost() {
            self.reference.lost = true;
        } else {
            self.have_ended(&self.reference.known);
        }
        assert_eq!(self.messages.heard(), Vec::<String>::new());
    }

    fn make(&mut self, call: Call) -> Option<()> {
        match call {
            Call::Stream(s, queue) => {
                let queue = queue % self.device.queues().len() as u32;
                let stream = self.again(|| self.device.stream(Placement::Queue(queue)))?;
                self.streams.insert(s, stream);
            }
            Call::Event(e) => drop(self.events.insert(e, self.device.event().expect("it touches no driver"))),
            Call::Work(s) => {
                let (work, after) = (self.reference.after.len(), &self.reference.streams[&s].1);
                self.again(|| {
                    self.streams[&s].record(|commands| -> Result<(), Error> {
                        for other in after {
                            let to = (work * WORKS_MAX + other) as u64 * 4;
                            commands.copy((&self.marks, *other as u64 * 4), (&self.found, to), 4)?;
                        }
                        commands.fill(&self.marks, work as u64 * 4, 4, MARK)
                    })
                })?
                .expect("it fits");
            }
            Call::Record(e, s) => self.again(|| self.events[&e].record(&self.streams[&s]))?,
            Call::Wait(s, e) => self.again(|| self.events[&e].wait(&self.streams[&s]))?,
            Call::Flush(s) => self.again(|| self.streams[&s].flush())?,
            Call::Synchronize(e) => self.again(|| self.events[&e].synchronize())?,
            Call::SynchronizeStream(s) => self.again(|| self.streams[&s].synchronize())?,
            Call::TimeOut(e) | Call::Query(e) => {
                let event = &self.events[&e];
                let wait = matches!(call, Call::TimeOut(_));
                let done =
                    self.again(|| if wait { event.synchronize_timeout(Duration::ZERO) } else { event.query() })?;
                let is_passed = self.reference.passed.contains(&e);
                assert!(done || !is_passed, "what the host has waited for is not done");
                if let (true, Some(covers)) = (done, &self.reference.events[&e]) {
                    self.have_ended(covers);
                }
            }
            Call::DropEvent(e) => drop(self.events.remove(&e)),
            Call::DropStream(s) => {
                // So that the end can be waited for.
                let end = self.device.event().expect("it touches no driver");
                self.again(|| end.record(&self.streams[&s]));
                self.ends.push(end);
                self.streams.remove(&s);
            }
            Call::Refuse(others) => self.fault.after(others, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY),
            Call::Lose => {
                self.fault.next("vkCreateBuffer", vk::Result::ERROR_DEVICE_LOST);
                assert!(matches!(self.device.buffer(4), Err(Error::Lost(_))));
            }
        }
        Some(())
    }

    fn have_ended(&self, works: &Works) {
        let marks = self.marks.words().expect("it is read");
        for work in works {
            assert_eq!(marks[*work], MARK, "work {work} is said to have ended");
        }
    }

    /// Everything runs to its end, followed what it had to, and is given back.
    pub fn finish(mut self) {
        self.fault.clear();
        let (streams, ends) = (std::mem::take(&mut self.streams), std::mem::take(&mut self.ends));
        for stream in streams.values() {
            self.again(|| stream.synchronize());
        }
        for end in &ends {
            self.again(|| end.synchronize());
        }
        self.events.clear();
        drop((streams, ends));
        if !self.device.is_lost() {
            self.have_ended(&(0..self.reference.after.len()).collect());
            let found = self.found.words().expect("it is read");
            for (work, after) in self.reference.after.iter().enumerate() {
                for other in after {
                    assert_eq!(
                        found[work * WORKS_MAX + other],
                        MARK,
                        "work {work} began before work {other} had ended"
                    );
                }
            }
            self.gives_slots_back();
        }
        let messages = self.messages.clone();
        drop(self);
        assert_eq!(messages.heard(), Vec::<String>::new());
    }

    /// No event is left, so every slot can be used again as soon as the news is in.
    fn gives_slots_back(&self) {
        let stream = self.device.stream(Placement::default()).expect("nothing fails any more");
        for _ in 0..1000 {
            let (made, reusable) = self.device.slot_count().expect("the device lives");
            if made == reusable {
                return;
            }
            stream.flush().expect("nothing fails any more");
            std::thread::sleep(Duration::from_micros(100));
        }
        panic!("slots are lost: {:?} made and reusable", self.device.slot_count());
    }
}
