//! Host waits that last too long.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::device::Device;

/// The host waits of one device.
pub struct Watchdog {
    patience: Duration,
    waits: Mutex<Waits>,
    changed: Condvar,
}

#[derive(Default)]
struct Waits {
    started: bool,
    /// The device is gone.
    over: bool,
    now: Vec<Wait>,
}

struct Wait {
    /// The thread as the judge counts it.
    thread: u32,
    since: Instant,
    told: bool,
}

impl Watchdog {
    pub fn new(patience: Duration) -> Watchdog {
        Watchdog { patience, waits: Mutex::default(), changed: Condvar::new() }
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread begins to wait.
    pub fn begin(self: &Arc<Self>, device: &Arc<Device>, thread: u32) {
        let mut waits = self.waits();
        waits.now.push(Wait { thread, since: Instant::now(), told: false });
        if !waits.started {
            let (watchdog, device) = (self.clone(), Arc::downgrade(device));
            let thread = std::thread::Builder::new().name("fencepost-watchdog".into());
            waits.started = thread.spawn(move || watchdog.watch(&device)).is_ok();
        }
        self.changed.notify_one();
    }

    /// Its wait is over.
    pub fn end(&self, thread: u32) {
        self.waits().now.retain(|wait| wait.thread != thread);
    }

    /// No wait will begin any more.
    pub fn stop(&self) {
        self.waits().over = true;
        self.changed.notify_one();
    }

    fn watch(&self, device: &Weak<Device>) {
        let mut waits = self.waits();
        while !waits.over {
            let now = Instant::now();
            let due = waits.now.iter_mut().find(|wait| !wait.told && now.duration_since(wait.since) >= self.patience);
            if let Some(wait) = due {
                wait.told = true;
                let thread = wait.thread;
                drop(waits);
                if let Some(device) = device.upgrade() {
                    device.explain(thread, self.patience);
                }
                waits = self.waits();
                continue;
            }
            let next = waits.now.iter().filter(|wait| !wait.told).map(|wait| wait.since + self.patience).min();
            waits = match next {
                Some(at) => {
                    let timeout = at.saturating_duration_since(now);
                    self.changed.wait_timeout(waits, timeout).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(waits).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}
