//! The loop around the machine: make a call, carry out what has to come first, call again.
//!
//! Locks, in the order they are taken: the runtime's, then a stream's pool. [`Stream::record`](crate::Stream::record) keeps
//! the pool for its closure without the runtime's; so the closure may not call back, and is refused if it does. Nobody holds either lock while the
//! host blocks.

use std::any::Any;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use ash::vk;
use fencepost::{
    Effect, EventId, Lease, Machine, Point, Policy, QueueId, Reply, Step, StreamId, Synchronize, TimedOut, Waited,
    WaiterId,
};

use crate::driver::{ASKED, Answer, Batch, Driver};
use crate::error::{DriverError, Error};
use crate::relay::Relay;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Instant, Mutex, MutexGuard, lock, sleep, spin_loop, thread_local};

/// How long one blocking driver call lasts before the thread looks whether the device was lost meanwhile.
const SLICE: Duration = Duration::from_millis(100);

thread_local! {
    /// This thread is inside the closure of `Stream::record`.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Something kept for the device until its points have passed.
pub(crate) type Held = Arc<dyn Any + Send + Sync>;

/// What a dropped handle leaves to do.
pub(crate) enum Gone {
    Event(EventId),
    Stream(StreamId),
    /// To be kept until these streams, or all, have done what was issued on them.
    Value(Held, Option<Vec<StreamId>>),
}

/// What a thread needs that waits without the lock.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) driver: Arc<dyn Driver>,
    lost: Arc<AtomicBool>,
    spin: Duration,
}

/// A device, as its handles share it.
pub(crate) struct Runtime {
    pub(crate) link: Link,
    /// Tells devices apart.
    pub(crate) number: u64,
    /// Gone when the runtime is.
    pub(crate) alive: Arc<()>,
    state: Mutex<State>,
    gone: Mutex<Vec<Gone>>,
}

pub(crate) struct State {
    pub(crate) machine: Machine,
    /// What the driver said last to a call that it refused.
    refusal: Option<DriverError>,
    /// How the device was lost.
    loss: Option<DriverError>,
    waiters: HashMap<WaiterId, Waiter>,
    /// Let go by wakes; dropped once the lock is free.
    released: Vec<Held>,
    /// One for each timeline.
    pools: Vec<Arc<Mutex<()>>>,
    /// Timelines whose next buffer has to acquire.
    acquires: HashSet<u32>,
    /// Dropped streams whose points have not all been reported, and relays: nobody else asks for their news.
    unowned: Vec<StreamId>,
    /// Streams placed on each queue.
    pub(crate) placed: Vec<u32>,
    pub(crate) relays: HashMap<u64, Relay>,
    waits: Vec<(u32, u64)>,
    /// Kept for its memory, as the one above.
    burying: Vec<Gone>,
}

enum Waiter {
    /// A thread that blocks; once woken, whether by loss.
    Thread(Option<bool>),
    /// Something to let go.
    Holds { _held: Held },
}

/// The runtime's lock.
pub(crate) struct Locked<'a> {
    runtime: &'a Runtime,
    state: Option<MutexGuard<'a, State>>,
}

impl Runtime {
    pub(crate) fn new(driver: Arc<dyn Driver>, policy: Policy, spin: Duration) -> Runtime {
        static NUMBERS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let mut machine = Machine::new(policy);
        let host = driver.queues().len();
        for (queue, has_events) in driver.queues().iter().map(|q| q.has_events()).chain([false]).enumerate() {
            machine.set_policy(queue as QueueId, Policy { events: policy.events && has_events });
        }
        let state = State {
            machine,
            refusal: None,
            loss: None,
            waiters: HashMap::new(),
            released: Vec::new(),
            pools: Vec::new(),
            acquires: HashSet::new(),
            unowned: Vec::new(),
            placed: vec![0; host],
            relays: HashMap::new(),
            waits: Vec::new(),
            burying: Vec::new(),
        };
        Runtime {
            link: Link { driver, lost: Arc::default(), spin },
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            alive: Arc::default(),
            state: Mutex::new(state),
            gone: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn lock(&self) -> Result<Locked<'_>, Error> {
        if INSIDE.with(Cell::get) { Err(Error::InsideRecord) } else { Ok(self.lock_anywhere()) }
    }

    fn lock_anywhere(&self) -> Locked<'_> {
        let mut locked = Locked { runtime: self, state: Some(lock(&self.state)) };
        locked.bury();
        locked
    }

    /// A handle was dropped. Never fails: what cannot be done now is done with the next call.
    pub(crate) fn leave(&self, gone: Gone) {
        self.gone().push(gone);
        drop(self.lock());
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.link.lost.load(Ordering::Acquire)
    }

