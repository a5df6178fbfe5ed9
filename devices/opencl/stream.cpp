#include "stream.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/text.hpp"
#include "core.hpp"
#include "opencl_program.hpp"
#include "staged.hpp"

namespace tandem::opencl {
namespace {

constexpr size_t kBetweenBytes = size_t{64} << 10;  // of an overlapping copy's way

}  // namespace

// ---- events ----

OpenClEvent::OpenClEvent(Core& core) : core_(core) {}
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
  const profile::Span waiting(profile::Kind::HostWait, "an event");
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

OpenClStream::OpenClStream(Core& core, device::StreamKind kind, std::unique_ptr<Pace> pace)
    : core_(core),
      kind_(kind),
      pace_(std::move(pace)),
      track_(profile::Recorder::get().track(core.name, device::name(kind))),
      name_(cat(core.name, " ", device::name(kind))) {
  make_queue(false);
  profile::Recorder::get().join(*this);
}
OpenClStream::~OpenClStream() {
  profile::Recorder::get().leave(*this);
  functions().Finish(queue_);
  pace_.reset();
  times_.reset();
  functions().ReleaseCommandQueue(queue_);
}

void OpenClStream::make_queue(bool keeps_times) {
  cl_int status = CL_SUCCESS;
  cl_command_queue made = functions().CreateCommandQueue(core_.context, core_.device, keeps_times ? CL_QUEUE_PROFILING_ENABLE : 0, &status);
  check(status, "making a queue");
  if (queue_) functions().ReleaseCommandQueue(queue_);
  queue_ = made;
  times_.reset();
  if (keeps_times) times_.emplace(queue_);
}

void OpenClStream::follow_profile() {
  const bool is_on = profile::Recorder::is_on();
  if (is_on == times_.has_value()) return;
  check(functions().Finish(queue_), "waiting for a stream");
  make_queue(is_on);
}

void OpenClStream::given(const profile::Piece& piece, const Commands& commands) {
  if (commands.first && times_) times_->add(piece, commands);
}

void OpenClStream::report() {
  std::lock_guard lock(mutex_);
  functions().Finish(queue_);
  if (times_) times_->tell();
}

void OpenClStream::launch(const std::shared_ptr<const device::Program>& program, const device::LaunchArgs& args) {
  std::lock_guard lock(mutex_);
  follow_profile();
  const profile::Piece launched = piece(profile::Kind::Launch);
  Commands commands;
  EventRef begin(pace_ && pace_->slows_launches() ? marker() : nullptr);
  const Capture capture(launched && !begin ? &commands : nullptr);  // one that is paced is done when its time has passed
  static_cast<const OpenClProgram&>(*program).enqueue(core_, queue_, args);
  given(launched, commands);
  if (begin) {
    EventRef done(marker());
    cl_event after = held();
    pace_->add_launch(launched, begin.release(), done.release(), after);
  }
  functions().Flush(queue_);
}

// What is given to the queue later waits for the event, which is the caller's to set.
cl_event OpenClStream::held() {
  cl_int status = CL_SUCCESS;
  cl_event after = functions().CreateUserEvent(core_.context, &status);
  check(status, "making an event");
  EventRef kept(after);
  check(functions().EnqueueBarrierWithWaitList(queue_, 1, &after, nullptr), "waiting for what is paced");
  functions().Flush(queue_);
  return kept.release();
}

cl_event OpenClStream::marker() {
  cl_event e = nullptr;
  check(functions().EnqueueMarkerWithWaitList(queue_, 0, nullptr, &e), "marking a place in a queue");
  functions().Flush(queue_);  // another queue may wait for it
  return e;
}

// What is given to the queue later waits for the copy, and the copy for what was given before.
void OpenClStream::add_paced(cl_mem memory, profile::Kind kind, size_t bytes, std::function<void()> copy) {
  follow_profile();
  const profile::Piece copied = piece(kind, bytes);
  EventRef before(marker());
  cl_event after = held();
  functions().RetainMemObject(memory);  // it may be given back meanwhile
  pace_->add(copied, {before.release()}, after, bytes, [copy = std::move(copy), memory] {
    copy();
    functions().ReleaseMemObject(memory);
  });
}

void OpenClStream::upload(void* to, const void* host, size_t bytes) {
  if (bytes == 0) return;
  if (!core_.pinned->contains(host) && bytes <= kMostStagedBytes)
    if (std::unique_ptr<Staged> staged = Staged::copy_of(host, bytes)) return upload_staged(to, std::move(staged));
  upload_in_place(to, host, bytes);
}

void OpenClStream::upload_in_place(void* to, const void* host, size_t bytes) {
  const Place place = core_.memory->at(to);
  const bool waits = !core_.pinned->contains(host);
  cl_event done = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (pace_) {
      add_paced(place.memory, profile::Kind::Upload, bytes, [=] { std::memcpy(place.host, host, bytes); });
      if (waits) done = marker();
    } else {
      follow_profile();
      const profile::Piece uploaded = piece(profile::Kind::Upload, bytes);
      Commands commands;
      check(functions().EnqueueWriteBuffer(queue_, place.memory, waits ? CL_TRUE : CL_FALSE, place.offset, bytes, host, 0, nullptr,
                                           wanted(uploaded, commands)),
            "upload");
      given(uploaded, commands);
    }
  }
  if (!done) return;
  const profile::Span waiting(profile::Kind::HostWait, name_);
  const cl_int status = functions().WaitForEvents(1, &done);
  functions().ReleaseEvent(done);
  check(status, "upload");
}

