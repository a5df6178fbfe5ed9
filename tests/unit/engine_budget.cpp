// Training within a device's memory: the same bits as without a limit, never more than the limit, and an error that says what would do.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "base/text.hpp"
#include "engine/engine.hpp"
#include "engine/within_budget.hpp"
#include "late/late_device.hpp"
#include "ops/table.hpp"
#include "transform/grad.hpp"

namespace tandem::engine {
namespace {

constexpr size_t kPlenty = size_t{1} << 30;

// Some layers of a network: next weights and moments, and the loss.
struct Net {
  int layers = 6;
  int64_t rows = 64, width = 48;
};

ir::Graph training_step(const Net& net) {
  ir::Builder b(ops::table());
  const auto matrix = [&] { return b.input({DType::F32, {net.width, net.width}}); };
  std::vector<ir::Value> weights, moments;
  for (int i = 0; i < net.layers; ++i) weights.push_back(matrix());
  for (int i = 0; i < net.layers; ++i) moments.push_back(matrix());
  const ir::Value x = b.input({DType::F32, {net.rows, net.width}});
  ir::Value y = x;
  for (const ir::Value w : weights) y = b.op("tanh", {b.op("matmul", {y, w})});
  const ir::Value loss = b.op("sum", {b.op("square", {y})});
  const std::vector<ir::Value> gradients = transform::gradients(b, {&loss, 1}, {}, weights);
  std::vector<ir::Value> outputs, next_moments;
  for (size_t i = 0; i < weights.size(); ++i) {
    next_moments.push_back(b.op("add", {b.op("multiply", {moments[i], b.scalar(DType::F32, 0.9)}), gradients[i]}));
    outputs.push_back(b.op("subtract", {weights[i], b.op("multiply", {next_moments[i], b.scalar(DType::F32, 0.01)})}));
  }
  outputs.insert(outputs.end(), next_moments.begin(), next_moments.end());
  outputs.push_back(loss);
  return b.finish(outputs, "step");
}

class Budgets : public ::testing::Test {
 protected:
  struct Machine {
    late::LateDevice& device;
    Engine& engine;
  };
  // Never destroyed, as all devices and engines.
  static Machine machine(size_t limit) {
    late::LateDevice& device = *late::make_device({.longest_delay_us = 0, .memory_bytes = kPlenty, .link_bytes_per_second = 1e9}).release();
    // Decisions follow from rates: those of a machine that is not measured, since it may be busy.
    device::get("cpu").set_rates({.flops_per_second = 2e10, .bytes_per_second = 8e9, .launch_seconds = 1e-6});
    Machine m{device, *new Engine(device)};
    device.memory().set_limit(limit);
    return m;
  }

  static TensorRef tensor(const Machine& m, const Shape& shape, float first) {
    std::vector<float> numbers(static_cast<size_t>(element_count(shape)));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = first + 0.01f * static_cast<float>(i % 37);
    TensorRef t{m.engine.allocate(numbers.size() * sizeof(float)), codegen::Layout::dense(DType::F32, shape), 0};
    m.device.stream(device::StreamKind::Compute).upload(t.data(), numbers.data(), numbers.size() * sizeof(float));
    return t;
  }
  static TensorRef copy(const Machine& m, const TensorRef& t) {
    const std::vector<float> numbers = read(m, t);
    TensorRef made{m.engine.allocate(numbers.size() * sizeof(float)), t.layout, 0};
    m.device.stream(device::StreamKind::Compute).upload(made.data(), numbers.data(), numbers.size() * sizeof(float));
    m.device.finish();
    return made;
  }
  static std::vector<float> read(const Machine& m, const TensorRef& t) {
    std::vector<float> numbers(static_cast<size_t>(element_count(t.layout.shape)));
    if (t.buffer->device().info().host_memory) {
      std::memcpy(numbers.data(), t.data(), numbers.size() * sizeof(float));
    } else {
      m.device.stream(device::StreamKind::Compute).download(numbers.data(), t.data(), numbers.size() * sizeof(float));
      m.device.finish();
    }
    return numbers;
  }

  // `fatal`: what a step does not survive; spare memory goes when an allocation fails, and it is tried again.
  static void each_failure(const Net& net, size_t limit, const std::vector<late::Operation>& fatal,
                           const std::function<void(const plan::BudgetReport&)>& is_meant);

