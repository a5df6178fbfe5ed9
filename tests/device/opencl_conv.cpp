// Convolutions and their kernels' gradients on OpenCL devices, in both ways they are scheduled: every geometry gives what the interpreter
// gives.
#include <gmock/gmock.h>

#include "conv_support.hpp"
#include "opencl/loader.hpp"
#include "opencl/opencl_device.hpp"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;

class OpenClConv : public ::testing::TestWithParam<bool> {  // whether groups share tiles, as on a GPU
 protected:
  void SetUp() override {
    std::string why;
    if (!opencl::find_functions(why)) GTEST_SKIP() << why;
    const auto gpus = opencl::find_gpus();
    cl_device_id id = gpus.empty() ? opencl::find_cpu(0, why) : gpus[0];
    if (!id) GTEST_SKIP() << why;
    device_ = opencl::make_device({.name = "opencl:test", .device = id, .group_schedules = GetParam()});
  }
  void check(ProductCall call, DType t, bool has_epilogue = false) {
    const Allowed allowed = sum_tolerance(call.kernel.out[0].dtype == DType::F32 ? DType::F32 : t, call.terms + 10);
    if (has_epilogue) call = with_end(std::move(call), random_);
    EXPECT_THAT(std::string(device_->load(call.kernel)->kernel_name()), HasSubstr("conv"));
    const auto got = launched(*device_, call.kernel, call.in), again = launched(*device_, call.kernel, call.in);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(near(got[i], call.expected[i], allowed)) << i;
      EXPECT_EQ(got[i].bytes, again[i].bytes) << "other bits in a second run";
    }
  }
  void check_both(const Geometry& g, DType t = DType::F32, Lies lies = Lies::Densely, bool has_epilogue = false) {
    SCOPED_TRACE(cat(g.text(), " ", name(t), has_epilogue ? " with an end" : ""));
    check(forward(g, random_, lies, t), t, has_epilogue);
    check(weights(g, random_, lies, t), t, has_epilogue);
  }
  std::unique_ptr<device::Device> device_;
  std::mt19937_64 random_{7};
};
INSTANTIATE_TEST_SUITE_P(Schedules, OpenClConv, ::testing::Bool(), [](const auto& p) { return p.param ? "Groups" : "Items"; });

TEST_P(OpenClConv, Geometries) {
  const std::pair<int64_t, int64_t> paddings[] = {{0, 0}, {1, 1}, {-1, 3}, {4, -2}};
  size_t turn = 0;
  for (int64_t stride : {1, 2})
    for (int64_t dilation : {1, 2})
      for (int64_t spread : {1, 2})
        for (int i = 0; i < 2; ++i) {
          const auto [low, high] = paddings[turn++ % 4];
          const Axis h{9, 3, stride, low, high, dilation, spread}, w{11, 2, 1, high, low, dilation, spread};
          check_both(i == 0 ? Geometry{2, 5, 18, {h, w}} : Geometry{3, 18, 5, {w, h}});
        }
}

TEST_P(OpenClConv, OneAndThreeAxes) {
  const Axis a{6, 3, 2, 1, 1, 1, 1}, b{5, 2, 1, 0, 1, 2, 1};
  check_both({3, 7, 20, {{40, 5, 2, 2, 2, 1, 1}}});
  check_both({2, 3, 17, {a, b, a}});
}

TEST_P(OpenClConv, TypesStridesAndEnds) {
  const Axis same{8, 3, 1, 1, 1};
  for (const DType t : {DType::F16, DType::BF16}) check_both({2, 16, 33, {same, same}}, t);
  for (const bool has_epilogue : {false, true}) check_both({2, 16, 70, {same, same}}, DType::F32, Lies::Anyhow, has_epilogue);
}

// Few elements and long sums: cut into blocks on a GPU.
TEST_P(OpenClConv, LongSums) {
  const Axis same{40, 3, 1, 1, 1};
  check(weights({4, 3, 8, {same, same}}, random_), DType::F32);
  check(weights({4, 3, 8, {same, same}}, random_), DType::F32, true);
}

TEST_P(OpenClConv, Groups) {
  ir::Attrs attrs = Geometry{2, 8, 12, {{7, 3, 1, 1, 1}, {7, 3, 1, 1, 1}}}.attrs();
  attrs.set("groups", int64_t{2});
  check(product_call("general_conv", attrs, {dense(DType::F32, {2, 7, 7, 8}, random_), dense(DType::F32, {3, 3, 4, 12}, random_)}),
        DType::F32);
  attrs.set("kernel", Dims{3, 3});
  check(product_call("conv_kernel_gradient", attrs, {dense(DType::F32, {2, 7, 7, 8}, random_), dense(DType::F32, {2, 7, 7, 12}, random_)}),
        DType::F32);
}

TEST_P(OpenClConv, DepthwiseOnesComeFromLoops) {
  ir::Attrs attrs = Geometry{2, 20, 20, {{9, 3, 1, 1, 1}, {9, 3, 1, 1, 1}}}.attrs();
  attrs.set("groups", int64_t{20});
  ProductCall call =
      product_call("general_conv", attrs, {dense(DType::F32, {2, 9, 9, 20}, random_), dense(DType::F32, {3, 3, 1, 20}, random_)});
  EXPECT_EQ(device_->load(call.kernel)->kernel_name(), "generated");
  EXPECT_TRUE(near(launched(*device_, call.kernel, call.in)[0], call.expected[0], call.allowed()));
}

}  // namespace
}  // namespace tandem::testing
