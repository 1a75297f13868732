//! What the layer's settings do, and where its reports go.

#[path = "../common/mod.rs"]
mod common;

use std::ffi::{CStr, c_void};

use ash::ext::debug_utils;
use ash::vk;
use common::{Gpu, Program, Run};

const PROGRAMS: &[Program] = &[
    ("a host reset under an open wait", host_reset),
    ("a messenger that is made", |_| messenger(false)),
    ("a messenger in the chain", |_| messenger(true)),
    ("a setting of the application", |_| quiet()),
    ("a second device", |_| {
        let (first, second) = (Gpu::open().unwrap(), Gpu::open().unwrap());
        host_reset(&second);
        println!("the first device's event is {:?}", first.event());
    }),
];

#[test]
#[ignore = "the others start it, in a process for each program"]
fn child() {
    common::child(PROGRAMS);
}

fn host_reset(gpu: &Gpu) {
    let event = gpu.event();
    gpu.submit_all(&[gpu.record(|c| gpu.cmd_set(c, event))]);
    gpu.idle();
    let open = gpu.allocate();
    gpu.begin(open);
    gpu.cmd_wait(open, &[event]);
    println!("before");
    gpu.host_reset(event);
    println!("after");
}

/// An instance that wants no reports.
fn quiet() {
    // SAFETY: the loader is an ordinary library.
    let (none, entry) = ([c"none".as_ptr()], unsafe { ash::Entry::load() }.unwrap());
    let setting = |layer: &CStr| vk::LayerSettingEXT {
        p_layer_name: layer.as_ptr(),
        p_setting_name: c"report".as_ptr(),
        ty: vk::LayerSettingTypeEXT::STRING,
        value_count: 1,
        p_values: none.as_ptr().cast(),
        ..Default::default()
    };
    for layer in [c"VK_LAYER_FENCEPOST_lifecycle", c"VK_LAYER_OTHER"] {
        let settings = [setting(layer)];
        let mut settings = vk::LayerSettingsCreateInfoEXT::default().settings(&settings);
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
        let info = vk::InstanceCreateInfo::default().application_info(&application).push_next(&mut settings);
        // SAFETY: the structures live for the call.
        let instance = unsafe { entry.create_instance(&info, None) }.unwrap();
        host_reset(&Gpu::of(entry.clone(), instance).unwrap());
    }
}

