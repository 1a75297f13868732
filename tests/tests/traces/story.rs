//! Traces written as stories, a line for each call:
//!
//! `C1 = set E1 | barrier | wait E1 compute` records a command buffer (`open C1 = ..` leaves it open, `close C1` ends it,
//! `once`, `alone` before the name allow one submission, or one at a time); `Q1: C1 C2, wait S1=1, signal S1=2, fence F1` submits;
//! all else is a call of the host: `reset E1`, `wait F1`, `hold S1=3` (a wait that never returns).

use fencepost_proofs::trace::Reader;
use serde_json::{Value, json};

/// The rules that a story breaks, with their objects, in order.
pub fn broken(story: &str) -> Vec<String> {
    judged(story).into_iter().map(|(rule, object, _)| format!("{rule} {object}")).collect()
}

/// The same, with the sentences.
pub fn judged(story: &str) -> Vec<(String, String, String)> {
    let mut reader = Reader::new();
    let mut verdicts = Vec::new();
    for line in trace(story) {
        let text = line.to_string();
        reader.line(text.as_bytes(), &mut verdicts).unwrap_or_else(|bad| panic!("{text}: {bad}"));
    }
    reader.finish(&mut verdicts);
    assert_eq!((reader.calls_skipped, reader.fields_skipped), (0, 0), "{story}");
    let name = |object| reader.name(object);
    verdicts.iter().map(|v| (v.rule.name().into(), name(v.object), v.sentence(&name))).collect()
}

/// The story's trace.
pub fn trace(story: &str) -> Vec<Value> {
    let mut lines = Vec::new();
    let steps = story.lines().map(|line| line.split('#').next().unwrap_or("").trim()).filter(|line| !line.is_empty());
    steps.for_each(|step| tell(step, &mut lines));
    lines.push(json!({"end": "ok"}));
    for (n, line) in lines.iter_mut().enumerate() {
        line["n"] = n.into();
        line["thread"] = json!(0);
    }
    lines
}

fn call(name: &str, mut fields: Value) -> Value {
    fields["call"] = name.into();
    fields
}

fn stage(name: Option<&str>) -> u64 {
    match name {
        None | Some("all") => 0x1_0000,
        Some("compute") => 0x800,
        Some("transfer") => 0x1000,
        Some("fragment") => 0x80,
        Some("top") => 1,
        Some("bottom") => 0x2000,
        Some(other) => panic!("no stage is called {other}"),
    }
}

fn tell(step: &str, lines: &mut Vec<Value>) {
    if let Some((head, commands)) = step.split_once('=').filter(|(head, _)| !head.contains([':', 'S', 'F'])) {
        let words: Vec<&str> = head.split_whitespace().collect();
        let buffer = *words.last().expect("a command buffer is named");
        let flags = if words.contains(&"once") { Some(1) } else { words.contains(&"alone").then_some(0) };
        let mut begin = json!({"command_buffer": buffer});
        if let Some(flags) = flags {
            begin["flags"] = flags.into();
        }
        lines.push(call("vkBeginCommandBuffer", begin));
        let commands = commands.split('|').map(str::trim).filter(|c| !c.is_empty());
        commands.for_each(|c| lines.push(command(buffer, c)));
        if !words.contains(&"open") {
            lines.push(call("vkEndCommandBuffer", json!({"command_buffer": buffer})));
        }
        return;
    }
    if let Some((queue, rest)) = step.split_once(':') {
        lines.extend(submit(queue, rest));
        return;
    }
    let words: Vec<&str> = step.split_whitespace().collect();
    let (verb, object) = (words[0], words.get(1).copied().unwrap_or(""));
    let kind = object.chars().next().unwrap_or(' ');
    let value = || {
        let (semaphore, value) = object.split_once('=').expect("a value is named");
        (semaphore, value.parse::<u64>().expect("it is a number"))
    };
    let returned = |name: &str| json!({"return": name, "result": 0});
    match (verb, kind) {
        ("queue", _) => lines.push(call("vkGetDeviceQueue", json!({"queue": object}))),
        ("create", 'E') => lines.push(call("vkCreateEvent", json!({"event": object}))),
        ("create", 'S') => lines.push(call("vkCreateSemaphore", json!({"semaphore": object}))),
        ("create", 'F') => lines.push(call("vkCreateFence", json!({"fence": object}))),
        ("create", 'B') => lines.push(call("vkCreateBuffer", json!({"buffer": object, "size": 1024}))),
        ("create", 'P') => {
            lines.push(call("vkCreateCommandPool", json!({"command_pool": object})));
            let fields = json!({"command_pool": object, "command_buffers": words[2..]});
            lines.push(call("vkAllocateCommandBuffers", fields));
        }
        ("set", 'E') => lines.push(call("vkSetEvent", json!({"event": object}))),
        ("reset", 'E') => lines.push(call("vkResetEvent", json!({"event": object}))),
        ("reset", 'C') => lines.push(call("vkResetCommandBuffer", json!({"command_buffer": object}))),
        ("reset", 'P') => lines.push(call("vkResetCommandPool", json!({"command_pool": object}))),
        ("reset", 'F') => lines.push(call("vkResetFences", json!({"fences": [object]}))),
        ("free", 'C') => lines.push(call("vkFreeCommandBuffers", json!({"command_buffer": object}))),
        ("destroy", 'E') => lines.push(call("vkDestroyEvent", json!({"event": object}))),
        ("destroy", 'S') => lines.push(call("vkDestroySemaphore", json!({"semaphore": object}))),
        ("destroy", 'P') => lines.push(call("vkDestroyCommandPool", json!({"command_pool": object}))),
        ("destroy", 'F') => lines.push(call("vkDestroyFence", json!({"fence": object}))),
        ("destroy", 'D') => lines.push(call("vkDestroyDevice", json!({}))),
        ("status", 'E') => {
            let result = if words.get(2) == Some(&"set") { 3 } else { 4 };
            lines.push(call("vkGetEventStatus", json!({"event": object, "result": result})));
        }
        ("poll", 'F') => lines.push(call("vkGetFenceStatus", json!({"fence": object, "result": 0}))),
        ("close", 'C') => lines.push(call("vkEndCommandBuffer", json!({"command_buffer": object}))),
        ("signal", 'S') => {
            let (semaphore, value) = value();
            lines.push(call("vkSignalSemaphore", json!({"semaphore": semaphore, "value": value})));
        }
        ("counter", 'S') => {
            let (semaphore, value) = value();
            lines.push(call("vkGetSemaphoreCounterValue", json!({"semaphore": semaphore, "value": value})));
        }
        ("wait" | "hold", 'S') => {
            let (semaphore, value) = value();
            lines.push(call("vkWaitSemaphores", json!({"wait": [{"semaphore": semaphore, "value": value}]})));
            lines.extend((verb == "wait").then(|| returned("vkWaitSemaphores")));
        }
        ("wait", 'F') => {
            lines.push(call("vkWaitForFences", json!({"fences": [object]})));
            lines.push(returned("vkWaitForFences"));
        }
        ("idle", 'Q') => {
            lines.push(call("vkQueueWaitIdle", json!({"queue": object})));
            lines.push(returned("vkQueueWaitIdle"));
        }
        ("idle", _) => {
            lines.push(call("vkDeviceWaitIdle", json!({})));
            lines.push(returned("vkDeviceWaitIdle"));
        }
        _ => panic!("no step is called {step:?}"),
    }
}

