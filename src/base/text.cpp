// The pieces that messages are made of.
#include "base/text.hpp"

#include <cerrno>
#include <charconv>

namespace tandem::text_detail {
namespace {

template <class... Arguments> void put_number(std::string& out, Arguments... arguments) {
  char digits[32];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, arguments...).ptr);
}

}  // namespace

void put(std::string& out, bool x) { out += x ? "true" : "false"; }
void put(std::string& out, char x) { out += x; }
void put(std::string& out, double x) { put_number(out, x, std::chars_format::general, 6); }
void put(std::string& out, long long x) { put_number(out, x); }
void put(std::string& out, unsigned long long x) { put_number(out, x); }
void put(std::string& out, const char* x) { out += x; }
void put(std::string& out, std::string_view x) { out += x; }

void throw_user(const std::string& what, ErrorCode code) { throw UserError(what, code); }
void throw_resource(const std::string& what, ErrorCode code) { throw ResourceError(what, code); }
void throw_internal(const std::string& what) { throw InternalError(what); }

}  // namespace tandem::text_detail

namespace tandem {

ErrorCode code_of_errno(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR: return ErrorCode::NotFound;
    case EACCES:
    case EPERM:
    case EROFS: return ErrorCode::PermissionDenied;
    case EEXIST: return ErrorCode::AlreadyExists;
    case ENOMEM:
    case ENOSPC:
    case EMFILE:
    case ENFILE:
    case EDQUOT: return ErrorCode::ResourceExhausted;
    case EISDIR:
    case ELOOP:
    case EINVAL: return ErrorCode::FailedPrecondition;
    case EIO: return ErrorCode::DataLoss;
    default: return ErrorCode::Unavailable;
  }
}

std::string hex(uint64_t x) {
  std::string out;
  text_detail::put_number(out, x, 16);
  return out;
}

}  // namespace tandem
