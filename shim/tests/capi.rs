//! The C interface: its header is fresh, and a C++ program works through it.

use std::ffi::{CStr, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use fencepost_vulkan::ash;
use fencepost_vulkan::ash::vk::{self, Handle};
use fencepost_vulkan::capi::*;

#[test]
fn the_header_is_what_cbindgen_makes_of_the_source() {
    let shim = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(shim.join("cbindgen.toml")).unwrap();
    let builder = cbindgen::Builder::new().with_config(config).with_src(shim.join("src/capi.rs"));
    let mut fresh = Vec::new();
    builder.generate().unwrap().write(&mut fresh);
    let (fresh, path) = (String::from_utf8(fresh).unwrap(), shim.join("include/fencepost.h"));
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(&path, &fresh).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap_or_default() == fresh, "REWRITE=1 writes {}", path.display());
}

/// An application hands its Vulkan over by plain handles.
#[test]
fn a_device_is_adopted_by_its_handles() {
    unsafe extern "C" fn count(user: *mut c_void) {
        // SAFETY: it is the counter below.
        unsafe { &*user.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: plain set-up, each call with what the one before made; every handle outlives the device made of it.
    unsafe {
        let Ok(entry) = ash::Entry::load() else {
            assert!(std::env::var_os("CI").is_none());
            return;
        };
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_2);
        let info = vk::InstanceCreateInfo::default().application_info(&application);
        let instance = entry.create_instance(&info, None).unwrap();
        let physical_device = instance.enumerate_physical_devices().unwrap()[0];
        let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
        let mut features = vk::PhysicalDeviceVulkan12Features::default().timeline_semaphore(true);
        let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).push_next(&mut features);
        let device = instance.create_device(physical_device, &info, None).unwrap();

        let calls = AtomicU32::new(0);
        let user = (&raw const calls).cast_mut().cast();
        let mut queues = [FencepostQueue { family: 0, index: 0, lock: Some(count), unlock: Some(count), user }];
        let mut adopted = FencepostAdopted {
            get_instance_proc_addr: entry.static_fn().get_instance_proc_addr as *mut c_void,
            instance: instance.handle().as_raw() as *mut c_void,
            physical_device: physical_device.as_raw() as *mut c_void,
            device: device.handle().as_raw() as *mut c_void,
            queues: queues.as_ptr(),
            queue_count: 1,
            synchronization2: false,
            host_query_reset: false,
        };
        let made = fencepost_device_adopt(&adopted);
        assert!(!made.is_null(), "{:?}", CStr::from_ptr(fencepost_last_error()));
        let (stream, buffer) = (fencepost_stream_create(made, 0), fencepost_buffer_create(made, 16));
        let mut words = [0u32; 4];
        assert_eq!(fencepost_stream_fill(stream, buffer, 0, 16, 7), FencepostStatus::Ok);
        assert_eq!(fencepost_stream_synchronize(stream), FencepostStatus::Ok);
        assert_eq!(fencepost_buffer_read(buffer, 0, words.as_mut_ptr().cast(), 16), FencepostStatus::Ok);
        assert_eq!((words, calls.load(Ordering::Relaxed)), ([7; 4], 2), "locked and unlocked once");
        fencepost_buffer_destroy(buffer);
        fencepost_stream_destroy(stream);
        fencepost_device_close(made);

        queues[0].family = 99;
        adopted.queues = queues.as_ptr();
        assert!(fencepost_device_adopt(&adopted).is_null());
        assert!(CStr::from_ptr(fencepost_last_error()).to_string_lossy().contains("family 99"));
        adopted.instance = std::ptr::null_mut();
        assert!(fencepost_device_adopt(&adopted).is_null());
        device.destroy_device(None);
        instance.destroy_instance(None);
    }
}

/// The library as a C++ program links it.
fn library() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capi");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["rustc", "--quiet", "--release", "-p", "fencepost-vulkan", "--lib", "--features", "capi"]);
    cargo.args(["--crate-type", "staticlib", "--config", "profile.release.lto=false", "--target-dir"]).arg(&target);
    assert!(cargo.status().unwrap().success());
    target.join("release/libfencepost_vulkan.a")
}

#[test]
fn a_cpp_program_has_an_event_table() {
    let shim = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (library, program) = (library(), Path::new(env!("CARGO_TARGET_TMPDIR")).join("event_table"));
    let mut compiler = Command::new(std::env::var_os("CXX").unwrap_or("c++".into()));
    compiler.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-I"]).arg(shim.join("include"));
    compiler
        .arg(shim.join("examples/event_table.cpp"))
        .arg(library)
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program);
    assert!(compiler.status().unwrap().success());
    for driver in ["sim", "vulkan"] {
        let output = Command::new(&program).arg(driver).output().unwrap();
        let (said, failed) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let no_driver = driver == "vulkan" && failed.contains("no Vulkan") && std::env::var_os("CI").is_none();
        assert!(output.status.success() || no_driver, "{driver}: {said}{failed}");
        assert!(no_driver || said.ends_with("all values are right\n"), "{driver}: {said}");
    }
}
