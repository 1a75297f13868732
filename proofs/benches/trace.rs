//! How fast traces are read and judged: `cargo bench -p fencepost-proofs --bench trace`. A run of a real backend on two queues is
//! repeated with fresh objects until it has a million lines.

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use fencepost_proofs::trace::Reader;

const LINES: usize = 1_000_000;

fn main() {
    divan::main();
}

/// The recorded run, again and again, its objects renamed each time.
fn million_lines() -> String {
    let recorded = include_str!("../../tests/traces/pr25229-merged.copy-overtakes-wait.ndjson");
    let lines: Vec<&str> = recorded.lines().filter(|line| !line.contains("\"end\"")).collect();
    let mut text = String::new();
    for at in 0..LINES {
        let (round, line) = (at / lines.len(), lines[at % lines.len()]);
        for (n, part) in line.split('"').enumerate() {
            text.push_str(if n > 0 { "\"" } else { "" });
            let number = part.get(1..).and_then(|digits| digits.parse::<usize>().ok());
            match number.filter(|_| part.starts_with(['C', 'P', 'E', 'S', 'F', 'B'])) {
                Some(number) => text.push_str(&format!("{}{}", &part[..1], number + 100 * round)),
                None => text.push_str(part),
            }
        }
        text.push('\n');
    }
    text
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn judge_a_million_lines(bencher: Bencher) {
    let text = million_lines();
    let size = (ItemsCount::new(LINES), BytesCount::of_str(&text));
    bencher.counter(size.0).counter(size.1).bench(|| {
        let mut reader = Reader::new();
        let mut verdicts = Vec::new();
        for line in text.as_bytes().split(|b| *b == b'\n') {
            reader.line(line, &mut verdicts).expect("it was recorded");
        }
        assert!(verdicts.is_empty() && reader.calls_skipped == 0);
        reader.lines
    });
}
