// What tests of the front-end share.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <tandem/tandem.hpp>

#include "error_of.hpp"

namespace tandem {

inline std::vector<float> floats(const Tensor& t) { return t.to_vector<float>(); }
inline std::vector<int64_t> ints(const Tensor& t) { return t.to_vector<int64_t>(); }
using F = std::vector<float>;
using I = std::vector<int64_t>;

inline void expect_near(const Tensor& t, const std::vector<float>& wanted, float tolerance = 1e-5f) {
  const std::vector<float> got = floats(t);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance) << "at " << i;
}

}  // namespace tandem
