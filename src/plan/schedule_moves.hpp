// Changes of a sequence: what is live where in it, and what it takes to do without a value for a while.
#pragma once
#include "plan/schedule_sequence.hpp"

namespace tandem::plan::scheduling {

// The random numbers of the search: the same on every machine (SplitMix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x1234567u) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int32_t below(size_t n) { return static_cast<int32_t>(((next() >> 32) * n) >> 32); }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

// A sequence with where each value is made and used.
class Picture {
 public:
  explicit Picture(const Model& model) : model_(model), begin_(static_cast<size_t>(model.value_count()) + 1) {}

  // Of what the evaluator last saw.
  void draw(const Evaluator& evaluator);

  int32_t length() const { return static_cast<int32_t>(items.size()); }
  // The stretch without a use of a live value around a position at which it is not used: it is made or used at `from`, and next used at
  // `to` (length() for a result at the end). Nothing if it is not live there.
  struct Gap {
    int32_t from = -1, to = -1;
    explicit operator bool() const { return from >= 0; }
  };
  Gap gap(int32_t value, int32_t position) const;
  bool is_live_before(int32_t value, int32_t position) const;  // as it must be to be read there
  int32_t last_touch(int32_t value, int32_t position) const;   // the last time before the position that it is made or used; -1: never
  int32_t next_touch(int32_t value, int32_t position) const;   // at the position or later; length(): never

  std::vector<int32_t> items;
  std::vector<int64_t> memory;
  std::vector<int32_t> first;  // of items: where they are for the first time

 private:
  // Positions at which a value is made (even) or used (odd), times two, in order.
  std::span<const int32_t> touches(int32_t v) const {
    return {touches_.data() + begin_[static_cast<size_t>(v)], touches_.data() + begin_[static_cast<size_t>(v) + 1]};
  }
  const Model& model_;
  std::vector<int32_t> begin_, touches_;
};

struct Insertion {
  int32_t position, item;  // before what is at the position
};

// What it takes to have values at a position at which they are not live: more items, and longer lives.
class Remaker {
 public:
  Remaker(const Model& model, const Picture& picture, Random& random) : model_(model), picture_(picture), random_(random) {}

  // The price of a byte above the limit at one position, and by how much estimates of prices vary.
  double excess_price = 0, noise = 0;

  // Plans to make `value` again before a position, as if it were not live there. False if that cannot be. The price is added up in `price`.
  bool remake(int32_t value, int32_t position);
  void clear();

  std::vector<Insertion> insertions;
  double price = 0;

 private:
  bool want(int32_t value, int32_t position);
  double price_of_longer_life(int32_t value, int32_t from, int32_t to) const;
  const Model& model_;
  const Picture& picture_;
  Random& random_;
  std::vector<int32_t> made_;  // values that the insertions make
  int32_t calls_ = 0;
};

// The sequence with the insertions, which are in any order.
void insert(const std::vector<int32_t>& items, std::vector<Insertion>& insertions, std::vector<int32_t>& result);

}  // namespace tandem::plan::scheduling
