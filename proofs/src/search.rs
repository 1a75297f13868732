//! A breadth-first search of our own: exact states, every edge kept, nothing cut silently.
//!
//! It stores canonical forms, not worlds. A world is found again by replaying the way to it; since states
//! are expanded in the order they were found, the ways of two neighbours differ only in their last steps.

use std::time::{Duration, Instant};

use fencepost::Rule;
use hashbrown::HashTable;

use crate::action::Action;
use crate::canonical;
use crate::protocol::Protocol;
use crate::world::{System, World};

/// Where a search stops before its end.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub states: usize,
    pub time: Duration,
    /// Stop at the end of the level where a rule was broken first.
    pub first_finding: bool,
}

impl Limits {
    pub const NONE: Limits = Limits { states: usize::MAX, time: Duration::MAX, first_finding: false };
}

/// A broken rule and the shortest way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub rule: Rule,
    pub path: Vec<Action>,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub unique_count: usize,
    pub generated_count: usize,
    /// Steps to the state that is farthest from the start.
    pub depth: usize,
    /// In the order of the rules.
    pub findings: Vec<Finding>,
    /// The search ended by itself.
    pub exhaustive: bool,
    /// Kinds of steps that were taken.
    pub fired: Vec<&'static str>,
    /// Rules whose antecedent held somewhere, as bits in the order of [`Rule::ALL`].
    pub seen: u16,
    pub elapsed: Duration,
    /// What the search itself holds at its end.
    pub bytes: usize,
}

/// Progress of a running search, for one line on stderr.
#[derive(Clone, Copy, Debug)]
pub struct Pulse {
    pub depth: usize,
    pub unique_count: usize,
    pub generated_count: usize,
    pub frontier_count: usize,
    pub elapsed: Duration,
    pub bytes: usize,
}

const DEVICE: u32 = 1 << 31;

/// The explored graph. States are numbered in the order they were found.
struct Graph {
    forms: Vec<u8>,
    /// Where each form ends.
    ends: Vec<u64>,
    parents: Vec<u32>,
    /// The step from the parent, by its position in the parent's list.
    steps: Vec<u16>,
    table: HashTable<u32>,
    /// Successors of the expanded states, in order; device steps are marked.
    edges: Vec<u32>,
    edge_ends: Vec<u64>,
    quiescent: Vec<u64>,
}

impl Graph {
    /// The number of a form, and whether it is new.
    fn insert(&mut self, form: &[u8], parent: u32, step: u16) -> (u32, bool) {
        let hash = hash(form);
        let (forms, ends) = (&self.forms, &self.ends);
        let of = |id: u32| {
            let start = if id == 0 { 0 } else { ends[id as usize - 1] };
            &forms[start as usize..ends[id as usize] as usize]
        };
        if let Some(id) = self.table.find(hash, |id| of(*id) == form) {
            return (*id, false);
        }
        let id = u32::try_from(self.ends.len()).ok().filter(|id| id & DEVICE == 0).expect("fewer than 2^31 states");
        self.table.insert_unique(hash, id, |id| self::hash(of(*id)));
        self.forms.extend_from_slice(form);
        self.ends.push(self.forms.len() as u64);
        self.parents.push(parent);
        self.steps.push(step);
        if id.is_multiple_of(64) {
            self.quiescent.push(0);
        }
        (id, true)
    }

    fn bytes(&self) -> usize {
        self.forms.len()
            + self.ends.len() * (8 + 4 + 2 + 8)
            + self.table.capacity() * 5
            + self.edges.len() * 4
            + self.quiescent.len() * 8
    }

    fn successors(&self, id: u32) -> &[u32] {
        let start = if id == 0 { 0 } else { self.edge_ends[id as usize - 1] };
        &self.edges[start as usize..self.edge_ends[id as usize] as usize]
    }

    fn is_quiescent(&self, id: u32) -> bool {
        self.quiescent[id as usize / 64] >> (id % 64) & 1 == 1
    }

