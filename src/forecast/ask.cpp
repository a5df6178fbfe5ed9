// The questions: the plan itself, the least that works, the curve of limits, the largest batch.
#include <algorithm>

#include "base/text.hpp"
#include "forecast/forecast.hpp"

namespace tandem::forecast {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr int64_t kQuick = 20;  // a search for one of many plans takes this part of the effort
constexpr int64_t kMostBatch = 1 << 20;
constexpr int64_t kFineness = 32;  // the largest batch is found to this part of itself
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
    if (!f_.planned) f_.refusal = planner_.refusal().text;
    tell("the least that works");
    find_least();
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
      if ((found = within(q_.batch, tried, quick_))) break;
      const Refusal& r = planner_.refusal();
      if (f_.tightest.empty()) f_.tightest = r.tightest, f_.largest = r.largest;
      tried = std::max(up(r.least_bytes), up(tried + tried / 16));
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
      if (std::optional<Situation> s = within(q_.batch, limit, quick_)) f_.curve.push_back(slim(std::move(*s)));
    }
    Situation all = slim(f_.unlimited);
    all.limit_bytes = most;
    f_.curve.push_back(std::move(all));
  }

  bool fits_as_it_is(int64_t batch) { return planner_.plan(batch, 0, 1)->peak_bytes <= f_.limit_bytes; }
  bool fits_planned(int64_t batch) {
    const std::optional<Situation> s = within(batch, f_.limit_bytes, quick_);
    if (s) f_.batch_planned_seconds = s->seconds;
    return s.has_value();
  }
  // The largest for which `fits`, and the least above it that was tried and does not.
  template <class Fits> std::pair<int64_t, int64_t> largest(int64_t from, int64_t fineness, Fits fits) {
    int64_t low = 0, high = 0;
    for (int64_t b = std::max<int64_t>(from, 1); b <= kMostBatch; b *= 2) {
      if (!fits(b)) {
        high = b;
        break;
      }
      low = b;
    }
    if (low == 0 && high > 1)  // not even where it begins
      while (high > 1 && low == 0) {
        const int64_t b = high / 2;
        if (fits(b))
          low = b;
        else
          high = b;
      }
    if (low == 0) return {0, high};
    while (high && high - low > std::max<int64_t>(1, fineness ? low / fineness : 1)) {
      const int64_t middle = low + (high - low) / 2;
      (fits(middle) ? low : high) = middle;
    }
    return {low, high};
  }
  void find_batch() {
    f_.batch_as_it_is = largest(q_.batch, 0, [&](int64_t b) { return fits_as_it_is(b); }).first;
    int64_t seen = 0;
    double seconds = 0;
    const auto [low, high] = largest(std::max<int64_t>(f_.batch_as_it_is, 1), kFineness, [&](int64_t b) {
      const bool fits = fits_planned(b);
      if (fits && b > seen) seen = b, seconds = f_.batch_planned_seconds;
      return fits;
    });
    f_.batch_planned = low;
    f_.batch_refused = high;
    f_.batch_planned_seconds = seconds;
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
