//! What every row of the history table is written against.

use std::fmt::Debug;

use fencepost::{BufferId, Canon, Gpu, QueueId, Work};

use crate::host::{Host, NOBODY, Target, Until};
use crate::setup::Setup;

/// Which of a stream's queues a work goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    Compute,
    /// An asynchronous copy, on the transfer queue where the stream has one.
    Copy,
}

/// The order in which the client's streams and events are written.
#[derive(Clone, Debug)]
pub struct Order {
    pub streams: Vec<usize>,
    pub events: Vec<usize>,
}

/// The answer to a blocking call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocking {
    Done,
    Block {
        until: Until,
        token: u64,
    },
    /// Not done, and nobody is registered yet: only where a mutant splits the two.
    Checked {
        until: Until,
    },
    Failed,
}

/// The counts that `bounded` is about; see [`fencepost::Occurrence::Slots`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotCounts {
    pub live: usize,
    pub allowed: usize,
    pub stranded: usize,
}

/// What an observer is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The start of a run.
    Start,
    /// The client is told that an event's generation is done.
    Done(usize),
    /// The end of a step: what the client asked for is compared too.
    Step,
}

/// An event protocol. Streams, events and threads are numbered; a method that answers `false`
/// refused the call and changed nothing.
pub trait Protocol: Clone + Debug + Send + Sync + 'static {
    fn new(setup: &Setup, gpu: &mut Gpu) -> Self;

    /// Work is issued; `None` for work that nobody watches, of which only the protocol takes note.
    fn work(&mut self, host: &mut Host, stream: usize, part: Part, work: Option<Work>) -> bool;
    fn record(&mut self, host: &mut Host, event: usize, stream: usize) -> bool;
    fn wait(&mut self, host: &mut Host, stream: usize, event: usize) -> bool;
    fn flush(&mut self, host: &mut Host, stream: usize) -> bool;
    fn synchronize(&mut self, host: &mut Host, target: Target) -> Blocking;
    /// The driver let a blocked thread go: what the protocol does then. It wakes the thread by its token.
    fn returned(&mut self, host: &mut Host, target: Target, until: Until, token: u64);
    fn destroy(&mut self, host: &mut Host, event: usize);

    /// Whether a query says that the event's generation is done; `None` where there is no query.
    fn query(&self, _gpu: &Gpu, _event: usize) -> Option<bool> {
        None
    }
    /// Where steps are compared with the relation: says what the device is not told.
    fn observe(&self, _host: &mut Host, _seen: Seen) {}
    /// Whether the host can learn something new about a stream.
    fn can_poll(&self, _gpu: &Gpu, _stream: usize) -> bool {
        false
    }
    fn poll(&mut self, _host: &mut Host, _stream: usize) {}
    /// Destroys a stream and makes another in its place; `false` if it was refused.
    fn renew_stream(&mut self, _host: &mut Host, _stream: usize) -> bool {
        false
    }
    /// A host wait ran out of time; `true` if the protocol takes that for done.
    fn timed_out(&mut self, _host: &mut Host, _token: u64) -> bool {
        false
    }
    /// Registers what a split check left unregistered (a mutant's second half).
    fn register(&mut self, _target: Target) -> u64 {
        NOBODY
    }
    /// How many free command buffers the next call on a stream might get that are not as good as new.
    fn leases(&self, _gpu: &Gpu, _stream: usize) -> u8 {
        0
    }
    /// Batches in flight on the busiest stream, as the protocol counts them.
    fn in_flight(&self, gpu: &Gpu) -> usize;
    /// For `bounded`, where the protocol is held to it; `quiet` when the device is idle and the host knows it.
    fn slots(&self, _gpu: &Gpu, _quiet: bool) -> Option<SlotCounts> {
        None
    }
    /// A thread blocks: whether it keeps the lock that other calls need.
    fn locks_while_blocked(&self) -> bool {
        false
    }

    /// Ten bits about a stream, and five about an event, that do not depend on names: most states are put in
    /// order by them alone.
    fn stream_signature(&self, _gpu: &Gpu, _stream: usize) -> u16 {
        0
    }
    fn event_signature(&self, _event: usize) -> u8 {
        0
    }
    /// Names the values of semaphores that the protocol may still compare with something.
    fn name_values(&self, gpu: &Gpu, c: &mut Canon);
    /// Gives streams, events and semaphores their names.
    fn assign(&self, gpu: &Gpu, order: &Order, c: &mut Canon);
    /// Writes the state, before the device's.
    fn write(&self, gpu: &Gpu, order: &Order, c: &mut Canon);
    /// Writes what it knows of a buffer that the form names, or that is open.
    fn write_buffer(&self, _buffer: BufferId, _c: &mut Canon) {}
    /// Writes what is left once the device has named what it holds.
    fn write_rest(&self, _c: &mut Canon) {}
    /// Writes what a blocked thread waits for, in at most five bytes.
    fn write_until(&self, until: Until, token: u64, c: &mut Canon);
}

/// The queues of a stream, in the order of their names.
pub fn queues_in_order<'a>(setup: &'a Setup, order: &'a Order) -> impl Iterator<Item = QueueId> + 'a {
    order.streams.iter().flat_map(|s| {
        let lanes = &setup.topology.streams()[*s];
        [Some(lanes.queue), lanes.transfer].into_iter().flatten()
    })
}
