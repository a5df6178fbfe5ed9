// Which inputs of a step wait in the host's memory for good, because the step does not fit into the device's otherwise.
#pragma once
#include "plan/plan.hpp"

namespace tandem::engine {

class Residency {
 public:
  // `homes`: the device that each input belongs to.
  Residency(const ir::Graph& graph, const std::vector<int32_t>& homes, const std::vector<int32_t>& donations, const Bindings& bindings);

  // Sends more inputs of the device to `host`, so that `bytes` more are free there; those that are used least go first, such as what an
  // optimizer keeps. Says in the request where they and the results that take their places are. False: none is left.
  bool send(int32_t device, int32_t host, size_t bytes, plan::Request& request);
  size_t sent_bytes() const { return sent_bytes_; }

 private:
  struct Candidate {
    size_t input;
    int32_t device;
    size_t bytes;
    int64_t uses;
    bool sent = false;
  };
  std::vector<Candidate> candidates_;  // in the order in which they go
  const std::vector<int32_t> donations_;
  size_t sent_bytes_ = 0;
};

// ResourceError: what the step needs at least, what sets it, what is largest, and what to do.
[[noreturn]] void refuse(const plan::BudgetReport& report, const std::string& device, const std::string& graph, size_t sent_bytes);

}  // namespace tandem::engine
