// The questions: the plan itself, the least that works, the curve of limits, the largest batch.
#include <algorithm>

#include "base/text.hpp"
#include "forecast/forecast.hpp"

namespace tandem::forecast {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr int64_t kQuick = 20;  // a search for one of many plans takes this part of the effort
constexpr int64_t kMostBatch = 1 << 20;
constexpr int64_t kFineness = 10;  // the largest batch is found to this part of itself
constexpr int kLeastRounds = 12;

size_t up_to_mib(size_t bytes) { return (bytes + kMiB - 1) / kMiB * kMiB; }
size_t up(size_t bytes) { return bytes < 16 * kMiB ? codegen::align_up(bytes) : up_to_mib(bytes); }

class Asker {
 public:
  Asker(Planner& planner, const Question& q) : planner_(planner), q_(q), quick_(std::max<int64_t>(q.effort / kQuick, 1)) {}

  Forecast run() {
    const device::DeviceInfo& info = planner_.device().info();
    f_.step = planner_.step().name;
    f_.device = info.name;
    f_.description = info.description;
    f_.card = q_.card;
    f_.notes = planner_.step().notes;
    f_.limit_bytes = q_.limit_bytes ? q_.limit_bytes : info.memory_bytes;
    if (f_.limit_bytes == 0) user_error("plan: device ", info.name, " does not say how much memory it has\n  hint: --gpu-memory 4GiB");
    tell("the step without a limit");
    f_.unlimited = *planner_.plan(q_.batch, 0, quick_);
    f_.least_bytes = f_.unlimited.peak_bytes;
    tell("the step within the limit");
    f_.planned = within(q_.batch, f_.limit_bytes, q_.effort);
    tell("the least that works");
    find_least();
    if (!f_.planned) f_.refusal = refused_text();
    find_curve();
    if (q_.finds_batch && !planner_.step().batch_symbol.empty()) {
      tell("the largest batch");
      find_batch();
    }
    return std::move(f_);
  }

 private:
  void tell(const std::string& what) const {
    if (q_.progress) q_.progress(what);
  }
  std::optional<Situation> within(int64_t batch, size_t limit, int64_t effort) {
    std::optional<Situation> s = planner_.plan(batch, limit, effort);
    if (s && s->peak_bytes > limit) internal_error("a plan for ", limit, " bytes takes ", s->peak_bytes);
    return s;
  }

  // A limit of nothing is refused with the least that works. It is asked for again, rounded up, so that what is shown is what was tried.
  void find_least() {
    size_t tried = codegen::kAlignment;
    std::optional<Situation> found;
    for (int round = 0; round < kLeastRounds; ++round) {
      if (tried >= f_.unlimited.peak_bytes) break;
      if ((found = planner_.plan(q_.batch, tried, quick_, round == 0 ? Planner::Least::Found : Planner::Least::NotAsked))) break;
      const Refusal& r = planner_.refusal();
      if (f_.tightest.empty()) f_.tightest = r.tightest, f_.largest = r.largest;
      tried = std::max(round == 0 ? up(r.least_bytes) : size_t{0}, up(tried + tried / 16));
    }
    if (!found) {
      f_.least_bytes = up(f_.unlimited.peak_bytes);
      return;
    }
    f_.least_bytes = tried;
    least_ = std::move(*found);
    // The search was quick, and the plan itself may have found more.
    if (f_.planned && f_.limit_bytes < f_.least_bytes) f_.least_bytes = f_.limit_bytes, least_ = *f_.planned;
  }

  std::string refused_text() const {
    std::string text =
        cat(f_.step, ": it does not fit into ", f_.limit_bytes, " bytes of ", f_.device, ": it needs at least ", f_.least_bytes, " bytes",
            f_.tightest.empty() ? "" : cat(", which ", f_.tightest, " sets"), "\n  largest values:");
    for (const auto& [label, bytes] : f_.largest)
      text += cat(" ", label, " (", bytes, " bytes)", &label == &f_.largest.back().first ? "" : ",");
    return text + cat("\n  tried: computing again, results on the host, state on the host\n  hint: a limit of ", f_.least_bytes,
                      " bytes or more, or a smaller batch");
  }

