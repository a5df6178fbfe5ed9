// What a recording says about a program that could be faster: five checks, each with what it measured and the threshold it is held to.
#pragma once
#include "profile/summary.hpp"

namespace tandem::profile {

struct Advice {
  std::string title, text;
  double seconds = 0;  // that it is about, of the time that was looked at
};

// From which share of the time a check gives advice. A share below a hundredth is never worth it.
struct Thresholds {
  double pipeline = 0.10;         // steps wait for data
  double cpu_holds_up = 0.05;     // a device has nothing to do while one op runs on the CPU
  double launch_bound = 0.30;     // a device has nothing to do since launches come too slowly, or they are as short as their overhead
  double transferred = 0.01;      // the same bytes cross again
  int64_t transferred_times = 2;  // and so often at least
  double misplaced = 0.01;        // an op's copies
  double misplaced_gain = 1.2;    // copies and op together take so many times what the op would take without them
};

struct Check {
  std::string name, measured, threshold;
  std::vector<Advice> advice;  // that matters most first
};

std::vector<Check> check(const Summary& summary, const Thresholds& thresholds = {});

}  // namespace tandem::profile
