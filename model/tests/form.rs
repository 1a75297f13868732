//! Stories about the machine's part of a canonical form. Two machines that go on alike have one form; what
//! makes them go on differently is written.

mod driver;

use driver::{Driver, point};
use fencepost::{Canon, EventId, QueueId, Reply, Space, StreamId, Synchronize, WaiterId};

/// The form of a machine with two queues.
fn form(d: &Driver, streams: &[StreamId], events: &[EventId]) -> Vec<u8> {
    let mut c = Canon::new();
    d.machine.named_points(|_| true).for_each(|(timeline, value)| c.name_value(timeline, value));
    [0, 1].into_iter().for_each(|queue| c.assign(Space::Queue, queue));
    d.machine.assign(&mut c, streams);
    d.machine.write(&mut c, events);
    d.machine.write_slots(&mut c, true);
    c.bytes().to_vec()
}

/// The form of two streams and two events after a story.
fn after<const N: usize>(queues: [QueueId; N], story: impl Fn(&mut Driver, [StreamId; N], [EventId; 2])) -> Vec<u8> {
    let (mut d, streams) = Driver::with_streams(true, queues);
    let events = [(); 2].map(|()| d.machine.create_event());
    story(&mut d, streams, events);
    form(&d, &streams, &events)
}

/// Each story leads to another form.
fn all_differ<const N: usize>(stories: [(&str, Vec<u8>); N]) {
    for (at, (name, form)) in stories.iter().enumerate() {
        for (other, its) in &stories[..at] {
            assert_ne!(form, its, "{name}, {other}");
        }
    }
}

/// Passes what was submitted.
fn pass(d: &mut Driver, stream: StreamId) {
    let (submitted, _) = d.machine.progress(stream).unwrap();
    d.reached(stream, submitted).unwrap();
}

// What carries no meaning --------------------------------------------------------------------------

/// Batches in flight and open, waits of both kinds, a slot in each state; after `spent` rounds of the same.
fn used(spent: u64) -> (Driver, [StreamId; 3], [EventId; 2]) {
    let (mut d, [a, b, c]) = Driver::with_streams(true, [0, 0, 1]);
    for round in 0..=spent {
        let [e, f] = [(); 2].map(|()| d.machine.create_event());
        d.work(a).unwrap();
        d.record(e, a).unwrap();
        d.work(a).unwrap();
        d.wait(b, e).unwrap();
        d.wait(c, e).unwrap();
        d.work(c).unwrap();
        d.record(f, c).unwrap();
        d.record(e, a).unwrap();
        if round == spent {
            return (d, [a, b, c], [e, f]);
        }
        for stream in [a, b, c] {
            d.flush(stream).unwrap();
            pass(&mut d, stream);
        }
        [e, f].into_iter().for_each(|event| d.machine.destroy_event(event).unwrap());
    }
    unreachable!("the last round returns")
}

#[test]
fn a_machine_that_was_used_for_long_has_the_form_of_a_new_one() {
    let (fresh, streams, events) = used(0);
    for spent in [1, 2, 7] {
        let (worn, same, later) = used(spent);
        assert_eq!(streams, same);
        assert_ne!(fresh.machine.progress(streams[0]), worn.machine.progress(same[0]));
        assert_eq!(form(&fresh, &streams, &events), form(&worn, &same, &later), "{spent} rounds");
    }
}

#[test]
fn streams_and_events_go_by_the_order_they_are_given_in() {
    let build = |mirrored: bool| {
        let (mut d, [a, b]) = Driver::with_streams(true, [0, 0]);
        let [e, f] = [(); 2].map(|()| d.machine.create_event());
        let ([a, b], [e, f]) = if mirrored { ([b, a], [f, e]) } else { ([a, b], [e, f]) };
        d.record(e, a).unwrap();
        d.work(a).unwrap();
        d.wait(b, e).unwrap();
        d.record(f, b).unwrap();
        (form(&d, &[a, b], &[e, f]), form(&d, &[b, a], &[f, e]))
    };
    let (plain, mirrored) = (build(false), build(true));
    assert_eq!(plain, mirrored);
    assert_ne!(plain.0, plain.1);
}

