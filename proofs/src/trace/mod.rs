//! Reads traces (one JSON object a line) and has them judged.

mod lanes;
mod line;

use std::collections::HashMap;
use std::fmt;

use fencepost::judge::{
    ALL_COMMANDS, Access, Blocking, Call, Dependency, Handle, Judge, Kind, Object, SemaphoreValue, Site, Stages,
    SubmitInfo, Verdict,
};

pub use lanes::lanes;
use line::{Fields, Name};

/// A line that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Counted from 1.
    pub line: u64,
    pub what: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// Longer lines are refused.
const LINE_MAX: usize = 16 << 20;
const ERROR_DEVICE_LOST: i64 = -4;
const COMPUTE: Stages = 0x800;
const TRANSFER: Stages = 0x1000;
const ALL_GRAPHICS: Stages = 0x8000;

/// Takes the lines of one trace.
#[derive(Default)]
pub struct Reader {
    judge: Judge,
    names: Names,
    calls: Calls,
    /// Lines read.
    pub lines: u64,
    /// Calls that were judged.
    pub calls_read: u64,
    /// Calls that are not known.
    pub calls_skipped: u64,
    /// Fields that are not known.
    pub fields_skipped: u64,
    /// How the recorder says that it ended.
    pub end: Option<String>,
    last: Option<Site>,
}

/// Names of calls that live as long as the program: there are few.
#[derive(Default)]
struct Calls(HashMap<String, &'static str>);

impl Calls {
    fn name(&mut self, name: &str) -> &'static str {
        if let Some(known) = self.0.get(name) {
            return known;
        }
        let known: &'static str = Box::leak(name.to_owned().into_boxed_str());
        self.0.insert(name.to_owned(), known);
        known
    }
}

/// Names of objects as numbers: `E12` is 12; others are numbered from the top.
#[derive(Default)]
struct Names {
    numbers: HashMap<(Kind, String), Handle>,
    names: HashMap<(Kind, Handle), String>,
}

const LETTERS: [(Kind, &str); 8] = [
    (Kind::Device, "D"),
    (Kind::Queue, "Q"),
    (Kind::CommandBuffer, "C"),
    (Kind::CommandPool, "P"),
    (Kind::Event, "E"),
    (Kind::Semaphore, "S"),
    (Kind::Fence, "F"),
    (Kind::Buffer, "B"),
];

fn letter(kind: Kind) -> &'static str {
    LETTERS.iter().find(|(k, _)| *k == kind).map_or("", |(_, letter)| letter)
}

/// Numbers from here on stand for names that are not a letter and a number.
const ODD: Handle = 1 << 62;

impl Names {
    fn handle(&mut self, kind: Kind, name: &str) -> Handle {
        let digits = name.strip_prefix(letter(kind)).filter(|digits| !digits.starts_with(['0', '+']));
        if let Some(number) = digits.and_then(|digits| digits.parse().ok()).filter(|number| *number < ODD) {
            return number;
        }
        let next = ODD + self.numbers.len() as Handle;
        let key = (kind, name.to_owned());
        *self.numbers.entry(key).or_insert_with(|| {
            self.names.insert((kind, next), name.to_owned());
            next
        })
    }

    fn name(&self, object: Object) -> String {
        let odd = self.names.get(&(object.kind, object.handle)).cloned();
        odd.unwrap_or_else(|| format!("{}{}", letter(object.kind), object.handle))
    }
}

impl Reader {
    pub fn new() -> Reader {
        Reader::default()
    }

    /// The name of an object in this trace.
    pub fn name(&self, object: Object) -> String {
        self.names.name(object)
    }

    /// Takes the next line, without its end.
    pub fn line(&mut self, text: &[u8], out: &mut Vec<Verdict>) -> Result<(), BadLine> {
        self.lines += 1;
        let line = self.lines;
        if text.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        if text.len() > LINE_MAX {
            return Err(BadLine { line, what: format!("{} bytes in one line; at most {LINE_MAX}", text.len()) });
        }
        let bad = |what| BadLine { line, what };
        let fields = line::parse(text).map_err(bad)?;
        self.fields_skipped += fields.unknown;
        if let Some(call) = &fields.call {
            return self.call(call, &fields, out).map_err(|what| bad(format!("{call}: {what}")));
        }
        if let Some(call) = &fields.returned {
            let site = Site { n: line, thread: fields.thread.unwrap_or(0), call: self.calls.name(call) };
            let result = fields.result.ok_or_else(|| bad(format!("{call}: a return needs \"result\"")))?;
            let result = i32::try_from(result).map_err(|_| bad(format!("\"result\" {result} is no VkResult")))?;
            self.judge.returned(site, result, out);
            self.last = Some(site);
            return Ok(());
        }
        if let Some(end) = &fields.end {
            self.end = Some(end.to_string());
        } else if fields.note.is_none() {
            return Err(bad("needs one of \"call\", \"return\", \"note\", \"end\"".into()));
        }
        Ok(())
    }

