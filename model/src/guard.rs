//! The guards of the machine: each is one thing it does for the sake of one rule.
//!
//! With the feature `unguarded` a test can build a machine without one of them and watch which rule
//! breaks; without the feature every guard is a constant `true`.

macro_rules! guards {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// One thing the machine does for the sake of a rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Guard {
            $($(#[$doc])* $name,)*
        }

        impl Guard {
            /// Every guard.
            pub const ALL: &'static [Guard] = &[$(Guard::$name,)*];
        }
    };
}

guards! {
    /// A superseded slot is Pending while an open batch names it (`reuse_while_waited`).
    OpenBatchesHoldSlots,
    /// A superseded slot is free only when its whole frontier has passed (`reuse_while_waited`).
    FrontierHoldsSlots,
    /// A wait adds the waiting batch to the slot's frontier (`reuse_while_waited`).
    WaitsJoinFrontier,
    /// Destroying an event supersedes its slot; it does not free it (`reuse_while_waited`).
    DestroyQuarantines,
    /// A batch that holds only waits is submitted like any other (`lost_wait`).
    WaitsAloneAreSubmitted,
    /// A wait covers a stream's transfer companion too (`lost_wait`).
    WaitCoversCompanion,
    /// A recording covers a stream's transfer companion too (`early_completion`).
    RecordCoversCompanion,
    /// A wait whose slot or buffer was refused still orders, by other means (`refusal`).
    FallbackKeepsOrder,
    /// A recording in another stream's open batch has that batch submitted first (`progress`).
    FlushBeforeWait,
    /// A wait on another queue's point goes into a batch that has no commands yet: without, commands
    /// issued before the wait are held back by it. Alone it is about speed; with `FlushBeforeWait` gone too,
    /// two open batches wait for each other (`progress`).
    SplitBeforeWait,
    /// A slot is waited on only from the queue that sets it (`wrong_queue`).
    SlotsStayOnQueue,
    /// A buffer is leased again only when the point of its batch has passed (`batch_reuse`).
    PointHoldsBuffers,
    /// A refused submit consumes no value (`progress`).
    RefusedSubmitKeepsValue,
    /// A refused submit leaves the batch open, with all it holds (`refusal`).
    RefusedSubmitKeepsBatch,
    /// The highest value reported wins, not the last (`timeline_order`).
    ReachedNeverGoesBack,
    /// A counter beyond the newest promise is a lost device, not progress (`loss`).
    ReachedWithinPromise,
    /// A waiter is registered only if its point has not passed, in one step (`progress`).
    RegisterChecks,
    /// A waiter that is woken is forgotten (`loss`).
    WokenOnce,
    /// Loss wakes every waiter (`progress`).
    LossWakes,
    /// A wait that timed out is not done (`early_completion`).
    TimeoutIsNotDone,
    /// A point is done when it is reached, not when its batch is submitted (`early_completion`).
    SubmittedIsNotDone,
    /// A point that passes looks at every slot parked on it (`bounded`).
    PointTriggersSlots,
    /// An event never recorded orders nothing and succeeds (`unrecorded_wait`).
    UnrecordedIsNoOp,
    /// A destroyed stream submits what it holds, and its points stay known until they pass (`early_completion`).
    ClosedStreamDrains,
}

/// The guards that a machine has: all of them, unless a test takes some away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guards {
    #[cfg(feature = "unguarded")]
    without: u64,
}

impl Guards {
    pub(crate) const ALL: Guards = Guards {
        #[cfg(feature = "unguarded")]
        without: 0,
    };

    #[cfg(feature = "unguarded")]
    pub(crate) fn without(guards: &[Guard]) -> Guards {
        Guards { without: guards.iter().fold(0, |mask, g| mask | 1 << *g as u64) }
    }

    #[cfg(feature = "unguarded")]
    pub(crate) const fn keep(self, guard: Guard) -> bool {
        self.without & 1 << guard as u64 == 0
    }

    #[cfg(not(feature = "unguarded"))]
    pub(crate) const fn keep(self, _guard: Guard) -> bool {
        true
    }

    /// Whether none is missing.
    pub(crate) const fn are_complete(self) -> bool {
        #[cfg(feature = "unguarded")]
        return self.without == 0;
        #[cfg(not(feature = "unguarded"))]
        true
    }
}

impl Guard {
    /// The guard's name in reports.
    pub fn name(self) -> alloc::string::String {
        let mut name = alloc::string::String::new();
        for c in alloc::format!("{self:?}").chars() {
            if c.is_ascii_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.push(c.to_ascii_lowercase());
        }
        name
    }
}
