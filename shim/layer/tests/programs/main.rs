//! Programs in plain Vulkan under the layer: faulty ones are reported by their rule and no other, correct ones by none.

#[path = "../common/mod.rs"]
mod common;
mod correct;
mod faulty;

use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;

use common::{Gpu, Program, Run, Told};
use correct::{CORRECT, DISPATCH, PASS};
use faulty::{Ends, FAULTY, HAZARD};
use fencepost_proofs::trace::Reader;

/// What a process of its own runs.
#[test]
#[ignore = "the others start it, in a process for each program"]
fn child() {
    let faulty = FAULTY.iter().map(|faulty| (faulty.name, faulty.run));
    let others = CORRECT.iter().copied().chain([(HAZARD, faulty::hazard as fn(&Gpu))]);
    let programs: Vec<Program> = faulty.chain(others).collect();
    common::child(&programs);
}

#[test]
fn correct_programs_are_not_reported() {
    for (name, _) in CORRECT {
        let Some(told) = Run::default().under_the_layer(name) else { return };
        told.reports(&[]);
    }
}

#[test]
fn a_faulty_program_is_reported_by_its_rules_and_no_other() {
    for faulty in FAULTY.iter().filter(|faulty| faulty.ends == Ends::Well) {
        let Some(told) = Run::default().under_the_layer(faulty.name) else { return };
        told.reports(faulty.rules);
    }
}

#[test]
fn a_hang_is_explained_by_the_watchdog() {
    for faulty in FAULTY {
        let Ends::Hanging(words) = faulty.ends else { continue };
        let run = Run::default().set("FENCEPOST_WATCHDOG", "0.2").hangs_after("fencepost: watchdog: ");
        let Some(told) = run.under_the_layer(faulty.name) else { return };
        told.says_of_rules(faulty.rules);
        assert_eq!(told.code, None, "{} ended: {}", faulty.name, told.stderr);
        told.says(&[&["fencepost: watchdog: a host wait of thread 0 has lasted 200ms"], words].concat());
    }
}

