//! The whole life of a slot as two files that can be read: a table and a graph.
//!
//! `REWRITE=1 cargo test -p fencepost --test lifecycle` writes them again.

use std::fmt::Write as _;
use std::path::Path;

use fencepost::{Lifecycle, SlotInput, Transition};

#[test]
fn the_table_is_the_committed_one() {
    let mut table = format!("{:<16}", "");
    Lifecycle::ALL.iter().for_each(|state| write!(table, "{:<14}", format!("{state:?}")).unwrap());
    for input in SlotInput::ALL {
        write!(table, "\n{:<16}", format!("{input:?}")).unwrap();
        Lifecycle::ALL.iter().for_each(|state| write!(table, "{:<14}", answer(state.on(input))).unwrap());
    }
    let table = table.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n");
    compare("lifecycle.txt", &table);
}

#[test]
fn the_graph_is_the_committed_one() {
    let mut graph = String::from("digraph lifecycle {\n    rankdir=LR\n    Gone [shape=point]\n");
    for state in Lifecycle::ALL {
        for input in SlotInput::ALL {
            let (next, style) = match state.on(input) {
                Transition::To(next) => (format!("{next:?}"), ""),
                Transition::Gone => ("Gone".into(), ""),
                Transition::Stay => (format!("{state:?}"), " style=dashed"),
                Transition::Refused => continue,
            };
            writeln!(graph, "    {state:?} -> {next} [label={input:?}{style}]").unwrap();
        }
    }
    compare("lifecycle.dot", &(graph + "}\n"));
}

#[test]
fn only_a_reusable_slot_is_reset_recorded_or_destroyed() {
    for input in [SlotInput::Reset, SlotInput::Record, SlotInput::Destroy] {
        for state in Lifecycle::ALL {
            assert_eq!(state.on(input) == Transition::Refused, state != Lifecycle::Reusable, "{input:?} in {state:?}");
        }
    }
}

#[test]
fn only_the_current_generation_takes_waits() {
    for state in Lifecycle::ALL {
        assert_eq!(state.on(SlotInput::Wait) == Transition::Refused, state != Lifecycle::Recorded, "{state:?}");
    }
}

fn answer(transition: Transition) -> String {
    match transition {
        Transition::To(state) => format!("to {state:?}"),
        other => format!("{other:?}").to_lowercase(),
    }
}

fn compare(name: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
    if std::env::var("REWRITE").is_ok_and(|v| v == "1") {
        eprintln!("warning: REWRITE=1: {} is written, not compared", path.display());
        std::fs::write(&path, generated).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "{name} differs from the code; if the code is right, run again with REWRITE=1\n\
         committed:\n{committed}\ngenerated:\n{generated}"
    );
}