#[test]
fn the_order_of_the_waits_in_an_open_batch_means_nothing() {
    let waits = |queue, in_order: bool| {
        after([0, 0, queue], |d, [a, b, c], [e, f]| {
            d.record(e, a).unwrap();
            d.record(f, b).unwrap();
            d.work(a).unwrap();
            [a, b].into_iter().for_each(|stream| d.flush(stream).unwrap());
            [e, f].into_iter().for_each(|event| _ = d.wait(b, event).unwrap()); // Which is met first.
            let events = if in_order { [e, f] } else { [f, e] };
            events.into_iter().for_each(|event| _ = d.wait(c, event).unwrap());
        })
    };
    assert_eq!(waits(0, true), waits(0, false), "for slots");
    assert_eq!(waits(1, true), waits(1, false), "for points");
}

#[test]
fn the_order_in_which_slots_were_given_up_means_nothing() {
    let given_up = |in_order: bool| {
        after([0, 1], |d, [a, b], [e, f]| {
            d.record(e, a).unwrap();
            d.work(a).unwrap();
            d.wait(a, e).unwrap(); // Its slot has one more point than the other.
            d.record(f, b).unwrap();
            [a, b].into_iter().for_each(|stream| d.flush(stream).unwrap());
            let events = if in_order { [e, f] } else { [f, e] };
            events.into_iter().for_each(|event| d.machine.destroy_event(event).unwrap());
        })
    };
    assert_eq!(given_up(true), given_up(false));
}

#[test]
fn what_has_passed_is_as_if_it_had_never_been() {
    let never = after([0, 1], |_, _, _| ());
    let recorded_without_a_slot = after([0, 1], |d, [a, _], [e, _]| {
        d.work(a).unwrap();
        d.flush(a).unwrap();
        d.will_say([Reply::Refused]);
        d.record(e, a).unwrap();
        pass(d, a);
    });
    let given_up = after([0, 1], |d, [a, _], [_, f]| {
        d.record(f, a).unwrap();
        d.flush(a).unwrap();
        pass(d, a);
        d.machine.destroy_event(f).unwrap();
    });
    assert_eq!(recorded_without_a_slot, never);
    assert_eq!(given_up, never, "a handle of an event that is gone names nothing");
}

#[test]
fn a_point_that_passed_under_an_open_wait_is_forgotten() {
    // The recording is given up, so that the wait alone could name it.
    let open_wait = |passes: bool, other_passes: bool| {
        after([0, 1], |d, [a, c], [e, _]| {
            d.work(a).unwrap();
            d.flush(a).unwrap();
            d.will_say([Reply::Refused]);
            d.record(e, a).unwrap();
            d.wait(c, e).unwrap();
            d.machine.destroy_event(e).unwrap();
            if passes {
                pass(d, a);
            }
            if other_passes {
                d.work(a).unwrap();
                d.flush(a).unwrap();
                pass(d, a);
            }
        })
    };
    assert_eq!(open_wait(true, false), open_wait(true, true), "by how much means nothing");
    assert_ne!(open_wait(true, false), open_wait(false, false));
}

// What the future depends on -----------------------------------------------------------------------

#[test]
fn a_loss_is_written() {
    assert_ne!(after([0], |_, _, _| ()), after([0], |d, _, _| d.lose().unwrap()));
}

#[test]
fn where_a_stream_is_and_whom_it_has_beside_it_are_written() {
    let alone = |queues| after(queues, |_, _, _| ());
    let paired = |by: [usize; 2], follows: bool, passes: bool| {
        after([0, 1, 1], |d, streams, _| {
            let [stream, companion] = by.map(|at| streams[at]);
            d.machine.set_companion(stream, companion).unwrap();
            d.work(companion).unwrap();
            d.flush(companion).unwrap();
            if follows {
                // Until the stream's own point covers the companion's.
                let Synchronize::Block { waiter, .. } = d.synchronize_stream(stream).unwrap() else {
                    panic!("its companion is busy")
                };
                d.machine.timed_out(waiter);
            } else {
                d.work(stream).unwrap();
                d.flush(stream).unwrap();
            }
            if passes {
                pass(d, companion);
                pass(d, stream);
            }
        })
    };
    all_differ([
        ("three queues' worth", alone([0, 1, 1])),
        ("all on one", alone([0, 0, 0])),
        ("a companion that is busy", paired([0, 1], false, false)),
        ("another one", paired([0, 2], false, false)),
        ("the other way round", paired([1, 0], false, false)),
        ("a companion that is followed already", paired([0, 1], true, false)),
        ("one that has nothing left to follow", paired([0, 1], false, true)),
    ]);
    assert_eq!(paired([0, 1], false, true), paired([0, 1], true, true), "what was followed once means nothing");
}

