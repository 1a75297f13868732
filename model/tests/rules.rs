//! Each rule: what breaks it, and the near miss that does not.
//!
//! A verdict names the rules that have something to say, and what they say: `stale_wait broken`.

use std::collections::BTreeSet;

use fencepost::{Command, Family, Ghost, Gpu, Occurrence as O, Rule, Signal, Submit, Work};

const SILENT: [&str; 0] = [];

/// DESIGN's table.
const NAMES: [&str; 12] = [
    "reuse_while_waited",
    "stale_wait",
    "lost_wait",
    "early_completion",
    "batch_reuse",
    "timeline_order",
    "wrong_queue",
    "unrecorded_wait",
    "progress",
    "bounded",
    "loss",
    "refusal",
];

#[test]
fn the_rules_are_those_of_the_design_in_its_order() {
    assert_eq!(Rule::ALL.map(Rule::name), NAMES);
    assert_eq!(NAMES.iter().collect::<BTreeSet<_>>().len(), 12);
    let matters: BTreeSet<_> = Rule::ALL.iter().map(|r| r.matters()).collect();
    assert_eq!(matters.len(), 12, "each matters for a reason of its own");
    assert!(Rule::ALL.is_sorted() && Rule::ALL.iter().enumerate().all(|(at, rule)| *rule as usize == at));
}

#[test]
fn reuse_while_waited_no_slot_is_reset_under_a_wait() {
    let mut gpu = vulkan();
    let [waited, free] = [gpu.create_event(), gpu.create_event()];
    gpu.set_event(waited);
    commands(&mut gpu, 0, &[Command::Wait(waited)]);
    assert_eq!(says(&gpu, O::HostReset { event: waited }), ["reuse_while_waited broken"], "the wait is still open");
    assert_eq!(says(&gpu, O::HostReset { event: free }), ["reuse_while_waited kept"]);
    submit(&mut gpu, 0);
    assert_eq!(says(&gpu, O::HostReset { event: waited }), ["reuse_while_waited broken"], "it is submitted");
    drain(&mut gpu);
    assert_eq!(says(&gpu, O::HostReset { event: waited }), ["reuse_while_waited kept"], "it has executed");
}

#[test]
fn reuse_while_waited_no_slot_is_reset_in_a_queue_under_a_wait_that_came_before() {
    let mut gpu = vulkan();
    let e = gpu.create_event();
    gpu.set_event(e);
    commands(&mut gpu, 0, &[Command::Wait(e)]);
    assert_eq!(says(&gpu, O::QueueReset { event: e, set: 1 }), ["reuse_while_waited broken"]);
    assert_eq!(says(&gpu, O::QueueReset { event: e, set: 0 }), ["reuse_while_waited kept"], "it waits for a later set");
}

#[test]
fn reuse_while_waited_no_slot_is_set_for_a_new_generation_under_a_wait() {
    let mut gpu = vulkan();
    let e = gpu.create_event();
    commands(&mut gpu, 0, &[Command::Set(e), Command::Wait(e)]);
    submit(&mut gpu, 0);
    assert_eq!(says(&gpu, O::EventSet { event: e, set: 1 }), ["reuse_while_waited kept"], "the wait's own set");
    assert_eq!(says(&gpu, O::EventSet { event: e, set: 2 }), ["reuse_while_waited broken"]);
}

#[test]
fn reuse_while_waited_no_slot_is_destroyed_while_anything_names_it() {
    for command in [Command::Set, Command::Wait, Command::Reset] {
        let mut gpu = vulkan();
        let [named, free] = [gpu.create_event(), gpu.create_event()];
        gpu.set_event(named);
        commands(&mut gpu, 0, &[command(named)]);
        assert_eq!(says(&gpu, O::EventDestroyed { event: named }), ["reuse_while_waited broken"]);
        assert_eq!(says(&gpu, O::EventDestroyed { event: free }), ["reuse_while_waited kept"]);
        submit(&mut gpu, 0);
        assert_eq!(says(&gpu, O::EventDestroyed { event: named }), ["reuse_while_waited broken"]);
        drain(&mut gpu);
        assert_eq!(says(&gpu, O::EventDestroyed { event: named }), ["reuse_while_waited kept"]);
    }
}

