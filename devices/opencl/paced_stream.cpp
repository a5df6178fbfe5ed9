#include "paced_stream.hpp"

#include <cstring>

#include "base/text.hpp"
#include "core.hpp"
#include "staged.hpp"

namespace tandem::opencl {
namespace {

EventRef retained(const EventRef& e) {
  if (e) functions().RetainEvent(e.get());
  return EventRef(e.get());
}

}  // namespace

PacedStream::PacedStream(Core& core, device::StreamKind kind, std::unique_ptr<Pace> pace)
    : core_(core),
      track_(profile::Recorder::get().track(core.name, device::name(kind))),
      name_(cat(core.name, " ", device::name(kind))),
      pace_(std::move(pace)) {
  profile::Recorder::get().join(*this);
}
PacedStream::~PacedStream() {
  profile::Recorder::get().leave(*this);
  pace_.reset();
}

EventRef PacedStream::add(profile::Kind kind, size_t bytes, std::initializer_list<cl_mem> memory, std::function<void()> work,
                          EventRef also_before) {
  cl_int status = CL_SUCCESS;
  EventRef end(functions().CreateUserEvent(core_.context, &status));
  check(status, "making an event");
  std::vector<std::shared_ptr<void>> held;  // it may be given back meanwhile
  for (cl_mem m : memory) {
    functions().RetainMemObject(m);
    held.emplace_back(m, [](void* p) { functions().ReleaseMemObject(static_cast<cl_mem>(p)); });
  }
  if (work) work = [work = std::move(work), held = std::move(held)] { work(); };
  std::lock_guard lock(mutex_);
  std::vector<cl_event> before;
  // What was before is done by the same thread; its error is what its event has.
  for (EventRef* e : {&last_, &also_before})
    if (*e) before.push_back(e->release());
  last_ = retained(end);
  pace_->add(profile::Piece::given(track_, kind, bytes), std::move(before), retained(end).release(), bytes, std::move(work));
  return end;
}

EventRef PacedStream::last() {
  std::lock_guard lock(mutex_);
  return retained(last_);
}

void PacedStream::finish(EventRef end, const char* what) {
  if (!end) return;
  const profile::Span waiting(profile::Kind::HostWait, name_);
  cl_event e = end.get();
  check(functions().WaitForEvents(1, &e), what);
}

void PacedStream::launch(const std::shared_ptr<const device::Program>&, const device::LaunchArgs&) {
  internal_error("a kernel is launched on ", name_, ", which is for copies");
}

void PacedStream::upload(void* to, const void* host, size_t bytes) {
  if (bytes == 0) return;
  const Place place = core_.memory->at(to);
  const bool is_pinned = core_.pinned->contains(host);
  if (!is_pinned && bytes <= kMostStagedBytes)
    if (const std::shared_ptr<Staged> staged = Staged::copy_of(host, bytes)) {
      add(profile::Kind::Upload, bytes, {place.memory}, [=] { std::memcpy(place.host, staged->data(), staged->bytes()); });
      return;
    }
  EventRef end = add(profile::Kind::Upload, bytes, {place.memory}, [=] { std::memcpy(place.host, host, bytes); });
  if (!is_pinned) finish(std::move(end), "upload");
}

void PacedStream::upload_rows(void* to, const device::HostRows& rows) {
  const size_t bytes = rows.row_bytes * rows.numbers.size();
  if (bytes == 0) return;
  const std::shared_ptr<Staged> packed = Staged::copy_of(rows);
  if (!packed) return device::Stream::upload_rows(to, rows);
  const Place place = core_.memory->at(to);
  add(profile::Kind::Upload, bytes, {place.memory}, [=] { std::memcpy(place.host, packed->data(), packed->bytes()); });
}

void PacedStream::download(void* host, const void* from, size_t bytes) {
  if (bytes == 0) return;
  const Place place = core_.memory->at(from);
  add(profile::Kind::Download, bytes, {place.memory}, [=] { std::memcpy(host, place.host, bytes); });
}

void PacedStream::copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0 || to == from) return;
  const Place a = core_.memory->at(from), b = core_.memory->at(to);
  add(profile::Kind::Copy, 0, {a.memory, b.memory}, [=] { std::memmove(b.host, a.host, bytes); });
}

void PacedStream::fill(void* to, uint8_t value, size_t bytes) {
  if (bytes == 0) return;
  const Place place = core_.memory->at(to);
  add(profile::Kind::Fill, 0, {place.memory}, [=] { std::memset(place.host, value, bytes); });
}

void PacedStream::record(device::Event& event) { static_cast<OpenClEvent&>(event).set(last().release()); }

void PacedStream::wait(device::Event& event) {
  auto* ours = dynamic_cast<OpenClEvent*>(&event);
  if (!ours || ours->core().context != core_.context) return event.synchronize();
  if (&ours->core() != &core_) core_.failures->depend_on(ours->core().failures);
  if (EventRef e(ours->retained()); e) add(profile::Kind::StreamWait, 0, {}, {}, std::move(e));
}

// What failed is told once: what is added from then on does not know of it.
void PacedStream::synchronize() {
  EventRef end = last();
  cl_event const waited = end.get();
  const auto forget = [&] {
    std::lock_guard lock(mutex_);
    if (last_.get() == waited) last_.reset();
  };
  try {
    finish(std::move(end), "waiting for a stream");
  } catch (...) {
    forget();
    throw;
  }
  forget();
  core_.failures->check(Failures::Who::Copies, 0);
}

void PacedStream::report() {
  if (const EventRef end = last()) {
    cl_event e = end.get();
    functions().WaitForEvents(1, &e);
  }
}

}  // namespace tandem::opencl
