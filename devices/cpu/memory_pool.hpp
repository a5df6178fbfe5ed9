// Host memory with its bookkeeping in front, so that one allocation serves handle and bytes. Freed blocks are kept for the next tensor of
// that size: an eager op must not pay for malloc, nor for fresh pages.
#pragma once
#include <map>
#include <mutex>

#include "device/device.hpp"

namespace tandem::cpu {

class MemoryPool {
 public:
  explicit MemoryPool(std::string name = "cpu", size_t limit_bytes = 0) : account_(std::move(name), limit_bytes) {}
  ~MemoryPool();
  device::BufferRef allocate(device::Device& owner, size_t bytes);
  void trim();                                     // frees the kept blocks, of the small ones those of this thread
  device::Account& account() { return account_; }  // of what tensors asked for; what the pool keeps is not in it

 private:
  friend class PooledBuffer;
  struct Block {
    void* memory;
    size_t capacity;
  };
  Block block_for(size_t bytes);
  void take_back(void* block, size_t bytes, size_t capacity);
  void* fresh(size_t capacity, size_t asked);

  device::Account account_;
  std::mutex mutex_;  // guards the large blocks; small ones are kept by each thread
  std::multimap<size_t, void*> large_;
  size_t large_bytes_ = 0;
};

}  // namespace tandem::cpu
