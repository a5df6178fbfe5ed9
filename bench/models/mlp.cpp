// One hidden layer and a yes or no, with a batch so small that every overhead shows.
#include "works.hpp"

namespace bench {

Work make_mlp(Scale scale, Weights& weights) {
  const bool full = scale == Scale::Full;
  const int64_t inputs = full ? 1000 : 20, units = full ? 128 : 16;
  const Dense hidden(weights, "hidden", inputs, units), output(weights, "output", units, 1);
  return {
      .batch = full ? 32 : 8,
      .steps = full ? 2000 : 10,
      .x = {inputs},
      .y = {1},
      .classes = 2,
      .loss = Loss::Binary,
      .model = [=](const td::Tensor& x, Forward& f) { return td::sigmoid(output(td::relu(hidden(x, f)), f)); },
  };
}

}  // namespace bench