#[test]
fn a_stream_that_drains_is_written_until_it_has_drained() {
    let closes = |value: Option<u64>| {
        let (mut d, [a, b]) = Driver::with_streams(true, [0, 0]);
        d.work(b).unwrap();
        if let Some(value) = value {
            d.destroy_stream(b).unwrap();
            d.reached(b, value).unwrap();
        }
        form(&d, &[a], &[])
    };
    let alone = form(&Driver::with_streams(true, [0]).0, &[StreamId::from((0, 0))], &[]);
    assert_eq!(closes(Some(1)), alone);
    assert_ne!(closes(Some(0)), alone);

    // Its name is not needed to tell it from one that was not destroyed.
    let named = |destroyed: bool| {
        let (mut d, [a, b]) = Driver::with_streams(true, [0, 0]);
        d.work(b).unwrap();
        d.flush(b).unwrap();
        if destroyed {
            d.destroy_stream(b).unwrap();
        }
        let given: &[StreamId] = if destroyed { &[a] } else { &[a, b] };
        form(&d, given, &[])
    };
    assert_ne!(named(true), named(false));
}

#[test]
fn how_far_a_batch_has_come_is_written() {
    let waits_alone = |refused: bool| {
        after([0, 1], |d, [a, c], [e, _]| {
            d.work(a).unwrap();
            d.record(e, a).unwrap();
            d.wait(c, e).unwrap();
            if refused {
                d.will_say([Reply::Refused]);
                d.flush(c).unwrap_err();
            }
            d.machine.destroy_event(e).unwrap();
            pass(d, a); // The batch is all that is left of the wait.
        })
    };
    let commands = |refused: bool| {
        after([0, 1], |d, [_, c], _| {
            d.work(c).unwrap();
            if refused {
                d.will_say([Reply::Refused]);
                d.flush(c).unwrap_err();
            }
        })
    };
    let in_flight = |passes: bool| {
        after([0, 1], |d, [_, c], _| {
            d.work(c).unwrap();
            d.flush(c).unwrap();
            if passes {
                pass(d, c);
            }
        })
    };
    all_differ([
        ("none", after([0, 1], |_, _, _| ())),
        ("waits alone", waits_alone(false)),
        ("waits alone that were refused", waits_alone(true)),
        ("commands", commands(false)),
        ("commands that were refused", commands(true)),
        ("in flight", in_flight(false)),
    ]);
    assert_eq!(in_flight(true), after([0, 1], |_, _, _| ()));
}

#[test]
fn what_an_open_batch_names_is_written() {
    let waits = |queue, count: usize| {
        after([0, 0, queue], |d, [a, b, c], [e, f]| {
            d.record(e, a).unwrap();
            d.record(f, b).unwrap();
            [a, b].into_iter().for_each(|stream| d.flush(stream).unwrap());
            d.work(c).unwrap();
            if queue == 1 {
                d.flush(c).unwrap();
            }
            [e, f].into_iter().take(count).for_each(|event| _ = d.wait(c, event).unwrap());
        })
    };
    for queue in [0, 1] {
        all_differ([
            ("nothing", waits(queue, 0)),
            ("one wait", waits(queue, 1)),
            ("a wait for each event", waits(queue, 2)),
        ]);
    }
}