void OpenClStream::upload_staged(void* to, std::unique_ptr<Staged> staged) {
  const Place place = core_.memory->at(to);
  const size_t bytes = staged->bytes();
  std::lock_guard lock(mutex_);
  if (pace_) {
    const std::shared_ptr<Staged> shared(std::move(staged));
    return add_paced(place.memory, profile::Kind::Upload, bytes, [=] { std::memcpy(place.host, shared->data(), bytes); });
  }
  follow_profile();
  const profile::Piece uploaded = piece(profile::Kind::Upload, bytes);
  cl_event done = nullptr;
  check(functions().EnqueueWriteBuffer(queue_, place.memory, CL_FALSE, place.offset, bytes, staged->data(), 0, nullptr, &done), "upload");
  const cl_int status = functions().SetEventCallback(done, CL_COMPLETE, Staged::free, staged.get());
  if (status == CL_SUCCESS)
    staged.release();
  else
    functions().WaitForEvents(1, &done);
  if (uploaded && times_)
    times_->add(uploaded, {done});
  else
    functions().ReleaseEvent(done);
  functions().Flush(queue_);
}

void OpenClStream::upload_rows(void* to, const device::HostRows& rows) {
  if (rows.row_bytes * rows.numbers.size() == 0) return;
  if (std::unique_ptr<Staged> packed = Staged::copy_of(rows)) return upload_staged(to, std::move(packed));
  device::Stream::upload_rows(to, rows);
}

void OpenClStream::download(void* host, const void* from, size_t bytes) {
  if (bytes == 0) return;
  const Place place = core_.memory->at(from);
  std::lock_guard lock(mutex_);
  if (pace_) return add_paced(place.memory, profile::Kind::Download, bytes, [=] { std::memcpy(host, place.host, bytes); });
  follow_profile();
  const profile::Piece downloaded = piece(profile::Kind::Download, bytes);
  Commands commands;
  check(functions().EnqueueReadBuffer(queue_, place.memory, CL_FALSE, place.offset, bytes, host, 0, nullptr, wanted(downloaded, commands)),
        "download");
  given(downloaded, commands);
  functions().Flush(queue_);
}

void OpenClStream::copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0 || to == from) return;
  const Place a = core_.memory->at(from), b = core_.memory->at(to);
  const bool overlaps = a.memory == b.memory && a.offset < b.offset + bytes && b.offset < a.offset + bytes;
  std::lock_guard lock(mutex_);
  follow_profile();
  const profile::Piece copied = piece(profile::Kind::Copy, bytes);
  Commands commands;
  if (overlaps) {
    copy_in_pieces(a, b.offset, bytes, copied ? &commands : nullptr);
    given(copied, commands);
    functions().Flush(queue_);
    return;
  }
  check(functions().EnqueueCopyBuffer(queue_, a.memory, b.memory, a.offset, b.offset, bytes, 0, nullptr, wanted(copied, commands)), "copy");
  given(copied, commands);
  functions().Flush(queue_);
}

