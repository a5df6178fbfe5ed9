// Which ops are vectorised, which are refused and why. That the numbers are the same is tested through pipelines, in data_core.cpp and
// data_vmap.cpp.
#include <gtest/gtest.h>

#include "ir/builder.hpp"
#include "ir/verify.hpp"
#include "ops/table.hpp"
#include "transform/vmap.hpp"

namespace tandem::transform {
namespace {

using ir::Attrs;
using ir::Builder;
using ir::Value;

const Dim kBatch = Dim::symbol("b");

// One op on inputs of these types, the first of them batched.
std::string vectorised(std::string_view op, std::vector<ir::TensorType> types, const Attrs& attrs = {},
                       Exactness exactness = Exactness::Bits) {
  Builder b(ops::table());
  std::vector<Value> in;
  for (const ir::TensorType& t : types) in.push_back(b.input(t));
  const ir::Graph g = b.finish(b.nodes(op, in, attrs));
  std::vector<bool> batched(types.size(), false);
  batched[0] = true;
  std::string why;
  const auto result = vmap(g, batched, kBatch, exactness, &why);
  if (!result) return why;
  ir::verify(ops::table(), *result, ir::Stage::Traced);
  std::string text;
  for (const ir::TensorType& t : result->output_types()) text += (text.empty() ? "" : ", ") + t.str();
  return text;
}

TEST(TransformVmap, GivesEveryResultALeadingExtent) {
  const ir::TensorType image{DType::F32, {4, 5, 3}}, row{DType::F32, {6}}, ids{DType::I32, {2}};
  EXPECT_EQ(vectorised("add", {row, {DType::F32, {4, 6}}}), "float32[b,4,6]");
  EXPECT_EQ(vectorised("exp", {image}), "float32[b,4,5,3]");
  EXPECT_EQ(vectorised("transpose", {image}, {{"perm", ir::Ints{2, 0, 1}}}), "float32[b,3,4,5]");
  EXPECT_EQ(vectorised("reshape", {image}, {{"shape", Dims{20, 3}}}), "float32[b,20,3]");
  EXPECT_EQ(vectorised("expand_dims", {row}, {{"axis", ir::Ints{0}}}), "float32[b,1,6]");
  EXPECT_EQ(vectorised("broadcast_to", {row}, {{"shape", Dims{2, 6}}}), "float32[b,2,6]");
  EXPECT_EQ(vectorised("flip", {image}, {{"axis", ir::Ints{-2}}}), "float32[b,4,5,3]");
  EXPECT_EQ(vectorised("concatenate", {row, row}), "float32[b,12]");
  EXPECT_EQ(vectorised("stack", {row, row}, {{"axis", int64_t{1}}}), "float32[b,6,2]");
  EXPECT_EQ(vectorised("max", {image}, {{"axis", ir::Ints{-1}}}), "float32[b,4,5]");
  EXPECT_EQ(vectorised("max", {image}), "float32[b]");
  EXPECT_EQ(vectorised("argmax", {image}), "int32[b]");
  EXPECT_EQ(vectorised("one_hot", {ids}, {{"classes", int64_t{7}}}), "float32[b,2,7]");
  EXPECT_EQ(vectorised("sum", {ids}), "int32[b]");
  EXPECT_EQ(vectorised("sort", {image}), "float32[b,4,5,3]");
  EXPECT_EQ(vectorised("take_clipped", {image, ids}, {{"axis", int64_t{1}}}), "float32[b,4,2,3]");
}

TEST(TransformVmap, RefusesWhatIsNotExact) {
  const ir::TensorType row{DType::F32, {6}}, matrix{DType::F32, {6, 2}};
  EXPECT_EQ(vectorised("sum", {row}), "sum adds floating-point numbers in an order that may be another one for a batch");
  EXPECT_EQ(vectorised("sum", {row}, {}, Exactness::Tolerance), "float32[b]");
  EXPECT_EQ(vectorised("matmul", {row, matrix}), "matmul adds floating-point numbers in an order that may be another one for a batch");
  EXPECT_EQ(vectorised("matmul", {row, matrix}, {}, Exactness::Tolerance), "float32[b,2]");
  EXPECT_EQ(vectorised("matmul", {{DType::F32, {3, 6}}, matrix}, {}, Exactness::Tolerance), "float32[b,3,2]");
  EXPECT_EQ(vectorised("softmax", {row}, {}, Exactness::Tolerance), "float32[b,6]");
  EXPECT_EQ(vectorised("random_unit", {{DType::U32, {2}}}, {{"shape", Dims{3}}}), "random_unit has no rule for batches");
  EXPECT_EQ(vectorised("take", {{DType::F32, {3}}, {DType::I32, {2}}}), "float32[b,2]");
  EXPECT_EQ(vectorised("cholesky", {{DType::F32, {3, 3}}}), "cholesky has no rule for batches");
}

}  // namespace
}  // namespace tandem::transform
