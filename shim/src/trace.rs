//! A decorator that writes down what a driver is asked for: one JSON object a line, calls by their Vulkan names.

use std::collections::HashMap;
use std::io::Write;
use std::thread::ThreadId;

use ash::vk;
use fencepost::{Lease, QueueId};
use serde_json::{Map, Value, json};

use crate::driver::{Answer, Asked, Batch, BufferId, Dispatch, Driver, Queue, Raw, Time};
use crate::error::{DriverError, Error};
use crate::sync::{Mutex, lock};

/// A driver that writes a trace. Commands that callers record themselves are not seen; a remark says where they are.
pub struct Tracer<D> {
    inner: D,
    log: Mutex<Log>,
}

struct Log {
    /// `None` after a line could not be written.
    out: Option<Box<dyn Write + Send>>,
    lines: u64,
    threads: HashMap<ThreadId, usize>,
    command_buffers: HashMap<u32, usize>,
    /// Driver numbers are used again, names are not.
    buffers: HashMap<BufferId, usize>,
    buffer_count: usize,
}

const STAGE: u32 = vk::PipelineStageFlags::ALL_COMMANDS.as_raw();

impl<D: Driver> Tracer<D> {
    /// Writes everything that the driver is asked for from now on.
    pub fn new(inner: D, out: impl Write + Send + 'static) -> Tracer<D> {
        let (threads, command_buffers, buffers) = Default::default();
        let out: Box<dyn Write + Send> = Box::new(out);
        let log = Log { out: Some(out), lines: 0, threads, command_buffers, buffers, buffer_count: 0 };
        let tracer = Tracer { inner, log: Mutex::new(log) };
        tracer.call("vkCreateDevice", json!({}));
        for (at, queue) in tracer.inner.queues().iter().enumerate() {
            let named = json!({"queue_family": queue.family, "index": queue.index, "queue": queue_name(at as QueueId)});
            tracer.call("vkGetDeviceQueue", named);
        }
        tracer
    }

    fn call(&self, call: &str, fields: Value) {
        lock(&self.log).write("call", call, fields);
    }

    fn returned<T>(&self, call: &str, answer: Answer<T>, result: impl FnOnce(&T) -> vk::Result) -> Answer<T> {
        let result = answer.as_ref().map_or_else(|error| error.result, result);
        lock(&self.log).write("return", call, json!({"result": result.as_raw()}));
        answer
    }

    /// A call that does not block stands on one line, with its result unless that is success.
    fn answered<T>(&self, call: &str, answer: Answer<T>, mut fields: Value) -> Answer<T> {
        if let (Err(DriverError { result, .. }), Some(fields)) = (&answer, fields.as_object_mut()) {
            fields.insert("result".into(), result.as_raw().into());
        }
        self.call(call, fields);
        answer
    }

    fn command(&self, lease: Lease, call: &str, mut fields: Value) {
        let mut log = lock(&self.log);
        let mut named = Map::new();
        named.insert("command_buffer".into(), log.command_buffer(lease).into());
        named.append(fields.as_object_mut().unwrap_or(&mut Map::new()));
        log.write("call", call, named.into());
    }

    fn pipeline_barrier(&self, lease: Lease, src_stage: u32) {
        let fields = json!({
            "src_stage": src_stage, "dst_stage": STAGE, "memory_barriers": 1, "buffer_barriers": 0, "image_barriers": 0
        });
        self.command(lease, "vkCmdPipelineBarrier", fields);
    }

    fn buffer(&self, buffer: BufferId) -> String {
        format!("B{}", lock(&self.log).buffers.get(&buffer).copied().unwrap_or(0))
    }
}

impl Log {
    fn write(&mut self, kind: &str, call: &str, mut fields: Value) {
        self.lines += 1;
        let known = self.threads.len();
        let thread = *self.threads.entry(std::thread::current().id()).or_insert(known);
        let mut line = Map::new();
        line.insert("n".into(), self.lines.into());
        line.insert("thread".into(), thread.into());
        line.insert(kind.into(), call.into());
        line.append(fields.as_object_mut().unwrap_or(&mut Map::new()));
        self.put(&Value::Object(line));
    }

