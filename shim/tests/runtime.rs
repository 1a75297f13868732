//! What the cases of the field do not cover: times, shaders, other devices, refusals, bad input.

mod common;

use std::sync::Mutex;
use std::time::Duration;

use common::{
    Bench, DEVICE_LOST, Lines, OUT_OF_MEMORY, host_signals_are_validated, on_simulated, on_vulkan, on_vulkan_validated,
    run, value,
};
use fencepost_vulkan::ash::vk;
use fencepost_vulkan::{
    Device, Dispatch, DropQueue, Error, Fence, FlushPolicy, OpenOptions, Options, Placement, Policy, Simulated, Stream,
    Tracer, Vulkan,
};

// Time ------------------------------------------------------------------------------------------------

#[test]
fn two_timed_events_tell_the_time_between_them() {
    run(|b| {
        let (s, start, end) = (b.stream(), b.device.timed_event().unwrap(), b.device.timed_event().unwrap());
        assert!(matches!(end.elapsed_since(&start), Err(Error::NotTimed)), "never recorded");
        let mut last = Duration::MAX;
        for _ in 0..3 {
            start.record(&s).unwrap();
            b.produce(&s, &b.buffer(), 1);
            end.record(&s).unwrap();
            assert!(matches!(end.elapsed_since(&start), Err(Error::NotPassed | Error::NotTimed)));
            end.synchronize().unwrap();
            let elapsed = match end.elapsed_since(&start) {
                Ok(elapsed) => elapsed,
                Err(Error::NotTimed) => return, // No events by policy, or a queue without a clock.
                Err(error) => panic!("{error}"),
            };
            assert!(elapsed > Duration::ZERO && elapsed < Duration::from_secs(60), "{elapsed:?}");
            assert_eq!(start.elapsed_since(&end).unwrap(), Duration::ZERO);
            last = elapsed;
        }
        assert!(last < Duration::MAX);
    });
}

#[test]
fn an_event_without_timing_has_no_time() {
    run(|b| {
        let (s, e) = (b.stream(), b.event());
        e.record(&s).unwrap();
        s.synchronize().unwrap();
        assert!(matches!(e.elapsed_since(&e), Err(Error::NotTimed)));
    });
}

// Queues ----------------------------------------------------------------------------------------------

#[test]
fn a_token_goes_around_all_queues() {
    run(|b| {
        let streams: Vec<Stream> = (0..b.device.queues().len() as u32).map(|queue| b.on_queue(queue)).collect();
        let (e, token, seen) = (b.event(), b.buffer(), b.buffer());
        let word = b.word();
        b.produce(&streams[0], &token, word);
        e.record(&streams[0]).unwrap();
        for _ in 0..3 {
            for stream in &streams {
                e.wait(stream).unwrap();
                b.copy(stream, &token, &seen);
                b.consume_after_barrier(stream, &seen, &token);
                e.record(stream).unwrap();
            }
        }
        e.synchronize().unwrap();
        assert_eq!([value(&token), value(&seen)], [word, word]);
        println!("{} queues of {}", streams.len(), b.device.name());
    });
}

/// Else no message would mean nothing.
#[test]
fn the_validation_layer_listens() {
    let Some((vulkan, messages)) = common::vulkan(true, true) else { return };
    let device = Device::with_driver(vulkan, Options::default());
    let (s, a) = (device.stream(Placement::default()).unwrap(), device.buffer(16).unwrap());
    s.record(|c| {
        let (raw, buffer) = (c.raw().unwrap(), a.raw().unwrap());
        // SAFETY: two fills of one range that nothing orders: wrong, and harmless.
        unsafe {
            raw.device.cmd_fill_buffer(raw.buffer, buffer, 0, 16, 1);
            raw.device.cmd_fill_buffer(raw.buffer, buffer, 0, 16, 2);
        }
    })
    .unwrap();
    s.synchronize().unwrap();
    assert!(messages.heard().iter().any(|m| m.contains("SYNC-HAZARD-WRITE")), "{:?}", messages.heard());
}

// Shaders ---------------------------------------------------------------------------------------------

