//! The scripts in `scenarios/`, and that they and tests elsewhere cover every case from the field.
//!
//! `REWRITE=1 cargo test -p fencepost-tests --test scenarios` writes what the calls lead to now. Whoever does
//! that reads what changed.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use fencepost::Rule;
use fencepost_tests::scenario::{Call, Script};

/// Sequences from public bug reports, by the names that the scripts' titles have for them.
const CASES: [&str; 45] = [
    "L1", "L2", "L3", "L3b", "L4", "L5", "L6", "L8", "L9", "L11", // llama.cpp
    "A1", "A4", "A6", "A10", "A12", // ANGLE
    "D2", "D3", // DXVK
    "V1", "V3", "V5", // vkd3d-proton
    "W2", "W4", "W5", // wgpu
    "K2", "K3", // vulkano
    "N1", "N3", // Dawn
    "P1", "P5", "P6", "P7", "P9", "P10", "P11", // users of CUDA and HIP
    "R2", "R4", "R5", // IREE
    "C2", // CubeCL
    "G3", "G6", // validation layers
    "X1", "X2", "X3", "X7", // MoltenVK, o3de, tracy, DXVK
    "M3", // Turnip
];

/// Cases that a script cannot show, with the test that does: file and function.
const ELSEWHERE: [(&str, &str, &str); 10] = [
    // Memory of the caller, threads and locks are the runtime's.
    ("L8", "shim/tests/cases.rs", "l8_a_host_buffer_is_kept_until_the_device_has_read_it"),
    ("A6", "shim/tests/cases.rs", "a6_a_submit_that_loses_the_device_deadlocks_nobody"),
    ("P1", "shim/tests/cases.rs", "p1_an_event_outlives_the_thread_that_made_it"),
    ("P7", "shim/tests/cases.rs", "p7_a_recording_on_another_device_names_both"),
    ("R4", "shim/tests/cases.rs", "r4_values_are_dropped_outside_of_every_lock"),
    // Inside of a call: a script makes whole ones.
    ("W2", "model/tests/machine.rs", "w2_a_value_belongs_to_whoever_submits_it"),
    ("R5", "model/tests/machine.rs", "r5_the_value_is_published_before_anybody_wakes"),
    ("K3", "model/tests/machine.rs", "k3_a_reply_that_was_not_asked_for_is_an_error"),
    // The machine chooses the values; no call could give a wrong one.
    ("D3", "model/tests/rules.rs", "timeline_order_values_rise_and_what_the_host_goes_by_never_falls"),
    ("G3", "model/tests/rules.rs", "timeline_order_values_rise_and_what_the_host_goes_by_never_falls"),
];

