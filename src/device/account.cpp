#include "device/account.hpp"

#include "base/text.hpp"

namespace tandem::device {

void Account::take(size_t bytes) {
  if (bytes > SIZE_MAX - codegen::kAlignment) refuse(bytes);
  const size_t more = counted(bytes);
  // Added first and taken back when it was too much: one atomic operation on the way of every eager op.
  const size_t now = in_use_.fetch_add(more, std::memory_order_relaxed) + more;
  if (now > limit_.load(std::memory_order_relaxed) || now < more) {
    in_use_.fetch_sub(more, std::memory_order_relaxed);
    refuse(bytes);
  }
  size_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void Account::refuse(size_t bytes) const {
  const std::string of = limit() ? cat(" of ", limit(), " bytes are in use (", in_use() >> 20, " of ", limit() >> 20, " MiB)")
                                 : cat(" bytes are in use (", in_use() >> 20, " MiB)");
  resource_error(ErrorCode::ResourceExhausted, name_, ": cannot allocate ", bytes, " bytes (", bytes >> 20, " MiB): ", in_use(), of,
                 "\n  hint: a smaller batch, or fewer tensors kept alive");
}

}  // namespace tandem::device
