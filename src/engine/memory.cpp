#include "engine/memory.hpp"

#include <algorithm>
#include <new>

#include <tandem/error.hpp>

namespace tandem::engine {

device::BufferRef Memory::try_allocate(size_t bytes) {
  try {
    return from_device(bytes);
  } catch (const ResourceError&) {
  } catch (const std::bad_alloc&) {
  }
  return {};
}

device::BufferRef Memory::allocate_fixed(size_t bytes) {
  if (device::BufferRef b = allocate_if_room(bytes)) return b;
  give_back_();
  return from_device(bytes);
}

device::BufferRef Memory::allocate_if_room(size_t bytes) {
  if (device::BufferRef b = try_allocate(bytes)) return b;
  drop_spares();
  if (device::BufferRef b = try_allocate(bytes)) return b;
  while (residents_ && residents_->spill(missing(bytes)) > 0)
    if (device::BufferRef b = try_allocate(bytes)) return b;
  return {};
}

size_t Memory::missing(size_t bytes) const {
  const device::Account& account = device_.memory();
  const size_t wanted = device::Account::counted(bytes), limit = account.limit(), in_use = account.in_use();
  const size_t left = limit > in_use ? limit - in_use : 0;
  return wanted > left ? wanted - left : wanted;  // enough is left, but not in one piece
}

device::BufferRef Memory::allocate(size_t bytes) {
  device::BufferRef memory = allocate_fixed(bytes);
  return residents_ ? device::BufferRef(new ResidentBuffer(*residents_, std::move(memory))) : memory;
}

Memory::Spare Memory::take_spare(size_t bytes, bool is_double_buffered) {
  Spare dropped;
  std::unique_lock lock(mutex_);
  Spares& all = spares(is_double_buffered);
  const auto fit = std::ranges::lower_bound(all, bytes, {}, [](const Spare& s) { return s.buffer->bytes(); });
  if (fit == all.end()) {
    if (!all.empty()) {
      dropped = std::move(all.back());
      all.pop_back();
    }
    lock.unlock();
    dropped.wait();
    return {};
  }
  Spare found = std::move(*fit);
  all.erase(fit);
  return found;
}

void Memory::drop_spares() {
  Spares dropped, doubles;
  {
    std::lock_guard lock(mutex_);
    dropped.swap(spares_);
    doubles.swap(double_buffers_);
  }
  for (const Spares* all : {&dropped, &doubles})
    for (const Spare& s : *all) s.wait();
  dropped.clear();
  doubles.clear();
  device_.trim();
}

void Memory::Spare::wait() const {
  for (const auto& event : used) {
    if (!event) continue;
    try {
      event->synchronize();
    } catch (const Error&) {  // NOLINT: who reads what was to be copied is told
    }
  }
}

Memory::Arena::Arena(Memory& memory, size_t bytes, bool is_double_buffered) : memory_(memory), is_double_buffered_(is_double_buffered) {
  if (bytes == 0) return;
  if (is_double_buffered) bytes = 2 * codegen::align_up(bytes);
  taken_ = memory.take_spare(bytes, is_double_buffered);
  const bool is_pinned = memory.kind_ == Kind::Pinned;
  device::Device& device = memory.device_;
  if (is_pinned) taken_.wait();
  if (!taken_.buffer) {
    taken_.buffer = memory.allocate_fixed(bytes);
    for (int half = 0; half < (is_double_buffered ? 2 : is_pinned ? 1 : 0); ++half) {
      taken_.used[half] = device.make_event();
      // Whose memory it was may still use it, in the order of the compute stream.
      if (is_double_buffered) device.stream(device::StreamKind::Compute).record(*taken_.used[half]);
    }
  }
  if (!is_double_buffered) return;
  taken_.half ^= 1;
  device.stream(device::StreamKind::Upload).wait(*taken_.used[taken_.half]);
}

void* Memory::Arena::data() const {
  if (!taken_.buffer) return nullptr;
  return static_cast<char*>(taken_.buffer->data()) + (taken_.half ? taken_.buffer->bytes() / 2 : 0);
}

Memory::Arena::~Arena() {
  if (!taken_.buffer) return;
  if (auto& used = taken_.used[taken_.half]) memory_.device_.stream(device::StreamKind::Compute).record(*used);
  std::lock_guard lock(memory_.mutex_);
  Spares& all = memory_.spares(is_double_buffered_);
  const auto at = std::ranges::upper_bound(all, taken_.buffer->bytes(), {}, [](const Spare& s) { return s.buffer->bytes(); });
  try {
    all.insert(at, std::move(taken_));
  } catch (const std::bad_alloc&) {  // then it is not kept
  }
}

}  // namespace tandem::engine
