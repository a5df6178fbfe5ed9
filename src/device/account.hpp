// Who counts a device's bytes: one class for every device, so that a plan's peak can be compared with the measured one to the byte.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "codegen/kernel.hpp"

namespace tandem::device {

class Account {
 public:
  // `name`: of the memory, as errors call it ("ref", "late pinned"). limit: 0 is none of ours. What this one counts, `whole` counts too.
  explicit Account(std::string name, size_t limit = 0, Account* whole = nullptr)
      : name_(std::move(name)), limit_(limit ? limit : SIZE_MAX), whole_(whole) {}

  // What a buffer of so many bytes counts. Plans count their values and arenas in the same way.
  static size_t counted(size_t bytes) { return codegen::align_up(bytes ? bytes : 1); }

  void take(size_t bytes);  // ResourceError with numbers and a remedy when it would go over the limit
  void give_back(size_t bytes) { give_back_counted(counted(bytes)); }
  // Exactly so many bytes, of which any part may be given back. False: they do not fit.
  bool try_take_counted(size_t bytes);
  void take_counted_anyway(size_t bytes);  // what is there already
  void give_back_counted(size_t bytes) {
    in_use_.fetch_sub(bytes, std::memory_order_relaxed);
    if (whole_) whole_->give_back_counted(bytes);
  }
  [[noreturn]] void refuse(size_t bytes) const;  // what take() throws, for a device whose own allocator has none left

  // A limit below what is in use is kept from the next allocation on. 0: none.
  void set_limit(size_t bytes) { limit_.store(bytes ? bytes : SIZE_MAX, std::memory_order_relaxed); }
  size_t limit() const {  // 0: none
    const size_t l = limit_.load(std::memory_order_relaxed), of_whole = whole_ ? whole_->limit() : 0;
    return of_whole && of_whole < l ? of_whole : l == SIZE_MAX ? 0 : l;
  }
  size_t in_use() const { return in_use_.load(std::memory_order_relaxed); }
  size_t peak() const { return peak_.load(std::memory_order_relaxed); }
  void reset_peak() { peak_.store(in_use(), std::memory_order_relaxed); }

  // What is taken and given back while it lives leaves no trace in the peak: for measuring, which is no part of a program. Limits hold.
  class Untraced {
   public:
    explicit Untraced(Account& account);
    ~Untraced();
    Untraced(const Untraced&) = delete;
    Untraced& operator=(const Untraced&) = delete;

   private:
    Account& account_;
    const size_t peak_;
    const std::unique_ptr<Untraced> of_whole_;
  };

 private:
  const std::string name_;
  std::atomic<size_t> limit_, in_use_{0}, peak_{0};
  Account* const whole_;
};

// All of the host's memory that the engine takes for moving and keeping things: what pipelines hold, what waits there for a device, and
// what copies are staged in. Its limit is TANDEM_HOST_MEMORY.
Account& host_account();

}  // namespace tandem::device
