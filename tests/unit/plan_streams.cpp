// Plans over a device with memory of its own and the host beside it: what crosses, what waits, and that the verifier misses no wait.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "base/text.hpp"
#include "ir/builder.hpp"
#include "ops/table.hpp"
#include "plan/plan.hpp"
#include "plan/queues.hpp"

namespace tandem::plan {
namespace {

ir::Value input(ir::Builder& b) { return b.input({DType::F32, {64}}); }

// Device 0 is a card that cannot do `on_host`, device 1 the host.
Plan planned(Request request, std::string_view on_host) {
  request.host_memory = {false, true};
  request.device_of = [on_host](const ir::Node& n) { return n.op->name == on_host ? 1 : 0; };
  Tables tables;
  Units units = lower(request, tables);
  std::vector<KernelFacts> facts;
  for (const Tables::Entry& e : tables.kernels)
    facts.push_back({.scratch_bytes = e.kernel.partial_bytes(), .in_place = e.kernel.replaceable, .name = "none"});
  const DeviceFacts devices[] = {{.host_memory = false}, {.host_memory = true}};
  return make_plan(std::move(units), std::move(tables), facts, devices);
}

Plan planned(const ir::Graph& g, std::string_view on_host, std::vector<int32_t> output_devices = {}) {
  Request request{g};
  request.output_devices = std::move(output_devices);
  return planned(std::move(request), on_host);
}

ir::Graph there_and_back() {
  ir::Builder b(ops::table());
  const ir::Value x = b.op("sin", {input(b)});
  return b.finish({b.op("negative", {b.op("cos", {x})})});
}

size_t count(const Plan& p, Kind kind) {
  return static_cast<size_t>(std::ranges::count_if(p.steps, [&](const Step& s) { return s.kind == kind; }));
}

TEST(Streams, WhatADeviceCannotDoIsAPlannedStepWithPlannedCopies) {
  const Plan p = planned(there_and_back(), "cos");
  verify(p);
  EXPECT_EQ(count(p, Kind::Download), 1u);
  EXPECT_EQ(count(p, Kind::Upload), 1u);
  ASSERT_EQ(p.steps.size(), 5u);
  EXPECT_TRUE(p.steps[2].on_host);
  EXPECT_EQ(p.steps[2].label, "cos float32[64]");
  EXPECT_EQ(p.steps[1].waits, std::vector<int32_t>{0});  // the download for the kernel
  EXPECT_EQ(p.steps[2].waits, std::vector<int32_t>{1});  // the host for the download
  EXPECT_TRUE(p.steps[3].waits.empty());                 // the upload begins when the host has done its step
  EXPECT_EQ(p.steps[4].waits, std::vector<int32_t>{3});
  ASSERT_EQ(p.arenas.size(), 2u);
  EXPECT_EQ(p.arenas[0].pinned_by, -1);
  EXPECT_EQ(p.arenas[1].pinned_by, 0) << "what crosses lies where copies reach it";
}

TEST(Streams, EachValueCrossesOnce) {
  ir::Builder b(ops::table());
  const ir::Value x = b.op("sin", {input(b)});
  const ir::Value one = b.op("cos", {x}), other = b.op("cos", {b.op("negative", {x})});
  const Plan p = planned(b.finish({b.op("add", {b.op("multiply", {one, other}), b.op("add", {one, x})})}), "cos");
  verify(p);
  EXPECT_EQ(count(p, Kind::Download), 2u);  // x, and its negative
  EXPECT_EQ(count(p, Kind::Upload), 2u);
}

TEST(Streams, ResultsInTheHostsMemoryAreThereAtTheEnd) {
  ir::Builder b(ops::table());
  Plan p = planned(b.finish({b.op("sin", {input(b)})}), "", {1});
  verify(p);
  EXPECT_EQ(p.waits_at_end, std::vector<int32_t>{1});
  p.waits_at_end.clear();
  EXPECT_THROW(verify(p), InternalError);
}

std::string found_in(const Plan& p) {
  try {
    verify(p);
    return "nothing";
  } catch (const InternalError& e) {
    return e.what();
  }
}

TEST(Streams, AResultThatNobodyWaitsForIsFound) {
  ir::Builder b(ops::table());
  const Plan p = planned(b.finish({b.op("sin", {input(b)})}), "", {1});
  Plan damaged = p;
  damaged.waits_at_end.clear();
  EXPECT_NE(found_in(damaged).find("I24: nobody waits for step 1 "), std::string::npos) << found_in(damaged);
  damaged = p;
  damaged.steps[1].is_awaited = false;
  EXPECT_NE(found_in(damaged).find("I24: the run ends with step 1, which does not say when it is done"), std::string::npos);
  damaged = p;
  damaged.steps[0].is_awaited = false;
  EXPECT_NE(found_in(damaged).find("I17: waits for step 0, which does not say when it is done"), std::string::npos) << found_in(damaged);
}

TEST(Streams, APlanOverItsLimitIsFound) {
  Plan p = planned(there_and_back(), "cos");
  const size_t peak = p.peak_bytes(0), pinned = p.pinned_bytes();
  ASSERT_GT(peak, 0u);
  ASSERT_GT(pinned, 0u);
  p.limits = {{0, false, peak}, {1, true, pinned}};
  EXPECT_EQ(found_in(p), "nothing");
  p.limits = {{0, false, peak - 1}};
  EXPECT_NE(found_in(p).find(cat("I19: the plan takes ", peak, " bytes of device 0, its limit is ", peak - 1)), std::string::npos)
      << found_in(p);
  p.limits = {{1, true, pinned - 1}};
  EXPECT_NE(found_in(p).find(cat("I19: the plan takes ", pinned, " bytes of device 1 for copies, its limit is ", pinned - 1)),
            std::string::npos);
  // What is a constant's, an output's or a larger arena's counts.
  p.limits = {{0, false, peak}};
  p.arenas[0].bytes += 64;
  EXPECT_NE(found_in(p).find("I19"), std::string::npos);
}

TEST(Streams, AStepsPlanCarriesItsLimits) {
  const ir::Graph graph = there_and_back();
  const auto with_limit = [&](size_t bytes) {
    Request r{graph};
    r.host_memory = {false, true};
    Tables tables;
    Units units = lower(r, tables);
    std::vector<KernelFacts> facts(tables.kernels.size());
    const DeviceFacts devices[] = {{.host_memory = false, .limit_bytes = bytes}, {.host_memory = true, .limit_bytes = 4096}};
    return make_plan(std::move(units), std::move(tables), facts, devices);
  };
  const Plan p = with_limit(1 << 20);
  ASSERT_EQ(p.limits.size(), 2u);
  EXPECT_EQ(p.limits[0].bytes, size_t{1} << 20);
  EXPECT_TRUE(p.limits[1].is_pinned);
  verify(p);
  const Plan none = with_limit(64);  // not even the input has room: its report says so
  ASSERT_EQ(none.budgets.size(), 1u);
  EXPECT_FALSE(none.budgets[0].fits);
  verify(none);
}

TEST(Streams, ConstantsAreOnEachDeviceThatReadsThem) {
  ir::Builder b(ops::table());
  const ir::Value two = b.op("sin", {b.scalar(DType::F32, 2)}), x = input(b);
  const Plan p = planned(b.finish({b.op("add", {b.op("cos", {b.scalar(DType::F32, 2)}), b.op("multiply", {x, two})})}), "cos");
  verify(p);
  for (const Constant& c : p.constants) EXPECT_TRUE(c.device == 0 || c.device == 1);
  EXPECT_EQ(count(p, Kind::Download), 0u);
  EXPECT_EQ(count(p, Kind::Upload), 1u);
}

// Every wait of every plan is needed: without it the verifier finds two steps that touch the same bytes.
TEST(Streams, NoWaitIsOneTooFewOrTooMany) {
  std::mt19937 random(3);
  int waits = 0;
  for (int round = 0; round < 100; ++round) {
    ir::Builder b(ops::table());
    std::vector<ir::Value> values = {input(b), input(b)};
    auto pick = [&] { return values[random() % values.size()]; };
    for (int i = 0; i < 15; ++i) switch (random() % 4) {
        case 0: values.push_back(b.op("add", {pick(), pick()})); break;
        case 1: values.push_back(b.op("cos", {pick()})); break;
        default: values.push_back(b.op("sin", {pick()})); break;
      }
    const Plan p = planned(b.finish({pick(), pick(), pick()}), "cos");
    verify(p);
    for (size_t i = 0; i < p.steps.size(); ++i)
      for (size_t w = 0; w < p.steps[i].waits.size(); ++w) {
        Plan damaged = p;
        damaged.steps[i].waits.erase(damaged.steps[i].waits.begin() + static_cast<std::ptrdiff_t>(w));
        ++waits;
        EXPECT_THROW(verify(damaged), InternalError) << "round " << round << ", step " << i << "\n" << p.str();
      }
  }
  EXPECT_GT(waits, 100);
}

TEST(Streams, ASubPlanStaysOnOneDevice) {
  Plan p = planned(there_and_back(), "cos");
  p.steps[2].device = 0;
  EXPECT_THROW(verify(p), InternalError);
}

// Of a batch in the host's memory and a weight on the card.
class Prefetch : public ::testing::Test {
 protected:
  Prefetch() {
    ir::Builder b(ops::table());
    const ir::Value w = input(b), x = input(b);
    graph_ = b.finish({b.op("subtract", {w, b.op("multiply", {b.op("sin", {x}), w})})});
  }
  Plan plan(std::vector<bool> fresh) const {
    Request request{graph_};
    request.donations = {0};
    request.input_devices = {0, 1};
    request.fresh_inputs = std::move(fresh);
    return planned(std::move(request), "");
  }
  ir::Graph graph_;
};

TEST_F(Prefetch, ABatchComesFirstIntoMemoryOfItsOwnTwice) {
  const Plan p = plan({false, true});
  verify(p);
  EXPECT_EQ(p.prefetches, 1u);
  EXPECT_EQ(p.steps[0].kind, Kind::Upload);
  const Arena& arena = p.arenas[static_cast<size_t>(p.steps[0].writes()[0].slot.index)];
  EXPECT_TRUE(arena.is_double_buffered);
  EXPECT_EQ(arena.bytes, 64 * sizeof(float));
  EXPECT_EQ(p.peak_bytes(0), plan({}).peak_bytes(0) + arena.bytes);
}

TEST_F(Prefetch, WhatIsTheSameInEachRunComesInItsTurn) {
  for (const std::vector<bool>& fresh : {std::vector<bool>{}, {false, false}}) {
    const Plan p = plan(fresh);
    verify(p);
    EXPECT_EQ(p.prefetches, 0u);
    for (const Arena& a : p.arenas) EXPECT_FALSE(a.is_double_buffered);
  }
}

TEST_F(Prefetch, TheVerifierFindsWhatTheRunBeforeStillUses) {
  const Plan good = plan({false, true});
  const auto broken = [&](const std::function<void(Plan&)>& how) {
    Plan p = good;
    how(p);
    EXPECT_THROW(verify(p), InternalError);
  };
  broken([](Plan& p) { p.prefetches = 2; });               // a kernel
  broken([](Plan& p) { p.steps[0].waits.push_back(0); });  // waits
  broken([](Plan& p) { p.donated[0] = 1; });               // brings what the run before writes
  broken([&](Plan& p) { p.arenas[static_cast<size_t>(p.steps[0].writes()[0].slot.index)].is_double_buffered = false; });
}

// A check of the numbers comes before state is overwritten, in whatever order they were traced.
TEST(Streams, WhatMayFailComesBeforeStateIsOverwritten) {
  ir::Builder b(ops::table());
  const ir::Value v = input(b), g = input(b), ids = b.input({DType::I32, {8}});
  const ir::Value next = b.op("subtract", {v, g});
  const ir::Value checked = b.op("check_range", {ids}, {{"limit", Dims{4}}, {"op", std::string("take")}});
  const ir::Graph graph = b.finish({next, checked});
  Request request{graph};
  request.donations = {0, -1};
  Tables tables;
  Units units = lower(request, tables);
  std::vector<KernelFacts> facts;
  for (const Tables::Entry& e : tables.kernels) facts.push_back({.in_place = e.kernel.replaceable, .name = "none"});
  const DeviceFacts host;
  const Plan p = make_plan(std::move(units), std::move(tables), facts, {&host, 1});
  verify(p);
  EXPECT_TRUE(p.steps.front().may_fail);
  EXPECT_EQ(p.donated[0], 0);
}

}  // namespace
}  // namespace tandem::plan
