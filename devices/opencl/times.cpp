#include "times.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "loader.hpp"

namespace tandem::opencl {
namespace {

constexpr size_t kMostPending = 256;  // before those that are done are looked for

profile::Time device_time(cl_event event, cl_profiling_info what) {
  cl_ulong value = 0;
  functions().GetEventProfilingInfo(event, what, sizeof value, &value, nullptr);
  return static_cast<profile::Time>(value);
}

}  // namespace

thread_local Commands* Capture::current_ = nullptr;

void Capture::keep(cl_event event) {
  if (!current_->first) {
    current_->first = event;
    return;
  }
  if (current_->last) functions().ReleaseEvent(current_->last);
  current_->last = event;
}

// The host learns of an end a little later than it was: the least of some differences is the nearest.
Times::Times(cl_command_queue queue) : offset_(std::numeric_limits<profile::Time>::max()) {
  constexpr int kTries = 5;
  for (int i = 0; i < kTries; ++i) {
    cl_event marker = nullptr;
    if (functions().EnqueueMarkerWithWaitList(queue, 0, nullptr, &marker) != CL_SUCCESS) continue;
    functions().Finish(queue);
    offset_ = std::min(offset_, profile::now() - device_time(marker, CL_PROFILING_COMMAND_END));
    functions().ReleaseEvent(marker);
  }
}

Times::~Times() {
  for (const Pending& p : pending_)
    for (cl_event e : {p.commands.first, p.commands.last})
      if (e) functions().ReleaseEvent(e);
}

profile::Time Times::host_time(cl_event event, cl_profiling_info what) const { return device_time(event, what) + offset_; }

void Times::add(const profile::Piece& piece, const Commands& commands) {
  if (!commands.first) return;
  pending_.push_back({piece, commands});
  if (pending_.size() > kMostPending) tell();
}

void Times::tell() {
  while (!pending_.empty()) {
    const Pending& p = pending_.front();
    cl_int status = CL_QUEUED;
    functions().GetEventInfo(p.commands.last ? p.commands.last : p.commands.first, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status,
                             &status, nullptr);
    if (status > CL_COMPLETE) return;  // errors are below, and have no times
    if (status == CL_COMPLETE) tell(p);
    for (cl_event e : {p.commands.first, p.commands.last})
      if (e) functions().ReleaseEvent(e);
    pending_.pop_front();
  }
}

void Times::tell(const Pending& p) {
  const profile::Time end = host_time(p.commands.last ? p.commands.last : p.commands.first, CL_PROFILING_COMMAND_END);
  // A barrier takes no time itself: what was waited began no earlier than here, and no earlier than what was before it ended.
  const bool waits = p.piece.kind() == profile::Kind::StreamWait;
  const profile::Time begin = waits ? p.piece.when_given() : host_time(p.commands.first, CL_PROFILING_COMMAND_START);
  p.piece.done(std::min(begin, end), end);
}

}  // namespace tandem::opencl
