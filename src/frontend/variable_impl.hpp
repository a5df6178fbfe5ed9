// The state behind a Variable.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include <tandem/tensor.hpp>
#include <tandem/variable.hpp>

#include "frontend/tensor_impl.hpp"
#include "frontend/thread_state.hpp"

namespace tandem::frontend {

// Of a thread that makes elements of a dataset ahead of their reader: which thread waits for them inside of a host call; 0: none does.
extern constinit thread_local const std::atomic<uint32_t>* element_reader;

class VariableImpl {
 public:
  VariableImpl(std::string name, bool trainable, const Tensor& value);
  const uint64_t id;  // grows from variable to variable: the order in which a call locks several
  const std::string name;
  const DType dtype;
  const Shape shape;
  std::atomic<bool> trainable;
  const int32_t device;  // that was asked for when it was made: it stays there; -1: it lives where a step wants it

  // A compiled call holds the lock for as long as it may write into the value's memory. A word that waits, not a mutex: a step locks
  // hundreds of these and nearly always finds them free. It is the number of the thread that holds it: a host call inside a step that
  // asks for a variable of that step is a UserError, for it would wait for itself.
  void lock() {
    uint32_t holder = 0;
    while (!holder_.compare_exchange_weak(holder, thread_number(), std::memory_order_acquire, std::memory_order_relaxed)) {
      if (holder == thread_number()) fail_held();
      if (holder != 0) wait_for(holder);
      holder = 0;
    }
  }
  void unlock() {
    holder_.store(0, std::memory_order_release);
    holder_.notify_one();
  }
  void check_not_held_here() const {
    if (holder_.load(std::memory_order_relaxed) == thread_number()) fail_held();
  }
  Tensor load() {
    std::lock_guard guard(*this);
    return value_;
  }
  void store(const Tensor& value);  // of this dtype and shape; made dense, and copied out of the user's own memory

  // With the lock held. The tensor whose memory may be written when both it and its buffer have no other owner.
  Tensor& value() { return value_; }

 private:
  // A step that holds this and waits for an element that this thread makes would wait for ever. It may begin to wait after this thread did,
  // so this thread looks again and again.
  void wait_for(uint32_t holder) const {
    if (!element_reader) return holder_.wait(holder, std::memory_order_relaxed);
    if (element_reader->load(std::memory_order_relaxed) == holder) fail_held();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  [[noreturn]] void fail_held() const;
  std::atomic<uint32_t> holder_{0};
  Tensor value_;
};

// The value as an operand: from the state of a trace, or the present one; tapes that watch variables hear of it.
Tensor read_variable(const Variable& v);

}  // namespace tandem::frontend
