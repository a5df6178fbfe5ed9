// The account of all elements that an iterator keeps. Byte-exact: what is taken is what the elements have.
//
// Buffers whose size the user asked for (shuffle, cache) come first, and queues have what these never needed: whether a buffer fits must
// not depend on how far a queue happens to be ahead, and one that is emptied and filled again finds its place free.
#pragma once
#include <cstddef>
#include <mutex>

#include <tandem/data/options.hpp>

namespace tandem::data {

size_t free_memory_bytes();  // what the host, or the group that this process is limited to, still has

class Budget {
 public:
  explicit Budget(size_t limit) : limit_(limit) {}
  // For queues.
  bool take(size_t bytes);         // false when they do not fit
  void take_anyway(size_t bytes);  // what is there already
  void give(size_t bytes);
  // For buffers. What they hold came out of a queue or is in the caller's hands, so it is there already.
  bool hold(size_t bytes);  // false when all buffers together do not fit
  void release(size_t bytes);

  MemoryUse use() const;
  size_t limit() const { return limit_; }

 private:
  const size_t limit_;
  mutable std::mutex mutex_;
  size_t ahead_ = 0, held_ = 0, most_held_ = 0, peak_ = 0;
  void raise_peak();
};

// Bytes that one holder has taken; given back at its end.
class Held {
 public:
  explicit Held(Budget& budget) : budget_(budget) {}
  ~Held() { budget_.release(bytes_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  // For buffers whose size the user asked for. ResourceError with both numbers when it does not fit.
  void add(size_t bytes, const char* what);
  void remove(size_t bytes) {
    bytes_ -= bytes;
    budget_.release(bytes);
  }
  size_t bytes() const { return bytes_; }

 private:
  Budget& budget_;
  size_t bytes_ = 0;
};

}  // namespace tandem::data
