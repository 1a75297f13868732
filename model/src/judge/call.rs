//! The calls of Vulkan that bear on order, reuse and lifetime, as an application makes them.

/// A Vulkan handle, or any number that names one object of its kind for as long as the object lives.
pub type Handle = u64;

/// Pipeline stages: the bits of `VkPipelineStageFlags2`, of which `VkPipelineStageFlags` are the low ones.
pub type Stages = u64;

/// `VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT`.
pub const ALL_COMMANDS: Stages = 0x1_0000;

/// Where a call was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    /// What the caller counts: a line of a trace, or a number of the call. It grows.
    pub n: u64,
    /// The host thread, counted from 0.
    pub thread: u32,
    /// The call's Vulkan name.
    pub call: &'static str,
}

/// A semaphore and the value to wait for or to signal; 0 if the semaphore is binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemaphoreValue {
    /// Which semaphore.
    pub semaphore: Handle,
    /// The value.
    pub value: u64,
    /// The stages that wait for it, or that it waits for.
    pub stages: Stages,
}

/// One batch of a submission: `VkSubmitInfo`, `VkSubmitInfo2`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmitInfo<'a> {
    /// What it waits for.
    pub waits: &'a [SemaphoreValue],
    /// Its command buffers.
    pub command_buffers: &'a [Handle],
    /// What it signals.
    pub signals: &'a [SemaphoreValue],
}

/// The scopes of an execution dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Stages of what came before: `srcStageMask`.
    pub src: Stages,
    /// Stages of what comes after: `dstStageMask`.
    pub dst: Stages,
}

/// A range of a buffer that a command reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Which buffer.
    pub buffer: Handle,
    /// The first byte.
    pub offset: u64,
    /// How many bytes; `u64::MAX` for the rest of the buffer (`VK_WHOLE_SIZE`).
    pub size: u64,
    /// Whether it is written.
    pub write: bool,
    /// Whether it is only known that the command may: the buffer is bound, and the shader decides.
    pub through_binding: bool,
}

/// Why a call that may block was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocking<'a> {
    /// `vkWaitSemaphores`.
    Semaphores {
        /// Semaphores and values.
        waits: &'a [SemaphoreValue],
        /// `VK_SEMAPHORE_WAIT_ANY_BIT`: one of them is enough.
        any: bool,
    },
    /// `vkWaitForFences`.
    Fences {
        /// Which fences.
        fences: &'a [Handle],
        /// One of them is enough (`waitAll` is false).
        any: bool,
    },
    /// `vkQueueWaitIdle`.
    QueueIdle {
        /// Which queue.
        queue: Handle,
    },
    /// `vkDeviceWaitIdle`.
    DeviceIdle,
}

