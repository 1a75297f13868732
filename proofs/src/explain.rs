//! A counterexample as a story: one column for each host thread, stream (what goes into its open batch) and queue, one block for each step.

use std::collections::BTreeSet;

use fencepost::Rule;

use crate::action::Action;
use crate::canonical;
use crate::host::{Lane, Line};
use crate::protocol::Protocol;
use crate::setup::Setup;
use crate::world::{System, World};

/// A way through a system, told.
#[derive(Clone, Debug)]
pub struct Story {
    pub steps: Vec<Step>,
    /// The rule broken at the end, if any.
    pub broken: Option<Rule>,
}

/// One step and what it did.
#[derive(Clone, Debug)]
pub struct Step {
    pub action: Action,
    pub lines: Vec<Line>,
}

/// A step that cannot be taken where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impossible {
    /// Counted from 1.
    pub step: usize,
    pub action: Action,
    pub possible: Vec<String>,
}

/// Takes the steps one by one.
pub fn tell<P: Protocol>(system: &System<P>, path: &[Action]) -> Result<Story, Impossible> {
    let mut world = system.start();
    let mut steps = Vec::new();
    let mut buffers = Vec::new();
    for (at, action) in path.iter().enumerate() {
        let mut actions = Vec::new();
        system.list(&world, &mut actions);
        let mut lines = Vec::new();
        let before = world.clone();
        if !actions.contains(action) || !system.take(&mut world, *action, Some(&mut lines)) {
            let possible = actions.into_iter().filter(|a| system.take(&mut before.clone(), *a, None));
            let possible = possible.map(|a| a.to_string()).collect();
            return Err(Impossible { step: at + 1, action: *action, possible });
        }
        lines.iter_mut().for_each(|line| line.text = number_buffers(&line.text, &mut buffers));
        steps.push(Step { action: *action, lines });
    }
    let stays = || never_drains(system, &world).then_some(Rule::Progress);
    Ok(Story { steps, broken: world.broken.or_else(stays) })
}

/// Whether device steps and returns of threads alone never lead to rest.
pub fn never_drains<P: Protocol>(system: &System<P>, world: &World<P>) -> bool {
    let mut known: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut worlds = vec![world.clone()];
    while let Some(world) = worlds.pop() {
        if system.is_quiescent(&world) || world.broken.is_some() {
            return false;
        }
        if !known.insert(canonical::with_form(system, &world, <[u8]>::to_vec)) {
            continue;
        }
        let mut actions = Vec::new();
        system.list(&world, &mut actions);
        for action in actions.into_iter().filter(|a| a.is_device()) {
            let mut next = world.clone();
            if system.take(&mut next, action, None) {
                worlds.push(next);
            }
        }
    }
    true
}

/// The story in lanes.
pub fn lanes(setup: &Setup, story: &Story) -> String {
    let mut lanes: Vec<Lane> = (0..setup.topology.thread_count()).map(Lane::Host).collect();
    lanes.extend((0..setup.topology.streams().len()).map(Lane::Stream));
    lanes.extend((0..setup.topology.queue_count()).map(|q| Lane::Queue(q as u32)));
    let title = |lane: &Lane| match lane {
        Lane::Host(thread) => format!("host {thread}"),
        Lane::Stream(stream) => format!("stream {stream}"),
        Lane::Queue(queue) => format!("queue {queue}"),
    };
    let width = |lane: &Lane| {
        let lines = story.steps.iter().flat_map(|s| &s.lines).filter(|l| l.lane == *lane);
        lines.map(|l| l.text.len()).max().unwrap_or(0).max(title(lane).len())
    };
    let widths: Vec<usize> = lanes.iter().map(width).collect();

    let row = |head: &str, texts: Vec<String>| {
        let cells: Vec<String> = texts.iter().zip(&widths).map(|(t, w)| format!("{t:<w$}")).collect();
        format!("{head:>4}  {}", cells.join("  ")).trim_end().to_string() + "\n"
    };
    let mut text = row("", lanes.iter().map(title).collect());
    for (number, step) in story.steps.iter().enumerate() {
        for (at, line) in step.lines.iter().enumerate() {
            let head = if at == 0 { (number + 1).to_string() } else { String::new() };
            let here = |lane: &Lane| if *lane == line.lane { line.text.clone() } else { String::new() };
            text += &row(&head, lanes.iter().map(here).collect());
        }
    }
    text += "\nV is a device event, T a timeline, F a fence, b a command buffer; W is watched work, D work that has to follow it.\n";
    if setup.row <= 3 {
        text += "The device event of an event that was never recorded is set.\n";
    }
    if let Some(rule) = story.broken {
        text += &format!("\n{} is broken: {}.\n", rule.name(), rule.matters());
    }
    text
}

/// Numbers buffers in the order in which a story names them.
fn number_buffers(text: &str, names: &mut Vec<String>) -> String {
    let word = |word: &str| {
        let name = word.trim_end_matches(':');
        if name.strip_prefix('b').is_none_or(|digits| digits.parse::<u32>().is_err()) {
            return word.to_string();
        }
        let number = names.iter().position(|n| n == name).unwrap_or_else(|| {
            names.push(name.into());
            names.len() - 1
        });
        format!("b{number}{}", &word[name.len()..])
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Steps as one line that `replay` reads.
pub fn script(path: &[Action]) -> String {
    path.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