fn messenger(in_chain: bool) {
    // SAFETY: plain Vulkan on objects that live; the callback fits.
    unsafe {
        let entry = ash::Entry::load().unwrap();
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
        let mut heard = vk::DebugUtilsMessengerCreateInfoEXT::default()
            .message_severity(
                vk::DebugUtilsMessageSeverityFlagsEXT::ERROR | vk::DebugUtilsMessageSeverityFlagsEXT::WARNING,
            )
            .message_type(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
            .pfn_user_callback(Some(hear));
        let extensions = [debug_utils::NAME.as_ptr()];
        let info = vk::InstanceCreateInfo::default().application_info(&application);
        let mut info = info.enabled_extension_names(&extensions);
        if in_chain {
            info = info.push_next(&mut heard);
        }
        let instance = entry.create_instance(&info, None).unwrap();
        let functions = debug_utils::Instance::new(&entry, &instance);
        let messenger = (!in_chain).then(|| functions.create_debug_utils_messenger(&heard, None).unwrap());
        let gpu = Gpu::of(entry, instance).unwrap();
        let names = debug_utils::Device::new(&gpu.instance, &gpu.device);
        let event = gpu.event();
        let info = vk::DebugUtilsObjectNameInfoEXT::default().object_handle(event).object_name(c"upload done");
        names.set_debug_utils_object_name(&info).unwrap();
        println!("event {:#x}", vk::Handle::as_raw(event));
        gpu.submit_all(&[gpu.record(|c| gpu.cmd_set(c, event))]);
        gpu.idle();
        let wait = gpu.record(|c| gpu.cmd_wait(c, &[event]));
        gpu.host_reset(event);
        if let Some(messenger) = messenger {
            functions.destroy_debug_utils_messenger(messenger, None);
        }
        // Nobody hears of this one.
        gpu.host_reset(event);
        gpu.device.free_command_buffers(gpu.pool, &[wait]);
        gpu.destroy_event(event);
        gpu.close();
    }
}

unsafe extern "system" fn hear(
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    _: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: whoever calls hands over a valid message.
    unsafe {
        let data = &*data;
        let text = |text: *const std::ffi::c_char| CStr::from_ptr(text).to_string_lossy();
        println!("heard {severity:?} {}: {}", text(data.p_message_id_name), text(data.p_message));
        for at in 0..data.object_count as usize {
            let object = &*data.p_objects.add(at);
            println!("object {:?} {:#x} {}", object.object_type, object.object_handle, text(object.p_object_name));
        }
    }
    vk::FALSE
}

#[test]
fn a_messenger_hears_the_rule_the_sentence_and_the_objects() {
    let run = Run::default().set("FENCEPOST_REPORT", "debug_utils");
    let Some(told) = run.under_the_layer("a messenger that is made") else { return };
    assert_eq!((told.code, &*told.stderr), (Some(0), ""), "{}", told.stdout);
    let heard: Vec<&str> = told.stdout.lines().filter(|line| line.starts_with("heard")).collect();
    assert_eq!(heard.len(), 1, "{}", told.stdout);
    assert!(heard[0].starts_with("heard ERROR reuse_while_waited: vkResetEvent (#"), "{}", heard[0]);
    assert!(heard[0].contains("on E1 \"upload done\", generation 1: vkCmdWaitEvents (#"), "{}", heard[0]);
    let event = told.stdout.lines().find_map(|line| line.strip_prefix("event ")).expect("the program says its event");
    let object = format!("object EVENT {event} E1 \"upload done\"");
    assert!(told.stdout.contains(&object), "{object}: {}", told.stdout);
    assert!(told.stdout.contains("object COMMAND_BUFFER 0x"), "{}", told.stdout);
}

#[test]
fn a_messenger_in_the_chain_hears_what_is_wrong_with_the_settings_and_no_more() {
    let run = Run::default().set("FENCEPOST_WATCHDOG", "never").set("FENCEPOST_REPORT", "debug_utils");
    let Some(told) = run.under_the_layer("a messenger in the chain") else { return };
    assert_eq!((told.code, &*told.stderr), (Some(0), ""), "{}", told.stdout);
    let heard: Vec<&str> = told.stdout.lines().filter(|line| line.starts_with("heard")).collect();
    let fault = "heard WARNING settings: FENCEPOST_WATCHDOG: \"never\" is no number of seconds above 0";
    assert_eq!(heard, [fault]);
}

#[test]
fn break_on_ends_the_process_in_the_faulty_call() {
    let run = Run::default().set("FENCEPOST_BREAK_ON", "progress,reuse_while_waited");
    let Some(told) = run.under_the_layer("a host reset under an open wait") else { return };
    told.says_of_rules(&["reuse_while_waited"]);
    const SIGABRT: i32 = 6;
    assert_eq!((told.code, told.signal), (None, Some(SIGABRT)), "{}", told.stderr);
    assert!(told.stdout.contains("before") && !told.stdout.contains("after"), "{}", told.stdout);

    let run = Run::default().set("FENCEPOST_BREAK_ON", "progress");
    let Some(told) = run.under_the_layer("a host reset under an open wait") else { return };
    told.reports(&["reuse_while_waited"]);
}

#[test]
fn the_settings_file_is_read_and_the_environment_wins() {
    let directory = common::directory("settings file");
    let file = directory.join("vk_layer_settings.txt");
    std::fs::write(&file, "fencepost_lifecycle.report = none\nfencepost_lifecycle.watch = 1\n").unwrap();
    let Some(told) = Run::default().directory(&directory).under_the_layer("a host reset under an open wait") else {
        return;
    };
    // A fault in the settings is told where reports go, once these are known.
    assert_eq!((told.code, &*told.stderr), (Some(0), ""));

    let run = Run::default().set("VK_LAYER_SETTINGS_PATH", file.display().to_string());
    let Some(told) = run.set("FENCEPOST_REPORT", "stderr").under_the_layer("a host reset under an open wait") else {
        return;
    };
    told.reports(&["reuse_while_waited"]);
    told.says(&[
        "fencepost: settings: ",
        "vk_layer_settings.txt:2: fencepost_lifecycle.watch: there is no such setting",
    ]);
}

#[test]
fn the_application_sets_what_nothing_else_does() {
    let program = "a setting of the application";
    let Some(told) = Run::default().under_the_layer(program) else { return };
    // The first instance wants no reports, the second only names another layer.
    assert_eq!(told.rules, ["reuse_while_waited (device 3)"], "{}", told.stderr);
    let Some(told) = Run::default().set("FENCEPOST_REPORT", "stderr").under_the_layer(program) else { return };
    assert_eq!(told.rules, ["reuse_while_waited (device 2)", "reuse_while_waited (device 3)"], "{}", told.stderr);
}

#[test]
fn each_device_has_its_own_names_reports_and_trace() {
    let Some(told) = Run::default().under_the_layer("a second device") else { return };
    // The child's own device is the first, the program makes two more.
    assert_eq!(told.rules, ["reuse_while_waited (device 3)"], "{}", told.stderr);
    told.says(&["on E1, generation 1"]);
    let lines = |suffix: &str| {
        let mut path = told.trace.clone();
        path.as_mut_os_string().push(suffix);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    assert!(!lines("").contains("vkCreateEvent"));
    assert!(lines(".2").contains(r#""call":"vkCreateEvent","event":"E1""#), "{}", lines(".2"));
    assert!(lines(".3").contains(r#""call":"vkResetEvent","event":"E1""#), "{}", lines(".3"));
}

#[test]
fn a_trace_that_cannot_be_written_is_told_and_changes_nothing() {
    let run = Run::default().set("FENCEPOST_TRACE", "/dev/full");
    let Some(told) = run.under_the_layer("a host reset under an open wait") else { return };
    assert_eq!((&*told.rules, told.code), (&["reuse_while_waited".to_owned()][..], Some(0)), "{}", told.stderr);
    let ends = told.stderr.lines().filter(|line| line.starts_with("fencepost: trace: the trace ends here: ")).count();
    assert_eq!(ends, 1, "{}", told.stderr);
}
