// One engine over several devices: two that do everything late, and the CPU.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/engine.hpp"
#include "error_of.hpp"
#include "late/late_device.hpp"
#include "ops/table.hpp"
#include "passes/pipeline.hpp"
#include "plan/placement.hpp"
#include "transform/grad.hpp"

namespace tandem::engine {
namespace {

constexpr int32_t kCpu = 0, kFirst = 1, kSecond = 2;

class SeveralDevices : public ::testing::Test {
 protected:
  // Never destroyed, as all devices and engines.
  struct Machine {
    late::LateDevice &first = *late::make_device({.seed = 1, .longest_delay_us = 30}).release(),
                     &second = *late::make_device({.seed = 2, .longest_delay_us = 30}).release();
    Engine& engine;
    explicit Machine(int32_t preferred)
        : engine(*new Engine(std::vector<device::Device*>{&device::get("cpu"), &first, &second}, preferred)) {}
  };
  static Machine& by_cost() {
    static Machine& m = *[] {
      auto* made = new Machine(kAny);
      device::get("cpu").set_rates({.flops_per_second = 1e9, .bytes_per_second = 1e9, .launch_seconds = 1e-6});
      for (device::Device* d : {&made->first, &made->second})
        d->set_rates({.flops_per_second = 1e11, .bytes_per_second = 1e11, .link_bytes_per_second = 1e9, .launch_seconds = 1e-5});
      return made;
    }();
    return m;
  }
  static Machine& on_cpu() {
    static Machine& m = *new Machine(kCpu);
    return m;
  }

