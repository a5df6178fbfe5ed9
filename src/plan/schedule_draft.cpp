// A change touches the lives of a few values; memory is corrected where these differ.
#include "plan/schedule_draft.hpp"

#include <algorithm>

#include "plan/schedule_scan.hpp"

namespace tandem::plan::scheduling {

Draft::Draft(const Model& model) : model_(model), runs_of_(static_cast<size_t>(model.item_count())) {
  const auto values = static_cast<size_t>(model.value_count());
  lives_.resize(values);
  std::vector<std::vector<int32_t>> readers(values);
  for (int32_t i = 0; i < model.item_count(); ++i) {
    int64_t own = model.scratch[static_cast<size_t>(i)];
    for (int32_t v : model.outputs[i])
      if (!model.on_host[static_cast<size_t>(v)]) own += model.bytes[static_cast<size_t>(v)];
    own_.push_back(own);
    replaces_any_.push_back(!model.replaces[i].empty());
    for (int32_t v : model.inputs[i]) readers[static_cast<size_t>(v)].push_back(i);
  }
  for (size_t v = 0; v < values; ++v) {
    for (int32_t i : readers[v]) readers_.add(i);
    readers_.end();
    bytes_.push_back(model.on_host[v] ? 0 : model.bytes[v]);
  }
}

template <class F> void Draft::each_maker(int32_t value, F&& f) const {
  const int32_t maker = model_.maker[static_cast<size_t>(value)], fetch = model_.fetch[static_cast<size_t>(value)];
  if (maker < 0) return;
  for (int32_t r : runs_of_[static_cast<size_t>(maker)]) f(r, position_[static_cast<size_t>(r)]);
  if (fetch >= 0)
    for (int32_t r : runs_of_[static_cast<size_t>(fetch)]) f(r, position_[static_cast<size_t>(r)]);
}

template <class F> void Draft::each_reader(int32_t value, F&& f) const {
  for (int32_t i : readers_[value])
    for (int32_t r : runs_of_[static_cast<size_t>(i)]) f(r, position_[static_cast<size_t>(r)]);
  if (model_.is_result[static_cast<size_t>(value)]) f(kEnd, length());
}

void Draft::find_lives(int32_t value, std::vector<Life>& lives) const {
  lives.clear();
  const int32_t maker = model_.maker[static_cast<size_t>(value)], fetch = model_.fetch[static_cast<size_t>(value)];
  for (int32_t r : runs_of_[static_cast<size_t>(maker)]) lives.push_back({r, r, false});
  if (fetch >= 0 && !runs_of_[static_cast<size_t>(fetch)].empty()) {
    const size_t computed = lives.size();
    for (int32_t r : runs_of_[static_cast<size_t>(fetch)]) lives.push_back({r, r, false});
    std::inplace_merge(lives.begin(), lives.begin() + static_cast<ptrdiff_t>(computed), lives.end(), [&](const Life& a, const Life& b) {
      return position_[static_cast<size_t>(a.from)] < position_[static_cast<size_t>(b.from)];
    });
  }
  each_reader(value, [&](int32_t r, int32_t p) {
    size_t k = lives.size();
    while (k > 0 && position_[static_cast<size_t>(lives[k - 1].from)] > p) --k;
    if (k > 0 && position_[static_cast<size_t>(lives[k - 1].to)] < p) lives[k - 1].to = r;
  });
  for (Life& life : lives) {
    if (life.to == life.from || life.to == kEnd) continue;
    const int32_t reader = item_of_[static_cast<size_t>(life.to)];
    if (!replaces_any_[static_cast<size_t>(reader)]) continue;
    const std::span<const int32_t> pairs = model_.replaces[reader];
    for (size_t p = 0; p < pairs.size(); p += 2) life.is_taken_over |= pairs[p] == value;
  }
}

void Draft::stretches(const std::vector<Life>& lives, std::vector<Stretch>& result) const {
  result.clear();
  for (const Life& life : lives) {
    const int32_t after = position_[static_cast<size_t>(life.from)], last = position_[static_cast<size_t>(life.to)] - life.is_taken_over;
    if (last > after) result.push_back({after, last});
  }
}

void Draft::add(int32_t first, int32_t last, int64_t bytes) {
  excess_ += add_bytes(std::span(memory_).subspan(static_cast<size_t>(first), static_cast<size_t>(last - first + 1)), bytes, model_.limit);
  steps_ += (last - first) / 16;
}

// Finds a value's lives again and corrects memory. `is_new`: it had none that count.
void Draft::update(int32_t value, bool is_new) {
  const auto v = static_cast<size_t>(value);
  old_stretches_.clear();
  if (!is_new && bytes_[v] > 0) stretches(lives_[v], old_stretches_);
  find_lives(value, new_lives_);
  lives_[v].assign(new_lives_.begin(), new_lives_.end());
  steps_ += 1 + static_cast<int64_t>(readers_[value].size()) / 4;
  if (bytes_[v] == 0) return;
  stretches(new_lives_, new_stretches_);
  size_t i = 0, j = 0;
  int32_t at = -1;
  while (i < old_stretches_.size() || j < new_stretches_.size()) {
    int32_t next = INT32_MAX;
    bool in_old = false, in_new = false;
    if (i < old_stretches_.size()) {
      in_old = old_stretches_[i].after <= at;
      next = in_old ? old_stretches_[i].last : old_stretches_[i].after;
    }
    if (j < new_stretches_.size()) {
      in_new = new_stretches_[j].after <= at;
      next = std::min(next, in_new ? new_stretches_[j].last : new_stretches_[j].after);
    }
    if (in_old != in_new && next > at) add(at + 1, next, in_new ? bytes_[v] : -bytes_[v]);
    at = next;
    if (in_old && old_stretches_[i].last <= at) ++i;
    if (in_new && new_stretches_[j].last <= at) ++j;
  }
}

void Draft::assign(std::span<const int32_t> items) {
  for (std::vector<int32_t>& runs : runs_of_) runs.clear();
  const size_t n = items.size();
  runs_.resize(n + 1);
  item_of_.assign(n + 1, -1);
  position_.assign(n + 1, -1);
  free_runs_.clear();
  memory_.assign(n + 1, 0);
  cost_ = excess_ = 0;
  for (size_t t = 0; t < n; ++t) {
    const auto run = static_cast<int32_t>(t) + 1;
    runs_[t] = run;
    item_of_[t + 1] = items[t];
    position_[t + 1] = static_cast<int32_t>(t);
    runs_of_[static_cast<size_t>(items[t])].push_back(run);
    cost_ += model_.cost[static_cast<size_t>(items[t])];
    memory_[t] = own_[static_cast<size_t>(items[t])];
    excess_ += over(memory_[t]);
  }
  runs_[n] = kEnd;
  position_[kEnd] = static_cast<int32_t>(n);
  for (int32_t v = 0; v < model_.value_count(); ++v)
    if (model_.maker[static_cast<size_t>(v)] >= 0) update(v, true);
  suspects_.clear();
  for (size_t t = 0; t < n; ++t) look_at(static_cast<int32_t>(t) + 1);
  settle();
  log_.clear();
  steps_ += static_cast<int64_t>(n);
}

void Draft::items(std::vector<int32_t>& result) const {
  result.resize(static_cast<size_t>(length()));
  for (size_t t = 0; t < result.size(); ++t) result[t] = item_of_[static_cast<size_t>(runs_[t])];
}

int32_t Draft::first(int32_t item) const {
  const std::vector<int32_t>& runs = runs_of_[static_cast<size_t>(item)];
  return runs.empty() ? length() : position_[static_cast<size_t>(runs[0])];
}

bool Draft::is_repeat(int32_t position) const {
  const int32_t run = runs_[static_cast<size_t>(position)], item = item_of_[static_cast<size_t>(run)];
  return model_.is_fetch(item) || runs_of_[static_cast<size_t>(item)][0] != run;
}

Draft::Gap Draft::gap(int32_t value, int32_t position) const {
  for (const Life& life : lives_[static_cast<size_t>(value)]) {
    const int32_t from = position_[static_cast<size_t>(life.from)], to = position_[static_cast<size_t>(life.to)];
    if (from >= position) return {};
    if (to <= position) continue;
    Gap gap{from, to};
    bool is_used_here = false;
    steps_ += 1 + static_cast<int64_t>(readers_[value].size()) / 4;
    each_reader(value, [&](int32_t, int32_t p) {
      if (p < position && p > gap.from) gap.from = p;
      if (p > position && p < gap.to) gap.to = p;
      is_used_here |= p == position;
    });
    return is_used_here ? Gap{} : gap;
  }
  return {};
}

bool Draft::is_live_before(int32_t value, int32_t position) const {
  for (const Life& life : lives_[static_cast<size_t>(value)]) {
    if (position_[static_cast<size_t>(life.from)] >= position) return false;
    if (position_[static_cast<size_t>(life.to)] >= position) return true;
  }
  return false;
}

int32_t Draft::last_touch(int32_t value, int32_t position) const {
  int32_t last = -1;
  steps_ += static_cast<int64_t>(readers_[value].size()) / 4;
  for (const Life& life : lives_[static_cast<size_t>(value)]) {
    const int32_t from = position_[static_cast<size_t>(life.from)];
    if (from < position) last = std::max(last, from);
  }
  each_reader(value, [&](int32_t, int32_t p) {
    if (p < position) last = std::max(last, p);
  });
  return last;
}

int32_t Draft::next_touch(int32_t value, int32_t position) const {
  int32_t next = length();
  for (const Life& life : lives_[static_cast<size_t>(value)]) {
    const int32_t from = position_[static_cast<size_t>(life.from)];
    if (from >= position) next = std::min(next, from);
  }
  each_reader(value, [&](int32_t, int32_t p) {
    if (p >= position) next = std::min(next, p);
  });
  return next;
}

// The plain change, without a look at what became useless.
void Draft::put(int32_t position, int32_t item) {
  const auto at = static_cast<size_t>(position);
  // What lives across: everything that the item at the position finds, without what that makes itself.
  int64_t across = memory_[at];
  if (const int32_t here = runs_[at]; here != kEnd) {
    const int32_t next = item_of_[static_cast<size_t>(here)];
    across -= own_[static_cast<size_t>(next)];
    if (replaces_any_[static_cast<size_t>(next)]) {
      const std::span<const int32_t> pairs = model_.replaces[next];
      for (size_t p = 0; p < pairs.size(); p += 2)
        for (const Life& life : lives_[static_cast<size_t>(pairs[p])])
          if (life.to == here && life.is_taken_over) across += bytes_[static_cast<size_t>(pairs[p])];
    }
  }
  int32_t run = static_cast<int32_t>(item_of_.size());
  if (free_runs_.empty()) {
    item_of_.push_back(item);
    position_.push_back(position);
  } else {
    run = free_runs_.back();
    free_runs_.pop_back();
    item_of_[static_cast<size_t>(run)] = item;
    position_[static_cast<size_t>(run)] = position;
  }
  runs_.insert(runs_.begin() + position, run);
  memory_.insert(memory_.begin() + position, across + own_[static_cast<size_t>(item)]);
  for (size_t t = at + 1; t < runs_.size(); ++t) position_[static_cast<size_t>(runs_[t])] = static_cast<int32_t>(t);
  excess_ += over(memory_[at]);
  cost_ += model_.cost[static_cast<size_t>(item)];
  std::vector<int32_t>& runs = runs_of_[static_cast<size_t>(item)];
  size_t k = runs.size();
  while (k > 0 && position_[static_cast<size_t>(runs[k - 1])] > position) --k;
  runs.insert(runs.begin() + static_cast<ptrdiff_t>(k), run);
  for (int32_t v : model_.outputs[item]) update(v, false);
  for (int32_t v : model_.inputs[item]) update(v, false);
  steps_ += 10 + (length() - position) / 16;
}

void Draft::take(int32_t position) {
  const auto at = static_cast<size_t>(position);
  const int32_t run = runs_[at], item = item_of_[static_cast<size_t>(run)];
  std::vector<int32_t>& runs = runs_of_[static_cast<size_t>(item)];
  runs.erase(std::find(runs.begin(), runs.end(), run));
  for (int32_t v : model_.outputs[item]) update(v, false);
  for (int32_t v : model_.inputs[item]) update(v, false);
  excess_ -= over(memory_[at]);
  cost_ -= model_.cost[static_cast<size_t>(item)];
  runs_.erase(runs_.begin() + position);
  memory_.erase(memory_.begin() + position);
  position_[static_cast<size_t>(run)] = -1;
  free_runs_.push_back(run);
  for (size_t t = at; t < runs_.size(); ++t) position_[static_cast<size_t>(runs_[t])] = static_cast<int32_t>(t);
  steps_ += 10 + (length() - position) / 16;
}

int32_t Draft::maker_before(int32_t value, int32_t position) const {
  int32_t best = -1, best_position = -1;
  each_maker(value, [&](int32_t r, int32_t p) {
    if (p < position && p > best_position) {
      best = r;
      best_position = p;
    }
  });
  return best;
}

bool Draft::is_of_use(int32_t position) const {
  const int32_t run = runs_[static_cast<size_t>(position)];
  for (int32_t v : model_.outputs[item_of_[static_cast<size_t>(run)]])
    for (const Life& life : lives_[static_cast<size_t>(v)])
      if (life.from == run && life.to != run) return true;
  return false;
}

void Draft::settle() {
  while (!suspects_.empty()) {
    const int32_t run = suspects_.back();
    suspects_.pop_back();
    const int32_t position = position_[static_cast<size_t>(run)];
    if (run == kEnd || position < 0 || !is_repeat(position) || is_of_use(position)) continue;
    erase(position);
  }
}

void Draft::insert(int32_t position, int32_t item) {
  put(position, item);
  log_.push_back({position, item, true});
  look_at(run_at(position));
  for (int32_t v : model_.outputs[item]) {
    if (const int32_t before = maker_before(v, position); before >= 0) look_at(before);
    each_maker(v, [&](int32_t r, int32_t p) {
      if (p > position) look_at(r);
    });
  }
}

void Draft::erase(int32_t position) {
  const int32_t item = this->item(position);
  log_.push_back({position, item, false});
  take(position);
  for (int32_t v : model_.inputs[item])
    if (const int32_t before = maker_before(v, position); before >= 0) look_at(before);
}

void Draft::undo() {
  suspects_.clear();
  while (!log_.empty()) {
    const Change change = log_.back();
    log_.pop_back();
    if (change.is_insertion)
      take(change.position);
    else
      put(change.position, change.item);
  }
}

bool Draft::may_run(int32_t item, int32_t position) const {
  if (model_.is_fetch(item)) return first(model_.maker[static_cast<size_t>(model_.fetched_value(item))]) < position;
  if (model_.once[static_cast<size_t>(item)]) return false;
  for (int32_t by : model_.runs_before[item])
    if (first(by) < position) return false;
  for (int32_t v : model_.inputs[item])
    if (first(model_.maker[static_cast<size_t>(v)]) >= position) return false;
  return true;
}

bool Draft::move_first(int32_t from, int32_t to) {
  const int32_t item = this->item(from);
  if (model_.has_rules[static_cast<size_t>(item)] || to == from || to == from + 1) return false;
  for (int32_t v : model_.inputs[item])
    if (first(model_.maker[static_cast<size_t>(v)]) >= to) return false;
  const std::vector<int32_t>& runs = runs_of_[static_cast<size_t>(item)];
  if (runs.size() > 1 && position_[static_cast<size_t>(runs[1])] < to) return false;
  for (int32_t v : model_.outputs[item]) {
    for (int32_t reader : readers_[v])
      if (first(reader) < to) return false;
    if (const int32_t fetch = model_.fetch[static_cast<size_t>(v)]; fetch >= 0 && first(fetch) < to) return false;
  }
  log_.push_back({from, item, false});
  take(from);
  const int32_t position = to > from ? to - 1 : to;
  log_.push_back({position, item, true});
  put(position, item);
  for (int32_t v : model_.inputs[item]) each_maker(v, [&](int32_t r, int32_t) { look_at(r); });
  for (int32_t v : model_.outputs[item]) each_maker(v, [&](int32_t r, int32_t) { look_at(r); });
  return true;
}

}  // namespace tandem::plan::scheduling
