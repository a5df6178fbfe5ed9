// The six pieces of work of the training benchmark. tools/bench/works.py has the same ones in Keras, with the same names of layers.
#pragma once
#include <functional>
#include <span>
#include <string_view>

#include "layers.hpp"

namespace bench {

// Tiny ones have every layer of the full ones and run in a test.
enum class Scale : uint8_t { Full, Tiny };

// Binary: of one probability. ClassProbabilities and ClassLogits: of what the last layer gives for each class.
enum class Loss : uint8_t { Binary, ClassProbabilities, ClassLogits };

struct Work {
  int64_t batch, steps;  // the examples of a step; the steps of a pass over the data
  td::Shape x;           // of one example
  int64_t words = 0;     // inputs are numbers of words below this; 0: they are floats in [0, 1)
  td::Shape y;           // of one example's classes
  int64_t classes;
  Loss loss;
  std::function<td::Tensor(const td::Tensor& x, Forward&)> model;
};

Work make_mlp(Scale scale, Weights& weights);
Work make_mlp_big(Scale scale, Weights& weights);
Work make_cnn(Scale scale, Weights& weights);
Work make_resnet(Scale scale, Weights& weights);
Work make_transformer(Scale scale, Weights& weights);
Work make_lstm(Scale scale, Weights& weights);

struct WorkEntry {
  std::string_view name;
  Work (*make)(Scale scale, Weights& weights);
};
std::span<const WorkEntry> works();
Work make_work(std::string_view name, Scale scale, Weights& weights);  // UserError lists the names that there are

}  // namespace bench
