#include "stream.hpp"

#include <cstring>

#include "base/text.hpp"
#include "core.hpp"
#include "opencl_program.hpp"

namespace tandem::opencl {
namespace {

constexpr size_t kMostStagedBytes = size_t{8} << 20;  // a larger upload waits until its source has been read

void CL_CALLBACK free_staged(cl_event, cl_int, void* staged) { delete[] static_cast<char*>(staged); }

}  // namespace

// ---- events ----

OpenClEvent::OpenClEvent(Core& core) : core_(core), context_(core.context) {}
OpenClEvent::~OpenClEvent() {
  if (event_) functions().ReleaseEvent(event_);
}
void OpenClEvent::set(cl_event event) {
  std::lock_guard lock(mutex_);
  if (event_) functions().ReleaseEvent(event_);
  event_ = event;
}
cl_event OpenClEvent::retained() const {
  std::lock_guard lock(mutex_);
  if (event_) functions().RetainEvent(event_);
  return event_;
}
void OpenClEvent::synchronize() {
  cl_event e = retained();
  if (!e) return;
  const cl_int status = functions().WaitForEvents(1, &e);
  functions().ReleaseEvent(e);
  check(status, "work before an event");
  core_.failures->check(Failures::Who::Copies);
}
bool OpenClEvent::has_happened() const {
  cl_event e = retained();
  if (!e) return true;
  cl_int status = CL_QUEUED;
  functions().GetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  functions().ReleaseEvent(e);
  return status <= CL_COMPLETE;  // errors are below
}

// ---- streams ----

OpenClStream::OpenClStream(Core& core, device::StreamKind kind, std::unique_ptr<PacedCopies> copies)
    : core_(core), kind_(kind), copies_(std::move(copies)) {
  cl_int status = CL_SUCCESS;
  queue_ = functions().CreateCommandQueue(core_.context, core_.device, 0, &status);
  check(status, "making a queue");
}
OpenClStream::~OpenClStream() {
  functions().Finish(queue_);
  copies_.reset();
  functions().ReleaseCommandQueue(queue_);
}

void OpenClStream::launch(const std::shared_ptr<const device::Program>& program, const device::LaunchArgs& args) {
  std::lock_guard lock(mutex_);
  static_cast<const OpenClProgram&>(*program).enqueue(core_, queue_, args);
  functions().Flush(queue_);
}

cl_event OpenClStream::marker() {
  cl_event e = nullptr;
  check(functions().EnqueueMarkerWithWaitList(queue_, 0, nullptr, &e), "marking a place in a queue");
  functions().Flush(queue_);  // another queue may wait for it
  return e;
}

// What is given to the queue later waits for the copy, and the copy for what was given before.
void OpenClStream::add_paced(cl_mem memory, size_t bytes, std::function<void()> copy) {
  cl_int status = CL_SUCCESS;
  cl_event before = marker();
  cl_event after = functions().CreateUserEvent(core_.context, &status);
  check(status, "making an event");
  functions().RetainEvent(after);
  status = functions().EnqueueBarrierWithWaitList(queue_, 1, &after, nullptr);
  functions().ReleaseEvent(after);
  check(status, "waiting for a copy");
  functions().Flush(queue_);
  functions().RetainMemObject(memory);  // it may be given back meanwhile
  copies_->add(before, after, bytes, [copy = std::move(copy), memory] {
    copy();
    functions().ReleaseMemObject(memory);
  });
}

void OpenClStream::upload(void* to, const void* host, size_t bytes) {
  if (bytes == 0) return;
  if (!core_.pinned->contains(host) && bytes <= kMostStagedBytes) {
    auto staged = std::make_unique_for_overwrite<char[]>(bytes);
    std::memcpy(staged.get(), host, bytes);
    return upload_staged(to, std::move(staged), bytes);
  }
  const Place place = core_.memory->at(to);
  const bool waits = !core_.pinned->contains(host);
  cl_event done = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (copies_) {
      add_paced(place.memory, bytes, [=] { std::memcpy(place.host, host, bytes); });
      if (waits) done = marker();
    } else {
      check(
          functions().EnqueueWriteBuffer(queue_, place.memory, waits ? CL_TRUE : CL_FALSE, place.offset, bytes, host, 0, nullptr, nullptr),
          "upload");
    }
  }
  if (!done) return;
  const cl_int status = functions().WaitForEvents(1, &done);
  functions().ReleaseEvent(done);
  check(status, "upload");
}

