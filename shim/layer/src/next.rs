//! The functions that are looked into, by their names, and what is below them.

use std::ffi::CStr;

use ash::vk;

use crate::chain::pointer;
use crate::commands;

macro_rules! functions {
    ($($name:ident: $pfn:ident = $($vulkan:literal)|+;)*) => {
        /// What the next layer or the driver has.
        pub struct Next {
            $(pub $name: Option<vk::$pfn>,)*
        }

        impl Next {
            /// A function and its alias are one: the first that is there is used.
            pub fn load(get: impl Fn(&CStr) -> vk::PFN_vkVoidFunction) -> Next {
                let get = |name: &str| get(CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or(c""));
                Next {
                    // SAFETY: a function of that name has that type.
                    $($name: unsafe {
                        std::mem::transmute::<vk::PFN_vkVoidFunction, Option<vk::$pfn>>(
                            None$(.or_else(|| get(concat!($vulkan, "\0"))))+
                        )
                    },)*
                }
            }
        }

        /// The function of this layer that stands before the one of that name.
        pub fn hook(name: &CStr) -> vk::PFN_vkVoidFunction {
            match name.to_str().ok()? {
                $($($vulkan)|+ => pointer!(commands::$name, vk::$pfn),)*
                _ => None,
            }
        }
    };
}

