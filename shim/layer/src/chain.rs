//! Instances and devices: how calls come in from the loader, and which way they go on.

use std::ffi::{CStr, c_char};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use ash::vk::{self, Handle};
use ash_layer::{LayerFunction, get_device_chain_info, get_instance_chain_info};
use rustc_hash::FxHashMap;

use crate::commands::chained;
use crate::device::Device;
use crate::next::{self, Next};
use crate::report::Messengers;
use crate::settings::Settings;

/// What the loader writes into the first word of a dispatchable object: the same for an instance and its physical devices,
/// and for a device, its queues and its command buffers.
type Key = usize;

static INSTANCES: LazyLock<RwLock<FxHashMap<Key, Arc<Instance>>>> = LazyLock::new(Default::default);
static DEVICES: LazyLock<RwLock<FxHashMap<Key, Arc<Device>>>> = LazyLock::new(Default::default);

/// An instance of the application.
pub struct Instance {
    handle: vk::Instance,
    get_instance_proc_addr: vk::PFN_vkGetInstanceProcAddr,
    /// Taken at once: later the loader answers with the function of its topmost layer.
    destroy_instance: Option<vk::PFN_vkDestroyInstance>,
    create_messenger: Option<vk::PFN_vkCreateDebugUtilsMessengerEXT>,
    destroy_messenger: Option<vk::PFN_vkDestroyDebugUtilsMessengerEXT>,
    pub settings: Settings,
    /// The application's messengers. The loader has a list of its own; what is submitted to that takes the loader's lock,
    /// which is held while a device is destroyed.
    pub messengers: Messengers,
}

impl Instance {
    fn next(&self, name: &CStr) -> vk::PFN_vkVoidFunction {
        // SAFETY: the instance lives while it is registered.
        unsafe { (self.get_instance_proc_addr)(self.handle, name.as_ptr()) }
    }
}

/// # Safety
/// The handle is a dispatchable one that lives.
unsafe fn key(handle: u64) -> Key {
    // SAFETY: every dispatchable object begins with a word of the loader's.
    unsafe { *(handle as usize as *const Key) }
}

/// The device that a device, queue or command buffer belongs to.
///
/// # Safety
/// The handle lives.
pub unsafe fn device_of(handle: impl Handle) -> Option<Arc<Device>> {
    let raw = handle.as_raw();
    if raw == 0 {
        return None;
    }
    // SAFETY: as the caller says.
    let key = unsafe { key(raw) };
    DEVICES.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
}

unsafe fn instance_of(handle: impl Handle) -> Option<Arc<Instance>> {
    let raw = handle.as_raw();
    if raw == 0 {
        return None;
    }
    // SAFETY: as the caller says.
    let key = unsafe { key(raw) };
    INSTANCES.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
}

macro_rules! pointer {
    ($function:expr, $pfn:ty) => {{
        let function: $pfn = $function;
        // SAFETY: whoever asks for a function by its name casts it back to that function's type.
        Some(unsafe { std::mem::transmute::<$pfn, unsafe extern "system" fn()>(function) })
    }};
}
pub(crate) use pointer;

pub unsafe extern "system" fn get_instance_proc_addr(
    instance: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: a string, as Vulkan demands.
    let text = unsafe { CStr::from_ptr(name) };
    match text.to_bytes() {
        b"vkGetInstanceProcAddr" => return pointer!(get_instance_proc_addr, vk::PFN_vkGetInstanceProcAddr),
        b"vkCreateInstance" => return pointer!(create_instance, vk::PFN_vkCreateInstance),
        b"vkDestroyInstance" => return pointer!(destroy_instance, vk::PFN_vkDestroyInstance),
        b"vkCreateDevice" => return pointer!(create_device, vk::PFN_vkCreateDevice),
        b"vkGetDeviceProcAddr" => return pointer!(get_device_proc_addr, vk::PFN_vkGetDeviceProcAddr),
        _ => {}
    }
    // SAFETY: the application's instance lives.
    let known = unsafe { instance_of(instance) }?;
    let below = known.next(text)?;
    match text.to_bytes() {
        b"vkCreateDebugUtilsMessengerEXT" => {
            return pointer!(create_messenger, vk::PFN_vkCreateDebugUtilsMessengerEXT);
        }
        b"vkDestroyDebugUtilsMessengerEXT" => {
            return pointer!(destroy_messenger, vk::PFN_vkDestroyDebugUtilsMessengerEXT);
        }
        _ => {}
    }
    Some(next::hook(text).unwrap_or(below))
}

