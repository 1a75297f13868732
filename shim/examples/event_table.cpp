// The event table of an ML runtime, in the manner of ggml's backend device: new, free, record, wait, synchronize.
//
// c++ -I shim/include event_table.cpp libfencepost_vulkan.a -lpthread -ldl -lm && ./a.out [sim|vulkan]

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "fencepost.h"

namespace {

void check(fencepost_status status) {
    if (status != FENCEPOST_STATUS_OK) {
        std::fprintf(stderr, "%s\n", fencepost_last_error());
        std::exit(1);
    }
}

template <typename T> T *made(T *handle) {
    if (handle == nullptr) {
        std::fprintf(stderr, "%s\n", fencepost_last_error());
        std::exit(1);
    }
    return handle;
}

// What the runtime knows: a device, contexts of it, events.
struct backend_device { fencepost_device *device; };
struct backend { fencepost_stream *stream; };
struct event { fencepost_event *event; };

event *event_new(backend_device *device) { return new event{made(fencepost_event_create(device->device))}; }

void event_free(event *e) {
    fencepost_event_destroy(e->event);
    delete e;
}

void event_record(backend *b, event *e) { check(fencepost_event_record(e->event, b->stream)); }
void event_wait(backend *b, event *e) { check(fencepost_event_wait(e->event, b->stream)); }
void event_synchronize(event *e) { check(fencepost_event_synchronize(e->event, UINT64_MAX)); }

} // namespace

int main(int argc, char **argv) {
    bool simulated = argc > 1 && std::strcmp(argv[1], "sim") == 0;
    backend_device device{made(simulated ? fencepost_device_simulated(1) : fencepost_device_open(nullptr))};
    backend a{made(fencepost_stream_create(device.device, -1))};
    backend b{made(fencepost_stream_create(device.device, -1))};
    fencepost_buffer *data = made(fencepost_buffer_create(device.device, 64));
    fencepost_buffer *copy = made(fencepost_buffer_create(device.device, 64));

    event *never = event_new(&device);
    event_wait(&a, never);
    event_synchronize(never);
    if (fencepost_event_query(never->event) != FENCEPOST_STATUS_OK) return 1;
    event_free(never);

    // A mistake has a name.
    if (fencepost_event_record(nullptr, a.stream) != FENCEPOST_STATUS_INVALID) return 1;
    if (std::strcmp(fencepost_last_error(), "event is null") != 0) return 1;

    event *written = event_new(&device), *read = event_new(&device);
    for (uint32_t round = 1; round <= 100; round++) {
        event_wait(&a, read);
        check(fencepost_stream_fill(a.stream, data, 0, 64, round));
        event_record(&a, written);
        event_wait(&b, written);
        check(fencepost_stream_copy(b.stream, data, 0, copy, 0, 64));
        event_record(&b, read);
        // The open wait that hangs other tables: recorded again and synchronized while b has not submitted.
        event_record(&a, written);
        event_synchronize(written);
        event_synchronize(read);
        std::vector<uint32_t> words(16);
        check(fencepost_buffer_read(copy, 0, words.data(), 64));
        for (uint32_t word : words) {
            if (word != round) {
                std::fprintf(stderr, "round %u read %u\n", round, word);
                return 1;
            }
        }
    }
    event_free(written);
    event_free(read);
    fencepost_buffer_destroy(data);
    fencepost_buffer_destroy(copy);
    fencepost_stream_destroy(a.stream);
    fencepost_stream_destroy(b.stream);
    fencepost_device_close(device.device);
    std::puts("all values are right");
    return 0;
}