void OpenClStream::upload_staged(void* to, std::unique_ptr<char[]> staged, size_t bytes) {
  const Place place = core_.memory->at(to);
  std::lock_guard lock(mutex_);
  if (copies_) {
    const std::shared_ptr<char[]> shared(std::move(staged));
    return add_paced(place.memory, bytes, [=] { std::memcpy(place.host, shared.get(), bytes); });
  }
  cl_event done = nullptr;
  check(functions().EnqueueWriteBuffer(queue_, place.memory, CL_FALSE, place.offset, bytes, staged.get(), 0, nullptr, &done), "upload");
  const cl_int status = functions().SetEventCallback(done, CL_COMPLETE, free_staged, staged.get());
  if (status == CL_SUCCESS)
    staged.release();
  else
    functions().WaitForEvents(1, &done);
  functions().ReleaseEvent(done);
  functions().Flush(queue_);
}

void OpenClStream::upload_rows(void* to, const device::HostRows& rows) {
  const size_t bytes = rows.row_bytes * rows.numbers.size();
  if (bytes == 0) return;
  auto packed = std::make_unique_for_overwrite<char[]>(bytes);
  char* at = packed.get();
  for (const int64_t number : rows.numbers) {
    std::memcpy(at, static_cast<const char*>(rows.first) + number * rows.step_bytes, rows.row_bytes);
    at += rows.row_bytes;
  }
  upload_staged(to, std::move(packed), bytes);
}

void OpenClStream::download(void* host, const void* from, size_t bytes) {
  if (bytes == 0) return;
  const Place place = core_.memory->at(from);
  std::lock_guard lock(mutex_);
  if (copies_) return add_paced(place.memory, bytes, [=] { std::memcpy(host, place.host, bytes); });
  check(functions().EnqueueReadBuffer(queue_, place.memory, CL_FALSE, place.offset, bytes, host, 0, nullptr, nullptr), "download");
  functions().Flush(queue_);
}

void OpenClStream::copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0 || to == from) return;
  const Place a = core_.memory->at(from), b = core_.memory->at(to);
  const bool overlaps = a.memory == b.memory && a.offset < b.offset + bytes && b.offset < a.offset + bytes;
  std::lock_guard lock(mutex_);
  if (overlaps) {  // which OpenCL's copy may not: by way of memory that goes when both are done
    cl_int status = CL_SUCCESS;
    cl_mem between = functions().CreateBuffer(core_.context, CL_MEM_READ_WRITE, bytes, nullptr, &status);
    check(status, "making memory for a copy");
    status = functions().EnqueueCopyBuffer(queue_, a.memory, between, a.offset, 0, bytes, 0, nullptr, nullptr);
    if (status == CL_SUCCESS) status = functions().EnqueueCopyBuffer(queue_, between, b.memory, 0, b.offset, bytes, 0, nullptr, nullptr);
    functions().ReleaseMemObject(between);
    check(status, "copy");
    functions().Flush(queue_);
    return;
  }
  check(functions().EnqueueCopyBuffer(queue_, a.memory, b.memory, a.offset, b.offset, bytes, 0, nullptr, nullptr), "copy");
  functions().Flush(queue_);
}

void OpenClStream::fill(void* to, uint8_t value, size_t bytes) {
  if (bytes == 0) return;
  const Place place = core_.memory->at(to);
  std::lock_guard lock(mutex_);
  check(functions().EnqueueFillBuffer(queue_, place.memory, &value, 1, place.offset, bytes, 0, nullptr, nullptr), "fill");
  functions().Flush(queue_);
}

void OpenClStream::record(device::Event& event) {
  std::lock_guard lock(mutex_);
  static_cast<OpenClEvent&>(event).set(marker());
}

void OpenClStream::wait(device::Event& event) {
  auto* ours = dynamic_cast<OpenClEvent*>(&event);
  if (!ours || ours->context() != core_.context) return event.synchronize();  // queues of one context wait for its events only
  cl_event e = ours->retained();
  if (!e) return;
  std::lock_guard lock(mutex_);
  const cl_int status = functions().EnqueueBarrierWithWaitList(queue_, 1, &e, nullptr);
  functions().ReleaseEvent(e);
  check(status, "waiting for an event");
  functions().Flush(queue_);
}

// Not under the lock: others may add to the queue meanwhile.
void OpenClStream::synchronize() {
  const int64_t given = kind_ == device::StreamKind::Compute ? core_.failures->last() : 0;
  check(functions().Finish(queue_), "waiting for a stream");
  core_.failures->check(kind_ == device::StreamKind::Compute ? Failures::Who::Computes : Failures::Who::Copies, given);
}

}  // namespace tandem::opencl
