// Two wide hidden layers: matrix products and the optimizer's memory traffic.
#include "works.hpp"

namespace bench {

Work make_mlp_big(Scale scale, Weights& weights) {
  const bool full = scale == Scale::Full;
  const int64_t inputs = full ? 1024 : 24, units = full ? 2048 : 32, classes = 10;
  const Dense first(weights, "first", inputs, units), second(weights, "second", units, units), output(weights, "output", units, classes);
  return {
      .batch = full ? 256 : 16,
      .steps = full ? 30 : 10,
      .x = {inputs},
      .y = {},
      .classes = classes,
      .loss = Loss::ClassLogits,
      .model = [=](const td::Tensor& x, Forward& f) { return output(td::relu(second(td::relu(first(x, f)), f)), f); },
  };
}

}  // namespace bench
