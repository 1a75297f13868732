//! Programs without a fault.

use ash::vk;

use crate::common::{ALL2, Program};

pub const CORRECT: &[Program] = &[
    ("events, reset on the queue after their waits", |gpu| {
        let (event, timeline, fence) = (gpu.event(), gpu.timeline(0), gpu.fence());
        for frame in 1..=3 {
            let set = gpu.record(|c| gpu.cmd_set(c, event));
            let wait = gpu.record(|c| {
                gpu.cmd_wait(c, &[event]);
                gpu.cmd_barrier(c);
                gpu.cmd_reset(c, event);
                gpu.cmd_barrier(c);
            });
            gpu.submit(&[set], &[], &[(timeline, 2 * frame - 1)], vk::Fence::null());
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
    }),
    ("the same in the terms of synchronization2, with copies", |gpu| {
        let (event, timeline, device) = (gpu.event(), gpu.timeline(7), &gpu.device);
        let ((a, memory_a), (b, memory_b)) = (gpu.buffer(256), gpu.buffer(256));
        let barriers = [vk::MemoryBarrier2::default()
            .src_stage_mask(ALL2)
            .src_access_mask(vk::AccessFlags2::MEMORY_WRITE)
            .dst_stage_mask(ALL2)
            .dst_access_mask(vk::AccessFlags2::MEMORY_READ | vk::AccessFlags2::MEMORY_WRITE)];
        let dependency = vk::DependencyInfo::default().memory_barriers(&barriers);
        // SAFETY: every object lives to the end, where nothing is in flight any more.
        unsafe {
            let commands = gpu.record(|c| {
                device.cmd_fill_buffer(c, a, 0, vk::WHOLE_SIZE, 1);
                device.cmd_update_buffer(c, b, 16, &[2; 16]);
                device.cmd_set_event2(c, event, &dependency);
                device.cmd_wait_events2(c, &[event], &[dependency]);
                let region = vk::BufferCopy::default().src_offset(0).dst_offset(64).size(64);
                device.cmd_copy_buffer(c, a, b, &[region]);
                let regions = [vk::BufferCopy2::default().src_offset(64).dst_offset(128).size(32)];
                let info = vk::CopyBufferInfo2::default().src_buffer(a).dst_buffer(b).regions(&regions);
                device.cmd_copy_buffer2(c, &info);
                device.cmd_pipeline_barrier2(c, &dependency);
                device.cmd_reset_event2(c, event, ALL2);
            });
            let at = |value| vk::SemaphoreSubmitInfo::default().semaphore(timeline).value(value).stage_mask(ALL2);
            let buffers = [vk::CommandBufferSubmitInfo::default().command_buffer(commands)];
            for value in 8..11 {
                let (waits, signals) = ([at(value - 1)], [at(value)]);
                let info = vk::SubmitInfo2::default().command_buffer_infos(&buffers);
                let info = info.wait_semaphore_infos(&waits).signal_semaphore_infos(&signals);
                device.queue_submit2(gpu.queue, &[info], vk::Fence::null()).unwrap();
                gpu.wait_value((timeline, value));
                assert_eq!(device.get_semaphore_counter_value(timeline), Ok(value));
            }
            device.destroy_buffer(a, None);
            device.destroy_buffer(b, None);
            device.free_memory(memory_a, None);
            device.free_memory(memory_b, None);
            device.destroy_semaphore(timeline, None);
        }
        gpu.destroy_event(event);
        gpu.close();
    }),
    ("binary semaphores whose values are not looked at", |gpu| {
        let (semaphore, device) = (gpu.binary(), &gpu.device);
        for _ in 0..3 {
            gpu.submit(&[], &[], &[(semaphore, 9)], vk::Fence::null());
            gpu.submit(&[], &[(semaphore, 9)], &[], vk::Fence::null());
        }
        // SAFETY: the device lives, and then nothing is in flight.
        unsafe {
            device.device_wait_idle().unwrap();
            device.destroy_semaphore(semaphore, None);
        }
        gpu.close();
    }),
    ("threads with command pools of their own, and handles that are used again", |gpu| {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let (event, device) = (gpu.event(), &gpu.device);
                        // SAFETY: each thread has its own objects.
                        unsafe {
                            let pool = device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None).unwrap();
                            let info = vk::CommandBufferAllocateInfo::default();
                            let info = info.command_pool(pool).command_buffer_count(1);
                            let c = device.allocate_command_buffers(&info).unwrap()[0];
                            gpu.begin_with(c, vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
                            gpu.cmd_set(c, event);
                            gpu.cmd_wait(c, &[event]);
                            gpu.end(c);
                            let fence = gpu.fence();
                            let buffers = [c];
                            let submit = vk::SubmitInfo::default().command_buffers(&buffers);
                            let queue = gpu.lock.lock().unwrap();
                            device.queue_submit(gpu.queue, &[submit], fence).unwrap();
                            drop(queue);
                            gpu.wait_fence(fence);
                            device.destroy_fence(fence, None);
                            device.destroy_command_pool(pool, None);
                        }
                        gpu.destroy_event(event);
                    }
                });
            }
        });
        gpu.close();
    }),
    (DISPATCH, |gpu| {
        let device = &gpu.device;
        let ((a, _), (b, _), (unused, _)) = (gpu.buffer(256), gpu.buffer(1024), gpu.buffer(64));
        let words = shader(
            "@group(0) @binding(0) var<storage, read> a: array<u32>;
             @group(0) @binding(2) var<storage, read_write> b: array<u32>;
             @compute @workgroup_size(1) fn main() { b[0] = a[1]; }",
        );
        // SAFETY: plain Vulkan on objects that live; what is left goes with the process.
        unsafe {
            let module = vk::ShaderModuleCreateInfo::default().code(&words);
            let module = device.create_shader_module(&module, None).unwrap();
            let kinds = [
                vk::DescriptorType::STORAGE_BUFFER,
                vk::DescriptorType::STORAGE_BUFFER,
                vk::DescriptorType::STORAGE_BUFFER_DYNAMIC,
            ];
            let binding = |(at, kind): (usize, &vk::DescriptorType)| {
                let binding = vk::DescriptorSetLayoutBinding::default().binding(at as u32).descriptor_type(*kind);
                binding.descriptor_count(1).stage_flags(vk::ShaderStageFlags::COMPUTE)
            };
            let bindings: Vec<_> = kinds.iter().enumerate().map(binding).collect();
            let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
            let layouts = [device.create_descriptor_set_layout(&info, None).unwrap(); 2];
            let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts[..1]);
            let layout = device.create_pipeline_layout(&info, None).unwrap();
            let stage = vk::PipelineShaderStageCreateInfo::default().module(module).name(c"main");
            let stage = stage.stage(vk::ShaderStageFlags::COMPUTE);
            let info = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout)];
            let pipeline = device.create_compute_pipelines(vk::PipelineCache::null(), &info, None).unwrap()[0];
            device.destroy_shader_module(module, None);

            let size = |kind| vk::DescriptorPoolSize::default().ty(kind).descriptor_count(8);
            let sizes = [size(kinds[0]), size(kinds[2])];
            let info = vk::DescriptorPoolCreateInfo::default().max_sets(2).pool_sizes(&sizes);
            let pool = device.create_descriptor_pool(&info, None).unwrap();
            let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
            let sets = device.allocate_descriptor_sets(&info).unwrap();
            // The first set by a write that runs on into the next binding, the third by a template; then a copy of it all.
            let range = |buffer, offset, range| vk::DescriptorBufferInfo { buffer, offset, range };
            let first = [range(a, 16, 64), range(unused, 0, 64)];
            let write = vk::WriteDescriptorSet::default().dst_set(sets[0]).dst_binding(0).descriptor_type(kinds[0]);
            device.update_descriptor_sets(&[write.buffer_info(&first)], &[]);
            let entries = [vk::DescriptorUpdateTemplateEntry::default()
                .dst_binding(2)
                .descriptor_count(1)
                .descriptor_type(kinds[2])
                .offset(8)];
            let info = vk::DescriptorUpdateTemplateCreateInfo::default()
                .descriptor_update_entries(&entries)
                .descriptor_set_layout(layouts[0]);
            let template = device.create_descriptor_update_template(&info, None).unwrap();
            let data = (0_u64, range(b, 256, 128));
            device.update_descriptor_set_with_template(sets[0], template, (&raw const data).cast());
            let copy = |binding, count| {
                let copy = vk::CopyDescriptorSet::default().src_set(sets[0]).dst_set(sets[1]);
                copy.src_binding(binding).dst_binding(binding).descriptor_count(count)
            };
            device.update_descriptor_sets(&[], &[copy(0, 2), copy(2, 1)]);

            let compute = vk::PipelineBindPoint::COMPUTE;
            gpu.submit_all(&[gpu.record(|c| {
                device.cmd_bind_pipeline(c, compute, pipeline);
                device.cmd_bind_descriptor_sets(c, compute, layout, 0, &sets[1..], &[512]);
                device.cmd_dispatch(c, 1, 1, 1);
            })]);
        }
        gpu.idle();
    }),
    (PASS, |gpu| {
        let (device, timeline, (buffer, _)) = (&gpu.device, gpu.timeline(0), gpu.buffer(256));
        let (transfer, fragment) = (vk::PipelineStageFlags::TRANSFER, vk::PipelineStageFlags::FRAGMENT_SHADER);
        let dependency = |from, to, src, dst| {
            let dependency = vk::SubpassDependency::default().src_subpass(from).dst_subpass(to);
            dependency.src_stage_mask(src).dst_stage_mask(dst)
        };
        let dependencies = [
            dependency(0, 1, fragment, fragment),
            dependency(vk::SUBPASS_EXTERNAL, 0, fragment, fragment),
            dependency(1, vk::SUBPASS_EXTERNAL, fragment, transfer),
        ];
        let subpasses = [vk::SubpassDescription::default(); 2];
        let area = vk::Rect2D::default().extent(vk::Extent2D { width: 1, height: 1 });
        let pass = vk::RenderPassCreateInfo::default().subpasses(&subpasses).dependencies(&dependencies);
        // SAFETY: plain Vulkan on objects that live; what is left goes with the process.
        unsafe {
            let pass = device.create_render_pass(&pass, None).unwrap();
            let frame = vk::FramebufferCreateInfo::default().render_pass(pass).width(1).height(1).layers(1);
            let frame = device.create_framebuffer(&frame, None).unwrap();
            let begin = vk::RenderPassBeginInfo::default().render_pass(pass).framebuffer(frame).render_area(area);
            let commands = gpu.record(|c| {
                device.cmd_begin_render_pass(c, &begin, vk::SubpassContents::INLINE);
                device.cmd_next_subpass(c, vk::SubpassContents::INLINE);
                device.cmd_end_render_pass(c);
                device.cmd_fill_buffer(c, buffer, 0, 256, 1);
            });
            let wait = vk::SemaphoreSubmitInfo::default().semaphore(timeline).value(1);
            let waits = [wait.stage_mask(vk::PipelineStageFlags2::FRAGMENT_SHADER)];
            let buffers = [vk::CommandBufferSubmitInfo::default().command_buffer(commands)];
            let submit = vk::SubmitInfo2::default().wait_semaphore_infos(&waits).command_buffer_infos(&buffers);
            device.queue_submit2(gpu.queue, &[submit], vk::Fence::null()).unwrap();
            device.signal_semaphore(&vk::SemaphoreSignalInfo::default().semaphore(timeline).value(1)).unwrap();
        }
        gpu.idle();
    }),
];

/// A semaphore orders fragments, and the render pass carries that on to copies.
pub const PASS: &str = "a render pass between a semaphore and a fill";

/// The program that dispatches.
pub const DISPATCH: &str = "a dispatch with storage buffers bound to it";

fn shader(source: &str) -> Vec<u32> {
    let module = naga::front::wgsl::parse_str(source).unwrap();
    let mut validator = naga::valid::Validator::new(Default::default(), Default::default());
    let info = validator.validate(&module).unwrap();
    naga::back::spv::write_vec(&module, &info, &Default::default(), None).unwrap()
}
