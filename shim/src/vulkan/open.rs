//! How a Vulkan device comes to be: opened here, or lent by an application.

use std::ffi::{CStr, c_void};
use std::sync::{Arc, Mutex};

use ash::ext::debug_utils;
use ash::khr::synchronization2;
use ash::vk;

use super::{Owned, QueueHandle, Vulkan};
use crate::driver::{Messages, Queue, QueueLock};
use crate::error::{DriverError, Error};

/// Which device, and how.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The device, by number, UUID (32 hexadecimal digits, dashes allowed) or a part of its name. Else the
    /// environment variable `FENCEPOST_DEVICE` says which; else a discrete GPU is taken before an integrated one, and
    /// that before software.
    pub device: Option<String>,
    /// How many queues of a family to use at most. On an H200 a signal takes 338 µs to a second queue of its own
    /// family, and 11 µs to one of another.
    pub queues_per_family: u32,
    /// Uses `VK_KHR_synchronization2` where the device has it.
    pub synchronization2: bool,
    /// Loads the Khronos validation layer, synchronization validation included, and keeps here what it says.
    pub validation: Option<Messages>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions { device: None, queues_per_family: 1, synchronization2: true, validation: None }
    }
}

/// A queue of an application.
#[derive(Clone)]
pub struct AdoptedQueue {
    /// Its family.
    pub family: u32,
    /// Its position in the family.
    pub index: u32,
    /// Held by whoever calls `vkQueueSubmit` on the queue, by the application too. A `Mutex<()>` is one.
    pub lock: Arc<dyn QueueLock>,
}

/// A device of an application, of Vulkan 1.2 or later with `timelineSemaphore` enabled.
#[derive(Clone)]
pub struct Adopted {
    /// Its instance.
    pub instance: ash::Instance,
    /// Which physical device it is.
    pub physical_device: vk::PhysicalDevice,
    /// The device.
    pub device: ash::Device,
    /// Those of its queues that fencepost may use.
    pub queues: Vec<AdoptedQueue>,
    /// Whether the feature `synchronization2` is enabled.
    pub synchronization2: bool,
    /// Whether the feature `hostQueryReset` is enabled. Without it no event has a time.
    pub host_query_reset: bool,
}

const LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

