// Kernels of OpenCL devices for rows that elsewhere have only a routine on host memory, in both ways they are scheduled, against that
// routine; and what becomes of an index that is out of range.
#include <gmock/gmock.h>

#include "base/text.hpp"
#include "codegen/interpret_kernel.hpp"
#include "ir/sample.hpp"
#include "opencl/core.hpp"
#include "opencl/opencl_device.hpp"
#include "ops/table.hpp"
#include "support.hpp"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;

const ir::OpDef& row(std::string_view name) { return ops::table().at(name); }

codegen::Kernel kernel_of_row(const ir::OpDef& op, const ir::Attrs& attrs, const std::vector<HostTensor>& in) {
  std::vector<ir::TensorType> types;
  std::vector<codegen::Layout> layouts;
  for (const HostTensor& x : in) {
    types.push_back({x.layout.dtype, to_dims(x.layout.shape)});
    layouts.push_back(x.layout);
  }
  return codegen::make_kernel(op, attrs, types, ir::infer(op, types, attrs), {}, layouts);
}

std::vector<HostTensor> expected_of(const codegen::Kernel& k, std::vector<HostTensor>& in) {
  std::vector<HostTensor> out = outputs_of(k);
  std::vector<void*> pointers;
  for (HostTensor& x : in) pointers.push_back(x.data());
  for (HostTensor& x : out) pointers.push_back(x.data());
  codegen::interpret(k, pointers, nullptr);
  return out;
}

HostTensor of_literal(const ir::Literal& l) {
  HostTensor t = dense(l.dtype, l.shape);
  std::copy_n(l.bytes->data(), t.bytes.size(), t.bytes.data());
  return t;
}

// The same values, lying backwards and with gaps.
HostTensor spread(const HostTensor& x) {
  HostTensor y{{x.layout.dtype, x.layout.shape, x.layout.strides}, {}, 0};
  for (size_t j = 0; j < y.layout.strides.size(); ++j) {
    y.layout.strides[j] *= j % 2 ? 2 : -2;
    if (y.layout.strides[j] < 0) y.first -= y.layout.strides[j] * std::max<int64_t>(x.layout.shape[j] - 1, 0);
  }
  const size_t size = size_of(x.layout.dtype);
  y.bytes.resize(std::max<size_t>(x.bytes.size() * 2, size));
  for (int64_t i = 0; i < element_count(x.layout.shape); ++i) {
    int64_t at = y.first, rest = i;
    for (size_t j = x.layout.shape.size(); j-- > 0; rest /= x.layout.shape[j]) at += rest % x.layout.shape[j] * y.layout.strides[j];
    std::copy_n(x.bytes.data() + static_cast<size_t>(i) * size, size, y.bytes.data() + static_cast<size_t>(at) * size);
  }
  return y;
}

class OpenClRoutines : public ::testing::TestWithParam<bool> {  // whether groups share work, as on a GPU
 protected:
  void SetUp() override {
    std::string why;
    if (!opencl::find_functions(why)) GTEST_SKIP() << why;
    const auto gpus = opencl::find_gpus();
    cl_device_id id = gpus.empty() ? opencl::find_cpu(0, why) : gpus[0];
    if (!id) GTEST_SKIP() << why;
    device_ = opencl::make_device({.name = "opencl:test", .device = id, .group_schedules = GetParam()});
  }
  // Bit for bit: what is added to what, in which order, is the host routine's.
  void check(const ir::OpDef& op, const ir::Attrs& attrs, std::vector<HostTensor> in) {
    const codegen::Kernel k = kernel_of_row(op, attrs, in);
    ASSERT_TRUE(k.stages.empty());
    const auto expected = expected_of(k, in), got = launched(*device_, k, in);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(near(got[i], expected[i], {})) << "output " << i;
  }
  template <class F> std::string error_of(F f) {
    try {
      f();
      return "no error";
    } catch (const std::exception& e) {
      return e.what();
    }
  }
  std::unique_ptr<device::Device> device_;
  std::mt19937_64 random_{5};
};
INSTANTIATE_TEST_SUITE_P(Schedules, OpenClRoutines, ::testing::Bool(), [](const auto& p) { return p.param ? "Groups" : "Items"; });

// Each sample in float32 and in one more type, by turns: a driver takes its time to compile.
TEST_P(OpenClRoutines, EverySample) {
  size_t turn = 0;
  for (const std::string_view name :
       {"check_range", "check_classes", "scatter", "put_along_axis", "sort", "argsort", "top_k", "searchsorted"}) {
    const ir::OpDef& op = row(name);
    for (const std::string_view text : op.samples) {
      const ir::Sample s = ir::parse_sample(op, text);
      const auto all = ir::sample_types(op, s);
      const std::vector<DType> other = all[turn++ % all.size()];
      for (const auto& types : all) {
        if (types != other && !(types.size() > 0 && types[0] == DType::F32)) continue;
        SCOPED_TRACE(cat(name, " ", text, " ", types.empty() ? "" : tandem::name(types[0])));
        std::vector<HostTensor> in;
        for (const ir::Literal& l : ir::sample_values(op, s, types)) in.push_back(of_literal(l));
        check(op, s.attrs, in);
        if (!types.empty() && types[0] != DType::F32) continue;
        for (HostTensor& x : in) x = spread(x);
        check(op, s.attrs, std::move(in));
      }
    }
  }
}

