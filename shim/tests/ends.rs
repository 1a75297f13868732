//! How things end: devices, relays and values, while calls are refused, work is in flight, or another closure runs.

mod common;

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{DEVICE_LOST, OUT_OF_MEMORY, on_simulated, run, value};
use fencepost_vulkan::ash::{self, vk};
use fencepost_vulkan::{
    Adopted, AdoptedQueue, Buffer, Device, DropQueue, Error, Event, Fault, Faults, FlushPolicy, OpenOptions, Options,
    Placement, Simulated, Stream, Tracer, Vulkan,
};

fn simulated(seed: u64) -> (Device, Fault) {
    let driver = Faults::new(Simulated::new(seed));
    let fault = driver.switch();
    (Device::with_driver(driver, Options::default()), fault)
}

/// A stream with much work and an event behind it.
fn busy(device: &Device) -> (Stream, Event, Buffer) {
    let stream = device.stream(Placement::default()).unwrap();
    let (event, buffer) = (device.event().unwrap(), device.buffer(1 << 22).unwrap());
    let work = |c: &mut fencepost_vulkan::Commands| {
        for word in 1..=50 {
            c.barrier();
            c.fill(&buffer, 0, 1 << 22, word).unwrap();
        }
    };
    stream.record(work).unwrap();
    event.record(&stream).unwrap();
    stream.flush().unwrap();
    (stream, event, buffer)
}

// Devices ---------------------------------------------------------------------------------------------

#[test]
fn a_device_whose_looks_are_refused_ends_when_its_work_has() {
    for call in ["vkGetSemaphoreCounterValue", "vkWaitSemaphores"] {
        let Some((vulkan, messages)) = common::vulkan(true, true) else { return };
        let driver = Faults::new(vulkan);
        let fault = driver.switch();
        let device = Device::with_driver(driver, Options { spin: Duration::ZERO, ..Options::default() });
        drop(busy(&device));
        fault.next(call, OUT_OF_MEMORY);
        drop(device);
        assert_eq!(messages.heard(), Vec::<String>::new(), "{call}");
    }
}

#[test]
fn a_device_ends_inside_the_closure_of_another() {
    on_simulated(|b| {
        let other = Device::simulated(b.word().into(), Options::default());
        let (s, its) = (b.stream(), other.stream(Placement::default()).unwrap());
        let (out, word) = (b.buffer(), b.word());
        b.produce(&s, &out, word);
        let e = b.event();
        e.record(&s).unwrap();
        e.wait(&its).unwrap(); // A thread passes it on.
        its.record(|_| ()).unwrap();
        s.record(move |_| drop((its, other))).unwrap();
        s.synchronize().unwrap();
        assert_eq!(value(&out), word);
    });
}

#[test]
fn a_device_ends_though_a_drop_queue_holds_what_is_its_own() {
    struct Ended(Arc<AtomicUsize>);
    impl Write for Ended {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    for seed in 0..20 {
        let ended = Arc::new(AtomicUsize::new(0));
        let device = Device::with_driver(Tracer::new(Simulated::new(seed), Ended(ended.clone())), Options::default());
        let (stream, event, buffer) = busy(&device);
        let drops = DropQueue::<Box<dyn std::any::Any + Send>>::new(&device, FlushPolicy::default());
        let values: [Box<dyn std::any::Any + Send>; 3] = [Box::new(buffer), Box::new(event), Box::new(device.clone())];
        for value in values {
            drops.push(value, 1, &[&stream]).map_err(|(_, error)| error).unwrap();
        }
        stream.record(|_| ()).unwrap();
        drop((stream, drops, device));
        assert_eq!(ended.load(Ordering::SeqCst), 1, "the driver was never dropped");
    }
}

/// A buffer that cannot be ended is the end of the device, and the work that it has goes on until then.
#[test]
fn a_buffer_that_cannot_be_ended_lets_go_of_nothing_in_use() {
    static REAL: Mutex<Option<vk::PFN_vkEndCommandBuffer>> = Mutex::new(None);
    static FAILS: AtomicBool = AtomicBool::new(false);
    unsafe extern "system" fn end(buffer: vk::CommandBuffer) -> vk::Result {
        if FAILS.swap(false, Ordering::SeqCst) {
            return vk::Result::ERROR_OUT_OF_HOST_MEMORY;
        }
        // SAFETY: the driver's own function.
        unsafe { (REAL.lock().unwrap().unwrap())(buffer) }
    }
    if common::vulkan(true, true).is_none() {
        return;
    }
    // SAFETY: plain set-up, each call with what the one before made; every handle outlives the device made of it.
    unsafe {
        let entry = ash::Entry::load().unwrap();
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_2);
        let info = vk::InstanceCreateInfo::default().application_info(&application);
        let instance = entry.create_instance(&info, None).unwrap();
        let physical_device = instance.enumerate_physical_devices().unwrap()[0];
        let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
        let mut features = vk::PhysicalDeviceVulkan12Features::default().timeline_semaphore(true);
        let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).push_next(&mut features);
        let device = instance.create_device(physical_device, &info, None).unwrap();
        *REAL.lock().unwrap() = Some(device.fp_v1_0().end_command_buffer);
        let load = |name: &std::ffi::CStr| {
            let real = instance.get_device_proc_addr(device.handle(), name.as_ptr());
            let real = real.map_or(std::ptr::null(), |function| function as *const std::ffi::c_void);
            if name == c"vkEndCommandBuffer" { end as *const std::ffi::c_void } else { real }
        };
        let adopted = Adopted {
            instance: instance.clone(),
            physical_device,
            device: ash::Device::load_with(load, device.handle()),
            queues: vec![AdoptedQueue { family: 0, index: 0, lock: Arc::new(Mutex::new(())) }],
            synchronization2: false,
            host_query_reset: false,
        };
        let lent = Device::adopt(adopted, Options::default()).unwrap();
        let (stream, event, buffer) = busy(&lent);
        let other = lent.stream(Placement::default()).unwrap();
        other.record(|_| ()).unwrap();
        let kept = lent.buffer(16).unwrap();
        drop(buffer);
        FAILS.store(true, Ordering::SeqCst);
        assert!(matches!(other.flush(), Err(Error::Lost(e)) if e.call == "vkEndCommandBuffer"));
        assert!(matches!(event.synchronize(), Err(Error::Lost(_))));
        drop((stream, event, other, kept, lent));
        device.destroy_device(None);
        instance.destroy_instance(None);
    }
}