#[test]
fn reuse_while_waited_a_native_wait_keeps_what_it_captured() {
    let mut gpu = Gpu::new(Family::Cuda, 2);
    let e = gpu.create_event();
    gpu.issue(0, Command::Work(Work { tracked: 1, after: 0 }));
    gpu.issue(0, Command::Set(e));
    gpu.issue(1, Command::Wait(e));
    assert_eq!(says(&gpu, O::EventSet { event: e, set: 2 }), ["reuse_while_waited kept"]);
    assert_eq!(says(&gpu, O::EventDestroyed { event: e }), ["reuse_while_waited kept"]);
    assert_eq!(says(&gpu, O::WaitPasses { event: e, set: 1 }), ["stale_wait kept"]);
    assert_eq!(says(&gpu, O::WaitRecorded { event: e, queue: 1 }), ["wrong_queue kept"], "streams may differ");
}

#[test]
fn stale_wait_a_wait_passes_on_its_own_set() {
    let mut gpu = vulkan();
    let e = gpu.create_event();
    gpu.set_event(e);
    gpu.set_event(e);
    assert_eq!(says(&gpu, O::WaitPasses { event: e, set: 2 }), ["stale_wait kept"]);
    assert_eq!(says(&gpu, O::WaitPasses { event: e, set: 1 }), ["stale_wait broken"], "a later generation's");
    assert_eq!(says(&gpu, O::WaitPasses { event: e, set: 3 }), ["stale_wait broken"], "an earlier generation's");
    gpu.reset_event(e);
    assert_eq!(says(&gpu, O::WaitPasses { event: e, set: 2 }), ["stale_wait broken"], "nobody's");
}

#[test]
fn lost_wait_work_follows_what_it_has_to_follow() {
    let (gpu, mut ghost) = (vulkan(), ghost());
    ghost.issue(0, 1);
    ghost.record(0, 0);
    ghost.wait(1, 0);
    ghost.issue(1, 2);
    let after = ghost.depends[1];
    assert_eq!(verdict(&gpu, &ghost, O::WorkBegins { after }), ["lost_wait broken"]);
    assert_eq!(verdict(&gpu, &ghost, O::WorkBegins { after: 0 }), SILENT, "it has nothing to follow");
    assert_eq!(verdict(&gpu, &ghost, O::WorkBegins { after: 4 }), ["lost_wait kept"], "what it follows has ended");
    ghost.end(1);
    assert_eq!(verdict(&gpu, &ghost, O::WorkBegins { after }), ["lost_wait kept"]);
}

#[test]
fn early_completion_done_is_reported_after_the_work() {
    let (mut gpu, mut ghost) = (vulkan(), ghost());
    ghost.issue(0, 1);
    ghost.record(0, 0);
    ghost.issue(0, 2);
    let covers = ghost.covers[0];
    assert_eq!(verdict(&gpu, &ghost, O::Reported { covers }), ["early_completion broken"]);
    let mut later = ghost.clone();
    later.end(1);
    assert_eq!(later.live, 2);
    assert_eq!(verdict(&gpu, &later, O::Reported { covers }), ["early_completion kept"], "later work is not covered");
    gpu.lose();
    assert_eq!(verdict(&gpu, &ghost, O::Reported { covers }), SILENT, "counters of a lost device may read anything");
}

#[test]
fn batch_reuse_a_buffer_is_begun_when_it_is_free() {
    let mut gpu = vulkan();
    assert_eq!(says(&gpu, O::BufferBegun { buffer: 0 }), ["batch_reuse kept"]);
    commands(&mut gpu, 0, &[Command::Work(Work { tracked: 1, after: 0 })]);
    assert_eq!(says(&gpu, O::BufferBegun { buffer: 0 }), ["batch_reuse broken"], "it is open");
    assert_eq!(says(&gpu, O::BufferBegun { buffer: 1 }), ["batch_reuse kept"], "another is not");
    submit(&mut gpu, 0);
    assert_eq!(says(&gpu, O::BufferBegun { buffer: 0 }), ["batch_reuse broken"], "it is submitted");
    drain(&mut gpu);
    assert_eq!(says(&gpu, O::BufferBegun { buffer: 0 }), ["batch_reuse kept"], "its batch has ended");
}

#[test]
fn batch_reuse_a_buffer_is_used_when_it_is_open() {
    let mut gpu = vulkan();
    assert_eq!(says(&gpu, O::BufferUsed { buffer: 0 }), ["batch_reuse broken"]);
    commands(&mut gpu, 0, &[]);
    assert_eq!(says(&gpu, O::BufferUsed { buffer: 0 }), ["batch_reuse kept"]);
    submit(&mut gpu, 0);
    assert_eq!(says(&gpu, O::BufferUsed { buffer: 0 }), ["batch_reuse broken"]);
}

