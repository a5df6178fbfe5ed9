// Scratch memory of a launch that each thread has a piece of.
#pragma once
#include "base/thread_pool.hpp"
#include "codegen/kernel.hpp"

namespace tandem::cpu {

class WorkerScratch {
 public:
  WorkerScratch() = default;
  WorkerScratch(size_t bytes_each, int threads) : each_(codegen::align_up(bytes_each)), threads_(threads) {}
  size_t bytes() const { return each_ * static_cast<size_t>(threads_); }
  // The calling thread's piece. A thread that works alone on this launch may have any number, of another pool.
  void* mine(void* scratch) const {
    return static_cast<char*>(scratch) + each_ * static_cast<size_t>(ThreadPool::this_worker() % threads_);
  }

 private:
  size_t each_ = 0;
  int threads_ = 1;
};

}  // namespace tandem::cpu
