// A sequence of words, read one after the other, and a yes or no at its end.
#include "works.hpp"

namespace bench {

Work make_lstm(Scale scale, Weights& weights) {
  const bool full = scale == Scale::Full;
  const int64_t words = full ? 5000 : 50, length = full ? 100 : 7, features = full ? 64 : 8, units = full ? 128 : 12;
  const Embedding embedding(weights, "embedding", words, features);
  const Lstm lstm(weights, "lstm", features, units);
  const Dense output(weights, "output", units, 1);
  return {
      .batch = full ? 64 : 8,
      .steps = full ? 20 : 10,
      .x = {length},
      .words = words,
      .y = {1},
      .classes = 2,
      .loss = Loss::Binary,
      .model = [=](const td::Tensor& x, Forward& f) { return td::sigmoid(output(lstm(embedding(x.transpose(), f), f), f)); },
  };
}

}  // namespace bench