// Longer than a block, beside lines of other lengths, many equal.
TEST_P(OpenClRoutines, LongLinesAreSorted) {
  for (const Shape& shape : {Shape{2, 5000}, Shape{1100, 3}, Shape{1, 512}, Shape{3, 513}})
    for (const DType t : {DType::I8, DType::F32, DType::I64})
      for (const bool descending : {t == DType::I8}) {
        SCOPED_TRACE(cat(shape, " ", tandem::name(t)));
        const int64_t axis = shape[0] > shape[1] ? 0 : 1;
        const ir::Attrs attrs{{"axis", axis}, {"descending", descending}};
        check(row("argsort"), attrs, {dense(t, shape, random_)});
        check(row("sort"), attrs, {dense(t, shape, random_)});
        if (axis == 1) check(row("top_k"), {{"k", int64_t{7}}, {"sorted", true}}, {dense(t, shape, random_)});
      }
}

// The gradient of an embedding: many updates of few rows.
TEST_P(OpenClRoutines, SumsAreInTheOrderOfTheUpdates) {
  for (const int64_t width : {1, 3, 64, 300})
    for (const DType t : {DType::F32, DType::F16}) {
      SCOPED_TRACE(cat(width, " ", tandem::name(t)));
      HostTensor indices = dense(DType::I32, {2000, 1});
      for (size_t i = 0; i < 2000; ++i) reinterpret_cast<int32_t*>(indices.bytes.data())[i] = static_cast<int32_t>(random_() % 90) - 40;
      check(row("scatter"), {{"mode", std::string("add")}}, {dense(t, {50, width}, random_), indices, dense(t, {2000, width}, random_)});
    }
}

TEST_P(OpenClRoutines, AnIndexOutOfRangeIsToldToWhoWaitsAndItsValuesAreLost) {
  device::Stream& stream = device_->stream(device::StreamKind::Compute);
  std::vector<HostTensor> in{dense(DType::I32, {2, 3})};
  const int32_t numbers[] = {0, 4, -5, 7, 9, -6};
  std::copy_n(reinterpret_cast<const std::byte*>(numbers), sizeof numbers, in[0].bytes.data());
  const ir::Attrs attrs{{"limit", Dims{5}}, {"op", std::string("take")}, {"axis", int64_t{2}}};
  const codegen::Kernel k = kernel_of_row(row("check_range"), attrs, in);
  const auto program = device_->load(k);
  const device::BufferRef from = device_->allocate(24), to = device_->allocate(24);
  stream.upload(from->data(), numbers, sizeof numbers);
  void* pointers[] = {from->data(), to->data()};
  device_->finish();
  const uint32_t before = device_->losses().begin_run();
  to->set_run(before);
  stream.launch(program, {pointers});
  stream.launch(program, {pointers});  // the first one is told, once
  EXPECT_EQ(error_of([&] { device_->finish(); }), "take: index 7 is out of range for axis 2 with size 5 (at position [1,0])");
  EXPECT_THAT(error_of([&] { check_not_lost(*to, "read"); }),
              HasSubstr("a step that was writing it failed: take: index 7 is out of range"));
  int32_t back[6] = {};
  stream.download(back, to->data(), sizeof back);
  EXPECT_EQ(error_of([&] { device_->finish(); }), "no error");
  EXPECT_THAT(back, ::testing::ElementsAre(0, 4, 0, 0, 0, 0)) << "who reads with them stays in bounds";
}

TEST_P(OpenClRoutines, ScatterAndLabelsSayWhatIsWrong) {
  std::vector<HostTensor> in{dense(DType::F32, {4, 3}), dense(DType::I64, {2, 1}), dense(DType::F32, {2, 3})};
  reinterpret_cast<int64_t*>(in[1].bytes.data())[1] = -5;
  EXPECT_EQ(error_of([&] { launched(*device_, kernel_of_row(row("scatter"), {{"mode", std::string("add")}}, in), in); }),
            "scatter: index -5 is out of range for axis 0 with size 4 (at position [1])");
  in = {dense(DType::F32, {2, 4}), dense(DType::I32, {2, 2}), dense(DType::F32, {2, 2})};
  reinterpret_cast<int32_t*>(in[1].bytes.data())[2] = 4;
  EXPECT_EQ(error_of([&] {
              launched(*device_, kernel_of_row(row("put_along_axis"), {{"axis", int64_t{-1}}, {"mode", std::string("set")}}, in), in);
            }),
            "put_along_axis: index 4 is out of range for axis 1 with size 4 (at position [1,0])");
  in = {dense(DType::F32, {3})};
  reinterpret_cast<float*>(in[0].bytes.data())[1] = 1.5f;
  const ir::Attrs classes{{"classes", Dims{3}}, {"op", std::string("loss")}, {"ignored", std::vector<int64_t>{-1}}};
  EXPECT_EQ(error_of([&] { launched(*device_, kernel_of_row(row("check_classes"), classes, in), in); }),
            "loss: the target at [1] is 1.5, there are 3 classes, 0 to 2");
  device_->finish();
}

TEST_P(OpenClRoutines, WhoWaitsForAnEventIsToldToo) {
  device::Stream& stream = device_->stream(device::StreamKind::Compute);
  std::vector<HostTensor> in{dense(DType::I32, {1})};
  in[0].bytes[0] = std::byte{9};
  const auto program =
      device_->load(kernel_of_row(row("check_range"), {{"limit", Dims{5}}, {"op", std::string("take")}, {"axis", int64_t{0}}}, in));
  const device::BufferRef memory = device_->allocate(4), to = device_->allocate(4);
  stream.upload(memory->data(), in[0].bytes.data(), 4);
  void* pointers[] = {memory->data(), to->data()};
  stream.launch(program, {pointers});
  const auto event = device_->make_event();
  stream.record(*event);
  EXPECT_THAT(error_of([&] { event->synchronize(); }), HasSubstr("take: index 9 is out of range"));
  EXPECT_THAT(error_of([&] { device_->finish(); }), HasSubstr("take: index 9 is out of range"));
  EXPECT_EQ(error_of([&] { device_->finish(); }), "no error");
}

}  // namespace
}  // namespace tandem::testing
