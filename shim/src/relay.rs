//! Waits across devices go through the host.
//!
//! To the waiting device's machine a relay is one more stream, on a queue that is the host: each batch stands for a point
//! of the other device, and a thread signals its value when that point has passed. So nobody but that thread blocks.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use fencepost::{EventId, Point, Query, QueueId, StreamId};

use crate::driver::Driver;
use crate::error::Error;
use crate::runtime::{Link, Locked, Runtime};

/// The relay from one other device.
pub(crate) struct Relay {
    stream: StreamId,
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
}

struct Job {
    source: Link,
    /// The other device's timeline and value.
    until: (u32, u64),
    value: u64,
}

/// Work issued on the stream from now on starts after the event of another device has passed.
pub(crate) fn wait(target: &Runtime, stream: StreamId, source: &Runtime, event: EventId) -> Result<(), Error> {
    let Some(until) = submitted_point(source, event)? else { return Ok(()) };
    let mut locked = target.lock()?;
    if !locked.relays.contains_key(&source.number) {
        let relay = Relay::start(&mut locked, target)?;
        locked.relays.insert(source.number, relay);
    }
    let relay = locked.relays[&source.number].stream;
    locked.drive(|m| m.work(relay))?;
    let relayed = locked.machine.create_event();
    let recorded = locked.drive(|m| m.record(relayed, relay)).and_then(|_| locked.drive(|m| m.flush(relay)));
    let waited = recorded.and_then(|()| {
        let Point { value, .. } = locked.ask(|m| m.newest(relay))?;
        let job = Job { source: source.link.clone(), until, value };
        locked.relays[&source.number].jobs.send(job).expect("the thread ends with the relay");
        locked.wait(stream, relayed)
    });
    locked.ask(|m| m.destroy_event(relayed))?;
    waited
}

/// The timeline and value of the event's recording, which is submitted; `None` if it has passed.
fn submitted_point(source: &Runtime, event: EventId) -> Result<Option<(u32, u64)>, Error> {
    let mut locked = source.lock()?;
    let point = match locked.ask(|m| m.query(event))? {
        Query::Done => return Ok(None),
        Query::Pending(point) => point,
        Query::Open(point) => {
            locked.drive(|m| m.flush(point.stream))?;
            point
        }
    };
    Ok(locked.machine.timeline(point.stream).map(|timeline| (timeline, point.value)))
}

impl Relay {
    fn start(locked: &mut Locked, target: &Runtime) -> Result<Relay, Error> {
        let driver = target.link.driver.clone();
        let host = driver.queues().len() as QueueId;
        let stream = locked.drive(|m| m.create_stream(host))?;
        locked.disown(stream);
        let timeline = locked.machine.timeline(stream).expect("the stream was just made");
        let (jobs, received) = channel();
        let thread = std::thread::spawn(move || run(&*driver, timeline, &received));
        Ok(Relay { stream, jobs, thread })
    }

    /// Passes on what is still to come, and ends.
    pub(crate) fn join(self) {
        drop(self.jobs);
        let _ = self.thread.join();
    }
}

fn run(driver: &dyn Driver, timeline: u32, jobs: &Receiver<Job>) {
    for Job { source, until: (from, needed), value } in jobs {
        if let Err(error) = source.wait_for(from, needed, None) {
            // Nothing is left to be ordered after, and this device goes on.
            tracing::error!(%error, "a wait across devices ends with the other device");
        }
        if let Err(error) = driver.signal(timeline, value) {
            tracing::error!(%error, "a wait across devices cannot be passed on");
        }
    }
}
