//! Buffers, and the commands that read and write them: copies and fills whose bytes are certain.

use ash::vk::{self, Handle as _};
use fencepost::judge::{Access, Call, Handle, Kind, Stages};

use super::{Allocator, Few, Missing, command_buffer, list};
use crate::chain::device_of;
use crate::device::Device;
use crate::session::Session;
use crate::texel;

const TRANSFER: Stages = vk::PipelineStageFlags::TRANSFER.as_raw() as Stages;
const COMPUTE: Stages = vk::PipelineStageFlags::COMPUTE_SHADER.as_raw() as Stages;
const INDIRECT: Stages = vk::PipelineStageFlags::DRAW_INDIRECT.as_raw() as Stages;

pub unsafe extern "system" fn create_buffer(
    handle: vk::Device,
    info: *const vk::BufferCreateInfo<'_>,
    allocator: Allocator<'_>,
    buffer: *mut vk::Buffer,
) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.create_buffer(handle, info, allocator, buffer));
    if result == vk::Result::SUCCESS {
        device.judge(|s| {
            // SAFETY: the driver wrote the one, the application the other.
            let (raw, size) = unsafe { ((*buffer).as_raw(), (*info).size) };
            let buffer = s.made(Kind::Buffer, raw);
            s.call("vkCreateBuffer", &Call::CreateBuffer { buffer, size });
        });
    }
    result
}

pub unsafe extern "system" fn destroy_buffer(handle: vk::Device, buffer: vk::Buffer, allocator: Allocator<'_>) {
    let device = device!(handle);
    if buffer != vk::Buffer::null() {
        device.judge(|s| {
            let buffer = s.gone(Kind::Buffer, buffer.as_raw());
            s.call("vkDestroyBuffer", &Call::DestroyBuffer { buffer });
        });
    }
    next!(device.destroy_buffer(handle, buffer, allocator))
}

pub unsafe extern "system" fn create_image(
    handle: vk::Device,
    info: *const vk::ImageCreateInfo<'_>,
    allocator: Allocator<'_>,
    image: *mut vk::Image,
) -> vk::Result {
    let device = device!(handle);
    let result = next!(device.create_image(handle, info, allocator, image));
    if result == vk::Result::SUCCESS {
        // SAFETY: the driver wrote the one, the application the other.
        let (image, format) = unsafe { (*image, (*info).format) };
        device.judge(|s| s.image_made(image, format));
    }
    result
}

pub unsafe extern "system" fn destroy_image(handle: vk::Device, image: vk::Image, allocator: Allocator<'_>) {
    let device = device!(handle);
    device.judge(|s| s.image_gone(image));
    next!(device.destroy_image(handle, image, allocator))
}

fn certain(buffer: Handle, offset: u64, size: u64, write: bool) -> Access {
    Access { buffer, offset, size, write, through_binding: false }
}

fn work(s: &mut Session, call: &'static str, handle: vk::CommandBuffer, stages: Stages, accesses: &[Access]) {
    let command_buffer = command_buffer(s, handle);
    s.call(call, &Call::CmdWork { command_buffer, stages, accesses });
}

/// Offsets and size of a region.
type Region = (u64, u64, u64);

fn copied(
    device: &Device,
    call: &'static str,
    handle: vk::CommandBuffer,
    (src, dst): (vk::Buffer, vk::Buffer),
    regions: impl Iterator<Item = Region>,
) {
    device.judge(|s| {
        let (src, dst) = (s.number(Kind::Buffer, src.as_raw()), s.number(Kind::Buffer, dst.as_raw()));
        let sides = |(from, to, size)| [certain(src, from, size, false), certain(dst, to, size, true)];
        let accesses: Few<Access> = regions.flat_map(sides).collect();
        work(s, call, handle, TRANSFER, &accesses);
    });
}

pub unsafe extern "system" fn cmd_copy_buffer(
    handle: vk::CommandBuffer,
    src: vk::Buffer,
    dst: vk::Buffer,
    count: u32,
    regions: *const vk::BufferCopy,
) {
    let device = device!(handle);
    // SAFETY: the application's list.
    let all = unsafe { list(regions, count) }.iter().map(|r| (r.src_offset, r.dst_offset, r.size));
    copied(&device, "vkCmdCopyBuffer", handle, (src, dst), all);
    next!(device.cmd_copy_buffer(handle, src, dst, count, regions))
}

