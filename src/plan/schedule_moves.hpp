// What it takes to do without a value for a while.
#pragma once
#include "plan/schedule_draft.hpp"

namespace tandem::plan::scheduling {

// The random numbers of the search: the same on every machine (SplitMix64).
class Random {
 public:
  // Mixed, so that no seed's numbers are those of another from some place on.
  explicit Random(uint64_t seed) : state_(mix(seed + 1)) {}
  uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15u); }
  int32_t below(int32_t n) { return static_cast<int32_t>(((next() >> 32) * static_cast<uint64_t>(n)) >> 32); }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

// Makes values again at positions at which they are not live: more items, and longer lives.
class Remaker {
 public:
  Remaker(const Model& model, Draft& draft, Random& random) : model_(model), draft_(draft), random_(random) {}

  static constexpr double kAnyPrice = 1e300;
  // The price of a byte above the limit at one position; by how much estimates of prices vary; what a copy counts beside a unit of the
  // device that takes as long, as long as nobody knows whether it is waited for.
  double excess_price = 0, noise = 0, overlapped = 0.25;
  bool may_fetch = true;

  // Plans to make `value` again before a position, as if it were not live there. False if that cannot be, or not for `most`.
  bool plan(int32_t value, int32_t position, double most = kAnyPrice);
  double price() const { return price_; }
  void apply();  // the last plan, while the draft is as it was

  // Bytes above the limit that go if a value is not there in a gap.
  int64_t relief(int32_t value, Draft::Gap gap) const;
  int64_t steps() const { return steps_; }

 private:
  struct Insertion {
    int32_t before, item;  // a run
  };
  bool remake(int32_t value, int32_t position);
  bool want(int32_t value, int32_t position);
  double longer_life(int32_t value, int32_t from, int32_t to, double most) const;
  double least_price(int32_t value) const;  // of making it again
  double vary(double price) { return noise > 0 ? price * (1 + noise * random_.unit()) : price; }
  const Model& model_;
  Draft& draft_;
  Random& random_;
  std::vector<Insertion> insertions_;
  std::vector<int32_t> made_;  // values that the insertions make
  double price_ = 0, most_ = kAnyPrice;
  int32_t calls_ = 0;
  mutable int64_t steps_ = 0;
};

}  // namespace tandem::plan::scheduling
