//! `VK_LAYER_FENCEPOST_lifecycle`: has every call of an application that bears on order, reuse and lifetime judged by the
//! rules of the machine, and passes every call on as it is.
//!
//! A call that releases something (a submission, a set, a destruction) is judged before the driver gets it; one that
//! learns or makes something (a wait's return, a status, a creation) after. So calls of several threads are judged in an
//! order in which they can have taken effect. No lock is held while the driver is called.

mod bindings;
mod chain;
mod commands;
mod device;
mod next;
mod report;
mod session;
mod settings;
mod shader;
mod texel;
mod trace;
mod watchdog;

use ash::vk;
use ash_layer::NegotiateLayerInterface;

/// The version of the interface between loader and layer that is spoken here.
const INTERFACE_VERSION: u32 = 2;

/// What the loader asks first. Vulkan: "Layer Interface Version 2" of the loader's documentation.
///
/// # Safety
/// Called by the loader with a structure of its own.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "system" fn vkNegotiateLoaderLayerInterfaceVersion(
    version: *mut NegotiateLayerInterface,
) -> vk::Result {
    // SAFETY: the loader's structure, or none.
    let Some(version) = (unsafe { version.as_mut() }) else { return vk::Result::ERROR_INITIALIZATION_FAILED };
    if version.loader_layer_interface_version < INTERFACE_VERSION {
        return vk::Result::ERROR_INITIALIZATION_FAILED;
    }
    version.loader_layer_interface_version = INTERFACE_VERSION;
    version.pfn_get_instance_proc_addr = Some(chain::get_instance_proc_addr);
    version.pfn_get_device_proc_addr = Some(chain::get_device_proc_addr);
    version.pfn_get_physical_device_proc_addr = None;
    vk::Result::SUCCESS
}
