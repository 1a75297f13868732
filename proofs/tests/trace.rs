//! `fencepost trace` as a command: what it prints and how it exits.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn recorded(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../tests/traces", &format!("{name}.ndjson")].iter().collect()
}

fn trace() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    command.arg("trace");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn with_input(input: &str, args: &[&str]) -> Output {
    let mut child =
        trace().args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_clean_trace_exits_with_0_and_a_broken_one_with_12() {
    let clean = trace().arg(recorded("pr20518-merged.one-stream")).output().unwrap();
    assert_eq!(clean.status.code(), Some(0));
    assert!(text(&clean.stdout).contains("0 broken, 155 lines"), "{}", text(&clean.stdout));
    let files = ["pr20518-merged.one-stream", "pr20518-merged.open-wait-then-synchronize"].map(recorded);
    let broken = trace().args(files).output().unwrap();
    assert_eq!(broken.status.code(), Some(12));
    let told = text(&broken.stdout);
    for part in [
        ":104: reuse_while_waited: E1 generation 1",
        "vkResetEvent (#104) on E1, generation 1: vkCmdWaitEvents (#84) in C2 is recorded, not yet submitted",
        "the wait may hang for ever, or pass on the next generation",
        "thread 0               queue Q1",
        ">       84  vkCmdWaitEvents C2 E1",
        ":112: progress: E1 generation 1",
        "it ended hang with 3 batches not known to have ended",
    ] {
        assert!(told.contains(part), "{part:?} in\n{told}");
    }
}

#[test]
fn json_says_the_same() {
    let file = recorded("pr20518-before.upload-then-wait");
    let output = trace().args(["--format", "json"]).arg(file).output().unwrap();
    assert_eq!(output.status.code(), Some(12));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let broken = &told["files"][0]["broken"][0];
    assert_eq!(broken["rule"], "lost_wait");
    assert_eq!(broken["call"]["line"], 124);
    assert_eq!(broken["conflict"]["call"], "vkCmdWaitEvents");
    assert_eq!(broken["lost"][0]["line"], 88);
    assert_eq!(told["exit"], 12);
}

#[test]
fn bad_input_exits_with_2_and_tells_what_was_found_before() {
    let broken = "{\"call\":\"vkCreateEvent\",\"event\":\"E1\"}\n\
        {\"call\":\"vkBeginCommandBuffer\",\"command_buffer\":\"C1\"}\n\
        {\"call\":\"vkBeginCommandBuffer\",\"command_buffer\":\"C1\"}\n";
    let output = with_input(&format!("{broken}oops\n"), &["-"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).contains("-:3: batch_reuse: C1"), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("fencepost: -: line 4: expected value"), "{}", text(&output.stderr));
    let missing = trace().arg("no such file").output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("no such file: No such file"), "{}", text(&missing.stderr));
    assert_eq!(trace().args(["--follow", "a", "b"]).output().unwrap().status.code(), Some(2));
}

#[test]
fn a_growing_file_is_followed() {
    let path = std::env::temp_dir().join(format!("fencepost-follow-{}.ndjson", std::process::id()));
    let mut file = std::fs::File::create(&path).unwrap();
    let mut child = trace().arg("--follow").arg(&path).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // Half a line is not a line.
    write!(file, "{{\"call\":\"vkBeginCommandBuffer\",\"command_buffer\":\"C1\"}}\n{{\"call\":\"vkBegin").unwrap();
    file.flush().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    writeln!(file, "CommandBuffer\",\"command_buffer\":\"C1\"}}").unwrap();
    let told = lines.next().unwrap().unwrap();
    assert!(told.ends_with(":2: batch_reuse: C1"), "{told}");
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_file(path).unwrap();
}