#[test]
fn batch_reuse_a_buffer_is_reset_by_its_holder_and_not_in_flight() {
    let mut gpu = vulkan();
    commands(&mut gpu, 0, &[]); // under lease 1
    assert_eq!(says(&gpu, O::BufferReset { buffer: 0, lease: 1 }), ["batch_reuse kept"]);
    assert_eq!(says(&gpu, O::BufferReset { buffer: 0, lease: 0 }), ["batch_reuse broken"], "an older lease");
    submit(&mut gpu, 0);
    assert_eq!(says(&gpu, O::BufferReset { buffer: 0, lease: 1 }), ["batch_reuse broken"], "it is submitted");
    drain(&mut gpu);
    assert_eq!(says(&gpu, O::BufferReset { buffer: 0, lease: 1 }), ["batch_reuse kept"]);
}

#[test]
fn batch_reuse_a_buffer_is_not_submitted_while_it_is_in_flight() {
    let mut gpu = vulkan();
    commands(&mut gpu, 0, &[Command::Barrier]);
    assert_eq!(says(&gpu, O::BufferSubmitted { buffer: 0 }), ["batch_reuse kept"]);
    submit(&mut gpu, 0);
    assert_eq!(says(&gpu, O::BufferSubmitted { buffer: 0 }), ["batch_reuse broken"]);
    drain(&mut gpu);
    assert_eq!(says(&gpu, O::BufferSubmitted { buffer: 0 }), ["batch_reuse kept"]);
}

#[test]
fn batch_reuse_a_fence_is_reset_when_no_batch_will_give_it() {
    let mut gpu = vulkan();
    let [given, other] = [gpu.create_fence(), gpu.create_fence()];
    gpu.submit(0, &Submit { fence: Some(given), ..Submit::default() });
    assert_eq!(says(&gpu, O::FenceReset { fence: given }), ["batch_reuse broken"]);
    assert_eq!(says(&gpu, O::FenceReset { fence: other }), ["batch_reuse kept"]);
    drain(&mut gpu);
    assert_eq!(says(&gpu, O::FenceReset { fence: given }), ["batch_reuse kept"]);
}

#[test]
fn timeline_order_values_rise_and_what_the_host_goes_by_never_falls() {
    let mut gpu = vulkan();
    let semaphore = gpu.create_semaphore();
    gpu.submit(0, &Submit { signal: Some(Signal { semaphore, value: 2 }), ..Submit::default() });
    drain(&mut gpu);
    for (value, told) in [(1, "timeline_order broken"), (2, "timeline_order broken"), (3, "timeline_order kept")] {
        assert_eq!(says(&gpu, O::Signalled(Signal { semaphore, value })), [told], "{value} after 2");
    }
    assert_eq!(says(&gpu, O::Published { before: 2, after: 1 }), ["timeline_order broken"]);
    assert_eq!(says(&gpu, O::Published { before: 2, after: 2 }), ["timeline_order kept"], "it may stay");
}

#[test]
fn wrong_queue_an_event_is_waited_on_where_it_is_set() {
    let mut gpu = vulkan();
    let [e, never_set] = [gpu.create_event(), gpu.create_event()];
    commands(&mut gpu, 0, &[Command::Set(e)]);
    assert_eq!(says(&gpu, O::WaitRecorded { event: e, queue: 0 }), ["wrong_queue kept"]);
    assert_eq!(says(&gpu, O::WaitRecorded { event: e, queue: 1 }), ["wrong_queue broken"]);
    assert_eq!(says(&gpu, O::WaitRecorded { event: never_set, queue: 1 }), ["wrong_queue kept"]);
    assert_eq!(says(&gpu, O::ResetRecorded { event: e, queue: 0 }), ["wrong_queue kept"]);
    assert_eq!(says(&gpu, O::ResetRecorded { event: e, queue: 1 }), ["wrong_queue broken"]);
}

#[test]
fn data_race_two_queues_write_and_access_one_range_unordered() {
    for (write, ordered) in [(false, false), (false, true), (true, true), (true, false)] {
        let broken = Rule::DataRace.broken_by(&vulkan(), &ghost(), &O::Overlap { write, ordered });
        assert_eq!(broken, write && !ordered);
    }
}

