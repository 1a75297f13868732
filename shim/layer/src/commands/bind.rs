//! Shaders, descriptor sets and what command buffers bind of them.

use std::ffi::c_void;
use std::sync::Arc;

use ash::vk::{self, Handle as _};
use fencepost::judge::Kind;

use super::{Allocator, Few, Missing, chained, command_buffer, list};
use crate::bindings::{Binding, Bound, dynamic, storage};
use crate::chain::device_of;
use crate::session::Session;
use crate::shader::storage_buffers;

pub unsafe extern "system" fn create_shader_module(
    handle: vk::Device,
    info: *const vk::ShaderModuleCreateInfo<'_>,
    allocator: Allocator<'_>,
    module: *mut vk::ShaderModule,
) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.create_shader_module(handle, info, allocator, module));
    if result == vk::Result::SUCCESS {
        device.judge(|s| {
            // SAFETY: the driver wrote the one, the application the other: a size in bytes, a multiple of 4.
            let (module, words) = unsafe { (*module, list((*info).p_code, ((*info).code_size / 4) as u32)) };
            s.bindings.shaders.insert(module, Arc::new(storage_buffers(words)));
        });
    }
    result
}

pub unsafe extern "system" fn destroy_shader_module(
    handle: vk::Device,
    module: vk::ShaderModule,
    allocator: Allocator<'_>,
) {
    let device = device!(handle);
    device.judge(|s| drop(s.bindings.shaders.remove(&module)));
    next!(device.destroy_shader_module(handle, module, allocator))
}

pub unsafe extern "system" fn create_compute_pipelines(
    handle: vk::Device,
    cache: vk::PipelineCache,
    count: u32,
    infos: *const vk::ComputePipelineCreateInfo<'_>,
    allocator: Allocator<'_>,
    pipelines: *mut vk::Pipeline,
) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.create_compute_pipelines(handle, cache, count, infos, allocator, pipelines));
    device.judge(|s| {
        // SAFETY: the application's list; the driver wrote as many, null where it failed.
        let (infos, pipelines) = unsafe { (list(infos, count), list(pipelines, count)) };
        for (info, pipeline) in infos.iter().zip(pipelines).filter(|(_, pipeline)| !pipeline.is_null()) {
            // SAFETY: the application's chains.
            let (inline, flags) = unsafe {
                let flags = chained::<vk::PipelineCreateFlags2CreateInfoKHR<'_>>(info.p_next);
                (chained::<vk::ShaderModuleCreateInfo<'_>>(info.stage.p_next), flags)
            };
            // What is in descriptor buffers is not seen.
            let flags = flags.map_or(u64::from(info.flags.as_raw()), |flags| flags.flags.as_raw());
            let used = match inline {
                _ if flags & u64::from(vk::PipelineCreateFlags::DESCRIPTOR_BUFFER_EXT.as_raw()) != 0 => None,
                Some(inline) if info.stage.module.is_null() => {
                    // SAFETY: as in `create_shader_module`.
                    let words = unsafe { list(inline.p_code, (inline.code_size / 4) as u32) };
                    Some(Arc::new(storage_buffers(words)))
                }
                _ => s.bindings.shaders.get(&info.stage.module).cloned(),
            };
            s.bindings.pipelines.insert(*pipeline, used.unwrap_or_default());
        }
    });
    result
}

pub unsafe extern "system" fn destroy_pipeline(handle: vk::Device, pipeline: vk::Pipeline, allocator: Allocator<'_>) {
    let device = device!(handle);
    device.judge(|s| drop(s.bindings.pipelines.remove(&pipeline)));
    next!(device.destroy_pipeline(handle, pipeline, allocator))
}

pub unsafe extern "system" fn create_descriptor_set_layout(
    handle: vk::Device,
    info: *const vk::DescriptorSetLayoutCreateInfo<'_>,
    allocator: Allocator<'_>,
    layout: *mut vk::DescriptorSetLayout,
) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.create_descriptor_set_layout(handle, info, allocator, layout));
    if result == vk::Result::SUCCESS {
        device.judge(|s| {
            // SAFETY: the driver wrote the one, the application the others.
            let (layout, bindings, flags) = unsafe {
                let flags = chained::<vk::DescriptorSetLayoutBindingFlagsCreateInfo<'_>>((*info).p_next);
                let flags = flags.map_or(&[][..], |flags| list(flags.p_binding_flags, flags.binding_count));
                (*layout, list((*info).p_bindings, (*info).binding_count), flags)
            };
            let late =
                vk::DescriptorBindingFlags::UPDATE_AFTER_BIND | vk::DescriptorBindingFlags::UPDATE_UNUSED_WHILE_PENDING;
            let binding = |(at, b): (usize, &vk::DescriptorSetLayoutBinding<'_>)| Binding {
                number: b.binding,
                count: b.descriptor_count,
                dynamic: dynamic(b.descriptor_type),
                late: flags.get(at).is_some_and(|flags| flags.intersects(late)),
            };
            let mut all: Vec<_> = bindings.iter().enumerate().map(binding).collect();
            all.sort_unstable_by_key(|binding| binding.number);
            s.bindings.layouts.insert(layout, Arc::new(all));
        });
    }
    result
}

