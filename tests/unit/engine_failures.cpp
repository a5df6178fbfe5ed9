// What a failing device must not break: every allocation, copy and launch of a training step fails once, on a device that fails late.
#include <gtest/gtest.h>

#include "engine/engine.hpp"
#include "late/late_device.hpp"
#include "ops/table.hpp"

namespace tandem::engine {
namespace {

constexpr int64_t kRows = 8, kColumns = 16;

// One step of gradient descent on a product, with a row that only the host computes in between.
ir::Graph step() {
  ir::Builder b(ops::table());
  const ir::Value w = b.input({DType::F32, {kColumns, kColumns}}), m = b.input({DType::F32, {kColumns, kColumns}});
  const ir::Value x = b.input({DType::F32, {kRows, kColumns}});
  const ir::Value y = b.op("tanh", {b.op("matmul", {x, w})});
  const ir::Value sorted = b.op("sort", {y});
  const ir::Value g = b.op("matmul", {b.op("transpose", {x}), sorted});
  const ir::Value next_m = b.op("add", {b.op("multiply", {m, b.scalar(DType::F32, 0.9)}), g});
  const ir::Value next_w = b.op("subtract", {w, b.op("multiply", {next_m, b.scalar(DType::F32, 0.1)})});
  return b.finish({next_w, next_m, b.op("sum", {sorted})});
}

class Failures : public ::testing::Test {
 protected:
  Failures() : device_(*late::make_device({.longest_delay_us = 20}).release()), engine_(*new Engine(device_)) {}

  TensorRef tensor(const Shape& shape, float first) {
    std::vector<float> numbers(static_cast<size_t>(element_count(shape)));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = first + 0.01f * static_cast<float>(i % 37);
    TensorRef t{engine_.allocate(numbers.size() * sizeof(float)), codegen::Layout::dense(DType::F32, shape), 0};
    device_.stream(device::StreamKind::Compute).upload(t.data(), numbers.data(), numbers.size() * sizeof(float));
    return t;
  }
  std::vector<float> read(const TensorRef& t) {
    device::check_not_lost(*t.buffer, "read");
    std::vector<float> numbers(static_cast<size_t>(element_count(t.layout.shape)));
    device_.stream(device::StreamKind::Compute).download(numbers.data(), t.data(), numbers.size() * sizeof(float));
    device_.finish();
    return numbers;
  }

  struct State {
    TensorRef w, m;
  };
  State fresh() { return {tensor({kColumns, kColumns}, -0.2f), tensor({kColumns, kColumns}, 0.0f)}; }
  // One step; what an error leaves in the state is for the caller to look at.
  std::vector<float> train(Executable& x, State& s, const TensorRef& batch) {
    const TensorRef* inputs[] = {&s.w, &s.m, &batch};
    std::vector<TensorRef> out;
    x.run(inputs, out);
    s = {out[0], out[1]};
    return read(out[2]);
  }

