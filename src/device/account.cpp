#include "device/account.hpp"

#include <algorithm>

#include "base/env.hpp"
#include "base/text.hpp"

namespace tandem::device {

void Account::take(size_t bytes) {
  if (bytes > SIZE_MAX - codegen::kAlignment) refuse(bytes);
  if (whole_) {
    if (!try_take_counted(counted(bytes))) (whole_->in_use() + counted(bytes) > whole_->limit_ ? *whole_ : *this).refuse(bytes);
    return;
  }
  if (!try_take_counted(counted(bytes))) refuse(bytes);
}

bool Account::try_take_counted(size_t more) {
  if (whole_ && !whole_->try_take_counted(more)) return false;
  // Added first and taken back when it was too much: one atomic operation on the way of every eager op.
  const size_t now = in_use_.fetch_add(more, std::memory_order_relaxed) + more;
  if (now > limit_.load(std::memory_order_relaxed) || now < more) {
    in_use_.fetch_sub(more, std::memory_order_relaxed);
    if (whole_) whole_->give_back_counted(more);
    return false;
  }
  size_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return true;
}

void Account::take_counted_anyway(size_t more) {
  if (whole_) whole_->take_counted_anyway(more);
  const size_t now = in_use_.fetch_add(more, std::memory_order_relaxed) + more;
  size_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

Account::Untraced::Untraced(Account& account)
    : account_(account), peak_(account.peak()), of_whole_(account.whole_ ? std::make_unique<Untraced>(*account.whole_) : nullptr) {}
Account::Untraced::~Untraced() { account_.peak_.store(std::max(peak_, account_.in_use()), std::memory_order_relaxed); }

Account& host_account() {
  static Account& account = *new Account("host memory (TANDEM_HOST_MEMORY)", env::get_bytes("TANDEM_HOST_MEMORY"));
  return account;
}

void Account::refuse(size_t bytes) const {
  const std::string of = limit() ? cat(" of ", limit(), " bytes are in use (", in_use() >> 20, " of ", limit() >> 20, " MiB)")
                                 : cat(" bytes are in use (", in_use() >> 20, " MiB)");
  resource_error(ErrorCode::ResourceExhausted, name_, ": cannot allocate ", bytes, " bytes (", bytes >> 20, " MiB): ", in_use(), of,
                 "\n  hint: a smaller batch, or fewer tensors kept alive");
}

}  // namespace tandem::device
