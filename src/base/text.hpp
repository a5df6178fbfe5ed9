// cat("a ", 1, " b"): text from pieces, for messages. Numbers, text, and anything with .str() or a tandem::name() take part.
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <tandem/dtype.hpp>
#include <tandem/error.hpp>

namespace tandem {
namespace text_detail {
// Not a stream: this header is in every file, and a message in most functions. Numbers look as a stream shows them in the C locale.
void put(std::string& out, bool x);
void put(std::string& out, char x);
void put(std::string& out, double x);
void put(std::string& out, long long x);
void put(std::string& out, unsigned long long x);
void put(std::string& out, const char* x);
void put(std::string& out, std::string_view x);
template <class T>
  requires(!std::same_as<std::remove_const_t<T>, char>)
void put(std::string& out, T* x) = delete;  // which would be printed as a bool
template <std::signed_integral T> void put(std::string& out, T x) { put(out, static_cast<long long>(x)); }
template <std::unsigned_integral T> void put(std::string& out, T x) { put(out, static_cast<unsigned long long>(x)); }
template <class T>
  requires requires(const T& x) { x.str(); }
void put(std::string& out, const T& x) {
  put(out, std::string_view(x.str()));
}
template <class T>
  requires requires(const T& x) { name(x); }
void put(std::string& out, const T& x) {
  put(out, std::string_view(name(x)));
}
[[noreturn]] void throw_user(const std::string& what, ErrorCode code = ErrorCode::InvalidArgument);
[[noreturn]] void throw_resource(const std::string& what, ErrorCode code = ErrorCode::Unavailable);
[[noreturn]] void throw_internal(const std::string& what);
}  // namespace text_detail

std::string hex(uint64_t x);  // without 0x

template <class... T> std::string cat(const T&... parts) {
  std::string out;
  (text_detail::put(out, parts), ...);
  return out;
}

template <class... T> [[noreturn]] void user_error(const T&... parts) { text_detail::throw_user(cat(parts...)); }
template <class... T> [[noreturn]] void resource_error(const T&... parts) { text_detail::throw_resource(cat(parts...)); }
// With a code: user_error(ErrorCode::OutOfRange, "index ", …).
template <class... T> [[noreturn]] void user_error(ErrorCode code, const T&... parts) { text_detail::throw_user(cat(parts...), code); }
template <class... T> [[noreturn]] void resource_error(ErrorCode code, const T&... parts) {
  text_detail::throw_resource(cat(parts...), code);
}
ErrorCode code_of_errno(int error);  // what a failed system call means: NotFound, PermissionDenied …; Unavailable for the rest
template <class... T> [[noreturn]] void internal_error(const T&... parts) { text_detail::throw_internal(cat(parts...)); }

// A check of our own reasoning that stays in release builds; `invariant` is a number of ARCHITECTURE.md or 0.
#define TANDEM_CHECK(cond, ...)                                      \
  do {                                                               \
    if (!(cond)) ::tandem::internal_error(#cond, ": ", __VA_ARGS__); \
  } while (0)

}  // namespace tandem