    fn gone(&self) -> MutexGuard<'_, Vec<Gone>> {
        lock(&self.gone)
    }

    /// A host wait: has the machine say what for, and blocks until that passes. `false` if the time ran out first.
    pub(crate) fn block(
        &self,
        timeout: Option<Duration>,
        call: impl FnMut(&mut Machine) -> Result<Step<Synchronize>, fencepost::Error>,
    ) -> Result<bool, Error> {
        let mut locked = self.lock()?;
        let Synchronize::Block { waiter, point } = locked.drive(call)? else { return Ok(true) };
        locked.waiters.insert(waiter, Waiter::Thread(None));
        let timeline = locked.machine.timeline(point.stream);
        drop(locked);
        let news = match timeline {
            Some(timeline) => self.link.wait_for(timeline, point.value, timeout),
            None => Ok(true), // The stream is gone: all its points passed.
        };
        let mut locked = self.lock()?;
        match news {
            // The wake says how it went.
            Ok(true) => drop(locked.drive(|m| m.reached(point.stream, point.value))),
            Ok(false) => {
                if locked.machine.timed_out(waiter) == TimedOut::Forgotten {
                    locked.waiters.remove(&waiter);
                    return Ok(false);
                }
            }
            Err(error) if error.is_lost() => drop(locked.lose(error)),
            Err(error) => {
                if locked.machine.timed_out(waiter) == TimedOut::Forgotten {
                    locked.waiters.remove(&waiter);
                    return Err(Error::Refused(error));
                }
            }
        }
        match locked.waiters.remove(&waiter) {
            Some(Waiter::Thread(Some(false))) => Ok(true),
            _ => Err(locked.lost_error()),
        }
    }
}

impl Link {
    /// Spins on the counter, then blocks: `false` if the time ran out first.
    pub(crate) fn wait_for(&self, timeline: u32, value: u64, timeout: Option<Duration>) -> Answer<bool> {
        let start = Instant::now();
        let spin = timeout.map_or(self.spin, |timeout| timeout.min(self.spin));
        loop {
            if self.driver.counter(timeline)? >= value {
                return Ok(true);
            }
            if start.elapsed() >= spin {
                break;
            }
            spin_loop();
        }
        loop {
            let left = timeout.map_or(Duration::MAX, |timeout| timeout.saturating_sub(start.elapsed()));
            if self.driver.block(timeline, value, left.min(SLICE).as_nanos() as u64)? {
                return Ok(true);
            }
            if left.is_zero() {
                return Ok(false);
            }
            if self.lost.load(Ordering::Acquire) {
                return Err(DriverError { call: "vkWaitSemaphores", result: vk::Result::ERROR_DEVICE_LOST });
            }
        }
    }
}

/// Makes a driver call until it is answered: a refusal is tried again after a while. The error is a loss.
pub(crate) fn surely<T>(mut call: impl FnMut() -> Answer<T>) -> Answer<T> {
    loop {
        match call() {
            Err(error) if !error.is_lost() => {
                tracing::warn!(%error, "refused, and tried again");
                sleep(Duration::from_millis(1));
            }
            answer => return answer,
        }
    }
}

