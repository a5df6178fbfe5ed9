// The changes that all formats share. Deterministic: the same random numbers give the same input.
#pragma once
#include <cstdint>
#include <random>
#include <string>

namespace tandem::fuzz {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t bits() { return engine_(); }
  size_t below(size_t count) { return count == 0 ? 0 : static_cast<size_t>(engine_() % count); }
  bool one_in(size_t count) { return below(count) == 0; }

 private:
  std::mt19937_64 engine_;
};

uint64_t wild_number(Random& random);                    // small, negative, near a power of two, or anything
std::string wild_digits(Random& random);                 // the same as text
std::string mutated(std::string bytes, Random& random);  // a few changes: bits, bytes, numbers in binary and as text, parts that move

}  // namespace tandem::fuzz