pub unsafe extern "system" fn cmd_copy_buffer2(handle: vk::CommandBuffer, info: *const vk::CopyBufferInfo2<'_>) {
    let device = device!(handle);
    // SAFETY: the application's structure.
    let (buffers, regions) = unsafe {
        let info = &*info;
        ((info.src_buffer, info.dst_buffer), list(info.p_regions, info.region_count))
    };
    let all = regions.iter().map(|r| (r.src_offset, r.dst_offset, r.size));
    copied(&device, "vkCmdCopyBuffer2", handle, buffers, all);
    next!(device.cmd_copy_buffer2(handle, info))
}

pub unsafe extern "system" fn cmd_fill_buffer(
    handle: vk::CommandBuffer,
    buffer: vk::Buffer,
    offset: u64,
    size: u64,
    data: u32,
) {
    let device = device!(handle);
    device.judge(|s| {
        let access = certain(s.number(Kind::Buffer, buffer.as_raw()), offset, size, true);
        work(s, "vkCmdFillBuffer", handle, TRANSFER, &[access]);
    });
    next!(device.cmd_fill_buffer(handle, buffer, offset, size, data))
}

pub unsafe extern "system" fn cmd_update_buffer(
    handle: vk::CommandBuffer,
    buffer: vk::Buffer,
    offset: u64,
    size: u64,
    data: *const std::ffi::c_void,
) {
    let device = device!(handle);
    device.judge(|s| {
        let access = certain(s.number(Kind::Buffer, buffer.as_raw()), offset, size, true);
        work(s, "vkCmdUpdateBuffer", handle, TRANSFER, &[access]);
    });
    next!(device.cmd_update_buffer(handle, buffer, offset, size, data))
}

/// The buffer's side of a copy between a buffer and an image: nothing where the image's format is not known.
fn image_copied(
    device: &Device,
    call: &'static str,
    handle: vk::CommandBuffer,
    (buffer, image): (vk::Buffer, vk::Image),
    write: bool,
    regions: impl Iterator<Item = vk::BufferImageCopy>,
) {
    device.judge(|s| {
        let (buffer, format) = (s.number(Kind::Buffer, buffer.as_raw()), s.format(image));
        let ranges = regions.flat_map(|region| texel::ranges(format, &region));
        let accesses: Few<Access> = ranges.map(|(offset, size)| certain(buffer, offset, size, write)).collect();
        work(s, call, handle, TRANSFER, &accesses);
    });
}

fn plain(region: &vk::BufferImageCopy2<'_>) -> vk::BufferImageCopy {
    vk::BufferImageCopy {
        buffer_offset: region.buffer_offset,
        buffer_row_length: region.buffer_row_length,
        buffer_image_height: region.buffer_image_height,
        image_subresource: region.image_subresource,
        image_offset: region.image_offset,
        image_extent: region.image_extent,
    }
}

pub unsafe extern "system" fn cmd_copy_buffer_to_image(
    handle: vk::CommandBuffer,
    buffer: vk::Buffer,
    image: vk::Image,
    layout: vk::ImageLayout,
    count: u32,
    regions: *const vk::BufferImageCopy,
) {
    let device = device!(handle);
    // SAFETY: the application's list.
    let all = unsafe { list(regions, count) }.iter().copied();
    image_copied(&device, "vkCmdCopyBufferToImage", handle, (buffer, image), false, all);
    next!(device.cmd_copy_buffer_to_image(handle, buffer, image, layout, count, regions))
}

pub unsafe extern "system" fn cmd_copy_buffer_to_image2(
    handle: vk::CommandBuffer,
    info: *const vk::CopyBufferToImageInfo2<'_>,
) {
    let device = device!(handle);
    // SAFETY: the application's structure.
    let (objects, regions) = unsafe {
        let info = &*info;
        ((info.src_buffer, info.dst_image), list(info.p_regions, info.region_count))
    };
    image_copied(&device, "vkCmdCopyBufferToImage2", handle, objects, false, regions.iter().map(plain));
    next!(device.cmd_copy_buffer_to_image2(handle, info))
}

