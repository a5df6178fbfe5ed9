// Numbers that C++ and Python compute alike, bit for bit: with them two engines begin with the same weights and see the same data, and
// no file has to carry them. tools/bench/formula.py is the other half.
#pragma once
#include <cstdint>
#include <string_view>

namespace bench {

// The i-th number of the series `name`: 24 random bits.
class Formula {
 public:
  explicit Formula(std::string_view name);
  uint32_t bits(uint64_t i) const;
  float unit(uint64_t i) const { return static_cast<float>(bits(i)) * 0x1p-24f; }  // in [0, 1), exact

 private:
  uint64_t seed_;
};

}  // namespace bench