  struct Trained {
    std::vector<float> losses, weights;
    size_t peak = 0, pinned_peak = 0;
    double predicted_seconds = 0;
    plan::Plan plan;
  };
  static Trained train(const Machine& m, const Net& net, int steps) {
    const size_t states = 2 * static_cast<size_t>(net.layers);
    std::vector<int32_t> donations(states + 1, -1);
    for (size_t i = 0; i < states; ++i) donations[i] = static_cast<int32_t>(i);
    const auto x = m.engine.compile(training_step(net), donations);
    std::vector<TensorRef> state;
    for (size_t i = 0; i < states; ++i) state.push_back(tensor(m, {net.width, net.width}, i < states / 2 ? -0.15f : 0.0f));
    const TensorRef batch = tensor(m, {net.rows, net.width}, 0.2f);
    Trained t;
    m.device.memory().reset_peak();
    for (int step = 0; step < steps; ++step) {
      if (step == 1) m.device.pinned_memory().reset_peak();  // what was spilled while the state was made is gone
      std::vector<const TensorRef*> inputs;
      for (const TensorRef& s : state) inputs.push_back(&s);
      inputs.push_back(&batch);
      std::vector<TensorRef> out;
      if (step == 0) t.plan = x->bind(inputs)->plan();
      x->run(inputs, out);
      t.losses.push_back(read(m, out[states])[0]);
      out.resize(states);
      state = std::move(out);
    }
    t.predicted_seconds = x->run_seconds();
    t.peak = m.device.memory().peak();
    t.pinned_peak = m.device.pinned_memory().peak();
    for (const TensorRef& s : state) {
      const std::vector<float> numbers = read(m, s);
      t.weights.insert(t.weights.end(), numbers.begin(), numbers.end());
    }
    return t;
  }
};

TEST_F(Budgets, AStepWithinLessMemoryHasTheSameBits) {
  const Net net{.layers = 8, .rows = 256, .width = 48};
  const Trained free = train(machine(kPlenty), net, 4);
  EXPECT_TRUE(free.plan.budgets.empty());
  const size_t unlimited = free.plan.peak_bytes(0);
  EXPECT_EQ(free.peak, unlimited);  // I21
  for (const int percent : {90, 70, 55}) {
    const size_t limit = unlimited * static_cast<size_t>(percent) / 100;
    const Trained t = train(machine(limit), net, 4);
    SCOPED_TRACE(percent);
    plan::verify(t.plan);
    EXPECT_EQ(t.losses, free.losses);
    EXPECT_EQ(t.weights, free.weights);
    EXPECT_LE(t.peak, limit);
    EXPECT_EQ(t.peak, t.plan.peak_bytes(0));
    ASSERT_EQ(t.plan.budgets.size(), 1u);
    const plan::BudgetReport& report = t.plan.budgets[0];
    EXPECT_GT(report.recomputed + report.offloaded + report.fetched, 0);
    EXPECT_EQ(report.unlimited_bytes, unlimited);
  }
}

TEST_F(Budgets, StateOfThreeTimesTheLimitTrains) {
  const Net net{.layers = 12, .rows = 8, .width = 96};
  const Trained free = train(machine(kPlenty), net, 3);
  const size_t state = 24 * 96 * 96 * sizeof(float);
  const Trained t = train(machine(state / 3), net, 3);
  plan::verify(t.plan);
  EXPECT_EQ(t.losses, free.losses);
  EXPECT_EQ(t.weights, free.weights);
  EXPECT_LE(t.peak, state / 3);
  EXPECT_EQ(t.peak, t.plan.peak_bytes(0));
  ASSERT_EQ(t.plan.budgets.size(), 1u);
  const plan::BudgetReport& report = t.plan.budgets[0];
  EXPECT_GT(report.state_bytes, state / 2);
  EXPECT_GT(report.updates_on_host, 0) << "gradients come and weights go: less to copy than all the state both ways";
  EXPECT_EQ(t.pinned_peak, report.pinned_bytes);
  const std::string line = plan::summary(report, "late");
  EXPECT_NE(line.find("of state on the host"), std::string::npos) << line;
  EXPECT_NE(line.find("updates computed there"), std::string::npos) << line;
}

size_t number_behind(const std::string& text, const std::string& words) {
  const size_t from = text.find(words);
  return from == std::string::npos ? 0 : std::stoull(text.substr(from + words.size()));
}

TEST_F(Budgets, TooLittleIsAnErrorThatSaysHowMuchWouldDo) {
  const Net net{.layers = 4, .rows = 64, .width = 64};
  const auto refusal = [&](size_t limit) {
    try {
      train(machine(limit), net, 1);
    } catch (const ResourceError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const std::string message = refusal(30 << 10);
  EXPECT_EQ(message.find("step: it does not fit into 30 KiB (30720 bytes) of late: it needs at least "), 0u) << message;
  EXPECT_NE(message.find(" sets"), std::string::npos) << message;
  EXPECT_NE(message.find("\n  largest values: "), std::string::npos) << message;
  EXPECT_NE(message.find("\n  tried: computing again, results on the host, "), std::string::npos) << message;
  // That much does.
  const size_t least = number_behind(message, "hint: a limit of ");
  ASSERT_GT(least, 0u) << message;
  const Trained t = train(machine(least), net, 2), free = train(machine(kPlenty), net, 2);
  EXPECT_EQ(t.losses, free.losses);
  EXPECT_LE(t.peak, least);
  EXPECT_EQ(t.peak, t.plan.peak_bytes(0));
}

std::string refusal(const std::function<void()>& run) {
  try {
    run();
  } catch (const DoesNotFit& e) {
    return e.what();
  }
  return "it fits";
}

TEST_F(Budgets, TheWholeErrorIsTrue) {
  const Net net{.layers = 4, .rows = 64, .width = 64};
  const std::string message = refusal([&] { train(machine(30 << 10), net, 1); });
  // The smallest plan there is: 16 KiB each of gradient, weight and operands, where a product runs.
  const size_t least = number_behind(message, "hint: a limit of ");
  const Trained t = train(machine(least), net, 1);
  ASSERT_EQ(t.plan.budgets.size(), 1u);
  const plan::BudgetReport& r = t.plan.budgets[0];
  std::string largest;
  for (const auto& [label, bytes] : r.largest) largest += cat(largest.empty() ? "" : ", ", label, " (", plan::bytes_text(bytes), ")");
  const Trained free = train(machine(kPlenty), net, 1);
  EXPECT_EQ(message, cat("step: it does not fit into 30 KiB (30720 bytes) of late: it needs at least ", plan::bytes_text(least), " (",
                         least, " bytes), which ", r.tightest, " sets; without a limit it takes ",
                         plan::bytes_text(free.plan.peak_bytes(0)), "\n  largest values: ", largest,
                         "\n  tried: computing again, results on the host, 144 KiB of state on the host\n  hint: a limit of ", least,
                         " bytes or more, or a smaller batch"));
  // They are there at once.
  size_t together = 0;
  for (const auto& [label, bytes] : r.largest) together += bytes;
  EXPECT_LE(together, least);
  EXPECT_GT(together, least / 2);
}

TEST_F(Budgets, TheErrorNamesOnlyWhatWasTried) {
  const Net net{.layers = 4, .rows = 64, .width = 64};
  for (const auto& [means, tried] : {std::pair{"recompute", "computing again"},
                                     {"offload", "results on the host"},
                                     {"offload,state", "results on the host, 144 KiB of state on the host"},
                                     {"state", "144 KiB of state on the host"}}) {
    setenv("TANDEM_PLAN_MEANS", means, 1);
    const std::string message = refusal([&] { train(machine(30 << 10), net, 1); });
    EXPECT_NE(message.find(cat("\n  tried: ", tried, "\n")), std::string::npos) << means << ": " << message;
    unsetenv("TANDEM_PLAN_MEANS");
  }
}

TEST_F(Budgets, WhereTheHostHasTooLittleTheErrorSaysHowMuchMore) {
  const Net net{.layers = 6, .rows = 512, .width = 32};
  const size_t limit = train(machine(kPlenty), net, 1).plan.peak_bytes(0) * 6 / 10;
  const auto within = [&](size_t pinned) {
    setenv("TANDEM_PLAN_MEANS", "offload", 1);
    const Machine m = machine(limit);
    m.device.pinned_memory().set_limit(pinned);
    Trained t;
    const std::string message = refusal([&] { t = train(m, net, 2); });
    unsetenv("TANDEM_PLAN_MEANS");
    EXPECT_LE(m.device.pinned_memory().peak(), pinned);
    return message;
  };
  const size_t little = 20 << 10;
  const std::string message = within(little);
  EXPECT_NE(
      message.find(cat(" of late with the 20 KiB (", little, " bytes) that are left of the host's memory for it: it needs at least ")),
      std::string::npos)
      << message;
  const size_t from = message.find(" bytes or more, or ");
  ASSERT_NE(from, std::string::npos) << message;
  const size_t more = number_behind(message.substr(from), "(");
  EXPECT_NE(message.find(cat(" (", more, " bytes) more of the host's memory (TANDEM_HOST_MEMORY), or a smaller batch")), std::string::npos);
  EXPECT_EQ(within(little + more), "it fits");
}

// What pipelines hold of the host's memory is not there for a plan.
TEST_F(Budgets, WhatOthersHoldOfTheHostsMemoryIsNotPlannedWith) {
  const Net net{.layers = 6, .rows = 512, .width = 32};
  const size_t limit = train(machine(kPlenty), net, 1).plan.peak_bytes(0) * 6 / 10;
  const Trained alone = train(machine(limit), net, 1);
  ASSERT_GT(alone.pinned_peak, 0u);
  const Machine m = machine(limit);
  const size_t held = 1 << 20, whole = held + alone.pinned_peak / 2;
  device::host_account().set_limit(device::host_account().in_use() + whole);
  const device::BufferRef other = m.device.allocate_pinned(held);
  std::string message;
  size_t pinned = 0;
  try {
    pinned = train(m, net, 2).plan.pinned_bytes();
  } catch (const DoesNotFit& e) {
    message = e.what();
  }
  device::host_account().set_limit(0);
  EXPECT_LE(pinned, whole - held) << "planned with less, or refused before it began";
  if (!message.empty()) EXPECT_NE(message.find("left of the host's memory for it"), std::string::npos) << message;
}

TEST_F(Budgets, MoreMemoryIsNeverSlower) {
  const Net net{.layers = 10, .rows = 192, .width = 64};
  const size_t unlimited = train(machine(kPlenty), net, 1).plan.peak_bytes(0);
  double before = 1e9;
  for (const size_t percent : {30, 40, 50, 60, 70, 80, 90, 100}) {
    SCOPED_TRACE(percent);
    const Trained t = train(machine(unlimited * percent / 100), net, 1);
    if (t.plan.budgets.empty()) continue;  // it fits as it is
    EXPECT_GT(t.plan.seconds, 0);
    EXPECT_LE(t.plan.seconds, before);
    before = t.plan.seconds;
  }
}

TEST_F(Budgets, WhatIsPredictedIsTheFinishedPlan) {
  const Net net{.layers = 8, .rows = 256, .width = 48};
  const Trained free = train(machine(kPlenty), net, 1);
  EXPECT_GT(free.predicted_seconds, 0);
  const Trained t = train(machine(free.plan.peak_bytes(0) * 55 / 100), net, 1);
  ASSERT_EQ(t.plan.budgets.size(), 1u);
  const plan::BudgetReport& report = t.plan.budgets[0];
  EXPECT_EQ(t.predicted_seconds, report.predicted_seconds);
  EXPECT_EQ(free.predicted_seconds, report.unlimited_predicted_seconds);
  EXPECT_GE(t.predicted_seconds, free.predicted_seconds);
  const double percent = std::round((t.predicted_seconds / free.predicted_seconds - 1) * 100);
  const std::string line = plan::summary(report, "late");
  EXPECT_NE(line.find(cat("predicted +", percent, " %")), std::string::npos) << line;
}

TEST_F(Budgets, WhatOthersDoHasTheSameBits) {
  const Net net{.layers = 12, .rows = 256, .width = 48};
  const Trained free = train(machine(kPlenty), net, 3);
  for (const char* baseline : {"sqrt", "offload_all"}) {
    setenv("TANDEM_PLAN_MEANS", baseline, 1);
    const Trained t = train(machine(kPlenty), net, 3);
    unsetenv("TANDEM_PLAN_MEANS");
    SCOPED_TRACE(baseline);
    plan::verify(t.plan);
    EXPECT_EQ(t.losses, free.losses);
    EXPECT_EQ(t.weights, free.weights);
    EXPECT_LT(t.peak, free.peak);
    EXPECT_EQ(t.peak, t.plan.peak_bytes(0));
    EXPECT_GT(t.predicted_seconds, free.predicted_seconds);
  }
}

TEST_F(Budgets, MoreMemoryIsNeverSlowerForAnyOfSeveralNets) {
  for (const Net& net : {Net{.layers = 6, .rows = 256, .width = 48}, Net{.layers = 9, .rows = 16, .width = 64}}) {
    const size_t unlimited = train(machine(kPlenty), net, 1).plan.peak_bytes(0);
    double before = 1e9;
    int limited = 0;
    for (int step = 0; step < 12; ++step) {
      const size_t limit = unlimited * (28 + 6 * static_cast<size_t>(step)) / 100;
      SCOPED_TRACE(testing::Message() << net.layers << " layers, limit " << limit << " of " << unlimited);
      Trained t;
      if (refusal([&] { t = train(machine(limit), net, 1); }) != "it fits") continue;
      ++limited;
      EXPECT_GT(t.plan.seconds, 0);
      EXPECT_LE(t.plan.seconds, before);
      before = t.plan.seconds;
    }
    EXPECT_GT(limited, 8);
  }
}

TEST_F(Budgets, TheHostsMemoryHasALimitOfItsOwn) {
  const Net net{.layers = 12, .rows = 8, .width = 96};
  const size_t state = 24 * 96 * 96 * sizeof(float);
  const Machine m = machine(state / 3);
  m.device.pinned_memory().set_limit(state / 4);
  std::string message;
  try {
    train(m, net, 1);
  } catch (const ResourceError& e) {
    message = e.what();
  }
  EXPECT_NE(message.find("pinned"), std::string::npos) << message;
  EXPECT_LE(m.device.pinned_memory().peak(), state / 4);
}

// Any graph: chains and joins of cheap and dear ops, a row that only the host computes, an output that is an input's too, state that is
// given away.
constexpr int kStates = 3;
ir::Graph random_graph(std::mt19937& random) {
  ir::Builder b(ops::table());
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  std::vector<ir::Value> values;
  for (int i = 0; i < kStates + 2; ++i) values.push_back(b.input({DType::F32, {32, 32}}));
  const std::vector<ir::Value> state(values.begin(), values.begin() + kStates);
  const size_t count = 8 + pick(24);
  for (size_t i = 0; i < count; ++i) {
    const ir::Value x = values[pick(values.size())], y = values[values.size() - 1 - pick(std::min<size_t>(values.size(), 4))];
    switch (pick(7)) {
      case 0: values.push_back(b.op("matmul", {x, y})); break;
      case 1: values.push_back(b.op("tanh", {b.op("multiply", {y, b.scalar(DType::F32, 0.03)})})); break;
      case 2: values.push_back(b.op("sort", {y})); break;
      case 3: values.push_back(b.op("subtract", {x, b.op("transpose", {y})})); break;
      case 4: values.push_back(b.op("maximum", {b.op("cumsum", {x}, {{"axis", int64_t{1}}}), y})); break;
      case 5: values.push_back(b.op("softmax", {x})); break;
      default: values.push_back(b.op("add", {x, y})); break;
    }
  }
  std::vector<ir::Value> outputs;
  for (const ir::Value s : state) {  // an update like a momentum's or a weight's, of any of the values
    const ir::Value g = values[kStates + 2 + pick(count)];
    outputs.push_back(b.op("subtract", {s, b.op("multiply", {g, b.scalar(DType::F32, 0.01)})}));
  }
  outputs.insert(outputs.end(), {values.back(), b.op("sum", {values[values.size() / 2]}), values[kStates + 2]});
  return b.finish(outputs, "random");
}

// `BUDGET_GRAPHS=3000 test_engine --gtest_filter=*RandomGraphs*` takes some minutes; BUDGET_FROM is the first seed.
TEST_F(Budgets, RandomGraphsHaveTheSameBitsWithinAnyLimit) {
  const auto number = [](const char* name, int otherwise) { return std::getenv(name) ? std::atoi(std::getenv(name)) : otherwise; };
  const int first = number("BUDGET_FROM", 0), graphs = number("BUDGET_GRAPHS", 25);
  const Machine free = machine(kPlenty), tight = machine(kPlenty);
  const std::vector<int32_t> donations = {0, 1, 2, -1, -1, -1};
  int within = 0, refused = 0, with_state = 0, by_host = 0;
  for (int seed = first; seed < first + graphs; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    const ir::Graph graph = random_graph(random);
    // Two steps, so that state that moved is used again.
    const auto run = [&](const Machine& m, size_t& peak) {
      std::vector<TensorRef> in;
      for (int i = 0; i < kStates + 2; ++i) in.push_back(tensor(m, {32, 32}, 0.1f * static_cast<float>(i)));
      const auto x = m.engine.compile(graph, donations);
      std::vector<float> all;
      for (int step = 0; step < 2; ++step) {
        std::vector<const TensorRef*> inputs;
        for (const TensorRef& t : in) inputs.push_back(&t);
        std::vector<TensorRef> out;
        const auto bound = x->bind(inputs);
        plan::verify(bound->plan());
        peak = bound->plan().peak_bytes(0);
        // What is on its way to the host is still there while it runs.
        const bool keeps_places = std::ranges::all_of(std::span(bound->plan().donated).first(kStates), [](int32_t d) { return d >= 0; });
        const bool stays = std::ranges::find(bound->plan().input_devices, 1) == bound->plan().input_devices.end();
        const bool is_settled = stays || (step == 1 && keeps_places);
        if (is_settled) m.device.memory().reset_peak();
        for (const plan::BudgetReport& r : bound->plan().budgets) with_state += r.state_bytes > 0;
        bound->run(inputs, out);
        if (is_settled) EXPECT_EQ(m.device.memory().peak(), peak);
        for (const TensorRef& t : out) {
          const std::vector<float> numbers = read(m, t);
          all.insert(all.end(), numbers.begin(), numbers.end());
        }
        out.resize(kStates);
        // State that has no place of its own any more, since something reads it after its update, is the caller's to put where it belongs.
        for (size_t i = 0; i < kStates; ++i) in[i] = bound->plan().donated[i] >= 0 ? out[i] : copy(m, out[i]);
        out.clear();
      }
      in.clear();
      m.engine.trim();
      return all;
    };
    size_t unlimited = 0, peak = 0;
    const std::vector<float> expected = run(free, unlimited);
    for (int round = 0; round < 3; ++round) {
      const size_t limit = unlimited * (20 + random() % 75) / 100;
      const size_t host = round < 2 ? 0 : (8 + random() % 64) << 10;
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", limit " << limit << ", host " << host);
      const auto try_with = [&](size_t bytes) {
        tight.engine.trim();  // of plans for another limit
        tight.device.memory().set_limit(bytes);
        tight.device.pinned_memory().set_limit(host);
        tight.device.memory().reset_peak();
        const std::vector<float> got = run(tight, peak);
        ASSERT_EQ(got.size(), expected.size());
        EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0);  // bits: some graphs give NaNs
        EXPECT_LE(peak, bytes);
        EXPECT_LE(tight.device.memory().peak(), bytes);
      };
      try {
        try_with(limit);
        ++within;
        by_host += host > 0;
      } catch (const DoesNotFit& e) {
        ++refused;
        tight.engine.trim();
        if (host > 0) continue;
        const size_t least = number_behind(e.what(), "hint: a limit of ");
        EXPECT_GT(least, limit);
        EXPECT_NO_THROW(try_with(least)) << e.what();
      } catch (const ResourceError& e) {
        tight.engine.trim();
        EXPECT_GT(host, 0u) << e.what();  // tensors that are made before the step have no room on either
      }
    }
    tight.device.memory().set_limit(kPlenty);
    tight.device.pinned_memory().set_limit(0);
  }
  std::printf("%d graphs: %d plans within a limit, %d of them with a limit of the host, %d plans with state on the host, %d refused\n",
              graphs, within, by_host, with_state, refused);
  EXPECT_GT(within, graphs);
  EXPECT_GT(with_state, 0);
}

// A table of which a step reads and changes a few rows. The rest of it never moves.
TEST_F(Budgets, OfATableOnTheHostOnlyRowsMove) {
  constexpr int64_t kRows = 3000, kWidth = 16, kTaken = 24;
  ir::Builder b(ops::table());
  const ir::TensorType table_type{DType::F32, {kRows, kWidth}};
  const ir::Value table = b.input(table_type), moment = b.input(table_type), w = b.input({DType::F32, {kWidth, kWidth}});
  const ir::Value ids = b.input({DType::I32, {kTaken}});
  const ir::Value rows = b.op("take", {table, ids}, {{"axis", int64_t{0}}});
  const ir::Value y = b.op("tanh", {b.op("matmul", {rows, w})});
  const ir::Value loss = b.op("sum", {b.op("square", {y})});
  const std::vector<ir::Value> gradients = transform::gradients(b, {&loss, 1}, {}, std::vector{table, w});
  const ir::Value next_moment = b.op("add", {b.op("multiply", {moment, b.scalar(DType::F32, 0.9)}), gradients[0]});
  const ir::Value next_table = b.op("subtract", {table, b.op("multiply", {next_moment, b.scalar(DType::F32, 0.1)})});
  const ir::Value next_w = b.op("subtract", {w, b.op("multiply", {gradients[1], b.scalar(DType::F32, 0.1)})});
  const ir::Graph graph = b.finish({next_table, next_moment, next_w, loss}, "lookup");
  const auto run = [&](const Machine& m, plan::Plan& plan, size_t& peak) {
    std::vector<TensorRef> state{tensor(m, {kRows, kWidth}, -0.1f), tensor(m, {kRows, kWidth}, 0.0f), tensor(m, {kWidth, kWidth}, 0.1f)};
    TensorRef numbers{m.engine.allocate(kTaken * sizeof(int32_t)), codegen::Layout::dense(DType::I32, {kTaken}), 0};
    std::vector<int32_t> taken;
    for (int32_t i = 0; i < kTaken; ++i) taken.push_back(i * 577 % static_cast<int32_t>(kRows));
    taken[3] = taken[5];  // a row twice
    m.device.stream(device::StreamKind::Compute).upload(numbers.data(), taken.data(), taken.size() * sizeof(int32_t));
    m.device.finish();
    const auto x = m.engine.compile(graph, {0, 1, 2, -1});
    for (int step = 0; step < 3; ++step) {
      if (step == 1) m.device.memory().reset_peak();  // the first one sends the table to the host
      const TensorRef* inputs[] = {&state[0], &state[1], &state[2], &numbers};
      std::vector<TensorRef> out;
      plan = x->bind(inputs)->plan();
      x->run(inputs, out);
      out.resize(3);
      state = std::move(out);
    }
    peak = m.device.memory().peak();
    return std::vector{read(m, state[0]), read(m, state[1]), read(m, state[2])};
  };
  plan::Plan free_plan, plan;
  size_t free_peak = 0, peak = 0;
  const auto expected = run(machine(kPlenty), free_plan, free_peak);
  const size_t table_bytes = kRows * kWidth * sizeof(float);
  EXPECT_EQ(run(machine(table_bytes * 5 / 4), plan, peak), expected);
  EXPECT_LE(peak, table_bytes * 5 / 4);
  EXPECT_EQ(peak, plan.peak_bytes(0));
  plan::verify(plan);
  size_t moved = 0;
  for (const plan::Step& s : plan.steps)
    if (s.kind == plan::Kind::Upload || s.kind == plan::Kind::Download) moved += s.writes()[0].slot.bytes;
  EXPECT_LT(moved, 4 * kTaken * kWidth * sizeof(float)) << plan.str();
}

// Every launch, copy and allocation of a step, of the device and of pinned memory, fails once.
void Budgets::each_failure(const Net& net, size_t limit, const std::vector<late::Operation>& fatal,
                           const std::function<void(const plan::BudgetReport&)>& is_meant) {
  const size_t states = 2 * static_cast<size_t>(net.layers);
  std::vector<int32_t> donations(states + 1, -1);
  for (size_t i = 0; i < states; ++i) donations[i] = static_cast<int32_t>(i);
  const Machine m = machine(limit);
  const auto x = m.engine.compile(training_step(net), donations);
  struct Run {
    std::vector<TensorRef> state;
    TensorRef batch;
  };
  const auto fresh = [&] {
    Run r;
    for (size_t i = 0; i < states; ++i) r.state.push_back(tensor(m, {net.width, net.width}, i < states / 2 ? -0.15f : 0.0f));
    r.batch = tensor(m, {net.rows, net.width}, 0.2f);
    m.device.finish();
    return r;
  };
  const auto step = [&](Run& r) {
    std::vector<const TensorRef*> inputs;
    for (const TensorRef& t : r.state) inputs.push_back(&t);
    inputs.push_back(&r.batch);
    std::vector<TensorRef> out;
    const auto bound = x->bind(inputs);
    ASSERT_EQ(bound->plan().budgets.size(), 1u);
    is_meant(bound->plan().budgets[0]);
    bound->run(inputs, out);
    out.resize(states);
    r.state = std::move(out);
    m.device.finish();
  };
  const auto weights = [&](const Run& r, size_t i) {
    device::check_not_lost(*r.state[i].buffer, "read");
    return read(m, r.state[i]);
  };
  Run first = fresh();
  std::vector<std::vector<float>> before, after;
  for (size_t i = 0; i < states; ++i) before.push_back(weights(first, i));
  step(first);
  for (size_t i = 0; i < states; ++i) after.push_back(weights(first, i));
  first = {};

  for (const late::Operation operation : {late::Operation::Launch, late::Operation::Copy, late::Operation::Allocation}) {
    int failures = 0;
    for (int64_t n = 1; n < 200; ++n) {
      SCOPED_TRACE(testing::Message() << "operation " << static_cast<int>(operation) << ", n " << n);
      Run r = fresh();
      m.device.fail(operation, n);
      const int64_t done = m.device.count(operation);
      bool failed = false;
      try {
        step(r);
      } catch (const ResourceError&) {
        failed = true;
      }
      m.device.fail(operation, 0);
      failures += failed;
      for (size_t i = 0; i < states; ++i) {
        try {
          const std::vector<float> now = weights(r, i);
          EXPECT_TRUE(now == before[i] || now == after[i]) << "half updated and silent: state " << i;
        } catch (const ResourceError& e) {
          EXPECT_TRUE(failed) << e.what();
          EXPECT_NE(std::string(e.what()).find("the value is lost"), std::string::npos) << e.what();
        }
      }
      r = {};
      if (failed) {
        Run again = fresh();
        step(again);
        EXPECT_EQ(weights(again, 0), after[0]);
      }
      if (m.device.count(operation) - done < n) break;
    }
    if (std::ranges::find(fatal, operation) != fatal.end())
      EXPECT_GT(failures, operation == late::Operation::Allocation ? 0 : 3) << static_cast<int>(operation);
  }
  m.engine.trim();
  EXPECT_EQ(m.device.pinned_memory().in_use(), 0u);
}

TEST_F(Budgets, AFailureLeavesStateWholeOrItSaysThatItIsNot) {
  const Net net{.layers = 3, .rows = 16, .width = 40};
  each_failure(net, 6 * 40 * 40 * sizeof(float) * 6 / 10, {late::Operation::Launch, late::Operation::Copy, late::Operation::Allocation},
               [](const plan::BudgetReport& r) { EXPECT_GT(r.state_bytes, 0u); });
}

TEST_F(Budgets, AFailureWhileResultsAreOffloadedOrComputedAgain) {
  const Net net{.layers = 4, .rows = 192, .width = 32};
  const size_t limit = train(machine(kPlenty), net, 1).plan.peak_bytes(0) * 7 / 10;
  setenv("TANDEM_PLAN_MEANS", "offload", 1);
  each_failure(net, limit, {late::Operation::Launch, late::Operation::Copy},
               [](const plan::BudgetReport& r) { EXPECT_TRUE(r.offloaded > 0 && r.fetched > 0 && r.pinned_bytes > 0); });
  setenv("TANDEM_PLAN_MEANS", "recompute", 1);
  each_failure(net, limit, {late::Operation::Launch},
               [](const plan::BudgetReport& r) { EXPECT_TRUE(r.recomputed > 0 && r.offloaded == 0); });
  unsetenv("TANDEM_PLAN_MEANS");
}

TEST_F(Budgets, TensorsThatWereNotUsedForLongestWaitOnTheHost) {
  const Machine m = machine(size_t{1} << 20);
  std::vector<TensorRef> kept;
  for (int i = 0; i < 12; ++i) kept.push_back(tensor(m, {64, 512}, 0.125f * static_cast<float>(i)));  // 1.5 MiB
  EXPECT_LE(m.device.memory().peak(), size_t{1} << 20);
  EXPECT_GT(m.engine.memory().residents()->moves().spills, 0);
  // Each is right, and computed with where it belongs.
  for (size_t i = 0; i < kept.size(); ++i) {
    const TensorRef* in[] = {&kept[i], &kept[i]};
    std::vector<TensorRef> out;
    m.engine.eager(ops::table().at("add"), {}, in, out);
    EXPECT_FLOAT_EQ(read(m, out[0])[0], 0.25f * static_cast<float>(i));
    EXPECT_EQ(&kept[i].buffer->device(), static_cast<device::Device*>(&m.device)) << "it came back";
  }
  EXPECT_LE(m.device.memory().peak(), size_t{1} << 20);
  kept.clear();
  EXPECT_EQ(m.device.pinned_memory().in_use(), 0u);
}

}  // namespace
}  // namespace tandem::engine
