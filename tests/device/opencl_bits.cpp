// What has the same bits on a GPU as on the CPU: exact arithmetic, comparisons, integers, casts (devices/opencl/README.md). One kernel has
// many results, since a driver takes its time for each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "opencl/loader.hpp"
#include "opencl/opencl_device.hpp"
#include "support.hpp"

namespace tandem::testing {
namespace {

using ir::axis;
using ir::Scalar;

constexpr int64_t kCount = 1021;

class OpenClBits : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    cl_device_id id = nullptr;
    if (opencl::find_functions(why)) {
      const auto gpus = opencl::find_gpus();
      is_cpu_ = gpus.empty();
      id = is_cpu_ ? opencl::find_cpu(0, why) : gpus[0];
    }
    if (!id) GTEST_SKIP() << why;
    device_ = opencl::make_device({.name = "opencl:test", .device = id, .group_schedules = !is_cpu_});
  }
  // Ordinary numbers, and zeros, infinities, NaNs, the largest and the smallest ones.
  HostTensor mixed(DType t) {
    HostTensor x = dense(t, {kCount}, random_), special = dense(t, {kCount}, random_, Values::Special);
    const size_t size = size_of(t);
    for (int64_t i = 0; i < kCount; i += 2)
      std::copy_n(special.bytes.begin() + i * static_cast<int64_t>(size), size, x.bytes.begin() + i * static_cast<int64_t>(size));
    return x;
  }
  void check(std::vector<Scalar> results, std::vector<HostTensor> in) {
    const ir::Loops loops{.extents = {kCount}, .results = std::move(results)};
    const codegen::Kernel k = kernel_of(loops, in);
    const auto got = launched(*device_, k, in), expected = launched(device::get("cpu"), k, in);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t r = 0; r < got.size(); ++r) {
      const DType t = got[r].layout.dtype;
      const size_t size = size_of(t);
      for (int64_t i = 0; i < kCount; ++i) {
        const std::byte *a = &got[r].bytes[static_cast<size_t>(i) * size], *b = &expected[r].bytes[static_cast<size_t>(i) * size];
        if (std::equal(a, a + size, b)) continue;
        // Which NaN it is, nobody promises.
        if (is_float(t) && std::isnan(number(got[r], i)) && std::isnan(number(expected[r], i))) continue;
        FAIL() << "result " << r << " of " << name(t) << ", element " << i << ": " << number(got[r], i) << ", on the CPU "
               << number(expected[r], i);
      }
    }
  }
  bool is_cpu_ = false;
  std::unique_ptr<device::Device> device_;
  std::mt19937_64 random_{5};
};

TEST_F(OpenClBits, ArithmeticOfFloats) {
  for (const DType t : {DType::F32, DType::F64, DType::F16, DType::BF16}) {
    SCOPED_TRACE(name(t));
    const Scalar x = ir::load(0, t, {axis(0)}), y = ir::load(1, t, {axis(0)}), z = ir::load(2, t, {axis(0)});
    check({x + y, x - y, x * y, x / y, ir::sqrt(ir::abs(x)), ir::sqrt(x), ir::fma(x, y, z), x * y + z, -x, ir::floor(x), ir::round(x),
           ir::trunc(x)},
          {mixed(t), mixed(t), mixed(t)});
  }
}

TEST_F(OpenClBits, Comparisons) {
  for (const DType t : {DType::F32, DType::F64, DType::BF16, DType::I8, DType::U64, DType::Bool}) {
    SCOPED_TRACE(name(t));
    const Scalar x = ir::load(0, t, {axis(0)}), y = ir::load(1, t, {axis(0)});
    check({x == y, x != y, x<y, x <= y, x> y, x >= y, ir::min(x, y), ir::max(x, y), ir::select(x < y, x, y)}, {mixed(t), mixed(t)});
  }
}

TEST_F(OpenClBits, Integers) {
  for (const DType t : {DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64}) {
    SCOPED_TRACE(name(t));
    const Scalar x = ir::load(0, t, {axis(0)}), y = ir::load(1, t, {axis(0)});
    check({x + y, x - y, x * y, x / y, x % y, x & y, x | y, x ^ y, x << y, x >> y, ~x, ir::abs(x)}, {mixed(t), mixed(t)});
  }
}

TEST_F(OpenClBits, CastsBetweenAllTypes) {
  for (const DType from : all_types()) {
    SCOPED_TRACE(cat("from ", name(from)));
    std::vector<Scalar> results;
    for (const DType to : all_types()) results.push_back(ir::cast(ir::load(0, from, {axis(0)}), to));
    check(results, {mixed(from)});
  }
}

}  // namespace
}  // namespace tandem::testing
