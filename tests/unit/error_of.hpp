// What an error says, for tests of messages.
#pragma once
#include <exception>
#include <string>

namespace tandem {

// The text of the E that f throws; "no error" when it throws nothing. Another exception passes, and fails the test.
template <class E = std::exception, class Callable> std::string error_of(Callable&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace tandem
