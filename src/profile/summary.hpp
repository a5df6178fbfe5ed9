// What a recording comes to: sums by kernel, by transfer and by wait, steps, and how busy each device was.
#pragma once
#include <functional>
#include <optional>

#include "profile/intervals.hpp"
#include "profile/recording.hpp"

namespace tandem::profile {

// Work that is alike, on one device.
struct Sum {
  Kind kind = Kind::Launch;
  uint32_t task = kNoTask, partner = kNoTask;
  std::string device;
  Source source = Source::Unknown;
  int64_t count = 0;
  int64_t again = 0;  // transfers: how often bytes crossed that had crossed before
  double seconds = 0, again_seconds = 0;
  double bytes = 0, again_bytes = 0, flops = 0;  // of launches: by the cost model
  double bytes_per_second() const { return seconds > 0 ? bytes / seconds : 0; }
  double flops_per_second() const { return seconds > 0 ? flops / seconds : 0; }
};

class Summary {
 public:
  explicit Summary(const Recording& recording);
  const Recording& recording() const { return recording_; }
  const Task& task(uint32_t number) const { return recording_.tasks[number]; }
  const Track& track(const Record& r) const { return recording_.tracks[r.track]; }

  // Longest first.
  const std::vector<Sum>& launches() const { return launches_; }    // and what else computes: copies and fills within a memory
  const std::vector<Sum>& transfers() const { return transfers_; }  // by what crosses and for whom
  const std::vector<Sum>& waits() const { return waits_; }          // StreamWait, HostWait, Pipeline, Callback, Compile

  // Of training loops, by begin. A thread that gives work to streams is often some steps ahead of them: a step begins when the one before
  // was done, and is done with the last of the work that was given during it.
  struct StepTime {
    const Record* record;
    bool is_steady;  // nothing was compiled while the thread was in it
    Time begin, done;
    double seconds() const { return 1e-9 * static_cast<double>(done - begin); }
  };
  const std::vector<StepTime>& steps() const { return steps_; }
  double median_step_seconds() const;  // of steady ones; 0: there are none
  // What advice is about: from the first steady step to the end of the last one, or of what was recorded when there are no steps; without
  // the times in which something was compiled.
  const Intervals& steady() const { return steady_; }

  // When a track did something of these kinds.
  Intervals times(const std::function<bool(const Record&)>& which) const;
  Intervals busy(const Track& track) const;  // work, not waits
  // Lanes that are streams of devices with memory of their own, and did something.
  const std::vector<Track>& streams() const { return streams_; }
  // Names of devices that worked, of the streams' first.
  std::vector<std::string> devices() const;

 private:
  const Recording& recording_;
  std::vector<Sum> launches_, transfers_, waits_;
  std::vector<StepTime> steps_;
  std::vector<Track> streams_;
  Intervals steady_;
};

}  // namespace tandem::profile
