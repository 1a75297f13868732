//! What the runtime costs over the same thing written by hand on ash: medians and ratios of one run, on one device.
//!
//! `cargo bench -p fencepost-vulkan`, on the device that `FENCEPOST_DEVICE` names.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fencepost_vulkan::ash::{self, vk};
use fencepost_vulkan::{Adopted, AdoptedQueue, Buffer, Device, Event, Options, Placement, Policy, Stream};

const ROUNDS: usize = 2000;
const BYTES: u64 = 64;

fn main() {
    let hand = Hand::new();
    let device = |policy, spin| hand.lend(Options { policy, spin });
    let events = Policy { events: true };
    let spin = Duration::from_micros(200);
    let (with_events, without) = (device(events, spin), device(Policy { events: false }, spin));
    let sleeping = device(events, Duration::ZERO);
    println!("{}: {ROUNDS} rounds, medians; the last column is the ratio to the same by hand", with_events.name());

    let mut rows = Vec::new();
    let by_hand = median(|| hand.fill_and_wait(true));
    rows.push(("fill, submit, wait (spin): by hand", by_hand, by_hand));
    let mut lane = Lane::new(&with_events);
    rows.push(("  fencepost: fill, record, synchronize", median(|| lane.fill_and_wait()), by_hand));
    let mut lane = Lane::new(&without);
    rows.push(("  fencepost without VkEvents", median(|| lane.fill_and_wait()), by_hand));

    let by_hand = median(|| hand.fill_and_wait(false));
    rows.push(("the same, sleeping: by hand", by_hand, by_hand));
    let mut lane = Lane::new(&sleeping);
    rows.push(("  fencepost", median(|| lane.fill_and_wait()), by_hand));

    let by_hand = median(|| hand.two_batches());
    rows.push(("two batches in order, wait: by hand, one queue", by_hand, by_hand));
    for (name, device) in
        [("  fencepost: two streams, a wait between", &with_events), ("  fencepost without VkEvents", &without)]
    {
        let (mut from, mut to) = (Lane::new(device), Lane::new(device));
        rows.push((name, median(|| hand_over(&mut from, &mut to)), by_hand));
    }
    for (name, time, by_hand) in rows {
        println!(
            "{name:<48} {:>9.2} µs {:>6.2}",
            time.as_nanos() as f64 / 1e3,
            time.as_secs_f64() / by_hand.as_secs_f64()
        );
    }

    println!("host cost of a call, ns:");
    let lane = Lane::new(&with_events);
    let pending = with_events.event().unwrap();
    pending.record(&lane.stream).unwrap();
    lane.stream.synchronize().unwrap();
    let call = |name: &str, call: &dyn Fn()| {
        let start = Instant::now();
        (0..ROUNDS).for_each(|_| call());
        println!("  {name:<40} {:>7}", start.elapsed().as_nanos() / ROUNDS as u128);
    };
    call("query of what is known to be done", &|| assert!(pending.query().unwrap()));
    call("synchronize of what is known to be done", &|| pending.synchronize().unwrap());
    call("wait for what is known to be done", &|| pending.wait(&lane.stream).unwrap());
    call("make and drop an event", &|| drop(with_events.event().unwrap()));
}

fn median(mut round: impl FnMut()) -> Duration {
    (0..ROUNDS / 10).for_each(|_| round());
    let time = |_| {
        let start = Instant::now();
        round();
        start.elapsed()
    };
    let mut times: Vec<Duration> = (0..ROUNDS).map(time).collect();
    times.sort_unstable();
    times[ROUNDS / 2]
}

/// A stream with what it works on.
struct Lane {
    stream: Stream,
    event: Event,
    buffer: Buffer,
}

impl Lane {
    fn new(device: &Device) -> Lane {
        Lane {
            stream: device.stream(Placement::Queue(0)).unwrap(),
            event: device.event().unwrap(),
            buffer: device.buffer(BYTES).unwrap(),
        }
    }

    fn fill(&mut self) {
        self.stream.record(|c| c.fill(&self.buffer, 0, BYTES, 1)).unwrap().unwrap();
    }

    fn fill_and_wait(&mut self) {
        self.fill();
        self.event.record(&self.stream).unwrap();
        self.event.synchronize().unwrap();
    }
}

fn hand_over(from: &mut Lane, to: &mut Lane) {
    from.fill();
    from.event.record(&from.stream).unwrap();
    from.event.wait(&to.stream).unwrap();
    to.fill_and_wait();
}

/// What a careful person writes for one queue: two command buffers, a timeline semaphore.
struct Hand {
    _entry: ash::Entry,
    instance: ash::Instance,
    physical_device: vk::PhysicalDevice,
    device: ash::Device,
    buffers: Vec<vk::CommandBuffer>,
    pool: vk::CommandPool,
    semaphore: vk::Semaphore,
    memory: (vk::Buffer, vk::DeviceMemory),
    value: std::cell::Cell<u64>,
}