impl Vulkan {
    /// Makes an instance and a device of its own.
    pub fn open(options: &OpenOptions) -> Result<Vulkan, Error> {
        // SAFETY: the loader is a library made to be loaded like this.
        let entry = unsafe { ash::Entry::load() }.map_err(|e| Error::NoLoader(e.to_string()))?;
        let instance = Guard(create_instance(&entry, options.validation.is_some())?);
        let messenger =
            options.validation.clone().map(|heard| Messenger::new(&entry, &instance.0, heard)).transpose()?;
        let opened = open_device(&instance.0, options);
        let (adopted, name) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                messenger.into_iter().for_each(Messenger::destroy);
                return Err(error);
            }
        };
        let owned = Owned { instance: instance.release(), messenger, _entry: entry };
        Ok(Vulkan::new(adopted, name, Some(owned)))
    }

    /// Uses an application's device. Fencepost makes and destroys nothing but objects of its own.
    ///
    /// # Safety
    /// What `adopted` says is true, and the device outlives the driver and what is made on it.
    pub unsafe fn adopt(adopted: Adopted) -> Result<Vulkan, Error> {
        let name = device_name(&adopted.instance, adopted.physical_device);
        let families = families(&adopted.instance, adopted.physical_device);
        let known = |q: &AdoptedQueue| families.get(q.family as usize).is_some_and(|f| q.index < f.queue_count);
        if let Some(queue) = adopted.queues.iter().find(|q| !known(q)) {
            let found = families.iter().enumerate().map(|(n, f)| format!("family {n}: {}", f.queue_count));
            return Err(Error::NoQueue {
                device: name,
                wanted: format!("{} of family {}", queue.index, queue.family),
                found: found.collect::<Vec<_>>().join(", "),
            });
        }
        if adopted.queues.is_empty() {
            return Err(Error::Unsuitable { device: name, missing: "queue that fencepost may use" });
        }
        Ok(Vulkan::new(adopted, name, None))
    }

    fn new(adopted: Adopted, name: String, owned: Option<Owned>) -> Vulkan {
        let Adopted { instance, physical_device, device, queues, .. } = adopted;
        let families = families(&instance, physical_device);
        // SAFETY: the physical device is the instance's.
        let (memory, limits) = unsafe {
            let properties = instance.get_physical_device_properties(physical_device);
            (instance.get_physical_device_memory_properties(physical_device), properties.limits)
        };
        let synchronization2 = adopted.synchronization2.then(|| {
            // An application may have it from Vulkan 1.3 or from the extension.
            synchronization2::DeviceFn::load(|name| {
                let core = name.to_bytes().strip_suffix(b"KHR").map(|short| [short, b"\0"].concat());
                let core = core.as_deref().and_then(|bytes| CStr::from_bytes_with_nul(bytes).ok());
                // SAFETY: the names end in a zero, and the device lives.
                let load = |name: &CStr| unsafe { instance.get_device_proc_addr(device.handle(), name.as_ptr()) };
                let loaded = load(name).or_else(|| core.and_then(load));
                loaded.map_or(std::ptr::null(), |function| function as *const c_void)
            })
        });
        let handles = queues.iter().map(|q| QueueHandle {
            // SAFETY: the device was made with this queue.
            queue: unsafe { device.get_device_queue(q.family, q.index) },
            valid_bits: families[q.family as usize].timestamp_valid_bits,
            lock: q.lock.clone(),
        });
        Vulkan {
            name,
            handles: handles.collect(),
            queues: queues
                .iter()
                .map(|q| Queue { family: q.family, index: q.index, flags: families[q.family as usize].queue_flags })
                .collect(),
            memory,
            period: limits.timestamp_period,
            host_query_reset: adopted.host_query_reset,
            synchronization2,
            device,
            tables: Default::default(),
            owned,
        }
    }
}

/// An instance that is destroyed unless it is released.
struct Guard(ash::Instance);

impl Guard {
    fn release(self) -> ash::Instance {
        let instance = self.0.clone();
        std::mem::forget(self);
        instance
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: nothing was made on it that is left.
        unsafe { self.0.destroy_instance(None) };
    }
}

fn create_instance(entry: &ash::Entry, validation: bool) -> Result<ash::Instance, Error> {
    let application = vk::ApplicationInfo::default().engine_name(c"fencepost").api_version(vk::API_VERSION_1_3);
    let (layers, extensions) = ([LAYER.as_ptr()], [debug_utils::NAME.as_ptr()]);
    let enabled = [vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION];
    let mut features = vk::ValidationFeaturesEXT::default().enabled_validation_features(&enabled);
    let mut info = vk::InstanceCreateInfo::default().application_info(&application);
    if validation {
        info = info.enabled_layer_names(&layers).enabled_extension_names(&extensions).push_next(&mut features);
    }
    // SAFETY: every pointer lives to the end of the call.
    unsafe { entry.create_instance(&info, None) }.map_err(|result| match result {
        vk::Result::ERROR_LAYER_NOT_PRESENT => Error::NoValidation,
        result => Error::NoDriver(DriverError { call: "vkCreateInstance", result }),
    })
}

