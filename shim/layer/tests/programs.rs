//! Programs with one fault each, which the layer reports by its rule and no other, and correct ones, on which it is silent.

mod common;

use ash::vk;
use common::{Gpu, program};

const NO_FENCE: vk::Fence = vk::Fence::null();

// Correct programs -------------------------------------------------------------------------------

/// Sets, waits and resets of an event, each reset ordered after the wait; all that completes is waited for.
fn frames(gpu: &Gpu) {
    let (event, timeline, fence) = (gpu.event(), gpu.timeline(0), gpu.fence());
    for frame in 1..=3 {
        let set = gpu.record(|c| gpu.cmd_set(c, event));
        let wait = gpu.record(|c| {
            gpu.cmd_wait(c, &[event]);
            gpu.cmd_barrier(c);
            gpu.cmd_reset(c, event);
            gpu.cmd_barrier(c);
        });
        gpu.submit(&[set], &[], &[(timeline, 2 * frame - 1)], NO_FENCE);
        gpu.submit(&[wait], &[(timeline, 2 * frame - 1)], &[(timeline, 2 * frame)], fence);
        gpu.wait_value((timeline, 2 * frame));
        gpu.wait_fence(fence);
        // SAFETY: the objects live, and the work that used them has ended.
        unsafe {
            gpu.device.reset_fences(&[fence]).unwrap();
            gpu.device.free_command_buffers(gpu.pool, &[set, wait]);
        }
    }
    // SAFETY: as above.
    unsafe {
        gpu.device.destroy_semaphore(timeline, None);
        gpu.device.destroy_fence(fence, None);
    }
    gpu.destroy_event(event);
    gpu.close();
}

#[test]
fn a_correct_program_is_not_reported() {
    let Some(told) = program("a_correct_program_is_not_reported", frames) else { return };
    told.reports(&[]);
}

// One fault each ---------------------------------------------------------------------------------

#[test]
fn a_host_reset_while_an_open_command_buffer_waits() {
    let Some(told) = program("a_host_reset_while_an_open_command_buffer_waits", |gpu| {
        let event = gpu.event();
        let set = gpu.record(|c| gpu.cmd_set(c, event));
        gpu.submit(&[set], &[], &[], NO_FENCE);
        gpu.idle();
        let open = gpu.allocate();
        gpu.begin(open);
        gpu.cmd_wait(open, &[event]);
        gpu.host_reset(event);
    }) else {
        return;
    };
    told.reports(&["reuse_while_waited"]);
    told.says(&["vkResetEvent", "on E1, generation 1", "vkCmdWaitEvents", "in C2 is recorded, not yet submitted"]);
}