  static Situation slim(Situation s) {
    s.moments.clear();
    s.moves.clear();
    return s;
  }
  void find_curve() {
    if (q_.curve_points <= 0 || !least_) return;
    const size_t least = f_.least_bytes, most = up(f_.unlimited.peak_bytes);
    f_.curve.push_back(slim(*least_));
    for (int i = 1; i + 1 < q_.curve_points && most > least; ++i) {
      const size_t limit = up(least + (most - least) * static_cast<size_t>(i) / static_cast<size_t>(q_.curve_points - 1));
      if (limit <= f_.curve.back().limit_bytes || limit >= most) continue;
      tell(cat("the curve at ", limit / kMiB, " MiB"));
      std::optional<Situation> found = within(q_.batch, limit, quick_);
      if (!found) continue;
      // A plan for less memory fits too.
      Situation point = found->seconds <= f_.curve.back().seconds ? slim(std::move(*found)) : f_.curve.back();
      point.limit_bytes = limit;
      f_.curve.push_back(std::move(point));
    }
    Situation all = slim(f_.unlimited);
    all.limit_bytes = most;
    f_.curve.push_back(std::move(all));
  }

  bool fits_as_it_is(int64_t batch) { return planner_.plan(batch, 0, 1)->peak_bytes <= f_.limit_bytes; }
  // The largest from `low`, which fits, on, and the least above it that was tried and does not: first by `stride`, then to a part of
  // itself.
  template <class Fits> std::pair<int64_t, int64_t> largest(int64_t low, double stride, int64_t fineness, Fits fits) {
    int64_t high = 0;
    while (high == 0 && low < kMostBatch) {
      const auto next = std::min(kMostBatch, std::max(low + 1, static_cast<int64_t>(static_cast<double>(low) * stride)));
      (fits(next) ? low : high) = next;
    }
    while (high && high - low > std::max<int64_t>(1, fineness ? low / fineness : 1)) {
      const int64_t middle = low + (high - low) / 2;
      (fits(middle) ? low : high) = middle;
    }
    return {low, high};
  }
  void find_batch() {
    const auto as_it_is = [&](int64_t b) { return fits_as_it_is(b); };
    f_.batch_as_it_is = largest(0, 2, 0, as_it_is).first;
    // What a step needs at least grows about like the batch.
    const auto planned = [&](int64_t b) {
      const std::optional<Situation> s = within(b, f_.limit_bytes, quick_);
      if (s && b > f_.batch_planned) f_.batch_planned = b, f_.batch_planned_seconds = s->seconds;
      return s.has_value();
    };
    if (f_.batch_as_it_is > 0) planned(f_.batch_as_it_is);
    if (f_.planned && q_.batch > f_.batch_planned) f_.batch_planned = q_.batch, f_.batch_planned_seconds = f_.planned->seconds;
    const double room = static_cast<double>(f_.limit_bytes) / static_cast<double>(std::max<size_t>(f_.least_bytes, 1));
    const auto guess = static_cast<int64_t>(std::min(room * static_cast<double>(q_.batch), static_cast<double>(kMostBatch)) * 0.9);
    if (guess > f_.batch_planned && guess <= kMostBatch && !planned(guess)) f_.batch_refused = guess;
    if (f_.batch_refused) {
      while (f_.batch_refused - f_.batch_planned > std::max<int64_t>(1, f_.batch_planned / kFineness)) {
        const int64_t middle = f_.batch_planned + (f_.batch_refused - f_.batch_planned) / 2;
        if (!planned(middle)) f_.batch_refused = middle;
      }
    } else {
      f_.batch_refused = largest(f_.batch_planned, 1.25, kFineness, planned).second;
    }
  }

  Planner& planner_;
  const Question& q_;
  const int64_t quick_;
  Forecast f_;
  std::optional<Situation> least_;
};

}  // namespace

Forecast ask(Planner& planner, const Question& question) { return Asker(planner, question).run(); }

}  // namespace tandem::forecast
