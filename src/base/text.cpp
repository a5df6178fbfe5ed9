// The pieces that messages are made of.
#include "base/text.hpp"

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

void throw_user(const std::string& what) { throw UserError(what); }
void throw_resource(const std::string& what) { throw ResourceError(what); }
void throw_internal(const std::string& what) { throw InternalError(what); }

}  // namespace tandem::text_detail

namespace tandem {

std::string hex(uint64_t x) {
  std::string out;
  text_detail::put_number(out, x, 16);
  return out;
}

}  // namespace tandem
