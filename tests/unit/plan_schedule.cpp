// Schedules: nothing beats the bound, nothing that fits is missed in small graphs, every schedule runs by the rules, the same one each
// time.
#include "plan/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <random>

#include <tandem/error.hpp>

#include "plan_schedule_graphs.hpp"

namespace tandem::plan {
namespace {

using Kind = ScheduleAction::Kind;
constexpr int64_t kEffort = 3'000'000;

void expect_sound(const ScheduleProblem& problem, const Schedule& s) {
  EXPECT_LE(s.bound, s.fits ? s.cost : INT64_MAX);
  if (!s.fits) {
    EXPECT_TRUE(s.actions.empty());
    return;
  }
  const ScheduleReplay again = replay(problem, s.actions);
  EXPECT_EQ(again.problem_found, "");
  EXPECT_EQ(again.cost, s.cost);
  EXPECT_EQ(again.peak, s.peak);
  EXPECT_EQ(again.host_peak, s.host_peak);
  EXPECT_LE(s.peak, problem.limit);
  EXPECT_EQ(s.least_limit, s.peak);
}

// Written anew, over what is live and what has run: the least cost, or -1.
int64_t least_cost(const ScheduleProblem& p) {
  const size_t n = p.units.size();
  using State = std::pair<uint32_t, uint32_t>;  // live, done
  std::map<State, int64_t> best;
  std::priority_queue<std::pair<int64_t, State>, std::vector<std::pair<int64_t, State>>, std::greater<>> open;
  const auto bytes = [&](uint32_t live) {
    int64_t sum = 0;
    for (size_t v = 0; v < n; ++v)
      if (live >> v & 1) sum += p.values[v].bytes;
    return sum;
  };
  const auto reach = [&](State s, int64_t cost) {
    const auto [it, is_new] = best.emplace(s, cost);
    if (!is_new && it->second <= cost) return;
    it->second = cost;
    open.push({cost, s});
  };
  uint32_t results = 0;
  for (size_t v = 0; v < n; ++v) results |= static_cast<uint32_t>(p.values[v].is_result) << v;
  reach({0, 0}, 0);
  while (!open.empty()) {
    const auto [cost, s] = open.top();
    open.pop();
    if (best.at(s) < cost) continue;
    const auto [live, done] = s;
    if (done + 1 == uint32_t{1} << n && (live & results) == results) return cost;
    for (size_t v = 0; v < n; ++v)
      if (live >> v & 1) reach({live & ~(uint32_t{1} << v), done}, cost);
    for (size_t u = 0; u < n; ++u) {
      const uint32_t bit = uint32_t{1} << u;
      const bool is_ready = std::ranges::all_of(p.units[u].inputs, [&](int32_t v) { return live >> v & 1; });
      if (!(live & bit) && is_ready && bytes(live | bit) + p.units[u].scratch <= p.limit)
        reach({live | bit, done | bit}, cost + p.units[u].cost);
    }
  }
  return -1;
}

TEST(Schedule, MeetsExhaustiveSearchOnSmallGraphs) {
  int optimal = 0, tight = 0, feasible = 0, recomputing = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    ScheduleProblem problem = test::random_graph(7 + seed % 3, seed, 3);
    Schedule unlimited = schedule(problem);
    ASSERT_EQ(unlimited.cost, unlimited.base_cost);
    ASSERT_EQ(unlimited.bound, unlimited.cost);
    problem.limit = unlimited.least_possible + (unlimited.peak - unlimited.least_possible) * (seed % 4) / 5;
    const Schedule s = schedule(problem, {.effort = kEffort});
    expect_sound(problem, s);
    const int64_t least = least_cost(problem);
    SCOPED_TRACE(seed);
    if (least < 0) {
      EXPECT_FALSE(s.fits);
      continue;
    }
    ++feasible;
    EXPECT_LE(s.bound, least);
    tight += s.bound == least;
    recomputing += least > s.base_cost;
    if (s.fits) {
      EXPECT_GE(s.cost, least);
      optimal += s.cost == least;
    }
  }
  EXPECT_GE(feasible, 40);
  EXPECT_GE(recomputing, 15);
  EXPECT_GE(optimal * 100, feasible * 97);
  EXPECT_GE(tight * 100, feasible * 70);
}

TEST(Schedule, FitsAsItIsWithoutALimit) {
  const ScheduleProblem problem = test::random_graph(200, 5, 4);
  const Schedule s = schedule(problem, {.effort = kEffort});
  expect_sound(problem, s);
  std::vector<int32_t> computed;
  for (const ScheduleAction& a : s.actions)
    if (a.kind == Kind::Compute) computed.push_back(a.id);
  std::vector<int32_t> given(problem.units.size());
  std::iota(given.begin(), given.end(), 0);
  EXPECT_EQ(computed, given);
}

TEST(Schedule, IsTheSameEachTimeAndOthersWithAnotherSeed) {
  ScheduleProblem problem = test::training_net(40, 3);
  problem.limit = schedule(problem).peak * 2 / 5;
  const Schedule a = schedule(problem, {.effort = kEffort}), b = schedule(problem, {.effort = kEffort});
  ASSERT_TRUE(a.fits);
  expect_sound(problem, a);
  EXPECT_EQ(a.actions, b.actions);
  EXPECT_EQ(a.bound, b.bound);
  EXPECT_EQ(a.steps, b.steps);
  expect_sound(problem, schedule(problem, {.effort = kEffort, .seed = 2}));
}

TEST(Schedule, StopsWhenAskedTo) {
  ScheduleProblem problem = test::training_net(40, 3);
  problem.limit = schedule(problem).peak / 2;
  int asked = 0;
  const Schedule s = schedule(problem, {.effort = INT64_MAX / 8, .is_enough = [&] { return ++asked > 20; }});
  EXPECT_TRUE(s.fits);
  expect_sound(problem, s);
}

TEST(Schedule, FindsWhatTheLeastLimitSays) {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    ScheduleProblem problem = test::training_net(12, seed);
    problem.limit = 1;
    const Schedule refused = schedule(problem, {.effort = kEffort});
    EXPECT_FALSE(refused.fits);
    EXPECT_GE(refused.least_limit, refused.least_possible);
    EXPECT_GE(refused.tightest_unit, 0);
    problem.limit = refused.least_limit;
    const Schedule s = schedule(problem, {.effort = kEffort});
    EXPECT_TRUE(s.fits);
    expect_sound(problem, s);
  }
}

