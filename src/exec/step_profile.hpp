// Where the time of one run went: TANDEM_LOG=step prints it when the run ends.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/plan.hpp"

namespace tandem::exec {

class StepProfile {
 public:
  void add(const plan::Step& step, double seconds);
  // A table, the kernels that took longest first: share, time, how often, bytes, bandwidth, arithmetic, where the user asked for it.
  std::vector<std::string> lines() const;

 private:
  struct Row {
    double seconds = 0;
    int64_t count = 0;
    codegen::Cost cost;
  };
  std::unordered_map<const plan::Step*, Row> rows_;  // alike ones are put together in the end
};

}  // namespace tandem::exec
