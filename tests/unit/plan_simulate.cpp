// How long runs of a plan take: plans that are written by hand, whose times can be worked out on paper, and a device that keeps time.
#include "plan/simulate.hpp"

#include <gtest/gtest.h>

#include "device/device.hpp"
#include "ir/builder.hpp"
#include "ops/table.hpp"
#include "plan/queues.hpp"

namespace tandem::plan {
namespace {

constexpr int32_t kCard = 0, kHost = 1;

// A link of a byte a second and copies that cost nothing besides; kernel k takes k seconds.
class Simulation : public ::testing::Test {
 protected:
  Simulation() {
    facts_[kCard] = {.host_memory = false, .rates = {.link_bytes_per_second = 1}};
    facts_[kHost] = {.host_memory = true};
    plan_.arenas = {{.device = kCard, .bytes = 64}, {.device = kHost, .pinned_by = kCard, .bytes = 64}};
  }
  Step& step(Kind kind, std::vector<int32_t> waits = {}) {
    Step s;
    s.kind = kind;
    s.on_host = false;
    s.waits = std::move(waits);
    return plan_.steps.emplace_back(std::move(s));
  }
  void launch(int32_t seconds, std::vector<int32_t> waits = {}) { step(Kind::Launch, std::move(waits)).kernel = seconds; }
  void host(int32_t seconds, std::vector<int32_t> waits = {}) {
    Step& s = step(Kind::Launch, std::move(waits));
    s.kernel = seconds;
    s.device = kHost;
    s.on_host = true;
  }
  void copy(Kind kind, size_t bytes, std::vector<int32_t> waits = {}, Slot::Base host_end = Slot::Base::Arena) {
    Step& s = step(kind, std::move(waits));
    s.stream = kind == Kind::Upload ? device::StreamKind::Upload : device::StreamKind::Download;
    const Slot here{.index = 0, .bytes = bytes}, there{.base = host_end, .index = host_end == Slot::Base::Arena ? 1 : 0, .bytes = bytes};
    const bool up = kind == Kind::Upload;
    s.effects = {{Effect::Kind::Read, up ? there : here}, {Effect::Kind::Write, up ? here : there}};
  }
  Simulated simulated() const { return simulate(plan_, {kernels_, facts_}); }
  static size_t queue(device::StreamKind kind) { return 1 + static_cast<size_t>(kind); }

