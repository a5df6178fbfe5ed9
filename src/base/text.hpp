// cat("a ", 1, " b"): text from pieces, for messages. Anything with operator<< or .str() or a tandem::name() takes part.
#pragma once
#include <sstream>
#include <string>

#include <tandem/dtype.hpp>
#include <tandem/error.hpp>

namespace tandem {
namespace text_detail {
template <class T> void put(std::ostream& os, const T& x) {
  if constexpr (requires { x.str(); })
    os << x.str();
  else if constexpr (requires { name(x); })
    os << name(x);
  else
    os << x;
}
inline void put(std::ostream& os, bool x) { os << (x ? "true" : "false"); }
inline void put(std::ostream& os, int8_t x) { os << int(x); }
inline void put(std::ostream& os, uint8_t x) { os << unsigned(x); }
}  // namespace text_detail

template <class... T> std::string cat(const T&... parts) {
  std::ostringstream os;
  (text_detail::put(os, parts), ...);
  return os.str();
}

template <class... T> [[noreturn]] void user_error(const T&... parts) { throw UserError(cat(parts...)); }
template <class... T> [[noreturn]] void resource_error(const T&... parts) { throw ResourceError(cat(parts...)); }
template <class... T> [[noreturn]] void internal_error(const T&... parts) { throw InternalError(cat(parts...)); }

// A check of our own reasoning that stays in release builds; `invariant` is a number of ARCHITECTURE.md or 0.
#define TANDEM_CHECK(cond, ...)                                      \
  do {                                                               \
    if (!(cond)) ::tandem::internal_error(#cond, ": ", __VA_ARGS__); \
  } while (0)

}  // namespace tandem