pub unsafe extern "system" fn cmd_copy_image_to_buffer(
    handle: vk::CommandBuffer,
    image: vk::Image,
    layout: vk::ImageLayout,
    buffer: vk::Buffer,
    count: u32,
    regions: *const vk::BufferImageCopy,
) {
    let device = device!(handle);
    // SAFETY: the application's list.
    let all = unsafe { list(regions, count) }.iter().copied();
    image_copied(&device, "vkCmdCopyImageToBuffer", handle, (buffer, image), true, all);
    next!(device.cmd_copy_image_to_buffer(handle, image, layout, buffer, count, regions))
}

pub unsafe extern "system" fn cmd_copy_image_to_buffer2(
    handle: vk::CommandBuffer,
    info: *const vk::CopyImageToBufferInfo2<'_>,
) {
    let device = device!(handle);
    // SAFETY: the application's structure.
    let (objects, regions) = unsafe {
        let info = &*info;
        ((info.dst_buffer, info.src_image), list(info.p_regions, info.region_count))
    };
    image_copied(&device, "vkCmdCopyImageToBuffer2", handle, objects, true, regions.iter().map(plain));
    next!(device.cmd_copy_image_to_buffer2(handle, info))
}

pub unsafe extern "system" fn cmd_copy_query_pool_results(
    handle: vk::CommandBuffer,
    pool: vk::QueryPool,
    first: u32,
    count: u32,
    buffer: vk::Buffer,
    offset: u64,
    stride: u64,
    flags: vk::QueryResultFlags,
) {
    let device = device!(handle);
    // Without WAIT a result that is not there yet is not written.
    if flags.contains(vk::QueryResultFlags::WAIT) {
        device.judge(|s| {
            let buffer = s.number(Kind::Buffer, buffer.as_raw());
            let size = if flags.contains(vk::QueryResultFlags::TYPE_64) { 8 } else { 4 };
            let one = |at| certain(buffer, offset.saturating_add(stride.saturating_mul(at)), size, true);
            let accesses: Few<Access> = (0..u64::from(count)).map(one).collect();
            work(s, "vkCmdCopyQueryPoolResults", handle, TRANSFER, &accesses);
        });
    }
    next!(device.cmd_copy_query_pool_results(handle, pool, first, count, buffer, offset, stride, flags))
}

// Dispatches -------------------------------------------------------------------------------------

/// A dispatch, with what it reads for certain, and what is bound.
fn dispatched(
    s: &mut Session,
    call: &'static str,
    handle: vk::CommandBuffer,
    stages: Stages,
    parameters: Option<Access>,
) {
    let command_buffer = command_buffer(s, handle);
    let mut accesses = s.bindings.dispatched(command_buffer);
    accesses.splice(0..0, parameters);
    s.call(call, &Call::CmdWork { command_buffer, stages, accesses: &accesses });
}

pub unsafe extern "system" fn cmd_dispatch(handle: vk::CommandBuffer, x: u32, y: u32, z: u32) {
    let device = device!(handle);
    device.judge(|s| dispatched(s, "vkCmdDispatch", handle, COMPUTE, None));
    next!(device.cmd_dispatch(handle, x, y, z))
}

#[allow(clippy::too_many_arguments, reason = "Vulkan's signature")]
pub unsafe extern "system" fn cmd_dispatch_base(
    handle: vk::CommandBuffer,
    base_x: u32,
    base_y: u32,
    base_z: u32,
    x: u32,
    y: u32,
    z: u32,
) {
    let device = device!(handle);
    device.judge(|s| dispatched(s, "vkCmdDispatchBase", handle, COMPUTE, None));
    next!(device.cmd_dispatch_base(handle, base_x, base_y, base_z, x, y, z))
}

pub unsafe extern "system" fn cmd_dispatch_indirect(handle: vk::CommandBuffer, buffer: vk::Buffer, offset: u64) {
    /// `VkDispatchIndirectCommand`.
    const SIZE: u64 = size_of::<vk::DispatchIndirectCommand>() as u64;
    let device = device!(handle);
    device.judge(|s| {
        let access = certain(s.number(Kind::Buffer, buffer.as_raw()), offset, SIZE, false);
        dispatched(s, "vkCmdDispatchIndirect", handle, INDIRECT | COMPUTE, Some(access));
    });
    next!(device.cmd_dispatch_indirect(handle, buffer, offset))
}
