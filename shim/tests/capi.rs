//! The C interface: its header is fresh, and a C++ program works through it.

use std::path::{Path, PathBuf};
use std::process::Command;

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
