//! The examples say the same on the simulated GPU and on Vulkan, where the validation layer has nothing to add.

use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn each_example_says_the_same_on_both_drivers() {
    for example in ["ring", "upload", "adopt"] {
        let run = |driver: &str| {
            let mut command = Command::new(built(example));
            // The layer prints to the standard output unless told otherwise.
            let layer = if driver == "vulkan" { "VK_LAYER_KHRONOS_validation" } else { "" };
            command.args(["--driver", driver]).env("VK_INSTANCE_LAYERS", layer);
            let output = command.output().unwrap();
            (
                output.status.success(),
                String::from_utf8(output.stdout).unwrap(),
                String::from_utf8(output.stderr).unwrap(),
            )
        };
        let (ended_well, expected, error) = run("sim");
        assert!(ended_well && expected.lines().count() > 1, "{example}: {expected}{error}");
        let (ended_well, said, error) = run("vulkan");
        if error.contains("no Vulkan") && std::env::var_os("CI").is_none() {
            continue; // The other tests say that they are skipped.
        }
        assert!(ended_well, "{example}: {said}{error}");
        assert_eq!(said, expected, "{example}: {error}");
    }
}

#[test]
fn an_example_names_the_arguments_it_takes() {
    let output = Command::new(built("ring")).args(["--driver", "abacus"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("allowed: --driver sim"));
}

/// Cargo builds the examples with the tests, beside them.
fn built(example: &str) -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    assert!(path.ends_with(Path::new("deps")));
    path.pop();
    path.join("examples").join(example)
}
