#include "data/errors.hpp"

#include <system_error>

#include <tandem/data.hpp>

#include "base/text.hpp"

namespace tandem::data {
namespace {

struct Located {
  virtual ~Located() = default;
};
template <class Base> struct LocatedError : Base, Located {
  LocatedError(const std::string& text, ErrorCode code) : Base(text, code) {}
};
// InternalError writes its own beginning.
struct LocatedInternal : InternalError, Located {
  LocatedInternal(const std::string& text, ErrorCode code) : InternalError(text, code) {}
};

struct LocatedForeign : CallbackError, Located {
  using CallbackError::CallbackError;
};

constexpr std::string_view kInternalPrefix = "internal error (this is a bug in tandem): ";

}  // namespace

Described describe(const std::exception_ptr& error) {
  if (!error) return {};
  const auto is_located = [](const std::exception& e) { return dynamic_cast<const Located*>(&e) != nullptr; };
  try {
    std::rethrow_exception(error);
  } catch (const CallbackError& e) {
    return {ErrorKind::User, e.what(), is_located(e), e.code(), e.original()};
  } catch (const UserError& e) {
    return {ErrorKind::User, e.what(), is_located(e), e.code()};
  } catch (const ResourceError& e) {
    return {ErrorKind::Resource, e.what(), is_located(e), e.code()};
  } catch (const InternalError& e) {
    return {ErrorKind::Internal, std::string(e.what()).substr(kInternalPrefix.size()), is_located(e), e.code()};
  } catch (const std::bad_alloc&) {
    return {ErrorKind::Resource, "the host has no memory left", false, ErrorCode::ResourceExhausted};
  } catch (const std::length_error& e) {
    return {ErrorKind::Resource, cat("a size that no memory can hold (", e.what(), ")"), false, ErrorCode::ResourceExhausted};
  } catch (const std::system_error& e) {  // of files, streams and threads
    return {ErrorKind::Resource, e.what(), false, ErrorCode::Unavailable};
  } catch (const std::exception& e) {
    return {ErrorKind::User, e.what(), false, ErrorCode::Unknown, error};
  } catch (...) {
    return {ErrorKind::User, "something was thrown that is no std::exception", false, ErrorCode::Unknown, error};
  }
}

std::exception_ptr make_error(const Described& e) {
  switch (e.kind) {
    case ErrorKind::None: return nullptr;
    case ErrorKind::User:
      if (e.original) return std::make_exception_ptr(LocatedForeign(e.text, e.original));
      return e.is_located ? std::make_exception_ptr(LocatedError<UserError>(e.text, e.code))
                          : std::make_exception_ptr(UserError(e.text, e.code));
    case ErrorKind::Resource:
      return e.is_located ? std::make_exception_ptr(LocatedError<ResourceError>(e.text, e.code))
                          : std::make_exception_ptr(ResourceError(e.text, e.code));
    case ErrorKind::Internal:
      return e.is_located ? std::make_exception_ptr(LocatedInternal(e.text, e.code))
                          : std::make_exception_ptr(InternalError(e.text, e.code));
  }
  internal_error("error kind ", static_cast<int>(e.kind));
}

void rethrow_located(std::string_view stage, int64_t element) {
  const Described e = describe(std::current_exception());
  if (e.is_located) throw;
  const std::string named = cat(stage, ": ");  // by itself already when what went wrong is the stage's own
  const std::string text = e.text.starts_with(named) ? e.text.substr(named.size()) : e.text;
  std::rethrow_exception(make_error({e.kind, cat(stage, ": element ", element, ": ", text), true, e.code, e.original}));
}

}  // namespace tandem::data