#[test]
fn unrecorded_wait_is_a_no_op_that_succeeds() {
    assert_eq!(says(&vulkan(), O::UnrecordedCall { no_op: true }), ["unrecorded_wait kept"]);
    assert_eq!(says(&vulkan(), O::UnrecordedCall { no_op: false }), ["unrecorded_wait broken"]);
}

#[test]
fn progress_nothing_is_stuck_and_no_lock_is_held_while_the_host_blocks() {
    assert_eq!(says(&vulkan(), O::Blocks { lock_held: false }), ["progress kept"]);
    assert_eq!(says(&vulkan(), O::Blocks { lock_held: true }), ["progress broken"]);
    assert_eq!(says(&vulkan(), O::Stuck), ["progress broken"]);
}

#[test]
fn bounded_slots_are_no_more_than_allowed_and_none_is_stranded() {
    let slots = |live, allowed, stranded| says(&vulkan(), O::Slots { live, allowed, stranded });
    assert_eq!(slots(3, 3, 0), ["bounded kept"]);
    assert_eq!(slots(4, 3, 0), ["bounded broken"]);
    assert_eq!(slots(2, 3, 1), ["bounded broken"]);
}

#[test]
fn loss_a_waiter_wakes_once_and_after_a_loss_is_told() {
    let mut gpu = vulkan();
    assert_eq!(says(&gpu, O::Woken { waiting: true, lost: false }), ["loss kept"]);
    assert_eq!(says(&gpu, O::Woken { waiting: false, lost: false }), ["loss broken"], "twice");
    gpu.lose();
    assert_eq!(says(&gpu, O::Woken { waiting: true, lost: true }), ["loss kept"]);
    assert_eq!(says(&gpu, O::Woken { waiting: true, lost: false }), ["loss broken"], "not told");
    assert_eq!(says(&gpu, O::Woken { waiting: false, lost: true }), ["loss broken"], "twice");
}

/// While a refusal is remembered, an order that is lost is charged to it and to nothing else.
#[test]
fn refusal_a_refused_call_weakens_nothing() {
    let (gpu, mut ghost) = (vulkan(), ghost());
    ghost.issue(0, 1);
    ghost.issue(0, 2);
    ghost.refused = true;
    let begins = O::WorkBegins { after: 1 };
    let reported = O::Reported { covers: 1 };
    assert_eq!(verdict(&gpu, &ghost, begins), ["lost_wait kept", "refusal broken"]);
    assert_eq!(verdict(&gpu, &ghost, reported), ["early_completion kept", "refusal broken"]);
    assert_eq!(verdict(&gpu, &ghost, O::WorkBegins { after: 0 }), SILENT);

    ghost.end(1);
    assert!(ghost.refused, "a tracked work still lives");
    assert_eq!(verdict(&gpu, &ghost, begins), ["lost_wait kept", "refusal kept"]);
    assert_eq!(verdict(&gpu, &ghost, reported), ["early_completion kept", "refusal kept"]);
    ghost.end(2);
    assert!(!ghost.refused, "with the last work the refusal is forgotten");
    assert_eq!(verdict(&gpu, &ghost, begins), ["lost_wait kept"]);
}

/// One occurrence of each kind: a rule speaks of its own kinds and of no other.
#[test]
fn every_rule_is_concerned_by_something_and_not_by_everything() {
    let mut gpu = vulkan();
    let event = gpu.create_event();
    let semaphore = gpu.create_semaphore();
    let fence = gpu.create_fence();
    let kinds = [
        (O::HostReset { event }, "reuse_while_waited"),
        (O::QueueReset { event, set: 0 }, "reuse_while_waited"),
        (O::EventSet { event, set: 1 }, "reuse_while_waited"),
        (O::EventDestroyed { event }, "reuse_while_waited"),
        (O::WaitPasses { event, set: 0 }, "stale_wait"),
        (O::WaitRecorded { event, queue: 0 }, "wrong_queue"),
        (O::ResetRecorded { event, queue: 0 }, "wrong_queue"),
        (O::Overlap { write: true, ordered: false }, ""),
        (O::WorkBegins { after: 1 }, "lost_wait refusal"),
        (O::Reported { covers: 1 }, "early_completion refusal"),
        (O::Signalled(Signal { semaphore, value: 1 }), "timeline_order"),
        (O::Published { before: 0, after: 1 }, "timeline_order"),
        (O::BufferBegun { buffer: 0 }, "batch_reuse"),
        (O::BufferUsed { buffer: 0 }, "batch_reuse"),
        (O::BufferReset { buffer: 0, lease: 0 }, "batch_reuse"),
        (O::BufferSubmitted { buffer: 0 }, "batch_reuse"),
        (O::FenceReset { fence }, "batch_reuse"),
        (O::UnrecordedCall { no_op: true }, "unrecorded_wait"),
        (O::Blocks { lock_held: false }, "progress"),
        (O::Stuck, "progress"),
        (O::Woken { waiting: true, lost: false }, "loss"),
        (O::Slots { live: 0, allowed: 0, stranded: 0 }, "bounded"),
    ];
    let mut refused = ghost();
    refused.refused = true;
    let mut heard = BTreeSet::new();
    for (o, speakers) in &kinds {
        let concerned = Rule::ALL.iter().filter(|r| r.concerns(&gpu, &refused, o)).map(|r| r.name());
        assert_eq!(concerned.clone().collect::<Vec<_>>().join(" "), *speakers, "{o:?}");
        heard.extend(concerned);
        assert!(!Rule::Refusal.concerns(&gpu, &ghost(), o), "nothing was refused");
    }
    assert_eq!(heard.len(), 12);
}

