//! Waits across devices go through the host.
//!
//! To the waiting device's machine a relay is one more stream, on a queue that is the host: each batch stands for a point
//! of the other device, and a thread signals its value when that point has passed. So nobody but that thread blocks.

use std::sync::{Arc, Weak};

use fencepost::{EventId, Point, Query, QueueId, StreamId};

use crate::driver::{ASKED, Driver};
use crate::error::Error;
use crate::runtime::{Link, Locked, Runtime, surely};
use crate::sync::Builder;
use crate::sync::mpsc::{Receiver, Sender, channel};

/// The relay from one other device. Its thread ends when it is dropped and every job is done.
pub(crate) struct Relay {
    stream: StreamId,
    jobs: Sender<Job>,
    /// Dead when the other device is gone.
    source: Weak<()>,
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
        end_unused(&mut locked)?;
        let relay = Relay::start(&mut locked, target, source)?;
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
    let submitted = locked.ask(|m| m.query(event)).and_then(|query| match query {
        Query::Done => Ok(None),
        Query::Pending(point) => Ok(Some(point)),
        Query::Open(point) => locked.drive(|m| m.flush(point.stream)).map(|()| Some(point)),
    });
    let point = match submitted {
        Ok(Some(point)) => point,
        Err(Error::Lost(_)) | Ok(None) => return Ok(None), // Nothing is left to wait for.
        Err(error) => return Err(error),
    };
    Ok(locked.machine.timeline(point.stream).map(|timeline| (timeline, point.value)))
}

/// Relays from devices that are gone make room.
fn end_unused(locked: &mut Locked) -> Result<(), Error> {
    let is_unused = |(number, relay): (&u64, &Relay)| (relay.source.strong_count() == 0).then_some(*number);
    let unused: Vec<u64> = locked.relays.iter().filter_map(is_unused).collect();
    for number in unused {
        let stream = locked.relays[&number].stream;
        locked.drive(|m| m.destroy_stream(stream))?;
        locked.relays.remove(&number);
    }
    Ok(())
}

impl Relay {
    fn start(locked: &mut Locked, target: &Runtime, source: &Runtime) -> Result<Relay, Error> {
        let driver = target.link.driver.clone();
        let host = driver.queues().len() as QueueId;
        let stream = locked.drive(|m| m.create_stream(host))?;
        locked.disown(stream);
        let timeline = locked.machine.timeline(stream).expect("the stream was just made");
        let (jobs, received) = channel();
        let thread = Builder::new().name("fencepost relay".into());
        match thread.spawn(move || run(&*driver, timeline, &received)) {
            Ok(_) => Ok(Relay { stream, jobs, source: Arc::downgrade(&source.alive) }),
            Err(error) => {
                locked.drive(|m| m.destroy_stream(stream))?;
                Err(Error::NoThread(error.to_string()))
            }
        }
    }
}

fn run(driver: &dyn Driver, timeline: u32, jobs: &Receiver<Job>) {
    for Job { source, until: (from, needed), value } in jobs {
        if let Err(error) = surely(|| source.wait_for(from, needed, None)) {
            // Nothing is left to be ordered after, and this device goes on.
            tracing::error!(%error, "a wait across devices ends with the other device");
        }
        if let Err(error) = surely(|| driver.signal(ASKED, timeline, value)) {
            tracing::error!(%error, "a wait across devices cannot be passed on");
        }
    }
}
