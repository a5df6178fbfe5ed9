#include "plan/simulate.hpp"

#include <algorithm>
#include <map>

#include "plan/queues.hpp"

namespace tandem::plan {
namespace {

// The first begins with nothing behind it; what overlaps from run to run has settled after some.
constexpr int kRuns = 6;

class Walk {
 public:
  Walk(const Plan& plan, const Speeds& speeds)
      : plan_(plan), speeds_(speeds), free_(queue_count(plan)), busy_(free_.size()), end_(plan.steps.size()) {
    for (const Step& s : plan.steps) {
      seconds_.push_back(seconds_of(s, speeds));
      given_.push_back(given_seconds(s));
      if (!s.on_host) run_seconds_ = std::max(run_seconds_, rates(s).run_seconds);
    }
    for (size_t i = plan.prefetches; i < plan.steps.size(); ++i) {
      const Step& s = plan.steps[i];
      if (!s.on_host && s.stream != device::StreamKind::Compute) copies_.emplace(queue_of(s), compute_of(s));
    }
    computed_.assign(2, std::vector<double>(free_.size()));
  }

  Simulated run() {
    Simulated found;
    double before = 0;
    for (int i = 0; i < kRuns; ++i) {
      const double end = one_run(i == 0 ? &found.steps : nullptr);
      found.seconds = end - before;
      before = end;
    }
    found.busy = busy_;
    for (double& b : found.busy) b /= kRuns;
    return found;
  }

 private:
  const device::Rates& rates(const Step& s) const { return speeds_.devices[static_cast<size_t>(s.device)].rates; }
  static size_t compute_of(const Step& s) { return 1 + static_cast<size_t>(s.device) * device::kStreamKinds; }

  // What the host spends on giving it. A loop that the host looks into is as long for the host as for the device.
  double given_seconds(const Step& s) const {
    if (s.on_host) return 0;
    if (s.kind == Kind::Branch || s.kind == Kind::While) return seconds_of(s, speeds_);
    double sum = rates(s).launch_seconds;
    if (s.kind != Kind::Scan) return sum;
    for (const Step& inner : s.bodies[0]->steps) sum += static_cast<double>(s.trips) * given_seconds(inner);
    return sum;
  }

  double one_run(std::vector<Simulated::Span>* spans) {
    host_ += run_seconds_;
    // The halves of the memory for what is prefetched take turns.
    std::vector<double>& two_before = computed_.front();
    for (size_t i = 0; i < plan_.prefetches; ++i) {
      const size_t queue = queue_of(plan_.steps[i]);
      free_[queue] = std::max(free_[queue], two_before[compute_of(plan_.steps[i])]);
      step(i, spans);
    }
    for (const auto& [queue, compute] : copies_) free_[queue] = std::max(free_[queue], free_[compute]);
    for (size_t i = plan_.prefetches; i < plan_.steps.size(); ++i) step(i, spans);
    for (const auto& [queue, compute] : copies_) free_[compute] = std::max(free_[compute], free_[queue]);
    for (const int32_t i : plan_.waits_at_end) host_ = std::max(host_, end_[static_cast<size_t>(i)]);
    std::ranges::rotate(computed_, computed_.begin() + 1);
    computed_.back() = free_;
    double end = host_;
    for (const double f : free_) end = std::max(end, f);
    return end;
  }

  void step(size_t i, std::vector<Simulated::Span>* spans) {
    const Step& s = plan_.steps[i];
    const size_t queue = queue_of(s);
    double waited = 0;
    for (const int32_t w : s.waits) waited = std::max(waited, end_[static_cast<size_t>(w)]);
    if (s.on_host || reads_at_once(s)) host_ = std::max(host_, waited);
    const double begin = std::max({host_, s.on_host ? 0 : free_[queue], waited});
    end_[i] = begin + seconds_[i];
    host_ = s.on_host ? end_[i] : s.kind == Kind::Branch || s.kind == Kind::While ? end_[i] : host_ + given_[i];
    if (!s.on_host) free_[queue] = end_[i];
    busy_[queue] += seconds_[i];
    if (spans) spans->push_back({begin, end_[i]});
  }
  // As the executor does: what no copy reaches by itself is read before the call returns.
  bool reads_at_once(const Step& s) const {
    if (s.kind != Kind::Upload) return false;
    const Slot& from = s.reads()[0].slot;
    return from.base != Slot::Base::Arena || plan_.arenas[static_cast<size_t>(from.index)].pinned_by != s.device;
  }

  const Plan& plan_;
  const Speeds& speeds_;
  std::vector<double> seconds_, given_;  // by step
  double run_seconds_ = 0;
  double host_ = 0;
  std::vector<double> free_, busy_;            // by queue
  std::vector<double> end_;                    // by step, of the run at hand
  std::map<size_t, size_t> copies_;            // queues of copies that begin and end with the run, with their device's compute queue
  std::vector<std::vector<double>> computed_;  // by queue: when the two runs before were done
};

}  // namespace

Simulated simulate(const Plan& plan, const Speeds& speeds) { return Walk(plan, speeds).run(); }

}  // namespace tandem::plan
