//! The reader: bad input is one clear error, and nothing makes it panic.

use fencepost_proofs::trace::Reader;
use proptest::prelude::*;

fn read(text: &str) -> Result<(), String> {
    let mut reader = Reader::new();
    let mut verdicts = Vec::new();
    text.lines().try_for_each(|line| reader.line(line.as_bytes(), &mut verdicts)).map_err(|bad| bad.to_string())
}

#[test]
fn bad_lines_are_named() {
    let fine = r#"{"n":1,"thread":0,"call":"vkCreateEvent","event":"E1"}"#;
    let cases = [
        ("{", "EOF while parsing an object (column 1)"),
        ("[]", "invalid type: sequence, expected a JSON object"),
        ("7", "invalid type: integer `7`, expected a JSON object"),
        (r#"{"call":"vkSetEvent","event":"E1"} x"#, "trailing characters"),
        (r#"{"n":2}"#, r#"needs one of "call", "return", "note", "end""#),
        (r#"{"call":"vkSetEvent"}"#, r#"vkSetEvent: needs "event""#),
        (r#"{"call":"vkSetEvent","event":7}"#, r#"field "event": invalid type: integer `7`, expected a string"#),
        (r#"{"call":"vkCmdSetEvent","event":"E1"}"#, r#"vkCmdSetEvent: needs "command_buffer""#),
        (
            r#"{"call":"vkSignalSemaphore","semaphore":"S1","value":-1}"#,
            "field \"value\": invalid value: integer `-1`, expected u64",
        ),
        (
            r#"{"call":"vkSignalSemaphore","semaphore":"S1","value":18446744073709551616}"#,
            "field \"value\": invalid type: floating point",
        ),
        (r#"{"call":"vkQueueSubmit","queue":"Q1","submits":[{"wait":[{"value":1}]}]}"#, "missing field `semaphore`"),
        (
            r#"{"call":"vkQueueSubmit","queue":"Q1","submits":7}"#,
            "field \"submits\": invalid type: integer `7`, expected a sequence",
        ),
        (
            r#"{"call":"vkCmdCopyBuffer","command_buffer":"C1","src":"B1","dst":"B2"}"#,
            r#"vkCmdCopyBuffer: needs "size""#,
        ),
        (r#"{"call":"vkGetFenceStatus","fence":"F1"}"#, r#"vkGetFenceStatus: needs "result""#),
        (r#"{"return":"vkQueueSubmit"}"#, r#"vkQueueSubmit: a return needs "result""#),
        (r#"{"return":"vkQueueSubmit","result":9999999999}"#, r#""result" 9999999999 is no VkResult"#),
    ];
    for (line, expected) in cases {
        let error = read(&format!("{fine}\n{line}")).expect_err(line);
        assert!(error.starts_with("line 2: ") && error.contains(expected), "{line}: {error}");
    }
}

#[test]
fn what_is_not_known_is_skipped_and_counted() {
    let mut reader = Reader::new();
    let lines = [
        r#"{"n":1,"call":"vkCreateImage","image":"I1","extent":[1,2,3]}"#,
        r#"{"n":2,"call":"vkCmdBeginRendering","command_buffer":"C1"}"#,
        r#"{"n":3,"call":"vkCreateEvent","event":"E1","colour":"blue"}"#,
        "",
        r#"{"note":"a remark","n":4}"#,
        r#"{"call":"vkResetEvent","event":"never created"}"#,
        r#"{"call":"vkSetEvent","event":"E1","result":-2}"#,
    ];
    lines.iter().for_each(|line| reader.line(line.as_bytes(), &mut Vec::new()).unwrap());
    assert_eq!((reader.lines, reader.calls_skipped, reader.fields_skipped), (7, 2, 3));
}

/// Lines that name the right calls with few objects, so that they meet.
fn calls() -> impl Strategy<Value = Vec<String>> {
    let recorded = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/traces")).expect("they are there");
    let texts = recorded.map(|file| std::fs::read_to_string(file.expect("a file").path()).expect("text"));
    let lines: Vec<String> = texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let line = (prop::sample::select(lines), any::<prop::sample::Index>(), any::<u8>(), 0..12u8).prop_map(
        |(line, at, byte, how)| {
            let mut bytes = line.into_bytes();
            match how {
                0 => bytes.truncate(at.index(bytes.len())),
                1 => {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
                2 => {
                    // Another number.
                    let digits: Vec<usize> = (0..bytes.len()).filter(|i| bytes[*i].is_ascii_digit()).collect();
                    if !digits.is_empty() {
                        bytes[digits[at.index(digits.len())]] = b'0' + byte % 10;
                    }
                }
                _ => {}
            }
            String::from_utf8_lossy(&bytes).into_owned()
        },
    );
    proptest::collection::vec(line, 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shuffled_and_broken_lines_never_panic(lines in calls()) {
        let mut reader = Reader::new();
        let mut verdicts = Vec::new();
        for line in &lines {
            let _ = reader.line(line.as_bytes(), &mut verdicts);
        }
        reader.finish(&mut verdicts);
        for verdict in &verdicts {
            let name = |object| reader.name(object);
            prop_assert!(verdict.sentence(&name).contains(verdict.site.call));
            prop_assert!(fencepost_proofs::trace::lanes(verdict, &name).contains("thread"));
        }
    }
}