// Within one buffer, which OpenCL's copy may not where both ends overlap: in pieces, the first one that nobody still has to read. They are
// as long as the distance, or go by way of a little memory.
void OpenClStream::copy_in_pieces(const Place& from, size_t to, size_t bytes, Commands* commands) {
  const bool goes_up = to > from.offset;
  const size_t distance = goes_up ? to - from.offset : from.offset - to;
  const size_t piece = std::max(distance, std::min(bytes, kBetweenBytes));
  void* way = nullptr;
  if (distance < piece) way = core_.memory->allocate(piece);
  cl_int status = CL_SUCCESS;
  const auto enqueue = [&](cl_mem source, cl_mem target, size_t source_at, size_t target_at, size_t count) {
    if (status != CL_SUCCESS) return;
    cl_event* event = !commands ? nullptr : commands->first ? &commands->last : &commands->first;
    if (event && *event) functions().ReleaseEvent(std::exchange(*event, nullptr));
    status = functions().EnqueueCopyBuffer(queue_, source, target, source_at, target_at, count, 0, nullptr, event);
  };
  for (size_t done = 0; done < bytes;) {
    const size_t count = std::min(piece, bytes - done), at = goes_up ? bytes - done - count : done;
    if (way) {
      const Place between = core_.memory->at(way);
      enqueue(from.memory, between.memory, from.offset + at, between.offset, count);
      enqueue(between.memory, from.memory, between.offset, to + at, count);
    } else {
      enqueue(from.memory, from.memory, from.offset + at, to + at, count);
    }
    done += count;
  }
  if (way) core_.memory->take_back(way, piece);
  check(status, "copy");
}

void OpenClStream::fill(void* to, uint8_t value, size_t bytes) {
  if (bytes == 0) return;
  const Place place = core_.memory->at(to);
  std::lock_guard lock(mutex_);
  follow_profile();
  const profile::Piece filled = piece(profile::Kind::Fill, bytes);
  Commands commands;
  check(functions().EnqueueFillBuffer(queue_, place.memory, &value, 1, place.offset, bytes, 0, nullptr, wanted(filled, commands)), "fill");
  given(filled, commands);
  functions().Flush(queue_);
}

void OpenClStream::record(device::Event& event) {
  std::lock_guard lock(mutex_);
  static_cast<OpenClEvent&>(event).set(marker());
}

void OpenClStream::wait(device::Event& event) {
  auto* ours = dynamic_cast<OpenClEvent*>(&event);
  if (!ours || ours->core().context != core_.context) return event.synchronize();  // queues of one context wait for its events only
  if (&ours->core() != &core_) core_.failures->depend_on(ours->core().failures);
  cl_event e = ours->retained();
  if (!e) return;
  std::lock_guard lock(mutex_);
  const profile::Piece waited = times_ ? piece(profile::Kind::StreamWait) : profile::Piece();
  Commands commands;
  const cl_int status = functions().EnqueueBarrierWithWaitList(queue_, 1, &e, wanted(waited, commands));
  functions().ReleaseEvent(e);
  check(status, "waiting for an event");
  given(waited, commands);
  functions().Flush(queue_);
}

// Not under the lock: others may add to the queue meanwhile.
void OpenClStream::synchronize() {
  const profile::Span waiting(profile::Kind::HostWait, name_);
  const int64_t given = kind_ == device::StreamKind::Compute ? core_.failures->last() : 0;
  cl_command_queue queue = nullptr;
  {
    std::lock_guard lock(mutex_);
    queue = queue_;
    functions().RetainCommandQueue(queue);  // another one may take its place
  }
  const cl_int status = functions().Finish(queue);
  functions().ReleaseCommandQueue(queue);
  check(status, "waiting for a stream");
  if (waiting.is_recorded()) {
    std::lock_guard lock(mutex_);
    if (times_) times_->tell();
  }
  core_.failures->check(kind_ == device::StreamKind::Compute ? Failures::Who::Computes : Failures::Who::Copies, given);
}

}  // namespace tandem::opencl
