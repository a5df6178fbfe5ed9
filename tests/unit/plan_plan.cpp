// The planner's choices (reuse, results in place, donation, aliases) and that the verifier finds every kind of broken plan.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "ir/builder.hpp"
#include "ops/table.hpp"
#include "passes/pipeline.hpp"
#include "plan/plan.hpp"

namespace tandem::plan {
namespace {

// What the planner would be told of the reference's kernels.
Plan planned(Request request) {
  Tables tables;
  Units units = lower(request, tables);
  std::vector<KernelFacts> facts;
  for (const Tables::Entry& e : tables.kernels)
    facts.push_back({.scratch_bytes = e.kernel.partial_bytes(), .in_place = e.kernel.replaceable, .name = "interpreted"});
  const DeviceFacts host;
  return make_plan(std::move(units), std::move(tables), facts, {&host, 1});
}
constexpr size_t kRow = 64 * sizeof(float);

ir::Value input(ir::Builder& b, Dims dims = {64}) { return b.input({DType::F32, std::move(dims)}); }

// A chain of n elementwise ops behind an input.
ir::Graph chain(int n) {
  ir::Builder b(ops::table());
  ir::Value v = input(b);
  for (int i = 0; i < n; ++i) v = b.op("negative", {v});
  return b.finish({v});
}

TEST(Plan, AChainNeedsOnePlace) {
  const Plan p = planned({chain(10)});
  EXPECT_EQ(p.steps.size(), 10u);
  EXPECT_EQ(p.arena_bytes(), kRow);  // each result takes its operand's place; the last one goes to the output
  verify(p);
}

TEST(Plan, ValuesThatLiveTogetherLieApart) {
  ir::Builder b(ops::table());
  const ir::Value x = input(b);
  const ir::Value a = b.op("sin", {x}), c = b.op("cos", {x}), d = b.op("tanh", {x});
  const ir::Graph g = b.finish({b.op("add", {b.op("multiply", {a, c}), d})});
  const Plan p = planned({g});
  EXPECT_EQ(p.arena_bytes(), 2 * kRow);  // the product frees a place before the third is made
  verify(p);
}

TEST(Plan, AnOperandThatIsReadAgainIsNotOverwritten) {
  ir::Builder b(ops::table());
  const ir::Value x = input(b);
  const ir::Value a = b.op("sin", {x}), c = b.op("negative", {a});
  const ir::Graph g = b.finish({b.op("add", {a, c})});
  const Plan p = planned({g});
  EXPECT_FALSE(p.steps[1].reads()[0].slot.overlaps(p.steps[1].writes()[0].slot));
  verify(p);
}

TEST(Plan, ABroadcastOperandIsNotOverwritten) {
  ir::Builder b(ops::table());
  const ir::Value row = b.op("sin", {input(b, {1, 8})}), column = b.op("sin", {input(b, {8, 1})});
  const ir::Graph g = b.finish({b.op("negative", {b.op("add", {row, column})})});
  const Plan p = planned({g});
  for (const Effect& r : p.steps[2].reads()) EXPECT_FALSE(r.slot.overlaps(p.steps[2].writes()[0].slot));
  verify(p);
}

TEST(Plan, ViewsTakeNoStepAndNoBytes) {
  ir::Builder b(ops::table());
  const ir::Value v = b.op("reshape", {input(b)}, {{"shape", Dims{8, 8}}});
  const Plan p = planned({b.finish({v})});
  EXPECT_TRUE(p.steps.empty());
  EXPECT_EQ(p.aliases[0].input, 0);
  verify(p);
}

TEST(Plan, ResultsThatShareBytesAreCopied) {
  ir::Builder b(ops::table());
  const ir::Value v = b.op("sin", {input(b)});
  const Plan p = planned({b.finish({v, v, b.op("reshape", {v}, {{"shape", Dims{8, 8}}})})});
  EXPECT_EQ(p.steps.size(), 3u);
  verify(p);
}

TEST(Plan, SubPlansWriteEveryOutput) {
  ir::Builder b(ops::table());
  const ir::Value x = input(b);
  const Plan p = planned({b.finish({x}), {}, {}, {}, /*outputs_own_memory=*/true});
  ASSERT_EQ(p.steps.size(), 1u);
  EXPECT_EQ(p.steps[0].kind, Kind::Copy);
  verify(p);
}

TEST(Plan, AnUpdateHappensInPlaceOfItsVariable) {
  ir::Builder b(ops::table());
  const ir::Value v = input(b), g = input(b);
  const Plan p = planned({b.finish({b.op("subtract", {v, g})}), {}, {}, {0}});
  EXPECT_EQ(p.donated[0], 0);
  EXPECT_EQ(p.steps[0].writes()[0].slot.base, Slot::Base::Input);
  verify(p);
}

// Momentum: both new values lie where the old ones did, in one kernel that reads all before it writes.
TEST(Plan, AFusedUpdateOverwritesAllItsState) {
  ir::Builder b(ops::table());
  const ir::Value w = input(b), m = input(b), g = input(b);
  const ir::Value next_m = b.op("add", {m, g}), next_w = b.op("subtract", {w, next_m});
  const ir::Graph graph = passes::fuse(ops::table(), b.finish({next_w, next_m}));
  const Plan p = planned({graph, {}, {}, {0, 1}});
  ASSERT_EQ(p.steps.size(), 1u);
  EXPECT_EQ(p.donated, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(p.arena_bytes(), 0u);
  verify(p);
}

TEST(Plan, ReadersOfStateRunBeforeItIsOverwritten) {
  ir::Builder b(ops::table());
  const ir::Value v = input(b), g = input(b);
  const ir::Value next = b.op("subtract", {v, g}), reader = b.op("sin", {v});  // traced in the other order
  const Plan p = planned({b.finish({next, reader}), {}, {}, {0, -1}});
  EXPECT_EQ(p.donated[0], 0);
  EXPECT_EQ(p.steps[0].writes()[0].slot.base, Slot::Base::Output);
  verify(p);
}

// A transpose is no copy: who reads through it reads the state itself.
TEST(Plan, ReadersThroughMovementRunBeforeStateIsOverwritten) {
  ir::Builder b(ops::table());
  const ir::Value v = input(b, {4, 4}), g = input(b, {4, 4});
  const ir::Value turned = b.op("transpose", {v}), next = b.op("subtract", {v, g}), reader = b.op("matmul", {g, turned});
  const Plan p = planned({b.finish({next, reader}), {}, {}, {0, -1}});
  EXPECT_EQ(p.donated[0], 0);
  EXPECT_EQ(p.steps.size(), 2u);
  verify(p);
}

// Two variables that take each other's value: whichever is written first, the other reads what is gone, so one is not in place.
TEST(Plan, StateThatChangesPlacesIsNotOverwrittenBlindly) {
  ir::Builder b(ops::table());
  const ir::Value x = input(b), y = input(b);
  const Plan p = planned({b.finish({b.op("sin", {y}), b.op("cos", {x})}), {}, {}, {0, 1}});
  EXPECT_LE((p.donated[0] >= 0) + (p.donated[1] >= 0), 1);
  verify(p);
}

TEST(Plan, MovementIsAWayToWalk) {
  ir::Builder b(ops::table());
  const ir::Value x = input(b, {4, 16}), y = input(b, {4, 8});
  const ir::Value part = b.op("slice", {x}, {{"start", ir::Ints{0, 8}}, {"limit", ir::Ints{4, 16}}, {"step", ir::Ints{1, 1}}});
  const Plan p = planned({b.finish({b.op("matmul", {b.op("transpose", {part}), y})})});
  ASSERT_EQ(p.steps.size(), 1u);
  EXPECT_EQ(p.steps[0].reads()[0].slot.shift, 8 * sizeof(float));
  verify(p);
}

TEST(Plan, WhatFreesMemoryRunsAsSoonAsItCan) {
  ir::Builder b(ops::table());
  const ir::Value x = input(b, {64, 64});
  std::vector<ir::Value> big, sums;
  for (int i = 0; i < 4; ++i) big.push_back(b.op("multiply", {x, b.scalar(DType::F32, i + 2)}));
  for (ir::Value v : big) sums.push_back(b.op("sum", {v}, {{"axis", ir::Ints{0}}}));
  const Plan p = planned({b.finish(sums)});
  EXPECT_LT(p.arena_bytes(), 2 * 64 * 64 * sizeof(float));  // one product at a time
  verify(p);
}

// The optimizer's scalars are traced behind all gradients, and every update needs them.
TEST(Plan, UpdatesDoNotWaitForAScalarThatIsTracedLate) {
  ir::Builder b(ops::table());
  const ir::Value x = input(b, {64, 64}), rate = input(b, {});
  std::vector<ir::Value> weights, gradients, updates;
  for (int i = 0; i < 4; ++i) weights.push_back(input(b, {64, 64}));
  for (int i = 0; i < 4; ++i) gradients.push_back(b.op("multiply", {x, b.scalar(DType::F32, i + 2)}));
  const ir::Value root = b.op("sqrt", {rate});
  for (size_t i = 0; i < 4; ++i) updates.push_back(b.op("subtract", {weights[i], b.op("multiply", {gradients[i], root})}));
  const Plan p = planned({b.finish(updates), {}, {}, {2, 3, 4, 5}});
  EXPECT_EQ(p.donated, (std::vector<int32_t>{2, 3, 4, 5}));
  EXPECT_LT(p.arena_bytes(), 2 * 64 * 64 * sizeof(float));  // one gradient at a time
  verify(p);
}

// As of a variable with three axes whose gradient is a product of matrices.
TEST(Plan, AnUpdateInAnotherShapeIsOneInPlace) {
  ir::Builder b(ops::table());
  const ir::Value x = input(b, {64, 64});
  std::vector<ir::Value> weights, gradients, updates;
  for (int i = 0; i < 4; ++i) weights.push_back(input(b, {64, 8, 8}));
  for (int i = 0; i < 4; ++i) gradients.push_back(b.op("multiply", {x, b.scalar(DType::F32, i + 2)}));
  for (size_t i = 0; i < 4; ++i) {
    const ir::Value flat = b.op("reshape", {weights[i]}, {{"shape", Dims{64, 64}}});
    updates.push_back(b.op("reshape", {b.op("subtract", {flat, gradients[i]})}, {{"shape", Dims{64, 8, 8}}}));
  }
  const Plan p = planned({b.finish(updates), {}, {}, {1, 2, 3, 4}});
  EXPECT_EQ(p.donated, (std::vector<int32_t>{1, 2, 3, 4}));
  EXPECT_LT(p.arena_bytes(), 2 * 64 * 64 * sizeof(float));  // one gradient at a time
  verify(p);
}

TEST(Plan, AVariableReadAfterItsUpdateIsNotOverwritten) {
  ir::Builder b(ops::table());
  const ir::Value v = input(b), g = input(b);
  const ir::Value next = b.op("subtract", {v, g});
  const Plan p = planned({b.finish({next, b.op("add", {v, next})}), {}, {}, {0, -1}});
  EXPECT_EQ(p.donated[0], -1);
  verify(p);
}

TEST(Plan, AVariableThatIsAlsoAResultIsNotOverwritten) {
  ir::Builder b(ops::table());
  const ir::Value v = input(b), g = input(b);
  const Plan p = planned({b.finish({b.op("subtract", {v, g}), v}), {}, {}, {0, -1}});
  EXPECT_EQ(p.donated[0], -1);
  EXPECT_EQ(p.aliases[1].input, 0);
  verify(p);
}

TEST(Plan, SymbolsAreBound) {
  ir::Builder b(ops::table());
  const ir::Value x = input(b, {Dim::symbol("b"), 4});
  const ir::Graph g = b.finish({b.op("negative", {b.op("sin", {x})})});
  EXPECT_EQ(planned({g, {{"b", 16}}}).arena_bytes(), 16 * 4 * sizeof(float));
  EXPECT_EQ(planned({g, {{"b", 32}}}).arena_bytes(), 32 * 4 * sizeof(float));
}

// ---- the verifier must find what a planner could do wrong ----

class Broken : public ::testing::Test {
 protected:
  Broken() {
    ir::Builder b(ops::table());
    const ir::Value x = input(b), y = input(b);
    const ir::Value a = b.op("sin", {x}), c = b.op("cos", {y});
    plan_ = planned({b.finish({b.op("add", {b.op("multiply", {a, c}), a})})});
    verify(plan_);
  }
  void expect(const char* invariant, const std::function<void(Plan&)>& damage) {
    Plan p = plan_;
    damage(p);
    try {
      verify(p);
      ADD_FAILURE() << "not found: " << invariant;
    } catch (const InternalError& e) {
      EXPECT_NE(std::string(e.what()).find(invariant), std::string::npos) << e.what();
    }
  }
  // Where a step writes its first result.
  static Slot& written(Plan& p, size_t step) { return p.steps[step].effects[p.steps[step].reads().size()].slot; }
  Plan plan_;
};

TEST_F(Broken, TwoLiveValuesInOnePlace) {
  expect("I13", [](Plan& p) { written(p, 1).offset = written(p, 0).offset; });
}
TEST_F(Broken, ReadBeforeWritten) {
  expect("I13", [](Plan& p) { std::swap(p.steps[1], p.steps[2]); });
}
TEST_F(Broken, MissingStep) {
  expect("I13", [](Plan& p) { p.steps.erase(p.steps.begin()); });
}
TEST_F(Broken, NobodyWritesTheOutput) {
  expect("I13", [](Plan& p) { p.steps.pop_back(); });
}
TEST_F(Broken, WriteOverAnOperandThatIsNotElementwise) {
  expect("I15", [](Plan& p) {
    for (Effect& e : p.steps[2].effects) e.in_place = false;
    written(p, 2).offset = p.steps[2].reads()[0].slot.offset;
  });
}
TEST_F(Broken, PartialOverlap) {
  expect("I15", [](Plan& p) {
    written(p, 2).offset = p.steps[2].reads()[1].slot.offset + 64;
    p.arenas[0].bytes += 64;
  });
}
TEST_F(Broken, OutsideTheArena) {
  expect("I18", [](Plan& p) { p.arenas[0].bytes = kRow; });
}
TEST_F(Broken, NotAligned) {
  expect("I18", [](Plan& p) {
    p.arenas[0].bytes += 64;
    written(p, 0).offset += 4;
  });
}
TEST_F(Broken, AnInputThatWasNotGivenAway) {
  expect("I16", [](Plan& p) {
    written(p, 0).base = Slot::Base::Input;
    written(p, 0).index = 1;
    written(p, 0).offset = 0;
  });
}
TEST_F(Broken, ScratchOverAValue) {
  expect("I15", [](Plan& p) { p.steps[2].effects.push_back({Effect::Kind::Scratch, written(p, 0)}); });
}

// Random graphs of ops with all kinds of lifetimes: whatever the planner does, the verifier must agree.
TEST(Plan, RandomGraphs) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    ir::Builder b(ops::table());
    std::vector<ir::Value> values = {input(b, {8, 8}), input(b, {8, 8}), input(b, {8, 8})};
    auto pick = [&] { return values[random() % values.size()]; };
    for (int i = 0; i < 20; ++i) switch (random() % 5) {
        case 0: values.push_back(b.op("add", {pick(), pick()})); break;
        case 1: values.push_back(b.op("sin", {pick()})); break;
        case 2: values.push_back(b.op("transpose", {pick()})); break;
        case 3: values.push_back(b.op("reshape", {b.op("reshape", {pick()}, {{"shape", Dims{64}}})}, {{"shape", Dims{8, 8}}})); break;
        default: values.push_back(b.op("add", {pick(), b.op("sum", {pick()}, {{"axis", ir::Ints{0}}, {"keepdims", true}})})); break;
      }
    const ir::Graph g = b.finish({pick(), pick(), pick()});
    verify(planned({g, {}, {}, {0, 1, 2}}));
  }
}

}  // namespace
}  // namespace tandem::plan
