// GPU events on Vulkan: the C interface of fencepost. Generated from shim/src/capi.rs by cbindgen.

#ifndef FENCEPOST_H
#define FENCEPOST_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// How a call ended.
typedef enum fencepost_status {
  // Done.
  FENCEPOST_STATUS_OK = 0,
  // Not done yet: a query of a recording that has not ended, or a wait that ran out of time.
  FENCEPOST_STATUS_NOT_READY = 1,
  // The driver refused; the call may be made again.
  FENCEPOST_STATUS_REFUSED = -1,
  // The device is lost; handles can still be destroyed.
  FENCEPOST_STATUS_LOST = -2,
  // The caller's mistake.
  FENCEPOST_STATUS_INVALID = -3,
  // No such device, driver or loader.
  FENCEPOST_STATUS_NO_DEVICE = -4,
} fencepost_status;

// Memory that host and device share.
typedef struct fencepost_buffer fencepost_buffer;

// A device.
typedef struct fencepost_device fencepost_device;

// An event.
typedef struct fencepost_event fencepost_event;

// A stream.
typedef struct fencepost_stream fencepost_stream;

// A queue that an application lends.
typedef struct fencepost_queue {
  // Its family.
  uint32_t family;
  // Its position in the family.
  uint32_t index;
  // Called before a submit; the application calls it too, or has one lock of its own in both. May be null, with `unlock`, if
  // nobody else submits to the queue.
  void (*lock)(void*);
  // Called after it.
  void (*unlock)(void*);
  // Handed to both.
  void *user;
} fencepost_queue;

// An application's Vulkan. It outlives the fencepost device and what is made on it.
typedef struct fencepost_adopted {
  // `vkGetInstanceProcAddr`, a `PFN_vkGetInstanceProcAddr`.
  void *get_instance_proc_addr;
  // A `VkInstance`.
  void *instance;
  // A `VkPhysicalDevice`.
  void *physical_device;
  // A `VkDevice` of Vulkan 1.2 with `timelineSemaphore`.
  void *device;
  // The queues that fencepost may use.
  const struct fencepost_queue *queues;
  // How many.
  size_t queue_count;
  // Whether the feature `synchronization2` is enabled.
  bool synchronization2;
  // Whether the feature `hostQueryReset` is enabled.
  bool host_query_reset;
} fencepost_adopted;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// What the last call of this thread that failed says. Valid until the next one fails.
const char *fencepost_last_error(void);

// Opens a Vulkan device by number, UUID or a part of its name; null for the one that `FENCEPOST_DEVICE` names, or the
// best. Null on failure.
struct fencepost_device *fencepost_device_open(const char *name);

// A simulated device, whose scheduler draws from the seed.
struct fencepost_device *fencepost_device_simulated(uint64_t seed);

// Uses an application's device. Null on failure.
struct fencepost_device *fencepost_device_adopt(const struct fencepost_adopted *adopted);

// The device ends with its last stream, event and buffer, and then waits for what it was given to do.
void fencepost_device_close(struct fencepost_device *device);

// A stream on the queue of this number, or, if it is negative, on one that can run shaders. Null on failure.
struct fencepost_stream *fencepost_stream_create(const struct fencepost_device *device,
                                                 int32_t queue);

// What the stream holds is submitted.
void fencepost_stream_destroy(struct fencepost_stream *stream);

// Calls back with the `VkCommandBuffer` of the open batch (null on a simulated device), to add commands to it. The
// function may not call fencepost.
enum fencepost_status fencepost_stream_record(const struct fencepost_stream *stream,
                                              void (*commands)(void*, void*),
                                              void *user);

// Hands the open batch to the queue.
enum fencepost_status fencepost_stream_flush(const struct fencepost_stream *stream);

// Blocks until everything issued has ended.
enum fencepost_status fencepost_stream_synchronize(const struct fencepost_stream *stream);

// An event, never recorded. Null on failure.
struct fencepost_event *fencepost_event_create(const struct fencepost_device *device);

// Waits for the event keep their meaning.
void fencepost_event_destroy(struct fencepost_event *event);

// Names everything issued on the stream so far.
enum fencepost_status fencepost_event_record(const struct fencepost_event *event,
                                             const struct fencepost_stream *stream);

// Work issued on the stream from now on starts after what was recorded. Does not block.
enum fencepost_status fencepost_event_wait(const struct fencepost_event *event,
                                           const struct fencepost_stream *stream);

// Blocks until what was recorded has ended, or for so many nanoseconds: `UINT64_MAX` for ever.
enum fencepost_status fencepost_event_synchronize(const struct fencepost_event *event,
                                                  uint64_t nanoseconds);

// Whether what was recorded has ended.
enum fencepost_status fencepost_event_query(const struct fencepost_event *event);

// Memory that host and device share. Null on failure.
struct fencepost_buffer *fencepost_buffer_create(const struct fencepost_device *device,
                                                 uint64_t size);

// The memory stays until the device has done what was issued by now.
void fencepost_buffer_destroy(struct fencepost_buffer *buffer);

// The host reads.
enum fencepost_status fencepost_buffer_read(const struct fencepost_buffer *buffer,
                                            uint64_t offset,
                                            void *bytes,
                                            size_t size);

// Fills a part of a buffer with a word.
enum fencepost_status fencepost_stream_fill(const struct fencepost_stream *stream,
                                            const struct fencepost_buffer *buffer,
                                            uint64_t offset,
                                            uint64_t size,
                                            uint32_t word);

// Copies between buffers.
enum fencepost_status fencepost_stream_copy(const struct fencepost_stream *stream,
                                            const struct fencepost_buffer *from,
                                            uint64_t from_offset,
                                            const struct fencepost_buffer *to,
                                            uint64_t to_offset,
                                            uint64_t size);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FENCEPOST_H */