  late::LateDevice& device_;  // never destroyed, as all devices and engines
  Engine& engine_;
};

TEST_F(Failures, EveryOneIsAnErrorAndStateIsWholeOrSaysThatItIsNot) {
  const auto x = engine_.compile(step(), {0, 1, -1});
  const TensorRef batch = tensor({kRows, kColumns}, 0.3f);
  State s = fresh();
  const std::vector<float> old_w = read(s.w);
  train(*x, s, batch);  // compiled, with its arenas
  const std::vector<float> new_w = read(s.w);

  for (const late::Operation operation : {late::Operation::Launch, late::Operation::Copy}) {
    int failures = 0, whole = 0, lost = 0;
    for (int64_t n = 1;; ++n) {
      s = fresh();
      read(s.w);
      device_.fail(operation, n);
      bool failed = false;
      try {
        train(*x, s, batch);
      } catch (const ResourceError& e) {
        failed = true;
        EXPECT_NE(std::string(e.what()).find("late"), std::string::npos) << e.what();
      }
      device_.fail(operation, 0);
      if (failed) ++failures;
      try {
        const std::vector<float> now = read(s.w);
        ++whole;
        EXPECT_TRUE(now == old_w || now == new_w) << "half updated and silent, operation " << static_cast<int>(operation) << ", n " << n;
        if (failed) continue;
      } catch (const ResourceError& e) {
        ++lost;
        EXPECT_TRUE(failed);
        EXPECT_NE(std::string(e.what()).find("the value is lost"), std::string::npos) << e.what();
      }
      // The executable runs again, with memory and programs as before.
      State again = fresh();
      train(*x, again, batch);
      EXPECT_EQ(read(again.w), new_w);
      if (!failed) break;
    }
    EXPECT_GT(failures, 2) << static_cast<int>(operation);
    EXPECT_GT(whole, 1);
    if (operation == late::Operation::Launch) {
      EXPECT_GT(lost, 0) << "a step that fails behind its updates is there, too";
    }
  }
}

TEST_F(Failures, AnAllocationIsAskedForAgainWhenWhatIsKeptWasGivenBack) {
  const auto x = engine_.compile(step(), {0, 1, -1});
  const TensorRef batch = tensor({kRows, kColumns}, 0.3f);
  State first = fresh();
  train(*x, first, batch);
  for (int64_t n = 1; n <= 10; ++n) {
    State s = fresh();
    engine_.trim();  // so that arenas are allocated
    device_.fail(late::Operation::Allocation, n);
    train(*x, s, batch);
    device_.fail(late::Operation::Allocation, 0);
    EXPECT_EQ(read(s.w), read(first.w));
  }
}

TEST_F(Failures, ALimitIsAnErrorBeforeTheFirstStep) {
  const auto x = engine_.compile(step(), {0, 1, -1});
  const TensorRef batch = tensor({kRows, kColumns}, 0.3f);
  State s = fresh();
  const std::vector<float> old_w = read(s.w);
  const int64_t launches = device_.count(late::Operation::Launch);
  device_.memory().set_limit(device_.memory().in_use());
  EXPECT_THROW(train(*x, s, batch), ResourceError);
  device_.memory().set_limit(0);
  EXPECT_EQ(device_.count(late::Operation::Launch), launches);
  EXPECT_EQ(read(s.w), old_w);
  train(*x, s, batch);
}

TEST_F(Failures, WhatWasMadeAfterAFailureIsLostToo) {
  const auto x = engine_.compile(step(), {0, 1, -1});
  const TensorRef batch = tensor({kRows, kColumns}, 0.3f);
  State s = fresh();
  train(*x, s, batch);
  const int64_t before = device_.count(late::Operation::Launch);
  train(*x, s, batch);
  device_.fail(late::Operation::Launch, device_.count(late::Operation::Launch) - before);  // the last one of a step
  const TensorRef* inputs[] = {&s.w, &s.m, &batch};
  std::vector<TensorRef> out, more;
  try {  // nobody has read anything yet, but for the row of the host
    x->run(inputs, out);
    const TensorRef* next[] = {&out[0], &out[1], &batch};
    x->run(next, more);
    ADD_FAILURE() << "the row of the host in the second step needs what failed";
  } catch (const ResourceError&) {
  }
  device_.fail(late::Operation::Launch, 0);
  EXPECT_THROW(read(out[0]), ResourceError);
  EXPECT_THROW(read(out[2]), ResourceError);
  State again = fresh();
  train(*x, again, batch);  // and then all is well
}

// Memory that stays away, from the n-th allocation on: one error, and all is well when it is back.
TEST_F(Failures, MemoryThatStaysAwayIsOneError) {
  const auto x = engine_.compile(step(), {0, 1, -1});
  const TensorRef batch = tensor({kRows, kColumns}, 0.3f);
  State s = fresh();
  const std::vector<float> old_w = read(s.w);
  train(*x, s, batch);
  const std::vector<float> new_w = read(s.w);
  int failures = 0;
  for (int64_t n = 1;; ++n) {
    s = fresh();
    read(s.w);
    engine_.trim();  // so that arenas are allocated
    device_.fail(late::Operation::Allocation, n, late::Lasts::On);
    bool failed = false;
    try {
      train(*x, s, batch);
    } catch (const ResourceError& e) {
      failed = true;
      EXPECT_NE(std::string(e.what()).find("cannot allocate"), std::string::npos) << e.what();
    }
    device_.fail(late::Operation::Allocation, 0);
    if (!failed) {
      EXPECT_EQ(read(s.w), new_w);
      break;
    }
    ++failures;
    EXPECT_EQ(read(s.w), old_w) << "memory is taken before the first step, n " << n;
    train(*x, s, batch);
    EXPECT_EQ(read(s.w), new_w) << n;
  }
  EXPECT_GT(failures, 1);
}

// Copies and launches that fail for good: what follows the first error is not reported as another one, and ends with it.
TEST_F(Failures, ADeviceThatFailsForGoodIsOneErrorARun) {
  const auto x = engine_.compile(step(), {0, 1, -1});
  const TensorRef batch = tensor({kRows, kColumns}, 0.3f);
  State s = fresh();
  const std::vector<float> old_w = read(s.w);
  train(*x, s, batch);
  const std::vector<float> new_w = read(s.w);
  for (const late::Operation operation : {late::Operation::Launch, late::Operation::Copy}) {
    int failures = 0;
    for (int64_t n = 1;; ++n) {
      s = fresh();
      read(s.w);
      device_.fail(operation, n, late::Lasts::On);
      bool failed = false;
      try {
        train(*x, s, batch);
      } catch (const ResourceError&) {
        failed = true;
      }
      device_.fail(operation, 0);
      device_.finish();  // throws if a second error was left behind
      if (!failed) break;
      ++failures;
      try {
        const std::vector<float> now = read(s.w);
        EXPECT_TRUE(now == old_w || now == new_w) << "half updated and silent, operation " << static_cast<int>(operation) << ", n " << n;
      } catch (const ResourceError& e) {
        EXPECT_NE(std::string(e.what()).find("the value is lost"), std::string::npos) << e.what();
      }
      State again = fresh();
      train(*x, again, batch);
      EXPECT_EQ(read(again.w), new_w) << n;
    }
    EXPECT_GT(failures, 2) << static_cast<int>(operation);
  }
}

// GPUs of this machine, emulated ones among them.
std::vector<std::string> cards() {
  std::vector<std::string> all = device::ordinary_names();
  std::erase(all, "cpu");
  return all;
}

// I21: what the plan says is what the device counts.
TEST(Peak, IsWhatThePlanSays) {
  std::vector<std::string> names{"cpu", "ref", "late", "null"};
  for (const std::string& card : cards()) names.push_back(card);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    Engine& e = *new Engine(device::get(name));
    const auto tensor = [&](const Shape& shape) {
      return TensorRef{e.allocate(byte_size(shape, DType::F32)), codegen::Layout::dense(DType::F32, shape), 0};
    };
    device::Device& d = e.device();
    if (d.info().executes) d.finish();
    const size_t before = d.memory().in_use();
    const TensorRef w = tensor({kColumns, kColumns}), m = tensor({kColumns, kColumns}), x = tensor({kRows, kColumns});
    const TensorRef* inputs[] = {&w, &m, &x};
    if (d.info().executes)
      for (const TensorRef* t : inputs) d.stream(device::StreamKind::Compute).fill(t->data(), 0, byte_size(t->layout.shape, DType::F32));
    const auto bound = e.compile(step(), {0, 1, -1})->bind(inputs);
    d.memory().reset_peak();
    std::vector<TensorRef> out;
    bound->run(inputs, out);
    EXPECT_EQ(d.memory().peak() - before, bound->plan().peak_bytes(0));
  }
}

// The same of a plan over the CPU and a device beside it, whose memory and whose part of the host's are both counted.
TEST(Peak, OfTwoDevicesIsWhatThePlanSays) {
  std::vector<std::string> names{"late"};
  for (const std::string& card : cards()) names.push_back(card);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    device::Device &host = device::get("cpu"), &d = device::get(name);
    Engine& e = *new Engine(std::vector<device::Device*>{&host, &d}, 0);
    ir::Builder b(ops::table());
    const ir::Value x = b.input({DType::F32, {64, 64}});
    b.device = 1;
    const ir::Value y = b.op("tanh", {b.op("matmul", {x, x})});
    b.device = 0;
    const ir::Value z = b.op("cumsum", {b.op("matmul", {y, y})}, {{"axis", int64_t{1}}});
    b.device = 1;
    const ir::Value w = b.op("matmul", {b.op("sin", {z}), y});
    const ir::Graph g = b.finish({w});
    const TensorRef in{e.allocate(byte_size({64, 64}, DType::F32), 1), codegen::Layout::dense(DType::F32, {64, 64}), 0};
    d.stream(device::StreamKind::Compute).fill(in.data(), 0, byte_size({64, 64}, DType::F32));
    d.finish();
    const TensorRef* inputs[] = {&in};
    Executable executable(g, e, {});
    const auto bound = executable.bind(inputs);
    const plan::Plan& p = bound->plan();
    plan::verify(p);
    size_t pinned = 0;
    for (const plan::Arena& a : p.arenas)
      if (a.pinned_by == 1) pinned += a.taken_bytes();
    EXPECT_GT(pinned, 0u) << p.str();
    const size_t input = device::Account::counted(byte_size({64, 64}, DType::F32));
    const size_t before = d.memory().in_use() - input, pinned_before = d.pinned_memory().in_use();
    d.memory().reset_peak();
    d.pinned_memory().reset_peak();
    std::vector<TensorRef> out;
    bound->run(inputs, out);
    d.finish();
    EXPECT_EQ(d.memory().peak() - before, p.peak_bytes(1)) << p.str();
    EXPECT_EQ(d.pinned_memory().peak() - pinned_before, device::Account::counted(pinned)) << p.str();
  }
}

}  // namespace
}  // namespace tandem::engine
