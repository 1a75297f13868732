//! A transfer stream uploads, a compute stream uses; staging memory goes when the device has read it.
//!
//! `cargo run --release -p fencepost-vulkan --example upload [-- --driver sim]`

mod common;

use fencepost_vulkan::ash::vk;
use fencepost_vulkan::{Buffer, Device, DropQueue, Error, Fence, FlushPolicy, Placement};

const CHUNKS: u32 = 64;
const CHUNK_BYTES: u64 = 4096;

fn main() -> std::process::ExitCode {
    common::end(common::open().and_then(|device| upload(&device)))
}

fn upload(device: &Device) -> Result<(), Error> {
    let transfer = device.stream(Placement::Any(vk::QueueFlags::TRANSFER))?;
    let compute = device.stream(Placement::Any(vk::QueueFlags::COMPUTE))?;
    let data = device.buffer(CHUNK_BYTES)?;
    let result = device.buffer(CHUNK_BYTES * u64::from(CHUNKS))?;
    let staging = DropQueue::<Buffer>::new(device, FlushPolicy { count_max: 16, ..FlushPolicy::default() });
    let used = device.event()?;
    let mut held_max = 0;

    for chunk in 0..CHUNKS {
        let upload = device.buffer(CHUNK_BYTES)?;
        upload.write(0, &(chunk + 1).to_le_bytes().repeat(CHUNK_BYTES as usize / 4))?;
        used.wait(&transfer)?; // The compute stream still reads the chunk before.
        transfer.record(|commands| commands.copy((&upload, 0), (&data, 0), CHUNK_BYTES))??;
        staging.push(upload, CHUNK_BYTES, &[&transfer]).map_err(|(_, error)| error)?;

        Fence::new(&transfer).wait_async(&compute)?;
        let to = u64::from(chunk) * CHUNK_BYTES;
        compute.record(|commands| commands.copy((&data, 0), (&result, to), CHUNK_BYTES))??;
        used.record(&compute)?;
        held_max = held_max.max(staging.held().0);
    }
    Fence::new(&compute).wait_sync()?;
    transfer.synchronize()?;

    let words = result.words()?;
    let chunks = words.chunks(CHUNK_BYTES as usize / 4).zip(1..);
    println!("{} of {CHUNKS} chunks arrived", chunks.filter(|(words, n)| words.iter().all(|w| w == n)).count());
    println!("{} staging buffers are left", staging.held().0);
    eprintln!("{held_max} staging buffers were held at once");
    Ok(())
}