/// Each invocation works for a while on its own word; without order and visibility the next dispatch adds to stale ones.
const SHADER: &str = "
    @group(0) @binding(0) var<storage, read_write> words: array<u32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        var x = words[id.x];
        for (var i = 0u; i < 2000u; i++) { x = x * 1664525u + 1013904223u; }
        words[id.x] = x;
    }";

fn expected(mut x: u32, dispatches: u32) -> u32 {
    for _ in 0..2000 * dispatches {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    }
    x
}

fn spirv() -> Vec<u32> {
    let module = naga::front::wgsl::parse_str(SHADER).unwrap();
    let mut validator = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), Default::default());
    let info = validator.validate(&module).unwrap();
    naga::back::spv::write_vec(&module, &info, &naga::back::spv::Options::default(), None).unwrap()
}

/// A caller's own objects.
struct Shader {
    device: fencepost_vulkan::ash::Device,
    set_layout: vk::DescriptorSetLayout,
    layout: vk::PipelineLayout,
    module: vk::ShaderModule,
    pipeline: vk::Pipeline,
    pool: vk::DescriptorPool,
    set: vk::DescriptorSet,
}

impl Shader {
    fn new(stream: &Stream, buffer: vk::Buffer) -> Shader {
        let device = stream.record(|c| c.raw().unwrap().device.clone()).unwrap();
        let code = spirv();
        // SAFETY: plain set-up, each call with what the one before made.
        unsafe {
            let binding = [vk::DescriptorSetLayoutBinding::default()
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)];
            let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&binding);
            let set_layout = device.create_descriptor_set_layout(&info, None).unwrap();
            let set_layouts = [set_layout];
            let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&set_layouts);
            let layout = device.create_pipeline_layout(&info, None).unwrap();
            let info = vk::ShaderModuleCreateInfo::default().code(&code);
            let module = device.create_shader_module(&info, None).unwrap();
            let stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(module)
                .name(c"main");
            let info = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout)];
            let pipeline = device.create_compute_pipelines(vk::PipelineCache::null(), &info, None).unwrap()[0];
            let size = [vk::DescriptorPoolSize { ty: vk::DescriptorType::STORAGE_BUFFER, descriptor_count: 1 }];
            let info = vk::DescriptorPoolCreateInfo::default().pool_sizes(&size).max_sets(1);
            let pool = device.create_descriptor_pool(&info, None).unwrap();
            let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&set_layouts);
            let set = device.allocate_descriptor_sets(&info).unwrap()[0];
            let range = [vk::DescriptorBufferInfo { buffer, offset: 0, range: vk::WHOLE_SIZE }];
            let write = vk::WriteDescriptorSet::default()
                .dst_set(set)
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .buffer_info(&range);
            device.update_descriptor_sets(&[write], &[]);
            Shader { device, set_layout, layout, module, pipeline, pool, set }
        }
    }

    fn run(&self, stream: &Stream, words: u32) {
        let sets = [self.set];
        let (layout, groups) = (self.layout, [words / 64, 1, 1]);
        let dispatch =
            Dispatch { pipeline: self.pipeline, layout, descriptor_sets: &sets, push_constants: &[], groups };
        // SAFETY: the handles are made for each other and outlive the batch.
        stream.record(|c| unsafe { c.dispatch(&dispatch) }).unwrap().unwrap();
    }
}

impl Drop for Shader {
    fn drop(&mut self) {
        // SAFETY: whoever drops it has synchronized.
        unsafe {
            self.device.destroy_descriptor_pool(self.pool, None);
            self.device.destroy_pipeline(self.pipeline, None);
            self.device.destroy_shader_module(self.module, None);
            self.device.destroy_pipeline_layout(self.layout, None);
            self.device.destroy_descriptor_set_layout(self.set_layout, None);
        }
    }
}

