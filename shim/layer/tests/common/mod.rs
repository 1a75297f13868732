//! Programs in plain Vulkan, each run in a process of its own under the layer.

#![allow(dead_code)]

use std::ffi::c_void;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use ash::vk;
use fencepost_proofs::trace::Reader;

/// Says which program a child is to run.
const CHILD: &str = "FENCEPOST_TEST_PROGRAM";
const PATIENCE: Duration = Duration::from_secs(60);
/// How a child says that there is no driver for it.
const NO_DRIVER: i32 = 77;

/// A program: its name, and what it does.
pub type Program = (&'static str, fn(&Gpu));

/// How a program ended, and what was said.
pub struct Told {
    pub program: String,
    /// The broken rules, in order.
    pub rules: Vec<String>,
    pub stdout: String,
    pub stderr: String,
    /// `None` if it did not end by itself.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub trace: PathBuf,
}

/// How a program is to be run.
#[derive(Default)]
pub struct Run {
    environment: Vec<(String, String)>,
    directory: Option<PathBuf>,
    hangs_after: Option<String>,
    patience: Option<Duration>,
}

impl Run {
    pub fn set(mut self, name: &str, value: impl Into<String>) -> Run {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// It hangs: it is killed when it has said this.
    pub fn hangs_after(mut self, words: &str) -> Run {
        self.hangs_after = Some(words.into());
        self
    }

    /// It is killed when it has run for as long.
    pub fn patience(mut self, patience: Duration) -> Run {
        self.patience = Some(patience);
        self
    }

    /// It starts in this directory.
    pub fn directory(mut self, directory: &Path) -> Run {
        self.directory = Some(directory.into());
        self
    }

    /// Runs a program under the layer.
    pub fn under_the_layer(self, program: &str) -> Option<Told> {
        static RUNS: AtomicUsize = AtomicUsize::new(0);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let (manifest, trace) = (manifest(), directory(program).join(format!("trace.{run}.ndjson")));
        let _ = std::fs::remove_file(&trace);
        let told = self.run(program, |command| {
            under_the_layer(command, &manifest);
            command.env("FENCEPOST_TRACE", &trace);
        });
        told.map(|told| Told { trace, ..told })
    }

    /// Runs a program in a process that `with` has changed; `None` if there is no driver for it.
    pub fn run(self, program: &str, with: impl FnOnce(&mut Command)) -> Option<Told> {
        let mut command = Command::new(std::env::current_exe().expect("this executable has a path"));
        command.args(["child", "--exact", "--nocapture", "--ignored"]).env(CHILD, program);
        with(&mut command);
        command.envs(self.environment).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let child = command.spawn().expect("this executable starts");
        let told = watch(program, child, self.hangs_after.as_deref(), self.patience.unwrap_or(PATIENCE));
        if told.code == Some(NO_DRIVER) {
            assert!(std::env::var_os("CI").is_none(), "in CI nothing is skipped: {}", told.stderr);
            let _ = writeln!(std::io::stderr().lock(), "SKIPPED on Vulkan: {program}: no device of Vulkan 1.3");
            return None;
        }
        Some(told)
    }
}

/// What a child does: the program that it was started for.
pub fn child(programs: &[Program]) {
    let name = std::env::var(CHILD).expect("another test starts this one");
    let (_, program) = programs.iter().find(|(known, _)| *known == name).expect("the program is in the list");
    match Gpu::open() {
        Some(gpu) => program(&gpu),
        None => std::process::exit(NO_DRIVER),
    }
    std::process::exit(0);
}

/// Has a command load the layer, and only this one.
pub fn under_the_layer(command: &mut Command, manifest: &Path) {
    let settings = ["REPORT", "TRACE", "BREAK_ON", "WATCHDOG"];
    for name in settings {
        command.env_remove(format!("FENCEPOST_{name}"));
    }
    command.env("VK_LAYER_PATH", manifest).env("VK_INSTANCE_LAYERS", "VK_LAYER_FENCEPOST_lifecycle");
}

/// A directory of a program's own.
pub fn directory(program: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(program.replace(|c: char| !c.is_alphanumeric(), "_"));
    std::fs::create_dir_all(&directory).expect("the target directory can be written to");
    directory
}

/// A directory with the manifest that is shipped, with the path of the library as it was built.
pub fn manifest() -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock();
    let directory = directory("layer");
    let executable = std::env::current_exe().expect("this executable has a path");
    let library = executable.with_file_name("libfencepost_layer.so");
    assert!(library.exists(), "cargo builds {} before the tests", library.display());
    let shipped = include_str!("../../VkLayer_fencepost.json");
    let here = shipped.replace("./libfencepost_layer.so", &library.display().to_string());
    assert_ne!(shipped, here);
    let path = directory.join(format!("VkLayer_fencepost.{}.json", std::process::id()));
    if !path.exists() {
        for old in std::fs::read_dir(&directory).expect("the directory was made").flatten() {
            let _ = std::fs::remove_file(old.path());
        }
        std::fs::write(path, here).expect("the target directory can be written to");
    }
    directory
}

/// Reads a pipe to its end.
fn read(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (send, heard) = channel();
    std::thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(count) = pipe.read(&mut part) {
            if count == 0 || send.send(part[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    heard
}

fn watch(program: &str, mut child: Child, hangs_after: Option<&str>, patience: Duration) -> Told {
    let stdout = read(child.stdout.take().expect("stdout is piped"));
    let heard = read(child.stderr.take().expect("stderr is piped"));
    let (start, mut stderr, mut killed) = (Instant::now(), Vec::new(), false);
    let status = loop {
        stderr.extend(heard.try_iter().flatten());
        if let Some(status) = child.try_wait().expect("the child is ours") {
            break status;
        }
        let said = |words: &str| String::from_utf8_lossy(&stderr).contains(words);
        if hangs_after.is_some_and(said) || start.elapsed() > patience {
            killed = true;
            child.kill().expect("the child is ours");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    stderr.extend(heard.iter().flatten());
    let stdout: Vec<u8> = stdout.iter().flatten().collect();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (stdout, stderr) = (text(stdout), text(stderr));
    let signal = std::os::unix::process::ExitStatusExt::signal(&status).filter(|_| !killed);
    let code = status.code().filter(|_| !killed);
    let rules = reports(&stderr).map(|(rule, _)| rule.to_owned()).collect();
    Told { program: program.into(), rules, stdout, stderr, code, signal, trace: PathBuf::new() }
}

/// Rules and sentences.
fn reports(stderr: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = stderr.lines().filter_map(|line| line.strip_prefix("fencepost: ")?.split_once(": "));
    lines.filter(|(id, _)| !["watchdog", "settings", "trace"].contains(id))
}

impl Told {
    /// The program ended by itself, and exactly these rules were reported, live and by the trace checker.
    pub fn reports(&self, rules: &[&str]) {
        self.says_of_rules(rules);
        assert_eq!(self.code, Some(0), "{}: {}", self.program, self.stderr);
    }

    /// Exactly these rules were reported, live and by the trace checker.
    pub fn says_of_rules(&self, rules: &[&str]) {
        assert_eq!(self.rules, rules, "{}: {}", self.program, self.stderr);
        let mut reader = Reader::new();
        let mut verdicts = Vec::new();
        for line in std::fs::read_to_string(&self.trace).expect("the layer wrote a trace").lines() {
            if let Err(bad) = reader.line(line.as_bytes(), &mut verdicts) {
                panic!("{}: {bad}: {line}", self.program);
            }
        }
        assert_eq!((reader.calls_skipped, reader.fields_skipped), (0, 0), "{}", self.program);
        let read: Vec<(&str, String)> =
            verdicts.iter().map(|v| (v.rule.name(), v.sentence(&|object| reader.name(object)))).collect();
        let live: Vec<(&str, String)> = reports(&self.stderr).map(|(rule, text)| (rule, unnamed(text))).collect();
        assert_eq!(live, read, "{}", self.program);
    }

    /// A line says all of these.
    pub fn says(&self, words: &[&str]) {
        let line = self.stderr.lines().find(|line| words.iter().all(|word| line.contains(word)));
        assert!(line.is_some(), "{}: no line says {words:?}:\n{}", self.program, self.stderr);
    }
}

/// A sentence without the names that the application gave.
fn unnamed(text: &str) -> String {
    text.split(" \"")
        .enumerate()
        .map(|(at, part)| match part.split_once('"') {
            Some((_, rest)) if at > 0 => rest,
            _ => part,
        })
        .collect()
}

/// A device of Vulkan 1.3 with one queue, and what programs need of it. Calls are unchecked: programs are faulty on purpose.
pub struct Gpu {
    pub entry: ash::Entry,
    pub instance: ash::Instance,
    pub device: ash::Device,
    pub queue: vk::Queue,
    pub pool: vk::CommandPool,
    /// Held by whoever submits, where there are threads.
    pub lock: Mutex<()>,
    memory_type: u32,
}

pub const ALL: vk::PipelineStageFlags = vk::PipelineStageFlags::ALL_COMMANDS;
pub const ALL2: vk::PipelineStageFlags2 = vk::PipelineStageFlags2::ALL_COMMANDS;

/// A semaphore and its value.
pub type At = (vk::Semaphore, u64);

#[allow(clippy::undocumented_unsafe_blocks, reason = "every call is one of plain Vulkan on objects that live")]
impl Gpu {
    pub fn open() -> Option<Gpu> {
        Gpu::open_with(&[])
    }

    pub fn open_with(extensions: &[*const std::ffi::c_char]) -> Option<Gpu> {
        let entry = unsafe { ash::Entry::load() }.ok()?;
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
        let info = vk::InstanceCreateInfo::default().application_info(&application).enabled_extension_names(extensions);
        let instance = unsafe { entry.create_instance(&info, None) }.ok()?;
        Gpu::of(entry, instance)
    }

    pub fn of(entry: ash::Entry, instance: ash::Instance) -> Option<Gpu> {
        let all = unsafe { instance.enumerate_physical_devices() }.ok()?;
        let version = |d: &vk::PhysicalDevice| unsafe { instance.get_physical_device_properties(*d) }.api_version;
        let physical = all.into_iter().find(|d| version(d) >= vk::API_VERSION_1_3)?;
        let memory = unsafe { instance.get_physical_device_memory_properties(physical) };
        let host = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let memory_type = memory.memory_types_as_slice().iter().position(|t| t.property_flags.contains(host))? as u32;
        let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(0).queue_priorities(&[1.0])];
        let mut use12 = vk::PhysicalDeviceVulkan12Features::default().timeline_semaphore(true);
        let mut use13 = vk::PhysicalDeviceVulkan13Features::default().synchronization2(true);
        let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
        let info = info.push_next(&mut use12).push_next(&mut use13);
        let device = unsafe { instance.create_device(physical, &info, Some(&refusing())) }.ok()?;
        let queue = unsafe { device.get_device_queue(0, 0) };
        let flags = vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER;
        let info = vk::CommandPoolCreateInfo::default().flags(flags);
        let pool = unsafe { device.create_command_pool(&info, None) }.ok()?;
        Some(Gpu { entry, instance, device, queue, pool, lock: Mutex::new(()), memory_type })
    }

    /// Destroys what is left.
    pub fn close(&self) {
        unsafe {
            self.device.destroy_command_pool(self.pool, None);
            self.device.destroy_device(Some(&refusing()));
            self.instance.destroy_instance(None);
        }
    }

    pub fn event(&self) -> vk::Event {
        unsafe { self.device.create_event(&vk::EventCreateInfo::default(), None) }.unwrap()
    }

    pub fn timeline(&self, value: u64) -> vk::Semaphore {
        let mut kind = vk::SemaphoreTypeCreateInfo::default();
        kind = kind.semaphore_type(vk::SemaphoreType::TIMELINE).initial_value(value);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        unsafe { self.device.create_semaphore(&info, None) }.unwrap()
    }

    pub fn binary(&self) -> vk::Semaphore {
        unsafe { self.device.create_semaphore(&vk::SemaphoreCreateInfo::default(), None) }.unwrap()
    }

    pub fn fence(&self) -> vk::Fence {
        unsafe { self.device.create_fence(&vk::FenceCreateInfo::default(), None) }.unwrap()
    }

    pub fn buffer(&self, size: u64) -> (vk::Buffer, vk::DeviceMemory) {
        let usage = vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST
            | vk::BufferUsageFlags::STORAGE_BUFFER;
        let info = vk::BufferCreateInfo::default().size(size).usage(usage);
        unsafe {
            let buffer = self.device.create_buffer(&info, None).unwrap();
            let need = self.device.get_buffer_memory_requirements(buffer);
            let info = vk::MemoryAllocateInfo::default().allocation_size(need.size).memory_type_index(self.memory_type);
            let memory = self.device.allocate_memory(&info, None).unwrap();
            self.device.bind_buffer_memory(buffer, memory, 0).unwrap();
            (buffer, memory)
        }
    }

    pub fn allocate(&self) -> vk::CommandBuffer {
        self.allocate_level(vk::CommandBufferLevel::PRIMARY)
    }

    pub fn allocate_level(&self, level: vk::CommandBufferLevel) -> vk::CommandBuffer {
        let info =
            vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(1).level(level);
        unsafe { self.device.allocate_command_buffers(&info) }.unwrap()[0]
    }

    pub fn begin(&self, command_buffer: vk::CommandBuffer) {
        self.begin_with(command_buffer, vk::CommandBufferUsageFlags::empty());
    }

    pub fn begin_with(&self, command_buffer: vk::CommandBuffer, flags: vk::CommandBufferUsageFlags) {
        let inheritance = vk::CommandBufferInheritanceInfo::default();
        let info = vk::CommandBufferBeginInfo::default().flags(flags).inheritance_info(&inheritance);
        unsafe { self.device.begin_command_buffer(command_buffer, &info) }.unwrap();
    }

    pub fn end(&self, command_buffer: vk::CommandBuffer) {
        unsafe { self.device.end_command_buffer(command_buffer) }.unwrap();
    }

    /// A new command buffer with these commands.
    pub fn record(&self, commands: impl FnOnce(vk::CommandBuffer)) -> vk::CommandBuffer {
        let command_buffer = self.allocate();
        self.begin(command_buffer);
        commands(command_buffer);
        self.end(command_buffer);
        command_buffer
    }

    pub fn cmd_set(&self, command_buffer: vk::CommandBuffer, event: vk::Event) {
        unsafe { self.device.cmd_set_event(command_buffer, event, ALL) };
    }

    pub fn cmd_reset(&self, command_buffer: vk::CommandBuffer, event: vk::Event) {
        unsafe { self.device.cmd_reset_event(command_buffer, event, ALL) };
    }

    pub fn cmd_wait(&self, command_buffer: vk::CommandBuffer, events: &[vk::Event]) {
        unsafe { self.device.cmd_wait_events(command_buffer, events, ALL, ALL, &[], &[], &[]) };
    }

    pub fn cmd_barrier(&self, command_buffer: vk::CommandBuffer) {
        let flags = vk::DependencyFlags::empty();
        unsafe { self.device.cmd_pipeline_barrier(command_buffer, ALL, ALL, flags, &[], &[], &[]) };
    }

    pub fn submit(&self, command_buffers: &[vk::CommandBuffer], waits: &[At], signals: &[At], fence: vk::Fence) {
        let (wait_semaphores, wait_values): (Vec<_>, Vec<_>) = waits.iter().copied().unzip();
        let (signal_semaphores, signal_values): (Vec<_>, Vec<_>) = signals.iter().copied().unzip();
        let stages = vec![ALL; waits.len()];
        let mut values = vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&wait_values)
            .signal_semaphore_values(&signal_values);
        let info = vk::SubmitInfo::default()
            .wait_semaphores(&wait_semaphores)
            .wait_dst_stage_mask(&stages)
            .signal_semaphores(&signal_semaphores)
            .command_buffers(command_buffers)
            .push_next(&mut values);
        unsafe { self.device.queue_submit(self.queue, &[info], fence) }.unwrap();
    }

    /// A submission that the driver has no memory for.
    pub fn submit_refused(&self, command_buffers: &[vk::CommandBuffer]) {
        let info = vk::SubmitInfo::default().command_buffers(command_buffers);
        refuse(true);
        let result = unsafe { self.device.queue_submit(self.queue, &[info], vk::Fence::null()) };
        refuse(false);
        assert_eq!(result, Err(vk::Result::ERROR_OUT_OF_HOST_MEMORY));
    }

    pub fn submit_all(&self, command_buffers: &[vk::CommandBuffer]) {
        self.submit(command_buffers, &[], &[], vk::Fence::null());
    }

    pub fn submit_fence(&self, command_buffers: &[vk::CommandBuffer]) -> vk::Fence {
        let fence = self.fence();
        self.submit(command_buffers, &[], &[], fence);
        fence
    }

    pub fn idle(&self) {
        unsafe { self.device.queue_wait_idle(self.queue) }.unwrap();
    }

    pub fn wait_fence(&self, fence: vk::Fence) {
        unsafe { self.device.wait_for_fences(&[fence], true, u64::MAX) }.unwrap();
    }

    pub fn wait_value(&self, (semaphore, value): At) {
        let (semaphores, values) = ([semaphore], [value]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        unsafe { self.device.wait_semaphores(&info, u64::MAX) }.unwrap();
    }

    pub fn host_signal(&self, (semaphore, value): At) {
        let info = vk::SemaphoreSignalInfo::default().semaphore(semaphore).value(value);
        unsafe { self.device.signal_semaphore(&info) }.unwrap();
    }

    pub fn host_reset(&self, event: vk::Event) {
        unsafe { self.device.reset_event(event) }.unwrap();
    }

    pub fn host_set(&self, event: vk::Event) {
        unsafe { self.device.set_event(event) }.unwrap();
    }

    pub fn destroy_event(&self, event: vk::Event) {
        unsafe { self.device.destroy_event(event, None) };
    }
}

// An allocator that can be told to refuse: drivers take what a submission needs from their device's.

static REFUSE: AtomicBool = AtomicBool::new(false);

/// Whether allocations of the device are refused from now on.
pub fn refuse(refuse: bool) {
    REFUSE.store(refuse, Ordering::Relaxed);
}

fn refusing() -> vk::AllocationCallbacks<'static> {
    vk::AllocationCallbacks {
        pfn_allocation: Some(allocate),
        pfn_reallocation: Some(reallocate),
        pfn_free: Some(free),
        ..Default::default()
    }
}

unsafe extern "C" {
    fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    fn realloc(memory: *mut c_void, size: usize) -> *mut c_void;
    #[link_name = "free"]
    fn c_free(memory: *mut c_void);
}

unsafe extern "system" fn allocate(
    _: *mut c_void,
    size: usize,
    alignment: usize,
    _: vk::SystemAllocationScope,
) -> *mut c_void {
    if REFUSE.load(Ordering::Relaxed) {
        return std::ptr::null_mut();
    }
    let alignment = alignment.max(16);
    // SAFETY: the alignment is a power of two, and the size a multiple of it.
    unsafe { aligned_alloc(alignment, size.next_multiple_of(alignment)) }
}

unsafe extern "system" fn reallocate(
    _: *mut c_void,
    original: *mut c_void,
    size: usize,
    _: usize,
    _: vk::SystemAllocationScope,
) -> *mut c_void {
    if REFUSE.load(Ordering::Relaxed) {
        return std::ptr::null_mut();
    }
    // SAFETY: it came from here, or is null.
    unsafe { realloc(original, size) }
}

/// Some memory of lavapipe's is returned to the C library past this function.
unsafe extern "system" fn free(_: *mut c_void, memory: *mut c_void) {
    // SAFETY: it came from here, or is null.
    unsafe { c_free(memory) };
}
