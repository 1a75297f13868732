//! A device of the application, and the judge of its calls.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ash::vk;
use fencepost::judge::Call;

use crate::chain::Instance;
use crate::next::Next;
use crate::session::Session;
use crate::watchdog::Watchdog;

/// A device of the application.
pub struct Device {
    instance: Arc<Instance>,
    pub get_device_proc_addr: vk::PFN_vkGetDeviceProcAddr,
    pub next: Next,
    /// `false` once something in here went wrong: from then on calls only pass through.
    judged: AtomicBool,
    session: Mutex<Session>,
    watchdog: Option<Arc<Watchdog>>,
}

impl Device {
    pub fn new(instance: Arc<Instance>, get_device_proc_addr: vk::PFN_vkGetDeviceProcAddr, next: Next) -> Device {
        let watchdog = instance.settings.watchdog.map(|patience| Arc::new(Watchdog::new(patience)));
        let (judged, session) = (AtomicBool::new(true), Mutex::default());
        let device = Device { instance, get_device_proc_addr, next, judged, session, watchdog };
        device.judge(|session| session.begin(device.instance.settings.trace.as_deref()));
        device
    }

    /// Has a call judged, and reports what is wrong when the lock is released. Whatever happens here stays here.
    pub fn judge(&self, call: impl FnOnce(&mut Session)) {
        if !self.judged.load(Ordering::Relaxed) {
            return;
        }
        let judged = catch_unwind(AssertUnwindSafe(|| {
            let Ok(mut session) = self.session.lock() else { return };
            call(&mut session);
            let (reports, fault) = (session.reports(), session.fault());
            drop(session);
            fault.iter().for_each(|fault| self.instance.warn("trace", fault));
            reports.iter().for_each(|report| self.instance.report(report));
        }));
        if judged.is_err() && self.judged.swap(false, Ordering::Relaxed) {
            self.instance.warn("layer", "a fault of this layer's own: the device is no longer judged");
        }
    }

    /// A call that may block: judged before, watched, and judged by what it returns.
    pub fn blocking(
        self: &Arc<Self>,
        name: &'static str,
        call: impl FnOnce(&mut Session),
        driver: impl FnOnce() -> vk::Result,
    ) -> vk::Result {
        let mut thread = None;
        self.judge(|session| {
            call(session);
            thread = Some(session.thread());
        });
        let watched = self.watchdog.as_ref().zip(thread);
        if let Some((watchdog, thread)) = watched {
            watchdog.begin(self, thread);
        }
        let result = driver();
        if let Some((watchdog, thread)) = watched {
            watchdog.end(thread);
        }
        self.judge(|session| session.returned(name, result));
        result
    }

    /// The result of a call that was judged before the driver got it.
    pub fn answered(&self, call: &'static str, result: vk::Result) -> vk::Result {
        if result == vk::Result::ERROR_DEVICE_LOST {
            self.judge(|session| session.returned(call, result));
        }
        result
    }

    /// Says what a thread waits for that has waited too long.
    pub fn explain(&self, thread: u32, patience: Duration) {
        let mut text = String::new();
        self.judge(|session| text = session.stuck(thread));
        let text = if text.is_empty() { "what it waits for is not known" } else { &text };
        self.instance.warn("watchdog", &format!("a host wait of thread {thread} has lasted {patience:?}: {text}"));
    }

    /// Nothing comes after this.
    pub fn close(&self) {
        self.judge(|session| session.call("vkDestroyDevice", &Call::DestroyDevice));
        self.watchdog.iter().for_each(|watchdog| watchdog.stop());
    }
}
