// Kernels as C-style text: what makes texts equal, when addresses are counted in 64 bits, and in what order sums are joined. What the text
// computes is tested on devices.
#include "codegen/c_render.hpp"

#include <gmock/gmock.h>

#include "base/text.hpp"

namespace tandem::codegen {
namespace {

using ir::axis;
using ir::Fold;
using ir::Loops;
using ir::Scalar;
using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of(const LoopKernel& k, const GpuTarget& target = {}, bool exact_division = true) {
  return render_c(k, gpu_schedule(k, target), opencl_dialect(exact_division)).text;
}
LoopKernel kernel_of(const Loops& loops, const std::vector<Layout>& in, std::vector<DType> out) { return canonical(loops, {}, in, out); }

LoopKernel transposed(int64_t rows, int64_t columns) {
  return kernel_of({.extents = {columns, rows}, .results = {ir::load(0, DType::F32, {axis(1), axis(0)}) + 1.0}},
                   {Layout::dense(DType::F32, {rows, columns})}, {DType::F32});
}

TEST(CRender, SizesShareOneText) {
  EXPECT_EQ(text_of(transposed(30, 40)), text_of(transposed(300, 70)));
  EXPECT_NE(transposed(30, 40).params, transposed(300, 70).params);
}

TEST(CRender, AddressesTakeSixtyFourBitsOnlyWhereTheyMust) {
  const std::string small = text_of(transposed(30, 40)), large = text_of(transposed(int64_t{1} << 17, int64_t{1} << 17));
  EXPECT_THAT(small, Not(HasSubstr("const long v")));
  EXPECT_THAT(small, HasSubstr("const int unit"));
  EXPECT_THAT(large, HasSubstr("const long v"));
  EXPECT_THAT(large, HasSubstr("const long unit"));
}

// Few elements of an operand whose strides are large: the items count in 32 bits, the address does not fit.
TEST(CRender, AddressesBeyondThirtyTwoBitsOfFewElements) {
  const LoopKernel k = kernel_of({.extents = {8, 8}, .results = {ir::load(0, DType::F32, {axis(0), axis(1)})}},
                                 {{DType::F32, {8, 8}, {int64_t{1} << 30, 1}}}, {DType::F32});
  EXPECT_THAT(text_of(k), HasSubstr("const int unit"));
  EXPECT_THAT(text_of(k), HasSubstr("const long v"));
}

TEST(CRender, DoubleIsAskedForOnlyWhereItIsUsed) {
  EXPECT_THAT(text_of(transposed(3, 4)), Not(HasSubstr("double")));
  const auto quotient = kernel_of({.extents = {9}, .results = {ir::load(0, DType::F32, {axis(0)}) / ir::load(1, DType::F32, {})}},
                                  {Layout::dense(DType::F32, {9}), Layout::dense(DType::F32, {})}, {DType::F32});
  EXPECT_THAT(text_of(quotient), Not(HasSubstr("double")));
  EXPECT_THAT(text_of(quotient, {}, false), HasSubstr("(float)((double)a / (double)b)"));
  EXPECT_THAT(text_of(quotient, {}, false), HasSubstr("cl_khr_fp64 : enable"));
}

TEST(CRender, ManyParametersComeFromMemory) {
  // Each operand lies with strides of its own, three parameters apiece.
  std::vector<Layout> in;
  Scalar sum;
  for (int i = 0; i < 12; ++i) {
    in.push_back({DType::F32, {5, 6, 7}, {1000 + i, 100 + i, 2 + i}});
    const Scalar x = ir::load(i, DType::F32, {axis(0), axis(1), axis(2)});
    sum = sum ? sum + x : x;
  }
  const LoopKernel many = kernel_of({.extents = {5, 6, 7}, .results = {sum}}, in, {DType::F32});
  ASSERT_GT(many.params.size(), kParamsByValue);
  const CSource source = render_c(many, gpu_schedule(many, {}), opencl_dialect(true));
  EXPECT_TRUE(source.params_in_memory);
  EXPECT_THAT(source.text, HasSubstr("const long p30 = params[30];"));
  EXPECT_FALSE(render_c(transposed(3, 4), gpu_schedule(transposed(3, 4), {}), opencl_dialect(true)).params_in_memory);
}

LoopKernel row_sums(int64_t rows, int64_t columns, bool by_column = false) {
  const Scalar x = ir::load(0, DType::F32, by_column ? std::vector{axis(1), axis(0)} : std::vector{axis(0), axis(1)});
  return kernel_of({.extents = {rows}, .reduction = ir::fold(Fold::Sum, {columns}, x), .results = {ir::acc(0, DType::F32)}},
                   {Layout::dense(DType::F32, by_column ? Shape{columns, rows} : Shape{rows, columns})}, {DType::F32});
}

TEST(GpuSchedule, GroupsShareLongRowsAndItemsWalkColumns) {
  EXPECT_EQ(gpu_schedule(row_sums(100, 1000), {}).form, GpuForm::Group);
  EXPECT_EQ(gpu_schedule(row_sums(100000, 1000), {}).form, GpuForm::Group);       // neighbours in memory are read together
  EXPECT_EQ(gpu_schedule(row_sums(100000, 1000, true), {}).form, GpuForm::Item);  // … here by items side by side
  EXPECT_EQ(gpu_schedule(row_sums(100, 10), {}).form, GpuForm::Item);             // too short for a group
  EXPECT_EQ(gpu_schedule(row_sums(100, 1000), {.is_cpu = true}).form, GpuForm::Item);
}

TEST(GpuSchedule, AGroupFitsIntoLocalMemory) {
  const GpuSchedule s = gpu_schedule(row_sums(10, 100000), {.most_group_items = 1024, .local_bytes = 256});
  EXPECT_EQ(s.form, GpuForm::Group);
  EXPECT_LE(s.group_items * 4, 256);
  EXPECT_EQ(s.groups(), 10);
  EXPECT_THAT(text_of(row_sums(10, 100000)), HasSubstr("barrier(CLK_LOCAL_MEM_FENCE)"));
}

}  // namespace
}  // namespace tandem::codegen
