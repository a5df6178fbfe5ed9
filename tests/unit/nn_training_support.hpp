// Keras's stored numbers (tests/data/keras_training.json, made by tools/keras/training.py) as tensors, and how they are compared.
#pragma once
#include <cmath>
#include <fstream>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <tandem/nn/config.hpp>
#include <tandem/tensor.hpp>

namespace tandem::nn {

inline const Config& stored() {
  static const Config all = Config::parse(std::ifstream(TANDEM_SOURCE_DIR "/tests/data/keras_training.json"));
  return all;
}

inline double number(const Config& c) { return c.is_string() ? std::stod(c.get<std::string>()) : c.get<double>(); }

inline Tensor tensor(const Config& c) {
  std::vector<double> values;
  for (const Config& v : c["values"]) values.push_back(number(v));
  const auto extents = c["shape"].get<std::vector<int64_t>>();
  return Tensor::from(values, Shape(extents)).cast(c["dtype"] == "int32" ? DType::I32 : DType::F32);
}

inline void expect_near(const Tensor& got, const Config& expected, double tolerance, const std::string& what) {
  const auto extents = expected["shape"].get<std::vector<int64_t>>();
  ASSERT_EQ(got.shape().str(), Shape(extents).str()) << what;
  const std::vector<double> values = got.to_vector<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    const double e = number(expected["values"][i]);
    if (std::isfinite(e))
      EXPECT_NEAR(values[i], e, tolerance * std::max(1.0, std::abs(e))) << what << ", element " << i;
    else
      EXPECT_EQ(std::isnan(e), std::isnan(values[i])) << what << ", element " << i;
  }
}

}  // namespace tandem::nn
