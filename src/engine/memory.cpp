#include "engine/memory.hpp"

#include <algorithm>
#include <new>

#include <tandem/error.hpp>

namespace tandem::engine {

device::BufferRef Memory::allocate(size_t bytes) {
  try {
    return device_.allocate(bytes);
  } catch (const ResourceError&) {
  } catch (const std::bad_alloc&) {
  }
  give_back_();
  return device_.allocate(bytes);
}

device::BufferRef Memory::take_spare(size_t bytes) {
  device::BufferRef dropped;  // freed after the lock
  std::lock_guard lock(mutex_);
  const auto fit = std::ranges::lower_bound(spares_, bytes, {}, [](const device::BufferRef& b) { return b->bytes(); });
  if (fit == spares_.end()) {
    if (!spares_.empty()) {
      dropped = std::move(spares_.back());
      spares_.pop_back();
    }
    return {};
  }
  device::BufferRef found = std::move(*fit);
  spares_.erase(fit);
  return found;
}

void Memory::drop_spares() {
  {
    std::vector<device::BufferRef> dropped;
    std::lock_guard lock(mutex_);
    dropped.swap(spares_);
  }
  device_.trim();
}

Memory::Arena::Arena(Memory& memory, size_t bytes) : memory_(memory) {
  if (bytes == 0) return;
  buffer_ = memory.take_spare(bytes);
  if (!buffer_) buffer_ = memory.allocate(bytes);
}

Memory::Arena::~Arena() {
  if (!buffer_) return;
  std::lock_guard lock(memory_.mutex_);
  auto& spares = memory_.spares_;
  const auto at = std::ranges::upper_bound(spares, buffer_->bytes(), {}, [](const device::BufferRef& b) { return b->bytes(); });
  try {
    spares.insert(at, std::move(buffer_));
  } catch (const std::bad_alloc&) {  // then it is not kept
  }
}

}  // namespace tandem::engine