#[test]
fn shaders_of_two_streams_take_turns_on_one_buffer() {
    on_vulkan(|b| {
        let (words, turns) = (4096, 6);
        // Streams that can run shaders, on as many queues as there are.
        let streams: Vec<Stream> = (0..3).map(|_| b.stream()).collect();
        let buffer = b.device.buffer(u64::from(words) * 4).unwrap();
        let first: Vec<u32> = (0..words).map(|_| b.word()).collect();
        buffer.write(0, &first.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
        let shader = Shader::new(&streams[0], buffer.raw().unwrap());
        let e = b.event();
        for turn in 0..turns {
            let stream = &streams[turn as usize % streams.len()];
            e.wait(stream).unwrap();
            shader.run(stream, words);
            e.record(stream).unwrap();
        }
        e.synchronize().unwrap();
        let now = buffer.words().unwrap();
        assert!(first.iter().zip(&now).all(|(first, now)| expected(*first, turns) == *now));
        streams.iter().for_each(|s| s.synchronize().unwrap());
    });
}

#[test]
fn the_simulated_gpu_says_that_it_has_no_shaders() {
    on_simulated(|b| {
        let (pipeline, layout) = Default::default();
        let dispatch = Dispatch { pipeline, layout, descriptor_sets: &[], push_constants: &[], groups: [1; 3] };
        // SAFETY: the simulated GPU looks at none of the handles.
        let answer = b.stream().record(|c| unsafe { c.dispatch(&dispatch) }).unwrap();
        assert_eq!(answer, Err(Error::NoShaders));
        assert!(b.stream().record(|c| c.raw().is_none()).unwrap());
    });
}

// Other devices ---------------------------------------------------------------------------------------

/// The host moves the data; the wait alone says when it may.
fn waits_across(b: &Bench, other: &Device) {
    let mine = b.stream();
    let its = other.stream(Placement::default()).unwrap();
    for _ in 0..3 {
        let (there, back) = (b.event(), other.event().unwrap());
        let (a, out, word) = (b.buffer(), b.buffer(), b.word());
        b.produce(&mine, &a, word);
        there.record(&mine).unwrap();
        there.wait(&its).unwrap();
        back.record(&its).unwrap();
        back.wait(&mine).unwrap();
        b.consume(&mine, &a, &out);
        its.flush().unwrap();
        mine.synchronize().unwrap();
        assert!(there.query().unwrap());
        back.synchronize().unwrap();
        assert_eq!(value(&out), word);
    }
}

#[test]
fn a_wait_across_devices_does_not_block_and_holds() {
    let story = |b: &Bench| waits_across(b, &Device::simulated(b.word().into(), Options::default()));
    on_simulated(story);
    on_vulkan_validated(host_signals_are_validated(), story);
}

#[test]
fn two_vulkan_devices_wait_for_each_other() {
    let validated = host_signals_are_validated();
    on_vulkan_validated(validated, |b| {
        let Some((vulkan, messages)) = common::vulkan(true, validated) else { return };
        let other = Device::with_driver(vulkan, Options::default());
        waits_across(b, &other);
        drop(other);
        assert_eq!(messages.heard(), Vec::<String>::new());
    });
}

#[test]
fn a_wait_across_devices_holds_back_what_follows() {
    on_simulated(|b| {
        let other = Device::simulated(b.word().into(), Options::default());
        let (held, s) = (other.stream(Placement::default()).unwrap(), b.stream());
        // The other device has an open wait for this one, so that it cannot go on by itself.
        let (gate, opened, passed) = (b.event(), other.event().unwrap(), b.event());
        let key = b.stream();
        b.produce(&key, &b.buffer(), 1);
        gate.record(&key).unwrap();
        gate.wait(&held).unwrap();
        opened.record(&held).unwrap();
        opened.wait(&s).unwrap();
        b.produce(&s, &b.buffer(), 1);
        passed.record(&s).unwrap();
        passed.synchronize().unwrap();
        assert!(gate.query().unwrap() && opened.query().unwrap());
    });
}

#[test]
fn a_device_that_is_lost_does_not_hold_another_back() {
    run(|b| {
        let other = Device::simulated(1, Options::default());
        let its = other.stream(Placement::default()).unwrap();
        let (s, e) = (b.stream(), b.event());
        b.produce(&s, &b.buffer(), 1);
        e.record(&s).unwrap();
        e.wait(&its).unwrap();
        b.fault.after(0, DEVICE_LOST);
        let _ = s.synchronize();
        its.synchronize().unwrap();
    });
}

// Refusals --------------------------------------------------------------------------------------------

#[test]
fn a_fence_that_cannot_be_recorded_has_synchronized_its_stream() {
    run(|b| {
        let (s, other, out, word) = (b.stream(), b.stream(), b.buffer(), b.word());
        b.produce(&s, &out, word);
        // A batch that was refused has to go before anything is recorded behind it.
        b.fault.next("vkQueueSubmit", OUT_OF_MEMORY);
        assert!(s.flush().is_err());
        b.fault.next("vkQueueSubmit", OUT_OF_MEMORY);
        let fence = Fence::new(&s);
        assert_eq!(value(&out), word, "the stream was synchronized on the spot");
        fence.wait_async(&other).unwrap();
        b.produce(&s, &out, word);
        b.fault.next("vkQueueSubmit", DEVICE_LOST);
        assert!(s.flush().is_err());
        assert!(matches!(Fence::new(&s).wait_sync(), Err(Error::Lost(_))), "that fails too");
    });
}

#[test]
fn a_fence_whose_device_wait_is_refused_waits_on_the_host() {
    run(|b| {
        let [s, other] = [b.on_queue(0), b.on_queue(1)];
        let (out, word) = (b.buffer(), b.word());
        b.produce(&s, &out, word);
        let fence = Fence::new(&s);
        b.fault.next("vkQueueSubmit", OUT_OF_MEMORY); // The wait has the recording submitted first.
        fence.wait_async(&other).unwrap();
        assert_eq!(value(&out), word);
    });
}

#[test]
fn a_dropped_stream_that_cannot_submit_does_so_later() {
    run(|b| {
        let (s, e, out, word) = (b.stream(), b.event(), b.buffer(), b.word());
        b.produce(&s, &out, word);
        e.record(&s).unwrap();
        b.fault.next("vkQueueSubmit", OUT_OF_MEMORY);
        drop(s);
        e.synchronize().unwrap();
        assert_eq!(value(&out), word);
    });
}

#[test]
fn every_call_can_be_made_again_after_a_refusal() {
    run(|b| {
        let calls = ["vkCreateSemaphore", "vkCreateEvent", "vkResetEvent", "vkBeginCommandBuffer", "vkQueueSubmit"];
        for call in calls {
            let (out, word) = (b.buffer(), b.word());
            b.fault.next(call, OUT_OF_MEMORY);
            let again = |what: &dyn Fn() -> Result<(), Error>| match what() {
                Err(Error::Refused(error)) => {
                    assert_eq!(error.call, call);
                    what().unwrap();
                }
                answer => answer.unwrap(),
            };
            let stream = Mutex::new(None);
            again(&|| b.device.stream(Placement::default()).map(|s| *stream.lock().unwrap() = Some(s)));
            let (s, e) = (stream.into_inner().unwrap().unwrap(), b.event());
            again(&|| s.record(|c| c.fill(&out, 0, 16, word)).map(|filled| filled.unwrap()));
            again(&|| e.record(&s));
            again(&|| e.wait(&s));
            again(&|| s.flush());
            again(&|| e.synchronize());
            b.fault.clear();
            assert_eq!(value(&out), word, "{call}");
        }
    });
}

// Dropping --------------------------------------------------------------------------------------------

#[test]
fn a_buffer_dropped_while_it_is_used_stays_until_then() {
    run(|b| {
        let (s, out, word) = (b.stream(), b.buffer(), b.word());
        let a = b.buffer();
        b.produce(&s, &a, word);
        b.consume_after_barrier(&s, &a, &out);
        drop(a);
        let others: Vec<_> = (0..4).map(|_| b.buffer()).collect();
        s.synchronize().unwrap();
        assert_eq!(value(&out), word);
        assert!(others.iter().all(|other| value(other) == 0));
    });
}

#[test]
fn a_drop_queue_flushes_by_count_and_by_bytes() {
    run(|b| {
        for policy in
            [FlushPolicy { count_max: 4, bytes_max: u64::MAX }, FlushPolicy { count_max: usize::MAX, bytes_max: 40 }]
        {
            let [s, other] = [b.on_queue(0), b.on_queue(1)];
            let drops = DropQueue::new(&b.device, policy);
            let (a, c) = (b.event(), b.event());
            b.produce(&s, &b.buffer(), 1);
            b.produce(&other, &b.buffer(), 1);
            a.record(&s).unwrap();
            c.record(&other).unwrap();
            for value in 0..4 {
                // The last push is about one stream; the values wait for both.
                let streams = if value < 3 { vec![&s, &other] } else { vec![&s] };
                drops.push(value, 10, &streams).map_err(|(_, error)| error).unwrap();
            }
            while drops.held().0 > 0 {
                drops.flush().unwrap();
            }
            assert!(a.query().unwrap() && c.query().unwrap(), "nobody else flushed");
        }
    });
}

#[test]
fn everything_can_be_dropped_in_any_order_with_work_in_flight() {
    run(|b| {
        let mut things: Vec<Box<dyn std::any::Any>> = Vec::new();
        let [s1, s2] = [b.on_queue(0), b.on_queue(1)];
        let (e, a, out) = (b.event(), b.buffer(), b.buffer());
        b.produce(&s1, &a, b.word());
        e.record(&s1).unwrap();
        e.wait(&s2).unwrap();
        b.consume(&s2, &a, &out);
        let fence = Fence::new(&s2);
        things.extend([Box::new(s1) as Box<dyn std::any::Any>, Box::new(s2), Box::new(e), Box::new(a)]);
        things.extend([Box::new(out) as Box<dyn std::any::Any>, Box::new(fence)]);
        b.random.lock().unwrap().shuffle(&mut things);
    });
}

#[test]
fn after_loss_everything_can_be_dropped() {
    run(|b| {
        let [s1, s2] = [b.on_queue(0), b.on_queue(1)];
        let (e, a) = (b.event(), b.buffer());
        let drops = DropQueue::new(&b.device, FlushPolicy::default());
        b.produce(&s1, &a, 1);
        e.record(&s1).unwrap();
        e.wait(&s2).unwrap();
        drops.push(7, 1, &[&s1, &s2]).map_err(|(_, error)| error).unwrap();
        b.fault.after(0, DEVICE_LOST);
        assert!(matches!(s2.synchronize(), Err(Error::Lost(_))));
        assert_eq!(drops.held(), (0, 0), "a lost device uses nothing");
    });
}

// Bad input -------------------------------------------------------------------------------------------

#[test]
fn a_closure_that_calls_back_is_told_so() {
    run(|b| {
        let (s, e, word) = (b.stream(), b.event(), b.word());
        let out = b.buffer();
        s.record(|c| {
            assert_eq!(s.flush(), Err(Error::InsideRecord));
            assert_eq!(e.synchronize(), Err(Error::InsideRecord));
            drop(b.device.clone());
            c.fill(&out, 0, 16, word).unwrap();
        })
        .unwrap();
        let dropped = (b.event(), b.stream(), b.buffer());
        s.record(|_| drop(dropped)).unwrap(); // Dropping is always possible.
        s.synchronize().unwrap();
        assert_eq!(value(&out), word);
    });
}

#[test]
fn ranges_outside_of_a_buffer_are_refused() {
    run(|b| {
        let (s, a) = (b.stream(), b.buffer());
        s.record(|c| {
            assert_eq!(c.fill(&a, 8, 16, 0), Err(Error::BadRange { offset: 8, end: 24, size: 16 }));
            assert!(matches!(c.fill(&a, 2, 4, 0), Err(Error::BadRange { .. })));
            assert!(matches!(c.fill(&a, u64::MAX, 4, 0), Err(Error::BadRange { .. })));
            assert_eq!(c.copy((&a, 0), (&a, 4), 8), Err(Error::Overlap { from: 0, to: 4, size: 8 }));
            c.copy((&a, 0), (&a, 8), 8).unwrap();
        })
        .unwrap();
        assert!(matches!(a.write(16, &[1]), Err(Error::BadRange { .. })));
        assert!(matches!(a.read(0, &mut [0; 17]), Err(Error::BadRange { .. })));
        let other = Device::simulated(1, Options::default()).buffer(16).unwrap();
        let answer = s.record(|c| c.fill(&other, 0, 16, 0)).unwrap();
        assert!(matches!(answer, Err(Error::OtherDevice { .. })));
        s.synchronize().unwrap();
    });
}

#[test]
fn a_queue_that_is_not_there_is_named_with_those_that_are() {
    run(|b| {
        let answer = b.device.stream(Placement::Queue(99)).map(|_| ());
        assert!(
            matches!(&answer, Err(Error::NoQueue { wanted, found, .. }) if wanted.contains("99") && found.contains("COMPUTE"))
        );
        let decode = Placement::Any(vk::QueueFlags::VIDEO_DECODE_KHR | vk::QueueFlags::SPARSE_BINDING);
        if b.is_simulated {
            assert!(matches!(b.device.stream(decode).map(|_| ()), Err(Error::NoQueue { .. })));
        }
    });
}

#[test]
fn streams_go_to_different_families_first() {
    on_simulated(|b| {
        let place = |flags| b.device.stream(Placement::Any(flags)).unwrap();
        let copies = place(vk::QueueFlags::TRANSFER);
        assert_eq!(copies.queue(), 2, "the queue that can do nothing else");
        let compute: Vec<Stream> = (0..4).map(|_| place(vk::QueueFlags::COMPUTE)).collect();
        assert_eq!(compute.iter().map(Stream::queue).collect::<Vec<_>>(), [1, 0, 1, 0]);
        drop(compute);
        assert_eq!(place(vk::QueueFlags::COMPUTE).queue(), 1, "dropped streams make room");
    });
}

#[test]
fn a_device_that_is_not_there_is_named_with_those_that_are() {
    if common::vulkan(true, true).is_none() {
        return;
    }
    let open = |device: &str| {
        Device::open(&OpenOptions { device: Some(device.into()), ..Default::default() }, Options::default())
    };
    let Err(Error::NoDevice { wanted, found }) = open("voodoo 2").map(|_| ()) else {
        panic!("there is no such device")
    };
    assert_eq!(wanted, "voodoo 2");
    // "0: "NAME" UUID, 1: .."
    let (name, uuid) = (found.split('"').nth(1).unwrap(), found.split([',', ' ']).find(|w| w.len() == 32).unwrap());
    assert_eq!(open(name).unwrap().name(), name);
    assert_eq!(open(uuid).unwrap().name(), name);
    assert_eq!(open("0").unwrap().name(), name);
}

#[test]
fn no_driver_is_a_clear_message() {
    if std::env::var_os("FENCEPOST_TEST_CHILD").is_some() {
        let error = Vulkan::open(&OpenOptions::default()).map(|_| ()).unwrap_err();
        println!("child: {error}");
        return;
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "no_driver_is_a_clear_message", "--nocapture"]).env("FENCEPOST_TEST_CHILD", "1");
    child.env("VK_ICD_FILENAMES", "/nonexistent.json").env("VK_DRIVER_FILES", "/nonexistent.json");
    let output = String::from_utf8(child.output().unwrap().stdout).unwrap();
    let said = output.lines().find(|l| l.contains("child:")).expect("the child says why");
    assert!(said.contains("no Vulkan driver") || said.contains("no Vulkan loader"), "{said}");
    assert!(said.contains("simulated GPU"), "{said}");
}