#[test]
fn what_a_recording_stands_for_is_written() {
    let recorded = |by: usize, issued_since: bool, bare: bool| {
        after([0, 0], |d, streams, [e, _]| {
            d.work(streams[0]).unwrap();
            d.work(streams[1]).unwrap();
            if bare {
                d.will_say([Reply::Refused]);
            }
            d.record(e, streams[by]).unwrap();
            if issued_since {
                d.work(streams[1 - by]).unwrap();
            }
        })
    };
    let not_recorded = after([0, 0], |d, streams, _| streams.into_iter().for_each(|s| _ = d.work(s).unwrap()));
    all_differ([
        ("never recorded", not_recorded),
        ("recorded", recorded(0, false, false)),
        ("on the other stream", recorded(1, false, false)),
        ("with work behind it", recorded(0, true, false)),
        ("without a slot", recorded(0, false, true)),
        ("without a slot, with work behind it", recorded(0, true, true)),
    ]);
}

#[test]
fn a_recording_that_has_passed_keeps_its_slot_from_others() {
    let passed = |recorded: bool| {
        after([0], |d, [a], [e, _]| {
            d.work(a).unwrap();
            if recorded {
                d.record(e, a).unwrap();
            }
            d.flush(a).unwrap();
            pass(d, a);
        })
    };
    assert_ne!(passed(true), passed(false));
}

#[test]
fn what_a_superseded_slot_waits_for_is_written() {
    let superseded = |waiting: &[usize], open: &[usize], passed: &[usize]| {
        after([0, 0, 0], |d, streams, [e, _]| {
            streams.iter().for_each(|s| _ = d.work(*s).unwrap());
            d.record(e, streams[0]).unwrap();
            d.work(streams[0]).unwrap();
            d.flush(streams[0]).unwrap();
            waiting.iter().for_each(|at| _ = d.wait(streams[*at], e).unwrap());
            d.machine.destroy_event(e).unwrap();
            for (at, stream) in streams.into_iter().enumerate().skip(1) {
                if !open.contains(&at) {
                    d.flush(stream).unwrap();
                }
            }
            passed.iter().for_each(|at| d.reached(streams[*at], 1).unwrap());
        })
    };
    all_differ([
        ("for its set", superseded(&[], &[], &[])),
        ("for nothing", superseded(&[], &[], &[0])),
        ("for its set and a wait", superseded(&[1], &[], &[])),
        ("for its set and another stream's wait", superseded(&[2], &[], &[])),
        ("for its set and two waits", superseded(&[1, 2], &[], &[])),
        ("for a wait", superseded(&[1], &[], &[0])),
        ("for one wait of two", superseded(&[1, 2], &[], &[0, 2])),
        ("for an open wait", superseded(&[1], &[1], &[])),
        ("for one open wait of two", superseded(&[1, 2], &[1], &[])),
        ("for two open waits", superseded(&[1, 2], &[1, 2], &[])),
    ]);
}

/// A second wait of a stream is dropped, also when the first has passed before the set is known to have.
#[test]
fn who_waits_for_the_current_generation_already_is_written() {
    let waited = |waits: bool, of_gone: bool| {
        after([0, 0], |d, [a, b], [e, _]| {
            d.work(a).unwrap();
            d.record(e, a).unwrap();
            d.work(a).unwrap();
            d.flush(a).unwrap();
            let waiting = if of_gone { d.drive(|m| m.create_stream(0)).unwrap() } else { b };
            d.work(waiting).unwrap();
            if waits {
                d.wait(waiting, e).unwrap();
            }
            d.flush(waiting).unwrap();
            d.reached(waiting, 1).unwrap();
            if of_gone {
                d.destroy_stream(waiting).unwrap();
            }
        })
    };
    assert_ne!(waited(true, false), waited(false, false));
    assert_eq!(waited(true, true), waited(false, true), "the wait of a stream that is gone concerns nobody");
}

