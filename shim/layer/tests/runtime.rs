//! The runtime's own tests, under the layer and the Khronos validation layer beside it: not one report.

mod common;

use std::process::Command;

#[test]
fn the_runtimes_suite_is_not_reported() {
    let (manifest, trace) = (common::manifest(), common::directory("runtime").join("trace.ndjson"));
    let _ = std::fs::remove_file(&trace);
    let cargo = |arguments: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).args(["-p", "fencepost-vulkan"]);
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        cargo
    };
    // A test runs the examples; named targets alone do not build them.
    let built = cargo(&["build", "--examples"]).status().expect("cargo runs this test, too");
    assert!(built.success());
    let mut cargo = cargo(&["test", "--tests"]);
    common::under_the_layer(&mut cargo, &manifest);
    let path = format!("{}:/usr/share/vulkan/explicit_layer.d", manifest.display());
    let told = cargo
        .env("VK_LAYER_PATH", path)
        .env("FENCEPOST_TRACE", &trace)
        .env("FENCEPOST_BREAK_ON", "all")
        .output()
        .expect("cargo runs this test, too");
    let stderr = String::from_utf8_lossy(&told.stderr);
    assert!(!stderr.lines().any(|line| line.starts_with("fencepost: ")), "{stderr}");
    assert!(told.status.success(), "{}{stderr}", String::from_utf8_lossy(&told.stdout));
    // Tests that found no driver say so; if there was one, the layer was there, too.
    assert!(stderr.contains("SKIPPED on Vulkan") || trace.exists(), "the layer was not loaded: {stderr}");
}