    /// The trace ends here. What can be said only then is said if the recorder wrote how it ended.
    pub fn finish(&mut self, out: &mut Vec<Verdict>) {
        if let (Some(last), Some(_)) = (self.last, &self.end) {
            self.judge.end(last, out);
        }
    }

    /// Batches that may not have ended.
    pub fn batch_count(&self) -> usize {
        self.judge.batch_count()
    }

    fn call(&mut self, name: &str, fields: &Fields<'_>, out: &mut Vec<Verdict>) -> Result<(), String> {
        let failed = fields.result.filter(|result| *result < 0);
        if failed.is_some() && !name.starts_with("vkQueueSubmit") {
            // It did nothing; if the device is lost, nothing more is judged.
            let site = Site { n: self.lines, thread: fields.thread.unwrap_or(0), call: self.calls.name(name) };
            self.calls_read += 1;
            if failed == Some(ERROR_DEVICE_LOST) {
                self.judge.returned(site, -4, out);
            }
            return Ok(());
        }
        let Reader { judge, names, calls, .. } = self;
        let mut know = |calls: &mut Calls| {
            let site = Site { n: self.lines, thread: fields.thread.unwrap_or(0), call: calls.name(name) };
            self.last = Some(site);
            self.calls_read += 1;
            site
        };
        let mut arena = Arena { names };
        let need = Needed { fields };
        let call = match name {
            "vkCreateDevice" => {
                know(calls);
                return Ok(());
            }
            "vkGetDeviceQueue" | "vkGetDeviceQueue2" => Call::GetDeviceQueue { queue: arena.queue(need.queue()?) },
            "vkDestroyDevice" => Call::DestroyDevice,
            "vkCreateCommandPool" => Call::CreateCommandPool { pool: arena.pool(need.command_pool()?) },
            "vkResetCommandPool" => Call::ResetCommandPool { pool: arena.pool(need.command_pool()?) },
            "vkDestroyCommandPool" => Call::DestroyCommandPool { pool: arena.pool(need.command_pool()?) },
            "vkAllocateCommandBuffers" => {
                let pool = arena.pool(need.command_pool()?);
                let command_buffers = arena.command_buffers(&need)?;
                let site = know(calls);
                judge.call(site, &Call::AllocateCommandBuffers { pool, command_buffers: &command_buffers }, out);
                return Ok(());
            }
            "vkFreeCommandBuffers" => {
                let command_buffers = arena.command_buffers(&need)?;
                judge.call(know(calls), &Call::FreeCommandBuffers { command_buffers: &command_buffers }, out);
                return Ok(());
            }
            "vkBeginCommandBuffer" => {
                let command_buffer = arena.command_buffer(need.command_buffer()?);
                // Without flags nobody knows: what they allow is allowed.
                let (one_time, simultaneous) = fields.flags.map_or((false, true), |f| (f & 1 != 0, f & 4 != 0));
                Call::BeginCommandBuffer { command_buffer, one_time, simultaneous }
            }
            "vkEndCommandBuffer" => {
                Call::EndCommandBuffer { command_buffer: arena.command_buffer(need.command_buffer()?) }
            }
            "vkResetCommandBuffer" => {
                Call::ResetCommandBuffer { command_buffer: arena.command_buffer(need.command_buffer()?) }
            }
            "vkCreateEvent" => Call::CreateEvent { event: arena.event(need.event()?) },
            "vkDestroyEvent" => Call::DestroyEvent { event: arena.event(need.event()?) },
            "vkSetEvent" => Call::SetEvent { event: arena.event(need.event()?) },
            "vkResetEvent" => Call::ResetEvent { event: arena.event(need.event()?) },
            "vkGetEventStatus" => Call::GetEventStatus { event: arena.event(need.event()?), set: need.result()? == 3 },
            "vkCreateSemaphore" => Call::CreateSemaphore {
                semaphore: arena.semaphore(need.semaphore()?),
                initial_value: fields.initial_value.unwrap_or(0),
                external: fields.external.unwrap_or(false),
            },
            "vkDestroySemaphore" => Call::DestroySemaphore { semaphore: arena.semaphore(need.semaphore()?) },
            "vkSignalSemaphore" | "vkSignalSemaphoreKHR" => {
                Call::SignalSemaphore { semaphore: arena.semaphore(need.semaphore()?), value: need.value()? }
            }
            "vkGetSemaphoreCounterValue" | "vkGetSemaphoreCounterValueKHR" => {
                Call::GetSemaphoreCounterValue { semaphore: arena.semaphore(need.semaphore()?), value: need.value()? }
            }
            "vkAcquireNextImageKHR" | "vkAcquireNextImage2KHR" | "vkImportSemaphoreFdKHR" | "vkImportFenceFdKHR" => {
                Call::SignalledOutside {
                    semaphore: fields.semaphore.as_deref().map(|name| arena.semaphore(name)),
                    fence: fields.fence.as_deref().map(|name| arena.fence(name)),
                }
            }
            "vkCreateFence" => Call::CreateFence { fence: arena.fence(need.fence()?) },
            "vkDestroyFence" => Call::DestroyFence { fence: arena.fence(need.fence()?) },
            "vkResetFences" => {
                let fences = arena.fences(need.fences()?);
                judge.call(know(calls), &Call::ResetFences { fences: &fences }, out);
                return Ok(());
            }
            "vkGetFenceStatus" => {
                Call::GetFenceStatus { fence: arena.fence(need.fence()?), signaled: need.result()? == 0 }
            }
            "vkCreateBuffer" => {
                Call::CreateBuffer { buffer: arena.buffer(need.buffer()?), size: fields.size.unwrap_or(0) }
            }
            "vkDestroyBuffer" => Call::DestroyBuffer { buffer: arena.buffer(need.buffer()?) },
            "vkQueueSubmit" | "vkQueueSubmit2" | "vkQueueSubmit2KHR" | "vkQueueBindSparse" | "vkQueuePresentKHR" => {
                let queue = arena.queue(need.queue()?);
                let fence = fields.fence.as_deref().map(|name| arena.fence(name));
                let submits = need.submits()?;
                let parts: Vec<_> = submits.iter().map(|s| arena.submit(s)).collect();
                let submits: Vec<SubmitInfo> = parts
                    .iter()
                    .map(|(waits, command_buffers, signals)| SubmitInfo { waits, command_buffers, signals })
                    .collect();
                let site = know(calls);
                judge.call(site, &Call::Submit { queue, submits: &submits, fence }, out);
                if let Some(result) = fields.result.and_then(|result| i32::try_from(result).ok()) {
                    judge.returned(site, result, out);
                }
                return Ok(());
            }
            "vkWaitSemaphores" | "vkWaitSemaphoresKHR" => {
                let waits = arena.values(need.wait()?);
                let any = fields.any.unwrap_or(false);
                judge.call(know(calls), &Call::Wait(Blocking::Semaphores { waits: &waits, any }), out);
                return Ok(());
            }
            "vkWaitForFences" => {
                let fences = arena.fences(need.fences()?);
                let any = !fields.wait_all.unwrap_or(true);
                judge.call(know(calls), &Call::Wait(Blocking::Fences { fences: &fences, any }), out);
                return Ok(());
            }
            "vkQueueWaitIdle" => Call::Wait(Blocking::QueueIdle { queue: arena.queue(need.queue()?) }),
            "vkDeviceWaitIdle" => Call::Wait(Blocking::DeviceIdle),
            "vkCmdSetEvent" | "vkCmdSetEvent2" | "vkCmdSetEvent2KHR" => Call::CmdSetEvent {
                command_buffer: arena.command_buffer(need.command_buffer()?),
                event: arena.event(need.event()?),
                stages: fields.stage.unwrap_or(ALL_COMMANDS),
            },
            "vkCmdResetEvent" | "vkCmdResetEvent2" | "vkCmdResetEvent2KHR" => Call::CmdResetEvent {
                command_buffer: arena.command_buffer(need.command_buffer()?),
                event: arena.event(need.event()?),
                stages: fields.stage.unwrap_or(ALL_COMMANDS),
            },
            "vkCmdWaitEvents" | "vkCmdWaitEvents2" | "vkCmdWaitEvents2KHR" => {
                let command_buffer = arena.command_buffer(need.command_buffer()?);
                let events: Vec<Handle> = need.events()?.iter().map(|name| arena.event(name)).collect();
                let dependencies = dependencies(fields);
                let call = Call::CmdWaitEvents { command_buffer, events: &events, dependencies: &dependencies };
                judge.call(know(calls), &call, out);
                return Ok(());
            }
            _ if is_barrier(name, fields) => {
                let command_buffer = arena.command_buffer(need.command_buffer()?);
                let dependencies = dependencies(fields);
                judge.call(know(calls), &Call::CmdPipelineBarrier { command_buffer, dependencies: &dependencies }, out);
                return Ok(());
            }
            "vkCmdExecuteCommands" => {
                let command_buffer = arena.command_buffer(need.command_buffer()?);
                let secondaries = need.secondaries()?.iter().map(|name| arena.command_buffer(name));
                let secondaries: Vec<Handle> = secondaries.collect();
                judge.call(know(calls), &Call::CmdExecuteCommands { command_buffer, secondaries: &secondaries }, out);
                return Ok(());
            }
            _ if name.starts_with("vkCmd") => {
                let stages = match name {
                    _ if fields.stage.is_some() => fields.stage.unwrap_or(ALL_COMMANDS),
                    "vkCmdUpdateBuffer" => TRANSFER,
                    _ if ["vkCmdCopy", "vkCmdFill"].iter().any(|prefix| name.starts_with(prefix)) => TRANSFER,
                    _ if name.starts_with("vkCmdDispatch") => COMPUTE,
                    _ if name.starts_with("vkCmdDraw") => ALL_GRAPHICS,
                    _ if fields.accesses.is_some() || fields.bindings.is_some() => ALL_COMMANDS,
                    _ => {
                        self.calls_skipped += 1;
                        return Ok(());
                    }
                };
                let command_buffer = arena.command_buffer(need.command_buffer()?);
                let accesses = arena.accesses(name, &need)?;
                judge.call(know(calls), &Call::CmdWork { command_buffer, stages, accesses: &accesses }, out);
                return Ok(());
            }
            _ => {
                self.calls_skipped += 1;
                return Ok(());
            }
        };
        judge.call(know(calls), &call, out);
        Ok(())
    }
}

