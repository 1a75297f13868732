//! The history table: which configurations are searched for each row and topology.

use fencepost::Family;

use crate::setup::{Bounds, Calls, Reductions, Setup, Topology};

/// A line of the table: a row in one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRow {
    pub row: u8,
    pub family: Family,
}

/// The lines, in order. Rows 8 and 9 are shown in the family they were written for, and carried to the other.
pub const LINES: [TableRow; 13] = {
    const fn vulkan(row: u8) -> TableRow {
        TableRow { row, family: Family::Vulkan }
    }
    const fn cuda(row: u8) -> TableRow {
        TableRow { row, family: Family::Cuda }
    }
    [
        vulkan(1),
        vulkan(2),
        vulkan(3),
        vulkan(4),
        vulkan(5),
        vulkan(6),
        vulkan(7),
        cuda(8),
        vulkan(8),
        cuda(9),
        vulkan(9),
        vulkan(10),
        vulkan(11),
    ]
};

/// What one search of a cell is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The cell's verdict.
    Main,
    /// Rows 1 to 7 with events destroyed: breaks so soon that it would hide the rest.
    Destroy,
}

/// The configurations of a cell. A row that holds has to hold in all of them.
pub fn setups(line: TableRow, topology: Topology) -> Vec<(Part, Setup)> {
    let TableRow { row, family } = line;
    let setup = |part: Part, bounds: [usize; 5], calls: Calls| {
        let [events, open, in_flight, live, slots] = bounds;
        let bounds = Bounds { events, open, in_flight, live, slots };
        let keeps = bounds.slots == KEEP;
        let slots = if keeps { FREE } else { bounds.slots };
        let reductions = Reductions { drop_slots: !keeps, ..Reductions::ALL };
        let bounds = Bounds { slots, ..bounds };
        (part, Setup { row, family, topology, bounds, calls, reductions, mutant: None, without: &[] })
    };
    let none = Calls::default();
    let synchronize = Calls { synchronize: true, ..none };
    let destroy = Calls { destroy: true, ..none };
    let blocking = Calls { destroy: true, ..synchronize };
    let refuse = Calls { refuse: true, time_out: true, ..blocking };
    let lose = Calls { lose: true, ..blocking };
    let renew = Calls { renew_stream: true, ..destroy };
    let main = |bounds, calls| setup(Part::Main, bounds, calls);
    match (row, topology) {
        (1..=3, _) => {
            let mut all = vec![main([1, 2, 2, 4, 3], synchronize)];
            if topology == Topology::OneStream {
                all.push(main([1, 2, 2, 4, 3], Calls { synchronize_stream: true, ..synchronize }));
                all.push(setup(Part::Destroy, [1, 2, 2, 4, 3], blocking));
            }
            all
        }
        (4..=7, Topology::TwoStreamsOneQueue) => vec![main([1, 2, 2, 3, 3], synchronize)],
        (4..=7, Topology::OneStream) => vec![
            main([1, 2, 2, 4, 3], Calls { synchronize_stream: true, ..synchronize }),
            main([2, 2, 2, 4, 4], synchronize),
            setup(Part::Destroy, [1, 2, 2, 4, 3], blocking),
        ],
        (4..=7, _) => vec![main([1, 2, 2, 4, 3], synchronize)],
        (8 | 9, _) if family == Family::Cuda => {
            vec![main([1, 2, 2, 4, 4], Calls { refuse: true, ..blocking }), main([2, 2, 2, 4, 4], synchronize)]
        }
        (8 | 9, Topology::TwoStreamsOneQueue | Topology::TwoQueues) => vec![main([1, 2, 2, 3, 3], blocking)],
        (8 | 9, _) => vec![main([1, 2, 2, 4, 4], Calls { refuse: true, ..blocking })],
        (_, Topology::OneStream) => vec![
            main([2, 3, 2, 6, FREE], destroy),
            main([1, 2, 2, 4, KEEP], blocking),
            main([1, 2, 2, 4, FREE], refuse),
            main([1, 2, 2, 4, FREE], lose),
            main([1, 2, 2, 4, FREE], renew),
        ],
        (_, Topology::TwoThreads) => vec![
            main([2, 2, 2, 4, FREE], blocking),
            main([1, 2, 2, 4, KEEP], blocking),
            main([1, 2, 2, 4, FREE], refuse),
            main([1, 2, 2, 4, FREE], Calls { synchronize_stream: true, ..lose }),
        ],
        (_, Topology::ComputeTransfer) => vec![
            main([2, 2, 2, 4, FREE], destroy),
            main([1, 2, 2, 4, KEEP], Calls { synchronize_stream: true, ..blocking }),
            main([1, 2, 2, 4, FREE], refuse),
            main([1, 2, 2, 4, FREE], lose),
        ],
        // Two streams, on one queue or two.
        _ => vec![
            main([1, 2, 2, 4, FREE], destroy),
            main([2, 2, 1, 4, FREE], none),
            main([1, 2, 1, 4, KEEP], blocking),
            main([1, 2, 1, 2, FREE], refuse),
            main([1, 2, 1, 4, FREE], lose),
            main([1, 2, 1, 4, FREE], renew),
        ],
    }
}

/// No bound on slots: the protocol bounds them itself.
const FREE: usize = usize::MAX;
/// The same, and superseded slots are kept in the state, for `bounded`.
const KEEP: usize = usize::MAX - 1;

/// The kinds of steps that a configuration has, all of which must fire where no rule is broken: a row
/// that breaks at every wait has no dependent work.
pub fn kinds(setup: &Setup) -> Vec<&'static str> {
    let Calls { synchronize, synchronize_stream, destroy, renew_stream, refuse, lose, time_out } = setup.calls;
    let blocks = synchronize || synchronize_stream;
    let all = [
        (true, "work"),
        (true, "watched work"),
        (true, "dependent work"),
        (true, "record"),
        (true, "wait"),
        (true, "flush"),
        (true, "device"),
        (setup.row >= 10, "poll"),
        (blocks, "return"),
        (synchronize, "synchronize"),
        (synchronize_stream, "synchronize stream"),
        (destroy, "destroy"),
        (renew_stream, "renew stream"),
        (refuse, "refuse"),
        (lose, "lose"),
        (time_out, "time out"),
    ];
    all.into_iter().filter(|(on, _)| *on && setup.reductions.watch_one).map(|(_, kind)| kind).collect()
}
