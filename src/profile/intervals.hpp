// Sets of moments, as intervals in order that do not touch.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "profile/recording.hpp"

namespace tandem::profile {

class Intervals {
 public:
  Intervals() = default;
  Intervals(Time begin, Time end) { add(begin, end); }

  void add(Time begin, Time end) {
    if (end <= begin) return;
    all_.emplace_back(begin, end);
    is_tidy_ = false;
  }
  const std::vector<std::pair<Time, Time>>& all() const {
    tidy();
    return all_;
  }
  double seconds() const {
    double sum = 0;
    for (const auto& [b, e] : all()) sum += 1e-9 * static_cast<double>(e - b);
    return sum;
  }
  bool overlaps(Time begin, Time end) const {
    const auto at = std::ranges::upper_bound(all(), begin, {}, [](const auto& i) { return i.second; });
    return at != all_.end() && at->first < end;
  }
  // What is in both.
  friend Intervals operator&(const Intervals& a, const Intervals& b) {
    Intervals both;
    for (size_t i = 0, j = 0; i < a.all().size() && j < b.all().size();) {
      both.add(std::max(a.all_[i].first, b.all_[j].first), std::min(a.all_[i].second, b.all_[j].second));
      a.all_[i].second < b.all_[j].second ? ++i : ++j;
    }
    return both;
  }
  // What is in the first only.
  friend Intervals operator-(const Intervals& a, const Intervals& b) {
    Intervals rest;
    size_t j = 0;
    for (const auto& [begin, end] : a.all()) {
      Time from = begin;
      while (j < b.all().size() && b.all_[j].second <= from) ++j;
      for (size_t k = j; k < b.all_.size() && b.all_[k].first < end; ++k) {
        rest.add(from, b.all_[k].first);
        from = std::max(from, b.all_[k].second);
      }
      rest.add(from, end);
    }
    return rest;
  }
  friend Intervals operator|(Intervals a, const Intervals& b) {
    for (const auto& [begin, end] : b.all()) a.add(begin, end);
    return a;
  }

 private:
  void tidy() const {
    if (is_tidy_) return;
    std::ranges::sort(all_);
    size_t n = 0;
    for (const auto& i : all_) {
      if (n > 0 && i.first <= all_[n - 1].second)
        all_[n - 1].second = std::max(all_[n - 1].second, i.second);
      else
        all_[n++] = i;
    }
    all_.resize(n);
    is_tidy_ = true;
  }
  mutable std::vector<std::pair<Time, Time>> all_;
  mutable bool is_tidy_ = true;
};

}  // namespace tandem::profile
