//! Stories about the writer of canonical forms: what it leaves out, and what it keeps apart.

use fencepost::{Canon, Space};

#[test]
fn an_object_is_written_by_the_order_in_which_it_was_met() {
    let mut c = Canon::new();
    c.assign(Space::Queue, 70);
    [90, 70, 90, 40, 40].into_iter().for_each(|raw| c.name(Space::Queue, raw));
    assert_eq!(c.bytes(), [1, 0, 1, 2, 2]);
    assert_eq!(c.assigned(Space::Queue), [70, 90, 40]);
    assert_eq!([0, 2, 3].map(|name| c.raw(Space::Queue, name)), [Some(70), Some(40), None]);

    // A buffer has no name of a queue.
    assert_eq!(c.assigned(Space::Buffer), [0; 0]);
    c.name(Space::Buffer, 40);
    assert_eq!(c.bytes(), [1, 0, 1, 2, 2, 0]);
}

#[test]
fn a_value_is_written_as_how_many_named_ones_it_has_reached() {
    let mut c = Canon::new();
    [(0, 90), (0, 50), (1, 30), (0, 50)].into_iter().for_each(|(semaphore, value)| c.name_value(semaphore, value));
    let ranks = |semaphore, values: [u64; 5]| values.map(|value| c.rank(semaphore, value));
    assert_eq!(ranks(0, [0, 49, 50, 89, 90]), [0, 0, 1, 1, 2]);
    assert_eq!(ranks(1, [29, 30, 50, 90, u64::MAX]), [0, 1, 1, 1, 1], "another semaphore's are not counted");
    assert_eq!(ranks(2, [0, 30, 50, 90, u64::MAX]), [0; 5], "nobody names one");

    c.value(1, 30);
    c.value(0, 89);
    assert_eq!(c.bytes(), [0, 1, 1, 1], "each behind the name of its semaphore");
}

#[test]
fn a_signal_that_would_not_raise_its_semaphore_is_kept_apart() {
    let signal = |value, now| {
        let mut c = Canon::new();
        [5, 6].into_iter().for_each(|value| c.name_value(0, value));
        c.signal(0, value, now);
        c.bytes().to_vec()
    };
    assert_eq!(signal(6, 5), [0, 2, 0]);
    assert_eq!(signal(6, 6), [0, 2, 1]);
    assert_eq!(signal(6, 7), signal(6, 6), "by how much means nothing");
    assert_ne!(signal(5, 4), signal(6, 4), "which value means something");
}

#[test]
fn a_cleared_writer_is_a_new_one_that_knows_the_same_values() {
    let mut c = Canon::new();
    c.name_value(0, 5);
    c.name(Space::Queue, 70);
    c.clear();
    assert_eq!((c.bytes(), c.assigned(Space::Queue)), (&[][..], &[][..]));
    assert_eq!(c.rank(0, 5), 1);

    let mut other = Canon::new();
    other.name_value(0, 1);
    other.copy_values(&c);
    assert_eq!([1, 5].map(|value| other.rank(0, value)), [0, 1], "those of the other in place of its own");

    c.clear_values();
    assert_eq!(c.rank(0, 5), 0);
}

#[test]
fn records_whose_order_means_nothing_are_written_in_one_order() {
    let records = [[2, 1], [1, 9], [2, 0], [1, 9]];
    let orders = [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1], [1, 3, 2, 0], [0, 2, 1, 3]];
    for order in orders {
        let mut c = Canon::new();
        [7, 0].into_iter().for_each(|number| c.number(number)); // Not among them.
        order.iter().flat_map(|at| records[*at]).for_each(|number| c.number(number));
        c.sort_records(2, 2);
        assert_eq!(c.bytes(), [7, 0, 1, 9, 1, 9, 2, 0, 2, 1], "{order:?}");
    }
    for (width, sorted) in [(1, [1, 1, 2, 2, 3, 3]), (2, [2, 1, 3, 1, 3, 2]), (3, [2, 1, 3, 3, 2, 1])] {
        let mut c = Canon::new();
        let written = if width == 3 { [3, 2, 1, 2, 1, 3] } else { [3, 2, 3, 1, 2, 1] };
        written.into_iter().for_each(|number| c.number(number));
        c.sort_records(0, width);
        assert_eq!(c.bytes(), sorted, "records of {width}");
    }
    let mut none = Canon::new();
    none.sort_records(0, 2);
    assert_eq!(none.bytes(), [0; 0]);
}

#[test]
fn what_was_cut_off_can_be_written_later() {
    let mut c = Canon::new();
    [1, 2, 3].into_iter().for_each(|number| c.number(number));
    c.flag(true);
    let end = c.cut(1);
    assert_eq!((c.bytes(), end.as_slice()), (&[1][..], &[2, 3, 1][..]));
    c.flag(false);
    c.append(&end);
    assert_eq!(c.bytes(), [1, 0, 2, 3, 1]);
}