#[test]
fn every_script_leads_to_what_it_says() {
    let mut complaints = Vec::new();
    for (path, text) in scripts() {
        let file = name(&path);
        let script = text.parse::<Script>().unwrap_or_else(|error| panic!("{file}:{error}"));
        let outcome = script.run().unwrap_or_else(|error| panic!("{file}:{error}"));
        let is_sound = outcome.broken.is_empty() && outcome.unmet == 0;
        if is_sound && std::env::var_os("REWRITE").is_some() {
            let new = outcome.script.to_string();
            if new != text {
                fs::write(&path, new).unwrap();
                // Not through eprintln, which is silent in a test that passes.
                let warning = "was rewritten; read what changed, nobody else checks that it is right";
                writeln!(std::io::stderr(), "warning: {file} {warning}").unwrap();
            }
            continue;
        }
        let differences = script.differences(&outcome.script);
        complaints.extend(differences.iter().take(3).map(|(line, what)| format!("{file}:{line}: {what}")));
        if differences.len() > 3 {
            complaints.push(format!("{file}: and {} calls more\n", differences.len() - 3));
        }
        if !is_sound {
            let (rules, unmet) = (&outcome.broken, outcome.unmet);
            complaints.push(format!("{file}: {unmet} expectations are not met, rules broken: {rules:?}\n"));
        } else if differences.is_empty() && text != script.to_string() {
            complaints.push(format!("{file} is not written as REWRITE=1 would write it\n"));
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn every_case_is_in_a_script_or_elsewhere() {
    let mut covered: Vec<String> = Vec::new();
    for (path, text) in scripts() {
        let script: Script = text.parse().unwrap_or_else(|error| panic!("{}:{error}", name(&path)));
        let Some((_, cases)) = script.title().split_once("case ") else { continue };
        let known = |id: &&str| CASES.contains(id);
        assert!(cases.split(", ").all(|id| known(&id)), "{}: {cases:?} is not a list of cases", name(&path));
        covered.extend(cases.split(", ").map(String::from));
    }
    for (id, file, function) in ELSEWHERE {
        let source = fs::read_to_string(root().join(file)).unwrap();
        assert!(source.contains(&format!("#[test]\nfn {function}()")), "{file} has no test {function}");
        covered.push(id.into());
    }
    let missing: Vec<_> = CASES.iter().filter(|id| !covered.iter().any(|c| c == *id)).collect();
    assert!(missing.is_empty(), "nothing covers {missing:?}");
}

#[test]
fn a_line_that_cannot_be_read_is_explained() {
    let made = "stream A on q7\nevent E";
    for (text, error) in [
        ("", "1: a script begins with a title; allowed: a line `# where this comes from`"),
        (
            "    flush A",
            "2: `flush A` is indented, and no call is above it; allowed: what is indented is expected of the \
             call right above it",
        ),
        (
            "flash A",
            "2: `flash` is no call; allowed: stream NAME on qN, companion STREAM of STREAM, slots on|off on qN, event NAME, \
             work STREAM [NAME], record EVENT STREAM, wait STREAM EVENT, flush STREAM, synchronize EVENT|STREAM HOST, \
             return HOST, timeout HOST, query EVENT, destroy EVENT|STREAM, refuse \
             timeline|begin|submit|create|reset, lose, device [qN] [STEPS], poll [STREAM], reached STREAM \
             VALUE, expect WORK after WORK, slots, batches",
        ),
        ("stream A q0", "2: `stream A q0` is not how `stream` is written; allowed: stream NAME on qN"),
        ("stream A on q8", "2: `q8` is no queue; allowed: q0 to q7"),
        ("event 1", "2: `1` is no name; allowed: a letter, then letters, digits and _, 32 in all at most"),
        ("refuse wake", "2: `wake` cannot be refused; allowed: timeline, begin, submit, create, reset"),
        ("reached A 18446744073709551616", "2: `18446744073709551616` is no number; allowed: 0 to 2^64 - 1"),
        ("flush A", "2: `A` is neither a stream nor an event; allowed: nothing, before a stream or an event is made"),
        (&format!("{made}\nflush B"), "4: `B` is neither a stream nor an event; allowed: A, E"),
        (&format!("{made}\nflush E"), "4: `E` is an event; allowed: a stream"),
        (&format!("{made}\nquery A"), "4: `A` is a stream; allowed: an event"),
        (&format!("{made}\nevent A"), "4: `A` has been made; allowed: another name, or `destroy A` before"),
        (&format!("{made}\nwork A x\nwork A x"), "5: `x` is another work's; allowed: a name for each work, or none"),
    ] {
        let text = if text.is_empty() { String::new() } else { format!("# a mistake\n{text}") };
        let told = text.parse().and_then(|script: Script| script.run()).map(|outcome| outcome.script.to_string());
        assert_eq!(told.map_err(|error| error.to_string()), Err(error.to_string()));
    }
}

/// The device has not got that far, and whoever says so breaks rules that the script then shows.
#[test]
fn a_broken_rule_is_part_of_the_story() {
    let text = "# a host that lies\nstream A on q0\nevent E\nwork A\nrecord E A\nflush A\nreached A 1\nquery E\n";
    let outcome = text.parse::<Script>().unwrap().run().unwrap();
    assert_eq!(outcome.broken, [Rule::EarlyCompletion]);
    assert!(outcome.script.to_string().contains("reached A 1\n    breaks early_completion: Reported { covers: 1 }"));
}

#[test]
fn an_expectation_that_is_not_met_is_part_of_the_story() {
    let text = "# two works that nothing orders\nstream A on q0\nwork A x\nwork A y\nexpect y after x\nflush A\n\
                device 2\nexpect y after x\ndevice\nexpect y after x\n";
    let outcome = text.parse::<Script>().unwrap().run().unwrap();
    assert_eq!((outcome.unmet, outcome.broken), (3, vec![]));
    let story = outcome.script.to_string();
    for why in ["y has not begun", "x has not ended", "y began before x had ended"] {
        assert!(story.contains(&format!("expect y after x\n    not so: {why}\n")), "{story}");
    }
}

#[test]
fn a_difference_shows_what_was_expected_and_what_came() {
    let text = "# a difference\nstream A on q0\n    timeline t0 on q1\n    A is t0\n";
    let script: Script = text.parse().unwrap();
    let told = script.differences(&script.run().unwrap().script);
    let shown = "stream A on q0\n  - timeline t0 on q1\n  + timeline t0 on q0\n    A is t0\n";
    assert_eq!(told, [(2, shown.to_string())]);
}

/// Scripts put together from lines of others, whole and in pieces: an error or an outcome, and never a panic.
#[test]
fn nonsense_is_read_run_and_written() {
    let all: Vec<String> = scripts().into_iter().map(|(_, text)| text).collect();
    let lines: Vec<&str> = all.iter().flat_map(|text| text.lines()).filter(|line| !line.starts_with(' ')).collect();
    let words =
        all.iter().flat_map(|text| text.split_whitespace()).chain(["\u{e9}", "\0", "q", "-1", "q-1", "1e9", "#"]);
    let words: Vec<&str> = words.collect();
    let mut random = fastrand::Rng::with_seed(20518);
    let (mut ran, mut refused) = (0, 0);
    for _ in 0..2_000 {
        let mut text = String::from("# nonsense\nstream A on q0\nstream B on q0\nevent E\nevent F\n");
        for _ in 0..random.usize(1..40) {
            let line = lines[random.usize(..lines.len())];
            let nonsense = [words[random.usize(..words.len())], words[random.usize(..words.len())]].join(" ");
            let line = if random.u8(..100) == 0 { &nonsense } else { line };
            // Most of what cannot be made at this place is left out, so that scripts get long.
            let longer = format!("{text}{line}\n");
            let runs = longer.parse::<Script>().and_then(|script| script.run()).is_ok();
            if runs || random.u8(..200) == 0 {
                text = longer;
            }
        }
        let Ok(script) = text.parse::<Script>() else {
            refused += 1;
            continue;
        };
        assert_eq!(script.to_string().parse(), Ok(script.clone()));
        let calls: Vec<Call> = script.calls().cloned().collect();
        assert!(calls.iter().all(|call| call.to_string().parse().as_ref() == Ok(call)));
        match script.run() {
            Ok(outcome) => {
                ran += 1;
                // What is told does not depend on remarks and expectations.
                let again = Script::new("again", calls).run().unwrap();
                assert_eq!(outcome.broken, again.broken);
            }
            Err(_) => refused += 1,
        }
    }
    assert!(ran > 1_000 && refused > 10, "{ran} ran, {refused} refused");
}

fn scripts() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn name(path: &Path) -> String {
    format!("tests/scenarios/{}", path.file_name().unwrap_or_default().to_string_lossy())
}
