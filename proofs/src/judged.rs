//! `fencepost trace`: what traces break, printed.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::thread::sleep;
use std::time::Duration;

use fencepost::judge::{Moment, Site, Verdict};
use fencepost_proofs::trace::{Reader, lanes};
use serde_json::{Value, json};

use crate::report::{SAFETY, SCHEMA, USAGE, print_json};

/// What one trace gave.
struct Judged {
    file: String,
    reader: Reader,
    broken: Vec<Value>,
    broken_count: u64,
    bad: Option<String>,
}

/// Judges every file. What was found before a bad line is told all the same.
pub fn run(files: &[String], follow: bool, as_json: bool) -> Result<u8, String> {
    if follow && files.len() > 1 {
        return Err(format!("--follow reads one file, not {}", files.len()));
    }
    let mut results = Vec::with_capacity(files.len());
    for file in files {
        let cannot = |error: std::io::Error| format!("{file}: {error}");
        let input: Box<dyn Read> =
            if file == "-" { Box::new(std::io::stdin()) } else { Box::new(File::open(file).map_err(cannot)?) };
        let result = judge(file, BufReader::with_capacity(1 << 20, input), follow, as_json).map_err(cannot)?;
        if !as_json {
            print_summary(&result);
        }
        results.push(result);
    }
    let bad = results.iter().any(|result| result.bad.is_some());
    let broken = results.iter().any(|result| result.broken_count > 0);
    let exit = if bad {
        USAGE
    } else if broken {
        SAFETY
    } else {
        0
    };
    if as_json {
        let files: Vec<Value> = results.into_iter().map(file_json).collect();
        print_json(&json!({ "schema": SCHEMA, "exit": exit, "files": files }));
    }
    Ok(exit)
}

fn judge(file: &str, mut input: impl BufRead, follow: bool, as_json: bool) -> std::io::Result<Judged> {
    let mut result =
        Judged { file: file.into(), reader: Reader::new(), broken: Vec::new(), broken_count: 0, bad: None };
    let mut text = Vec::new();
    let mut verdicts = Vec::new();
    loop {
        if input.read_until(b'\n', &mut text)? == 0 || follow && text.last() != Some(&b'\n') {
            if follow {
                sleep(Duration::from_millis(50));
                continue;
            }
            if text.is_empty() {
                break;
            }
        }
        let line = text.strip_suffix(b"\n").unwrap_or(&text);
        let read = result.reader.line(line, &mut verdicts);
        text.clear();
        verdicts.drain(..).for_each(|verdict| tell(&mut result, &verdict, as_json));
        if let Err(bad) = read {
            eprintln!("fencepost: {file}: {bad}");
            result.bad = Some(bad.to_string());
            return Ok(result);
        }
    }
    result.reader.finish(&mut verdicts);
    verdicts.drain(..).for_each(|verdict| tell(&mut result, &verdict, as_json));
    Ok(result)
}

fn tell(result: &mut Judged, verdict: &Verdict, as_json: bool) {
    result.broken_count += 1;
    let name = |object| result.reader.name(object);
    if as_json {
        let broken = verdict_json(verdict, &name);
        result.broken.push(broken);
        return;
    }
    let generation = verdict.generation.map_or(String::new(), |g| format!(" generation {g}"));
    println!(
        "{}:{}: {}: {}{generation}\n  {}.\n{}",
        result.file,
        verdict.site.n,
        verdict.rule.name(),
        name(verdict.object),
        verdict.sentence(&name),
        lanes(verdict, &name)
    );
    let _ = std::io::stdout().flush();
}

fn print_summary(result: &Judged) {
    let Judged { file, reader, broken_count, .. } = result;
    let skipped = format!("{} calls and {} fields not known and skipped", reader.calls_skipped, reader.fields_skipped);
    let open = match (reader.batch_count(), &reader.end) {
        (0, _) => String::new(),
        (count, Some(end)) => format!("; it ended {end} with {count} batches not known to have ended"),
        (count, None) => format!("; it stops without an end, with {count} batches not known to have ended"),
    };
    println!(
        "{file}: {broken_count} broken, {} lines, {} calls judged, {skipped}{open}",
        reader.lines, reader.calls_read
    );
}

fn file_json(result: Judged) -> Value {
    let Judged { file, reader, broken, bad, .. } = result;
    json!({
        "file": file,
        "lines": reader.lines,
        "calls": reader.calls_read,
        "skipped_calls": reader.calls_skipped,
        "skipped_fields": reader.fields_skipped,
        "batches_open": reader.batch_count(),
        "end": reader.end,
        "error": bad,
        "broken": broken,
    })
}

fn verdict_json(verdict: &Verdict, name: &dyn Fn(fencepost::judge::Object) -> String) -> Value {
    let site = |site: Site| json!({ "line": site.n, "thread": site.thread, "call": site.call });
    let queue = |handle| name(fencepost::judge::Object { kind: fencepost::judge::Kind::Queue, handle });
    let moment = |moment: &Moment| {
        let mut told = site(moment.site);
        told["queue"] = moment.queue.map(queue).into();
        told
    };
    json!({
        "rule": verdict.rule.name(),
        "object": name(verdict.object),
        "generation": verdict.generation,
        "call": site(verdict.site),
        "command": verdict.command.map(site),
        "conflict": verdict.conflict.map(site),
        "place": verdict.place.map(name),
        "lost": verdict.lost.iter().copied().map(site).collect::<Vec<_>>(),
        "sentence": verdict.sentence(name),
        "story": verdict.story.iter().map(moment).collect::<Vec<_>>(),
    })
}
