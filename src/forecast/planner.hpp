// Plans a step for a device that may not be there, as the engine would, and looks at what the plan does with memory and time.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "engine/engine.hpp"
#include "forecast/step.hpp"
#include "plan/plan.hpp"

namespace tandem::forecast {

using Parts = std::array<size_t, kRoles>;  // bytes by role
size_t sum(const Parts& parts);

// What one step of a plan does in time, and what is in the device's memory while it runs.
struct Moment {
  enum class Lane : uint8_t { Compute, Upload, Download, Host };
  double begin = 0, end = 0;  // seconds from the beginning
  Lane lane = Lane::Compute;
  bool is_again = false;
  std::string label;
  Parts parts{};  // without gaps
};

// What is done with a value because memory is short, and what that costs.
struct Move {
  enum class Kind : uint8_t { Recomputed, Offloaded, StateOnHost, ToHost };  // ToHost: what the host computes with
  Kind kind = Kind::Recomputed;
  std::string what;
  size_t bytes = 0;
  double seconds = 0;  // of computing again, or of all its copies in a step
  double instead = 0;  // what the other of these would take
  std::string line;    // of the user's program
};

struct Situation {
  int64_t batch = 0;
  size_t limit_bytes = 0;  // 0: none
  size_t peak_bytes = 0;   // of the device's memory
  size_t host_bytes = 0;   // in the host's: offloaded results, and state that waits there
  double seconds = 0;      // of a step, by the cost model
  Parts parts{};           // of the peak; they add up to it
  int64_t recomputed = 0, offloaded = 0, state_on_host = 0;
  size_t recomputed_bytes = 0, offloaded_bytes = 0, state_on_host_bytes = 0;
  double recomputed_seconds = 0, copy_seconds = 0;
  std::vector<Moment> moments;
  std::vector<Move> moves;  // the largest first
};

// Why a plan was refused.
struct Refusal {
  std::string text;  // as a run would end with
  size_t least_bytes = 0;
  std::string tightest;
  std::vector<std::pair<std::string, size_t>> largest;
};

class Planner {
 public:
  // Of the device only the list of kernels, the rates and the limit of its account are used, which plan() sets and puts back.
  Planner(TrainingStep step, device::Device& device);
  const TrainingStep& step() const { return step_; }
  device::Device& device() const { return device_; }

  // `effort`: steps of search for a schedule (plan/schedule.hpp). Nothing: `refusal()` says why.
  // Whether a refusal says the least that works, which takes many plans.
  enum class Least : uint8_t { Found, NotAsked };
  std::optional<Situation> plan(int64_t batch, size_t limit_bytes, int64_t effort, Least least = Least::NotAsked);
  const Refusal& refusal() const { return refusal_; }

 private:
  plan::Request request(int64_t batch) const;
  TrainingStep step_;
  device::Device& device_;
  std::unique_ptr<device::Device> host_;
  ir::Graph graph_;  // after passes
  engine::Memory memory_, host_memory_;
  engine::Devices devices_;
  Refusal refusal_;
};

// Times, roles and peaks of a plan that was made.
Situation looked_at(const engine::Planned& planned, const TrainingStep& step, const engine::Devices& devices);

}  // namespace tandem::forecast