pub unsafe extern "system" fn destroy_descriptor_set_layout(
    handle: vk::Device,
    layout: vk::DescriptorSetLayout,
    allocator: Allocator<'_>,
) {
    let device = device!(handle);
    device.judge(|s| drop(s.bindings.layouts.remove(&layout)));
    next!(device.destroy_descriptor_set_layout(handle, layout, allocator))
}

pub unsafe extern "system" fn allocate_descriptor_sets(
    handle: vk::Device,
    info: *const vk::DescriptorSetAllocateInfo<'_>,
    sets: *mut vk::DescriptorSet,
) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.allocate_descriptor_sets(handle, info, sets));
    if result == vk::Result::SUCCESS {
        device.judge(|s| {
            // SAFETY: the application's structure; the driver wrote as many.
            let (pool, layouts, sets) = unsafe {
                let info = &*info;
                let count = info.descriptor_set_count;
                (info.descriptor_pool, list(info.p_set_layouts, count), list(sets, count))
            };
            layouts.iter().zip(sets).for_each(|(layout, set)| s.bindings.allocated(pool, *set, *layout));
        });
    }
    result
}

pub unsafe extern "system" fn free_descriptor_sets(
    handle: vk::Device,
    pool: vk::DescriptorPool,
    count: u32,
    sets: *const vk::DescriptorSet,
) -> vk::Result {
    let device = device!(handle);
    // SAFETY: the application's list.
    device.judge(|s| s.bindings.freed(pool, unsafe { list(sets, count) }));
    next!(device.free_descriptor_sets(handle, pool, count, sets))
}

pub unsafe extern "system" fn reset_descriptor_pool(
    handle: vk::Device,
    pool: vk::DescriptorPool,
    flags: vk::DescriptorPoolResetFlags,
) -> vk::Result {
    let device = device!(handle);
    device.judge(|s| s.bindings.pool_gone(pool));
    next!(device.reset_descriptor_pool(handle, pool, flags))
}

pub unsafe extern "system" fn destroy_descriptor_pool(
    handle: vk::Device,
    pool: vk::DescriptorPool,
    allocator: Allocator<'_>,
) {
    let device = device!(handle);
    device.judge(|s| s.bindings.pool_gone(pool));
    next!(device.destroy_descriptor_pool(handle, pool, allocator))
}

fn bound(s: &mut Session, kind: vk::DescriptorType, info: &vk::DescriptorBufferInfo) -> Option<Bound> {
    let dynamic = storage(kind)?;
    let buffer = (!info.buffer.is_null()).then(|| s.number(Kind::Buffer, info.buffer.as_raw()))?;
    Some(Bound { buffer, offset: info.offset, size: info.range, dynamic })
}

/// # Safety
/// The structure is valid.
unsafe fn written(s: &mut Session, write: &vk::WriteDescriptorSet<'_>) -> Few<Option<Bound>> {
    let kind = write.descriptor_type;
    if storage(kind).is_none() {
        return (0..write.descriptor_count).map(|_| None).collect();
    }
    // SAFETY: a write of buffers has that many.
    let infos = unsafe { list(write.p_buffer_info, write.descriptor_count) };
    infos.iter().map(|info| bound(s, kind, info)).collect()
}

pub unsafe extern "system" fn update_descriptor_sets(
    handle: vk::Device,
    write_count: u32,
    writes: *const vk::WriteDescriptorSet<'_>,
    copy_count: u32,
    copies: *const vk::CopyDescriptorSet<'_>,
) {
    let device = device!(handle);
    device.judge(|s| {
        // SAFETY: the application's lists.
        let (writes, copies) = unsafe { (list(writes, write_count), list(copies, copy_count)) };
        for write in writes {
            // SAFETY: as above.
            let all = unsafe { written(s, write) };
            s.bindings.write(write.dst_set, (write.dst_binding, write.dst_array_element), all.into_iter());
        }
        copies.iter().for_each(|copy| s.bindings.copy(copy));
    });
    next!(device.update_descriptor_sets(handle, write_count, writes, copy_count, copies))
}