fn open_device(instance: &ash::Instance, options: &OpenOptions) -> Result<(Adopted, String), Error> {
    // SAFETY: the instance lives.
    let all = unsafe { instance.enumerate_physical_devices() };
    let all = all.map_err(|e| Error::NoDriver(DriverError::of("vkEnumeratePhysicalDevices")(e)))?;
    let wanted = options.device.clone().or_else(|| std::env::var("FENCEPOST_DEVICE").ok()).filter(|w| !w.is_empty());
    let physical_device = choose(instance, &all, wanted.as_deref())?;
    let name = device_name(instance, physical_device);
    let unsuitable = |missing| Error::Unsuitable { device: name.clone(), missing };

    // SAFETY: the physical device is the instance's.
    let properties = unsafe { instance.get_physical_device_properties(physical_device) };
    if properties.api_version < vk::API_VERSION_1_2 {
        return Err(unsuitable("Vulkan 1.2"));
    }
    // SAFETY: as above.
    let extensions = unsafe { instance.enumerate_device_extension_properties(physical_device) };
    let extensions = extensions.map_err(DriverError::of("vkEnumerateDeviceExtensionProperties"));
    let extensions = extensions.map_err(Error::NoDriver)?;
    let has_extension = extensions.iter().any(|e| e.extension_name_as_c_str() == Ok(synchronization2::NAME));
    let mut has_12 = vk::PhysicalDeviceVulkan12Features::default();
    let mut has_sync2 = vk::PhysicalDeviceSynchronization2Features::default();
    let mut has = vk::PhysicalDeviceFeatures2::default().push_next(&mut has_12);
    if has_extension {
        has = has.push_next(&mut has_sync2);
    }
    // SAFETY: the chain holds structures that the device knows.
    unsafe { instance.get_physical_device_features2(physical_device, &mut has) };
    if has_12.timeline_semaphore == vk::FALSE {
        return Err(unsuitable("timeline semaphores"));
    }
    let synchronization2 = options.synchronization2 && has_sync2.synchronization2 == vk::TRUE;
    let host_query_reset = has_12.host_query_reset == vk::TRUE;

    let families = families(instance, physical_device);
    let count = |family: &vk::QueueFamilyProperties| family.queue_count.min(options.queues_per_family.max(1)) as usize;
    let usable = |family: &vk::QueueFamilyProperties| {
        let runs = vk::QueueFlags::GRAPHICS | vk::QueueFlags::COMPUTE | vk::QueueFlags::TRANSFER;
        family.queue_count > 0 && family.queue_flags.intersects(runs)
    };
    let usable = || (0..).zip(&families).filter(|(_, family)| usable(family));
    let priorities = vec![1.0; families.iter().map(count).max().unwrap_or(1)];
    let queue_infos: Vec<_> = usable()
        .map(|(family, p)| {
            vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&priorities[..count(p)])
        })
        .collect();
    let names = [synchronization2::NAME.as_ptr()];
    let mut use_12 =
        vk::PhysicalDeviceVulkan12Features::default().timeline_semaphore(true).host_query_reset(host_query_reset);
    let mut use_sync2 = vk::PhysicalDeviceSynchronization2Features::default().synchronization2(true);
    let mut info = vk::DeviceCreateInfo::default().queue_create_infos(&queue_infos).push_next(&mut use_12);
    if synchronization2 {
        info = info.enabled_extension_names(&names).push_next(&mut use_sync2);
    }
    // SAFETY: every pointer lives to the end of the call; extensions and features are the device's.
    let device = unsafe { instance.create_device(physical_device, &info, None) };
    let device = device.map_err(|result| Error::NoDriver(DriverError { call: "vkCreateDevice", result }))?;
    let queues = usable().flat_map(|(family, p)| {
        (0..count(p) as u32).map(move |index| AdoptedQueue { family, index, lock: Arc::new(Mutex::new(())) })
    });
    let queues = queues.collect();
    let instance = instance.clone();
    Ok((Adopted { instance, physical_device, device, queues, synchronization2, host_query_reset }, name))
}

