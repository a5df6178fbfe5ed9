// A stream of random numbers whose whole state is one number: SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
// generators, 2014).
#pragma once
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <random>

namespace tandem::data {

class Random {
 public:
  explicit Random(uint64_t state = 0) : state_(state) {}
  // Another stream for each list of numbers.
  static Random of(std::initializer_list<uint64_t> numbers) {
    Random r(0);
    for (const uint64_t n : numbers) r.state_ = r.bits() ^ n;
    return r;
  }
  static uint64_t fresh_seed() {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }
  uint64_t bits() {
    uint64_t x = state_ += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  uint64_t below(uint64_t n) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>(static_cast<Wide>(bits()) * n >> 64);
  }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)
  uint64_t state() const { return state_; }

 private:
  uint64_t state_;
};

// Counts the iterators of one Dataset, so that each has its own order and numbers. A restored one counts as what it was.
class IteratorCount {
 public:
  uint64_t next() { return next_.fetch_add(1); }
  void saw(uint64_t number) {
    uint64_t next = next_.load();
    while (next <= number && !next_.compare_exchange_weak(next, number + 1)) {
    }
  }

 private:
  std::atomic<uint64_t> next_{0};
};

}  // namespace tandem::data