TEST(Schedule, WaitsOnTheHostWhenThatIsCheaper) {
  ScheduleProblem problem = test::training_net(30, 7);
  problem.limit = schedule(problem).peak * 2 / 5;
  const Schedule alone = schedule(problem, {.effort = kEffort});
  problem.link = {.time_per_gib = int64_t{1} << 30, .latency = 1};
  problem.link.time_per_gib = (int64_t{1} << 30) / 400;  // a value's copy takes about as long as its unit
  const Schedule both = schedule(problem, {.effort = 4 * kEffort});
  ASSERT_TRUE(alone.fits && both.fits);
  expect_sound(problem, both);
  EXPECT_LT(both.cost, alone.cost);
  EXPECT_GT(both.host_peak, 0);
  problem.host_limit = both.host_peak / 3;
  const Schedule within = schedule(problem, {.effort = 4 * kEffort});
  ASSERT_TRUE(within.fits);
  expect_sound(problem, within);
  EXPECT_LE(within.host_peak, problem.host_limit);
}

// Random problems with everything that there is: several outputs, scratch, lanes, bytes that are taken over, state that is overwritten.
TEST(Schedule, KeepsEveryRule) {
  int fitting = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    ScheduleProblem problem = test::graph_with_rules(30, seed);
    const Schedule unlimited = schedule(problem);
    expect_sound(problem, unlimited);
    problem.limit = unlimited.least_possible + (unlimited.peak - unlimited.least_possible) * (1 + seed % 3) / 4;
    const Schedule s = schedule(problem, {.effort = kEffort / 3});
    expect_sound(problem, s);
    fitting += s.fits;
    for (const uint64_t other : {2u, 3u}) {
      const Schedule t = schedule(problem, {.effort = kEffort / 6, .seed = other});
      EXPECT_LE(s.bound, t.fits ? t.cost : INT64_MAX);
    }
  }
  EXPECT_GE(fitting, 30);
}

TEST(Schedule, SaysWhatIsWrongWithAProblem) {
  ScheduleProblem problem;
  problem.values.resize(2);
  problem.units.resize(1);
  problem.units[0].inputs = {5};
  EXPECT_THROW(schedule(problem), InternalError);
  problem.units[0].inputs = {};
  problem.units[0].cost = -1;
  EXPECT_THROW(schedule(problem), InternalError);
}

TEST(Replay, FindsWhatBreaksTheRules) {
  ScheduleProblem p;
  p.values = {{.bytes = 4}, {.bytes = 4, .is_result = true}};
  p.units.resize(2);
  p.units[0].outputs = {0};
  p.units[0].cost = 3;
  p.units[1].inputs = {0};
  p.units[1].outputs = {1};
  p.limit = 8;
  const auto found = [&](std::vector<ScheduleAction> actions) { return replay(p, actions).problem_found; };
  EXPECT_EQ(found({{Kind::Compute, 0}, {Kind::Compute, 1}, {Kind::Free, 0}}), "");
  EXPECT_NE(found({{Kind::Compute, 1}, {Kind::Compute, 0}}), "");                      // an input is not there
  EXPECT_NE(found({{Kind::Compute, 0}}), "");                                          // a unit does not run
  EXPECT_NE(found({{Kind::Compute, 0}, {Kind::Compute, 1}, {Kind::Free, 1}}), "");     // the result is gone
  EXPECT_NE(found({{Kind::Free, 0}, {Kind::Compute, 0}, {Kind::Compute, 1}}), "");     // freed before it is there
  EXPECT_NE(found({{Kind::Compute, 0}, {Kind::Offload, 0}, {Kind::Compute, 1}}), "");  // there is no link
  p.limit = 7;
  EXPECT_NE(found({{Kind::Compute, 0}, {Kind::Compute, 1}, {Kind::Free, 0}}), "");
}

}  // namespace
}  // namespace tandem::plan