fn choose(
    instance: &ash::Instance,
    all: &[vk::PhysicalDevice],
    wanted: Option<&str>,
) -> Result<vk::PhysicalDevice, Error> {
    let rank = |device: &vk::PhysicalDevice| {
        // SAFETY: the physical device is the instance's.
        match unsafe { instance.get_physical_device_properties(*device) }.device_type {
            vk::PhysicalDeviceType::DISCRETE_GPU => 0,
            vk::PhysicalDeviceType::INTEGRATED_GPU => 1,
            vk::PhysicalDeviceType::VIRTUAL_GPU => 2,
            _ => 3,
        }
    };
    let Some(wanted) = wanted else {
        let found = DriverError { call: "vkEnumeratePhysicalDevices", result: vk::Result::ERROR_INITIALIZATION_FAILED };
        return all.iter().copied().min_by_key(rank).ok_or(Error::NoDriver(found));
    };
    let uuid = wanted.to_lowercase().replace('-', "");
    let by_number = wanted.parse().ok().and_then(|number: usize| all.get(number));
    let by_uuid = || all.iter().find(|device| device_uuid(instance, **device) == uuid);
    let named =
        |device: &&vk::PhysicalDevice| device_name(instance, **device).to_lowercase().contains(&wanted.to_lowercase());
    by_number.or_else(by_uuid).or_else(|| all.iter().find(named)).copied().ok_or_else(|| {
        let each = all
            .iter()
            .enumerate()
            .map(|(n, device)| format!("{n}: {:?} {}", device_name(instance, *device), device_uuid(instance, *device)));
        Error::NoDevice { wanted: wanted.into(), found: each.collect::<Vec<_>>().join(", ") }
    })
}

fn families(instance: &ash::Instance, device: vk::PhysicalDevice) -> Vec<vk::QueueFamilyProperties> {
    // SAFETY: the physical device is the instance's.
    unsafe { instance.get_physical_device_queue_family_properties(device) }
}

fn device_name(instance: &ash::Instance, device: vk::PhysicalDevice) -> String {
    // SAFETY: as above.
    let properties = unsafe { instance.get_physical_device_properties(device) };
    properties.device_name_as_c_str().map_or_else(|_| "a device".into(), |name| name.to_string_lossy().into())
}

fn device_uuid(instance: &ash::Instance, device: vk::PhysicalDevice) -> String {
    let mut id = vk::PhysicalDeviceIDProperties::default();
    let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut id);
    // SAFETY: the chain holds a structure of Vulkan 1.1.
    unsafe { instance.get_physical_device_properties2(device, &mut properties) };
    id.device_uuid.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Keeps what the validation layers say.
pub(super) struct Messenger {
    functions: debug_utils::Instance,
    handle: vk::DebugUtilsMessengerEXT,
    /// The driver's callback holds a pointer to it.
    heard: Box<Messages>,
}

impl Messenger {
    fn new(entry: &ash::Entry, instance: &ash::Instance, heard: Messages) -> Result<Messenger, Error> {
        let functions = debug_utils::Instance::new(entry, instance);
        let heard = Box::new(heard);
        let severity = vk::DebugUtilsMessageSeverityFlagsEXT::ERROR | vk::DebugUtilsMessageSeverityFlagsEXT::WARNING;
        let kind = vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION | vk::DebugUtilsMessageTypeFlagsEXT::PERFORMANCE;
        let info = vk::DebugUtilsMessengerCreateInfoEXT::default()
            .message_severity(severity)
            .message_type(kind)
            .pfn_user_callback(Some(hear))
            .user_data((&raw const *heard).cast_mut().cast());
        // SAFETY: the list outlives the messenger, which is destroyed before it.
        let handle = unsafe { functions.create_debug_utils_messenger(&info, None) };
        let handle = handle.map_err(DriverError::of("vkCreateDebugUtilsMessengerEXT")).map_err(Error::NoDriver)?;
        Ok(Messenger { functions, handle, heard })
    }

    pub(super) fn destroy(self) {
        // SAFETY: it is destroyed once, and its instance lives.
        unsafe { self.functions.destroy_debug_utils_messenger(self.handle, None) };
        drop(self.heard);
    }
}

unsafe extern "system" fn hear(
    _severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    _kind: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    list: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: the layer hands over a valid message, and the one given to `create_debug_utils_messenger`.
    let (message, list) = unsafe { ((*data).message_as_c_str(), &*list.cast::<Messages>()) };
    let message = message.map_or_else(String::new, |message| message.to_string_lossy().into_owned());
    tracing::error!(message, "validation");
    list.say(message);
    vk::FALSE
}
