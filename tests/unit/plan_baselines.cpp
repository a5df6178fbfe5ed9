// Schedules that others make: valid by the replay's rules, and what their names say.
#include "plan/schedule_baselines.hpp"

#include <gtest/gtest.h>

#include "plan_schedule_graphs.hpp"

namespace tandem::plan {
namespace {

using Kind = ScheduleAction::Kind;

// A chain of so many units, and a gradient for each that reads its value: the values of the chain cross.
ScheduleProblem chain(int32_t depth) {
  ScheduleProblem p;
  const auto add = [&](std::vector<int32_t> inputs) {
    p.values.push_back({.bytes = 64});
    p.units.push_back({.cost = 1, .inputs = std::move(inputs), .outputs = {static_cast<int32_t>(p.values.size()) - 1}});
    return static_cast<int32_t>(p.values.size()) - 1;
  };
  for (int32_t i = 0; i < depth; ++i) add(i == 0 ? std::vector<int32_t>{} : std::vector<int32_t>{i - 1});
  int32_t gradient = add({depth - 1});
  for (int32_t i = depth - 1; i-- > 0;) gradient = add({gradient, i});
  p.values.back().is_result = true;
  p.link = {.time_per_gib = 1 << 24};
  return p;
}

int64_t count(const std::vector<ScheduleAction>& actions, Kind kind) { return std::ranges::count(actions, kind, &ScheduleAction::kind); }

TEST(Baselines, TheRootOfAChainIsKeptAndTheRestComputedOnceMore) {
  const ScheduleProblem p = chain(64);
  const std::vector<ScheduleAction> actions = baseline_actions(p, Baseline::Sqrt);
  const ScheduleReplay r = replay(p, actions);
  EXPECT_EQ(r.problem_found, "");
  const int64_t again = count(actions, Kind::Compute) - static_cast<int64_t>(p.units.size());
  EXPECT_GT(again, 40);
  EXPECT_LT(again, 64);
  EXPECT_LE(r.peak, 20 * 64) << "of 64 values: the kept ones, and one segment";
  EXPECT_GE(r.peak, 14 * 64);
}

TEST(Baselines, AllThatTheBackwardPassReadsGoesAndComesBack) {
  const ScheduleProblem p = chain(64);
  const std::vector<ScheduleAction> actions = baseline_actions(p, Baseline::OffloadAll);
  const ScheduleReplay r = replay(p, actions);
  EXPECT_EQ(r.problem_found, "");
  EXPECT_EQ(count(actions, Kind::Compute), static_cast<int64_t>(p.units.size()));
  EXPECT_GE(count(actions, Kind::Offload), 60);
  EXPECT_EQ(count(actions, Kind::Offload), count(actions, Kind::Fetch));
  EXPECT_LE(r.peak, 5 * 64);
  EXPECT_GE(r.host_peak, 60 * 64);
}

TEST(Baselines, AreValidForAnyGraph) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    ScheduleProblem p = seed % 2 == 0 ? test::training_net(5 + static_cast<int32_t>(seed % 40), seed) : test::random_graph(40, seed, 3);
    p.link = {.time_per_gib = 1 << 24};
    for (const Baseline b : {Baseline::Sqrt, Baseline::OffloadAll})
      ASSERT_EQ(replay(p, baseline_actions(p, b)).problem_found, "") << seed << " " << static_cast<int>(b);
  }
}

}  // namespace
}  // namespace tandem::plan
