#include "formula.hpp"

namespace bench {

// FNV-1a.
Formula::Formula(std::string_view name) : seed_(0xcbf29ce484222325u) {
  for (const char c : name) seed_ = (seed_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
}

// SplitMix64.
uint32_t Formula::bits(uint64_t i) const {
  uint64_t x = seed_ + (i + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return static_cast<uint32_t>((x ^ (x >> 31)) >> 40);
}

}  // namespace bench
