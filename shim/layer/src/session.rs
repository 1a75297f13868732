//! What is known of one device's objects, and the judge of their calls.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::ThreadId;

use ash::vk;
use fencepost::judge::{Call, Dependency, Handle, Judge, Kind, Object, Site, Verdict};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bindings::Bindings;
use crate::report::{Named, Report};
use crate::trace::{self, Trace};

/// A dependency of a render pass.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// After which subpass.
    pub from: u32,
    /// Before which.
    pub to: u32,
    pub dependency: Dependency,
}

/// The judge of one device. Drivers use handles again; the numbers that it sees are unique.
#[derive(Default)]
pub struct Session {
    /// Counts devices from 1.
    device: u32,
    judge: Judge,
    n: u64,
    threads: FxHashMap<ThreadId, u32>,
    /// The numbers of living objects, by kind and Vulkan handle.
    numbers: FxHashMap<(Kind, u64), Handle>,
    /// How many objects of a kind there were.
    counts: FxHashMap<Kind, Handle>,
    /// Handles of living objects, and what the application calls them.
    objects: FxHashMap<(Kind, Handle), (u64, Option<String>)>,
    /// Command buffers go with their pool.
    pools: FxHashMap<u64, Vec<u64>>,
    timelines: FxHashSet<u64>,
    images: FxHashMap<vk::Image, vk::Format>,
    pub bindings: Bindings,
    pub render_passes: FxHashMap<vk::RenderPass, Arc<[Step]>>,
    /// Command buffers in a render pass, and the subpass.
    pub passes: FxHashMap<Handle, (Arc<[Step]>, u32)>,
    /// Objects that are gone when the call was judged.
    going: Vec<(Kind, u64)>,
    out: Vec<Verdict>,
    trace: Option<Trace>,
    /// Why the trace ended, if that was not told.
    fault: Option<String>,
}

impl Session {
    /// The device was made.
    pub fn begin(&mut self, trace: Option<&Path>) {
        static DEVICES: AtomicU32 = AtomicU32::new(1);
        self.device = DEVICES.fetch_add(1, Ordering::Relaxed);
        match trace.map(|path| Trace::create(path, self.device)).transpose() {
            Ok(trace) => self.trace = trace,
            Err(fault) => self.fault = Some(fault),
        }
        let site = self.site("vkCreateDevice");
        self.write(|trace| trace.call(site, None));
    }

    // Objects ------------------------------------------------------------------------------------

    /// The number of an object that was made just now.
    pub fn made(&mut self, kind: Kind, handle: u64) -> Handle {
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let number = *count;
        if let Some(before) = self.numbers.insert((kind, handle), number) {
            self.objects.remove(&(kind, before));
        }
        self.objects.insert((kind, number), (handle, None));
        number
    }

    /// The number of an object, whether its creation was seen or not.
    pub fn number(&mut self, kind: Kind, handle: u64) -> Handle {
        match self.numbers.get(&(kind, handle)) {
            Some(number) => *number,
            None => self.made(kind, handle),
        }
    }

    /// The number of an object that goes with the call that is judged next.
    pub fn gone(&mut self, kind: Kind, handle: u64) -> Handle {
        self.going.push((kind, handle));
        self.number(kind, handle)
    }

    pub fn allocated(&mut self, pool: u64, command_buffer: u64) -> Handle {
        self.pools.entry(pool).or_default().push(command_buffer);
        self.made(Kind::CommandBuffer, command_buffer)
    }

    pub fn freed(&mut self, pool: u64, command_buffers: &[u64]) {
        if let Some(pool) = self.pools.get_mut(&pool) {
            pool.retain(|command_buffer| !command_buffers.contains(command_buffer));
        }
    }

    pub fn pool_gone(&mut self, pool: u64) -> Handle {
        let command_buffers = self.pools.remove(&pool).unwrap_or_default();
        self.going.extend(command_buffers.into_iter().map(|c| (Kind::CommandBuffer, c)));
        self.gone(Kind::CommandPool, pool)
    }