  Plan plan_;
  std::array<DeviceFacts, 2> facts_;
  std::vector<double> kernels_{0, 1, 2, 3, 4, 5, 6, 7, 8};
};

TEST_F(Simulation, LaunchesFollowEachOther) {
  launch(2);
  launch(3);
  const Simulated s = simulated();
  EXPECT_DOUBLE_EQ(s.seconds, 5);
  EXPECT_DOUBLE_EQ(s.steps[1].begin, 2);
  EXPECT_DOUBLE_EQ(s.busy[queue(device::StreamKind::Compute)], 5);
}

TEST_F(Simulation, CopiesHideBehindComputing) {
  launch(2);
  copy(Kind::Download, 3, {0});  // 2 to 5
  launch(4);                     // 2 to 6
  copy(Kind::Upload, 1, {1});    // 5 to 6
  launch(1, {3});                // 6 to 7
  const Simulated s = simulated();
  EXPECT_DOUBLE_EQ(s.seconds, 7);
  EXPECT_DOUBLE_EQ(s.steps[3].begin, 5);
  EXPECT_DOUBLE_EQ(s.busy[queue(device::StreamKind::Upload)], 1);
  EXPECT_DOUBLE_EQ(s.busy[queue(device::StreamKind::Download)], 3);
}

TEST_F(Simulation, WhatACopyCostsBesideItsBytesCountsForEach) {
  facts_[kCard].rates.copy_seconds = 2;
  copy(Kind::Upload, 1);
  copy(Kind::Upload, 1);
  launch(1, {1});
  EXPECT_DOUBLE_EQ(simulated().seconds, 2 * (1 + 2) + 1);
}

TEST_F(Simulation, ARunEndsWithItsCopies) {
  launch(1);
  copy(Kind::Download, 6, {0});
  launch(2);
  EXPECT_DOUBLE_EQ(simulated().seconds, 7) << "the next run begins behind the download";
}

TEST_F(Simulation, WhatIsPrefetchedComesWhileTheRunBeforeComputes) {
  copy(Kind::Upload, 3, {}, Slot::Base::Input);
  launch(4, {0});
  EXPECT_DOUBLE_EQ(simulated().seconds, 7);
  plan_.prefetches = 1;
  EXPECT_DOUBLE_EQ(simulated().seconds, 4);
  plan_.steps[0].effects[1].slot.bytes = 6;  // the link is slower than the device
  EXPECT_DOUBLE_EQ(simulated().seconds, 6);
}

TEST_F(Simulation, TheHostWaitsForWhatItComputesWith) {
  launch(2);
  copy(Kind::Download, 1, {0});  // 2 to 3
  launch(3);                     // 2 to 5
  host(4, {1});                  // 3 to 7
  launch(1);                     // given at 7
  const Simulated s = simulated();
  EXPECT_DOUBLE_EQ(s.steps[3].begin, 3);
  EXPECT_DOUBLE_EQ(s.steps[4].begin, 7);
  EXPECT_DOUBLE_EQ(s.seconds, 8);
  EXPECT_DOUBLE_EQ(s.busy[0], 4);
}

TEST_F(Simulation, TheHostGivesTheNextRunWhileThisOneComputes) {
  host(3);
  launch(5);
  EXPECT_DOUBLE_EQ(simulated().seconds, 5) << "the host's part of the next run is done meanwhile";
  facts_[kCard].rates.run_seconds = 4;
  EXPECT_DOUBLE_EQ(simulated().seconds, 3 + 4) << "and then it is the slower one";
}

TEST_F(Simulation, GivingWorkTakesTheHostTime) {
  facts_[kCard].rates.launch_seconds = 2;
  for (int i = 0; i < 4; ++i) launch(1);
  EXPECT_DOUBLE_EQ(simulated().seconds, 4 * 2);
}

TEST_F(Simulation, ResultsInTheHostsMemoryAreWaitedFor) {
  host(3);
  launch(2);
  copy(Kind::Download, 1, {1}, Slot::Base::Output);
  plan_.waits_at_end = {2};
  EXPECT_DOUBLE_EQ(simulated().seconds, 3 + 2 + 1);
}

TEST_F(Simulation, LoopsTakeAllTheirTripsAndReadBacks) {
  facts_[kCard].rates.copy_seconds = 0.5;
  facts_[kCard].rates.link_bytes_per_second = 0;
  const auto body = [](int32_t kernel) {
    auto p = std::make_shared<Plan>();
    Step s;
    s.kernel = kernel;
    s.on_host = false;
    p->steps.push_back(std::move(s));
    return p;
  };
  Step& scan = step(Kind::Scan);
  scan.bodies = {body(3)};
  scan.trips = 7;
  EXPECT_DOUBLE_EQ(simulated().seconds, 21);
  Step& loop = step(Kind::While);
  loop.bodies = {body(1), body(2)};
  loop.trips = 3;
  EXPECT_DOUBLE_EQ(simulated().seconds, 21 + 3 * (1 + 0.5 + 2) + 1.5) << "the condition ends it";
  loop.trips = -1;
  EXPECT_DOUBLE_EQ(simulated().seconds, 21 + kGuessedTrips * (1 + 0.5 + 2) + 1.5);
}

TEST(SimulatedAndKept, ADeviceThatKeepsTimeAgrees) {
  const auto null = device::make("null");
  ir::Builder b(ops::table());
  ir::Value x = b.input({DType::F32, {300, 300}});
  for (int i = 0; i < 3; ++i) x = b.op("matmul", {b.op("sin", {x}), x});
  const ir::Graph g = b.finish({x});
  Request request{g};
  request.host_memory = {false};
  Tables tables;
  Units units = lower(request, tables);
  std::vector<KernelFacts> kernels;
  std::vector<double> seconds;
  std::vector<std::shared_ptr<const device::Program>> programs;
  for (const Tables::Entry& e : tables.kernels) {
    programs.push_back(null->load(e.kernel));
    seconds.push_back(null->seconds(e.kernel));
    kernels.push_back({.scratch_bytes = programs.back()->scratch_bytes(), .name = "timed"});
  }
  const DeviceFacts facts[] = {{.host_memory = false, .rates = null->rates()}};
  const Plan plan = make_plan(std::move(units), std::move(tables), kernels, facts);
  ASSERT_EQ(plan.steps.size(), 6u);
  device::Stream& stream = null->stream(device::StreamKind::Compute);
  double before = 0;
  for (int run = 0; run < 3; ++run) {
    for (const Step& s : plan.steps) {
      const std::vector<void*> pointers(s.reads().size() + s.writes().size(), nullptr);
      stream.launch(programs[static_cast<size_t>(s.kernel)], {pointers});
    }
    EXPECT_NEAR(stream.elapsed_seconds() - before, simulate(plan, {seconds, facts}).seconds, 1e-12);
    before = stream.elapsed_seconds();
  }
}

}  // namespace
}  // namespace tandem::plan
