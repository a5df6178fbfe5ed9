#include "profile/summary.hpp"

#include <map>
#include <set>
#include <tuple>

namespace tandem::profile {
namespace {

bool is_stream(const Track& l) { return l.name == "compute" || l.name == "upload" || l.name == "download"; }

void longest_first(std::vector<Sum>& sums) {
  std::ranges::stable_sort(sums, std::greater{}, [](const Sum& s) { return s.seconds; });
}

using SumKey = std::tuple<Kind, uint32_t, uint32_t, std::string>;  // ordered: equal times come out the same every time

std::vector<Sum> values(const std::map<SumKey, Sum>& sums) {
  std::vector<Sum> all;
  for (const auto& [key, sum] : sums) all.push_back(sum);
  longest_first(all);
  return all;
}

}  // namespace

Summary::Summary(const Recording& recording) : recording_(recording) {
  std::map<SumKey, Sum> launches, transfers, waits;
  std::set<std::tuple<uint32_t, uint64_t, uint16_t>> crossed;  // what, which bytes, where to
  Intervals compiling;
  for (const Record& r : recording.records)
    if (r.kind == Kind::Compile) compiling.add(r.begin, r.end);
  for (const Record& r : recording.records) {
    const Track& on = track(r);
    if (r.kind == Kind::Step) {
      steps_.push_back({&r, !compiling.overlaps(r.begin, r.end), r.begin, r.end});
      continue;
    }
    if (r.kind == Kind::Run || r.kind == Kind::Annotation) continue;
    const bool crosses = is_transfer(r.kind), works = is_work(r.kind) && !crosses;
    auto& sums = works ? launches : crosses ? transfers : waits;
    // Threads that wait are one, streams are not.
    const std::string device = r.kind == Kind::StreamWait ? on.device + " " + on.name : on.device;
    Sum& sum = sums[{r.kind, r.task, crosses ? r.partner : kNoTask, device}];
    sum.kind = r.kind;
    sum.task = r.task;
    sum.partner = crosses ? r.partner : kNoTask;
    sum.device = device;
    sum.source = r.source;
    ++sum.count;
    sum.seconds += r.seconds();
    const Task& t = task(r.task);
    sum.bytes += r.kind == Kind::Launch ? t.bytes : static_cast<double>(r.bytes);
    if (r.kind == Kind::Launch) sum.flops += t.flops;
    if (!crosses) continue;
    const bool always_there = r.source == Source::State || r.source == Source::Constant;
    if (!always_there && r.mark == 0) continue;
    if (crossed.insert({r.task, always_there ? r.partner : r.mark, r.track}).second) continue;
    ++sum.again;
    sum.again_seconds += r.seconds();
    sum.again_bytes += static_cast<double>(r.bytes);
  }
  launches_ = values(launches);
  transfers_ = values(transfers);
  waits_ = values(waits);

  std::set<uint16_t> used;
  for (const Record& r : recording.records)
    if (is_work(r.kind)) used.insert(r.track);
  for (size_t i = 0; i < recording.tracks.size(); ++i)
    if (used.contains(static_cast<uint16_t>(i)) && is_stream(recording.tracks[i])) streams_.push_back(recording.tracks[i]);

  for (const Record& r : recording.records) {
    if (!is_work(r.kind) || r.end <= r.given) continue;
    const auto next = std::ranges::upper_bound(steps_, r.given, {}, [](const StepTime& s) { return s.record->begin; });
    if (next == steps_.begin()) continue;
    StepTime& s = *std::prev(next);
    if (r.given <= s.record->end) s.done = std::max(s.done, r.end);
  }
  for (size_t i = 1; i < steps_.size(); ++i) {
    steps_[i].begin = std::max(steps_[i].begin, steps_[i - 1].done);
    steps_[i].done = std::max(steps_[i].begin, steps_[i].done);
  }

  Time from = recording.begin, to = recording.end;
  if (!steps_.empty()) {
    const auto first = std::ranges::find_if(steps_, &StepTime::is_steady);
    from = (first == steps_.end() ? steps_.begin() : first)->begin;
    to = steps_.back().done;
  } else if (!recording.records.empty()) {
    from = recording.records.front().begin;
    to = from;
    for (const Record& r : recording.records) to = std::max(to, r.end);
  }
  steady_ = Intervals(from, to) - compiling;
}

double Summary::median_step_seconds() const {
  std::vector<double> all;
  for (const StepTime& s : steps_)
    if (s.is_steady) all.push_back(s.seconds());
  if (all.empty()) return 0;
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::ranges::nth_element(all, middle);
  return *middle;
}

Intervals Summary::times(const std::function<bool(const Record&)>& which) const {
  Intervals all;
  for (const Record& r : recording_.records)
    if (which(r)) all.add(r.begin, r.end);
  return all;
}

Intervals Summary::busy(const Track& l) const {
  return times([&](const Record& r) { return is_work(r.kind) && track(r) == l; });
}

std::vector<std::string> Summary::devices() const {
  std::vector<std::string> all;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(all, name) == all.end()) all.push_back(name);
  };
  for (const Track& l : streams_) add(l.device);
  for (const Sum& s : launches_) add(s.device);
  return all;
}

}  // namespace tandem::profile
