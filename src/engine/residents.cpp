#include "engine/residents.hpp"

#include <tandem/error.hpp>

#include "profile/recorder.hpp"

namespace tandem::engine {

ResidentBuffer::ResidentBuffer(Residents& residents, device::BufferRef memory)
    : Buffer(memory->device(), memory->data(), memory->bytes()), residents_(residents), memory_(std::move(memory)) {
  std::lock_guard lock(residents_.mutex_);
  place_ = residents_.used_.insert(residents_.used_.end(), this);
}

ResidentBuffer::~ResidentBuffer() {
  std::lock_guard lock(residents_.mutex_);
  residents_.used_.erase(place_);
}

Residents::Moves Residents::moves() const {
  std::lock_guard lock(mutex_);
  return moves_;
}

void Residents::move_to_host(ResidentBuffer& b) {
  const profile::Doing doing("a tensor goes to the host, to make room");
  device::BufferRef there = device_.allocate_pinned(b.bytes());
  device_.stream(device::StreamKind::Compute).download(there->data(), b.data(), b.bytes());
  b.lie_at(host_, there->data());
  // The device's memory goes back in the order of the compute stream, so the copy still finds it.
  b.memory_ = std::move(there);
  ++moves_.spills;
  moves_.spilled_bytes += b.bytes();
}

size_t Residents::spill(size_t bytes) {
  std::lock_guard lock(mutex_);
  size_t given = 0;
  std::exception_ptr failed;
  for (ResidentBuffer* b : used_) {
    if (given >= bytes) break;
    if (b->pins_ > 0 || b->is_on_host() || b->bytes() == 0) continue;
    try {
      move_to_host(*b);
    } catch (const ResourceError&) {  // the host has no memory either
      failed = std::current_exception();
      break;
    }
    given += device::Account::counted(b->bytes());
  }
  if (given) device_.finish();  // the host may read them from now on
  if (given == 0 && failed) std::rethrow_exception(failed);
  return given;
}

void Residents::to_host(ResidentBuffer& b) {
  std::lock_guard lock(mutex_);
  move_to_host(b);
  device_.finish();
}

void Residents::to_device(ResidentBuffer& b, device::BufferRef memory) {
  std::lock_guard lock(mutex_);
  const profile::Doing doing("a tensor comes back to the device");
  device::Stream& stream = device_.stream(device::StreamKind::Compute);
  stream.upload(memory->data(), b.data(), b.bytes());
  // Pinned memory is read when the stream comes to it; it is kept until then.
  stream.synchronize();
  b.lie_at(device_, memory->data());
  b.memory_ = std::move(memory);
  ++moves_.returns;
  moves_.returned_bytes += b.bytes();
}

void Residents::Pins::add(device::Buffer& buffer) {
  auto* b = dynamic_cast<ResidentBuffer*>(&buffer);
  if (!b) return;
  Residents& all = b->residents_;
  std::lock_guard lock(all.mutex_);
  ++b->pins_;
  all.used_.splice(all.used_.end(), all.used_, b->place_);
  pinned_.push_back(b);
}

Residents::Pins::~Pins() {
  for (ResidentBuffer* b : pinned_) {
    std::lock_guard lock(b->residents_.mutex_);
    --b->pins_;
  }
}

}  // namespace tandem::engine
