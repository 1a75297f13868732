//! Locks, threads and clocks: those of `std`, or with `--cfg shuttle` those of shuttle, which draws every switch between
//! threads from a seed (`tests/tests/concurrency.rs`). `Arc` is `std`'s in both.

#[cfg(not(shuttle))]
mod real {
    use std::sync::PoisonError;
    use std::time::Duration;

    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic, mpsc};
    pub(crate) use std::thread::{Builder, sleep};
    pub(crate) use std::thread_local;
    pub(crate) use std::time::Instant;

    /// Waits to be notified, or for a time.
    pub(crate) fn wait_timeout<'a, T>(
        condvar: &Condvar,
        _mutex: &'a Mutex<T>,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> MutexGuard<'a, T> {
        condvar.wait_timeout(guard, timeout).unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(shuttle)]
mod real {
    use std::cell::Cell;
    use std::sync::PoisonError;
    use std::time::Duration;

    pub(crate) use shuttle::hint::spin_loop;
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, atomic, mpsc};
    pub(crate) use shuttle::thread::Builder;
    pub(crate) use shuttle::thread_local;

    /// No clock reaches it.
    const FOR_EVER: Duration = Duration::from_secs(1 << 32);

    thread_local! {
        /// Time as the thread has seen it pass. No two threads compare theirs.
        static CLOCK: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    fn pass(time: Duration) -> Duration {
        CLOCK.with(|clock| {
            clock.set(clock.get() + time);
            clock.get()
        })
    }

    /// A look at the clock takes time too: else a loop that spins for a while would not end.
    #[derive(Clone, Copy)]
    pub(crate) struct Instant(Duration);

    impl Instant {
        pub(crate) fn now() -> Instant {
            Instant(pass(Duration::from_micros(1)))
        }

        pub(crate) fn elapsed(self) -> Duration {
            Instant::now().saturating_duration_since(self)
        }

        pub(crate) fn checked_add(self, time: Duration) -> Option<Instant> {
            self.0.checked_add(time).map(Instant)
        }

        pub(crate) fn saturating_duration_since(self, earlier: Instant) -> Duration {
            self.0.saturating_sub(earlier.0)
        }
    }

    pub(crate) fn sleep(time: Duration) {
        pass(time);
        shuttle::thread::yield_now();
    }

    /// Time may run out at any moment: the scheduler says when the thread goes on.
    pub(crate) fn wait_timeout<'a, T>(
        condvar: &Condvar,
        mutex: &'a Mutex<T>,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> MutexGuard<'a, T> {
        if timeout > FOR_EVER {
            return condvar.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        drop(guard);
        sleep(timeout);
        super::lock(mutex)
    }
}

pub(crate) use self::real::*;

/// Locks, whatever a panicking thread left.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
