// Rules that make a sequence fit.
#include "plan/schedule_starts.hpp"

#include <algorithm>

namespace tandem::plan::scheduling {
namespace {

// How many of the most promising evictions are judged exactly, each by being done.
constexpr size_t kJudged = 4;
// How often the price of memory is raised when nothing helps at it.
constexpr int kMostStuck = 12;
// Longer sequences get all evictions that one peak needs at once.
constexpr int32_t kLong = 1500;

struct Eviction {
  int32_t value;
  double merit;  // bytes above the limit that go away, for the price
};

class Fitter {
 public:
  Fitter(const Model& model, Draft& draft, bool may_fetch) : model_(model), draft_(draft), random_(0), remaker_(model, draft, random_) {
    remaker_.may_fetch = may_fetch;
  }

  void run() {
    remaker_.excess_price = 0.1 * static_cast<double>(model_.base_sum) / static_cast<double>(std::max<int64_t>(1, draft_.excess()));
    for (int stuck = 0; draft_.excess() > 0 && stuck <= kMostStuck;) {
      find_evictions();
      if (draft_.length() > kLong ? take_many() : take_best()) continue;
      ++stuck;
      remaker_.excess_price *= 8;
    }
  }

 private:
  void find_evictions() {
    peak_ = 0;
    for (int32_t t = 1; t < draft_.length(); ++t)
      if (draft_.memory(t) > draft_.memory(peak_)) peak_ = t;
    evictions_.clear();
    for (int32_t v = 0; v < model_.value_count(); ++v) {
      if (draft_.bytes(v) == 0) continue;
      const Draft::Gap gap = draft_.gap(v, peak_);
      if (!gap || !remaker_.plan(v, gap.to)) continue;
      const int64_t relief = draft_.length() > kLong ? draft_.bytes(v) * (gap.to - gap.from) : remaker_.relief(v, gap);
      evictions_.push_back({v, static_cast<double>(relief) / (remaker_.price() + 1)});
    }
  }

  bool apply(int32_t value) {
    draft_.mark();
    const Draft::Gap gap = draft_.gap(value, peak_);
    if (!gap || !remaker_.plan(value, gap.to)) return false;
    remaker_.apply();
    return true;
  }

  bool take_best() {
    const size_t judged = std::min(kJudged, evictions_.size());
    std::partial_sort(evictions_.begin(), evictions_.begin() + static_cast<ptrdiff_t>(judged), evictions_.end(),
                      [](const Eviction& a, const Eviction& b) { return a.merit > b.merit; });
    double best_merit = 0;
    int32_t best = -1;
    const int64_t excess = draft_.excess(), cost = draft_.cost();
    for (size_t i = 0; i < evictions_.size() && (i < judged || best < 0); ++i) {
      if (!apply(evictions_[i].value)) continue;
      const double merit =
          static_cast<double>(excess - draft_.excess()) / static_cast<double>(std::max<int64_t>(0, draft_.cost() - cost) + 1);
      draft_.undo();
      if (merit <= best_merit) continue;
      best_merit = merit;
      best = evictions_[i].value;
    }
    if (best < 0) return false;
    apply(best);
    draft_.mark();
    return true;
  }

  bool take_many() {
    std::sort(evictions_.begin(), evictions_.end(), [](const Eviction& a, const Eviction& b) { return a.merit > b.merit; });
    bool helped = false;
    // The peak may move when something is inserted before it.
    const int32_t run = draft_.run_at(peak_);
    for (const Eviction& e : evictions_) {
      if (!draft_.is_run(run)) break;
      peak_ = draft_.position_of(run);
      if (draft_.memory(peak_) <= model_.limit) break;
      const int64_t excess = draft_.excess();
      if (!apply(e.value)) continue;
      if (draft_.excess() >= excess)
        draft_.undo();
      else
        helped = true;
    }
    draft_.mark();
    return helped;
  }