fn command(buffer: &str, command: &str) -> Value {
    let words: Vec<&str> = command.split_whitespace().collect();
    let word = |at: usize| words.get(at).copied();
    let mut fields = json!({"command_buffer": buffer});
    let mut set = |key: &str, value: Value| fields[key] = value;
    let name = match words[0] {
        name @ ("set" | "reset") => {
            set("event", word(1).into());
            set("stage", stage(word(2)).into());
            if name == "set" { "vkCmdSetEvent2" } else { "vkCmdResetEvent2" }
        }
        "wait" => {
            set("events", word(1).map(|events| events.split('+').collect::<Vec<_>>()).into());
            set("src_stage", stage(None).into());
            set("dst_stage", stage(word(2)).into());
            "vkCmdWaitEvents"
        }
        "barrier" => {
            set("src_stage", stage(word(1)).into());
            set("dst_stage", stage(word(2)).into());
            "vkCmdPipelineBarrier"
        }
        "fill" => {
            set("dst", word(1).into());
            set("dst_offset", word(2).map_or(0, |w| w.parse().expect("an offset")).into());
            set("size", word(3).map_or(64, |w| w.parse().expect("a size")).into());
            "vkCmdFillBuffer"
        }
        "copy" => {
            set("src", word(1).into());
            set("src_offset", 0.into());
            set("dst", word(2).into());
            set("dst_offset", 0.into());
            set("size", 64.into());
            "vkCmdCopyBuffer"
        }
        "dispatch" => {
            let binding = |text: &&str| {
                let (buffer, how) = text.split_once('.').expect("B1.r or B1.w");
                json!({"buffer": buffer, "write": how == "w"})
            };
            set("bindings", words[1..].iter().map(binding).collect());
            "vkCmdDispatch"
        }
        "execute" => {
            set("secondaries", json!(words[1..]));
            "vkCmdExecuteCommands"
        }
        other => panic!("no command is called {other}"),
    };
    call(name, fields)
}

fn submit(queue: &str, rest: &str) -> [Value; 2] {
    let (mut wait, mut signal) = (Vec::new(), Vec::new());
    let mut fields = json!({"queue": queue.trim(), "fence": null});
    let mut command_buffers: Vec<&str> = Vec::new();
    let mut result = 0;
    let value = |text: &str| {
        let (what, at) = text.split_once('@').map_or((text, None), |(what, at)| (what, Some(at)));
        let (semaphore, value) = what.split_once('=').map_or((what, 0), |(s, v)| (s, v.parse().expect("a value")));
        json!({"semaphore": semaphore, "value": value, "stage": stage(at)})
    };
    for part in rest.split(',').map(str::trim) {
        let words: Vec<&str> = part.split_whitespace().collect();
        match words.first().copied() {
            Some("wait") => wait.extend(words[1..].iter().map(|w| value(w))),
            Some("signal") => signal.extend(words[1..].iter().map(|w| value(w))),
            Some("fence") => fields["fence"] = words[1].into(),
            Some("refused") => result = -2,
            _ => command_buffers.extend(words),
        }
    }
    fields["submits"] = json!([{"wait": wait, "command_buffers": command_buffers, "signal": signal}]);
    [call("vkQueueSubmit2", fields), json!({"return": "vkQueueSubmit2", "result": result})]
}