// Traces ----------------------------------------------------------------------------------------------

#[test]
fn a_trace_says_what_the_driver_was_asked_for() {
    let lines = Lines::default();
    let options = Options { policy: Policy { events: true }, spin: Duration::ZERO };
    let device = Device::with_driver(Tracer::new(Simulated::new(7), lines.clone()), options);
    let [s1, s2] = [0, 0].map(|queue| device.stream(Placement::Queue(queue)).unwrap());
    let (e, a) = (device.event().unwrap(), device.buffer(16).unwrap());
    s1.record(|c| c.fill(&a, 0, 16, 5)).unwrap().unwrap();
    e.record(&s1).unwrap();
    s1.record(|c| c.barrier()).unwrap();
    e.wait(&s2).unwrap();
    s2.record(|c| c.copy((&a, 0), (&a, 8), 8)).unwrap().unwrap();
    s2.synchronize().unwrap();
    drop((s1, s2, e, a, device));
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let calls: Vec<serde_json::Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let numbers: Vec<u64> = calls.iter().map(|c| c["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    // A look at a counter may come any number of times.
    let kept = text.lines().filter(|l| !l.contains("vkGetSemaphoreCounterValue"));
    let kept: Vec<String> = kept.map(|l| l.split_once(',').unwrap().1.into()).collect();
    let expected = include_str!("trace.txt");
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/trace.txt"), kept.join("\n") + "\n").unwrap();
    } else {
        assert_eq!(kept, expected.lines().collect::<Vec<_>>(), "REWRITE=1 writes what is new");
    }
}
