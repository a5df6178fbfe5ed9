// Errors on their way through a pipeline: where they arose is said once, and they can be kept with an iterator's position.
#pragma once
#include <exception>
#include <string>
#include <string_view>

#include <tandem/error.hpp>

namespace tandem::data {

// A stage waits no longer because its iterator goes away. Never reaches a user.
struct Cancelled {};

enum class ErrorKind : uint8_t { None, User, Resource, Internal, Last = Internal };

// An error as plain data.
struct Described {
  ErrorKind kind = ErrorKind::None;
  std::string text;
  bool is_located = false;  // the stage and the element are in the text already
  ErrorCode code = ErrorCode::InvalidArgument;
  std::exception_ptr original = {};  // what a function of the user threw that is none of our errors
};
Described describe(const std::exception_ptr& error);  // null: None
std::exception_ptr make_error(const Described& error);
[[noreturn]] void rethrow_located(std::string_view stage, int64_t element);  // the current exception, "map: element 17: …" in front

}  // namespace tandem::data
