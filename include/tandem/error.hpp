// Errors of three kinds, so that a caller can tell his own mistake from a missing resource and from our bug.
// Text: lower case, op first, both numbers, no final period; then "\n  at file:line", then "\n  hint: …".
#pragma once
#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>

namespace tandem {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// The caller's mistake: a wrong shape, type, axis, index, use.
class UserError : public Error {
 public:
  using Error::Error;
};
// Something that is not there: memory, a file, a device, a library.
class ResourceError : public Error {
 public:
  using Error::Error;
};
// Ours. The text asks for a report.
class InternalError : public Error {
 public:
  explicit InternalError(const std::string& what) : Error("internal error (this is a bug in tandem): " + what) {}
};

// Where in the user's program something was asked for. Copyable, never owns: file names are literals or interned.
struct Location {
  const char* file = nullptr;
  uint32_t line = 0;
  static Location of(const std::source_location& s) { return {s.file_name(), s.line()}; }
  explicit operator bool() const { return file != nullptr; }
  std::string str() const;  // "model.cpp:42", empty when unknown
};

}  // namespace tandem
