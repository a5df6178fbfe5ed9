// Recordings that nobody recorded, for tests of what is made of them. Times are in milliseconds.
#pragma once
#include <algorithm>
#include <string>

#include "profile/recording.hpp"

namespace tandem::profile {

class MadeUp {
 public:
  MadeUp() {
    r.tasks.push_back({"work without a name", "", ""});
    r.tracks = {{"gpu:0", "compute"}, {"gpu:0", "upload"}, {"gpu:0", "download"}, {"cpu", "thread 1"}, {"host", "thread 1"}};
    r.devices = {{.name = "gpu:0", .launch_seconds = 1e-5}, {.name = "cpu", .is_host = true}};
  }
  enum : uint16_t { kCompute, kUpload, kDownload, kCpu, kThread };

  uint32_t task(const std::string& label, const std::string& where = "", double flops = 0, double bytes = 0) {
    const Task t{label, "", where, flops, bytes};
    const auto found = std::ranges::find(r.tasks, t);
    if (found != r.tasks.end()) return static_cast<uint32_t>(found - r.tasks.begin());
    r.tasks.push_back(t);
    return static_cast<uint32_t>(r.tasks.size() - 1);
  }
  Record& add(uint16_t track, Kind kind, double begin_ms, double end_ms, uint32_t task = kNoTask) {
    const auto ns = [](double ms) { return static_cast<Time>(ms * 1e6); };
    r.records.push_back({.begin = ns(begin_ms), .end = ns(end_ms), .given = ns(begin_ms), .task = task, .track = track, .kind = kind});
    r.end = std::max(r.end, ns(end_ms));
    return r.records.back();
  }
  const Recording& recording() {
    std::ranges::stable_sort(r.records, {}, &Record::begin);
    return r;
  }
  Recording r;
};

}  // namespace tandem::profile