  const Model& model_;
  Draft& draft_;
  Random random_;
  Remaker remaker_;
  int32_t peak_ = 0;
  std::vector<Eviction> evictions_;
};

}  // namespace

void fit(const Model& model, Draft& draft, bool may_fetch) { Fitter(model, draft, may_fetch).run(); }

void fill(const Model& model, Draft& draft) {
  if (draft.excess() > 0) return;
  std::vector<int32_t> repeats;
  for (int32_t t = 0; t < draft.length(); ++t)
    if (draft.is_repeat(t)) repeats.push_back(draft.run_at(t));
  std::stable_sort(repeats.begin(), repeats.end(), [&](int32_t a, int32_t b) {
    return model.cost[static_cast<size_t>(draft.item(draft.position_of(a)))] >
           model.cost[static_cast<size_t>(draft.item(draft.position_of(b)))];
  });
  for (int32_t run : repeats) {
    if (!draft.is_run(run) || !draft.is_repeat(draft.position_of(run))) continue;
    draft.mark();
    draft.erase(draft.position_of(run));
    draft.settle();
    if (draft.excess() > 0) draft.undo();
  }
  draft.mark();
}

std::vector<int32_t> keep_only(const Model& model, int32_t moment, const std::vector<Fate>& fates) {
  std::vector<uint8_t> is_there(static_cast<size_t>(model.value_count()), 0);
  std::vector<int32_t> sequence, wanted;
  for (int32_t u = 0; u <= moment; ++u) {
    sequence.push_back(u);
    for (int32_t v : model.outputs[u])
      is_there[static_cast<size_t>(v)] =
          fates[static_cast<size_t>(v)] == Fate::Kept || u == moment || model.once[static_cast<size_t>(u)] || !model.runs_before[u].empty();
  }
  for (int32_t v : model.inputs[moment]) is_there[static_cast<size_t>(v)] = 1;
  const auto make = [&](int32_t value) {
    wanted.assign(1, value);
    while (!wanted.empty()) {
      const int32_t v = wanted.back(), maker = model.maker[static_cast<size_t>(v)], fetch = model.fetch[static_cast<size_t>(v)];
      const size_t before = wanted.size();
      const bool comes_back = fates[static_cast<size_t>(v)] == Fate::Host && fetch >= 0;
      if (!comes_back && !is_there[static_cast<size_t>(v)])
        for (int32_t in : model.inputs[maker])
          if (!is_there[static_cast<size_t>(in)]) wanted.push_back(in);
      if (wanted.size() > before) continue;
      wanted.pop_back();
      if (is_there[static_cast<size_t>(v)]) continue;
      sequence.push_back(comes_back ? fetch : maker);
      for (int32_t out : model.outputs[sequence.back()]) is_there[static_cast<size_t>(out)] = 1;
    }
  };
  for (int32_t u = moment + 1; u < model.unit_count(); ++u) {
    for (int32_t v : model.inputs[u]) make(v);
    sequence.push_back(u);
    for (int32_t v : model.outputs[u]) is_there[static_cast<size_t>(v)] = 1;
  }
  for (int32_t v = 0; v < model.value_count(); ++v)
    if (model.is_result[static_cast<size_t>(v)] && model.maker[static_cast<size_t>(v)] >= 0) make(v);
  return sequence;
}

void fetch_early(const Model& model, Draft& draft) {
  std::vector<int32_t> fetches;
  for (int32_t t = draft.length(); t-- > 0;)
    if (model.is_fetch(draft.item(t))) fetches.push_back(draft.run_at(t));
  // From the last one on; `link_from`: the device's time, from the end, at which the copy after it begins.
  int64_t link_from = 0, from_end = 0;
  int32_t seen = draft.length();
  for (int32_t run : fetches) {
    if (!draft.is_run(run)) continue;
    const int32_t position = draft.position_of(run), item = draft.item(position), value = model.fetched_value(item);
    const auto time_of = [&](int32_t t) {
      const auto k = static_cast<size_t>(draft.item(t));
      return model.lane[k] == Lane::Device ? model.cost[k] : 0;
    };
    while (seen > position) from_end += time_of(--seen);
    link_from = std::max(link_from, from_end) + model.cost[static_cast<size_t>(item)];
    const int64_t room = model.limit - draft.bytes(value);
    const int32_t last = draft.last_touch(value, position);
    int64_t time = from_end;
    int32_t to = position;
    while (to - 1 > last && time < link_from && draft.memory(to - 1) <= room) time += time_of(--to);
    if (to == position) continue;
    const int32_t before = draft.run_at(to);
    draft.mark();
    draft.erase(position);
    draft.insert(draft.position_of(before), item);
    draft.settle();
    seen = std::min(seen + 1, draft.length());
    if (draft.excess() > 0) draft.undo();
  }
  draft.mark();
}

}  // namespace tandem::plan::scheduling