// Relays ----------------------------------------------------------------------------------------------

#[test]
fn a_relay_that_is_refused_neither_lets_go_early_nor_hangs() {
    for seed in 0..40 {
        for call in ["vkGetSemaphoreCounterValue", "vkWaitSemaphores", "vkSignalSemaphore"] {
            let ((source, its_fault), (target, fault)) = (simulated(seed), simulated(seed + 100));
            let (_stream, event, buffer) = busy(&source);
            let waiting = target.stream(Placement::default()).unwrap();
            [its_fault, fault].iter().for_each(|fault| fault.next(call, OUT_OF_MEMORY));
            event.wait(&waiting).unwrap();
            waiting.record(|_| ()).unwrap();
            while !matches!(waiting.synchronize(), Ok(())) {} // The host's own look may be what is refused.
            let mut last = [0; 4];
            buffer.read((1 << 22) - 4, &mut last).unwrap();
            assert_eq!(u32::from_le_bytes(last), 50, "seed {seed}, {call}: the wait ended early");
        }
    }
}

#[test]
fn relays_of_devices_that_are_gone_end() {
    let threads = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    let target = Device::simulated(1, Options::default());
    let waiting = target.stream(Placement::default()).unwrap();
    let before = threads();
    for seed in 0..50 {
        let source = Device::simulated(seed, Options::default());
        let (_stream, event, _buffer) = busy(&source);
        event.wait(&waiting).unwrap();
        waiting.synchronize().unwrap();
    }
    // Other tests have threads too.
    assert!(threads() < before + 30, "{} threads more", threads() - before);
}

// Values ----------------------------------------------------------------------------------------------

#[test]
fn a_value_may_use_the_stream_that_lets_it_go() {
    struct Flushes(Arc<Stream>);
    impl Drop for Flushes {
        fn drop(&mut self) {
            self.0.record(|_| ()).unwrap();
            self.0.flush().unwrap();
        }
    }
    on_simulated(|b| {
        let (s, a) = (Arc::new(b.stream()), b.buffer());
        let drops = DropQueue::new(&b.device, FlushPolicy::default());
        for _ in 0..20 {
            b.produce(&s, &a, 1);
            drops.push(Flushes(s.clone()), 1, &[&s]).map_err(|(_, error)| error).unwrap();
            s.flush().unwrap();
        }
    });
}

// Losses and refusals ---------------------------------------------------------------------------------

#[test]
fn every_call_that_meets_the_loss_says_so_and_it_stays() {
    run(|b| {
        b.fault.next("vkCreateBuffer", DEVICE_LOST);
        assert!(matches!(b.device.buffer(16).map(drop), Err(Error::Lost(_))));
        assert!(b.device.is_lost());
    });
    run(|b| {
        let (s, e) = (b.on_queue(0), b.device.timed_event().unwrap());
        e.record(&s).unwrap();
        s.synchronize().unwrap();
        b.fault.next("vkGetQueryPoolResults", DEVICE_LOST);
        match e.elapsed_since(&e) {
            Err(Error::NotTimed) => {} // Without VkEvents.
            answer => assert!(matches!(answer, Err(Error::Lost(_))) && b.device.is_lost(), "{answer:?}"),
        }
    });
}

#[test]
fn a_refused_look_for_reuse_is_no_failure() {
    run(|b| {
        let (s, e, out, word) = (b.stream(), b.event(), b.buffer(), b.word());
        for _ in 0..3 {
            b.produce(&s, &out, word);
            b.fault.next("vkGetSemaphoreCounterValue", OUT_OF_MEMORY);
            s.flush().unwrap();
            b.fault.next("vkGetSemaphoreCounterValue", OUT_OF_MEMORY);
            e.record(&s).unwrap();
        }
        b.fault.clear();
        e.synchronize().unwrap();
        assert_eq!(value(&out), word);
    });
}

#[test]
fn what_is_too_large_is_refused() {
    run(|b| {
        for size in [u64::MAX, 1 << 62, 1 << 50] {
            assert!(matches!(b.device.buffer(size).map(drop), Err(Error::Refused(_))), "{size}");
        }
    });
    if common::vulkan(true, true).is_some() {
        let all = OpenOptions { queues_per_family: u32::MAX, ..OpenOptions::default() };
        drop(Vulkan::open(&all).unwrap());
    }
}
