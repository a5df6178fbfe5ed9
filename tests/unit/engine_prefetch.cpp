// Batches that come while the step before computes: on the device that is late, with the CPU beside it.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/engine.hpp"
#include "late/late_device.hpp"
#include "ops/table.hpp"
#include "profile/recorder.hpp"

namespace tandem::engine {
namespace {

constexpr int32_t kCpu = 0, kLate = 1;
constexpr int64_t kRows = 16, kColumns = 8;
constexpr int kSteps = 60;

// w - 0.1 x'(tanh(x w)), of a weight on the device and a batch in the host's memory.
ir::Graph step() {
  ir::Builder b(ops::table());
  const ir::Value w = b.input({DType::F32, {kColumns, kColumns}}), x = b.input({DType::F32, {kRows, kColumns}});
  const ir::Value y = b.op("tanh", {b.op("matmul", {x, w})});
  const ir::Value change = b.op("multiply", {b.op("matmul", {b.op("transpose", {x}), y}), b.scalar(DType::F32, 0.1)});
  return b.finish({b.op("subtract", {w, change})});
}

class Prefetched : public ::testing::Test {
 protected:
  Prefetched()
      : device_(*late::make_device({.longest_delay_us = 50}).release()),
        engine_(*new Engine(std::vector<device::Device*>{&device::get("cpu"), &device_}, kLate)) {}

  TensorRef tensor(int32_t device, const Shape& shape, float first) {
    std::vector<float> numbers(static_cast<size_t>(element_count(shape)));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = first + 0.01f * static_cast<float>(i % 37);
    TensorRef t{engine_.allocate(numbers.size() * sizeof(float), device), codegen::Layout::dense(DType::F32, shape), 0};
    engine_.devices().at(device).stream(device::StreamKind::Compute).upload(t.data(), numbers.data(), numbers.size() * sizeof(float));
    return t;
  }
  // A batch of its own for each step, which is given back as soon as the step was given to the device.
  std::vector<float> trained(bool waits_for_each) {
    Executable x(step(), engine_, {.donations = {0}, .is_state = {true, false}});
    TensorRef w = tensor(kLate, {kColumns, kColumns}, -0.2f);
    for (int i = 0; i < kSteps; ++i) {
      const TensorRef batch = tensor(kCpu, {kRows, kColumns}, 0.05f * static_cast<float>(i % 7) - 0.3f);
      const TensorRef* inputs[] = {&w, &batch};
      std::vector<TensorRef> out;
      const auto bound = x.bind(inputs);
      plan::verify(bound->plan());
      EXPECT_EQ(bound->plan().prefetches, 1u);
      bound->run(inputs, out);
      w = out[0];
      if (waits_for_each) device_.finish();
    }
    std::vector<float> numbers(kColumns * kColumns);
    device_.stream(device::StreamKind::Compute).download(numbers.data(), w.data(), numbers.size() * sizeof(float));
    device_.finish();
    return numbers;
  }

  late::LateDevice& device_;  // never destroyed, as all devices and engines
  Engine& engine_;
};

TEST_F(Prefetched, StepsThatOverlapHaveTheBitsOfStepsThatDoNot) {
  const std::vector<float> alone = trained(true);
  for (int round = 0; round < 5; ++round) EXPECT_EQ(trained(false), alone);
}

// Without prefetching no batch comes before the step before it has ended.
TEST_F(Prefetched, ABatchComesWhileTheStepBeforeComputes) {
  constexpr int kTries = 20;
  using profile::Kind;
  int64_t early = 0;
  for (int tried = 0; tried < kTries && early == 0; ++tried) {
    profile::Recorder::get().start();
    trained(false);
    const profile::Recording r = profile::Recorder::get().stop();
    std::vector<profile::Record> batches, launches;
    for (const profile::Record& x : r.records) {
      if (r.tracks[x.track].device != "late") continue;
      if (x.kind == Kind::Upload && x.source == profile::Source::Input) batches.push_back(x);
      if (x.kind == Kind::Launch) launches.push_back(x);
    }
    ASSERT_EQ(batches.size(), static_cast<size_t>(kSteps));
    ASSERT_EQ(launches.size() % kSteps, 0u);
    const size_t of_one = launches.size() / kSteps;
    for (size_t i = 1; i < batches.size(); ++i) early += batches[i].end <= launches[i * of_one - 1].begin;
  }
  EXPECT_GT(early, 0);
}

TEST_F(Prefetched, ABatchThatDoesNotArriveEndsItsStepAndTheNextOneRuns) {
  Executable x(step(), engine_, {.donations = {0}, .is_state = {true, false}});
  TensorRef w = tensor(kLate, {kColumns, kColumns}, -0.2f);
  const TensorRef batch = tensor(kCpu, {kRows, kColumns}, 0.1f);
  device_.finish();
  const auto run = [&] {
    const TensorRef* inputs[] = {&w, &batch};
    std::vector<TensorRef> out;
    x.run(inputs, out);
    device_.finish();
    w = out[0];
  };
  run();
  device_.fail(late::Operation::Copy, 1);
  EXPECT_THROW(run(), ResourceError);
  EXPECT_THROW(run(), ResourceError) << "what the step was to write is lost";
  w = tensor(kLate, {kColumns, kColumns}, -0.2f);
  run();
}

TEST_F(Prefetched, ABatchThatFitsOnlyOnceComesInItsTurn) {
  Executable x(step(), engine_, {.donations = {0}, .is_state = {true, false}});
  const TensorRef w = tensor(kLate, {kColumns, kColumns}, -0.2f), batch = tensor(kCpu, {kRows, kColumns}, 0.1f);
  const TensorRef* inputs[] = {&w, &batch};
  const plan::Plan twice = x.bind(inputs)->plan();
  const size_t batch_bytes = kRows * kColumns * sizeof(float);
  device_.memory().set_limit(twice.peak_bytes(kLate) - batch_bytes);
  x.drop_plans();
  const plan::Plan once = x.bind(inputs)->plan();
  EXPECT_EQ(once.prefetches, 0u);
  EXPECT_TRUE(once.budgets.empty()) << "nothing more was needed";
  EXPECT_EQ(once.peak_bytes(kLate), twice.peak_bytes(kLate) - batch_bytes);
}

}  // namespace
}  // namespace tandem::engine
