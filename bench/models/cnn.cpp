// Two convolutions with pooling over small grey pictures, then dropout and a softmax.
#include "works.hpp"

namespace bench {

Work make_cnn(Scale scale, Weights& weights) {
  const bool full = scale == Scale::Full;
  const int64_t side = full ? 28 : 12, f1 = full ? 32 : 4, f2 = full ? 64 : 6, classes = 10;
  const int64_t last = ((side - 2) / 2 - 2) / 2;
  const Conv2D first(weights, "first", 3, 1, f1), second(weights, "second", 3, f1, f2);
  const Dense output(weights, "output", last * last * f2, classes);
  const int64_t batch = full ? 128 : 8;
  return {
      .batch = batch,
      .steps = full ? 60 : 10,
      .x = {side, side, 1},
      .y = {},
      .classes = classes,
      .loss = Loss::ClassProbabilities,
      .model =
          [=](const td::Tensor& x, Forward& f) {
            td::Tensor y = td::max_pool(td::relu(first(x, f)), {2, 2});
            y = td::max_pool(td::relu(second(y, f)), {2, 2}).reshape({batch, -1});
            return td::softmax(output(dropout(y, 0.5, f), f));
          },
  };
}

}  // namespace bench