pub unsafe extern "system" fn create_descriptor_update_template(
    handle: vk::Device,
    info: *const vk::DescriptorUpdateTemplateCreateInfo<'_>,
    allocator: Allocator<'_>,
    template: *mut vk::DescriptorUpdateTemplate,
) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.create_descriptor_update_template(handle, info, allocator, template));
    if result == vk::Result::SUCCESS {
        device.judge(|s| {
            // SAFETY: the driver wrote the one, the application the other.
            let (template, entries) = unsafe {
                let info = &*info;
                (*template, list(info.p_descriptor_update_entries, info.descriptor_update_entry_count))
            };
            s.bindings.templates.insert(template, Arc::new(entries.to_vec()));
        });
    }
    result
}

pub unsafe extern "system" fn destroy_descriptor_update_template(
    handle: vk::Device,
    template: vk::DescriptorUpdateTemplate,
    allocator: Allocator<'_>,
) {
    let device = device!(handle);
    device.judge(|s| drop(s.bindings.templates.remove(&template)));
    next!(device.destroy_descriptor_update_template(handle, template, allocator))
}

/// # Safety
/// The data is as the entry says.
unsafe fn taken(s: &mut Session, entry: &vk::DescriptorUpdateTemplateEntry, data: *const c_void) -> Few<Option<Bound>> {
    let all = 0..entry.descriptor_count as usize;
    if storage(entry.descriptor_type).is_none() {
        return all.map(|_| None).collect();
    }
    let info = |at| {
        // SAFETY: as the caller says; it need not be aligned.
        unsafe { data.byte_add(entry.offset + at * entry.stride).cast::<vk::DescriptorBufferInfo>().read_unaligned() }
    };
    all.map(|at| bound(s, entry.descriptor_type, &info(at))).collect()
}

pub unsafe extern "system" fn update_descriptor_set_with_template(
    handle: vk::Device,
    set: vk::DescriptorSet,
    template: vk::DescriptorUpdateTemplate,
    data: *const c_void,
) {
    let device = device!(handle);
    device.judge(|s| {
        for entry in s.bindings.templates.get(&template).cloned().unwrap_or_default().iter() {
            // SAFETY: the application's data fits its template.
            let all = unsafe { taken(s, entry, data) };
            s.bindings.write(set, (entry.dst_binding, entry.dst_array_element), all.into_iter());
        }
    });
    next!(device.update_descriptor_set_with_template(handle, set, template, data))
}