#[test]
fn what_a_waiter_waits_for_is_written() {
    let (mut d, [a, b]) = Driver::with_streams(true, [0, 0]);
    [a, b, a].into_iter().for_each(|stream| {
        d.work(stream).unwrap();
        d.flush(stream).unwrap();
    });
    let waiters = [point(a, 1), point(a, 2), point(b, 1)].map(|point| d.machine.watch(point).unwrap().unwrap());
    let written = |d: &Driver, waiter: WaiterId| {
        let mut c = Canon::new();
        d.machine.named_points(|_| true).for_each(|(timeline, value)| c.name_value(timeline, value));
        d.machine.assign(&mut c, &[a, b]);
        d.machine.write_waiter(waiter, &mut c);
        c.bytes().to_vec()
    };
    let [first, second, other] = waiters.map(|waiter| written(&d, waiter));
    all_differ([("the first value", first), ("the second", second), ("another stream's", other)]);

    d.machine.timed_out(waiters[0]);
    assert_ne!(written(&d, waiters[0]), written(&d, waiters[1]), "nobody waits");
    let before = written(&d, waiters[2]);
    assert_eq!(before.len(), 2, "a point takes two bytes, as records to be sorted do");
    let wake = d.machine.reached(b, 1).unwrap();
    assert_ne!(format!("{wake:?}"), "Done(())");
    assert_ne!(written(&d, waiters[2]), before, "it is woken");
}

/// A point that has passed, or whose stream is gone, is written as one thing.
#[test]
fn points_that_have_passed_are_one() {
    let (mut d, [a, b]) = Driver::with_streams(true, [0, 0]);
    [a, b].into_iter().for_each(|stream| {
        d.work(stream).unwrap();
        d.flush(stream).unwrap();
    });
    let written = |d: &Driver, stream: StreamId| {
        let mut c = Canon::new();
        c.assign(Space::Stream, u64::from(a.index));
        c.assign(Space::Stream, u64::from(b.index));
        d.machine.named_points(|_| true).for_each(|(timeline, value)| c.name_value(timeline, value));
        d.machine.write_point(point(stream, 1), &mut c);
        c.bytes().to_vec()
    };
    assert_ne!(written(&d, a), written(&d, b));
    pass(&mut d, a);
    assert_ne!(written(&d, a), written(&d, b));
    pass(&mut d, b);
    assert_eq!(written(&d, a), written(&d, b));
    d.destroy_stream(b).unwrap();
    assert_eq!(written(&d, a), written(&d, b));
}

/// What is named is told apart in the form of the device, too.
#[test]
fn the_points_that_something_names_are_told() {
    let (mut d, [a, b, c]) = Driver::with_streams(true, [0, 0, 1]);
    let [e, f] = [(); 2].map(|()| d.machine.create_event());
    let named = |d: &Driver, matters: bool| {
        let mut all: Vec<_> = d.machine.named_points(|_| matters).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    assert_eq!(named(&d, true), []);
    d.record(e, a).unwrap();
    assert_eq!(named(&d, true), [(0, 1)], "a recording, though its batch is open");
    d.work(a).unwrap();
    d.flush(a).unwrap();
    d.wait(b, e).unwrap();
    assert_eq!(named(&d, true), [(0, 1), (1, 1)], "the frontier of its slot");
    assert_eq!(named(&d, false), [(0, 1)], "not of one that does not matter");
    d.wait(c, e).unwrap();
    d.machine.destroy_event(e).unwrap();
    d.flush(b).unwrap();
    d.work(a).unwrap();
    d.flush(a).unwrap();
    assert_eq!(named(&d, false), [(0, 1), (0, 2), (1, 1)], "an open wait for a point, and the newest promises");
    d.reached(a, 2).unwrap();
    assert_eq!(named(&d, true), [(1, 1)], "nothing that has passed");
    pass(&mut d, b);
    assert_eq!(named(&d, true), []);

    // Of the two points of one stream in a frontier the later one decides.
    d.record(f, a).unwrap();
    d.flush(a).unwrap();
    d.work(b).unwrap();
    d.flush(b).unwrap();
    d.wait(a, f).unwrap();
    d.machine.destroy_event(f).unwrap();
    d.flush(a).unwrap();
    assert_eq!(named(&d, false), [(0, 4), (1, 2)]);
    assert_eq!(named(&d, true), [(0, 4), (1, 2)]);
    d.machine.watch(point(a, 3)).unwrap().unwrap();
    assert_eq!(named(&d, true), [(0, 3), (0, 4), (1, 2)], "a waiter");
}
