#include "mutate.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>

namespace tandem::fuzz {
namespace {

constexpr size_t kMostBytes = size_t{1} << 17;  // inputs stay small: what they take is then out of proportion by itself

void change_number(std::string& bytes, Random& random) {
  static constexpr size_t kWidths[] = {1, 2, 4, 8};
  const size_t width = std::min(kWidths[random.below(4)], bytes.size());
  const size_t at = random.below(bytes.size() - width + 1) & (random.one_in(2) ? ~size_t{0} : ~(width - 1));
  uint64_t number = 0;
  std::memcpy(&number, bytes.data() + at, width);
  number = random.one_in(3) ? number + random.below(9) - 4 : wild_number(random);
  char raw[8];
  std::memcpy(raw, &number, 8);
  if (random.one_in(4)) std::reverse(raw, raw + width);
  std::memcpy(bytes.data() + at, raw, width);
}

void change_digits(std::string& bytes, Random& random) {
  const size_t from = random.below(bytes.size());
  size_t at = from;
  while (at < bytes.size() && !std::isdigit(static_cast<unsigned char>(bytes[at]))) ++at;
  size_t end = at;
  while (end < bytes.size() && std::isdigit(static_cast<unsigned char>(bytes[end]))) ++end;
  if (end > at) bytes.replace(at, end - at, wild_digits(random));
}

void change(std::string& bytes, Random& random) {
  if (bytes.empty()) bytes.push_back('x');
  const size_t at = random.below(bytes.size()), some = 1 + random.below(std::min<size_t>(bytes.size() - at, random.one_in(4) ? 512 : 16));
  switch (random.below(11)) {
    case 0: bytes[at] = static_cast<char>(bytes[at] ^ 1 << random.below(8)); break;
    case 1: bytes[at] = static_cast<char>(random.bits()); break;
    case 2: bytes[at] = random.one_in(2) ? '\xff' : '\0'; break;
    case 3:
    case 4:
    case 5: change_number(bytes, random); break;
    case 6: change_digits(bytes, random); break;
    case 7: bytes.erase(at, some); break;
    case 8: bytes.insert(random.below(bytes.size() + 1), bytes.substr(at, some)); break;
    case 9: {
      const std::string part = bytes.substr(at, some);
      const size_t to = random.below(bytes.size() - part.size() + 1);
      std::copy(part.begin(), part.end(), bytes.begin() + static_cast<std::ptrdiff_t>(to));
      break;
    }
    default:
      if (random.one_in(4))
        bytes.resize(at);
      else
        bytes.insert(at, some, static_cast<char>(random.bits()));
  }
  if (bytes.size() > kMostBytes) bytes.resize(kMostBytes);
}

}  // namespace

uint64_t wild_number(Random& random) {
  switch (random.below(6)) {
    case 0: return random.below(16);
    case 1: return uint64_t{0} - 1 - random.below(32);
    case 2: return (uint64_t{1} << random.below(64)) + random.below(5) - 2;
    case 3: return 6148914691236517206u;  // three times this is 2
    case 4: return random.below(size_t{1} << (1 + random.below(40)));
    default: return random.bits();
  }
}

std::string wild_digits(Random& random) {
  const uint64_t number = wild_number(random);
  char text[32];
  if (random.one_in(8))
    std::snprintf(text, sizeof text, "1e%u", static_cast<unsigned>(number % 400));
  else if (random.one_in(2))
    std::snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(number));
  else
    std::snprintf(text, sizeof text, "%lld", static_cast<long long>(number));
  return text;
}

std::string mutated(std::string bytes, Random& random) {
  for (size_t i = 0, count = 1 + random.below(random.one_in(3) ? 8 : 2); i < count; ++i) change(bytes, random);
  return bytes;
}

}  // namespace tandem::fuzz
