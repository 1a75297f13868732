//! Plays a program on a backend, beside the naive reference, and compares.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use fencepost::Rule;

use super::report::Broken;
use super::{Answer, Backend, Work};
use crate::reference::{Call, Reference, Works};

/// Plays it; answers what was wrong.
pub(super) fn play<B: Backend>(
    backend: &mut B,
    name: &str,
    rule: Rule,
    program: &[Call],
    patience: Duration,
) -> Vec<Broken> {
    let _watchdog = watch(name.into(), patience);
    let mut player = Player {
        backend,
        rule,
        patience,
        reference: Reference::default(),
        streams: BTreeMap::new(),
        events: BTreeMap::new(),
        recorded: Works::new(),
        owes_a_refusal: false,
        was_refused: false,
    };
    let outside = program.iter().try_for_each(|call| player.take(*call)).and_then(|()| player.finish());
    drop(player);
    let by_name = |complaint: &str| {
        Rule::ALL.into_iter().find_map(|rule| {
            let text = complaint.strip_prefix(rule.name())?.strip_prefix(": ")?.into();
            Some(Broken { rule, text })
        })
    };
    let complaints = backend.complaints().into_iter();
    let inside = complaints.map(|text| by_name(&text).unwrap_or(Broken { rule, text }));
    inside.chain(outside.err()).collect()
}

/// Ends the process if the answer is not dropped in time: a call that blocks cannot be taken back.
fn watch(name: String, patience: Duration) -> Sender<()> {
    let (alive, watched) = mpsc::channel();
    std::thread::spawn(move || {
        if watched.recv_timeout(patience * 10) == Err(RecvTimeoutError::Timeout) {
            let _ = writeln!(std::io::stderr().lock(), "progress: a call of {name:?} does not return");
            std::process::abort();
        }
    });
    alive
}

struct Player<'a, B: Backend> {
    backend: &'a mut B,
    rule: Rule,
    patience: Duration,
    reference: Reference,
    streams: BTreeMap<usize, B::Stream>,
    events: BTreeMap<usize, B::Event>,
    /// Events that were recorded since they were made.
    recorded: Works,
    /// The driver is about to refuse a call.
    owes_a_refusal: bool,
    was_refused: bool,
}

