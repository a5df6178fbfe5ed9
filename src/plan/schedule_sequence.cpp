// Judges a sequence: from its end, what is needed and so what memory holds; then from its beginning, when each lane does what.
#include "plan/schedule_sequence.hpp"

#include <algorithm>

namespace tandem::plan::scheduling {
namespace {

constexpr uint8_t kDiesHere = 2;

}  // namespace

Evaluator::Evaluator(const Model& model) : model_(model) {
  const auto values = static_cast<size_t>(model.value_count());
  count_.resize(static_cast<size_t>(model.item_count()));
  is_needed_.resize(values);
  is_fetched_.resize(values);
  ready_.resize(values);
  busy_until_.resize(values);
  host_ready_.resize(values);
}

Score Evaluator::score(std::span<const int32_t> sequence) {
  Score score;
  score.is_valid = walk_back(sequence, score);
  if (score.is_valid && model_.is_timed) add_times(score);
  return score;
}

bool Evaluator::walk_back(std::span<const int32_t> sequence, Score& score) {
  steps_ += static_cast<int64_t>(sequence.size());
  std::fill(count_.begin(), count_.end(), 0);
  std::fill(is_fetched_.begin(), is_fetched_.end(), 0);
  for (int32_t item : sequence) ++count_[static_cast<size_t>(item)];
  int64_t live = 0, host_live = 0;
  for (int32_t v = 0; v < model_.value_count(); ++v) {
    const auto k = static_cast<size_t>(v);
    is_needed_[k] = model_.is_result[k] && model_.maker[k] >= 0;
    if (is_needed_[k]) (model_.on_host[k] ? host_live : live) += model_.bytes[k];
  }
  kept_.resize(sequence.size());
  memory_.resize(sequence.size());
  if (model_.uses_host) host_memory_.resize(sequence.size());
  offloads_.clear();
  deaths_.clear();
  size_t at = sequence.size();
  int32_t first_count = 0, next_once = model_.item_count();
  for (size_t i = sequence.size(); i-- > 0;) {
    const int32_t item = sequence[i];
    const auto u = static_cast<size_t>(item);
    const bool is_first = --count_[u] == 0 && !model_.is_fetch(item);
    if (model_.has_rules[u]) {
      if (model_.once[u]) {
        if (count_[u] > 0 || item > next_once) return false;
        next_once = item;
      }
      for (int32_t later : model_.runs_before[item])
        if (count_[static_cast<size_t>(later)] > 0) return false;
    }
    if (is_first) {
      ++first_count;
    } else {
      bool is_of_use = false;
      for (int32_t v : model_.outputs[item]) is_of_use |= is_needed_[static_cast<size_t>(v)] != 0;
      if (!is_of_use) continue;
    }
    --at;
    kept_[at] = item;
    int64_t now = live, host_now = host_live;  // what is there while it runs
    now += model_.scratch[u];
    for (int32_t v : model_.outputs[item]) {
      const auto k = static_cast<size_t>(v);
      const int64_t bytes = model_.bytes[k];
      if (is_needed_[k]) {
        (model_.on_host[k] ? host_live : live) -= bytes;
        is_needed_[k] = 0;
      } else {
        (model_.on_host[k] ? host_now : now) += bytes;
        deaths_.push_back({static_cast<int32_t>(at), v});
      }
      if (is_first && is_fetched_[k]) {  // it is offloaded here
        host_live -= bytes;
        is_fetched_[k] = 0;
        offloads_.push_back({static_cast<int32_t>(at), v});
      }
    }
    if (model_.is_fetch(item)) {
      const int32_t v = model_.fetched_value(item);
      const auto k = static_cast<size_t>(v);
      if (!is_fetched_[k]) {
        is_fetched_[k] = 1;
        host_live += model_.bytes[k];
        host_now += model_.bytes[k];
        deaths_.push_back({static_cast<int32_t>(at), ~v});
      }
    }
    for (int32_t v : model_.inputs[item]) {
      const auto k = static_cast<size_t>(v);
      if (is_needed_[k]) continue;
      is_needed_[k] = kDiesHere;
      deaths_.push_back({static_cast<int32_t>(at), v});
      const int64_t bytes = model_.bytes[k];
      (model_.on_host[k] ? host_live : live) += bytes;
      (model_.on_host[k] ? host_now : now) += bytes;
    }
    const std::span<const int32_t> pairs = model_.replaces[item];
    for (size_t p = 0; p < pairs.size(); p += 2)
      if (const auto k = static_cast<size_t>(pairs[p]); is_needed_[k] == kDiesHere) (model_.on_host[k] ? host_now : now) -= model_.bytes[k];
    for (int32_t v : model_.inputs[item]) is_needed_[static_cast<size_t>(v)] = 1;
    memory_[at] = now;
    score.peak = std::max(score.peak, now);
    score.excess += std::max<int64_t>(0, now - model_.limit);
    score.cost += model_.cost[u];
    if (model_.uses_host) {
      host_memory_[at] = host_now;
      score.host_peak = std::max(score.host_peak, host_now);
      score.excess += std::max<int64_t>(0, host_now - model_.host_limit);
    }
  }
  first_ = at;
  // What is still needed or fetched was so before it was made.
  const auto none = [](const std::vector<uint8_t>& of_values) {
    return std::all_of(of_values.begin(), of_values.end(), [](uint8_t x) { return x == 0; });
  };
  return first_count == model_.unit_count() && none(is_needed_) && none(is_fetched_);
}

// The first time from `start` on at which what is still in use of what was freed fits into the room.
int64_t Evaluator::wait(const std::vector<Pending>& pending, int64_t start, int64_t room) {
  int64_t in_use = 0;
  for (size_t i = pending.size(); i-- > 0 && pending[i].until > start;) {
    in_use += pending[i].bytes;
    if (in_use > room) return pending[i].until;
  }
  return start;
}

void Evaluator::free_at(std::vector<Pending>& pending, int64_t until, int64_t bytes) {
  if (bytes == 0) return;
  size_t i = pending.size();
  while (i > 0 && pending[i - 1].until > until) --i;
  pending.insert(pending.begin() + static_cast<ptrdiff_t>(i), {until, bytes});
}

void Evaluator::add_times(Score& score) {
  int64_t lanes[4] = {0, 0, 0, 0};  // free from then on
  pending_.clear();
  host_pending_.clear();
  std::fill(busy_until_.begin(), busy_until_.end(), 0);
  size_t death = deaths_.size(), offload = offloads_.size();
  score.cost = 0;
  for (size_t t = first_; t < kept_.size(); ++t) {
    const int32_t item = kept_[t];
    const auto u = static_cast<size_t>(item);
    int64_t& lane = lanes[static_cast<size_t>(model_.lane[u])];
    int64_t start = lane;
    bool takes_device = model_.scratch[u] > 0, takes_host = false;
    for (int32_t v : model_.inputs[item]) start = std::max(start, ready_[static_cast<size_t>(v)]);
    for (int32_t v : model_.overwrites[item]) start = std::max(start, busy_until_[static_cast<size_t>(v)]);
    for (int32_t v : model_.outputs[item]) (model_.on_host[static_cast<size_t>(v)] ? takes_host : takes_device) = true;
    if (model_.is_fetch(item)) start = std::max(start, host_ready_[static_cast<size_t>(model_.fetched_value(item))]);
    const size_t first_death = death;
    while (death > 0 && deaths_[death - 1].position == static_cast<int32_t>(t)) --death;
    const std::span<const Event> dying(deaths_.data() + death, first_death - death);
    const auto dies = [&](int32_t v) { return std::any_of(dying.begin(), dying.end(), [&](const Event& e) { return e.value == v; }); };
    const std::span<const int32_t> pairs = model_.replaces[item];
    for (size_t p = 0; p < pairs.size(); p += 2)
      if (dies(pairs[p])) start = std::max(start, busy_until_[static_cast<size_t>(pairs[p])]);
    if (takes_device) start = wait(pending_, start, model_.limit - memory_[t]);
    if (takes_host) start = wait(host_pending_, start, model_.host_limit - host_memory_[t]);
    const int64_t end = lane = start + model_.cost[u];
    score.cost = std::max(score.cost, end);
    for (int32_t v : model_.inputs[item]) busy_until_[static_cast<size_t>(v)] = std::max(busy_until_[static_cast<size_t>(v)], end);
    for (int32_t v : model_.reads_overwritten[item])
      busy_until_[static_cast<size_t>(v)] = std::max(busy_until_[static_cast<size_t>(v)], end);
    for (int32_t v : model_.outputs[item]) ready_[static_cast<size_t>(v)] = busy_until_[static_cast<size_t>(v)] = end;
    for (; offload > 0 && offloads_[offload - 1].position == static_cast<int32_t>(t); --offload) {
      const auto k = static_cast<size_t>(offloads_[offload - 1].value);
      int64_t& download = lanes[static_cast<size_t>(Lane::Download)];
      download = wait(host_pending_, std::max(download, end), model_.host_limit - host_memory_[t]) + model_.copy_time[k];
      host_ready_[k] = busy_until_[k] = download;
      score.cost = std::max(score.cost, download);
    }
    free_at(pending_, end, model_.scratch[u]);
    for (const Event& e : dying) {
      const bool is_copy = e.value < 0;
      const auto k = static_cast<size_t>(is_copy ? ~e.value : e.value);
      bool is_replaced = false;
      for (size_t p = 0; p < pairs.size(); p += 2) is_replaced |= pairs[p] == e.value;
      if (is_replaced) continue;  // its bytes go on as another value's
      free_at(is_copy || model_.on_host[k] ? host_pending_ : pending_, is_copy ? end : busy_until_[k], model_.bytes[k]);
    }
  }
}

std::vector<ScheduleAction> Evaluator::actions() const {
  using Kind = ScheduleAction::Kind;
  std::vector<ScheduleAction> actions;
  size_t death = deaths_.size(), offload = offloads_.size();
  for (size_t t = first_; t < kept_.size(); ++t) {
    const int32_t item = kept_[t];
    if (model_.is_fetch(item))
      actions.push_back({Kind::Fetch, model_.fetched_value(item)});
    else
      actions.push_back({Kind::Compute, item});
    for (; offload > 0 && offloads_[offload - 1].position == static_cast<int32_t>(t); --offload)
      actions.push_back({Kind::Offload, offloads_[offload - 1].value});
    for (; death > 0 && deaths_[death - 1].position == static_cast<int32_t>(t); --death) {
      const int32_t v = deaths_[death - 1].value;
      actions.push_back(v < 0 ? ScheduleAction{Kind::FreeHost, ~v} : ScheduleAction{Kind::Free, v});
    }
  }
  return actions;
}

}  // namespace tandem::plan::scheduling
