// What is live where, and the plans to make a value again.
#include "plan/schedule_moves.hpp"

#include <algorithm>

namespace tandem::plan::scheduling {
namespace {

// In nets with many ways from one value to another, the ways to make one again grow exponentially; a plan that looked this often is
// dropped.
constexpr int32_t kMostCalls = 200;
// What a unit of time on another lane counts beside one on the device, as long as nobody knows whether it is waited for.
constexpr double kOverlapped = 0.25;

}  // namespace

void Picture::draw(const Evaluator& evaluator) {
  items.assign(evaluator.kept().begin(), evaluator.kept().end());
  memory.assign(evaluator.memory().begin(), evaluator.memory().end());
  first.assign(static_cast<size_t>(model_.item_count()), -1);
  std::fill(begin_.begin(), begin_.end(), 0);
  for (int32_t item : items) {
    for (int32_t v : model_.inputs[item]) ++begin_[static_cast<size_t>(v) + 1];
    for (int32_t v : model_.outputs[item]) ++begin_[static_cast<size_t>(v) + 1];
  }
  for (size_t v = 1; v < begin_.size(); ++v) begin_[v] += begin_[v - 1];
  touches_.resize(static_cast<size_t>(begin_.back()));
  for (int32_t t = 0; t < length(); ++t) {
    const int32_t item = items[static_cast<size_t>(t)];
    int32_t& f = first[static_cast<size_t>(item)];
    if (f < 0) f = t;
    for (int32_t v : model_.inputs[item]) touches_[static_cast<size_t>(begin_[static_cast<size_t>(v)]++)] = 2 * t + 1;
    for (int32_t v : model_.outputs[item]) touches_[static_cast<size_t>(begin_[static_cast<size_t>(v)]++)] = 2 * t;
  }
  for (size_t v = begin_.size() - 1; v > 0; --v) begin_[v] = begin_[v - 1];
  begin_[0] = 0;
}

int32_t Picture::last_touch(int32_t value, int32_t position) const {
  const std::span<const int32_t> all = touches(value);
  const auto after = std::lower_bound(all.begin(), all.end(), 2 * position);
  return after == all.begin() ? -1 : *(after - 1) / 2;
}

int32_t Picture::next_touch(int32_t value, int32_t position) const {
  const std::span<const int32_t> all = touches(value);
  const auto after = std::lower_bound(all.begin(), all.end(), 2 * position);
  return after == all.end() ? length() : *after / 2;
}

bool Picture::is_live_before(int32_t value, int32_t position) const {
  const std::span<const int32_t> all = touches(value);
  const auto after = std::lower_bound(all.begin(), all.end(), 2 * position);
  if (after == all.begin()) return false;
  return after == all.end() ? model_.is_result[static_cast<size_t>(value)] : *after % 2 == 1;
}

Picture::Gap Picture::gap(int32_t value, int32_t position) const {
  const std::span<const int32_t> all = touches(value);
  const auto after = std::lower_bound(all.begin(), all.end(), 2 * position);
  if (after == all.begin()) return {};
  if (after == all.end()) return model_.is_result[static_cast<size_t>(value)] ? Gap{*(after - 1) / 2, length()} : Gap{};
  return *after % 2 == 1 && *after / 2 > position ? Gap{*(after - 1) / 2, *after / 2} : Gap{};
}

void Remaker::clear() {
  insertions.clear();
  made_.clear();
  price = 0;
  calls_ = 0;
}

double Remaker::price_of_longer_life(int32_t value, int32_t from, int32_t to) const {
  const int64_t bytes = model_.bytes[static_cast<size_t>(value)];
  int64_t added = 0;
  for (int32_t t = from; t < to; ++t)
    added += std::clamp<int64_t>(picture_.memory[static_cast<size_t>(t)] + bytes - model_.limit, 0, bytes);
  return static_cast<double>(added) * excess_price;
}

bool Remaker::want(int32_t value, int32_t position) {
  if (std::find(made_.begin(), made_.end(), value) != made_.end() || picture_.is_live_before(value, position)) return true;
  const int32_t last = picture_.last_touch(value, position);
  if (last < 0) return false;
  const size_t mark = insertions.size(), made = made_.size();
  const double before = price;
  const double longer = price_of_longer_life(value, last + 1, position) * (1 + noise * random_.unit());
  if (longer > 0) {
    if (remake(value, position) && price - before < longer) return true;
    insertions.resize(mark);
    made_.resize(made);
  }
  price = before + longer;
  return true;
}

bool Remaker::remake(int32_t value, int32_t position) {
  if (++calls_ > kMostCalls) return false;
  const int32_t maker = model_.maker[static_cast<size_t>(value)], fetch = model_.fetch[static_cast<size_t>(value)];
  bool can_compute = !model_.once[static_cast<size_t>(maker)];
  for (int32_t by : model_.runs_before[maker]) can_compute &= picture_.first[static_cast<size_t>(by)] >= position;
  const auto of_lane = [&](int32_t item) { return model_.lane[static_cast<size_t>(item)] == Lane::Device ? 1.0 : kOverlapped; };
  const double fetching =
      fetch < 0 ? 0 : static_cast<double>(model_.cost[static_cast<size_t>(fetch)]) * kOverlapped * (1 + noise * random_.unit());
  const size_t mark = insertions.size(), made = made_.size();
  const double before = price;
  if (can_compute) {
    price += static_cast<double>(model_.cost[static_cast<size_t>(maker)]) * of_lane(maker) * (1 + noise * random_.unit());
    for (int32_t v : model_.inputs[maker]) {
      can_compute = (fetch < 0 || price - before < fetching) && want(v, position);
      if (!can_compute) break;
    }
    if (can_compute && (fetch < 0 || price - before < fetching)) {
      insertions.push_back({position, maker});
      for (int32_t v : model_.outputs[maker]) made_.push_back(v);
      return true;
    }
    insertions.resize(mark);
    made_.resize(made);
    price = before;
  }
  if (fetch < 0) return false;
  // As early as it takes to hide the copy, and as memory allows.
  int32_t at = position;
  const int64_t bytes = model_.bytes[static_cast<size_t>(value)];
  const int32_t last = picture_.last_touch(value, position);
  int64_t hidden = 0;
  while (at - 1 > last && hidden < model_.cost[static_cast<size_t>(fetch)] &&
         picture_.memory[static_cast<size_t>(at) - 1] + bytes <= model_.limit) {
    --at;
    const int32_t item = picture_.items[static_cast<size_t>(at)];
    if (model_.lane[static_cast<size_t>(item)] == Lane::Device) hidden += model_.cost[static_cast<size_t>(item)];
  }
  price += fetching;
  insertions.push_back({at, fetch});
  made_.push_back(value);
  return true;
}

void insert(const std::vector<int32_t>& items, std::vector<Insertion>& insertions, std::vector<int32_t>& result) {
  std::stable_sort(insertions.begin(), insertions.end(), [](const Insertion& a, const Insertion& b) { return a.position < b.position; });
  result.clear();
  size_t next = 0;
  for (size_t t = 0; t <= items.size(); ++t) {
    for (; next < insertions.size() && insertions[next].position == static_cast<int32_t>(t); ++next)
      result.push_back(insertions[next].item);
    if (t < items.size()) result.push_back(items[t]);
  }
}

}  // namespace tandem::plan::scheduling
