//! Programs with one fault each, as far as one queue can show it, with the rules that they break.

use ash::vk;

use crate::common::{ALL, Gpu};

/// How a faulty program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// By itself.
    Well,
    /// Never: the watchdog says why, in a line with these words.
    Hanging(&'static [&'static str]),
}

use Ends::{Hanging, Well};

/// A program with a fault.
pub struct Faulty {
    pub name: &'static str,
    pub rules: &'static [&'static str],
    pub ends: Ends,
    pub run: fn(&Gpu),
}

const NO_FENCE: vk::Fence = vk::Fence::null();

const fn faulty(name: &'static str, rules: &'static [&'static str], ends: Ends, run: fn(&Gpu)) -> Faulty {
    Faulty { name, rules, ends, run }
}

/// Commands that take the queue a while.
fn fill(gpu: &Gpu, command_buffer: vk::CommandBuffer) {
    let (buffer, _) = gpu.buffer(1 << 20);
    // SAFETY: both live, and the command buffer is being recorded.
    unsafe { gpu.device.cmd_fill_buffer(command_buffer, buffer, 0, vk::WHOLE_SIZE, 7) };
}

/// A set that is done, a wait for it in a command buffer that is still open, and the host resets the event.
fn reset_under_an_open_wait(gpu: &Gpu) -> (vk::Event, vk::Semaphore, vk::CommandBuffer) {
    let (event, timeline) = (gpu.event(), gpu.timeline(0));
    let set = gpu.record(|c| gpu.cmd_set(c, event));
    gpu.submit(&[set], &[], &[(timeline, 1)], NO_FENCE);
    let open = gpu.allocate();
    gpu.begin(open);
    gpu.cmd_wait(open, &[event]);
    gpu.wait_value((timeline, 1));
    gpu.host_reset(event);
    (event, timeline, open)
}

fn wait_in_stage(gpu: &Gpu, command_buffer: vk::CommandBuffer, event: vk::Event, stage: vk::PipelineStageFlags) {
    wait_between(gpu, command_buffer, event, ALL, stage);
}

fn wait_between(
    gpu: &Gpu,
    command_buffer: vk::CommandBuffer,
    event: vk::Event,
    src: vk::PipelineStageFlags,
    dst: vk::PipelineStageFlags,
) {
    // SAFETY: both live, and the command buffer is being recorded.
    unsafe { gpu.device.cmd_wait_events(command_buffer, &[event], src, dst, &[], &[], &[]) };
}

fn set_after_stage(gpu: &Gpu, command_buffer: vk::CommandBuffer, event: vk::Event, stage: vk::PipelineStageFlags) {
    // SAFETY: both live, and the command buffer is being recorded.
    unsafe { gpu.device.cmd_set_event(command_buffer, event, stage) };
}

fn barrier(gpu: &Gpu, command_buffer: vk::CommandBuffer, src: vk::PipelineStageFlags, dst: vk::PipelineStageFlags) {
    let flags = vk::DependencyFlags::empty();
    // SAFETY: the command buffer is being recorded.
    unsafe { gpu.device.cmd_pipeline_barrier(command_buffer, src, dst, flags, &[], &[], &[]) };
}

/// The faults of the field that one queue can show, by their numbers, and then one for each rule.
pub const FAULTY: &[Faulty] = &[
    faulty(
        "U1: a reset in another command buffer, no dependency after the wait",
        &["reuse_while_waited"],
        Well,
        |gpu| {
            let event = gpu.event();
            let wait = gpu.record(|c| {
                gpu.cmd_set(c, event);
                gpu.cmd_wait(c, &[event]);
            });
            let reset = gpu.record(|c| gpu.cmd_reset(c, event));
            gpu.submit_all(&[wait]);
            gpu.submit_all(&[reset]);
            gpu.idle();
        },
    ),
    faulty(
        "U2: two frames, the second's reset not ordered after the first's wait",
        &["reuse_while_waited"],
        Well,
        |gpu| {
            let event = gpu.event();
            for _ in 0..2 {
                let set = gpu.record(|c| {
                    gpu.cmd_reset(c, event);
                    gpu.cmd_barrier(c);
                    gpu.cmd_set(c, event);
                });
                let wait = gpu.record(|c| gpu.cmd_wait(c, &[event]));
                gpu.submit_all(&[set, wait]);
            }
            gpu.idle();
        },
    ),
    faulty("U3: a waiter held back, a recycler queued behind it", &["reuse_while_waited"], Well, |gpu| {
        let (event, timeline) = (gpu.event(), gpu.timeline(0));
        gpu.submit_all(&[gpu.record(|c| gpu.cmd_set(c, event))]);
        let wait = gpu.record(|c| gpu.cmd_wait(c, &[event]));
        gpu.submit(&[wait], &[(timeline, 1)], &[], NO_FENCE);
        let recycle = gpu.record(|c| {
            gpu.cmd_reset(c, event);
            gpu.cmd_barrier(c);
            gpu.cmd_set(c, event);
        });
        gpu.submit_all(&[recycle]);
        gpu.host_signal((timeline, 1));
        gpu.idle();
    }),
    faulty("U4: a wait, and the reset in a secondary that follows it", &["reuse_while_waited"], Well, |gpu| {
        let event = gpu.event();
        let secondary = gpu.allocate_level(vk::CommandBufferLevel::SECONDARY);
        gpu.begin(secondary);
        gpu.cmd_reset(secondary, event);
        gpu.end(secondary);
        let primary = gpu.record(|c| {
            gpu.cmd_set(c, event);
            gpu.cmd_wait(c, &[event]);
            // SAFETY: both live.
            unsafe { gpu.device.cmd_execute_commands(c, &[secondary]) };
        });
        gpu.submit_all(&[primary]);
        gpu.idle();
    }),
    faulty("U5: two waits, a dependency from the last only", &["reuse_while_waited"], Well, |gpu| {
        let (event, compute, transfer) =
            (gpu.event(), vk::PipelineStageFlags::COMPUTE_SHADER, vk::PipelineStageFlags::TRANSFER);
        let all = gpu.record(|c| {
            gpu.cmd_set(c, event);
            wait_in_stage(gpu, c, event, compute);
            wait_in_stage(gpu, c, event, transfer);
            barrier(gpu, c, transfer, ALL);
            gpu.cmd_reset(c, event);
        });
        gpu.submit_all(&[all]);
        gpu.idle();
    }),
    faulty(
        "U7: a wait for generation 1 is submitted after generation 2 is set",
        &["reuse_while_waited", "stale_wait"],
        Well,
        |gpu| {
            let event = gpu.event();
            let fence = gpu.submit_fence(&[gpu.record(|c| gpu.cmd_set(c, event))]);
            let wait = gpu.record(|c| gpu.cmd_wait(c, &[event]));
            gpu.wait_fence(fence);
            gpu.host_reset(event);
            gpu.submit_all(&[gpu.record(|c| gpu.cmd_set(c, event))]);
            gpu.submit_all(&[wait]);
            gpu.idle();
        },
    ),
    faulty("U8: generation 2 is set with no reset in between", &["stale_wait"], Well, |gpu| {
        let event = gpu.event();
        gpu.submit_all(&[gpu.record(|c| {
            gpu.cmd_set(c, event);
            gpu.cmd_wait(c, &[event]);
        })]);
        gpu.submit_all(&[gpu.record(|c| {
            fill(gpu, c);
            gpu.cmd_set(c, event);
        })]);
        gpu.submit_all(&[gpu.record(|c| gpu.cmd_wait(c, &[event]))]);
        gpu.idle();
    }),
    faulty("U9: a late set of generation 1 ends generation 2's wait", &["stale_wait"], Well, |gpu| {
        let event = gpu.event();
        gpu.submit_all(&[gpu.record(|c| set_after_stage(gpu, c, event, vk::PipelineStageFlags::COMPUTE_SHADER))]);
        gpu.host_reset(event);
        gpu.submit_all(&[gpu.record(|c| set_after_stage(gpu, c, event, vk::PipelineStageFlags::TRANSFER))]);
        let transfer = vk::PipelineStageFlags::TRANSFER;
        gpu.submit_all(&[gpu.record(|c| wait_between(gpu, c, event, transfer, ALL))]);
        gpu.idle();
    }),
    faulty(
        "U10: the host sets while a queue's reset is pending, then a wait",
        &["progress"],
        Hanging(&["vkQueueWaitIdle", "it waits for E1", "the last that was done to it is vkCmdResetEvent"]),
        |gpu| {
            let (event, timeline) = (gpu.event(), gpu.timeline(0));
            // The reset is held back until the host has set the event.
            let reset = gpu.record(|c| gpu.cmd_reset(c, event));
            gpu.submit(&[reset], &[(timeline, 1)], &[], NO_FENCE);
            gpu.host_set(event);
            gpu.host_signal((timeline, 1));
            let host = vk::PipelineStageFlags::HOST;
            gpu.submit_all(&[gpu.record(|c| wait_between(gpu, c, event, host | ALL, ALL))]);
            gpu.idle();
        },
    ),
    faulty(
        "U11: one wait on two events, one of which is never set",
        &["progress"],
        Hanging(&["vkQueueWaitIdle", "it waits for E2", "it was never set"]),
        |gpu| {
            let events = [gpu.event(), gpu.event()];
            gpu.submit_all(&[gpu.record(|c| gpu.cmd_set(c, events[0]))]);
            gpu.submit_all(&[gpu.record(|c| gpu.cmd_wait(c, &events))]);
            gpu.idle();
        },
    ),
    faulty("U12: a submit waits for what it signals", &["progress"], Hanging(&["vkQueueWaitIdle", "S1 = 1"]), |gpu| {
        let timeline = gpu.timeline(0);
        gpu.submit(&[], &[(timeline, 1)], &[(timeline, 1)], NO_FENCE);
        gpu.idle();
    }),
    faulty(
        "U12: a submit waits for what the next one on its queue signals",
        &["progress"],
        Hanging(&["vkQueueWaitIdle", "S1 = 1"]),
        |gpu| {
            let timeline = gpu.timeline(0);
            gpu.submit(&[], &[(timeline, 1)], &[], NO_FENCE);
            gpu.submit(&[], &[], &[(timeline, 1)], NO_FENCE);
            gpu.idle();
        },
    ),
    faulty("U13: a host reset while the set is pending", &["stale_wait"], Well, |gpu| {
        let (event, timeline) = (gpu.event(), gpu.timeline(0));
        let set = gpu.record(|c| gpu.cmd_set(c, event));
        gpu.submit(&[set], &[(timeline, 1)], &[], NO_FENCE);
        gpu.host_reset(event);
        let set = gpu.record(|c| gpu.cmd_set(c, event));
        let wait = gpu.record(|c| gpu.cmd_wait(c, &[event]));
        gpu.submit_all(&[set]);
        gpu.submit_all(&[wait]);
        gpu.host_signal((timeline, 1));
        gpu.idle();
    }),
    faulty(
        "U14: a host reset under an open wait that is then submitted",
        &["reuse_while_waited", "progress"],
        Hanging(&["vkWaitForFences", "it waits for E1", "the last that was done to it is vkResetEvent"]),
        |gpu| {
            let (_, _, open) = reset_under_an_open_wait(gpu);
            gpu.end(open);
            let fence = gpu.submit_fence(&[open]);
            gpu.wait_fence(fence);
        },
    ),
    faulty("U14: the same, set again for a later generation", &["reuse_while_waited", "stale_wait"], Well, |gpu| {
        let (event, timeline, open) = reset_under_an_open_wait(gpu);
        let set = gpu.record(|c| gpu.cmd_set(c, event));
        gpu.submit(&[set], &[], &[(timeline, 2)], NO_FENCE);
        gpu.end(open);
        gpu.submit_all(&[open]);
        gpu.idle();
    }),
    faulty("an event is reset by the host under an open wait", &["reuse_while_waited"], Well, |gpu| {
        let event = gpu.event();
        gpu.submit_all(&[gpu.record(|c| gpu.cmd_set(c, event))]);
        gpu.idle();
        let open = gpu.allocate();
        gpu.begin(open);
        gpu.cmd_wait(open, &[event]);
        gpu.host_reset(event);
    }),
    faulty("a wait is never submitted, and its pool goes on", &["lost_wait"], Well, |gpu| {
        let event = gpu.event();
        let set = gpu.record(|c| gpu.cmd_set(c, event));
        gpu.submit_all(&[set]);
        let _never = gpu.record(|c| gpu.cmd_wait(c, &[event]));
        gpu.submit_all(&[gpu.record(|c| fill(gpu, c))]);
        gpu.idle();
        // SAFETY: nothing of it is in flight.
        unsafe { gpu.device.reset_command_pool(gpu.pool, vk::CommandPoolResetFlags::empty()) }.unwrap();
    }),
    faulty("a wait is refused with its submission, and its pool goes on", &["refusal"], Well, |gpu| {
        let event = gpu.event();
        gpu.submit_all(&[gpu.record(|c| gpu.cmd_set(c, event))]);
        gpu.submit_refused(&[gpu.record(|c| gpu.cmd_wait(c, &[event]))]);
        gpu.submit_all(&[gpu.record(|c| fill(gpu, c))]);
        gpu.idle();
        // SAFETY: nothing of it is in flight.
        unsafe { gpu.device.reset_command_pool(gpu.pool, vk::CommandPoolResetFlags::empty()) }.unwrap();
    }),
    faulty("the answer of an earlier generation is taken for the newest", &["early_completion"], Well, |gpu| {
        let event = gpu.event();
        let fence = gpu.submit_fence(&[gpu.record(|c| gpu.cmd_set(c, event))]);
        gpu.wait_fence(fence);
        let again = gpu.record(|c| {
            fill(gpu, c);
            gpu.cmd_set(c, event);
        });
        gpu.submit_all(&[again]);
        // SAFETY: it lives.
        assert_eq!(unsafe { gpu.device.get_event_status(event) }, Ok(true));
        gpu.idle();
    }),
    faulty("a command buffer is submitted twice at a time", &["batch_reuse"], Well, |gpu| {
        let twice = gpu.record(|c| fill(gpu, c));
        gpu.submit_all(&[twice]);
        gpu.submit_all(&[twice]);
        gpu.idle();
    }),
    faulty("a fence is reset in flight", &["batch_reuse"], Well, |gpu| {
        let timeline = gpu.timeline(0);
        let fence = gpu.fence();
        gpu.submit(&[], &[(timeline, 1)], &[], fence);
        // SAFETY: it lives; that it is in flight is the fault.
        unsafe { gpu.device.reset_fences(&[fence]) }.unwrap();
        gpu.host_signal((timeline, 1));
        gpu.idle();
    }),
    faulty("a value is signalled behind a greater one", &["timeline_order"], Well, |gpu| {
        let timeline = gpu.timeline(0);
        gpu.submit(&[], &[], &[(timeline, 5)], NO_FENCE);
        gpu.submit(&[], &[], &[(timeline, 3)], NO_FENCE);
        gpu.idle();
    }),
    faulty(
        "a wait that nothing sets",
        &["progress"],
        Hanging(&["vkQueueWaitIdle", "vkCmdWaitEvents", "in C1", "it waits for E1", "it was never set"]),
        |gpu| {
            let event = gpu.event();
            gpu.submit_all(&[gpu.record(|c| gpu.cmd_wait(c, &[event]))]);
            gpu.idle();
        },
    ),
    faulty("an event is left when the device goes", &["bounded"], Well, |gpu| {
        let (_left, gone) = (gpu.event(), gpu.event());
        gpu.destroy_event(gone);
        gpu.close();
    }),
];

/// A hazard on one queue, which is the Khronos layer's to report: it shows that its synchronization validation is on.
pub const HAZARD: &str = "a copy of what a fill writes, with no barrier between";

pub fn hazard(gpu: &Gpu) {
    let ((a, _), (b, _)) = (gpu.buffer(64), gpu.buffer(64));
    // SAFETY: both live.
    let commands = gpu.record(|c| unsafe {
        gpu.device.cmd_fill_buffer(c, a, 0, vk::WHOLE_SIZE, 1);
        gpu.device.cmd_copy_buffer(c, a, b, &[vk::BufferCopy::default().size(64)]);
    });
    gpu.submit_all(&[commands]);
    gpu.idle();
}
