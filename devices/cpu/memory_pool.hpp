// Host memory with its bookkeeping in front, so that one allocation serves handle and bytes. Freed blocks are kept for the next tensor of
// that size: an eager op must not pay for malloc, nor for fresh pages.
#pragma once
#include <atomic>
#include <map>
#include <mutex>

#include "device/device.hpp"

namespace tandem::cpu {

class MemoryPool {
 public:
  ~MemoryPool();
  device::BufferRef allocate(device::Device& owner, size_t bytes);
  void trim();  // frees the kept blocks, of the small ones those of this thread
  size_t in_use() const { return in_use_.load(std::memory_order_relaxed); }
  size_t peak() const { return peak_.load(std::memory_order_relaxed); }

 private:
  friend class PooledBuffer;
  void take_back(void* block, size_t capacity);
  void* fresh(size_t capacity, size_t asked);

  std::atomic<size_t> in_use_{0}, peak_{0};
  std::mutex mutex_;  // guards the large blocks; small ones are kept by each thread
  std::multimap<size_t, void*> large_;
  size_t large_bytes_ = 0;
};

}  // namespace tandem::cpu