impl Locked<'_> {
    /// Makes a call of the machine until it is answered.
    pub(crate) fn drive<T>(
        &mut self,
        mut call: impl FnMut(&mut Machine) -> Result<Step<T>, fencepost::Error>,
    ) -> Result<T, Error> {
        loop {
            let effect = match call(&mut self.machine) {
                Ok(Step::Done(_)) if self.machine.is_lost() && self.loss.is_none() => {
                    // A counter that says more than was promised is how some drivers show a loss.
                    let result = vk::Result::ERROR_DEVICE_LOST;
                    return Err(self.lose(DriverError { call: "vkGetSemaphoreCounterValue", result }));
                }
                Ok(Step::Done(answer)) => return Ok(answer),
                Ok(Step::First(effect)) => effect,
                Err(error) => return Err(self.failed(error)),
            };
            let reply = match self.carry_out(effect) {
                Ok(()) => Reply::Done,
                Err(error) if error.is_lost() => return Err(self.lose(error)),
                Err(error) => {
                    tracing::warn!(%error, "refused");
                    self.refusal = Some(error);
                    Reply::Refused
                }
            };
            self.machine.reply(effect, reply).map_err(|error| self.failed(error))?;
        }
    }

    /// A call of the machine that needs no driver.
    pub(crate) fn ask<T>(
        &mut self,
        call: impl FnOnce(&mut Machine) -> Result<T, fencepost::Error>,
    ) -> Result<T, Error> {
        call(&mut self.machine).map_err(|error| self.failed(error))
    }

    fn carry_out(&mut self, effect: Effect) -> Answer<()> {
        let runtime = self.runtime;
        let driver = &runtime.link.driver;
        match effect {
            Effect::CreateTimeline { timeline, queue } => {
                driver.create_timeline(timeline, queue)?;
                self.pools.push(Arc::default());
                Ok(())
            }
            Effect::Begin { lease, new, .. } => {
                let state = &mut **self;
                let _pool = lock(&state.pools[lease.timeline as usize]);
                driver.begin(ASKED, lease, new)?;
                if state.acquires.remove(&lease.timeline) {
                    driver.acquire(ASKED, lease);
                }
                Ok(())
            }
            Effect::Submit { stream, lease, value } => {
                let state = &mut **self;
                let (Some(timeline), Some(queue)) = (state.machine.timeline(stream), state.machine.queue(stream))
                else {
                    return Ok(());
                };
                if queue as usize == driver.queues().len() {
                    return Ok(()); // The relay's thread signals it.
                }
                state.waits.clear();
                state.waits.extend(state.machine.open_waits(stream));
                let _pool = lock(&state.pools[timeline as usize]);
                driver.submit(ASKED, &Batch { queue, timeline, value, lease, waits: &state.waits })
            }
            Effect::CreateSlot { slot } => driver.create_event(slot.index),
            Effect::ResetSlot { slot } => driver.reset_event(ASKED, slot.index),
            Effect::Wake { waiter, lost } => {
                match self.waiters.get_mut(&waiter) {
                    Some(Waiter::Thread(woken)) => *woken = Some(lost),
                    Some(Waiter::Holds { .. }) => {
                        if let Some(Waiter::Holds { _held }) = self.waiters.remove(&waiter) {
                            self.released.push(_held);
                        }
                    }
                    None => {}
                }
                Ok(())
            }
        }
    }

    /// What the machine's error is to a caller.
    fn failed(&mut self, error: fencepost::Error) -> Error {
        match (error, self.refusal.take()) {
            (fencepost::Error::Lost, _) => self.lost_error(),
            (fencepost::Error::Refused(_), Some(refusal)) => Error::Refused(refusal),
            (error, _) => Error::Machine(error),
        }
    }

    fn lost_error(&self) -> Error {
        let unknown = DriverError { call: "a call", result: vk::Result::ERROR_DEVICE_LOST };
        Error::Lost(self.loss.unwrap_or(unknown))
    }

    /// The device is lost: everybody who waits is told.
    pub(crate) fn lose(&mut self, cause: DriverError) -> Error {
        tracing::error!(%cause, "the device is lost");
        self.loss.get_or_insert(cause);
        self.runtime.link.lost.store(true, Ordering::Release);
        while let Ok(Step::First(effect)) = self.machine.lose() {
            let _ = self.carry_out(effect); // A wake, which no driver hears of.
            let _ = self.machine.reply(effect, Reply::Done);
        }
        self.lost_error()
    }

    /// Keeps a value until everything issued on the streams so far has passed.
    fn hold(&mut self, held: &Held, streams: &[StreamId]) {
        for &stream in streams {
            // A dropped stream has no open batch.
            let dropped = || self.machine.progress(stream).map(|(value, _)| Point { stream, value });
            let Some(point) = self.machine.newest(stream).ok().or_else(dropped) else { continue };
            // After loss the device uses nothing.
            if let Ok(Some(waiter)) = self.machine.watch(point) {
                self.waiters.insert(waiter, Waiter::Holds { _held: held.clone() });
            }
        }
    }

    /// Asks the driver for news of a stream, and of those that nobody owns. It is about reuse only, so a refusal is no
    /// failure.
    pub(crate) fn poll(&mut self, stream: StreamId) -> Result<(), Error> {
        let lost = |answer| if let Err(error @ Error::Lost(_)) = answer { Err(error) } else { Ok(()) };
        for at in (0..self.unowned.len()).rev() {
            let unowned = self.unowned[at];
            lost(self.poll_one(unowned))?;
            if self.machine.timeline(unowned).is_none() {
                self.unowned.swap_remove(at);
            }
        }
        lost(self.poll_one(stream))
    }

    /// Asks the driver for news of a stream.
    pub(crate) fn poll_one(&mut self, stream: StreamId) -> Result<(), Error> {
        let Some((submitted, reached)) = self.machine.progress(stream) else { return Ok(()) };
        let Some(timeline) = self.machine.timeline(stream).filter(|_| reached < submitted) else { return Ok(()) };
        match self.runtime.link.driver.counter(timeline) {
            Ok(value) => self.drive(|m| m.reached(stream, value)),
            Err(error) => Err(self.driver_error(error)),
        }
    }

    /// What a driver's failure is to a caller.
    pub(crate) fn driver_error(&mut self, error: DriverError) -> Error {
        if error.is_lost() { self.lose(error) } else { Error::Refused(error) }
    }

    /// Adds the wait for an event to a stream, however the machine wants it.
    pub(crate) fn wait(&mut self, stream: StreamId, event: EventId) -> Result<(), Error> {
        let driver = &self.runtime.link.driver;
        match self.drive(|m| m.wait(stream, event))? {
            Waited::Nothing => self.acquire(stream),
            Waited::Barrier(lease) => self.with_pool(lease, || driver.barrier(ASKED, lease)),
            Waited::Event(lease, slot) => self.with_pool(lease, || driver.wait(ASKED, lease, slot.index)),
        }
        Ok(())
    }

    /// A wait that added no command: what ended before it is available, and may still have to be made visible.
    pub(crate) fn acquire(&mut self, stream: StreamId) {
        let driver = &self.runtime.link.driver;
        match (self.machine.open_lease(stream), self.machine.timeline(stream)) {
            (Some(lease), _) => self.with_pool(lease, || driver.acquire(ASKED, lease)),
            (None, Some(timeline)) => drop(self.acquires.insert(timeline)),
            (None, None) => {}
        }
    }

    /// Lets go of the lock, and hands over what is to be dropped when no lock is held.
    pub(crate) fn unlock(mut self) -> Vec<Held> {
        std::mem::take(&mut self.released)
    }

    /// Adds commands while nobody else does.
    pub(crate) fn with_pool(&self, lease: Lease, add: impl FnOnce()) {
        let _pool = lock(&self.pools[lease.timeline as usize]);
        add();
    }

    /// A timeline's pool of buffers, for commands to be added.
    pub(crate) fn pool(&self, timeline: u32) -> Arc<Mutex<()>> {
        self.pools[timeline as usize].clone()
    }

    /// Nobody owns the stream from now on.
    pub(crate) fn disown(&mut self, stream: StreamId) {
        self.unowned.push(stream);
    }

    /// Does what dropped handles left to do.
    fn bury(&mut self) {
        let mut gone = std::mem::take(&mut self.burying);
        std::mem::swap(&mut gone, &mut self.runtime.gone());
        gone.retain(|gone| match gone {
            Gone::Event(event) => self.machine.destroy_event(*event).is_err(),
            Gone::Stream(stream) => !self.close(*stream),
            Gone::Value(held, streams) => {
                match streams {
                    Some(streams) => self.hold(held, streams),
                    None => {
                        let all: Vec<StreamId> = self.machine.streams().collect();
                        self.hold(held, &all);
                    }
                }
                self.released.push(held.clone());
                false
            }
        });
        if !gone.is_empty() {
            self.runtime.gone().append(&mut gone);
        }
        self.burying = gone;
    }

    /// `false` if what the stream holds could not be submitted yet.
    fn close(&mut self, stream: StreamId) -> bool {
        let queue = self.machine.queue(stream);
        if let Err(Error::Refused(_)) = self.drive(|m| m.destroy_stream(stream)) {
            return false;
        }
        if let Some(placed) = queue.and_then(|queue| self.placed.get_mut(queue as usize)) {
            *placed -= 1;
        }
        self.unowned.push(stream);
        true
    }
}

