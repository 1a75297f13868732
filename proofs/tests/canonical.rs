//! States with one form have one future: seen in searches, and in walks that go on and on.

mod common;

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use fencepost::{DeviceStep, Family, Rule};
use fencepost_proofs::action::{Action, Kind};
use fencepost_proofs::host::Target;
use fencepost_proofs::protocol::{Order, Part, Protocol, queues_in_order};
use fencepost_proofs::search::Limits;
use fencepost_proofs::setup::{Bounds, Calls, Reductions, Setup, Topology};
use fencepost_proofs::table::{self, LINES, TableRow};
use fencepost_proofs::with_row;
use fencepost_proofs::world::{System, World};
use proptest::prelude::*;

// Worlds merged in searches --------------------------------------------------------------------------

/// Forms explored of one configuration: all of the small ones, and those on random ways of the others.
const FORMS_MAX: usize = 4_000;
/// Further worlds compared with the first of a form.
const FURTHER_MAX: u8 = 3;

static CHECKS: LazyLock<Vec<(Setup, Checked)>> = LazyLock::new(|| {
    let cells = LINES.into_iter().flat_map(|line| Topology::TABLE.map(|topology| table::setups(line, topology)));
    let setups: Vec<Setup> = cells.flatten().map(|(_, setup)| setup).collect();
    let check = |setup: &Setup| with_row!(setup.row, system => Merges::new(&system).explore(), *setup);
    let checks = common::on_two_threads(&setups, check);
    setups.into_iter().zip(checks).collect()
});

/// A search sees only the first world of each form; what it says holds for the others if they go on alike.
#[test]
fn worlds_of_one_form_go_on_alike() {
    let mut differences = String::new();
    for line in LINES {
        let of_line = || CHECKS.iter().filter(|(s, _)| (s.row, s.family) == (line.row, line.family)).map(|(_, c)| c);
        let (forms, compared) = of_line().fold((0, 0), |(f, c), check| (f + check.forms, c + check.compared));
        let TableRow { row, family } = line;
        println!("row {row} {family:?}: {forms} forms, {compared} further worlds compared");
        // Without merging there would be nothing to claim.
        assert!(compared > 0, "row {row} {family:?} never merges two worlds");
        differences.extend(of_line().filter_map(|check| check.fault.as_deref()));
    }
    assert!(differences.is_empty(), "{differences}");
}

/// Where every form is explored, from up to four worlds, there are no other forms and no other rules broken.
#[test]
fn further_worlds_lead_nowhere_else() {
    let small: Vec<_> = CHECKS.iter().filter(|(_, check)| check.forms <= FORMS_MAX).collect();
    for (setup, check) in &small {
        let outcome = common::search(*setup, Limits::NONE);
        assert_eq!((check.forms, &check.broken), (outcome.unique_count, &common::broken(&outcome)), "{setup}");
    }
    assert!(small.len() >= 40, "only {} configurations are explored to their end", small.len());
}

struct Checked {
    broken: BTreeSet<Rule>,
    forms: usize,
    compared: usize,
    fault: Option<String>,
}

/// A form, as far as the first world explored went on.
struct Node {
    ends: (bool, Option<Rule>),
    first: Option<(usize, BTreeSet<(&'static str, usize)>)>,
    /// Concrete worlds met, by hash; more than one only while they are few.
    met: Vec<u64>,
}

struct Merges<'a, P> {
    system: &'a System<P>,
    ids: HashMap<Vec<u8>, usize>,
    nodes: Vec<Node>,
    /// Worlds with their way: the world before, and the step from it.
    ways: Vec<(usize, Option<Action>)>,
    pending: Vec<(usize, usize, World<P>)>,
    hasher: RandomState,
}

impl<'a, P: Protocol> Merges<'a, P> {
    fn new(system: &'a System<P>) -> Self {
        let (ids, nodes, ways, pending) = Default::default();
        let mut new = Merges { system, ids, nodes, ways, pending, hasher: RandomState::new() };
        new.meet(system.start(), 0, None);
        new
    }

