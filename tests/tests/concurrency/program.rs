//! Threads that make random calls on one device, with streams and events in common.
//!
//! Works leave marks and look for the marks of others, as in `fencepost_tests::program`; [`History`] says which have to be there.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fencepost_tests::reference::Works;
use fencepost_vulkan::ash::vk;
use fencepost_vulkan::{
    Buffer, Device, DropQueue, Error, Event, Fault, Faults, Fence, FlushPolicy, Messages, Options, Placement, Policy,
    Simulated, Stream,
};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

use crate::history::History;

const MARK: u32 = 0x5EED_F00D;
const WORKS_MAX: usize = 64;

/// The simulated GPU, as these tests use it: no wait looks at the counter for longer than a moment.
pub fn simulated() -> (Faults<Simulated>, Messages) {
    let simulated = Simulated::new(thread_rng().r#gen());
    let messages = simulated.messages();
    (Faults::new(simulated), messages)
}

pub fn options(events: bool) -> Options {
    Options { policy: Policy { events }, spin: Duration::from_micros(2) }
}

/// Where works leave their marks.
pub struct Marks {
    device: Device,
    marks: Buffer,
    /// What each work found of the marks of the others.
    found: Buffer,
}

impl Marks {
    pub fn new(device: &Device) -> Marks {
        let buffer = |words: usize| device.buffer(words as u64 * 4).expect("nothing fails yet");
        Marks { device: device.clone(), marks: buffer(WORKS_MAX), found: buffer(WORKS_MAX * WORKS_MAX) }
    }

    /// A work that looks for the marks of others and leaves one.
    pub fn work<'a>(
        &self,
        stream: &Stream,
        work: usize,
        after: impl IntoIterator<Item = &'a usize>,
    ) -> Result<(), Error> {
        stream.record(|commands| {
            for other in after {
                let to = (work * WORKS_MAX + other) as u64 * 4;
                commands.copy((&self.marks, *other as u64 * 4), (&self.found, to), 4)?;
            }
            commands.fill(&self.marks, work as u64 * 4, 4, MARK)
        })?
    }

    pub fn missing<'a>(&self, works: impl IntoIterator<Item = &'a usize>) -> Vec<usize> {
        let marks = self.marks.words().expect("it is read");
        works.into_iter().copied().filter(|work| marks[*work] != MARK).collect()
    }

    #[track_caller]
    pub fn have_ended<'a>(&self, works: impl IntoIterator<Item = &'a usize>) {
        assert_eq!(self.missing(works), [0; 0], "these works are said to have ended");
    }

    /// Works that did not find the mark of one that they had to follow, with that one; or have not ended yet.
    pub fn not_found<'a>(&self, works: impl IntoIterator<Item = (usize, &'a Works)>) -> Vec<(usize, usize)> {
        let found = self.found.words().expect("it is read");
        let pairs = works.into_iter().flat_map(|(work, after)| after.iter().map(move |other| (work, *other)));
        pairs.filter(|(work, other)| found[work * WORKS_MAX + other] != MARK).collect()
    }
}

/// A value for a drop queue, which tells whether it went in time.
struct Value {
    marks: Arc<Marks>,
    works: Works,
    dropped: Arc<AtomicUsize>,
}

