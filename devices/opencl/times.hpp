// When a queue did what it was given, for profiles: the driver's own times, on the clock of the host.
#pragma once
#include <CL/cl.h>

#include <deque>

#include "profile/recorder.hpp"

namespace tandem::opencl {

// The first and the last command of one piece of work.
struct Commands {
  cl_event first = nullptr, last = nullptr;
};

// Where launches of the calling thread leave their events, while it lives.
class Capture {
 public:
  explicit Capture(Commands* to) : before_(current_) { current_ = to; }
  ~Capture() { current_ = before_; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  static bool is_on() { return current_ != nullptr; }
  static void keep(cl_event event);  // takes it

 private:
  static thread_local Commands* current_;
  Commands* const before_;
};

// Of one queue that works in order and keeps times. Not safe for several threads: its stream has a lock.
class Times {
 public:
  explicit Times(cl_command_queue queue);  // which is idle
  ~Times();
  Times(const Times&) = delete;
  Times& operator=(const Times&) = delete;

  void add(const profile::Piece& piece, const Commands& commands);  // takes the events
  void tell();                                                      // records what has been done meanwhile

 private:
  struct Pending {
    profile::Piece piece;
    Commands commands;
  };
  void tell(const Pending& p);
  profile::Time host_time(cl_event event, cl_profiling_info what) const;
  profile::Time offset_ = 0;  // from the device's clock to the host's
  std::deque<Pending> pending_;
};

}  // namespace tandem::opencl