// What the client asked for ------------------------------------------------------------------------

#[test]
fn a_recording_covers_what_its_stream_was_given_and_what_that_had_to_follow() {
    let mut ghost = Ghost::new(2, 2);
    ghost.issue(0, 1);
    ghost.record(0, 0);
    ghost.wait(1, 0);
    ghost.issue(1, 2);
    ghost.record(1, 1);
    assert_eq!(ghost.covers, [1, 3]);
    // A stream that waits for itself holds its work twice, and covers it once.
    ghost.wait(0, 0);
    ghost.record(0, 0);
    assert_eq!((ghost.covers[0], ghost.recorded[0]), (1, true));
}

#[test]
fn an_event_made_anew_covers_nothing() {
    let mut ghost = ghost();
    ghost.issue(0, 1);
    ghost.record(0, 0);
    ghost.renew(0);
    assert_eq!((ghost.covers[0], ghost.recorded[0]), (0, false));
    ghost.wait(1, 0);
    assert_eq!(ghost.depends[1], 0);
}

#[test]
fn nothing_depends_on_a_work_that_has_ended() {
    let mut ghost = ghost();
    for work in [1, 2] {
        ghost.issue(0, work);
        ghost.record(0, 0);
        ghost.wait(1, 0);
    }
    ghost.end(1);
    let sets = (ghost.live, ghost.issued.as_slice(), ghost.depends.as_slice(), ghost.covers.as_slice());
    assert_eq!(sets, (2, &[2, 0][..], &[0, 2][..], &[2][..]));
    assert!(!ghost.refused, "nothing was refused");
}

// Helpers ------------------------------------------------------------------------------------------

fn vulkan() -> Gpu {
    Gpu::new(Family::Vulkan, 2)
}

fn ghost() -> Ghost {
    Ghost::new(2, 1)
}

/// Opens a buffer for queue 0 under lease 1.
fn commands(gpu: &mut Gpu, buffer: u32, commands: &[Command]) {
    gpu.begin(buffer, 0, 1);
    commands.iter().for_each(|c| gpu.record(buffer, *c));
}

fn submit(gpu: &mut Gpu, buffer: u32) {
    gpu.submit(0, &Submit { buffer: Some(buffer), ..Submit::default() });
}

fn drain(gpu: &mut Gpu) {
    let mut steps = Vec::new();
    gpu.steps(&mut steps);
    while let Some(step) = steps.first() {
        gpu.take(*step);
        steps.clear();
        gpu.steps(&mut steps);
    }
    assert!(gpu.is_idle());
}

/// What the rules say when nothing is tracked.
fn says(gpu: &Gpu, o: O) -> Vec<String> {
    verdict(gpu, &ghost(), o)
}

/// The rules that are concerned, and whether they are broken. One that is not concerned is not broken.
fn verdict(gpu: &Gpu, ghost: &Ghost, o: O) -> Vec<String> {
    let mut said = Vec::new();
    for rule in Rule::ALL {
        let broken = rule.broken_by(gpu, ghost, &o);
        if rule.concerns(gpu, ghost, &o) {
            said.push(format!("{} {}", rule.name(), if broken { "broken" } else { "kept" }));
        }
        assert!(!broken || rule.concerns(gpu, ghost, &o), "{} on {o:?}", rule.name());
    }
    said
}
