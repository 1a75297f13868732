//! Programs in plain Vulkan under the layer: faulty ones are reported by their rule and no other, correct ones by none.

#[path = "../common/mod.rs"]
mod common;
mod correct;
mod faulty;

use common::{Program, Run};
use correct::CORRECT;
use faulty::{Ends, FAULTY};

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