    pub fn semaphore_made(&mut self, semaphore: u64, timeline: bool) -> Handle {
        if timeline {
            self.timelines.insert(semaphore);
        } else {
            self.timelines.remove(&semaphore);
        }
        self.made(Kind::Semaphore, semaphore)
    }

    /// The value of a binary semaphore is 0, whatever the application wrote.
    pub fn value(&self, semaphore: u64, value: u64) -> u64 {
        if self.timelines.contains(&semaphore) { value } else { 0 }
    }

    pub fn image_made(&mut self, image: vk::Image, format: vk::Format) {
        self.images.insert(image, format);
    }

    pub fn image_gone(&mut self, image: vk::Image) {
        self.images.remove(&image);
    }

    /// The format of an image that was created in view.
    pub fn format(&self, image: vk::Image) -> vk::Format {
        self.images.get(&image).copied().unwrap_or_default()
    }

    pub fn name(&mut self, kind: Kind, handle: u64, name: Option<String>) {
        let number = self.number(kind, handle);
        if let Some(object) = self.objects.get_mut(&(kind, number)) {
            object.1 = name;
        }
    }

    // Calls --------------------------------------------------------------------------------------

    /// The calling thread's number.
    pub fn thread(&mut self) -> u32 {
        let known = self.threads.len() as u32;
        *self.threads.entry(std::thread::current().id()).or_insert(known)
    }

    fn site(&mut self, call: &'static str) -> Site {
        self.n += 1;
        Site { n: self.n, thread: self.thread(), call }
    }

    fn write(&mut self, line: impl FnOnce(&mut Trace) -> Result<(), String>) {
        if let Some(trace) = &mut self.trace
            && let Err(fault) = line(trace)
        {
            (self.trace, self.fault) = (None, Some(fault));
        }
    }

    /// A call that succeeds, or that is about to be made.
    pub fn call(&mut self, name: &'static str, call: &Call<'_>) {
        let site = self.site(name);
        self.write(|trace| trace.call(site, Some(call)));
        self.judge.call(site, call, &mut self.out);
    }

    /// What a call returned that was judged before it was made.
    pub fn returned(&mut self, name: &'static str, result: vk::Result) {
        let site = self.site(name);
        self.write(|trace| trace.returned(site, result.as_raw()));
        self.judge.returned(site, result.as_raw(), &mut self.out);
    }

    /// What keeps the host wait of a thread from returning.
    pub fn stuck(&self, thread: u32) -> String {
        self.judge.stuck(thread, &|object| self.told(object))
    }

    /// What went wrong with the trace since the last time.
    pub fn fault(&mut self) -> Option<String> {
        self.fault.take()
    }

    /// What is to be told of the calls since the last time.
    pub fn reports(&mut self) -> Vec<Report> {
        if self.out.is_empty() && self.going.is_empty() {
            return Vec::new();
        }
        let verdicts = std::mem::take(&mut self.out);
        let reports = verdicts.iter().map(|verdict| self.report(verdict)).collect();
        for gone in std::mem::take(&mut self.going) {
            if let Some(number) = self.numbers.remove(&gone) {
                if gone.0 == Kind::CommandBuffer {
                    self.bindings.begun(number);
                    self.passes.remove(&number);
                }
                self.objects.remove(&(gone.0, number));
            }
        }
        reports
    }

    fn report(&self, verdict: &Verdict) -> Report {
        let objects = [Some(verdict.object), verdict.place].into_iter().flatten();
        let named = objects.map(|object| Named {
            kind: object.kind,
            handle: self.objects.get(&(object.kind, object.handle)).map_or(0, |(handle, _)| *handle),
            name: self.told(object),
        });
        Report {
            device: self.device,
            rule: verdict.rule,
            text: verdict.sentence(&|object| self.told(object)),
            objects: named.collect(),
        }
    }

    /// An object's name in reports: that of the trace, and the application's own.
    fn told(&self, object: Object) -> String {
        let short = trace::name(object);
        match self.objects.get(&(object.kind, object.handle)) {
            Some((_, Some(name))) => format!("{short} \"{name}\""),
            _ => short,
        }
    }
}
