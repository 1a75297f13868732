//! Three streams pass a token around through buffers. Each waits for the one before it, and the host looks at the end.
//!
//! `cargo run --release -p fencepost-vulkan --example ring [-- --driver sim]`

mod common;

use fencepost_vulkan::{Buffer, Device, Error, Event, Placement, Stream};

const STREAMS: usize = 3;
const ROUNDS: u32 = 1000;
const TOKEN: u32 = 0x0F0E_2026;

fn main() -> std::process::ExitCode {
    common::end(common::open().and_then(|device| ring(&device)))
}

fn ring(device: &Device) -> Result<(), Error> {
    let streams: Vec<Stream> = (0..STREAMS).map(|_| device.stream(Placement::default())).collect::<Result<_, _>>()?;
    let events: Vec<Event> = (0..STREAMS).map(|_| device.event()).collect::<Result<_, _>>()?;
    // A buffer for each place, and one for what each place has seen.
    let places: Vec<Buffer> = (0..STREAMS).map(|_| device.buffer(4)).collect::<Result<_, _>>()?;
    let seen: Vec<Buffer> = (0..STREAMS).map(|_| device.buffer(u64::from(ROUNDS) * 4)).collect::<Result<_, _>>()?;
    places[STREAMS - 1].write(0, &TOKEN.to_le_bytes())?;

    for round in 0..ROUNDS {
        for at in 0..STREAMS {
            let before = (at + STREAMS - 1) % STREAMS;
            events[before].wait(&streams[at])?; // In the first round: never recorded, so nothing.
            streams[at].record(|commands| -> Result<(), Error> {
                commands.copy((&places[before], 0), (&places[at], 0), 4)?;
                commands.barrier();
                commands.copy((&places[at], 0), (&seen[at], u64::from(round) * 4), 4)?;
                // Taken away, so that a stream that comes too early or too late finds nothing.
                commands.fill(&places[before], 0, 4, 0)
            })??;
            events[at].record(&streams[at])?;
        }
        if round % 100 == 99 {
            events[STREAMS - 1].synchronize()?;
            let mut bytes = [0; 4];
            places[STREAMS - 1].read(0, &mut bytes)?;
            println!("after {} rounds the token is {:#010x}", round + 1, u32::from_le_bytes(bytes));
        }
    }
    for (at, seen) in seen.iter().enumerate() {
        let right = seen.words()?.iter().filter(|word| **word == TOKEN).count();
        println!("stream {at} had the token in {right} of {ROUNDS} rounds");
    }
    Ok(())
}
