//! Programs in plain Vulkan under the layer: faulty ones are reported by their rule and no other, correct ones by none.

#[path = "../common/mod.rs"]
mod common;
mod correct;
mod faulty;

use common::{Program, Run};
use correct::{CORRECT, DISPATCH};
use faulty::{Ends, FAULTY};
use fencepost_proofs::trace::Reader;

/// What a process of its own runs.
#[test]
#[ignore = "the others start it, in a process for each program"]
fn child() {
    let faulty = FAULTY.iter().map(|faulty| (faulty.name, faulty.run));
    let programs: Vec<Program> = faulty.chain(CORRECT.iter().copied()).collect();
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
