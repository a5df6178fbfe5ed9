// Keras's stored numbers (tests/data/keras_training.json, made by tools/keras/training.py) as tensors, and how they are compared.
#pragma once
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <regex>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <tandem/error.hpp>
#include <tandem/nn/config.hpp>
#include <tandem/tensor.hpp>

#include "support/source_folder.hpp"

namespace tandem::nn {

inline const Config& stored() {
  static const Config all = Config::parse(std::ifstream(test::source_file("tests/data/keras_training.json")));
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

// What a mistake is told, without the line of the test that made it; a line of the library stays and shows.
inline std::string message(const std::function<void()>& f) {
  static const std::regex own_line("\n  at [^\n]*nn_[a-z_]*\\.cpp:[0-9]+");
  try {
    f();
  } catch (const UserError& e) {
    return std::regex_replace(e.what(), own_line, "", std::regex_constants::format_first_only);
  }
  return "nothing was thrown";
}
inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace tandem::nn
