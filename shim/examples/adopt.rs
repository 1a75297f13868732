//! An application that has an ash instance and device of its own lends them to fencepost, and keeps using them.
//!
//! `cargo run --release -p fencepost-vulkan --example adopt [-- --driver sim]`

mod common;

use std::sync::{Arc, Mutex};

use common::DriverChoice;
use fencepost_vulkan::ash::{self, vk};
use fencepost_vulkan::{Adopted, AdoptedQueue, Device, DriverError, Error, Options, Placement};

fn main() -> std::process::ExitCode {
    common::end(match common::driver() {
        DriverChoice::Simulated => use_it(&Device::simulated(1, Options::default())),
        DriverChoice::Vulkan => Application::new().and_then(|application| application.run()),
    })
}

/// An application with Vulkan of its own.
struct Application {
    _entry: ash::Entry,
    instance: ash::Instance,
    physical_device: vk::PhysicalDevice,
    device: ash::Device,
    family: u32,
    /// Held by whoever submits to the queue.
    queue_lock: Arc<Mutex<()>>,
}

impl Application {
    fn new() -> Result<Application, Error> {
        let failed = |call| move |result| Error::NoDriver(DriverError { call, result });
        // SAFETY: plain set-up, each call with what the one before made.
        unsafe {
            let entry = ash::Entry::load().map_err(|e| Error::NoLoader(e.to_string()))?;
            let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_2);
            let info = vk::InstanceCreateInfo::default().application_info(&application);
            let instance = entry.create_instance(&info, None).map_err(failed("vkCreateInstance"))?;
            let devices = instance.enumerate_physical_devices().map_err(failed("vkEnumeratePhysicalDevices"))?;
            let physical_device = devices[0];
            let families = instance.get_physical_device_queue_family_properties(physical_device);
            let family =
                families.iter().position(|f| f.queue_flags.contains(vk::QueueFlags::COMPUTE)).unwrap_or(0) as u32;
            let priorities = [1.0];
            let queues =
                [vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&priorities)];
            let mut features = vk::PhysicalDeviceVulkan12Features::default().timeline_semaphore(true);
            let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).push_next(&mut features);
            let device = instance.create_device(physical_device, &info, None).map_err(failed("vkCreateDevice"))?;
            Ok(Application { _entry: entry, instance, physical_device, device, family, queue_lock: Arc::default() })
        }
    }

    fn run(&self) -> Result<(), Error> {
        let adopted = Adopted {
            instance: self.instance.clone(),
            physical_device: self.physical_device,
            device: self.device.clone(),
            queues: vec![AdoptedQueue { family: self.family, index: 0, lock: self.queue_lock.clone() }],
            synchronization2: false,
            host_query_reset: false,
        };
        // SAFETY: it is as it says, and the application outlives what is made on it.
        let device = unsafe { Device::adopt(adopted, Options::default()) }?;
        eprintln!("on {}", device.name());
        use_it(&device)?;
        drop(device);

        // The queue is still the application's.
        let _alone = self.queue_lock.lock();
        // SAFETY: nobody else submits now.
        unsafe { self.device.queue_wait_idle(self.device.get_device_queue(self.family, 0)) }
            .map_err(|result| Error::Lost(DriverError { call: "vkQueueWaitIdle", result }))
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        // SAFETY: nothing is left on either.
        unsafe {
            self.device.destroy_device(None);
            self.instance.destroy_instance(None);
        }
    }
}

fn use_it(device: &Device) -> Result<(), Error> {
    let [a, b] = [device.stream(Placement::default())?, device.stream(Placement::default())?];
    let (ready, buffer, copy) = (device.event()?, device.buffer(64)?, device.buffer(64)?);
    for round in 1..=3 {
        a.record(|commands| commands.fill(&buffer, 0, 64, round))??;
        ready.record(&a)?;
        ready.wait(&b)?;
        b.record(|commands| commands.copy((&buffer, 0), (&copy, 0), 64))??;
        b.synchronize()?;
        println!("round {round}: the second stream read {}", copy.words()?[15]);
    }
    Ok(())
}
