//! In the steady state nothing is made and nothing allocated.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::Lines;
use fencepost::{Machine, Policy, Reply, Step, Synchronize};
use fencepost_vulkan::{Device, Options, Placement, Simulated, Tracer};

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is handed to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: as the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: as the caller's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const WARM_UP: u32 = 100;
const ROUNDS: u32 = 10_000;

/// Streams on the first queue and the last, an event for each, and what goes wrong if they are not ordered.
fn rounds(device: &Device, mut warm: impl FnMut(), finished: impl FnOnce()) {
    let last = device.queues().len() as u32 - 1;
    let producer = device.stream(Placement::Queue(0)).unwrap();
    let consumer = device.stream(Placement::Queue(last)).unwrap();
    let (produced, consumed) = (device.event().unwrap(), device.event().unwrap());
    let (a, out) = (device.buffer(16).unwrap(), device.buffer(16).unwrap());
    for round in 0..WARM_UP + ROUNDS {
        if round == WARM_UP {
            warm();
        }
        let word = round + 1;
        producer.record(|c| c.fill(&a, 0, 16, word)).unwrap().unwrap();
        produced.record(&producer).unwrap();
        produced.wait(&consumer).unwrap();
        consumer.record(|c| c.copy((&a, 0), (&out, 0), 16)).unwrap().unwrap();
        consumed.record(&consumer).unwrap();
        consumed.wait(&producer).unwrap(); // The next round overwrites what this one reads.
        consumed.synchronize().unwrap();
        assert!(produced.query().unwrap());
        let mut bytes = [0; 16];
        out.read(0, &mut bytes).unwrap();
        assert!(bytes.chunks(4).all(|b| b == word.to_le_bytes()), "{bytes:?} in round {round}");
    }
    finished();
    let (made, reusable) = device.slot_count().unwrap();
    assert!(made <= 8, "{made} slots for two events, {reusable} of them reusable");
}

#[test]
fn nothing_is_made_in_the_steady_state() {
    let check = |driver: Box<dyn FnOnce(Lines) -> Device>| {
        let lines = Lines::default();
        let device = driver(lines.clone());
        rounds(&device, || lines.0.lock().unwrap().clear(), || ());
        let text = String::from_utf8(std::mem::take(&mut *lines.0.lock().unwrap())).unwrap();
        let made = text.lines().find(|l| l.contains("\"vkCreate") || l.contains("\"vkAllocate"));
        assert_eq!(made, None, "{}", device.name());
        assert!(text.matches("\"vkQueueSubmit\"").count() >= ROUNDS as usize);
    };
    check(Box::new(|lines| {
        Device::with_driver(Tracer::new(Simulated::new(fastrand::u64(..)), lines), Options::default())
    }));
    if let Some((vulkan, messages)) = common::vulkan(true, true) {
        check(Box::new(|lines| Device::with_driver(Tracer::new(vulkan, lines), Options::default())));
        assert_eq!(messages.heard(), Vec::<String>::new());
    }
}

#[test]
fn nothing_is_allocated_in_the_steady_state() {
    let Some((vulkan, _)) = common::vulkan(true, true) else { return };
    let device = Device::with_driver(vulkan, Options::default());
    let before = Cell::new(0);
    rounds(&device, || before.set(COUNT.get()), || assert_eq!(COUNT.get() - before.get(), 0));
}

#[test]
fn the_machine_allocates_nothing_in_the_steady_state() {
    let mut machine = Machine::new(Policy { events: true });
    fn drive<T>(machine: &mut Machine, call: impl Fn(&mut Machine) -> Result<Step<T>, fencepost::Error>) -> T {
        loop {
            match call(machine).unwrap() {
                Step::Done(answer) => return answer,
                Step::First(effect) => machine.reply(effect, Reply::Done).unwrap(),
            }
        }
    }
    let [a, b, c] = [0, 0, 1].map(|queue| drive(&mut machine, |m| m.create_stream(queue)));
    let event = machine.create_event();
    let mut before = 0;
    for round in 0..WARM_UP + ROUNDS {
        if round == WARM_UP {
            before = COUNT.get();
        }
        for (from, to) in [(a, b), (b, c), (c, a)] {
            drive(&mut machine, |m| m.work(from));
            drive(&mut machine, |m| m.record(event, from));
            drive(&mut machine, |m| m.work(from)); // So that a VkEvent is worth its price.
            drive(&mut machine, |m| m.wait(to, event));
            drive(&mut machine, |m| m.flush(to));
        }
        if let Synchronize::Block { point, .. } = drive(&mut machine, |m| m.synchronize(event)) {
            drive(&mut machine, |m| m.reached(point.stream, point.value));
        }
        for stream in [a, b, c] {
            let (submitted, _) = machine.progress(stream).unwrap();
            drive(&mut machine, |m| m.reached(stream, submitted));
        }
    }
    assert_eq!(COUNT.get() - before, 0);
}
