// The state behind a Variable.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include <tandem/tensor.hpp>
#include <tandem/variable.hpp>

#include "frontend/tensor_impl.hpp"

namespace tandem::frontend {

class VariableImpl {
 public:
  VariableImpl(std::string name, bool trainable, const Tensor& value);
  const uint64_t id;  // grows from variable to variable: the order in which a call locks several
  const std::string name;
  const DType dtype;
  const Shape shape;
  std::atomic<bool> trainable;

  // A compiled call holds the lock for as long as it may write into the value's memory. A byte that waits, not a mutex: a step locks
  // hundreds of these and nearly always finds them free.
  void lock() {
    while (locked_.exchange(true, std::memory_order_acquire)) locked_.wait(true, std::memory_order_relaxed);
  }
  void unlock() {
    locked_.store(false, std::memory_order_release);
    locked_.notify_one();
  }
  Tensor load() {
    std::lock_guard guard(*this);
    return value_;
  }
  void store(const Tensor& value);  // of this dtype and shape; made dense, and copied out of the user's own memory

  // With the lock held. The tensor whose memory may be written when both it and its buffer have no other owner.
  Tensor& value() { return value_; }

 private:
  std::atomic<bool> locked_{false};
  Tensor value_;
};

// The value as an operand: from the state of a trace, or the present one; tapes that watch variables hear of it.
Tensor read_variable(const Variable& v);

}  // namespace tandem::frontend
