//! How what is wrong is told.

use std::ffi::{CStr, CString, c_void};
use std::io::Write;
use std::sync::{PoisonError, RwLock};

use ash::vk;
use fencepost::Rule;
use fencepost::judge::Kind;

use crate::chain::Instance;

/// A broken rule, in words.
pub struct Report {
    /// Which device, counted from 1.
    pub device: u32,
    pub rule: Rule,
    pub text: String,
    pub objects: Vec<Named>,
}

/// An object that a report is about.
pub struct Named {
    pub kind: Kind,
    /// Its Vulkan handle; 0 if it is gone.
    pub handle: u64,
    pub name: String,
}

impl Instance {
    /// Tells of a broken rule, and ends the process if the user wants to look at it.
    pub fn report(&self, report: &Report) {
        let rule = report.rule.name();
        let device = if report.device == 1 { String::new() } else { format!(" (device {})", report.device) };
        self.say(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR, rule, &device, &report.text, &report.objects);
        if self.settings.break_on.contains(&report.rule) {
            say(&format!("break_on {rule}"));
            std::process::abort();
        }
    }

    /// Tells of something that breaks no rule.
    pub fn warn(&self, id: &str, text: &str) {
        self.say(vk::DebugUtilsMessageSeverityFlagsEXT::WARNING, id, "", text, &[]);
    }

    fn say(
        &self,
        severity: vk::DebugUtilsMessageSeverityFlagsEXT,
        id: &str,
        device: &str,
        text: &str,
        objects: &[Named],
    ) {
        if self.settings.stderr {
            say(&format!("{id}{device}: {text}"));
        }
        if self.settings.debug_utils {
            self.messengers.say(severity, id, text, objects);
        }
    }
}

/// The messengers of an application.
#[derive(Default)]
pub struct Messengers(RwLock<Vec<Messenger>>);

#[derive(Clone, Copy)]
struct Messenger {
    handle: vk::DebugUtilsMessengerEXT,
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    types: vk::DebugUtilsMessageTypeFlagsEXT,
    callback: vk::PFN_vkDebugUtilsMessengerCallbackEXT,
    user_data: *mut c_void,
}

// SAFETY: the user data is only handed to the callback, which Vulkan may call from any thread.
unsafe impl Send for Messenger {}
// SAFETY: as above.
unsafe impl Sync for Messenger {}

impl Messengers {
    pub fn add(&self, handle: vk::DebugUtilsMessengerEXT, info: &vk::DebugUtilsMessengerCreateInfoEXT<'_>) {
        let messenger = Messenger {
            handle,
            severity: info.message_severity,
            types: info.message_type,
            callback: info.pfn_user_callback,
            user_data: info.p_user_data,
        };
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(messenger);
    }

    pub fn remove(&self, handle: vk::DebugUtilsMessengerEXT) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).retain(|messenger| messenger.handle != handle);
    }

    fn say(&self, severity: vk::DebugUtilsMessageSeverityFlagsEXT, id: &str, text: &str, objects: &[Named]) {
        let types = vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION;
        let hears = |m: &&Messenger| m.severity.contains(severity) && m.types.contains(types);
        // No lock is held while a callback runs.
        let all: Vec<Messenger> =
            self.0.read().unwrap_or_else(PoisonError::into_inner).iter().filter(hears).copied().collect();
        if all.is_empty() {
            return;
        }
        let (id, text) = (string(id), string(text));
        let names: Vec<CString> = objects.iter().map(|object| string(&object.name)).collect();
        let object = |(object, name): (&Named, &CString)| vk::DebugUtilsObjectNameInfoEXT {
            object_type: kind(object.kind),
            object_handle: object.handle,
            p_object_name: name.as_ptr(),
            ..Default::default()
        };
        let objects: Vec<_> = objects.iter().zip(&names).map(object).collect();
        let data = vk::DebugUtilsMessengerCallbackDataEXT::default().message_id_name(&id).message(&text);
        let data = data.objects(&objects);
        for Messenger { callback, user_data, .. } in all {
            if let Some(callback) = callback {
                // SAFETY: the application's callback, with a message that lives to its end.
                unsafe { callback(severity, types, &data, user_data) };
            }
        }
    }
}

/// A closed stderr is no reason to fail.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "fencepost: {text}");
}

fn string(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_else(|_| CStr::to_owned(c""))
}

fn kind(kind: Kind) -> vk::ObjectType {
    match kind {
        Kind::Device => vk::ObjectType::DEVICE,
        Kind::Queue => vk::ObjectType::QUEUE,
        Kind::CommandPool => vk::ObjectType::COMMAND_POOL,
        Kind::CommandBuffer => vk::ObjectType::COMMAND_BUFFER,
        Kind::Event => vk::ObjectType::EVENT,
        Kind::Semaphore => vk::ObjectType::SEMAPHORE,
        Kind::Fence => vk::ObjectType::FENCE,
        Kind::Buffer => vk::ObjectType::BUFFER,
    }
}
