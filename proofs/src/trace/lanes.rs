//! The lanes around a verdict: what happened to its object, one column for each host thread and each queue.

use fencepost::judge::{Handle, Kind, Moment, Object, Site, Verdict};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lane {
    Host(u32),
    Queue(Handle),
}

/// Prints the calls that led to a verdict; those that it names are marked.
pub fn lanes(verdict: &Verdict, name: &dyn Fn(Object) -> String) -> String {
    let here = Moment { site: verdict.site, object: verdict.object, command_buffer: None, queue: None };
    let named = [verdict.conflict, verdict.command, Some(verdict.site)];
    let mut moments = verdict.story.clone();
    for site in named.into_iter().flatten().chain(verdict.lost.iter().copied()) {
        if !moments.iter().any(|moment| moment.site == site) {
            moments.push(Moment { site, ..here });
        }
    }
    moments.sort_by_key(|moment| moment.site);
    moments.dedup();
    let lane = |moment: &Moment| moment.queue.map_or(Lane::Host(moment.site.thread), Lane::Queue);
    let mut all: Vec<Lane> = moments.iter().map(lane).collect();
    all.sort();
    all.dedup();
    let text = |moment: &Moment| {
        let mut text = moment.site.call.to_string();
        if let Some(command_buffer) = moment.command_buffer {
            text = format!("{text} {}", name(Object { kind: Kind::CommandBuffer, handle: command_buffer }));
        }
        let subject = |site: Site| verdict.story.iter().any(|m| m.site == site) || site == verdict.site;
        if subject(moment.site) { format!("{text} {}", name(moment.object)) } else { text }
    };
    let title = |lane: &Lane| match lane {
        Lane::Host(thread) => format!("thread {thread}"),
        Lane::Queue(queue) => format!("queue {}", name(Object { kind: Kind::Queue, handle: *queue })),
    };
    let width = |lane_of: &Lane| {
        let texts = moments.iter().filter(|m| lane(m) == *lane_of).map(|m| text(m).len());
        texts.max().unwrap_or(0).max(title(lane_of).len())
    };
    let widths: Vec<usize> = all.iter().map(width).collect();
    let row = |mark: &str, number: &str, texts: Vec<String>| {
        let cells: Vec<String> = texts.iter().zip(&widths).map(|(text, width)| format!("{text:<width$}")).collect();
        format!("  {mark:1} {number:>8}  {}", cells.join("  ")).trim_end().to_string() + "\n"
    };
    let mut printed = row("", "", all.iter().map(title).collect());
    for moment in &moments {
        let mark = if named.contains(&Some(moment.site)) { ">" } else { "" };
        let cell = |of: &Lane| if lane(moment) == *of { text(moment) } else { String::new() };
        printed += &row(mark, &moment.site.n.to_string(), all.iter().map(cell).collect());
    }
    printed
}