    fn explore(mut self) -> Checked {
        let (mut compared, mut fault) = (0, None::<(usize, String)>);
        // A random world next, so that long ways are seen of spaces that are not explored to their end.
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        while !self.pending.is_empty() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let (way, node, world) = self.pending.swap_remove(random as usize % self.pending.len());
            let next = common::successors(self.system, &world);
            let next = next.into_iter().map(|(action, next)| (action.kind(), self.meet(next, way, Some(action))));
            // A poll that shows nothing is no step.
            let next: BTreeSet<_> = next.filter(|step| *step != ("poll", node)).collect();
            let Some((first, its)) = &self.nodes[node].first else {
                self.nodes[node].first = Some((way, next));
                continue;
            };
            compared += 1;
            if *its != next {
                let ways = [self.path(*first), self.path(way)];
                let length = ways.iter().map(Vec::len).sum();
                if fault.as_ref().is_none_or(|(shortest, _)| length < *shortest) {
                    let kinds =
                        |a: &BTreeSet<(&'static str, usize)>, b| -> Vec<_> { a.difference(b).copied().collect() };
                    let [a, b] = ways.map(|way| fencepost_proofs::explain::script(&way));
                    let only = format!("first only {:?}, second only {:?}", kinds(its, &next), kinds(&next, its));
                    fault = Some((length, format!("{}:\n  {a}\n  {b}\n  {only}\n", self.system.setup)));
                }
            }
        }
        Checked {
            broken: self.nodes.iter().filter_map(|n| n.ends.1).collect(),
            forms: self.nodes.len(),
            compared,
            fault: fault.map(|(_, text)| text),
        }
    }

    /// The form of a world, which is to be explored if the form is new or has few worlds yet.
    fn meet(&mut self, mut world: World<P>, from: usize, step: Option<Action>) -> usize {
        world.seen = 0; // Says how it came here.
        let form = common::form(self.system, &world);
        let ends = (self.system.is_quiescent(&world), world.broken);
        let known = self.nodes.len();
        let id = *self.ids.entry(form).or_insert(known);
        if id == known {
            self.nodes.push(Node { ends, first: None, met: Vec::new() });
        }
        let node = &mut self.nodes[id];
        assert_eq!(node.ends, ends, "{}: one form is quiescent and broken, and is not", self.system.setup);
        if id < FORMS_MAX && node.met.len() <= usize::from(FURTHER_MAX) {
            let hash = self.hasher.hash_one(format!("{world:?}"));
            if !node.met.contains(&hash) {
                node.met.push(hash);
                self.ways.push((from, step));
                self.pending.push((self.ways.len() - 1, id, world));
            }
        }
        id
    }

    fn path(&self, mut way: usize) -> Vec<Action> {
        let mut path = Vec::new();
        while let (from, Some(step)) = self.ways[way] {
            path.push(step);
            way = from;
        }
        path.reverse();
        path
    }
}

// Walks -----------------------------------------------------------------------------------------------

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Two walks in step, of which one calls streams and events by other names and starts after any number of
    /// calls more, look the same after each step.
    #[test]
    fn names_and_the_past_do_not_show_in_the_form(
        row in prop::sample::select(vec![5u8, 10, 11]),
        topology in prop::sample::select(vec![
            Topology::TwoStreamsOneQueue,
            Topology::TwoQueues,
            Topology::TwoThreads,
            Topology::Custom { streams: 3, queues: 2, threads: 1 },
        ]),
        renaming in any::<prop::sample::Index>(),
        earlier in 0..40usize,
        choices in prop::collection::vec(any::<prop::sample::Index>(), 60),
    ) {
        let bounds = Bounds { events: 2, open: 6, in_flight: 3, live: 10, slots: usize::MAX };
        // Rows 1 to 9 never back down from a refusal.
        let calls = Calls { synchronize: true, destroy: row >= 10, refuse: row >= 10, time_out: row >= 10, ..Calls::default() };
        let setup = Setup {
            row, family: Family::Vulkan, topology, bounds, calls,
            reductions: Reductions::ALL, mutant: None, without: &[],
        };
        with_row!(row, system => {
            let order = renaming.get(&system.orders).clone();
            walk_in_step(&system, &order, earlier, &choices)?;
        }, setup);
    }
}