functions! {
    destroy_device: PFN_vkDestroyDevice = "vkDestroyDevice";
    get_device_queue: PFN_vkGetDeviceQueue = "vkGetDeviceQueue";
    get_device_queue2: PFN_vkGetDeviceQueue2 = "vkGetDeviceQueue2";
    create_command_pool: PFN_vkCreateCommandPool = "vkCreateCommandPool";
    reset_command_pool: PFN_vkResetCommandPool = "vkResetCommandPool";
    destroy_command_pool: PFN_vkDestroyCommandPool = "vkDestroyCommandPool";
    allocate_command_buffers: PFN_vkAllocateCommandBuffers = "vkAllocateCommandBuffers";
    free_command_buffers: PFN_vkFreeCommandBuffers = "vkFreeCommandBuffers";
    begin_command_buffer: PFN_vkBeginCommandBuffer = "vkBeginCommandBuffer";
    end_command_buffer: PFN_vkEndCommandBuffer = "vkEndCommandBuffer";
    reset_command_buffer: PFN_vkResetCommandBuffer = "vkResetCommandBuffer";
    create_event: PFN_vkCreateEvent = "vkCreateEvent";
    destroy_event: PFN_vkDestroyEvent = "vkDestroyEvent";
    set_event: PFN_vkSetEvent = "vkSetEvent";
    reset_event: PFN_vkResetEvent = "vkResetEvent";
    get_event_status: PFN_vkGetEventStatus = "vkGetEventStatus";
    create_semaphore: PFN_vkCreateSemaphore = "vkCreateSemaphore";
    destroy_semaphore: PFN_vkDestroySemaphore = "vkDestroySemaphore";
    signal_semaphore: PFN_vkSignalSemaphore = "vkSignalSemaphore" | "vkSignalSemaphoreKHR";
    get_semaphore_counter_value: PFN_vkGetSemaphoreCounterValue =
        "vkGetSemaphoreCounterValue" | "vkGetSemaphoreCounterValueKHR";
    wait_semaphores: PFN_vkWaitSemaphores = "vkWaitSemaphores" | "vkWaitSemaphoresKHR";
    create_fence: PFN_vkCreateFence = "vkCreateFence";
    destroy_fence: PFN_vkDestroyFence = "vkDestroyFence";
    reset_fences: PFN_vkResetFences = "vkResetFences";
    get_fence_status: PFN_vkGetFenceStatus = "vkGetFenceStatus";
    wait_for_fences: PFN_vkWaitForFences = "vkWaitForFences";
    queue_submit: PFN_vkQueueSubmit = "vkQueueSubmit";
    queue_submit2: PFN_vkQueueSubmit2 = "vkQueueSubmit2" | "vkQueueSubmit2KHR";
    queue_wait_idle: PFN_vkQueueWaitIdle = "vkQueueWaitIdle";
    device_wait_idle: PFN_vkDeviceWaitIdle = "vkDeviceWaitIdle";
    queue_bind_sparse: PFN_vkQueueBindSparse = "vkQueueBindSparse";
    queue_present: PFN_vkQueuePresentKHR = "vkQueuePresentKHR";
    acquire_next_image: PFN_vkAcquireNextImageKHR = "vkAcquireNextImageKHR";
    acquire_next_image2: PFN_vkAcquireNextImage2KHR = "vkAcquireNextImage2KHR";
    import_semaphore_fd: PFN_vkImportSemaphoreFdKHR = "vkImportSemaphoreFdKHR";
    import_fence_fd: PFN_vkImportFenceFdKHR = "vkImportFenceFdKHR";
    get_fence_fd: PFN_vkGetFenceFdKHR = "vkGetFenceFdKHR";
    cmd_set_event: PFN_vkCmdSetEvent = "vkCmdSetEvent";
    cmd_set_event2: PFN_vkCmdSetEvent2 = "vkCmdSetEvent2" | "vkCmdSetEvent2KHR";
    cmd_reset_event: PFN_vkCmdResetEvent = "vkCmdResetEvent";
    cmd_reset_event2: PFN_vkCmdResetEvent2 = "vkCmdResetEvent2" | "vkCmdResetEvent2KHR";
    cmd_wait_events: PFN_vkCmdWaitEvents = "vkCmdWaitEvents";
    cmd_wait_events2: PFN_vkCmdWaitEvents2 = "vkCmdWaitEvents2" | "vkCmdWaitEvents2KHR";
    cmd_pipeline_barrier: PFN_vkCmdPipelineBarrier = "vkCmdPipelineBarrier";
    cmd_pipeline_barrier2: PFN_vkCmdPipelineBarrier2 = "vkCmdPipelineBarrier2" | "vkCmdPipelineBarrier2KHR";
    cmd_execute_commands: PFN_vkCmdExecuteCommands = "vkCmdExecuteCommands";
    create_buffer: PFN_vkCreateBuffer = "vkCreateBuffer";
    destroy_buffer: PFN_vkDestroyBuffer = "vkDestroyBuffer";
    create_image: PFN_vkCreateImage = "vkCreateImage";
    destroy_image: PFN_vkDestroyImage = "vkDestroyImage";
    cmd_copy_buffer: PFN_vkCmdCopyBuffer = "vkCmdCopyBuffer";
    cmd_copy_buffer2: PFN_vkCmdCopyBuffer2 = "vkCmdCopyBuffer2" | "vkCmdCopyBuffer2KHR";
    cmd_fill_buffer: PFN_vkCmdFillBuffer = "vkCmdFillBuffer";
    cmd_update_buffer: PFN_vkCmdUpdateBuffer = "vkCmdUpdateBuffer";
    cmd_copy_buffer_to_image: PFN_vkCmdCopyBufferToImage = "vkCmdCopyBufferToImage";
    cmd_copy_buffer_to_image2: PFN_vkCmdCopyBufferToImage2 = "vkCmdCopyBufferToImage2" | "vkCmdCopyBufferToImage2KHR";
    cmd_copy_image_to_buffer: PFN_vkCmdCopyImageToBuffer = "vkCmdCopyImageToBuffer";
    cmd_copy_image_to_buffer2: PFN_vkCmdCopyImageToBuffer2 = "vkCmdCopyImageToBuffer2" | "vkCmdCopyImageToBuffer2KHR";
    cmd_copy_query_pool_results: PFN_vkCmdCopyQueryPoolResults = "vkCmdCopyQueryPoolResults";
    create_shader_module: PFN_vkCreateShaderModule = "vkCreateShaderModule";
    destroy_shader_module: PFN_vkDestroyShaderModule = "vkDestroyShaderModule";
    create_compute_pipelines: PFN_vkCreateComputePipelines = "vkCreateComputePipelines";
    destroy_pipeline: PFN_vkDestroyPipeline = "vkDestroyPipeline";
    create_descriptor_set_layout: PFN_vkCreateDescriptorSetLayout = "vkCreateDescriptorSetLayout";
    destroy_descriptor_set_layout: PFN_vkDestroyDescriptorSetLayout = "vkDestroyDescriptorSetLayout";
    allocate_descriptor_sets: PFN_vkAllocateDescriptorSets = "vkAllocateDescriptorSets";
    free_descriptor_sets: PFN_vkFreeDescriptorSets = "vkFreeDescriptorSets";
    reset_descriptor_pool: PFN_vkResetDescriptorPool = "vkResetDescriptorPool";
    destroy_descriptor_pool: PFN_vkDestroyDescriptorPool = "vkDestroyDescriptorPool";
    update_descriptor_sets: PFN_vkUpdateDescriptorSets = "vkUpdateDescriptorSets";
    create_descriptor_update_template: PFN_vkCreateDescriptorUpdateTemplate =
        "vkCreateDescriptorUpdateTemplate" | "vkCreateDescriptorUpdateTemplateKHR";
    destroy_descriptor_update_template: PFN_vkDestroyDescriptorUpdateTemplate =
        "vkDestroyDescriptorUpdateTemplate" | "vkDestroyDescriptorUpdateTemplateKHR";
    update_descriptor_set_with_template: PFN_vkUpdateDescriptorSetWithTemplate =
        "vkUpdateDescriptorSetWithTemplate" | "vkUpdateDescriptorSetWithTemplateKHR";
    cmd_push_descriptor_set: PFN_vkCmdPushDescriptorSetKHR = "vkCmdPushDescriptorSetKHR" | "vkCmdPushDescriptorSet";
    cmd_push_descriptor_set_with_template: PFN_vkCmdPushDescriptorSetWithTemplateKHR =
        "vkCmdPushDescriptorSetWithTemplateKHR" | "vkCmdPushDescriptorSetWithTemplate";
    cmd_push_descriptor_set2: PFN_vkCmdPushDescriptorSet2KHR = "vkCmdPushDescriptorSet2KHR" | "vkCmdPushDescriptorSet2";
    cmd_push_descriptor_set_with_template2: PFN_vkCmdPushDescriptorSetWithTemplate2KHR =
        "vkCmdPushDescriptorSetWithTemplate2KHR" | "vkCmdPushDescriptorSetWithTemplate2";
    cmd_bind_descriptor_sets2: PFN_vkCmdBindDescriptorSets2KHR = "vkCmdBindDescriptorSets2KHR" | "vkCmdBindDescriptorSets2";
    cmd_bind_shaders: PFN_vkCmdBindShadersEXT = "vkCmdBindShadersEXT";
    create_render_pass: PFN_vkCreateRenderPass = "vkCreateRenderPass";
    create_render_pass2: PFN_vkCreateRenderPass2 = "vkCreateRenderPass2" | "vkCreateRenderPass2KHR";
    destroy_render_pass: PFN_vkDestroyRenderPass = "vkDestroyRenderPass";
    cmd_begin_render_pass: PFN_vkCmdBeginRenderPass = "vkCmdBeginRenderPass";
    cmd_begin_render_pass2: PFN_vkCmdBeginRenderPass2 = "vkCmdBeginRenderPass2" | "vkCmdBeginRenderPass2KHR";
    cmd_next_subpass: PFN_vkCmdNextSubpass = "vkCmdNextSubpass";
    cmd_next_subpass2: PFN_vkCmdNextSubpass2 = "vkCmdNextSubpass2" | "vkCmdNextSubpass2KHR";
    cmd_end_render_pass: PFN_vkCmdEndRenderPass = "vkCmdEndRenderPass";
    cmd_end_render_pass2: PFN_vkCmdEndRenderPass2 = "vkCmdEndRenderPass2" | "vkCmdEndRenderPass2KHR";
    cmd_bind_pipeline: PFN_vkCmdBindPipeline = "vkCmdBindPipeline";
    cmd_bind_descriptor_sets: PFN_vkCmdBindDescriptorSets = "vkCmdBindDescriptorSets";
    cmd_dispatch: PFN_vkCmdDispatch = "vkCmdDispatch";
    cmd_dispatch_base: PFN_vkCmdDispatchBase = "vkCmdDispatchBase" | "vkCmdDispatchBaseKHR";
    cmd_dispatch_indirect: PFN_vkCmdDispatchIndirect = "vkCmdDispatchIndirect";
    set_debug_utils_object_name: PFN_vkSetDebugUtilsObjectNameEXT = "vkSetDebugUtilsObjectNameEXT";
}