/// # Safety
/// The list is valid.
unsafe fn pushed(s: &mut Session, handle: vk::CommandBuffer, set: u32, writes: &[vk::WriteDescriptorSet<'_>]) {
    let command_buffer = command_buffer(s, handle);
    for write in writes {
        // SAFETY: as the caller says.
        let all = unsafe { written(s, write) };
        let places = (write.dst_array_element..).map(|element| (write.dst_binding, element));
        s.bindings.push(command_buffer, set, places.zip(all));
    }
}

/// # Safety
/// The data fits the template.
unsafe fn pushed_with(
    s: &mut Session,
    handle: vk::CommandBuffer,
    set: u32,
    template: vk::DescriptorUpdateTemplate,
    data: *const c_void,
) {
    let command_buffer = command_buffer(s, handle);
    for entry in s.bindings.templates.get(&template).cloned().unwrap_or_default().iter() {
        // SAFETY: as the caller says.
        let all = unsafe { taken(s, entry, data) };
        let places = (entry.dst_array_element..).map(|element| (entry.dst_binding, element));
        s.bindings.push(command_buffer, set, places.zip(all));
    }
}

pub unsafe extern "system" fn cmd_push_descriptor_set(
    handle: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    layout: vk::PipelineLayout,
    set: u32,
    count: u32,
    writes: *const vk::WriteDescriptorSet<'_>,
) {
    let device = device!(handle);
    if point == vk::PipelineBindPoint::COMPUTE {
        // SAFETY: the application's list.
        device.judge(|s| unsafe { pushed(s, handle, set, list(writes, count)) });
    }
    next!(device.cmd_push_descriptor_set(handle, point, layout, set, count, writes))
}

pub unsafe extern "system" fn cmd_push_descriptor_set_with_template(
    handle: vk::CommandBuffer,
    template: vk::DescriptorUpdateTemplate,
    layout: vk::PipelineLayout,
    set: u32,
    data: *const c_void,
) {
    let device = device!(handle);
    // SAFETY: the application's data fits its template.
    device.judge(|s| unsafe { pushed_with(s, handle, set, template, data) });
    next!(device.cmd_push_descriptor_set_with_template(handle, template, layout, set, data))
}

pub unsafe extern "system" fn cmd_push_descriptor_set2(
    handle: vk::CommandBuffer,
    info: *const vk::PushDescriptorSetInfoKHR<'_>,
) {
    let device = device!(handle);
    device.judge(|s| {
        // SAFETY: the application's structure.
        unsafe {
            let info = &*info;
            if info.stage_flags.contains(vk::ShaderStageFlags::COMPUTE) {
                pushed(s, handle, info.set, list(info.p_descriptor_writes, info.descriptor_write_count));
            }
        }
    });
    next!(device.cmd_push_descriptor_set2(handle, info))
}

pub unsafe extern "system" fn cmd_push_descriptor_set_with_template2(
    handle: vk::CommandBuffer,
    info: *const vk::PushDescriptorSetWithTemplateInfoKHR<'_>,
) {
    let device = device!(handle);
    device.judge(|s| {
        // SAFETY: the application's structure, whose data fits its template.
        unsafe {
            let info = &*info;
            pushed_with(s, handle, info.set, info.descriptor_update_template, info.p_data);
        }
    });
    next!(device.cmd_push_descriptor_set_with_template2(handle, info))
}

pub unsafe extern "system" fn cmd_bind_descriptor_sets2(
    handle: vk::CommandBuffer,
    info: *const vk::BindDescriptorSetsInfoKHR<'_>,
) {
    let device = device!(handle);
    device.judge(|s| {
        // SAFETY: the application's structure.
        let (compute, first, sets, offsets) = unsafe {
            let info = &*info;
            let compute = info.stage_flags.contains(vk::ShaderStageFlags::COMPUTE);
            let sets = list(info.p_descriptor_sets, info.descriptor_set_count);
            (compute, info.first_set, sets, list(info.p_dynamic_offsets, info.dynamic_offset_count))
        };
        if compute {
            let command_buffer = command_buffer(s, handle);
            s.bindings.bind_sets(command_buffer, first, sets, offsets);
        }
    });
    next!(device.cmd_bind_descriptor_sets2(handle, info))
}

pub unsafe extern "system" fn cmd_bind_shaders(
    handle: vk::CommandBuffer,
    count: u32,
    stages: *const vk::ShaderStageFlags,
    shaders: *const vk::ShaderEXT,
) {
    let device = device!(handle);
    // SAFETY: the application's list.
    if unsafe { list(stages, count) }.contains(&vk::ShaderStageFlags::COMPUTE) {
        device.judge(|s| {
            let command_buffer = command_buffer(s, handle);
            s.bindings.unbind_pipeline(command_buffer);
        });
    }
    next!(device.cmd_bind_shaders(handle, count, stages, shaders))
}

pub unsafe extern "system" fn cmd_bind_pipeline(
    handle: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    pipeline: vk::Pipeline,
) {
    let device = device!(handle);
    if point == vk::PipelineBindPoint::COMPUTE {
        device.judge(|s| {
            let command_buffer = command_buffer(s, handle);
            s.bindings.bind_pipeline(command_buffer, pipeline);
        });
    }
    next!(device.cmd_bind_pipeline(handle, point, pipeline))
}

#[allow(clippy::too_many_arguments, reason = "Vulkan's signature")]
pub unsafe extern "system" fn cmd_bind_descriptor_sets(
    handle: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    layout: vk::PipelineLayout,
    first: u32,
    count: u32,
    sets: *const vk::DescriptorSet,
    offset_count: u32,
    offsets: *const u32,
) {
    let device = device!(handle);
    if point == vk::PipelineBindPoint::COMPUTE {
        device.judge(|s| {
            let command_buffer = command_buffer(s, handle);
            // SAFETY: the application's lists.
            let (sets, offsets) = unsafe { (list(sets, count), list(offsets, offset_count)) };
            s.bindings.bind_sets(command_buffer, first, sets, offsets);
        });
    }
    next!(device.cmd_bind_descriptor_sets(handle, point, layout, first, count, sets, offset_count, offsets))
}
