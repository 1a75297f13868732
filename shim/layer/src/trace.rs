//! The trace of a device: one JSON object a line, as the trace checker (`fencepost trace`) reads it.

use std::fmt::{self, Display, Write as _};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use fencepost::judge::{Access, Blocking, Call, Dependency, Handle, Kind, Object, SemaphoreValue, Site, SubmitInfo};

/// Writes each line at once: whatever becomes of the process, what it did is there.
pub struct Trace {
    file: File,
    line: String,
}

impl Trace {
    /// The first device's trace has the path; those of others have their number added to it.
    pub fn create(path: &Path, device: u32) -> Result<Trace, String> {
        let mut path = path.to_owned();
        if device > 1 {
            path.as_mut_os_string().push(format!(".{device}"));
        }
        match File::create(&path) {
            Ok(file) => Ok(Trace { file, line: String::new() }),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    pub fn call(&mut self, site: Site, call: Option<&Call<'_>>) -> Result<(), String> {
        self.begin("call", site);
        if let Some(call) = call {
            // A string takes all that is written into it.
            let _ = fields(&mut self.line, call);
        }
        self.end()
    }

    pub fn returned(&mut self, site: Site, result: i32) -> Result<(), String> {
        self.begin("return", site);
        let _ = write!(self.line, r#","result":{result}"#);
        self.end()
    }

    fn begin(&mut self, kind: &str, site: Site) {
        self.line.clear();
        let _ = write!(self.line, r#"{{"n":{},"thread":{},"{kind}":"{}""#, site.n, site.thread, site.call);
    }

    fn end(&mut self) -> Result<(), String> {
        self.line.push_str("}\n");
        self.file.write_all(self.line.as_bytes()).map_err(|error| format!("the trace ends here: {error}"))
    }
}

/// The short name of an object: a letter for its kind, and its number.
pub fn name(object: Object) -> String {
    let mut name = String::new();
    let _ = write!(name, "{}", Name(letter(object.kind), object.handle));
    name
}

fn letter(kind: Kind) -> char {
    match kind {
        Kind::Device => 'D',
        Kind::Queue => 'Q',
        Kind::CommandBuffer => 'C',
        Kind::CommandPool => 'P',
        Kind::Event => 'E',
        Kind::Semaphore => 'S',
        Kind::Fence => 'F',
        Kind::Buffer => 'B',
    }
}

struct Name(char, Handle);

impl Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.0, self.1)
    }
}

/// A list of what `one` writes.
struct List<'a, T, F: Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result>(&'a [T], F);

impl<T, F: Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result> Display for List<'_, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('[')?;
        for (at, item) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_char(',')?;
            }
            (self.1)(f, item)?;
        }
        f.write_char(']')
    }
}

fn names(letter: char, handles: &[Handle]) -> impl Display {
    List(handles, move |f, handle| write!(f, "\"{}\"", Name(letter, *handle)))
}

