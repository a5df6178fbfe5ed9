#include "data/crc32c.hpp"

#include <array>
#include <cstring>
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace tandem::data {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected

constexpr std::array<uint32_t, 256> kTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t x = i;
    for (int bit = 0; bit < 8; ++bit) x = (x >> 1) ^ (x & 1 ? kPolynomial : 0);
    table[i] = x;
  }
  return table;
}();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t crc32c_by_instruction(const char* p, size_t count, uint32_t before) {
  uint64_t crc = before ^ 0xffffffffu;
  for (; count >= 8; count -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  auto rest = static_cast<uint32_t>(crc);
  for (; count > 0; --count, ++p) rest = _mm_crc32_u8(rest, static_cast<uint8_t>(*p));
  return rest ^ 0xffffffffu;
}
#endif

}  // namespace

uint32_t crc32c_by_table(const void* bytes, size_t count, uint32_t before) {
  const auto* p = static_cast<const uint8_t*>(bytes);
  uint32_t crc = before ^ 0xffffffffu;
  for (size_t i = 0; i < count; ++i) crc = kTable[(crc ^ p[i]) & 0xff] ^ (crc >> 8);
  return crc ^ 0xffffffffu;
}

uint32_t crc32c(const void* bytes, size_t count, uint32_t before) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return crc32c_by_instruction(static_cast<const char*>(bytes), count, before);
#endif
  return crc32c_by_table(bytes, count, before);
}

}  // namespace tandem::data