impl Deref for Locked<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.state.as_deref().expect("the guard is taken by drop alone")
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.state.as_deref_mut().expect("the guard is taken by drop alone")
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let released = std::mem::take(&mut self.released);
        self.state = None;
        drop(released); // May be a caller's value, whose drop calls back.
    }
}

/// Waits for everything on the device, so that the driver can be dropped.
impl Drop for Runtime {
    fn drop(&mut self) {
        // Not refused inside the closure of another device's stream; of this one there is none left.
        let mut locked = self.lock_anywhere();
        locked.relays.clear(); // Their threads pass on what is still to come, and end.
        drop(locked);
        let link = self.link.clone();
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for stream in state.machine.streams() {
            if let (Some(timeline), Some((submitted, _))) =
                (state.machine.timeline(stream), state.machine.progress(stream))
                && !state.machine.is_lost()
            {
                // Only a loss ends this early, and after that nothing runs.
                let _ = surely(|| link.wait_for(timeline, submitted, None));
            }
        }
        drop(link);
        state.waiters.clear();
        self.gone().clear();
        // Relays, of this device and of others, may be about to let go of it.
        while Arc::strong_count(&self.link.driver) > 1 {
            sleep(Duration::from_micros(20));
        }
    }
}

/// Marks this thread as being inside the closure of `Stream::record`.
pub(crate) struct Inside;

impl Inside {
    pub(crate) fn enter() -> Inside {
        INSIDE.with(|inside| inside.set(true));
        Inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with(|inside| inside.set(false));
    }
}
