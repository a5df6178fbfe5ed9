// A buffer of host memory that an account counts: of devices with no pool of their own, and pinned memory where pages need no pinning.
#pragma once
#include <cstdlib>

#include "device/account.hpp"
#include "device/buffer.hpp"

namespace tandem::device {

class HostBuffer : public Buffer {
 public:
  HostBuffer(Device& owner, Account& account, size_t bytes) : Buffer(owner, taken(account, bytes), bytes), account_(account) {}
  ~HostBuffer() override {
    std::free(data());
    account_.give_back(bytes());
  }

 private:
  static void* taken(Account& account, size_t bytes) {
    account.take(bytes);
    if (void* p = std::aligned_alloc(codegen::kAlignment, Account::counted(bytes))) return p;
    account.give_back(bytes);
    account.refuse(bytes);
  }
  Account& account_;
};

}  // namespace tandem::device
