// Keras's stored numbers (tests/data/keras_layers.json, made by tools/keras/layers.py) as tensors, and how they are compared.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include <tandem/nn/layers.hpp>
#include <tandem/nn/network.hpp>
#include <tandem/tandem.hpp>

#include "support/source_folder.hpp"

namespace tandem::nn {

inline const Config& stored_layers() {
  static const Config all = Config::parse(std::ifstream(test::source_file("tests/data/keras_layers.json")));
  return all;
}

inline Tensor stored_tensor(const Config& c) {
  const Tensor t = Tensor::from(c["values"].get<std::vector<double>>(), Shape(c["shape"].get<std::vector<int64_t>>()));
  return t.cast(*parse_dtype(c["dtype"].get<std::string>()));
}

inline std::vector<Tensor> stored_tensors(const Config& list) {
  std::vector<Tensor> all;
  for (const Config& c : list) all.push_back(stored_tensor(c));
  return all;
}

// To float tolerance of the largest number there.
inline void expect_stored(const Tensor& got, const Config& wanted, const std::string& what, double tolerance = 2e-5) {
  ASSERT_EQ(got.shape().str(), Shape(wanted["shape"].get<std::vector<int64_t>>()).str()) << what;
  const std::vector<double> g = got.to_vector<double>(), w = wanted["values"].get<std::vector<double>>();
  double scale = 1;
  for (const double x : w) scale = std::max(scale, std::abs(x));
  for (size_t i = 0; i < g.size(); ++i) ASSERT_NEAR(g[i], w[i], tolerance * scale) << what << ", element " << i;
}

inline void expect_stored(const std::vector<Tensor>& got, const Config& wanted, const std::string& what, double tolerance = 2e-5) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) expect_stored(got[i], wanted[i], what + " " + std::to_string(i), tolerance);
}

inline void assign_weights(const Layer& layer, const Config& values) {
  const std::vector<Variable> weights = layer.weights();
  ASSERT_EQ(weights.size(), values.size()) << layer.class_name();
  for (size_t i = 0; i < weights.size(); ++i) weights[i].assign(stored_tensor(values[i]));
}

}  // namespace tandem::nn
