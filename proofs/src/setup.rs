//! A configuration: which protocol, on what, with which bounds and which calls.

use std::fmt;

use fencepost::{Family, Guard, QueueId};

use crate::mutants::Mutant;

/// The queues that one stream of the client works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamQueues {
    pub queue: QueueId,
    pub transfer: Option<QueueId>,
}

const fn on(queue: QueueId) -> StreamQueues {
    StreamQueues { queue, transfer: None }
}

/// Up to four streams spread in turn over one to four queues.
const SPREAD: [[StreamQueues; 4]; 4] = [
    [on(0), on(0), on(0), on(0)],
    [on(0), on(1), on(0), on(1)],
    [on(0), on(1), on(2), on(0)],
    [on(0), on(1), on(2), on(3)],
];

const fn with_transfer(queue: QueueId, transfer: QueueId) -> StreamQueues {
    StreamQueues { queue, transfer: Some(transfer) }
}

/// More than can be searched: streams that share queues, of which some copy on a queue of their own or of others.
const WIDE: [StreamQueues; 8] =
    [on(0), on(0), with_transfer(0, 3), on(1), with_transfer(1, 3), on(2), with_transfer(2, 1), on(3)];

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Topology {
    OneStream,
    TwoStreamsOneQueue,
    TwoQueues,
    ComputeTransfer,
    TwoThreads,
    /// Eight streams, three of them with a companion, on four queues and with three threads: for random programs.
    Wide,
    /// Streams spread over queues in turn, for sizes given by hand.
    Custom {
        streams: u8,
        queues: u8,
        threads: u8,
    },
}

impl Topology {
    pub const TABLE: [Topology; 5] = [
        Topology::OneStream,
        Topology::TwoStreamsOneQueue,
        Topology::TwoQueues,
        Topology::ComputeTransfer,
        Topology::TwoThreads,
    ];

    pub fn name(self) -> String {
        match self {
            Topology::OneStream => "one-stream".into(),
            Topology::TwoStreamsOneQueue => "two-streams-one-queue".into(),
            Topology::TwoQueues => "two-queues".into(),
            Topology::ComputeTransfer => "compute-transfer".into(),
            Topology::TwoThreads => "two-threads".into(),
            Topology::Wide => "wide".into(),
            Topology::Custom { streams, queues, threads } => format!("{streams}s-{queues}q-{threads}t"),
        }
    }

    pub fn streams(self) -> &'static [StreamQueues] {
        match self {
            Topology::OneStream | Topology::TwoThreads => &SPREAD[0][..1],
            Topology::TwoStreamsOneQueue => &SPREAD[0][..2],
            Topology::TwoQueues => &SPREAD[1][..2],
            Topology::ComputeTransfer => &[StreamQueues { queue: 0, transfer: Some(1) }],
            Topology::Wide => &WIDE,
            Topology::Custom { streams, queues, .. } => &SPREAD[queues as usize - 1][..streams as usize],
        }
    }

    pub fn queue_count(self) -> usize {
        match self {
            Topology::TwoQueues | Topology::ComputeTransfer => 2,
            Topology::Wide => 4,
            Topology::Custom { queues, .. } => queues.into(),
            _ => 1,
        }
    }

    pub fn thread_count(self) -> usize {
        match self {
            Topology::TwoThreads => 2,
            Topology::Wide => 3,
            Topology::Custom { threads, .. } => threads.into(),
            _ => 1,
        }
    }
}

/// What stays bounded while the number of calls does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub events: usize,
    /// Commands in one open command buffer.
    pub open: usize,
    /// Batches of one stream that the host does not know to be done.
    pub in_flight: usize,
    /// Commands in all, in buffers and queues, semaphore waits among them.
    pub live: usize,
    /// Device events in all; only protocols that never give one back need it.
    pub slots: usize,
}

/// Calls and mishaps beyond work, record, wait and flush.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Host threads block in `synchronize`. Without, and with a query, it is an invariant of every state.
    pub synchronize: bool,
    pub synchronize_stream: bool,
    pub destroy: bool,
    pub renew_stream: bool,
    pub refuse: bool,
    pub lose: bool,
    pub time_out: bool,
}

/// What makes the space smaller. Each is argued where it is applied, and tested against the
/// space without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reductions {
    /// Steps that only enable others are taken at once (`fencepost::Gpu`).
    pub eager: bool,
    /// States that differ only in the client's names for streams and events are one (`canonical`).
    pub symmetry: bool,
    /// One work is tracked at a time, chosen as it is issued, with one dependent work (`world`).
    pub watch_one: bool,
    /// Superseded slots that no command names are left out. `bounded` then has nothing to say, and
    /// is checked where they are kept.
    pub drop_slots: bool,
}

impl Reductions {
    pub const ALL: Reductions = Reductions { eager: true, symmetry: true, watch_one: true, drop_slots: true };
    pub const NONE: Reductions = Reductions { eager: false, symmetry: false, watch_one: false, drop_slots: false };
}

/// A configuration of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    pub row: u8,
    pub family: Family,
    pub topology: Topology,
    pub bounds: Bounds,
    pub calls: Calls,
    pub reductions: Reductions,
    pub mutant: Option<Mutant>,
    /// A guard of the machine that is taken away.
    pub without: &'static [Guard],
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bounds { events, open, in_flight, live, slots } = self.bounds;
        write!(f, "row {} {}", self.row, self.topology.name())?;
        if self.family == Family::Cuda {
            write!(f, " (CUDA-like)")?;
        }
        write!(f, " e{events} o{open} b{in_flight} k{live}")?;
        if slots < usize::MAX {
            write!(f, " v{slots}")?;
        }
        let Calls { synchronize, synchronize_stream, destroy, renew_stream, refuse, lose, time_out } = self.calls;
        for (on, name) in [
            (synchronize, "synchronize"),
            (synchronize_stream, "synchronize-stream"),
            (destroy, "destroy"),
            (renew_stream, "renew-stream"),
            (refuse, "refuse"),
            (lose, "lose"),
            (time_out, "time-out"),
        ] {
            if on {
                write!(f, " +{name}")?;
            }
        }
        for guard in self.without {
            write!(f, " without {}", guard.name())?;
        }
        if let Some(mutant) = self.mutant {
            write!(f, " mutant {mutant:?}")?;
        }
        Ok(())
    }
}
