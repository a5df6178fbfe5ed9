// Optimizers and schedules have Keras's numbers.
#include <tandem/nn/optimizers.hpp>

#include <cmath>

#include <tandem/function.hpp>
#include <tandem/ops.hpp>

#include "nn_training_support.hpp"

namespace tandem::nn {
namespace {

std::vector<Tensor> tensors(const Config& list) {
  std::vector<Tensor> out;
  for (const Config& c : list) out.push_back(tensor(c));
  return out;
}

std::vector<Variable> targets() {
  const std::vector<Tensor> start = tensors(stored()["optimizers"]["start"]);
  return {Variable(start[0], {.name = "kernel"}), Variable(start[1], {.name = "bias"})};
}

// Five steps, each one compiled, and eagerly.
TEST(Optimizers, StepAsKerassDo) {
  const Config& all = stored()["optimizers"];
  ASSERT_GT(all["cases"].size(), 20u);
  for (const bool compiled : {true, false}) {
    for (const Config& c : all["cases"]) {
      const std::string name = c["class"].get<std::string>() + c["config"].dump();
      const std::vector<Variable> variables = targets();
      const Optimizer optimizer = Optimizer::from_config(c["class"], c["config"]);
      optimizer.build(variables);
      const Function step([&](Tensor a, Tensor b) { optimizer.apply({a, b}); });
      for (size_t i = 0; i < all["gradients"].size(); ++i) {
        const std::vector<Tensor> g = tensors(all["gradients"][i]);
        if (compiled)
          step(g[0], g[1]);
        else
          optimizer.apply(g);
        for (size_t k = 0; k < 2; ++k) expect_near(variables[k].value(), c["steps"][i][k], 3e-6, name + " step " + std::to_string(i));
      }
      // What a file of Keras holds, in its order.
      ASSERT_EQ(optimizer.variables().size(), c["state"].size()) << name;
      for (size_t i = 0; i < c["state"].size(); ++i)
        expect_near(optimizer.variables()[i].value(), c["state"][i], 3e-6, name + " state " + std::to_string(i));
      optimizer.finalize_variable_values();
      for (size_t k = 0; k < 2; ++k) expect_near(variables[k].value(), c["final"][k], 3e-6, name + " finally");
    }
  }
}

TEST(Optimizers, SchedulesAreKerass) {
  const Config& all = stored()["schedules"];
  ASSERT_GT(all["cases"].size(), 10u);
  for (const Config& c : all["cases"]) {
    const Schedule schedule(c["class"], c["config"]);
    for (size_t i = 0; i < all["steps"].size(); ++i) {
      const double expected = c["rates"][i], rate = schedule(Tensor::scalar(all["steps"][i].get<int64_t>())).item<double>();
      EXPECT_NEAR(rate, expected, 1e-7) << c["class"] << c["config"] << " at " << all["steps"][i];
    }
  }
}

TEST(Optimizers, ConfigGoesRoundTrip) {
  const Optimizer made = Adam(CosineDecay(0.1, 50), {.amsgrad = true}, {.clipnorm = 1.0, .use_ema = true});
  EXPECT_EQ(Optimizer::deserialize(made.serialize()).config(), made.config());
  EXPECT_EQ(Optimizer("adamw").config()["weight_decay"], 0.004);
  EXPECT_EQ(Optimizer("rmsprop").name(), "rm_sprop");
}

TEST(Optimizers, TheRateCanBeSet) {
  const Optimizer sgd = SGD(0.5);
  const Variable v(1.f);
  sgd.build({v});
  const Function step([&](Tensor g) { sgd.apply({g}); });
  step(Tensor::scalar(1.f));
  EXPECT_FLOAT_EQ(v.value().item<float>(), 0.5f);
  sgd.set_learning_rate(0.25);
  step(Tensor::scalar(1.f));
  EXPECT_FLOAT_EQ(v.value().item<float>(), 0.25f);
  EXPECT_EQ(step.trace_count(), 1u);
  EXPECT_DOUBLE_EQ(sgd.learning_rate(), 0.25);
  EXPECT_EQ(sgd.iterations().value().item<int64_t>(), 2);
}

TEST(Optimizers, SomeWeightsDoNotDecay) {
  const Optimizer sgd = SGD(0.1, {}, {.weight_decay = 1.0});
  sgd.exclude_from_weight_decay({"bias"});
  const Variable kernel(1.f, {.name = "kernel"}), bias(1.f, {.name = "bias"});
  sgd.build({kernel, bias});
  sgd.apply({Tensor::scalar(0.f), Tensor::scalar(0.f)});
  EXPECT_FLOAT_EQ(kernel.value().item<float>(), 0.9f);
  EXPECT_FLOAT_EQ(bias.value().item<float>(), 1.f);
}

TEST(Optimizers, AveragesWithoutGradientsEndAtZero) {
  for (const Optimizer& optimizer : {Adam(), Adamax(), Nadam()}) {
    const Variable v(1.f);
    optimizer.build({v});
    const Function step([&](Tensor g) { optimizer.apply({g}); });
    step(Tensor::scalar(1.f));
    const auto momentum = [&] { return optimizer.variables()[2].value().item<float>(); };  // behind the iterations and the rate
    EXPECT_GT(momentum(), 0.f);
    for (int i = 0; i < 900; ++i) step(Tensor::scalar(0.f));  // 0.9 ^ 900 is subnormal
    EXPECT_EQ(momentum(), 0.f);
    step(Tensor::scalar(std::nanf("")));
    EXPECT_TRUE(std::isnan(momentum()));
  }
}

TEST(Optimizers, Mistakes) {
  const auto message = [](auto f) -> std::string {
    try {
      f();
    } catch (const UserError& e) {
      return e.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(message([] { Optimizer("adamm"); }), "unknown optimizer 'adamm'\n  hint: did you mean Adam, AdamW, Adamax or Nadam?");
  EXPECT_EQ(message([] { Adam(0.1, {}, {.clipnorm = 1.0, .clipvalue = 1.0}); }),
            "Adam: only one of clipnorm, clipvalue and global_clipnorm can be set");
  EXPECT_EQ(message([] { SGD(0.1, {.momentum = 2}); }), "SGD: momentum is 2, it must be in [0, 1]");
  EXPECT_EQ(message([] { SGD(0.1).apply({}); }), "SGD: is not built\n  hint: build(variables) makes its state");
  EXPECT_EQ(message([] { SGD(ExponentialDecay(0.1, 1, 0.5)).set_learning_rate(1); }),
            "SGD: its learning rate is a schedule and cannot be set\n  hint: make it with a number");
  EXPECT_EQ(message([] { ExponentialDecay(0.1, 0, 0.5); }), "schedule ExponentialDecay: decay_steps is 0, it must be above 0");
  EXPECT_EQ(message([] { PiecewiseConstantDecay({1, 2}, {0.1}); }),
            "schedule PiecewiseConstantDecay: 2 boundaries go with 3 values, there are 1");
  EXPECT_EQ(message([] {
              const Optimizer o = SGD(0.1);
              o.build({Variable(1.f)});
              o.apply({Tensor()});
            }),
            "SGD: no variable has a gradient\n  hint: the loss does not depend on any of them");
}

}  // namespace
}  // namespace tandem::nn
