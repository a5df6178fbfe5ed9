// Errors of three kinds, so that a caller can tell his own mistake from a missing resource and from our bug.
// Text: lower case, op first, both numbers, no final period; then "\n  at file:line", then "\n  hint: …".
#pragma once
#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>

namespace tandem {

// What happened, for programs that choose what to do by it. The numbers are those of TensorFlow's error codes.
enum class ErrorCode : uint8_t {
  Cancelled = 1,
  Unknown = 2,
  InvalidArgument = 3,
  DeadlineExceeded = 4,
  NotFound = 5,  // a file, a name
  AlreadyExists = 6,
  PermissionDenied = 7,
  ResourceExhausted = 8,   // memory, space on a disk
  FailedPrecondition = 9,  // not now: something else has to happen first
  Aborted = 10,
  OutOfRange = 11,     // an index, a position behind the end
  Unimplemented = 12,  // a sound request that nobody has written
  Internal = 13,
  Unavailable = 14,  // a device, a library
  DataLoss = 15      // a damaged file
};

class Error : public std::runtime_error {
 public:
  Error(const std::string& what, ErrorCode code) : std::runtime_error(what), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};
// The caller's mistake: a wrong shape, type, axis, index, use.
class UserError : public Error {
 public:
  explicit UserError(const std::string& what, ErrorCode code = ErrorCode::InvalidArgument) : Error(what, code) {}
};
// Something that is not there: memory, a file, a device, a library.
class ResourceError : public Error {
 public:
  explicit ResourceError(const std::string& what, ErrorCode code = ErrorCode::Unavailable) : Error(what, code) {}
};
// Ours. The text asks for a report.
class InternalError : public Error {
 public:
  explicit InternalError(const std::string& what, ErrorCode code = ErrorCode::Internal)
      : Error("internal error (this is a bug in tandem): " + what, code) {}
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
