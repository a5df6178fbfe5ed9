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
  if (device::BufferRef b = try_allocate(bytes)) return b;
  drop_spares();
  if (device::BufferRef b = try_allocate(bytes)) return b;
  while (residents_ && residents_->spill(missing(bytes)) > 0)
    if (device::BufferRef b = try_allocate(bytes)) return b;
  give_back_();
  return from_device(bytes);
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

Memory::Spare Memory::take_spare(size_t bytes) {
  Spare dropped;
  std::unique_lock lock(mutex_);
  const auto fit = std::ranges::lower_bound(spares_, bytes, {}, [](const Spare& s) { return s.buffer->bytes(); });
  if (fit == spares_.end()) {
    if (!spares_.empty()) {
      dropped = std::move(spares_.back());
      spares_.pop_back();
    }
    lock.unlock();
    dropped.wait();
    return {};
  }
  Spare found = std::move(*fit);
  spares_.erase(fit);
  return found;
}

void Memory::drop_spares() {
  std::vector<Spare> dropped;
  {
    std::lock_guard lock(mutex_);
    dropped.swap(spares_);
  }
  for (const Spare& s : dropped) s.wait();
  dropped.clear();
  device_.trim();
}

void Memory::Spare::wait() const {
  if (!used) return;
  try {
    used->synchronize();
  } catch (const Error&) {  // NOLINT: who reads what was to be copied is told
  }
}

Memory::Arena::Arena(Memory& memory, size_t bytes) : memory_(memory) {
  if (bytes == 0) return;
  Spare spare = memory.take_spare(bytes);
  spare.wait();
  used_ = std::move(spare.used);
  buffer_ = spare.buffer ? std::move(spare.buffer) : memory.allocate_fixed(bytes);
  if (memory.kind_ == Kind::Pinned && !used_) used_ = memory.device_.make_event();
}

Memory::Arena::~Arena() {
  if (!buffer_) return;
  if (used_) memory_.device_.stream(device::StreamKind::Compute).record(*used_);
  std::lock_guard lock(memory_.mutex_);
  auto& spares = memory_.spares_;
  const auto at = std::ranges::upper_bound(spares, buffer_->bytes(), {}, [](const Spare& s) { return s.buffer->bytes(); });
  try {
    spares.insert(at, Spare{std::move(buffer_), std::move(used_)});
  } catch (const std::bad_alloc&) {  // then it is not kept
  }
}

}  // namespace tandem::engine
