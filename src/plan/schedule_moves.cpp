// Plans to make a value again.
#include "plan/schedule_moves.hpp"

#include <algorithm>

#include "plan/schedule_scan.hpp"

namespace tandem::plan::scheduling {
namespace {

// In nets with many ways from one value to another, the ways to make one again grow exponentially; a plan that looked this often is
// dropped.
constexpr int32_t kMostCalls = 150;

}  // namespace

int64_t Remaker::relief(int32_t value, Draft::Gap gap) const {
  steps_ += (gap.to - gap.from) / 16;
  return sum_above(draft_.memory(gap.from + 1, gap.to), model_.limit, draft_.bytes(value));
}

// From the end, as far as the price is below `most`.
double Remaker::longer_life(int32_t value, int32_t from, int32_t to, double most) const {
  constexpr int32_t kAtOnce = 32;
  const int64_t bytes = draft_.bytes(value), free = model_.limit - bytes;
  double price = 0;
  int32_t end = to;
  while (end > from && price <= most) {
    const int32_t begin = std::max(from, end - kAtOnce);
    price += static_cast<double>(sum_above(draft_.memory(begin, end), free, bytes)) * excess_price;
    end = begin;
  }
  steps_ += (to - end) / 16;
  return price;
}

bool Remaker::plan(int32_t value, int32_t position, double most) {
  insertions_.clear();
  made_.clear();
  price_ = 0;
  calls_ = 0;
  most_ = most;
  return remake(value, position);
}

void Remaker::apply() {
  for (const Insertion& i : insertions_)
    if (i.before == 0 || draft_.is_run(i.before)) {
      const int32_t position = draft_.position_of(i.before);
      if (draft_.may_run(i.item, position)) draft_.insert(position, i.item);
    }
  draft_.settle();
}

double Remaker::least_price(int32_t value) const {
  const auto maker = static_cast<size_t>(model_.maker[static_cast<size_t>(value)]);
  double price =
      model_.once[maker] ? kAnyPrice : static_cast<double>(model_.cost[maker]) * (model_.lane[maker] == Lane::Device ? 1 : overlapped);
  if (const int32_t fetch = model_.fetch[static_cast<size_t>(value)]; fetch >= 0 && may_fetch)
    price = std::min(price, static_cast<double>(model_.cost[static_cast<size_t>(fetch)]) * overlapped);
  return price;
}

bool Remaker::want(int32_t value, int32_t position) {
  if (std::find(made_.begin(), made_.end(), value) != made_.end() || draft_.is_live_before(value, position)) return true;
  const int32_t last = draft_.last_touch(value, position);
  if (last < 0) return false;
  ++steps_;
  const size_t mark = insertions_.size(), made = made_.size();
  const double before = price_, longer = vary(longer_life(value, last + 1, position, most_ - before));
  // The search looks no further when a longer life is cheaper anyhow; rules, which do not vary, do.
  if (longer > (noise > 0 ? least_price(value) : 0)) {
    if (remake(value, position) && price_ - before < longer) return true;
    insertions_.resize(mark);
    made_.resize(made);
  }
  price_ = before + longer;
  return price_ <= most_;
}

bool Remaker::remake(int32_t value, int32_t position) {
  ++steps_;
  if (++calls_ > kMostCalls) return false;
  const int32_t maker = model_.maker[static_cast<size_t>(value)], fetch = may_fetch ? model_.fetch[static_cast<size_t>(value)] : -1;
  bool can_compute = !model_.once[static_cast<size_t>(maker)];
  for (int32_t by : model_.runs_before[maker]) can_compute &= draft_.first(by) >= position;
  const double of_lane = model_.lane[static_cast<size_t>(maker)] == Lane::Device ? 1 : overlapped;
  const double fetching = fetch < 0 ? 0 : vary(static_cast<double>(model_.cost[static_cast<size_t>(fetch)]) * overlapped);
  const size_t mark = insertions_.size(), made = made_.size();
  const double before = price_;
  if (can_compute) {
    const double most = fetch < 0 ? most_ : std::min(most_, before + fetching);
    price_ += vary(static_cast<double>(model_.cost[static_cast<size_t>(maker)]) * of_lane);
    for (int32_t v : model_.inputs[maker]) {
      can_compute = price_ <= most && want(v, position);
      if (!can_compute) break;
    }
    if (can_compute && price_ <= most) {
      insertions_.push_back({draft_.run_at(position), maker});
      for (int32_t v : model_.outputs[maker]) made_.push_back(v);
      return true;
    }
    insertions_.resize(mark);
    made_.resize(made);
    price_ = before;
  }
  if (fetch < 0 || price_ + fetching > most_) return false;
  // As early as it takes to hide the copy, and as memory allows.
  int32_t at = position;
  const int64_t room = model_.limit - draft_.bytes(value);
  const int32_t last = draft_.last_touch(value, position);
  int64_t hidden = 0;
  while (at - 1 > last && hidden < model_.cost[static_cast<size_t>(fetch)] && draft_.memory(at - 1) <= room) {
    --at;
    const int32_t item = draft_.item(at);
    if (model_.lane[static_cast<size_t>(item)] == Lane::Device) hidden += model_.cost[static_cast<size_t>(item)];
  }
  steps_ += position - at;
  price_ += fetching;
  insertions_.push_back({draft_.run_at(at), fetch});
  made_.push_back(value);
  return true;
}

}  // namespace tandem::plan::scheduling
