// Arithmetic on sizes that come from outside, from a file or a config: what does not fit in the type is told and never wraps around.
#pragma once
#include <concepts>
#include <optional>
#include <string_view>

#include "base/text.hpp"

namespace tandem {

// Nothing when the exact result does not fit.
template <std::integral T> std::optional<T> checked_add(T a, T b) {
  T result;
  return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
}
template <std::integral T> std::optional<T> checked_multiply(T a, T b) {
  T result;
  return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
}

// UserError, "what: 3 x 6148914691236517206 does not fit in 64 bits", when it does not fit.
template <std::integral T> T sum_of(T a, T b, std::string_view what) {
  if (const auto result = checked_add(a, b)) return *result;
  user_error(what, ": ", a, " + ", b, " does not fit in ", 8 * sizeof(T), " bits");
}
template <std::integral T> T product_of(T a, T b, std::string_view what) {
  if (const auto result = checked_multiply(a, b)) return *result;
  user_error(what, ": ", a, " x ", b, " does not fit in ", 8 * sizeof(T), " bits");
}

}  // namespace tandem