  static TensorRef tensor(Machine& m, int32_t device, const Shape& shape, float first = -0.3f) {
    std::vector<float> numbers(static_cast<size_t>(element_count(shape)));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = first + 0.01f * static_cast<float>(i % 61);
    TensorRef t{m.engine.allocate(numbers.size() * sizeof(float), device), codegen::Layout::dense(DType::F32, shape), 0};
    m.engine.devices().at(device).stream(device::StreamKind::Compute).upload(t.data(), numbers.data(), numbers.size() * sizeof(float));
    return t;
  }
  static std::vector<float> read(const TensorRef& t) {
    std::vector<float> numbers(static_cast<size_t>(element_count(t.layout.shape)));
    device::Device& d = t.buffer->device();
    d.stream(device::StreamKind::Compute).download(numbers.data(), t.data(), numbers.size() * sizeof(float));
    d.finish();
    return numbers;
  }
  static int32_t home(Machine& m, const TensorRef& t) { return m.engine.devices().number_of(*t.buffer); }
  static std::vector<TensorRef> run(Machine& m, const ir::Graph& g, std::vector<TensorRef> in, Executable::Options options = {}) {
    Executable x(g, m.engine, std::move(options));
    std::vector<const TensorRef*> inputs;
    for (const TensorRef& t : in) inputs.push_back(&t);
    std::vector<TensorRef> out;
    const auto bound = x.bind(inputs);
    plan::verify(bound->plan());
    bound->run(inputs, out);
    return out;
  }
  static size_t count(const plan::Plan& p, plan::Kind kind) {
    return static_cast<size_t>(std::ranges::count(p.steps, kind, &plan::Step::kind));
  }
};

TEST_F(SeveralDevices, WishesAreHonoured) {
  Machine& m = on_cpu();
  ir::Builder b(ops::table());
  const ir::Value x = b.input({DType::F32, {8, 8}});
  b.device = kFirst;
  const ir::Value y = b.op("exp", {x});
  b.device = kSecond;
  const ir::Value z = b.op("matmul", {y, y});
  b.device = -1;
  const ir::Value s = b.op("sin", {z});
  const auto out = run(m, b.finish({y, z, s}), {tensor(m, kCpu, {8, 8})});
  EXPECT_EQ(home(m, out[0]), kFirst);
  EXPECT_EQ(home(m, out[1]), kSecond);
  EXPECT_EQ(home(m, out[2]), kCpu);
  const std::vector<float> given = read(tensor(m, kCpu, {8, 8})), found = read(out[0]), product = read(out[1]), sines = read(out[2]);
  for (size_t i = 0; i < given.size(); ++i) EXPECT_FLOAT_EQ(found[i], std::exp(given[i]));
  for (size_t i = 0; i < given.size(); ++i) EXPECT_NEAR(sines[i], std::sin(product[i]), 1e-5);
}

TEST_F(SeveralDevices, AGradientRunsWhereItsForwardRan) {
  ir::Builder b(ops::table());
  const ir::Value x = b.input({DType::F32, {8, 8}}), w = b.input({DType::F32, {8, 8}});
  b.device = kSecond;
  const ir::Value loss = b.op("sum", {b.op("tanh", {b.op("matmul", {x, w})})});
  b.device = kFirst;
  const std::vector<ir::Value> found = transform::gradients(b, {&loss, 1}, {}, std::array{w});
  const ir::Graph g = b.finish({found[0]});
  for (const ir::Node& n : g.nodes)
    if (n.op->name == "matmul" || n.op->name == "tanh") EXPECT_EQ(n.device, kSecond) << n.op->name;
  const ir::Graph passed = passes::run_pipeline(ops::table(), g);
  for (const ir::Node& n : passed.nodes)
    if (n.op->name == "matmul") EXPECT_EQ(n.device, kSecond);
  Machine& m = on_cpu();
  const auto out = run(m, g, {tensor(m, kCpu, {8, 8}), tensor(m, kFirst, {8, 8})});
  EXPECT_EQ(home(m, out[0]), kSecond);
}

// From one device to another by way of the host, and each way once, however many read it.
TEST_F(SeveralDevices, AValueCrossesOnce) {
  Machine& m = on_cpu();
  ir::Builder b(ops::table());
  const ir::Value x = b.input({DType::F32, {16, 16}});
  b.device = kFirst;
  const ir::Value y = b.op("matmul", {x, x});
  b.device = kSecond;
  const ir::Value one = b.op("matmul", {y, y}), other = b.op("sort", {y}), third = b.op("matmul", {y, one});
  const ir::Graph g = b.finish({one, other, third});
  Executable executable(g, m.engine, {});
  const TensorRef in = tensor(m, kFirst, {16, 16});
  const TensorRef* inputs[] = {&in};
  const auto bound = executable.bind(inputs);
  plan::verify(bound->plan());
  EXPECT_EQ(count(bound->plan(), plan::Kind::Download), 1u) << bound->plan().str();
  EXPECT_EQ(count(bound->plan(), plan::Kind::Upload), 1u) << bound->plan().str();  // the sort is the CPU's
  const auto alone = run(m, g, {tensor(m, kFirst, {16, 16})});
  for (int time = 0; time < 20; ++time) {
    std::vector<TensorRef> out;
    bound->run(inputs, out);
    for (size_t k = 0; k < out.size(); ++k) EXPECT_EQ(read(out[k]), read(alone[k])) << time;
  }
}

// Gradients of replicas: a product of the first device is not made to wait for what the other one adds to it.
TEST_F(SeveralDevices, AProductDoesNotWaitForAnotherDevice) {
  Machine& m = on_cpu();
  ir::Builder b(ops::table());
  const ir::Value x = b.input({DType::F32, {16, 16}}), w = b.input({DType::F32, {16, 16}});
  b.device = kSecond;
  const ir::Value theirs = b.op("matmul", {x, b.op("tanh", {w})});
  b.device = kFirst;
  const ir::Value ours = b.op("matmul", {x, w});
  const ir::Value next = b.op("subtract", {w, b.op("add", {ours, theirs})}), alone = b.op("tanh", {b.op("matmul", {w, w})});
  const ir::Graph g = b.finish({next, alone});
  Executable executable(g, m.engine, {});
  const TensorRef in[] = {tensor(m, kFirst, {16, 16}), tensor(m, kFirst, {16, 16}, 0.2f)};
  const TensorRef* inputs[] = {&in[0], &in[1]};
  const auto bound = executable.bind(inputs);
  const std::string text = bound->plan().str();
  EXPECT_EQ(text.find("matmul+add"), std::string::npos) << text;
  EXPECT_NE(text.find("matmul+tanh"), std::string::npos) << "what is the device's own still goes along\n" << text;
  std::vector<TensorRef> out;
  bound->run(inputs, out);
  EXPECT_EQ(home(m, out[0]), kFirst);
}

// The CPU uploads to both: host memory that one device's copies reach is nothing special to the other.
TEST_F(SeveralDevices, AValueOfTheCpuGoesToBoth) {
  Machine& m = on_cpu();
  ir::Builder b(ops::table());
  const ir::Value x = b.input({DType::F32, {64, 64}});
  b.device = kCpu;
  const ir::Value y = b.op("sort", {x});
  b.device = kFirst;
  const ir::Value one = b.op("matmul", {y, y});
  b.device = kSecond;
  const ir::Value two = b.op("matmul", {y, one}), back = b.op("add", {two, y});
  b.device = kCpu;
  const ir::Value end = b.op("sort", {back}), again = b.op("add", {end, y});
  b.device = kFirst;
  const ir::Graph g = b.finish({b.op("matmul", {again, one})});
  const auto on_one = [&] {
    ir::Graph plain = g;
    for (ir::Node& n : plain.nodes) n.device = n.op->name == "input" ? -1 : kFirst;
    return read(run(m, plain, {tensor(m, kCpu, {64, 64})})[0]);
  }();
  Executable executable(g, m.engine, {});
  const TensorRef in = tensor(m, kCpu, {64, 64});
  const TensorRef* inputs[] = {&in};
  for (int time = 0; time < 20; ++time) {
    std::vector<TensorRef> out;
    executable.run(inputs, out);
    EXPECT_EQ(read(out[0]), on_one) << time;
  }
}

TEST_F(SeveralDevices, WhatADeviceCannotDoIsTheCpusOrAnError) {
  Machine& m = on_cpu();
  ir::Builder b(ops::table());
  const ir::Value x = b.input({DType::F32, {32}});
  b.device = kFirst;
  b.location = {"model.cpp", 42};
  const ir::Graph g = b.finish({b.op("sort", {x})});
  const TensorRef in = tensor(m, kCpu, {32});
  EXPECT_EQ(home(m, run(m, g, {in})[0]), kCpu);
  EXPECT_EQ(error_of([&] { run(m, g, {in}, {.soft = false}); }),
            "sort: late cannot do it: only the CPU has a routine for it\n  at model.cpp:42\n  hint: soft placement lets the CPU do it");
}

TEST_F(SeveralDevices, EagerOpsGoWhereTheirOperandsLie) {
  Machine& m = on_cpu();
  const TensorRef here = tensor(m, kCpu, {8}), there = tensor(m, kSecond, {8});
  const auto add = [&](const TensorRef& a, const TensorRef& b, int32_t wish) {
    const TensorRef* in[] = {&a, &b};
    std::vector<TensorRef> out;
    m.engine.eager(ops::table().at("add"), {}, in, out, wish);
    const std::vector<float> x = read(a), y = read(b), sum = read(out[0]);
    for (size_t i = 0; i < sum.size(); ++i) EXPECT_EQ(sum[i], x[i] + y[i]);
    return home(m, out[0]);
  };
  EXPECT_EQ(add(here, here, kAny), kCpu);
  EXPECT_EQ(add(here, there, kAny), kSecond);
  EXPECT_EQ(add(here, there, kFirst), kFirst);
  EXPECT_EQ(add(there, there, kCpu), kCpu);
}

TEST_F(SeveralDevices, ATensorMovesToADeviceAndBack) {
  Machine& m = on_cpu();
  const TensorRef x = tensor(m, kFirst, {100});
  const TensorRef moved = m.engine.at(x, kSecond), back = m.engine.at(moved, kCpu);
  EXPECT_EQ(home(m, moved), kSecond);
  EXPECT_EQ(home(m, back), kCpu);
  EXPECT_EQ(read(back), read(x));
  EXPECT_EQ(m.engine.at(x, kFirst).buffer.get(), x.buffer.get());
}

// ---- placement by cost: the two are a hundred times as fast as the CPU, behind a slow link ----

TEST_F(SeveralDevices, SmallGraphsStayOnTheCpuAndLargeOnesLeave) {
  Machine& m = by_cost();
  const auto product = [](int64_t n) {
    ir::Builder b(ops::table());
    const ir::Value x = b.input({DType::F32, {n, n}});
    return b.finish({b.op("matmul", {x, x})});
  };
  EXPECT_EQ(home(m, run(m, product(4), {tensor(m, kCpu, {4, 4})})[0]), kCpu);
  EXPECT_EQ(home(m, run(m, product(192), {tensor(m, kCpu, {192, 192})})[0]), kFirst);
  // What lies on the other card stays there.
  EXPECT_EQ(home(m, run(m, product(192), {tensor(m, kSecond, {192, 192})})[0]), kSecond);
}

TEST_F(SeveralDevices, AGraphIsCutWhereLittleCrosses) {
  Machine& m = by_cost();
  ir::Builder b(ops::table());
  const ir::Value large = b.input({DType::F32, {1 << 18}}), x = b.input({DType::F32, {192, 192}});
  const ir::Value mean = b.op("mean", {large});  // the CPU adds up what lies there faster than it would cross
  const ir::Value y = b.op("matmul", {b.op("matmul", {x, x}), x});
  const ir::Graph g = b.finish({mean, y});
  Executable executable(g, m.engine, {});
  const TensorRef a = tensor(m, kCpu, {1 << 18}), c = tensor(m, kCpu, {192, 192});
  const TensorRef* inputs[] = {&a, &c};
  std::vector<TensorRef> out;
  executable.run(inputs, out);
  EXPECT_EQ(home(m, out[0]), kCpu);
  EXPECT_EQ(home(m, out[1]), kFirst);
  const Estimate e = executable.explain();
  size_t moved = 0;
  for (const Estimate::Row& r : e.rows) moved += r.moved_bytes;
  EXPECT_EQ(moved, size_t{192 * 192 * 4});
  EXPECT_GT(e.seconds, 0);
}

TEST_F(SeveralDevices, StateMovesToItsStepForGood) {
  Machine& m = by_cost();
  ir::Builder b(ops::table());
  const ir::Value w = b.input({DType::F32, {192, 192}}), x = b.input({DType::F32, {192, 192}});
  const ir::Value y = b.op("matmul", {b.op("matmul", {x, w}), w});
  const ir::Graph g = b.finish({b.op("subtract", {w, y}), b.op("sum", {y})});
  Executable executable(g, m.engine, {.donations = {0, -1}, .is_state = {true, false}});
  TensorRef state = tensor(m, kCpu, {192, 192});
  const TensorRef batch = tensor(m, kCpu, {192, 192});
  const TensorRef* inputs[] = {&state, &batch};
  const auto placed = executable.placed(inputs);
  ASSERT_EQ(placed->homes.size(), 2u);
  EXPECT_EQ(placed->homes[0], kFirst);
  EXPECT_EQ(placed->homes[1], kAny);
  state = m.engine.at(state, placed->homes[0]);
  const auto bound = executable.bind(inputs);
  plan::verify(bound->plan());
  EXPECT_EQ(count(bound->plan(), plan::Kind::Upload), 1u) << bound->plan().str();  // the batch
  EXPECT_EQ(count(bound->plan(), plan::Kind::Download), 0u) << bound->plan().str();
  std::vector<TensorRef> out;
  executable.run(inputs, out);
  EXPECT_EQ(home(m, out[0]), kFirst);
}

TEST_F(SeveralDevices, ALoopIsOnOneDeviceWithItsBody) {
  Machine& m = on_cpu();
  ir::Builder inner(ops::table());
  const ir::Value carry = inner.input({DType::F32, {8, 8}});
  inner.device = kSecond;
  const ir::Value next = inner.op("tanh", {inner.op("matmul", {carry, carry})});
  const auto body = std::make_shared<const ir::Graph>(inner.finish({next}));
  ir::Builder b(ops::table());
  const ir::Value x = b.input({DType::F32, {8, 8}});
  const std::vector<ir::Value> last = b.nodes(
      "scan", std::array{x},
      {{"functions", ir::Graphs{body}}, {"carries", int64_t{1}}, {"sequences", int64_t{0}}, {"length", Dims{5}}, {"reverse", false}});
  const auto out = run(m, b.finish({last[0]}), {tensor(m, kCpu, {8, 8})});
  EXPECT_EQ(home(m, out[0]), kSecond);
}

// ---- the cut itself ----

TEST(PlacementCut, IsTheBestOfAll) {
  uint64_t state = 12345;
  const auto next = [&](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  for (int round = 0; round < 200; ++round) {
    plan::PlacementProblem p;
    const size_t n = 2 + next(9);
    for (size_t i = 0; i < n; ++i) {
      plan::PlacementProblem::Node node{{static_cast<double>(next(20)) * 1e-6, static_cast<double>(next(20)) * 1e-6}};
      if (next(5) == 0) node.fixed = static_cast<int32_t>(next(2));
      p.nodes.push_back(node);
      plan::PlacementProblem::Value v{static_cast<int32_t>(i), {}, static_cast<double>(next(15)) * 1e-6};
      for (size_t j = 0; j < n; ++j)
        if (j != i && next(3) == 0) v.readers.push_back(static_cast<int32_t>(j));
      p.values.push_back(v);
    }
    double best = 1e9;
    for (uint64_t bits = 0; bits < (uint64_t{1} << n); ++bits) {
      double sum = 0;
      bool allowed = true;
      for (size_t i = 0; i < n; ++i) {
        const size_t side = bits >> i & 1;
        allowed = allowed && (p.nodes[i].fixed < 0 || p.nodes[i].fixed == static_cast<int32_t>(side));
        sum += p.nodes[i].seconds[side];
        if (std::ranges::any_of(p.values[i].readers, [&](int32_t r) { return (bits >> r & 1) != side; })) sum += p.values[i].seconds;
      }
      if (allowed) best = std::min(best, sum);
    }
    const plan::Placement found = plan::place_between(p);
    EXPECT_NEAR(found.seconds, best, 1e-11) << round;
    for (size_t i = 0; i < n; ++i)
      if (p.nodes[i].fixed >= 0) EXPECT_EQ(found.side[i], p.nodes[i].fixed);
  }
}

}  // namespace
}  // namespace tandem::engine