/// Barriers, and those calls of a render pass that say which dependencies take effect.
fn is_barrier(name: &str, fields: &Fields<'_>) -> bool {
    match name.strip_suffix("KHR").unwrap_or(name).trim_end_matches('2') {
        "vkCmdPipelineBarrier" => true,
        "vkCmdBeginRenderPass" | "vkCmdNextSubpass" | "vkCmdEndRenderPass" => fields.dependencies.is_some(),
        _ => false,
    }
}

/// The stages of a barrier or of a wait: all where none are named.
fn dependencies(fields: &Fields<'_>) -> Vec<Dependency> {
    match &fields.dependencies {
        Some(all) => all.iter().map(|d| Dependency { src: d.src_stage, dst: d.dst_stage }).collect(),
        None => {
            let all = |stage: Option<u64>| stage.unwrap_or(ALL_COMMANDS);
            vec![Dependency { src: all(fields.src_stage), dst: all(fields.dst_stage) }]
        }
    }
}

/// Fields that a call cannot do without.
struct Needed<'a> {
    fields: &'a Fields<'a>,
}

macro_rules! needed {
    ($($field:ident -> $kind:ty;)*) => {
        impl<'a> Needed<'a> {
            $(fn $field(&self) -> Result<$kind, String> {
                let field = self.fields.$field.as_ref();
                field.map(Into::into).ok_or_else(|| concat!("needs \"", stringify!($field), "\"").to_string())
            })*
        }
    };
}

