// Scratch memory of a launch that each thread has a piece of.
#pragma once
#include "base/thread_pool.hpp"
#include "codegen/kernel.hpp"

namespace tandem::cpu {

// Between what different threads write. A core that reads in steps fetches ahead, also beyond the end of what it reads (12 KiB were seen);
// where another core keeps writing there, each of its lines waits until the copy is given up (65 ns).
inline constexpr size_t kGapBytes = size_t{16} << 10;

// The pieces lie with gaps around each.
class WorkerScratch {
 public:
  WorkerScratch() = default;
  WorkerScratch(size_t bytes_each, int threads)
      : gap_(threads > 1 && bytes_each > 0 ? kGapBytes : 0), each_(codegen::align_up(bytes_each) + gap_), threads_(threads) {}
  size_t bytes() const { return gap_ + each_ * static_cast<size_t>(threads_); }
  // The calling thread's piece. A thread that works alone on this launch may have any number, of another pool.
  void* mine(void* scratch) const {
    return static_cast<char*>(scratch) + gap_ + each_ * static_cast<size_t>(ThreadPool::this_worker() % threads_);
  }

 private:
  size_t gap_ = 0, each_ = 0;
  int threads_ = 1;
};

}  // namespace tandem::cpu