impl Drop for Value {
    fn drop(&mut self) {
        if !self.marks.device.is_lost() {
            self.marks.have_ended(&self.works);
        }
        // No lock is held, or this waits for ever.
        self.marks.device.event().expect("it touches no driver");
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

pub struct Program {
    device: Device,
    fault: Fault,
    messages: Messages,
    marks: Arc<Marks>,
    kept: DropQueue<Value>,
    pushed: AtomicUsize,
    dropped: Arc<AtomicUsize>,
    /// Of `std`: it is looked at between calls, and nobody waits for it.
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    history: History,
    streams: BTreeMap<usize, Arc<Stream>>,
    events: BTreeMap<usize, Arc<Event>>,
}

/// A run of threads that make so many calls each.
pub fn run(threads: usize, calls: usize, events: bool, with_loss: bool) {
    let program = Arc::new(Program::new(events));
    let make_calls = |_| {
        let program = program.clone();
        thread::spawn(move || (0..calls).for_each(|_| program.call(with_loss)))
    };
    let threads: Vec<_> = (0..threads).map(make_calls).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a panic ends the test"));
    Arc::into_inner(program).expect("every thread has ended").finish();
}

impl Program {
    fn new(events: bool) -> Program {
        let (driver, messages) = simulated();
        let fault = driver.switch();
        let device = Device::with_driver(driver, options(events));
        let marks = Arc::new(Marks::new(&device));
        let kept = DropQueue::new(&device, FlushPolicy { count_max: 3, ..FlushPolicy::default() });
        let (pushed, dropped, shared) = Default::default();
        let program = Program { device, fault, messages, marks, kept, pushed, dropped, shared };
        (0..2).for_each(|_| program.make_stream());
        (0..2).for_each(|_| program.make_event());
        program
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call, made again for as long as the driver refuses it; `None` on a lost device.
    fn again<T>(&self, mut call: impl FnMut() -> Result<T, Error>) -> Option<T> {
        let was_lost = self.device.is_lost();
        loop {
            match call() {
                Ok(answer) => {
                    assert!(!was_lost, "a call succeeds on a lost device");
                    return Some(answer);
                }
                Err(Error::Refused(_)) => {}
                Err(Error::Lost(_)) => {
                    assert!(self.device.is_lost(), "a call says that the device is lost, and the device does not");
                    return None;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn make_stream(&self) {
        let queue = thread_rng().gen_range(0..3);
        if let Some(stream) = self.again(|| self.device.stream(Placement::Queue(queue))) {
            let shared = &mut *self.shared();
            shared.streams.insert(shared.history.stream(), Arc::new(stream));
        }
    }

    fn make_event(&self) {
        let event = self.device.event().expect("it touches no driver");
        let shared = &mut *self.shared();
        shared.events.insert(shared.history.event(), Arc::new(event));
    }

    /// Makes a call of some kind, on whatever there is.
    fn call(&self, with_loss: bool) {
        fn one<T>(of: &BTreeMap<usize, Arc<T>>) -> Option<(usize, Arc<T>)> {
            let at = thread_rng().gen_range(0..of.len().max(1));
            of.iter().nth(at).map(|(number, one)| (*number, one.clone()))
        }
        let (stream, event) = {
            let shared = self.shared();
            (one(&shared.streams), one(&shared.events))
        };
        let (Some((s, stream)), Some((e, event))) = (stream, event) else {
            self.make_stream();
            return self.make_event();
        };
        match thread_rng().gen_range(0..30 + u32::from(with_loss)) {
            0..6 => self.work(s, &stream),
            6..10 => {
                let recording = self.shared().history.recording(e, s);
                if self.again(|| event.record(&stream)).is_some() {
                    self.shared().history.was_recorded(e, recording);
                }
            }
            10..15 => {
                let look = self.shared().history.look(e);
                if self.again(|| event.wait(&stream)).is_some() {
                    let history = &mut self.shared().history;
                    let seen = history.seen(look);
                    history.waited(s, &seen);
                }
            }
            15..17 => drop(self.again(|| stream.flush())),
            17..22 => {
                let look = self.shared().history.look(e);
                let done = match thread_rng().gen_range(0..4) {
                    0 | 1 => self.again(|| event.synchronize()).map(|()| true),
                    2 => self.again(|| event.synchronize_timeout(Duration::from_millis(150))),
                    _ => self.again(|| event.query()),
                };
                if done == Some(true) {
                    let seen = self.shared().history.seen(look);
                    self.marks.have_ended(&seen);
                }
            }
            22 => {
                let covered = self.shared().history.covered(s);
                if self.again(|| stream.synchronize()).is_some() {
                    self.marks.have_ended(&covered);
                }
            }
            23 => {
                let covered = self.shared().history.covered(s);
                let fence = Fence::new(&stream);
                if thread_rng().r#gen() {
                    if fence.wait_sync().is_ok() {
                        self.marks.have_ended(&covered);
                    }
                } else if fence.wait_async(&stream).is_ok() {
                    self.shared().history.waited(s, &covered);
                }
            }
            24 | 25 => {
                let works = self.shared().history.covered(s);
                let value = Value { marks: self.marks.clone(), works, dropped: self.dropped.clone() };
                self.pushed.fetch_add(1, Ordering::Relaxed);
                let pushed = self.kept.push(value, 1, &[&stream]);
                assert!(pushed.is_ok(), "the stream is of this device");
            }
            26 => {
                self.make_event();
                drop(event);
                let gone = self.shared().events.remove(&e);
                drop(gone);
            }
            27 => {
                drop(stream);
                let gone = self.shared().streams.remove(&s);
                drop(gone);
                self.make_stream();
            }
            28 | 29 => {
                self.fault.after(thread_rng().gen_range(0..4), vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
            }
            _ => {
                self.fault.after(thread_rng().gen_range(0..4), vk::Result::ERROR_DEVICE_LOST);
            }
        }
    }

    fn work(&self, s: usize, stream: &Stream) {
        let (work, after) = self.shared().history.work(s);
        if work < WORKS_MAX && self.again(|| self.marks.work(stream, work, &after)).is_some() {
            self.shared().history.work_was_issued(s, work, after);
        }
    }

    /// Everything runs to its end, followed what it had to, and is given back.
    fn finish(self) {
        let Program { device, fault, messages, marks, kept, pushed, dropped, shared } = self;
        fault.clear();
        let Shared { history, streams, events } = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        for stream in streams.values() {
            assert!(
                stream.synchronize().is_ok() != device.is_lost(),
                "a wait fails if the device is lost, and only then"
            );
        }
        drop((streams, events, kept));
        assert_eq!(dropped.load(Ordering::Relaxed), pushed.into_inner(), "values dropped, and pushed");
        if !device.is_lost() {
            let stream = device.stream(Placement::default()).expect("nothing fails any more");
            let works: Works = history.works().map(|(work, _)| work).collect();
            // Nobody waits for a stream that was dropped; news of it comes with other calls.
            let left = || (marks.missing(&works), marks.not_found(history.works()), device.slot_count());
            let is_over = || {
                matches!(left(), (missing, not_found, Ok((made, reusable)))
                if missing.is_empty() && not_found.is_empty() && made == reusable)
            };
            let mut tries = 0;
            while !is_over() {
                stream.flush().expect("nothing fails any more");
                tries += 1;
                assert!(tries < 1000, "missing, begun before another had ended, slots made and reusable: {:?}", left());
            }
        }
        drop((device, marks));
        assert_eq!(messages.heard(), [""; 0]);
    }
}
