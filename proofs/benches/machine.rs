//! What a call of the machine costs, and that it does not grow with what else lives.
//!
//! `cargo bench -p fencepost-proofs`: one round is a recording on one stream, a wait of another stream on the same
//! queue, both submitted, both reported reached. Compare the lines of one run with each other.

use divan::Bencher;
use divan::counter::ItemsCount;
use fencepost::{Error, EventId, Machine, Policy, Reply, Step, StreamId};

fn main() {
    divan::main();
}

fn drive<T>(machine: &mut Machine, mut call: impl FnMut(&mut Machine) -> Result<Step<T>, Error>) -> Result<T, Error> {
    loop {
        match call(machine)? {
            Step::Done(answer) => return Ok(answer),
            Step::First(effect) => machine.reply(effect, Reply::Done)?,
        }
    }
}

/// A machine with streams on one queue and as many events, each recorded once and outstanding.
fn populated(streams: usize, events: usize) -> Result<(Machine, Vec<StreamId>, Vec<EventId>), Error> {
    let mut machine = Machine::new(Policy { events: true });
    let streams: Vec<StreamId> =
        (0..streams).map(|_| drive(&mut machine, |m| m.create_stream(0))).collect::<Result<_, _>>()?;
    let events: Vec<EventId> = (0..events).map(|_| machine.create_event()).collect();
    for (event, stream) in events.iter().zip(streams.iter().skip(2).cycle()) {
        drive(&mut machine, |m| m.record(*event, *stream))?;
        drive(&mut machine, |m| m.flush(*stream))?;
    }
    Ok((machine, streams, events))
}

fn round(machine: &mut Machine, [from, to]: [StreamId; 2], event: EventId) -> Result<(), Error> {
    drive(machine, |m| m.record(event, from))?;
    drive(machine, |m| m.work(from))?;
    drive(machine, |m| m.wait(to, event))?;
    for stream in [from, to] {
        drive(machine, |m| m.flush(stream))?;
        let newest = machine.newest(stream)?;
        drive(machine, |m| m.reached(stream, newest.value))?;
    }
    Ok(())
}

#[divan::bench(args = [3, 100, 10_000])]
fn streams(bencher: Bencher, streams: usize) {
    let (mut machine, all, _) = populated(streams, 0).expect("nothing is refused here");
    let event = machine.create_event();
    bencher.counter(ItemsCount::new(7usize)).bench_local(move || round(&mut machine, [all[0], all[1]], event));
}

#[divan::bench(args = [1, 1_000, 100_000])]
fn events(bencher: Bencher, events: usize) {
    let (mut machine, all, _outstanding) = populated(8, events).expect("nothing is refused here");
    let event = machine.create_event();
    bencher.counter(ItemsCount::new(7usize)).bench_local(move || round(&mut machine, [all[0], all[1]], event));
}

#[divan::bench(args = [3, 30])]
fn clone_for_the_search(bencher: Bencher, events: usize) {
    let (machine, _, _) = populated(4, events).expect("nothing is refused here");
    let mut scratch = machine.clone();
    bencher.bench_local(move || scratch.clone_from(&machine));
}
