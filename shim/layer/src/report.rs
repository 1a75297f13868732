//! How what is wrong is told.

use std::ffi::{CStr, CString};
use std::io::Write;

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
        if let Some(submit) = self.submit_message.filter(|_| self.settings.debug_utils) {
            let (id, text) = (string(id), string(text));
            let names: Vec<CString> = objects.iter().map(|object| string(&object.name)).collect();
            let object = |(object, name): (&Named, &CString)| {
                let info = vk::DebugUtilsObjectNameInfoEXT { object_type: kind(object.kind), ..Default::default() };
                vk::DebugUtilsObjectNameInfoEXT { object_handle: object.handle, p_object_name: name.as_ptr(), ..info }
            };
            let objects: Vec<_> = objects.iter().zip(&names).map(object).collect();
            let data = vk::DebugUtilsMessengerCallbackDataEXT::default().message_id_name(&id).message(&text);
            let data = data.objects(&objects);
            let types = vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION;
            // SAFETY: the instance lives, and the message to the end of the call. The loader hands it to every messenger.
            unsafe { submit(self.handle(), severity, types, &data) };
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