    fn put(&mut self, line: &Value) {
        if let Some(out) = &mut self.out
            && let Err(error) = writeln!(out, "{line}")
        {
            tracing::error!(%error, "the trace ends here");
            self.out = None;
        }
    }

    fn command_buffer(&mut self, lease: Lease) -> String {
        let known = self.command_buffers.len() + 1;
        format!("C{}", self.command_buffers.entry(lease.id()).or_insert(known))
    }
}

fn queue_name(queue: QueueId) -> String {
    format!("Q{}", queue + 1)
}

fn event_name(slot: u32) -> String {
    format!("E{}", slot + 1)
}

fn semaphore_name(timeline: u32) -> String {
    format!("S{}", timeline + 1)
}

fn pool_name(timeline: u32) -> String {
    format!("P{}", timeline + 1)
}

// SAFETY: It hands on what it is asked for as it is.
unsafe impl<D: Driver> Driver for Tracer<D> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn queues(&self) -> &[Queue] {
        self.inner.queues()
    }

    fn create_timeline(&self, timeline: u32, queue: QueueId) -> Answer<()> {
        let answer = self.inner.create_timeline(timeline, queue);
        let answer = self.answered("vkCreateSemaphore", answer, json!({"semaphore": semaphore_name(timeline)}));
        if let (Ok(()), Some(queue)) = (&answer, self.queues().get(queue as usize)) {
            let fields = json!({"command_pool": pool_name(timeline), "queue_family": queue.family, "flags": 2});
            self.call("vkCreateCommandPool", fields);
        }
        answer
    }

    fn create_event(&self, slot: u32) -> Answer<()> {
        self.answered("vkCreateEvent", self.inner.create_event(slot), json!({"event": event_name(slot)}))
    }

    fn reset_event(&self, asked: Asked, slot: u32) -> Answer<()> {
        self.answered("vkResetEvent", self.inner.reset_event(asked, slot), json!({"event": event_name(slot)}))
    }

    fn create_buffer(&self, size: u64) -> Answer<BufferId> {
        let answer = self.inner.create_buffer(size);
        if let Ok(buffer) = answer {
            let mut log = lock(&self.log);
            log.buffer_count += 1;
            let name = log.buffer_count;
            log.buffers.insert(buffer, name);
        }
        let name = answer.as_ref().map_or(Value::Null, |buffer| self.buffer(*buffer).into());
        self.answered("vkCreateBuffer", answer, json!({"buffer": name, "size": size}))
    }

    fn destroy_buffer(&self, asked: Asked, buffer: BufferId) {
        self.call("vkDestroyBuffer", json!({"buffer": self.buffer(buffer)}));
        self.inner.destroy_buffer(asked, buffer);
    }

    fn raw_buffer(&self, buffer: BufferId) -> Option<vk::Buffer> {
        self.inner.raw_buffer(buffer)
    }

    fn write(&self, asked: Asked, buffer: BufferId, offset: u64, bytes: &[u8]) {
        self.inner.write(asked, buffer, offset, bytes);
    }

    fn read(&self, asked: Asked, buffer: BufferId, offset: u64, bytes: &mut [u8]) {
        self.inner.read(asked, buffer, offset, bytes);
    }

    fn begin(&self, asked: Asked, lease: Lease, new: bool) -> Answer<()> {
        let answer = self.inner.begin(asked, lease, new);
        if answer.is_ok() && new {
            self.command(lease, "vkAllocateCommandBuffers", json!({"command_pool": pool_name(lease.timeline)}));
        }
        let name = lock(&self.log).command_buffer(lease);
        self.answered("vkBeginCommandBuffer", answer, json!({"command_buffer": name}))
    }

    fn set(&self, asked: Asked, lease: Lease, slot: u32) {
        self.command(lease, "vkCmdSetEvent", json!({"event": event_name(slot), "stage": STAGE}));
        self.inner.set(asked, lease, slot);
    }

    fn timestamp(&self, asked: Asked, lease: Lease, slot: u32) {
        self.command(lease, "vkCmdWriteTimestamp", json!({"query": slot}));
        self.inner.timestamp(asked, lease, slot);
    }

    fn wait(&self, asked: Asked, lease: Lease, slot: u32) {
        let fields = json!({"events": [event_name(slot)], "src_stage": STAGE, "dst_stage": STAGE});
        self.command(lease, "vkCmdWaitEvents", fields);
        self.inner.wait(asked, lease, slot);
    }

    fn barrier(&self, asked: Asked, lease: Lease) {
        self.pipeline_barrier(lease, STAGE);
        self.inner.barrier(asked, lease);
    }

    fn acquire(&self, asked: Asked, lease: Lease) {
        self.pipeline_barrier(lease, vk::PipelineStageFlags::TOP_OF_PIPE.as_raw());
        self.inner.acquire(asked, lease);
    }

    fn fill(&self, asked: Asked, lease: Lease, buffer: BufferId, offset: u64, size: u64, word: u32) {
        let fields = json!({"dst": self.buffer(buffer), "dst_offset": offset, "size": size, "data": word});
        self.command(lease, "vkCmdFillBuffer", fields);
        self.inner.fill(asked, lease, buffer, offset, size, word);
    }

    fn copy(&self, asked: Asked, lease: Lease, from: (BufferId, u64), to: (BufferId, u64), size: u64) {
        let (src, dst) = (self.buffer(from.0), self.buffer(to.0));
        let fields = json!({"src": src, "src_offset": from.1, "dst": dst, "dst_offset": to.1, "size": size});
        self.command(lease, "vkCmdCopyBuffer", fields);
        self.inner.copy(asked, lease, from, to, size);
    }

    fn dispatch(&self, asked: Asked, lease: Lease, dispatch: &Dispatch) -> Result<(), Error> {
        self.command(lease, "vkCmdDispatch", json!({"groups": dispatch.groups}));
        self.inner.dispatch(asked, lease, dispatch)
    }

    fn raw(&self, lease: Lease) -> Option<Raw<'_>> {
        let mut log = lock(&self.log);
        let note = format!("the caller's own commands go into {}", log.command_buffer(lease));
        log.put(&json!({"note": note}));
        self.inner.raw(lease)
    }

    fn submit(&self, asked: Asked, batch: &Batch) -> Answer<()> {
        let buffer = batch.lease.map(|lease| lock(&self.log).command_buffer(lease));
        if let Some(buffer) = &buffer {
            self.call("vkEndCommandBuffer", json!({"command_buffer": buffer}));
        }
        let wait = |(timeline, value): &(u32, u64)| json!({"semaphore": semaphore_name(*timeline), "value": value, "stage": STAGE});
        let signal = json!({"semaphore": semaphore_name(batch.timeline), "value": batch.value});
        let waits: Vec<Value> = batch.waits.iter().map(wait).collect();
        let buffers = buffer.as_slice();
        let submits = json!([{"wait": waits, "command_buffers": buffers, "signal": [signal]}]);
        self.call("vkQueueSubmit", json!({"queue": queue_name(batch.queue), "fence": null, "submits": submits}));
        self.returned("vkQueueSubmit", self.inner.submit(asked, batch), |()| vk::Result::SUCCESS)
    }

    fn signal(&self, asked: Asked, timeline: u32, value: u64) -> Answer<()> {
        let fields = json!({"semaphore": semaphore_name(timeline), "value": value});
        self.answered("vkSignalSemaphore", self.inner.signal(asked, timeline, value), fields)
    }

    fn counter(&self, timeline: u32) -> Answer<u64> {
        let answer = self.inner.counter(timeline);
        let mut fields = json!({"semaphore": semaphore_name(timeline)});
        if let Ok(value) = answer {
            fields["value"] = value.into();
        }
        self.answered("vkGetSemaphoreCounterValue", answer, fields)
    }

    fn block(&self, timeline: u32, value: u64, nanoseconds: u64) -> Answer<bool> {
        let wait = json!([{"semaphore": semaphore_name(timeline), "value": value}]);
        self.call("vkWaitSemaphores", json!({"wait": wait, "timeout": nanoseconds}));
        let result = |reached: &bool| if *reached { vk::Result::SUCCESS } else { vk::Result::TIMEOUT };
        self.returned("vkWaitSemaphores", self.inner.block(timeline, value, nanoseconds), result)
    }

    fn time(&self, slot: u32) -> Answer<Option<Time>> {
        self.answered("vkGetQueryPoolResults", self.inner.time(slot), json!({"query": slot}))
    }
}