/// A call. Calls that nothing depends on have no place here.
///
/// A call that may block ([`Call::Wait`]) and a submission ([`Call::Submit`]) are given when they are entered; what they
/// returned follows by [`Judge::returned`](super::Judge::returned). All others are given when they have returned with success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call<'a> {
    /// `vkGetDeviceQueue`, `vkGetDeviceQueue2`.
    GetDeviceQueue {
        /// The queue.
        queue: Handle,
    },
    /// `vkDestroyDevice`.
    DestroyDevice,
    /// `vkCreateCommandPool`.
    CreateCommandPool {
        /// The pool.
        pool: Handle,
    },
    /// `vkResetCommandPool`.
    ResetCommandPool {
        /// The pool.
        pool: Handle,
    },
    /// `vkDestroyCommandPool`.
    DestroyCommandPool {
        /// The pool.
        pool: Handle,
    },
    /// `vkAllocateCommandBuffers`.
    AllocateCommandBuffers {
        /// From which pool.
        pool: Handle,
        /// The command buffers.
        command_buffers: &'a [Handle],
    },
    /// `vkFreeCommandBuffers`.
    FreeCommandBuffers {
        /// The command buffers.
        command_buffers: &'a [Handle],
    },
    /// `vkBeginCommandBuffer`.
    BeginCommandBuffer {
        /// Which command buffer.
        command_buffer: Handle,
        /// `VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT`.
        one_time: bool,
        /// `VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT`.
        simultaneous: bool,
    },
    /// `vkEndCommandBuffer`.
    EndCommandBuffer {
        /// Which command buffer.
        command_buffer: Handle,
    },
    /// `vkResetCommandBuffer`.
    ResetCommandBuffer {
        /// Which command buffer.
        command_buffer: Handle,
    },
    /// `vkCreateEvent`.
    CreateEvent {
        /// The event.
        event: Handle,
    },
    /// `vkDestroyEvent`.
    DestroyEvent {
        /// The event.
        event: Handle,
    },
    /// `vkSetEvent`.
    SetEvent {
        /// The event.
        event: Handle,
    },
    /// `vkResetEvent`.
    ResetEvent {
        /// The event.
        event: Handle,
    },
    /// `vkGetEventStatus`.
    GetEventStatus {
        /// The event.
        event: Handle,
        /// It answered `VK_EVENT_SET`.
        set: bool,
    },
    /// `vkCreateSemaphore`.
    CreateSemaphore {
        /// The semaphore.
        semaphore: Handle,
        /// A timeline's initial value.
        initial_value: u64,
        /// Others may signal it: it can be exported, or was imported.
        external: bool,
    },
    /// `vkDestroySemaphore`.
    DestroySemaphore {
        /// The semaphore.
        semaphore: Handle,
    },
    /// `vkSignalSemaphore`.
    SignalSemaphore {
        /// The semaphore.
        semaphore: Handle,
        /// Its new value.
        value: u64,
    },
    /// `vkGetSemaphoreCounterValue`.
    GetSemaphoreCounterValue {
        /// The semaphore.
        semaphore: Handle,
        /// The answer.
        value: u64,
    },
    /// A payload from outside: `vkAcquireNextImageKHR`, `vkImportSemaphoreFdKHR`, `vkImportFenceFdKHR`.
    SignalledOutside {
        /// The semaphore, if one.
        semaphore: Option<Handle>,
        /// The fence, if one.
        fence: Option<Handle>,
    },
    /// `vkCreateFence`.
    CreateFence {
        /// The fence.
        fence: Handle,
    },
    /// `vkDestroyFence`.
    DestroyFence {
        /// The fence.
        fence: Handle,
    },
    /// `vkResetFences`.
    ResetFences {
        /// The fences.
        fences: &'a [Handle],
    },
    /// `vkGetFenceStatus`.
    GetFenceStatus {
        /// The fence.
        fence: Handle,
        /// It answered `VK_SUCCESS`.
        signaled: bool,
    },
    /// `vkCreateBuffer`.
    CreateBuffer {
        /// The buffer.
        buffer: Handle,
        /// Its size in bytes.
        size: u64,
    },
    /// `vkDestroyBuffer`.
    DestroyBuffer {
        /// The buffer.
        buffer: Handle,
    },
    /// `vkQueueSubmit`, `vkQueueSubmit2`, and what else hands semaphores to a queue: `vkQueueBindSparse`, `vkQueuePresentKHR`.
    Submit {
        /// The queue.
        queue: Handle,
        /// The batches.
        submits: &'a [SubmitInfo<'a>],
        /// The fence that the last of them signals.
        fence: Option<Handle>,
    },
    /// A call that blocks.
    Wait(Blocking<'a>),
    /// `vkCmdSetEvent`, `vkCmdSetEvent2`.
    CmdSetEvent {
        /// The command buffer.
        command_buffer: Handle,
        /// The event.
        event: Handle,
        /// Stages of earlier commands that it waits for.
        stages: Stages,
    },
    /// `vkCmdResetEvent`, `vkCmdResetEvent2`.
    CmdResetEvent {
        /// The command buffer.
        command_buffer: Handle,
        /// The event.
        event: Handle,
        /// Stages of earlier commands that it waits for.
        stages: Stages,
    },
    /// `vkCmdWaitEvents`, `vkCmdWaitEvents2`.
    CmdWaitEvents {
        /// The command buffer.
        command_buffer: Handle,
        /// The events.
        events: &'a [Handle],
        /// One dependency for all events, or one for each.
        dependencies: &'a [Dependency],
    },
    /// `vkCmdPipelineBarrier`, `vkCmdPipelineBarrier2`.
    CmdPipelineBarrier {
        /// The command buffer.
        command_buffer: Handle,
        /// One dependency, or one for each barrier.
        dependencies: &'a [Dependency],
    },
    /// `vkCmdExecuteCommands`.
    CmdExecuteCommands {
        /// The primary command buffer.
        command_buffer: Handle,
        /// The secondary ones.
        secondaries: &'a [Handle],
    },
    /// A command that does work: a copy, a fill, a dispatch, a draw.
    CmdWork {
        /// The command buffer.
        command_buffer: Handle,
        /// The stages that it runs in.
        stages: Stages,
        /// What it reads and writes.
        accesses: &'a [Access],
    },
}
