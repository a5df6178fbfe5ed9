#include "data/errors.hpp"

#include "base/text.hpp"

namespace tandem::data {
namespace {

struct Located {
  virtual ~Located() = default;
};
template <class Base> struct LocatedError : Base, Located {
  explicit LocatedError(const std::string& text) : Base(text) {}
};
// InternalError writes its own beginning.
struct LocatedInternal : InternalError, Located {
  explicit LocatedInternal(const std::string& text) : InternalError(text) {}
};

constexpr std::string_view kInternalPrefix = "internal error (this is a bug in tandem): ";

}  // namespace

std::pair<ErrorKind, std::string> describe(const std::exception_ptr& error) {
  if (!error) return {ErrorKind::None, ""};
  try {
    std::rethrow_exception(error);
  } catch (const UserError& e) {
    return {ErrorKind::User, e.what()};
  } catch (const ResourceError& e) {
    return {ErrorKind::Resource, e.what()};
  } catch (const InternalError& e) {
    return {ErrorKind::Internal, std::string(e.what()).substr(kInternalPrefix.size())};
  } catch (const std::bad_alloc&) {
    return {ErrorKind::Resource, "the host has no memory left"};
  } catch (const std::exception& e) {
    return {ErrorKind::User, e.what()};
  } catch (...) {
    return {ErrorKind::User, "something was thrown that is no std::exception"};
  }
}

std::exception_ptr make_error(ErrorKind kind, std::string text) {
  switch (kind) {
    case ErrorKind::None: return nullptr;
    case ErrorKind::User: return std::make_exception_ptr(LocatedError<UserError>(text));
    case ErrorKind::Resource: return std::make_exception_ptr(LocatedError<ResourceError>(text));
    case ErrorKind::Internal: return std::make_exception_ptr(LocatedInternal(text));
  }
  internal_error("error kind ", static_cast<int>(kind));
}

void rethrow_located(std::string_view stage, int64_t element) {
  const std::exception_ptr current = std::current_exception();
  try {
    std::rethrow_exception(current);
  } catch (const Cancelled&) {
    throw;
  } catch (const std::exception& e) {
    if (dynamic_cast<const Located*>(&e)) throw;
  } catch (...) {
  }
  const auto [kind, text] = describe(current);
  std::rethrow_exception(make_error(kind, cat(stage, ": element ", element, ": ", text)));
}

}  // namespace tandem::data
