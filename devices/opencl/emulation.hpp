// GPUs that are not there: what TANDEM_EMULATE_GPU asks for, and copies that take as long as over a link.
#pragma once
#include <CL/cl.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "profile/recorder.hpp"

namespace tandem::opencl {

struct Emulation {
  int count = 0;
  size_t memory_bytes = 0;
  double bytes_per_second = 0;  // of the link, each way; 0: as fast as copies are
  double speed = 1;             // of what it computes, as a part of the core's: 0.5 takes twice as long
};
// "2x512MiB@12GB/s*0.5": the rate and the speed may be left out. UserError says what is wrong and what the form is.
Emulation parse_emulation(std::string_view text);

// Does one stream's copies in order, on a thread of its own, while the device computes. A copy ends when it is done and its time on the
// link has passed; a launch of a slower device, when it is done and as long again as it is slower.
class Pace {
 public:
  Pace(double bytes_per_second, double speed, std::span<const int> cores);  // `cores`: where its thread stays; empty: anywhere
  ~Pace();
  bool slows_launches() const { return speed_ < 1; }
  // `after`, a user event, is set when as much time has passed since `begin` as the device needs for what the core did until `before`.
  void add_launch(const profile::Piece& piece, cl_event begin, cl_event before, cl_event after);
  // `copy`, if there is one, runs once all of `before` have happened; then `after`, a user event, is set: with their error if one failed.
  // Releases `before`, and `after` for the thread. `piece`: is told when it was done.
  void add(const profile::Piece& piece, std::vector<cl_event> before, cl_event after, size_t bytes, std::function<void()> copy);

 private:
  struct Job {
    profile::Piece piece;
    cl_event begin;
    std::vector<cl_event> before;
    cl_event after;
    size_t bytes;
    std::function<void()> copy;
  };
  void loop();
  double seconds_of(const Job& job, double passed) const;

  const double bytes_per_second_, speed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool ends_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace tandem::opencl
