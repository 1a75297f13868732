//! The trace checker: recorded traces, the faults of FAULTS.md as stories, and for each a neighbour that is correct.

mod exact;
mod reader;
mod story;

use std::path::Path;

use fencepost::judge::Verdict;
use fencepost_proofs::trace::Reader;

/// What recorded traces must report: line, rule, object, and the line that it conflicts with.
const RECORDED: [(&str, &[&str]); 9] = [
    ("pr20518-before.one-stream", &["108 lost_wait E1 (89)", "148 lost_wait E1 (130)"]),
    (
        "pr20518-before.rerecord-while-other-waits",
        &[
            "98 reuse_while_waited E1 (88)",
            "99 batch_reuse F6 (84)",
            "108 batch_reuse C5 (102)",
            "109 reuse_while_waited E1 (88)",
            "110 batch_reuse F6 (102)",
            "138 lost_wait E1 (88)",
            "138 lost_wait E1 (93)",
            "174 reuse_while_waited E1 (166)",
            "175 batch_reuse F6 (162)",
            "184 batch_reuse C5 (178)",
            "185 reuse_while_waited E1 (166)",
            "186 batch_reuse F6 (178)",
            "211 lost_wait E1 (166)",
            "211 lost_wait E1 (170)",
        ],
    ),
    ("pr20518-before.upload-then-wait", &["124 lost_wait E1 (90), lost too: 88"]),
    ("pr20518-merged.one-stream", &[]),
    (
        "pr20518-merged.rerecord-while-other-waits",
        &[
            "99 reuse_while_waited E1 (85)",
            "112 stale_wait E1 (103)",
            "112 stale_wait E1 (103)",
            "170 reuse_while_waited E3 (155)",
            "183 stale_wait E3 (174)",
            "183 stale_wait E3 (174)",
        ],
    ),
    ("pr20518-merged.open-wait-then-synchronize", &["104 reuse_while_waited E1 (84)", "112 progress E1 (104)"]),
    ("pr20518-merged.two-stage-pipeline", &[]),
    (
        "pr25229-before.copy-overtakes-wait",
        &["91 data_race B1 (79)", "143 data_race B1 (132)", "194 data_race B1 (183)", "245 data_race B1 (234)"],
    ),
    ("pr25229-merged.copy-overtakes-wait", &[]),
];

#[test]
fn recorded_traces_report_what_they_must_and_nothing_else() {
    for (name, expected) in RECORDED {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces").join(format!("{name}.ndjson"));
        let text = std::fs::read_to_string(path).unwrap();
        let mut reader = Reader::new();
        let mut verdicts = Vec::new();
        for line in text.lines() {
            reader.line(line.as_bytes(), &mut verdicts).unwrap();
        }
        reader.finish(&mut verdicts);
        let told: Vec<String> = verdicts.iter().map(|v| tell(&reader, v)).collect();
        assert_eq!(told, expected, "{name}");
        assert_eq!((reader.calls_skipped, reader.fields_skipped), (0, 0), "{name}");
    }
}

fn tell(reader: &Reader, verdict: &Verdict) -> String {
    let conflict = verdict.conflict.map_or(String::new(), |site| format!(" ({})", site.n));
    let lost: Vec<String> = verdict.lost.iter().map(|site| site.n.to_string()).collect();
    let lost = if lost.is_empty() { String::new() } else { format!(", lost too: {}", lost.join(" ")) };
    format!("{} {} {}{conflict}{lost}", verdict.site.n, verdict.rule.name(), reader.name(verdict.object))
}

// The faults that other tools do not see, by their numbers in FAULTS.md -------------------------------------

