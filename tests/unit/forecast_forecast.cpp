// Forecasts of small models: what adds up to what, what the error below the least says, and that the least works.
#include "forecast/forecast.hpp"

#include <numeric>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <tandem/nn/layers.hpp>
#include <tandem/nn/model.hpp>

#include "engine/engine.hpp"

namespace tandem::forecast {
namespace {

using nn::Dense;
using nn::Input;

constexpr int64_t kWidth = 128, kBatch = 512, kEffort = 2'000'000;
constexpr int kLayers = 6;

nn::Model deep() {
  std::vector<nn::Layer> layers{Input({kWidth})};
  for (int i = 0; i < kLayers; ++i) layers.push_back(Dense(kWidth, {.activation = "relu"}));
  layers.push_back(Dense(10, {.activation = "softmax"}));
  const nn::Model model = nn::Sequential(layers, "deep");
  model.compile({.optimizer = "adam", .loss = {"sparse_categorical_crossentropy"}, .metrics = {"accuracy"}});
  return model;
}
constexpr size_t kNumbers = kLayers * (kWidth * kWidth + kWidth) + kWidth * 10 + 10;

struct Asked {
  std::unique_ptr<device::Device> device = device::make("null:RTX 3060");
  Planner planner{step_of(deep(), {}), *device};
};

TEST(Cards, AreFoundByAnyWayToWriteThem) {
  for (const char* name : {"RTX 3060", "rtx3060", "NVIDIA GeForce RTX 3060", "rtx-3060"}) EXPECT_EQ(device::card(name).name, "RTX 3060");
  EXPECT_EQ(device::card("Radeon PRO W7900").name, "W7900");
  try {
    device::card("A100");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(),
                 "card: there is none named \"A100\" in the catalogue; near it are A10, A100 40GB, A100 80GB\n"
                 "  hint: tandem plan --cards lists them");
  }
}

TEST(Cards, SayWhereTheirNumbersAreFrom) {
  for (const device::Card& c : device::cards()) {
    SCOPED_TRACE(c.name);
    EXPECT_GT(c.memory_gib, 0);
    EXPECT_GT(c.gigabytes_per_second, c.link_gigabytes_per_second);
    EXPECT_GT(c.teraflops, 0);
    EXPECT_GT(c.launch_microseconds, 0);
    EXPECT_FALSE(c.source.empty());
    EXPECT_LT(device::usable_bytes(c), static_cast<size_t>(c.memory_gib * 0x1p30));
    EXPECT_GT(device::usable_bytes(c), static_cast<size_t>(c.memory_gib * 0x1p30 * 0.8));
    EXPECT_EQ(device::make(std::string("null:") + std::string(c.name))->memory().limit(), device::usable_bytes(c));
  }
}

TEST(Forecast, PartsAddUpToThePeak) {
  Asked a;
  const Situation s = *a.planner.plan(kBatch, 0, kEffort);
  EXPECT_EQ(sum(s.parts), s.peak_bytes);
  const auto part = [&](Role r) { return s.parts[static_cast<size_t>(r)]; };
  // Each variable is counted in whole lines of memory.
  constexpr size_t kVariables = 2 * (kLayers + 1);
  EXPECT_GE(part(Role::Weight), kNumbers * sizeof(float));
  EXPECT_LE(part(Role::Weight), kNumbers * sizeof(float) + kVariables * codegen::kAlignment);
  EXPECT_GE(part(Role::OptimizerState), 2 * kNumbers * sizeof(float));
  EXPECT_LE(part(Role::OptimizerState), 2 * kNumbers * sizeof(float) + (2 * kVariables + 2) * codegen::kAlignment);
  // Every layer's result is kept for the backward pass.
  EXPECT_GE(part(Role::Activation) + part(Role::Workspace), kLayers * kBatch * kWidth * sizeof(float) / 2);
  EXPECT_EQ(s.recomputed + s.offloaded + s.state_on_host, 0);
  EXPECT_TRUE(s.moves.empty());
}

// The same step run on the device that keeps time, whose stream counts what its kernels take.
TEST(Forecast, TimesAreTheDevicesOwn) {
  Asked a;
  const Situation s = *a.planner.plan(kBatch, 0, kEffort);
  double computing = 0;
  for (const Moment& m : s.moments)
    if (m.lane == Moment::Lane::Compute) computing += m.end - m.begin;
  EXPECT_GT(computing, 0);
  EXPECT_GE(s.seconds, computing);

  device::Device& device = *device::make("null:RTX 3060").release();  // engines and devices are never destroyed
  engine::Engine& engine = *new engine::Engine(device);
  const TrainingStep& step = a.planner.step();
  const auto executable = engine.compile(step.graph, step.donations);
  std::vector<engine::TensorRef> inputs;
  for (const ir::Value v : step.graph.inputs) {
    const ir::TensorType& t = step.graph.type(v);
    const Shape shape = tandem::bind(t.dims, {{step.batch_symbol, kBatch}});
    inputs.push_back({engine.allocate(byte_size(shape, t.dtype)), codegen::Layout::dense(t.dtype, shape), 0});
  }
  std::vector<const engine::TensorRef*> pointers;
  for (const auto& t : inputs) pointers.push_back(&t);
  std::vector<engine::TensorRef> outputs;
  const double before = device.stream(device::StreamKind::Compute).elapsed_seconds();
  executable->run(pointers, outputs);
  EXPECT_NEAR(device.stream(device::StreamKind::Compute).elapsed_seconds() - before, computing, 1e-9);
}

TEST(Forecast, TheLeastWorksAndLessIsRefusedByName) {
  Asked a;
  const Situation all = *a.planner.plan(kBatch, 0, kEffort);
  Question q{.batch = kBatch, .limit_bytes = 64 << 10, .curve_points = 4, .finds_batch = false, .effort = kEffort};
  const Forecast f = ask(a.planner, q);
  EXPECT_FALSE(f.planned);
  EXPECT_GT(f.least_bytes, q.limit_bytes);
  EXPECT_LT(f.least_bytes, all.peak_bytes / 2);
  EXPECT_FALSE(f.tightest.empty());
  EXPECT_NE(f.refusal.find(std::to_string(f.least_bytes) + " bytes"), std::string::npos) << f.refusal;
  EXPECT_NE(text_of(f).find("does not fit"), std::string::npos);
  q.limit_bytes = f.least_bytes;
  const Forecast at_least = ask(a.planner, q);
  ASSERT_TRUE(at_least.planned);
  EXPECT_LE(at_least.planned->peak_bytes, f.least_bytes);
  EXPECT_EQ(sum(at_least.planned->parts), at_least.planned->peak_bytes);
  EXPECT_FALSE(at_least.planned->moves.empty());
}

TEST(Forecast, MoreMemoryIsNeverSlowerOnTheCurve) {
  Asked a;
  const size_t peak = a.planner.plan(kBatch, 0, kEffort)->peak_bytes;
  const Forecast f =
      ask(a.planner, {.batch = kBatch, .limit_bytes = peak * 6 / 10, .curve_points = 6, .finds_batch = false, .effort = kEffort});
  ASSERT_GE(f.curve.size(), 4u);
  EXPECT_EQ(f.curve.front().limit_bytes, f.least_bytes);
  EXPECT_EQ(f.curve.back().seconds, f.unlimited.seconds);
  for (size_t i = 0; i < f.curve.size(); ++i) {
    EXPECT_LE(f.curve[i].peak_bytes, f.curve[i].limit_bytes);
    if (i == 0) continue;
    EXPECT_GT(f.curve[i].limit_bytes, f.curve[i - 1].limit_bytes);
    EXPECT_LE(f.curve[i].seconds, f.curve[i - 1].seconds);
  }
}

TEST(Forecast, FindsTheLargestBatch) {
  Asked a;
  const size_t peak = a.planner.plan(kBatch, 0, kEffort)->peak_bytes;
  const Forecast f = ask(a.planner, {.batch = 64, .limit_bytes = peak, .curve_points = 0, .effort = kEffort});
  EXPECT_EQ(f.batch_as_it_is, kBatch);
  EXPECT_GT(a.planner.plan(f.batch_as_it_is + 1, 0, 1)->peak_bytes, peak);
  EXPECT_GT(f.batch_planned, f.batch_as_it_is);
  EXPECT_GT(f.batch_refused, f.batch_planned);
  EXPECT_TRUE(a.planner.plan(f.batch_planned, peak, kEffort));
}

TEST(Forecast, AsJsonHasTheSameNumbers) {
  Asked a;
  const size_t peak = a.planner.plan(kBatch, 0, kEffort)->peak_bytes;
  const Forecast f =
      ask(a.planner,
          {.batch = kBatch, .limit_bytes = peak / 2, .curve_points = 3, .finds_batch = false, .card = "RTX 3060", .effort = kEffort});
  const auto j = nlohmann::json::parse(json_of(f));
  EXPECT_EQ(j["fits"], true);
  EXPECT_EQ(j["unlimited"]["peak_bytes"], peak);
  EXPECT_EQ(j["planned"]["peak_bytes"], f.planned->peak_bytes);
  EXPECT_EQ(j["least_bytes"], f.least_bytes);
  EXPECT_EQ(j["curve"].size(), f.curve.size());
  size_t parts = 0;
  for (const auto& [key, bytes] : j["planned"]["parts"].items()) parts += bytes.get<size_t>();
  EXPECT_EQ(parts, f.planned->peak_bytes);
  EXPECT_EQ(j["planned"]["timeline"].size(), f.planned->moments.size());
}

TEST(Forecast, AsAPageNeedsNothingFromOutside) {
  Asked a;
  const size_t peak = a.planner.plan(kBatch, 0, kEffort)->peak_bytes;
  const Forecast f = ask(a.planner, {.batch = kBatch, .limit_bytes = peak / 2, .curve_points = 3, .finds_batch = false, .effort = kEffort});
  const std::string page = html_of(f);
  for (const char* wanted : {"<!DOCTYPE html>", "Memory over a step", "What more memory buys", "What goes where, and why", "<svg"})
    EXPECT_NE(page.find(wanted), std::string::npos) << wanted;
  for (const char* outside : {"src=\"http", "href=\"http", "<link", "@import"}) EXPECT_EQ(page.find(outside), std::string::npos) << outside;
}

TEST(Forecast, SaysWhatItAssumed) {
  const nn::Model model = nn::Sequential({Input({8}), Dense(1, {.activation = "sigmoid", .name = "answer"})}, "bare");
  const TrainingStep step = step_of(model, {});
  EXPECT_EQ(step.notes, (std::vector<std::string>{"the model was not compiled: the optimizer is adam",
                                                  "no loss is given: that of output 'answer' is binary_crossentropy"}))
      << step.notes.back();
}

TEST(Forecast, RefusesADeviceThatUsesTheHostsMemory) {
  try {
    Planner planner(step_of(deep(), {}), device::get("cpu"));
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "plan: device cpu uses the host's memory, for which steps are not planned\n  hint: a GPU, or --card");
  }
}

}  // namespace
}  // namespace tandem::forecast
