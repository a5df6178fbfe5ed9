// The parts of the scheduler: a draft that is changed step by step against the plain evaluation, cuts, sequences from keep-sets.
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "plan/schedule_cut.hpp"
#include "plan/schedule_draft.hpp"
#include "plan/schedule_dump.hpp"
#include "plan/schedule_moves.hpp"
#include "plan/schedule_scan.hpp"
#include "plan/schedule_sequence.hpp"
#include "plan/schedule_starts.hpp"
#include "plan_schedule_graphs.hpp"
#include "temporary_folder.hpp"

namespace tandem::plan::scheduling {
namespace {

std::vector<int32_t> units_of(const Model& model) {
  std::vector<int32_t> all(static_cast<size_t>(model.unit_count()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Not the timed part: a sum of costs.
void expect_same(const Model& model, const Draft& draft, Evaluator& evaluator) {
  std::vector<int32_t> items;
  draft.items(items);
  const Score score = evaluator.score(items);
  ASSERT_TRUE(score.is_valid);
  ASSERT_EQ(std::vector<int32_t>(evaluator.kept().begin(), evaluator.kept().end()), items);
  int64_t cost = 0, excess = 0;
  for (int32_t t = 0; t < draft.length(); ++t) {
    cost += model.cost[static_cast<size_t>(items[static_cast<size_t>(t)])];
    ASSERT_EQ(draft.memory(t), evaluator.memory()[static_cast<size_t>(t)]) << "position " << t;
    excess += std::max<int64_t>(0, draft.memory(t) - model.limit);
  }
  ASSERT_EQ(draft.cost(), cost);
  ASSERT_EQ(draft.excess(), excess);
}

TEST(ScheduleDraft, KnowsAfterEachChangeWhatTheEvaluatorFinds) {
  for (uint32_t seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE(seed);
    ScheduleProblem problem = test::graph_with_rules(10 + static_cast<int32_t>(seed), seed);
    problem.limit = 20'000;
    const Model model(problem);
    Evaluator evaluator(model);
    Draft draft(model);
    draft.assign(units_of(model));
    expect_same(model, draft, evaluator);
    Random random(seed);
    int changes = 0, undone = 0;
    for (int i = 0; i < 600; ++i) {
      std::vector<int32_t> before, after;
      draft.items(before);
      draft.mark();
      for (int k = random.below(3); k >= 0; --k) {
        const int32_t position = random.below(draft.length()), item = random.below(model.item_count());
        switch (random.below(3)) {
          case 0:
            if (draft.may_run(item, position)) draft.insert(position, item);
            break;
          case 1:
            if (draft.is_repeat(position)) draft.erase(position);
            break;
          default:
            if (!draft.is_repeat(position)) draft.move_first(position, random.below(draft.length() + 1));
        }
      }
      draft.settle();
      draft.items(after);
      changes += before != after;
      ASSERT_NO_FATAL_FAILURE(expect_same(model, draft, evaluator)) << "change " << i;
      if (random.below(2) == 0) continue;
      ++undone;
      draft.undo();
      draft.items(after);
      ASSERT_EQ(before, after);
      ASSERT_NO_FATAL_FAILURE(expect_same(model, draft, evaluator)) << "undone " << i;
    }
    EXPECT_GT(changes, 100);
    EXPECT_GT(undone, 100);
  }
}

TEST(ScheduleDraft, KnowsGaps) {
  ScheduleProblem problem;
  for (int i = 0; i < 4; ++i) {
    problem.values.push_back({.bytes = 1, .is_result = i == 3});
    problem.units.emplace_back();
    problem.units.back().outputs = {i};
  }
  problem.units[1].inputs = {0};
  problem.units[2].inputs = {1};
  problem.units[3].inputs = {0, 2};
  const Model model(problem);
  Draft draft(model);
  draft.assign(units_of(model));
  const Draft::Gap gap = draft.gap(0, 2);
  EXPECT_EQ(gap.from, 1);
  EXPECT_EQ(gap.to, 3);
  EXPECT_FALSE(draft.gap(0, 1));  // used there
  EXPECT_FALSE(draft.gap(1, 3));  // gone
  EXPECT_TRUE(draft.is_live_before(0, 3));
  EXPECT_FALSE(draft.is_live_before(1, 3));
  EXPECT_EQ(draft.last_touch(0, 3), 1);
  EXPECT_EQ(draft.next_touch(0, 2), 3);
}

TEST(ScheduleMoments, BoundsAndKeepsWhatOneMomentSays) {
  // A chain of four large values that are all read again after the last: within three of them, one is made again.
  ScheduleProblem problem;
  for (int32_t i = 0; i < 4; ++i) {
    problem.values.push_back({.bytes = 10});
    problem.units.emplace_back();
    problem.units.back().outputs = {i};
    problem.units.back().cost = 10 + i;
    if (i > 0) problem.units.back().inputs = {i - 1};
  }
  for (int32_t i = 4; i-- > 0;) {
    problem.values.push_back({.bytes = 0});
    problem.units.emplace_back();
    problem.units.back().inputs = {i};
    if (i < 3) problem.units.back().inputs.push_back(static_cast<int32_t>(problem.values.size()) - 2);
    problem.units.back().outputs = {static_cast<int32_t>(problem.values.size()) - 1};
  }
  problem.limit = 30;
  const Model model(problem);
  Evaluator evaluator(model);
  evaluator.score(units_of(model));
  const std::vector<int64_t> memory(evaluator.memory().begin(), evaluator.memory().end());
  Moments moments(model);
  EXPECT_EQ(moments.bound(), 46);
  moments.look(memory, 1'000'000);
  moments.branch(INT64_MAX, 1'000'000);
  EXPECT_EQ(moments.bound(), 56);  // value 0 is the cheapest that helps
  const std::vector<Fate> kept = moments.keep(moments.best_moment(), problem.limit);
  ASSERT_FALSE(kept.empty());
  Draft draft(model);
  draft.assign(keep_only(model, moments.best_moment(), kept));
  fit(model, draft, true);
  fill(model, draft);
  EXPECT_EQ(draft.excess(), 0);
  EXPECT_EQ(draft.cost(), 56);
}

TEST(ScheduleScan, SumsWhatASimpleLoopSums) {
  Random random(3);
  for (int32_t n = 0; n < 70; ++n) {
    std::vector<int64_t> memory;
    for (int32_t i = 0; i < n; ++i) memory.push_back((int64_t{1} << 40) * random.below(100) + random.below(1000));
    const int64_t floor = (int64_t{1} << 40) * random.below(100), most = (int64_t{1} << 40) * random.below(30);
    int64_t above = 0, before = 0, after = 0;
    for (const int64_t m : memory) {
      above += m <= floor ? 0 : m - floor < most ? m - floor : most;
      before += m > floor ? m - floor : 0;
      after += m + most > floor ? m + most - floor : 0;
    }
    EXPECT_EQ(sum_above(memory, floor, most), above);
    std::vector<int64_t> more = memory;
    EXPECT_EQ(add_bytes(more, most, floor), after - before);
    EXPECT_EQ(add_bytes(more, -most, floor), before - after);
    EXPECT_EQ(more, memory);
  }
}

TEST(ScheduleDump, WritesUnitsAsNodesAndWhoReadsWhomAsEdges) {
  ScheduleProblem p;
  p.values = {{.bytes = 2048}, {.bytes = 1}, {.bytes = 4096}, {.bytes = 1024, .on_host = true}, {.bytes = 512}};
  p.units.resize(3);
  p.units[0] = {.cost = 7, .inputs = {4}, .outputs = {0, 1}};  // value 4 is there from the start
  p.units[1] = {.cost = 8, .scratch = 1025, .inputs = {0, 1}, .outputs = {3}};
  p.units[2] = {.cost = 9, .inputs = {1, 3}, .outputs = {2}};
  const DagText text = dag_of(p);
  EXPECT_EQ(text.nodes, "id,cost_int,mem_kb,scratch_kb\n0,7,3,0\n1,8,0,2\n2,9,4,0\n");
  EXPECT_EQ(text.edges, "u,v\n0,1\n0,2\n1,2\n");
}

TEST(ScheduleDump, GoesIntoTheFolderIfThereIsOne) {
  const TemporaryFolder folder;
  ScheduleProblem p;
  p.values = {{.bytes = 2048}};
  p.units.resize(1);
  p.units[0] = {.cost = 7, .outputs = {0}};
  dump_problem(p);
  EXPECT_EQ(folder.file_count(), 0u);
  setenv("TANDEM_DUMP", folder.path().c_str(), 1);
  dump_problem(p);
  dump_problem(p);
  unsetenv("TANDEM_DUMP");
  EXPECT_EQ(folder.file_count(), 4u);  // of each its nodes and its edges
}

// As the search does it, in which a plan may not cost more than the best one so far.
TEST(ScheduleMoves, KeepsPlansBelowTheMostThatTheyMayCost) {
  ScheduleProblem problem = test::training_net(30, 5);
  problem.limit = schedule(problem).peak / 2;
  const Model model(problem);
  Draft draft(model);
  draft.assign(units_of(model));
  Random random(1);
  Remaker remaker(model, draft, random);
  remaker.excess_price = 1e-3;
  int cheaper = 0, refused = 0;
  for (int32_t v = 0; v < model.value_count(); ++v)
    for (int32_t t = 0; t < draft.length(); t += 7) {
      const Draft::Gap gap = draft.gap(v, t);
      if (!gap || !remaker.plan(v, gap.to)) continue;
      const double price = remaker.price();
      if (remaker.plan(v, gap.to, price * 1.01 + 1)) {
        ++cheaper;
        EXPECT_LE(remaker.price(), price * 1.01 + 1);
      }
      if (!remaker.plan(v, gap.to, price / 4)) ++refused;
    }
  EXPECT_GT(cheaper, 20);
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace tandem::plan::scheduling