/// A story, its name, and the rules that it breaks.
type Told = (&'static str, &'static [&'static str], &'static str);

const FAULTS: &[Told] = &[
    (
        "U1 a wait, and a reset in another command buffer, with no dependency between",
        &["reuse_while_waited E1"],
        "create E1
         C1 = set E1 | wait E1
         C2 = reset E1
         Q1: C1
         Q1: C2",
    ),
    (
        "U2 two frames in flight, the reset not ordered after the previous frame's wait",
        &["reuse_while_waited E1"],
        "create E1
         C1 = reset E1 | barrier | set E1
         C2 = wait E1
         Q1: C1 C2
         C3 = reset E1 | barrier | set E1
         C4 = wait E1
         Q1: C3 C4",
    ),
    (
        "U3 a waiter is held back, and a recycler is queued behind it",
        &["reuse_while_waited E1"],
        "create E1
         create S1
         C1 = set E1
         Q1: C1
         C2 = wait E1
         Q1: C2, wait S1=1
         C3 = reset E1 | barrier | set E1
         Q1: C3
         signal S1=1",
    ),
    (
        "U4 a wait in a primary, the reset in a secondary that it executes",
        &["reuse_while_waited E1"],
        "create E1
         C2 = reset E1
         C1 = set E1 | wait E1 | execute C2
         Q1: C1",
    ),
    (
        "U5 two waits on one event, a dependency from the last only",
        &["reuse_while_waited E1"],
        "create E1
         C1 = set E1 | wait E1 compute | wait E1 transfer | barrier transfer all | reset E1
         Q1: C1",
    ),
    (
        "U6 a wait pending on one queue, the event recycled on another",
        &["wrong_queue E1", "reuse_while_waited E1", "reuse_while_waited E1"],
        "create E1
         C1 = set E1 | wait E1
         Q1: C1
         C2 = reset E1 | barrier | set E1
         Q2: C2",
    ),
    (
        "U7 a wait recorded for generation 1 is submitted when generation 2 is set",
        &["reuse_while_waited E1", "stale_wait E1"],
        "create E1
         C1 = set E1
         Q1: C1, fence F1
         C2 = wait E1
         wait F1
         reset E1
         C3 = set E1
         Q1: C3
         Q1: C2",
    ),
    (
        "U8 generation 2 is set with no reset in between",
        &["stale_wait E1"],
        "create E1
         C1 = set E1 | wait E1
         Q1: C1
         C2 = fill B1 | set E1
         Q1: C2
         C3 = wait E1
         Q1: C3",
    ),
    (
        "U9 generation 2's wait is ended by a late set of generation 1",
        &["stale_wait E1"],
        "create E1
         C1 = set E1 compute
         Q1: C1
         reset E1
         C2 = set E1 transfer
         Q1: C2
         C3 = wait E1
         Q1: C3",
    ),
    (
        "U10 the host sets while a queue's reset is pending, then a wait",
        &["progress E1"],
        "create E1
         C1 = reset E1
         Q1: C1
         set E1
         C2 = wait E1
         Q1: C2",
    ),
    (
        "U11 one wait on two events, one of which is never set",
        &["progress E2"],
        "create E1
         create E2
         C1 = set E1
         C2 = wait E1+E2
         Q1: C1
         Q1: C2",
    ),
    ("U12 a value that nobody will signal", &["progress S1"], "create S1\nQ1: C1, signal S1=1\nhold S1=2"),
    ("U12 a submit waits for such a value", &["progress S1"], "create S1\nQ1: C1, wait S1=2"),
    ("U12 a submit waits for what it signals", &["progress S1"], "create S1\nQ1: C1, wait S1=1, signal S1=1"),
    (
        "U12 a cycle on one queue",
        &["progress S1"],
        "create S1
         Q1: C1, wait S1=1
         Q1: C2, signal S1=1",
    ),
    (
        "U12 a cycle on two queues",
        &["progress S2"],
        "create S1
         create S2
         Q1: C1, wait S1=1, signal S2=1
         Q2: C2, wait S2=1, signal S1=1",
    ),
    (
        "U13 the host resets while a set is pending: the next generation starts signalled",
        &["stale_wait E1"],
        "create E1
         C1 = set E1
         Q1: C1
         reset E1
         C2 = set E1
         C3 = wait E1
         Q1: C2
         Q1: C3",
    ),
    (
        "U14 a wait in an open command buffer, the event recorded again and reset, then the buffer is submitted",
        &["reuse_while_waited E1", "progress E1"],
        "create E1
         create S1
         C1 = set E1
         Q1: C1, signal S1=1
         open C2 = wait E1
         wait S1=1
         reset E1
         close C2
         Q1: C2",
    ),
    (
        "U14 the slot is set again for a later generation meanwhile",
        &["reuse_while_waited E1", "stale_wait E1"],
        "create E1
         create S1
         C1 = set E1
         Q1: C1, signal S1=1
         open C2 = wait E1
         wait S1=1
         reset E1
         C3 = set E1
         Q1: C3, signal S1=2
         close C2
         Q1: C2",
    ),
    (
        "U15 an upload overwrites what a dispatch on another queue reads through a binding",
        &["data_race B1"],
        "create B1
         create B2
         C1 = dispatch B1.r B2.w
         C2 = fill B1
         Q1: C1
         Q2: C2",
    ),
];

/// One rule each, and nothing else.
const ONE_RULE: &[Told] = &[
    (
        "an event is reset under a submitted wait",
        &["reuse_while_waited E1"],
        "create E1\nC1 = set E1 | wait E1\nQ1: C1\nreset E1",
    ),
    (
        "an event is destroyed under a submitted wait",
        &["reuse_while_waited E1"],
        "create E1\nC1 = set E1 | wait E1\nQ1: C1\ndestroy E1",
    ),
    (
        "an event is destroyed under a submitted set",
        &["reuse_while_waited E1"],
        "create E1\nC1 = set E1\nQ1: C1\ndestroy E1",
    ),
    (
        "a command buffer is submitted whose event is gone",
        &["reuse_while_waited E1"],
        "create E1\nset E1\nC1 = wait E1\ndestroy E1\nQ1: C1",
    ),
    (
        "a wait is never submitted, and its pool goes on",
        &["lost_wait E1"],
        "create E1\ncreate P1 C1 C2 C3\nC1 = set E1\nQ1: C1\nC2 = wait E1\nC3 = copy B1 B2\nQ1: C3\nidle\nreset P1",
    ),
    (
        "a wait is refused with its submission, and its pool goes on",
        &["refusal E1"],
        "create E1\ncreate P1 C1 C2 C3\nC1 = set E1\nQ1: C1\nC2 = wait E1\nQ1: C2, refused\nC3 = copy B1 B2\nQ1: C3\nidle\nreset P1",
    ),
    (
        "the answer of an earlier generation is taken for the newest",
        &["early_completion E1"],
        "create E1\nC1 = set E1\nQ1: C1, fence F1\nwait F1\nC2 = fill B1 | set E1\nQ1: C2\nstatus E1 set",
    ),
    ("a command buffer is reset in flight", &["batch_reuse C1"], "C1 = fill B1\nQ1: C1\nreset C1"),
    ("a command buffer is begun in flight", &["batch_reuse C1"], "C1 = fill B1\nQ1: C1\nC1 = fill B1"),
    ("a command buffer is begun twice", &["batch_reuse C1"], "open C1 = fill B1\nC1 = fill B1"),
    ("a command buffer is freed in flight", &["batch_reuse C1"], "C1 = fill B1\nQ1: C1\nfree C1"),
    ("a pool is reset in flight", &["batch_reuse C1"], "create P1 C1\nC1 = fill B1\nQ1: C1\nreset P1"),
    ("a command buffer is submitted twice at a time", &["batch_reuse C1"], "alone C1 = fill B1\nQ1: C1\nQ1: C1"),
    ("a one-time command buffer is submitted again", &["batch_reuse C1"], "once C1 = fill B1\nQ1: C1\nidle\nQ1: C1"),
    ("an open command buffer is submitted", &["batch_reuse C1"], "open C1 = fill B1\nQ1: C1"),
    (
        "a secondary command buffer is reset in flight",
        &["batch_reuse C2"],
        "C2 = fill B1\nC1 = execute C2\nQ1: C1\nreset C2",
    ),
    ("a fence is reset in flight", &["batch_reuse F1"], "C1 = fill B1\nQ1: C1, fence F1\nreset F1"),
    ("a fence is destroyed in flight", &["batch_reuse F1"], "create F1\nC1 = fill B1\nQ1: C1, fence F1\ndestroy F1"),
    (
        "a fence proves its first batch, not its second",
        &["batch_reuse F1", "batch_reuse C2"],
        "C1 = fill B1\nQ1: C1, fence F1\nreset F1\nC2 = fill B1\nQ1: C2, fence F1\nwait F1\nreset C2",
    ),
    (
        "a value is signalled behind a greater one",
        &["timeline_order S1"],
        "create S1\nQ1: C1, signal S1=5\nQ1: C2, signal S1=3",
    ),
    ("a value is signalled twice", &["timeline_order S1"], "create S1\nQ1: C1, signal S1=1\nQ1: C2, signal S1=1"),
    (
        "two queues signal one timeline, unordered",
        &["timeline_order S1"],
        "create S1\nQ1: C1, signal S1=1\nQ2: C2, signal S1=2",
    ),
    ("one batch signals a timeline twice", &["timeline_order S1"], "create S1\nQ1: C1, signal S1=1 S1=2"),
    ("the host signals what was reached", &["timeline_order S1"], "create S1\nsignal S1=2\nsignal S1=2"),
    ("the host overtakes a queue", &["timeline_order S1"], "create S1\nQ1: C1, signal S1=1\nsignal S1=2"),
    (
        "an event is waited for on another queue",
        &["wrong_queue E1"],
        "create E1\ncreate S1\nC1 = set E1\nQ1: C1, signal S1=1\nC2 = wait E1\nQ2: C2, wait S1=1",
    ),
    ("a wait that nothing sets", &["progress E1"], "create E1\nC1 = wait E1\nQ1: C1"),
    (
        "a wait whose event is reset before",
        &["progress E1"],
        "create E1\nC1 = set E1\nQ1: C1, fence F1\nwait F1\nC2 = reset E1 | barrier | wait E1\nQ1: C2",
    ),
    ("events are left when the device goes", &["bounded E1"], "create E1\ncreate E2\ndestroy E2\ndestroy D"),
    (
        "a copy reads what another queue writes",
        &["data_race B1"],
        "create B1\ncreate B2\nC1 = fill B1\nC2 = copy B1 B2\nQ1: C1\nQ2: C2",
    ),
    (
        "a semaphore orders other stages",
        &["data_race B1"],
        "create B1\ncreate S1\nC1 = fill B1\nC2 = fill B1\nQ1: C1, signal S1=1\nQ2: C2, wait S1=1@compute",
    ),
    (
        "a wait before its signal, of another range's order",
        &["data_race B1"],
        "create B1\ncreate S1\nC1 = fill B1\nC2 = fill B1\nQ2: C2, wait S1=1\nQ3: C3, signal S1=1\nQ1: C1",
    ),
];

/// Correct programs.
const CORRECT: &[(&str, &str)] = &[
    (
        "a barrier orders the reset after the wait",
        "create E1\nC1 = set E1 | wait E1\nC2 = barrier | reset E1\nQ1: C1\nQ1: C2",
    ),
    (
        "a dependency from each of two waits",
        "create E1
         C1 = set E1 | wait E1 compute | wait E1 transfer | barrier transfer all | barrier compute all | reset E1
         Q1: C1",
    ),
    (
        "frames: set, wait, barrier, reset, barrier, again and again",
        "create E1
         C1 = set E1
         C2 = wait E1 | barrier | reset E1 | barrier
         Q1: C1
         Q1: C2
         Q1: C1
         Q1: C2
         Q1: C1
         Q1: C2",
    ),
    (
        "the host resets between frames",
        "create E1
         C1 = set E1
         C2 = wait E1
         Q1: C1 C2, fence F1
         wait F1
         reset E1
         reset F1
         Q1: C1 C2, fence F1
         wait F1
         destroy E1",
    ),
    (
        "command buffers are recorded in parallel, the wait's first",
        "create E1
         C1 = set E1 | wait E1
         Q1: C1
         open C2 = wait E1
         C3 = barrier | reset E1 | barrier | set E1
         close C2
         Q1: C3 C2",
    ),
    ("the host sets before", "create E1\nset E1\nC1 = wait E1\nQ1: C1\nidle\ndestroy E1"),
    (
        "an open command buffer is dropped at the end",
        "create E1\ncreate P1 C1 C2\nC1 = set E1\nQ1: C1\nopen C2 = wait E1\nidle\ndestroy P1\ndestroy E1",
    ),
    ("a wait before its signal", "create S1\nQ1: C1, wait S1=1\nQ2: C2, signal S1=1\nidle\ndestroy S1"),
    ("a wait before the host's signal", "create S1\nQ1: C1, wait S1=1\nsignal S1=1\nidle"),
    (
        "queues take turns on one timeline",
        "create S1
         create B1
         C1 = fill B1
         C2 = fill B1
         Q1: C1, signal S1=1
         Q2: C2, wait S1=1, signal S1=2
         Q1: C1, wait S1=2, signal S1=3",
    ),
    ("values are skipped", "create S1\nQ1: C1, signal S1=5\nQ1: C2, signal S1=9\nwait S1=7"),
    (
        "a binary semaphore orders two queues",
        "create B1\ncreate S1\nC1 = fill B1\nC2 = fill B1\nQ1: C1, signal S1\nQ2: C2, wait S1, signal S2\nQ1: C1, wait S2, signal S1\nQ2: C2, wait S1",
    ),
    (
        "a barrier carries a semaphore's order to other stages",
        "create B1\ncreate S1\nC1 = fill B1\nC2 = barrier compute transfer | fill B1\nQ1: C1, signal S1=1\nQ2: C2, wait S1=1@compute",
    ),
    ("a host wait orders two queues", "create B1\nC1 = fill B1\nC2 = fill B1\nQ1: C1, fence F1\nwait F1\nQ2: C2"),
    (
        "a later batch's fence proves the earlier",
        "C1 = fill B1\nC2 = fill B1\nQ1: C1\nQ1: C2, fence F1\npoll F1\nreset C1\nreset C2",
    ),
    (
        "a semaphore of another queue proves it, too",
        "create S1\nC1 = fill B1\nC2 = fill B2\nQ1: C1, signal S1=1\nQ2: C2, wait S1=1, fence F1\nwait F1\nreset C1",
    ),
    ("two queues read", "create B1\ncreate B2\ncreate B3\nC1 = copy B1 B2\nC2 = copy B1 B3\nQ1: C1\nQ2: C2"),
    ("two queues write other bytes", "create B1\nC1 = fill B1 0 64\nC2 = fill B1 64 64\nQ1: C1\nQ2: C2"),
    (
        "two queues read through bindings",
        "create B1\ncreate B2\ncreate B3\nC1 = dispatch B1.r B2.w\nC2 = dispatch B1.r B3.w\nQ1: C1\nQ2: C2",
    ),
    ("a one-time command buffer is recorded again", "once C1 = fill B1\nQ1: C1\nidle\nonce C1 = fill B1\nQ1: C1"),
    ("simultaneous use", "C1 = fill B1\nQ1: C1\nQ1: C1"),
    (
        "a refused submission is submitted again",
        "create E1\nC1 = set E1 | wait E1\nQ1: C1, refused\nQ1: C1, fence F1\nwait F1\nreset E1",
    ),
    (
        "the status of a set that is done",
        "create E1\nC1 = set E1\nQ1: C1\nstatus E1 set\nidle\nstatus E1 set\ndestroy E1\ndestroy D",
    ),
    (
        "an event in a ring of two, each frame on its own",
        "create E1
         create E2
         C1 = set E1 | wait E1
         C2 = set E2 | wait E2
         Q1: C1, fence F1
         Q1: C2, fence F2
         wait F1
         reset E1
         reset F1
         Q1: C1, fence F1
         wait F2
         reset E2
         reset F2
         Q1: C2, fence F2",
    ),
];

fn check(told: &[Told]) {
    let mut wrong = String::new();
    for (name, expected, story) in told {
        let broken = story::broken(story);
        if broken != *expected {
            wrong += &format!("{name}: {broken:?}, not {expected:?}\n");
            for (_, _, sentence) in story::judged(story) {
                wrong += &format!("    {sentence}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn faults_that_other_tools_miss_are_reported() {
    check(FAULTS);
    let numbers: std::collections::BTreeSet<&str> =
        FAULTS.iter().filter_map(|(name, ..)| name.split(' ').next()).collect();
    assert_eq!(numbers.len(), 15);
}

#[test]
fn one_fault_is_reported_by_its_rule_and_no_other() {
    check(ONE_RULE);
}

#[test]
fn correct_programs_are_not_reported() {
    let told: Vec<Told> = CORRECT.iter().map(|(name, story)| (*name, &[][..], *story)).collect();
    check(&told);
}