pub unsafe extern "system" fn get_device_proc_addr(device: vk::Device, name: *const c_char) -> vk::PFN_vkVoidFunction {
    // SAFETY: the application's device lives, and the name is a string.
    let (known, text) = unsafe { (device_of(device)?, CStr::from_ptr(name)) };
    if text.to_bytes() == b"vkGetDeviceProcAddr" {
        return pointer!(get_device_proc_addr, vk::PFN_vkGetDeviceProcAddr);
    }
    // SAFETY: as above.
    let below = unsafe { (known.get_device_proc_addr)(device, name) }?;
    Some(next::hook(text).unwrap_or(below))
}

unsafe extern "system" fn create_instance(
    info: *const vk::InstanceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    instance: *mut vk::Instance,
) -> vk::Result {
    const FAILED: vk::Result = vk::Result::ERROR_INITIALIZATION_FAILED;
    // SAFETY: the loader puts its link for this layer into the chain, which is its own copy.
    let link = unsafe { get_instance_chain_info(&*info, LayerFunction::LAYER_LINK_INFO) };
    let Some(mut link) = link else { return FAILED };
    // SAFETY: as above; the union holds a link, which the layer moves on for the next one.
    let next = unsafe {
        let link = link.as_mut();
        let next = (*link.u.p_layer_info).pfn_next_get_instance_proc_addr;
        link.u.p_layer_info = (*link.u.p_layer_info).p_next;
        next
    };
    let Some(next) = next else { return FAILED };
    // SAFETY: `vkCreateInstance` can be had without an instance.
    let Some(create) = (unsafe { next(vk::Instance::null(), c"vkCreateInstance".as_ptr()) }) else { return FAILED };
    // SAFETY: the function has that name.
    let create: vk::PFN_vkCreateInstance = unsafe { std::mem::transmute(create) };
    // SAFETY: the application's own arguments.
    let result = unsafe { create(info, allocator, instance) };
    if result != vk::Result::SUCCESS {
        return result;
    }
    // SAFETY: it was made just now.
    let (handle, key) = unsafe { (*instance, key((*instance).as_raw())) };
    let get = |name: &CStr| {
        // SAFETY: the instance lives.
        unsafe { next(handle, name.as_ptr()) }
    };
    // SAFETY: the functions have those names.
    let (destroy_instance, create_messenger, destroy_messenger) = unsafe {
        (
            std::mem::transmute::<vk::PFN_vkVoidFunction, Option<vk::PFN_vkDestroyInstance>>(get(c"vkDestroyInstance")),
            std::mem::transmute::<vk::PFN_vkVoidFunction, Option<vk::PFN_vkCreateDebugUtilsMessengerEXT>>(get(
                c"vkCreateDebugUtilsMessengerEXT",
            )),
            std::mem::transmute::<vk::PFN_vkVoidFunction, Option<vk::PFN_vkDestroyDebugUtilsMessengerEXT>>(get(
                c"vkDestroyDebugUtilsMessengerEXT",
            )),
        )
    };
    // SAFETY: the application's structure.
    let read = std::panic::catch_unwind(|| unsafe { Settings::read(&*info) });
    let (settings, faults) = read.unwrap_or_default();
    let made = Instance {
        handle,
        get_instance_proc_addr: next,
        destroy_instance,
        create_messenger,
        destroy_messenger,
        settings,
        messengers: Messengers::default(),
    };
    // A messenger in the chain hears what happens while the instance is made.
    // SAFETY: the chain is the application's.
    let chained = unsafe { chained::<vk::DebugUtilsMessengerCreateInfoEXT<'_>>((*info).p_next) };
    chained.iter().for_each(|info| made.messengers.add(vk::DebugUtilsMessengerEXT::null(), info));
    faults.iter().for_each(|fault| made.warn("settings", fault));
    made.messengers.remove(vk::DebugUtilsMessengerEXT::null());
    INSTANCES.write().unwrap_or_else(PoisonError::into_inner).insert(key, Arc::new(made));
    result
}

unsafe extern "system" fn destroy_instance(instance: vk::Instance, allocator: *const vk::AllocationCallbacks<'_>) {
    if instance == vk::Instance::null() {
        return;
    }
    // SAFETY: the application's instance lives until it is destroyed here.
    let key = unsafe { key(instance.as_raw()) };
    let known = INSTANCES.write().unwrap_or_else(PoisonError::into_inner).remove(&key);
    if let Some(destroy) = known.and_then(|known| known.destroy_instance) {
        // SAFETY: the application's own arguments.
        unsafe { destroy(instance, allocator) };
    }
}

unsafe extern "system" fn create_messenger(
    instance: vk::Instance,
    info: *const vk::DebugUtilsMessengerCreateInfoEXT<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    messenger: *mut vk::DebugUtilsMessengerEXT,
) -> vk::Result {
    const MISSING: vk::Result = vk::Result::ERROR_EXTENSION_NOT_PRESENT;
    // SAFETY: the application's instance lives.
    let Some(known) = (unsafe { instance_of(instance) }) else { return MISSING };
    let Some(create) = known.create_messenger else { return MISSING };
    // SAFETY: the application's own arguments.
    let result = unsafe { create(instance, info, allocator, messenger) };
    if result == vk::Result::SUCCESS {
        // SAFETY: the one was written just now, the other is the application's.
        unsafe { known.messengers.add(*messenger, &*info) };
    }
    result
}

unsafe extern "system" fn destroy_messenger(
    instance: vk::Instance,
    messenger: vk::DebugUtilsMessengerEXT,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the application's instance lives.
    let Some(known) = (unsafe { instance_of(instance) }) else { return };
    known.messengers.remove(messenger);
    if let Some(destroy) = known.destroy_messenger {
        // SAFETY: the application's own arguments.
        unsafe { destroy(instance, messenger, allocator) };
    }
}

unsafe extern "system" fn create_device(
    physical_device: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    device: *mut vk::Device,
) -> vk::Result {
    const FAILED: vk::Result = vk::Result::ERROR_INITIALIZATION_FAILED;
    // SAFETY: the application's physical device lives with its instance.
    let Some(instance) = (unsafe { instance_of(physical_device) }) else { return FAILED };
    // SAFETY: as in `create_instance`.
    let Some(mut link) = (unsafe { get_device_chain_info(&*info, LayerFunction::LAYER_LINK_INFO) }) else {
        return FAILED;
    };
    // SAFETY: as in `create_instance`.
    let (next_instance, next_device) = unsafe {
        let link = link.as_mut();
        let layer = &*link.u.p_layer_info;
        link.u.p_layer_info = layer.p_next;
        (layer.pfn_next_get_instance_proc_addr, layer.pfn_next_get_device_proc_addr)
    };
    let (Some(next_instance), Some(next_device)) = (next_instance, next_device) else { return FAILED };
    // SAFETY: the instance lives.
    let create = unsafe { next_instance(instance.handle, c"vkCreateDevice".as_ptr()) };
    let Some(create) = create else { return FAILED };
    // SAFETY: the function has that name.
    let create: vk::PFN_vkCreateDevice = unsafe { std::mem::transmute(create) };
    // SAFETY: the application's own arguments.
    let result = unsafe { create(physical_device, info, allocator, device) };
    if result == vk::Result::SUCCESS {
        // SAFETY: it was made just now.
        let (handle, key) = unsafe { (*device, key((*device).as_raw())) };
        // SAFETY: the device lives while it is registered.
        let next = Next::load(|name| unsafe { next_device(handle, name.as_ptr()) });
        let made = Arc::new(Device::new(instance, next_device, next));
        DEVICES.write().unwrap_or_else(PoisonError::into_inner).insert(key, made);
    }
    result
}

/// Forgets a device that is about to be destroyed.
///
/// # Safety
/// The device lives.
pub unsafe fn forget(device: vk::Device) {
    // SAFETY: as the caller says.
    let key = unsafe { key(device.as_raw()) };
    DEVICES.write().unwrap_or_else(PoisonError::into_inner).remove(&key);
}