impl<B: Backend> Player<'_, B> {
    fn take(&mut self, call: Call) -> Result<(), Broken> {
        let mut answer = self.make(call);
        if answer.is_err() && std::mem::take(&mut self.owes_a_refusal) {
            answer = self.make(call);
        }
        let is_host_wait = matches!(call, Call::Synchronize(_) | Call::SynchronizeStream(_));
        match answer {
            Ok(_) if self.reference.lost && is_host_wait => {
                return broken(Rule::Loss, format!("{} succeeds on a lost device", told(call)));
            }
            Err(_) if self.reference.lost => return Ok(()),
            Err(error) => return broken(self.rule, format!("{}: {error}", told(call))),
            Ok(done) => self.compare(call, done)?,
        }
        self.reference.take(call);
        match call {
            Call::Event(e) => drop(self.recorded.remove(&e)),
            Call::Record(e, _) => drop(self.recorded.insert(e)),
            Call::Refuse(_) => (self.owes_a_refusal, self.was_refused) = (true, true),
            _ => {}
        }
        if self.reference.lost { Ok(()) } else { self.have_ended(call, &self.reference.known.clone()) }
    }

    /// Whether it is done, where the call asks that.
    fn make(&mut self, call: Call) -> Answer<bool> {
        let Player { backend, streams, events, patience, .. } = self;
        match call {
            Call::Stream(s, queue) => drop(streams.insert(s, backend.stream(queue)?)),
            Call::Event(e) => drop(events.insert(e, backend.event()?)),
            Call::Work(s) => {
                let after: Vec<usize> = self.reference.streams[&s].1.iter().copied().collect();
                backend.work(&streams[&s], Work { number: self.reference.after.len(), after: &after })?;
            }
            Call::Record(e, s) => backend.record(&events[&e], &streams[&s])?,
            Call::Wait(s, e) => backend.wait(&streams[&s], &events[&e])?,
            Call::Flush(s) => backend.flush(&streams[&s])?,
            Call::Synchronize(e) => return backend.synchronize(&events[&e], *patience),
            Call::TimeOut(e) => return backend.synchronize(&events[&e], Duration::ZERO),
            Call::SynchronizeStream(s) => return backend.synchronize_stream(&streams[&s], *patience),
            Call::Query(e) => return backend.query(&events[&e]),
            Call::DropEvent(e) => events.remove(&e).map_or(Ok(()), |event| backend.destroy_event(event))?,
            Call::DropStream(s) => streams.remove(&s).map_or(Ok(()), |stream| backend.destroy_stream(stream))?,
            Call::Refuse(others) => backend.refuse(others)?,
            Call::Lose => backend.lose()?,
        }
        Ok(true)
    }

    fn compare(&mut self, call: Call, done: bool) -> Result<(), Broken> {
        let (Call::Synchronize(e) | Call::TimeOut(e) | Call::Query(e)) = call else {
            return if done { Ok(()) } else { broken(Rule::Progress, format!("{} runs out of time", told(call))) };
        };
        if !done && !self.recorded.contains(&e) {
            return broken(Rule::UnrecordedWait, format!("{}, never recorded, is not done", told(call)));
        }
        if !done && matches!(call, Call::Synchronize(_)) {
            return broken(Rule::Progress, format!("{} runs out of time", told(call)));
        }
        if !done && self.reference.passed.contains(&e) {
            return broken(Rule::Progress, format!("{}: what the host has waited for is not done", told(call)));
        }
        match self.reference.events[&e].clone() {
            Some(covers) if done => self.have_ended(call, &covers),
            _ => Ok(()),
        }
    }

    /// Something said that these works have ended.
    fn have_ended(&mut self, call: Call, works: &Works) -> Result<(), Broken> {
        let ended = self.ended()?;
        let rule = if self.was_refused { Rule::Refusal } else { Rule::EarlyCompletion };
        match works.difference(&ended).next() {
            Some(work) => broken(rule, format!("{} is done, and work {work} has not ended", told(call))),
            None => Ok(()),
        }
    }

    fn ended(&mut self) -> Result<Works, Broken> {
        let ended = self.backend.ended().map(|works| works.into_iter().collect());
        ended.or_else(|error| broken(self.rule, format!("the marks cannot be read: {error}")))
    }

    /// Everything runs to its end, and followed what it had to.
    fn finish(&mut self) -> Result<(), Broken> {
        if self.reference.lost {
            return Ok(());
        }
        let streams: Vec<usize> = self.streams.keys().copied().collect();
        // Those that wait first: what they wait for has not even been submitted.
        streams.iter().rev().try_for_each(|s| self.take(Call::Flush(*s)))?;
        streams.iter().try_for_each(|s| self.take(Call::SynchronizeStream(*s)))?;
        let (start, count) = (Instant::now(), self.reference.after.len());
        // Only those of destroyed streams may still run.
        while self.ended()?.len() < count {
            if start.elapsed() > self.patience {
                let ended = self.ended()?;
                return broken(Rule::Progress, format!("of {count} works only {ended:?} have ended"));
            }
        }
        for (work, after) in self.reference.after.clone().into_iter().enumerate() {
            let found = self.backend.found(work);
            let found: Works = found.or_else(|error| broken(self.rule, error.to_string()))?.into_iter().collect();
            if let Some(other) = after.difference(&found).next() {
                let rule = match self.rule {
                    _ if self.was_refused => Rule::Refusal,
                    Rule::StaleWait => Rule::StaleWait, // From outside the two look alike.
                    _ => Rule::LostWait,
                };
                return broken(rule, format!("work {work} began before work {other} had ended"));
            }
        }
        Ok(())
    }
}

fn broken<T>(rule: Rule, text: String) -> Result<T, Broken> {
    Err(Broken { rule, text })
}

/// A call in a line; a script needs more of them for some.
fn told(call: Call) -> String {
    call.to_string().lines().next().unwrap_or_default().into()
}
