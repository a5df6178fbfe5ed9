// Which values a device no longer has right, because work that was to make them failed. Runs are numbered; a buffer has the number of the
// run that wrote it last. A device that does everything at once gives numbers only to what was lost.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace tandem::device {

class Losses {
 public:
  // The number of a run whose work has been given to streams and may still fail.
  uint32_t begin_run() { return last_.fetch_add(1, std::memory_order_relaxed) + 1; }
  uint32_t last() const { return last_.load(std::memory_order_relaxed); }
  // All work up to this run has been done.
  void confirm(uint32_t run);
  // Something failed: what runs since the last confirmed one wrote is lost. Gives the number of the last of them.
  uint32_t fail(const std::string& why);

  bool any() const { return any_.load(std::memory_order_relaxed); }
  std::string of(uint32_t run) const;  // why what this run wrote is lost; empty: it is not

 private:
  struct Lost {
    uint32_t first, last;
    std::string why;
  };
  std::atomic<uint32_t> last_{0};
  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  uint32_t confirmed_ = 0;
  std::vector<Lost> lost_;
};

}  // namespace tandem::device