/// U15. lavapipe has one queue, so the other one is written into the trace by hand.
#[test]
fn what_is_bound_to_a_dispatch_is_in_the_trace_and_can_race() {
    let Some(told) = Run::default().under_the_layer(DISPATCH) else { return };
    let text = std::fs::read_to_string(&told.trace).unwrap();
    let dispatch = text.lines().find(|line| line.contains("vkCmdDispatch")).expect("the program dispatches");
    let bound = r#""accesses":[],"bindings":[{"buffer":"B1","offset":16,"size":64,"write":false},{"buffer":"B2","offset":768,"size":128,"write":true}]"#;
    assert!(dispatch.contains(bound), "{dispatch}");

    let upload = |buffer: &str, offset: u64| {
        let access = format!(r#"{{"buffer":"{buffer}","offset":{offset},"size":16,"write":true}}"#);
        let call = |rest: &str| format!(r#"{{"n":0,"thread":1,"call":"{rest}}}"#);
        [
            call(r#"vkBeginCommandBuffer","command_buffer":"C9","flags":1"#),
            call(&format!(r#"vkCmdFillBuffer","command_buffer":"C9","accesses":[{access}]"#)),
            call(r#"vkEndCommandBuffer","command_buffer":"C9""#),
            call(r#"vkQueueSubmit","queue":"Q2","submits":[{"command_buffers":["C9"]}]"#),
        ]
    };
    let races = |buffer, offset| {
        let (mut reader, mut verdicts) = (Reader::new(), Vec::new());
        let before = text.lines().take_while(|line| !line.contains("vkQueueWaitIdle")).map(str::to_owned);
        for line in before.chain(upload(buffer, offset)) {
            reader.line(line.as_bytes(), &mut verdicts).unwrap();
        }
        verdicts.iter().map(|v| v.sentence(&|object| reader.name(object))).collect::<Vec<_>>()
    };
    for (buffer, offset) in [("B1", 16), ("B2", 768 + 127)] {
        let told = races(buffer, offset);
        assert!(told.len() == 1 && told[0].contains("(through a binding)"), "{told:?}");
    }
    for (buffer, offset) in [("B1", 80), ("B2", 0), ("B3", 0)] {
        assert_eq!(races(buffer, offset), [] as [String; 0], "{buffer} {offset}");
    }
}

/// The other queue is written into the trace by hand: it fills the same bytes, and signals in place of the host.
#[test]
fn a_render_pass_orders_what_is_around_it() {
    let Some(told) = Run::default().under_the_layer(PASS) else { return };
    let text = std::fs::read_to_string(&told.trace).unwrap();
    let other = [
        r#"{"n":0,"thread":1,"call":"vkBeginCommandBuffer","command_buffer":"C9","flags":1}"#,
        r#"{"n":0,"thread":1,"call":"vkCmdFillBuffer","command_buffer":"C9","accesses":[{"buffer":"B1","offset":0,"size":16,"write":true}]}"#,
        r#"{"n":0,"thread":1,"call":"vkEndCommandBuffer","command_buffer":"C9"}"#,
        r#"{"n":0,"thread":1,"call":"vkQueueSubmit","queue":"Q2","submits":[{"command_buffers":["C9"],"signal":[{"semaphore":"S1","value":1}]}]}"#,
    ];
    let races = |without: &str| {
        let (mut reader, mut verdicts) = (Reader::new(), Vec::new());
        for line in text.lines().filter(|line| without.is_empty() || !line.contains(without)) {
            let lines = if line.contains("vkSignalSemaphore") { &other[..] } else { &[line] };
            lines.iter().for_each(|line| reader.line(line.as_bytes(), &mut verdicts).unwrap());
        }
        assert_eq!(reader.calls_skipped, 0);
        verdicts.iter().map(|v| v.rule.name()).collect::<Vec<_>>()
    };
    assert_eq!(races(""), [] as [&str; 0]);
    for link in ["vkCmdBeginRenderPass", "vkCmdEndRenderPass"] {
        assert!(text.contains(link), "{text}");
    }
    // The chain from fragments to transfers is broken without its last link.
    assert_eq!(races("vkCmdEndRenderPass"), ["data_race"]);
}

/// The table of who reports what, in the README: ours as expected above, theirs as they say it here.
#[test]
fn the_readmes_table_is_what_the_khronos_layer_says() {
    const VERSION: &str = "1.3.239";
    let manifest = "/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json";
    if !std::fs::read_to_string(manifest).is_ok_and(|text| text.contains(VERSION)) {
        eprintln!("SKIPPED on Vulkan: the table is of the Khronos layer {VERSION}");
        return;
    }
    let Some(hazard) = Run::default().run(HAZARD, under_khronos) else { return };
    assert!(said_by_khronos(&hazard).contains(&"SYNC-HAZARD-READ-AFTER-WRITE".to_owned()), "{}", hazard.stdout);
    let mut table = format!("| program | Khronos {VERSION} | this layer |\n|---|---|---|\n");
    for faulty in FAULTY {
        let run = match faulty.ends {
            Ends::Well => Run::default(),
            Ends::Hanging(_) => Run::default().patience(Duration::from_secs(5)),
        };
        let told = run.run(faulty.name, under_khronos);
        let Some(told) = told else { return };
        let said = said_by_khronos(&told);
        let said = if said.is_empty() { "–".to_owned() } else { said.join(", ") };
        writeln!(table, "| {} | {said} | {} |", faulty.name, faulty.rules.join(", ")).unwrap();
    }
    let readme = include_str!("../../README.md");
    assert!(readme.contains(&table), "the README's table is to be\n{table}");
}

/// Core and synchronization validation.
fn under_khronos(command: &mut Command) {
    command
        .env("VK_LAYER_PATH", "/usr/share/vulkan/explicit_layer.d")
        .env("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation")
        .env("VK_LAYER_ENABLES", "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT");
}

/// The identifiers of its messages, each once.
fn said_by_khronos(told: &Told) -> Vec<String> {
    let all = format!("{}{}", told.stdout, told.stderr);
    let mut ids: Vec<String> = Vec::new();
    for part in all.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_')) {
        let known = ["VUID-", "SYNC-HAZARD-", "UNASSIGNED-"].iter().any(|prefix| part.starts_with(prefix));
        if known && !ids.iter().any(|id| id == part) {
            ids.push(part.to_owned());
        }
    }
    ids
}