    /// The first state from which no quiescent state can be reached by device steps alone.
    ///
    /// Device steps consume what they act on, so with one host thread they cannot go round; where
    /// threads block on each other they might, which is why this looks at the whole graph. What it assumes
    /// of fairness: a device step, or a thread's return, that stays possible is taken sooner or later.
    fn first_that_never_drains(&self, broken: &[bool]) -> Option<u32> {
        let count = self.ends.len();
        let mut drains: Vec<bool> = (0..count as u32).map(|id| self.is_quiescent(id) || broken[id as usize]).collect();
        // Most device steps lead to states found later, so going backwards settles most in one pass.
        loop {
            let mut changed = false;
            for id in (0..count).rev() {
                let on = |edge: &u32| edge & DEVICE != 0 && drains[(edge & !DEVICE) as usize];
                if !drains[id] && self.successors(id as u32).iter().any(on) {
                    drains[id] = true;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        drains.iter().position(|d| !d).map(|id| id as u32)
    }
}

fn hash(form: &[u8]) -> u64 {
    use std::hash::Hasher;
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(form);
    hasher.finish()
}

/// Explores every state. `pulse` is told of every level, and now and then within one.
pub fn run<P: Protocol>(system: &System<P>, limits: Limits, mut pulse: impl FnMut(Pulse)) -> Outcome {
    let started = Instant::now();
    let mut graph = Graph {
        forms: Vec::new(),
        ends: Vec::new(),
        parents: Vec::new(),
        steps: Vec::new(),
        table: HashTable::new(),
        edges: Vec::new(),
        edge_ends: Vec::new(),
        quiescent: Vec::new(),
    };
    let start = system.start();
    canonical::with_form(system, &start, |form| graph.insert(form, 0, 0));
    mark(system, &mut graph, 0, &start);

    let mut way = Way { worlds: vec![(0, start)], spare: Vec::new() };
    let mut broken: Vec<Option<Rule>> = vec![None];
    let (mut level_end, mut depth, mut generated_count, mut seen) = (1, 0, 0, 0u16);
    let mut fired: Vec<&'static str> = Vec::new();
    let mut exhaustive = true;
    let mut actions = Vec::new();
    let mut scratch = system.start();
    let mut id = 0;
    while (id as usize) < graph.ends.len() {
        let level_ends = id as usize == level_end;
        if level_ends || id % 1024 == 1023 {
            let (elapsed, unique_count) = (started.elapsed(), graph.ends.len());
            if level_ends {
                depth += 1;
                level_end = unique_count;
            }
            if level_ends || id % 65536 == 65535 {
                let frontier_count = unique_count - id as usize;
                pulse(Pulse { depth, unique_count, generated_count, frontier_count, elapsed, bytes: graph.bytes() });
            }
            let found = limits.first_finding && level_ends && broken.iter().any(Option::is_some);
            if found || unique_count >= limits.states || elapsed >= limits.time {
                exhaustive = false;
                break;
            }
        }
        if broken[id as usize].is_none() {
            let world = way.to(system, &graph, id);
            actions.clear();
            system.list(world, &mut actions);
            for (step, action) in actions.iter().enumerate() {
                scratch.clone_from(world);
                if !system.take(&mut scratch, *action, None) {
                    continue;
                }
                generated_count += 1;
                seen |= scratch.seen;
                if !fired.contains(&action.kind()) {
                    fired.push(action.kind());
                }
                let (next, new) = canonical::with_form(system, &scratch, |form| graph.insert(form, id, step as u16));
                graph.edges.push(next | if action.is_device() { DEVICE } else { 0 });
                if new {
                    broken.push(scratch.broken);
                    mark(system, &mut graph, next, &scratch);
                }
            }
        }
        graph.edge_ends.push(graph.edges.len() as u64);
        id += 1;
    }

    let mut findings: Vec<Finding> = Vec::new();
    for rule in Rule::ALL {
        let mut first = broken.iter().position(|b| *b == Some(rule)).map(|id| id as u32);
        if rule == Rule::Progress && first.is_none() && exhaustive {
            let broken: Vec<bool> = broken.iter().map(Option::is_some).collect();
            first = graph.first_that_never_drains(&broken);
        }
        findings.extend(first.map(|id| Finding { rule, path: way.path(system, &graph, id) }));
    }
    fired.sort_unstable();
    Outcome {
        unique_count: graph.ends.len(),
        generated_count,
        depth,
        findings,
        exhaustive,
        fired,
        seen,
        elapsed: started.elapsed(),
        bytes: graph.bytes(),
    }
}

fn mark<P: Protocol>(system: &System<P>, graph: &mut Graph, id: u32, world: &World<P>) {
    if system.is_quiescent(world) {
        graph.quiescent[id as usize / 64] |= 1 << (id % 64);
    }
}

/// The worlds on the way from the start to one state.
struct Way<P> {
    worlds: Vec<(u32, World<P>)>,
    spare: Vec<World<P>>,
}

impl<P: Protocol> Way<P> {
    /// The world of a state that was found.
    fn to(&mut self, system: &System<P>, graph: &Graph, id: u32) -> &World<P> {
        let mut missing = Vec::new();
        let mut at = id;
        // Parents have smaller numbers: drop what lies beyond, climb until the two ways meet.
        while self.worlds.last().is_some_and(|(top, _)| *top != at) {
            if self.worlds.last().is_some_and(|(top, _)| *top > at) {
                self.spare.extend(self.worlds.pop().map(|(_, world)| world));
            } else {
                missing.push(at);
                at = graph.parents[at as usize];
            }
        }
        let mut actions = Vec::new();
        for id in missing.into_iter().rev() {
            let (_, from) = self.worlds.last().expect("every way begins at the start");
            actions.clear();
            system.list(from, &mut actions);
            let mut world = self.spare.pop().unwrap_or_else(|| from.clone());
            world.clone_from(from);
            let possible = system.take(&mut world, actions[graph.steps[id as usize] as usize], None);
            assert!(possible, "a step that was taken once can be taken again");
            self.worlds.push((id, world));
        }
        let (_, world) = self.worlds.last().expect("every way begins at the start");
        world
    }

    /// The steps to a state.
    fn path(&mut self, system: &System<P>, graph: &Graph, id: u32) -> Vec<Action> {
        let mut ids = vec![id];
        while let Some(last) = ids.last().copied().filter(|id| *id != 0) {
            ids.push(graph.parents[last as usize]);
        }
        let mut path = Vec::new();
        let mut actions = Vec::new();
        for pair in ids.windows(2).rev() {
            actions.clear();
            system.list(self.to(system, graph, pair[1]), &mut actions);
            path.push(actions[graph.steps[pair[0] as usize] as usize]);
        }
        path
    }
}