needed! {
    queue -> &'a Name<'a>;
    command_pool -> &'a Name<'a>;
    command_buffer -> &'a Name<'a>;
    secondaries -> &'a Vec<Name<'a>>;
    event -> &'a Name<'a>;
    events -> &'a Vec<Name<'a>>;
    semaphore -> &'a Name<'a>;
    wait -> &'a Vec<line::Value<'a>>;
    fence -> &'a Name<'a>;
    fences -> &'a Vec<Name<'a>>;
    submits -> &'a Vec<line::Submit<'a>>;
    buffer -> &'a Name<'a>;
}

impl Needed<'_> {
    fn result(&self) -> Result<i64, String> {
        self.fields.result.ok_or_else(|| "needs \"result\"".into())
    }

    fn value(&self) -> Result<u64, String> {
        self.fields.value.ok_or_else(|| "needs \"value\"".into())
    }
}

/// Turns names into handles.
struct Arena<'a> {
    names: &'a mut Names,
}

type Parts = (Vec<SemaphoreValue>, Vec<Handle>, Vec<SemaphoreValue>);

impl Arena<'_> {
    fn queue(&mut self, name: &str) -> Handle {
        self.names.handle(Kind::Queue, name)
    }
    fn pool(&mut self, name: &str) -> Handle {
        self.names.handle(Kind::CommandPool, name)
    }
    fn command_buffer(&mut self, name: &str) -> Handle {
        self.names.handle(Kind::CommandBuffer, name)
    }
    fn event(&mut self, name: &str) -> Handle {
        self.names.handle(Kind::Event, name)
    }
    fn semaphore(&mut self, name: &str) -> Handle {
        self.names.handle(Kind::Semaphore, name)
    }
    fn fence(&mut self, name: &str) -> Handle {
        self.names.handle(Kind::Fence, name)
    }
    fn buffer(&mut self, name: &str) -> Handle {
        self.names.handle(Kind::Buffer, name)
    }

    fn fences(&mut self, names: &[Name<'_>]) -> Vec<Handle> {
        names.iter().map(|name| self.fence(name)).collect()
    }

    fn command_buffers(&mut self, need: &Needed<'_>) -> Result<Vec<Handle>, String> {
        match &need.fields.command_buffers {
            Some(names) => Ok(names.iter().map(|name| self.command_buffer(name)).collect()),
            None => Ok(vec![self.command_buffer(need.command_buffer()?)]),
        }
    }

    fn values(&mut self, values: &[line::Value<'_>]) -> Vec<SemaphoreValue> {
        let value = |v: &line::Value<'_>| SemaphoreValue {
            semaphore: self.semaphore(&v.semaphore),
            value: v.value,
            stages: v.stage.unwrap_or(ALL_COMMANDS),
        };
        values.iter().map(value).collect()
    }

    fn submit(&mut self, submit: &line::Submit<'_>) -> Parts {
        let command_buffers = submit.command_buffers.iter().map(|name| self.command_buffer(name)).collect();
        (self.values(&submit.wait), command_buffers, self.values(&submit.signal))
    }

    /// What a command reads and writes, as far as the line says.
    fn accesses(&mut self, call: &str, need: &Needed<'_>) -> Result<Vec<Access>, String> {
        let fields = need.fields;
        let mut accesses = Vec::new();
        let mut push = |buffer, offset, size, write, through_binding| {
            accesses.push(Access { buffer, offset, size, write, through_binding });
        };
        for (list, through_binding) in [(&fields.accesses, false), (&fields.bindings, true)] {
            for access in list.iter().flatten() {
                let size = access.size.unwrap_or(u64::MAX);
                push(self.buffer(&access.buffer), access.offset, size, access.write, through_binding);
            }
        }
        let one = (fields.src_offset.unwrap_or(0), fields.dst_offset.unwrap_or(0), fields.size);
        let regions = fields.regions.iter().flatten().map(|r| (r.src_offset, r.dst_offset, Some(r.size)));
        let regions: Vec<_> = if fields.regions.is_some() { regions.collect() } else { vec![one] };
        if fields.accesses.is_none() {
            match call {
                "vkCmdCopyBuffer" | "vkCmdCopyBuffer2" | "vkCmdCopyBuffer2KHR" => {
                    let missing = |name: &str| format!("needs \"{name}\"");
                    let src = self.buffer(fields.src.as_deref().ok_or_else(|| missing("src"))?);
                    let dst = self.buffer(fields.dst.as_deref().ok_or_else(|| missing("dst"))?);
                    for (src_offset, dst_offset, size) in regions {
                        let size = size.ok_or_else(|| missing("size"))?;
                        push(src, src_offset, size, false, false);
                        push(dst, dst_offset, size, true, false);
                    }
                }
                // Without a size nobody knows which bytes.
                "vkCmdFillBuffer" | "vkCmdUpdateBuffer" => {
                    if let (Some(dst), Some(size)) = (&fields.dst, fields.size) {
                        push(self.buffer(dst), fields.dst_offset.unwrap_or(0), size, true, false);
                    }
                }
                _ => {}
            }
        }
        Ok(accesses)
    }
}
