// Rules that make a sequence fit.
#include "plan/schedule_starts.hpp"

#include <algorithm>

namespace tandem::plan::scheduling {
namespace {

// How many of the most promising evictions are judged exactly.
constexpr size_t kJudged = 4;

// How often the price of memory is raised when nothing helps at it.
constexpr int kMostStuck = 12;

struct Eviction {
  std::vector<Insertion> insertions;
  double merit = 0;  // bytes above the limit that go away, for the price
};

}  // namespace

Candidate fit(const Model& model, Evaluator& evaluator, std::vector<int32_t> sequence) {
  Picture picture(model);
  Random random(0);
  Remaker remaker(model, picture, random);
  std::vector<int32_t> changed, best_sequence;
  Score score = evaluator.score(sequence);
  int stuck = 0;
  remaker.excess_price = 0.1 * static_cast<double>(model.base_sum) / static_cast<double>(std::max<int64_t>(1, score.excess));
  while (score.is_valid && score.excess > 0) {
    picture.draw(evaluator);
    const auto peak = static_cast<int32_t>(std::max_element(picture.memory.begin(), picture.memory.end()) - picture.memory.begin());
    std::vector<Eviction> evictions;
    for (int32_t v = 0; v < model.value_count(); ++v) {
      const auto k = static_cast<size_t>(v);
      if (model.maker[k] < 0 || model.on_host[k] || model.bytes[k] == 0) continue;
      const Picture::Gap gap = picture.gap(v, peak);
      if (!gap || gap.from == peak) continue;
      int64_t relief = 0;
      for (int32_t t = gap.from + 1; t < gap.to; ++t)
        relief += std::clamp<int64_t>(picture.memory[static_cast<size_t>(t)] - model.limit, 0, model.bytes[k]);
      remaker.clear();
      if (!remaker.remake(v, gap.to)) continue;
      evictions.push_back({remaker.insertions, static_cast<double>(relief) / (remaker.price + 1)});
    }
    const size_t judged = std::min(kJudged, evictions.size());
    std::partial_sort(evictions.begin(), evictions.begin() + static_cast<ptrdiff_t>(judged), evictions.end(),
                      [](const Eviction& a, const Eviction& b) { return a.merit > b.merit; });
    double best_merit = 0;
    for (size_t i = 0; i < evictions.size() && (i < judged || best_merit == 0); ++i) {
      insert(picture.items, evictions[i].insertions, changed);
      const Score s = evaluator.score(changed);
      if (!s.is_valid || s.excess >= score.excess) continue;
      const double merit =
          static_cast<double>(score.excess - s.excess) / static_cast<double>(std::max<int64_t>(0, s.cost - score.cost) + 1);
      if (merit <= best_merit) continue;
      best_merit = merit;
      best_sequence = changed;
    }
    if (best_merit == 0) {
      if (++stuck > kMostStuck) break;
      remaker.excess_price *= 8;
      evaluator.score(sequence);
      continue;
    }
    score = evaluator.score(sequence = best_sequence);
  }
  sequence.assign(evaluator.kept().begin(), evaluator.kept().end());
  score = evaluator.score(sequence);
  return {std::move(sequence), score};
}

}  // namespace tandem::plan::scheduling