impl Hand {
    fn new() -> Hand {
        // SAFETY: plain set-up, each call with what the one before made.
        unsafe {
            let entry = ash::Entry::load().unwrap();
            let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
            let info = vk::InstanceCreateInfo::default().application_info(&application);
            let instance = entry.create_instance(&info, None).unwrap();
            let physical_device = instance.enumerate_physical_devices().unwrap()[0];
            let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(0).queue_priorities(&[1.0])];
            let mut features = vk::PhysicalDeviceVulkan12Features::default().timeline_semaphore(true);
            let mut newer = vk::PhysicalDeviceVulkan13Features::default().synchronization2(true);
            let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
            let info = info.push_next(&mut features).push_next(&mut newer);
            let device = instance.create_device(physical_device, &info, None).unwrap();
            let info = vk::CommandPoolCreateInfo::default().flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER);
            let pool = device.create_command_pool(&info, None).unwrap();
            let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(2);
            let buffers = device.allocate_command_buffers(&info).unwrap();
            let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
            let semaphore = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
            let semaphore = device.create_semaphore(&semaphore, None).unwrap();
            let info = vk::BufferCreateInfo::default().size(BYTES).usage(vk::BufferUsageFlags::TRANSFER_DST);
            let buffer = device.create_buffer(&info, None).unwrap();
            let needs = device.get_buffer_memory_requirements(buffer);
            let types = instance.get_physical_device_memory_properties(physical_device);
            let shared = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_CACHED;
            let fits = |(at, kind): &(u32, &vk::MemoryType)| {
                needs.memory_type_bits >> at & 1 == 1 && kind.property_flags.contains(shared)
            };
            let kind = (0..).zip(types.memory_types_as_slice()).find(fits).map_or(0, |(at, _)| at);
            let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(kind);
            let memory = device.allocate_memory(&info, None).unwrap();
            device.bind_buffer_memory(buffer, memory, 0).unwrap();
            let (memory, value) = ((buffer, memory), std::cell::Cell::new(0));
            let _entry = entry;
            Hand { _entry, instance, physical_device, device, buffers, pool, semaphore, memory, value }
        }
    }

    fn lend(&self, options: Options) -> Device {
        let adopted = Adopted {
            instance: self.instance.clone(),
            physical_device: self.physical_device,
            device: self.device.clone(),
            queues: vec![AdoptedQueue { family: 0, index: 0, lock: Arc::new(Mutex::new(())) }],
            synchronization2: true,
            host_query_reset: false,
        };
        // SAFETY: it is as it says; there is one thread; `main` drops what it lends before it drops this.
        unsafe { Device::adopt(adopted, options) }.unwrap()
    }

    fn submit(&self, buffer: vk::CommandBuffer) -> u64 {
        let value = self.value.get() + 1;
        self.value.set(value);
        let once = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        let barrier = |to, access| {
            vk::MemoryBarrier2::default()
                .src_stage_mask(vk::PipelineStageFlags2::ALL_COMMANDS)
                .src_access_mask(vk::AccessFlags2::MEMORY_WRITE)
                .dst_stage_mask(to)
                .dst_access_mask(access)
        };
        let before = [barrier(vk::PipelineStageFlags2::ALL_COMMANDS, vk::AccessFlags2::MEMORY_WRITE)];
        let after = [barrier(vk::PipelineStageFlags2::HOST, vk::AccessFlags2::HOST_READ)];
        let (values, buffers, semaphores) = ([value], [buffer], [self.semaphore]);
        let mut timeline = vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
        let info = vk::SubmitInfo::default().command_buffers(&buffers).signal_semaphores(&semaphores);
        let info = [info.push_next(&mut timeline)];
        // SAFETY: the buffer's last batch has ended, and one thread submits.
        unsafe {
            self.device.begin_command_buffer(buffer, &once).unwrap();
            self.device.cmd_pipeline_barrier2(buffer, &vk::DependencyInfo::default().memory_barriers(&before));
            self.device.cmd_fill_buffer(buffer, self.memory.0, 0, BYTES, 1);
            self.device.cmd_pipeline_barrier2(buffer, &vk::DependencyInfo::default().memory_barriers(&after));
            self.device.end_command_buffer(buffer).unwrap();
            self.device.queue_submit(self.device.get_device_queue(0, 0), &info, vk::Fence::null()).unwrap();
        }
        value
    }

    fn wait(&self, value: u64, spins: bool) {
        let (semaphores, values) = ([self.semaphore], [value]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        // SAFETY: the semaphore lives.
        unsafe {
            while spins && self.device.get_semaphore_counter_value(self.semaphore).unwrap() < value {
                std::hint::spin_loop();
            }
            self.device.wait_semaphores(&info, u64::MAX).unwrap();
        }
    }

    fn fill_and_wait(&self, spins: bool) {
        self.wait(self.submit(self.buffers[0]), spins);
    }

    fn two_batches(&self) {
        self.submit(self.buffers[0]);
        self.wait(self.submit(self.buffers[1]), true);
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        // SAFETY: the devices that were lent are gone, and every batch was waited for.
        unsafe {
            self.device.destroy_buffer(self.memory.0, None);
            self.device.free_memory(self.memory.1, None);
            self.device.destroy_semaphore(self.semaphore, None);
            self.device.destroy_command_pool(self.pool, None);
            self.device.destroy_device(None);
            self.instance.destroy_instance(None);
        }
    }
}
