//! Render passes order what is around them, and their subpasses, by their dependencies.

use std::sync::Arc;

use ash::vk;
use fencepost::judge::{Call, Dependency};

use super::{Allocator, Few, Missing, chained, command_buffer, list};
use crate::chain::device_of;
use crate::session::{Session, Step};

pub unsafe extern "system" fn create_render_pass(
    handle: vk::Device,
    info: *const vk::RenderPassCreateInfo<'_>,
    allocator: Allocator<'_>,
    render_pass: *mut vk::RenderPass,
) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.create_render_pass(handle, info, allocator, render_pass));
    if result == vk::Result::SUCCESS {
        device.judge(|s| {
            // SAFETY: the driver wrote the one, the application the other.
            let (made, all) = unsafe { (*render_pass, list((*info).p_dependencies, (*info).dependency_count)) };
            let stages = |stages: vk::PipelineStageFlags| stages.as_raw().into();
            let steps = all.iter().map(|d| Step {
                from: d.src_subpass,
                to: d.dst_subpass,
                dependency: Dependency { src: stages(d.src_stage_mask), dst: stages(d.dst_stage_mask) },
            });
            s.render_passes.insert(made, steps.collect());
        });
    }
    result
}

pub unsafe extern "system" fn create_render_pass2(
    handle: vk::Device,
    info: *const vk::RenderPassCreateInfo2<'_>,
    allocator: Allocator<'_>,
    render_pass: *mut vk::RenderPass,
) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.create_render_pass2(handle, info, allocator, render_pass));
    if result == vk::Result::SUCCESS {
        device.judge(|s| {
            // SAFETY: the driver wrote the one, the application the other.
            let (made, all) = unsafe { (*render_pass, list((*info).p_dependencies, (*info).dependency_count)) };
            let steps = all.iter().map(|d| {
                // A barrier in the chain takes the place of the masks ("VkSubpassDependency2").
                // SAFETY: the application's chain.
                let dependency = match unsafe { chained::<vk::MemoryBarrier2<'_>>(d.p_next) } {
                    Some(b) => Dependency { src: b.src_stage_mask.as_raw(), dst: b.dst_stage_mask.as_raw() },
                    None => Dependency { src: d.src_stage_mask.as_raw().into(), dst: d.dst_stage_mask.as_raw().into() },
                };
                Step { from: d.src_subpass, to: d.dst_subpass, dependency }
            });
            s.render_passes.insert(made, steps.collect());
        });
    }
    result
}

pub unsafe extern "system" fn destroy_render_pass(
    handle: vk::Device,
    render_pass: vk::RenderPass,
    allocator: Allocator<'_>,
) {
    let device = device!(handle);
    device.judge(|s| drop(s.render_passes.remove(&render_pass)));
    next!(device.destroy_render_pass(handle, render_pass, allocator))
}

fn ordered(s: &mut Session, call: &'static str, handle: vk::CommandBuffer, takes: impl Fn(&Step) -> bool) {
    let command_buffer = command_buffer(s, handle);
    let Some((steps, _)) = s.passes.get(&command_buffer) else { return };
    let dependencies: Few<Dependency> = steps.iter().filter(|step| takes(step)).map(|step| step.dependency).collect();
    if !dependencies.is_empty() {
        s.call(call, &Call::CmdPipelineBarrier { command_buffer, dependencies: &dependencies });
    }
}

fn begun(s: &mut Session, call: &'static str, handle: vk::CommandBuffer, render_pass: vk::RenderPass) {
    let command_buffer = command_buffer(s, handle);
    let steps: Arc<[Step]> = s.render_passes.get(&render_pass).cloned().unwrap_or_default();
    s.passes.insert(command_buffer, (steps, 0));
    ordered(s, call, handle, |step| step.from == vk::SUBPASS_EXTERNAL);
}

fn stepped(s: &mut Session, call: &'static str, handle: vk::CommandBuffer) {
    let command_buffer = command_buffer(s, handle);
    let Some((_, subpass)) = s.passes.get_mut(&command_buffer) else { return };
    *subpass += 1;
    let subpass = *subpass;
    ordered(s, call, handle, |step| step.to == subpass && step.from < subpass);
}

fn ended(s: &mut Session, call: &'static str, handle: vk::CommandBuffer) {
    ordered(s, call, handle, |step| step.to == vk::SUBPASS_EXTERNAL);
    let command_buffer = command_buffer(s, handle);
    s.passes.remove(&command_buffer);
}

pub unsafe extern "system" fn cmd_begin_render_pass(
    handle: vk::CommandBuffer,
    info: *const vk::RenderPassBeginInfo<'_>,
    contents: vk::SubpassContents,
) {
    let device = device!(handle);
    // SAFETY: the application's structure.
    device.judge(|s| begun(s, "vkCmdBeginRenderPass", handle, unsafe { (*info).render_pass }));
    next!(device.cmd_begin_render_pass(handle, info, contents))
}

pub unsafe extern "system" fn cmd_begin_render_pass2(
    handle: vk::CommandBuffer,
    info: *const vk::RenderPassBeginInfo<'_>,
    subpass: *const vk::SubpassBeginInfo<'_>,
) {
    let device = device!(handle);
    // SAFETY: the application's structure.
    device.judge(|s| begun(s, "vkCmdBeginRenderPass2", handle, unsafe { (*info).render_pass }));
    next!(device.cmd_begin_render_pass2(handle, info, subpass))
}

pub unsafe extern "system" fn cmd_next_subpass(handle: vk::CommandBuffer, contents: vk::SubpassContents) {
    let device = device!(handle);
    device.judge(|s| stepped(s, "vkCmdNextSubpass", handle));
    next!(device.cmd_next_subpass(handle, contents))
}

pub unsafe extern "system" fn cmd_next_subpass2(
    handle: vk::CommandBuffer,
    begin: *const vk::SubpassBeginInfo<'_>,
    end: *const vk::SubpassEndInfo<'_>,
) {
    let device = device!(handle);
    device.judge(|s| stepped(s, "vkCmdNextSubpass2", handle));
    next!(device.cmd_next_subpass2(handle, begin, end))
}

pub unsafe extern "system" fn cmd_end_render_pass(handle: vk::CommandBuffer) {
    let device = device!(handle);
    device.judge(|s| ended(s, "vkCmdEndRenderPass", handle));
    next!(device.cmd_end_render_pass(handle))
}

pub unsafe extern "system" fn cmd_end_render_pass2(handle: vk::CommandBuffer, end: *const vk::SubpassEndInfo<'_>) {
    let device = device!(handle);
    device.judge(|s| ended(s, "vkCmdEndRenderPass2", handle));
    next!(device.cmd_end_render_pass2(handle, end))
}