fn walk_in_step<P: Protocol>(
    system: &System<P>,
    order: &Order,
    earlier: usize,
    choices: &[prop::sample::Index],
) -> Result<(), TestCaseError> {
    let rename = Renaming::new(&system.setup, order);
    let mut plain = system.start();
    let mut other = system.start();
    let both = |plain: &mut World<P>, other: &mut World<P>, action: Action| {
        let possible = system.take(plain, action, None);
        assert_eq!(possible, system.take(other, rename.action(action), None), "{action} is possible for one only");
        possible
    };
    // After two rounds nothing is new any more: slots and buffers come back from the first.
    let rounds: Vec<Action> = (0..2).flat_map(|_| round(system, &mut plain)).collect();
    rounds.iter().for_each(|action| assert!(system.take(&mut other, rename.action(*action), None)));
    for _ in 0..earlier {
        round(system, &mut plain.clone())
            .into_iter()
            .for_each(|a| assert!(system.take(&mut other, rename.action(a), None)));
    }
    prop_assert_eq!(common::form(system, &plain), common::form(system, &other), "{} rounds later", earlier);

    let mut taken = Vec::new();
    for choice in choices {
        let next = common::successors(system, &plain);
        let Some((action, _)) = (!next.is_empty()).then(|| choice.get(&next)) else { break };
        taken.push(*action);
        both(&mut plain, &mut other, *action);
        let script = fencepost_proofs::explain::script(&taken);
        prop_assert_eq!(common::form(system, &plain), common::form(system, &other), "{}: {}", system.setup, script);
    }
    Ok(())
}

/// Every event is recorded, waited for and synchronized, and the device drains.
fn round<P: Protocol>(system: &System<P>, world: &mut World<P>) -> Vec<Action> {
    let streams = system.setup.topology.streams().len();
    let mut taken = Vec::new();
    let mut take = |world: &mut World<P>, action: Action| {
        assert!(system.take(world, action, None) && world.broken.is_none(), "{action}");
        taken.push(action);
    };
    for event in 0..system.setup.bounds.events {
        for stream in 0..streams {
            take(world, Action::Work { stream, part: Part::Compute, kind: Kind::Watched, refuse: 0, lease: 0 });
            take(world, Action::Record { event, stream, refuse: 0, lease: 0 });
            take(world, Action::Wait { stream, event, refuse: 0, lease: 0 });
            take(world, Action::Flush { stream, refuse: 0 });
            take(world, Action::Synchronize { target: Target::Event(event), refuse: 0 });
            loop {
                let mut listed = Vec::new();
                system.list(world, &mut listed);
                let alone = |a: &&Action| a.is_device() || matches!(a, Action::Poll { .. });
                let Some(action) = listed.iter().find(alone).copied() else { break };
                take(world, action);
            }
        }
    }
    taken
}

/// Streams, events and queues under other names: the i-th goes by the name of the i-th in the order.
struct Renaming<'a> {
    order: &'a Order,
    queues: HashMap<u32, u32>,
}

impl<'a> Renaming<'a> {
    fn new(setup: &Setup, order: &'a Order) -> Self {
        let own = Order { streams: (0..order.streams.len()).collect(), events: Vec::new() };
        let queues = queues_in_order(setup, &own).zip(queues_in_order(setup, order)).collect();
        Renaming { order, queues }
    }

    fn action(&self, action: Action) -> Action {
        let s = |stream: usize| self.order.streams[stream];
        let e = |event: usize| self.order.events[event];
        match action {
            Action::Work { stream, part, kind, refuse, lease } => {
                Action::Work { stream: s(stream), part, kind, refuse, lease }
            }
            Action::Record { event, stream, refuse, lease } => {
                Action::Record { event: e(event), stream: s(stream), refuse, lease }
            }
            Action::Wait { stream, event, refuse, lease } => {
                Action::Wait { stream: s(stream), event: e(event), refuse, lease }
            }
            Action::Flush { stream, refuse } => Action::Flush { stream: s(stream), refuse },
            Action::Synchronize { target: Target::Event(event), refuse } => {
                Action::Synchronize { target: Target::Event(e(event)), refuse }
            }
            Action::Synchronize { target: Target::Stream(stream), refuse } => {
                Action::Synchronize { target: Target::Stream(s(stream)), refuse }
            }
            Action::Destroy { event } => Action::Destroy { event: e(event) },
            Action::RenewStream { stream, refuse } => Action::RenewStream { stream: s(stream), refuse },
            Action::Poll { stream } => Action::Poll { stream: s(stream) },
            Action::Device(step) => Action::Device(DeviceStep { queue: self.queues[&step.queue], ..step }),
            Action::Return { .. } | Action::Register { .. } | Action::TimeOut { .. } | Action::Lose => action,
        }
    }
}
