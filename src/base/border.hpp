// The public border: what the standard library throws there becomes one of our three kinds of errors (include/tandem/error.hpp).
#pragma once
#include <string_view>
#include <utility>

namespace tandem {

// Only inside a handler. Throws the current exception again: memory, sizes, files and streams as a ResourceError that begins with `what`,
// everything else as it is, since an exception of the user's own callback is his.
[[noreturn]] void rethrow_as_ours(std::string_view what);

// Runs `f` and lets only such exceptions out.
template <class F> decltype(auto) at_border(std::string_view what, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (...) {
    rethrow_as_ours(what);
  }
}

}  // namespace tandem