fn values(all: &[SemaphoreValue]) -> impl Display {
    List(all, |f, SemaphoreValue { semaphore, value, stages }| {
        write!(f, r#"{{"semaphore":"S{semaphore}","value":{value},"stage":{stages}}}"#)
    })
}

fn submits(all: &[SubmitInfo<'_>]) -> impl Display {
    List(all, |f, SubmitInfo { waits, command_buffers, signals }| {
        let (waits, buffers, signals) = (values(waits), names('C', command_buffers), values(signals));
        write!(f, r#"{{"wait":{waits},"command_buffers":{buffers},"signal":{signals}}}"#)
    })
}

fn dependencies(all: &[Dependency]) -> impl Display {
    List(all, |f, Dependency { src, dst }| write!(f, r#"{{"src_stage":{src},"dst_stage":{dst}}}"#))
}

fn accesses(all: &[&Access]) -> impl Display {
    List(all, |f, Access { buffer, offset, size, write, .. }| {
        write!(f, r#"{{"buffer":"B{buffer}","offset":{offset},"size":{size},"write":{write}}}"#)
    })
}

/// What a call's line says beyond its name.
fn fields(out: &mut String, call: &Call<'_>) -> fmt::Result {
    match *call {
        Call::GetDeviceQueue { queue } => write!(out, r#","queue":"Q{queue}""#),
        Call::DestroyDevice | Call::Wait(Blocking::DeviceIdle) => Ok(()),
        Call::CreateCommandPool { pool } | Call::ResetCommandPool { pool } | Call::DestroyCommandPool { pool } => {
            write!(out, r#","command_pool":"P{pool}""#)
        }
        Call::AllocateCommandBuffers { pool, command_buffers } => {
            write!(out, r#","command_pool":"P{pool}","command_buffers":{}"#, names('C', command_buffers))
        }
        Call::FreeCommandBuffers { command_buffers } => {
            write!(out, r#","command_buffers":{}"#, names('C', command_buffers))
        }
        Call::BeginCommandBuffer { command_buffer, one_time, simultaneous } => {
            let flags = u8::from(one_time) | u8::from(simultaneous) << 2;
            write!(out, r#","command_buffer":"C{command_buffer}","flags":{flags}"#)
        }
        Call::EndCommandBuffer { command_buffer } | Call::ResetCommandBuffer { command_buffer } => {
            write!(out, r#","command_buffer":"C{command_buffer}""#)
        }
        Call::CreateEvent { event }
        | Call::DestroyEvent { event }
        | Call::SetEvent { event }
        | Call::ResetEvent { event } => write!(out, r#","event":"E{event}""#),
        Call::GetEventStatus { event, set } => {
            write!(out, r#","event":"E{event}","result":{}"#, if set { 3 } else { 4 })
        }
        Call::CreateSemaphore { semaphore, initial_value, external } => {
            write!(out, r#","semaphore":"S{semaphore}","initial_value":{initial_value},"external":{external}"#)
        }
        Call::DestroySemaphore { semaphore } => write!(out, r#","semaphore":"S{semaphore}""#),
        Call::SignalSemaphore { semaphore, value } | Call::GetSemaphoreCounterValue { semaphore, value } => {
            write!(out, r#","semaphore":"S{semaphore}","value":{value}"#)
        }
        Call::SignalledOutside { semaphore, fence } => {
            if let Some(semaphore) = semaphore {
                write!(out, r#","semaphore":"S{semaphore}""#)?;
            }
            fence.map_or(Ok(()), |fence| write!(out, r#","fence":"F{fence}""#))
        }
        Call::CreateFence { fence } | Call::DestroyFence { fence } => write!(out, r#","fence":"F{fence}""#),
        Call::ResetFences { fences } => write!(out, r#","fences":{}"#, names('F', fences)),
        Call::GetFenceStatus { fence, signaled } => {
            write!(out, r#","fence":"F{fence}","result":{}"#, u8::from(!signaled))
        }
        Call::CreateBuffer { buffer, size } => write!(out, r#","buffer":"B{buffer}","size":{size}"#),
        Call::DestroyBuffer { buffer } => write!(out, r#","buffer":"B{buffer}""#),
        Call::Submit { queue, submits: all, fence } => {
            write!(out, r#","queue":"Q{queue}","submits":{}"#, submits(all))?;
            fence.map_or(Ok(()), |fence| write!(out, r#","fence":"F{fence}""#))
        }
        Call::Wait(Blocking::Semaphores { waits, any }) => {
            write!(out, r#","wait":{},"any":{any}"#, values(waits))
        }
        Call::Wait(Blocking::Fences { fences, any }) => {
            write!(out, r#","fences":{},"wait_all":{}"#, names('F', fences), !any)
        }
        Call::Wait(Blocking::QueueIdle { queue }) => write!(out, r#","queue":"Q{queue}""#),
        Call::CmdSetEvent { command_buffer, event, stages } | Call::CmdResetEvent { command_buffer, event, stages } => {
            write!(out, r#","command_buffer":"C{command_buffer}","event":"E{event}","stage":{stages}"#)
        }
        Call::CmdWaitEvents { command_buffer, events, dependencies: all } => {
            let (events, all) = (names('E', events), dependencies(all));
            write!(out, r#","command_buffer":"C{command_buffer}","events":{events},"dependencies":{all}"#)
        }
        Call::CmdPipelineBarrier { command_buffer, dependencies: all } => {
            write!(out, r#","command_buffer":"C{command_buffer}","dependencies":{}"#, dependencies(all))
        }
        Call::CmdExecuteCommands { command_buffer, secondaries } => {
            write!(out, r#","command_buffer":"C{command_buffer}","secondaries":{}"#, names('C', secondaries))
        }
        Call::CmdWork { command_buffer, stages, accesses: all } => {
            let (bound, certain): (Vec<_>, Vec<_>) = all.iter().partition(|access| access.through_binding);
            write!(out, r#","command_buffer":"C{command_buffer}","stage":{stages},"accesses":{}"#, accesses(&certain))?;
            if bound.is_empty() { Ok(()) } else { write!(out, r#","bindings":{}"#, accesses(&bound)) }
        }
    }
}
