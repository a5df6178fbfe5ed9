// The account of all elements that an iterator keeps ahead. Byte-exact: what is taken is what the elements have.
#pragma once
#include <atomic>
#include <cstddef>

#include <tandem/data/options.hpp>

namespace tandem::data {

size_t free_memory_bytes();  // what the host, or the group that this process is limited to, still has

class Budget {
 public:
  explicit Budget(size_t limit) : limit_(limit) {}
  bool take(size_t bytes);         // false when they do not fit
  void take_anyway(size_t bytes);  // what is there already
  void give(size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  MemoryUse use() const { return {used_.load(), peak_.load(), limit_}; }
  size_t limit() const { return limit_; }

 private:
  void raise_peak(size_t used);
  const size_t limit_;
  std::atomic<size_t> used_{0}, peak_{0};
};

// Bytes that one holder has taken; given back at its end.
class Held {
 public:
  explicit Held(Budget& budget) : budget_(budget) {}
  ~Held() { budget_.give(bytes_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  // For buffers whose size the user asked for. ResourceError with both numbers when it does not fit.
  void add(size_t bytes, const char* what);
  void remove(size_t bytes) {
    bytes_ -= bytes;
    budget_.give(bytes);
  }
  size_t bytes() const { return bytes_; }

 private:
  Budget& budget_;
  size_t bytes_ = 0;
};

}  // namespace tandem::data
