#include "base/string_hash.hpp"

#include <bit>
#include <cstring>
#include <utility>

namespace tandem {
namespace {

// --- FarmHash ------------------------------------------------------------------------------------------------------------------------

constexpr uint64_t k0 = 0xc3a5c85c97cb3127u, k1 = 0xb492b66fbe98f273u, k2 = 0x9ae16a3b2f90404fu;

uint64_t word(const char* p) {
  uint64_t x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
uint64_t half(const char* p) {
  uint32_t x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
uint64_t rotated(uint64_t x, int by) { return std::rotr(x, by); }
uint64_t mixed(uint64_t x) { return x ^ (x >> 47); }

uint64_t of_two(uint64_t u, uint64_t v, uint64_t mul) {
  const uint64_t a = mixed((u ^ v) * mul);
  return mixed((v ^ a) * mul) * mul;
}

uint64_t of_16(const char* s, size_t n) {
  const uint64_t mul = k2 + n * 2;
  if (n >= 8) {
    const uint64_t a = word(s) + k2, b = word(s + n - 8);
    return of_two(rotated(b, 37) * mul + a, (rotated(a, 25) + b) * mul, mul);
  }
  if (n >= 4) return of_two(n + (half(s) << 3), half(s + n - 4), mul);
  if (n == 0) return k2;
  const auto at = [&](size_t i) { return static_cast<uint64_t>(static_cast<unsigned char>(s[i])); };
  const uint64_t y = at(0) + (at(n >> 1) << 8), z = n + (at(n - 1) << 2);
  return mixed(y * k2 ^ z * k0) * k2;
}

uint64_t of_32(const char* s, size_t n) {
  const uint64_t mul = k2 + n * 2, a = word(s) * k1, b = word(s + 8), c = word(s + n - 8) * mul, d = word(s + n - 16) * k2;
  return of_two(rotated(a + b, 43) + rotated(c, 30) + d, a + rotated(b + k2, 18) + c, mul);
}

uint64_t of_64(const char* s, size_t n) {
  const uint64_t mul = k2 + n * 2, a = word(s) * k2, b = word(s + 8), c = word(s + n - 8) * mul, d = word(s + n - 16) * k2;
  const uint64_t y = rotated(a + b, 43) + rotated(c, 30) + d, z = of_two(y, a + rotated(b + k2, 18) + c, mul);
  const uint64_t e = word(s + 16) * mul, f = word(s + 24), g = (y + word(s + n - 32)) * mul, h = (z + word(s + n - 24)) * mul;
  return of_two(rotated(e + f, 43) + rotated(g, 30) + h, e + rotated(f + a, 18) + g, mul);
}

using Pair = std::pair<uint64_t, uint64_t>;
Pair weak(const char* s, uint64_t a, uint64_t b) {
  const uint64_t w = word(s), x = word(s + 8), y = word(s + 16), z = word(s + 24);
  a += w;
  b = rotated(b + a + z, 21);
  const uint64_t c = a;
  a += x + y;
  b += rotated(a, 44);
  return {a + z, b + c};
}

uint64_t of_many(const char* s, size_t n) {
  constexpr uint64_t kSeed = 81;
  uint64_t x = kSeed, y = kSeed * k1 + 113, z = mixed(y * k2 + 113) * k2;
  Pair v, w;
  x = x * k2 + word(s);
  const char* end = s + (n - 1) / 64 * 64;
  const char* last = end + ((n - 1) & 63) - 63;
  const auto step = [&](uint64_t mul, uint64_t nine) {
    x = rotated(x + y + v.first + word(s + 8), 37) * mul;
    y = rotated(y + v.second + word(s + 48), 42) * mul;
    x ^= w.second * nine;
    y += v.first * nine + word(s + 40);
    z = rotated(z + w.first, 33) * mul;
    v = weak(s, v.second * mul, x + w.first);
    w = weak(s + 32, z + w.second, y + word(s + 16));
    std::swap(z, x);
  };
  for (; s != end; s += 64) step(k1, 1);
  const uint64_t mul = k1 + ((z & 0xff) << 1);
  s = last;
  w.first += (n - 1) & 63;
  v.first += w.first;
  w.first += v.first;
  step(mul, 9);
  return of_two(of_two(v.first, w.first, mul) + mixed(y) * k0 + z, of_two(v.second, w.second, mul) + x, mul);
}

}  // namespace

uint64_t fingerprint64(std::string_view bytes) {
  const char* s = bytes.data();
  const size_t n = bytes.size();
  return n <= 16 ? of_16(s, n) : n <= 32 ? of_32(s, n) : n <= 64 ? of_64(s, n) : of_many(s, n);
}

uint64_t hash64(std::string_view bytes) {
  constexpr uint64_t kSeed = 0xdecafcaffe, kMul = 0xc6a4a7935bd1e995;
  uint64_t h = kSeed ^ (bytes.size() * kMul);
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) h = (h ^ mixed(word(bytes.data() + at) * kMul) * kMul) * kMul;
  if (at < bytes.size()) {
    uint64_t rest = 0;
    std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
    h = (h ^ rest) * kMul;
  }
  return mixed(mixed(h) * kMul);
}

uint64_t keyed_hash64(std::string_view bytes, uint64_t key0, uint64_t key1) {
  uint64_t v0 = key0 ^ 0x736f6d6570736575u, v1 = key1 ^ 0x646f72616e646f6du, v2 = key0 ^ 0x6c7967656e657261u,
           v3 = key1 ^ 0x7465646279746573u;
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
      v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
    }
  };
  const auto take = [&](uint64_t m) {
    v3 ^= m;
    rounds(2);
    v0 ^= m;
  };
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) take(word(bytes.data() + at));
  uint64_t last = static_cast<uint64_t>(bytes.size()) << 56;
  if (at < bytes.size()) std::memcpy(&last, bytes.data() + at, bytes.size() - at);
  take(last);
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace tandem
