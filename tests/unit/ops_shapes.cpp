// Shapes and types of reductions, movement, slices, indexing and order: symbols are carried, and mistakes are named with both numbers.
#include <gtest/gtest.h>

#include <algorithm>

#include "evaluate.hpp"
#include "ops/table.hpp"

namespace tandem {
namespace {
using namespace ir;
using test::Array;

const Dim b = Dim::symbol("b");

TensorType f32(Dims dims) { return {DType::F32, std::move(dims)}; }
TensorType i32(Dims dims) { return {DType::I32, std::move(dims)}; }

std::string types_of(std::string_view op, const std::vector<TensorType>& in, const Attrs& attrs = {}) {
  const OpDef& row = ops::table().at(op);
  std::string text;
  for (const TensorType& t : infer(row, in, complete_attrs(row, attrs))) text += cat(text.empty() ? "" : " ", t);
  return text;
}

std::string error_of(std::string_view op, const std::vector<TensorType>& in, const Attrs& attrs = {}) {
  try {
    return cat("no error, but ", types_of(op, in, attrs));
  } catch (const UserError& e) {
    return e.what();
  }
}

// The results of one op; inputs are typed as given, so that sizes may be symbols while the graph is made.
std::vector<Array> run(std::string_view op, const std::vector<TensorType>& types, const std::vector<Array>& in, const Attrs& attrs = {}) {
  Builder builder(ops::table());
  std::vector<Value> operands;
  for (const TensorType& t : types) operands.push_back(builder.input(t));
  const std::vector<Value> out = builder.nodes(op, operands, attrs);
  return test::evaluate(ops::table(), builder.finish(out), in);
}
std::vector<Array> run(std::string_view op, const std::vector<Array>& in, const Attrs& attrs = {}) {
  std::vector<TensorType> types;
  for (const Array& a : in) types.push_back({a.dtype, to_dims(a.shape)});
  return run(op, types, in, attrs);
}
std::string run_error(std::string_view op, const std::vector<Array>& in, const Attrs& attrs = {}) {
  try {
    run(op, in, attrs);
    return "no error";
  } catch (const UserError& e) {
    return e.what();
  }
}

Array counted(Shape s, DType t = DType::F32) {
  Array a(t, s);
  for (int64_t i = 0; i < a.count(); ++i) a.set(i, static_cast<double>((i * 7) % 11) - (is_signed(t) ? 3 : 0));
  return a;
}

// --- reductions ---
TEST(OpsShapes, ReductionsKeepSymbols) {
  EXPECT_EQ(types_of("sum", {f32({b, 3, 4})}, {{"axis", Ints{1}}}), "float32[b,4]");
  EXPECT_EQ(types_of("sum", {f32({b, 3})}, {{"axis", Ints{0, -1}}, {"keepdims", true}}), "float32[1,1]");
  EXPECT_EQ(types_of("mean", {f32({3, b})}), "float32[]");
  EXPECT_EQ(types_of("argmax", {f32({b, 3})}, {{"axis", -1}}), "int32[b]");
  EXPECT_EQ(types_of("moments", {f32({b, 3})}, {{"axis", Ints{0}}}), "float32[3] float32[3]");
  EXPECT_EQ(types_of("quantile", {f32({b, 3}), f32({5})}, {{"axis", Ints{1}}, {"keepdims", true}}), "float32[5,b,1]");
  EXPECT_EQ(types_of("median", {f32({b, 3})}), "float32[]");
}

TEST(OpsShapes, SumsOfSmallTypesWiden) {
  const std::pair<DType, std::string> expected[] = {{DType::Bool, "int32[]"}, {DType::I8, "int32[]"},   {DType::I16, "int32[]"},
                                                    {DType::U8, "uint32[]"},  {DType::U16, "uint32[]"}, {DType::I64, "int64[]"},
                                                    {DType::U32, "uint32[]"}, {DType::F16, "float16[]"}};
  for (const auto& [type, text] : expected)
    for (std::string_view op : {"sum", "prod", "nansum"}) EXPECT_EQ(types_of(op, {{type, {3}}}), text) << op;
  EXPECT_EQ(types_of("cumsum", {{DType::Bool, {3}}}), "int32[3]");
  EXPECT_EQ(types_of("cumsum", {{DType::I8, {3}}}), "int8[3]");
  EXPECT_EQ(types_of("any", {f32({3})}), "bool[]");
  EXPECT_EQ(types_of("max", {{DType::Bool, {3}}}), "bool[]");
}

TEST(OpsShapes, ReductionMistakes) {
  EXPECT_EQ(error_of("max", {f32({0, 3})}, {{"axis", Ints{0}}}), "max: axis 0 of [0,3] has no elements to choose from");
  EXPECT_EQ(error_of("argmin", {f32({0})}), "argmin: axis 0 of [0] has no elements to choose from");
  EXPECT_EQ(types_of("max", {f32({b, 3})}, {{"axis", Ints{0}}}), "float32[3]") << "a symbol may be anything";
  EXPECT_NE(error_of("sum", {f32({2, 3})}, {{"axis", Ints{2}}}).find("sum: "), std::string::npos);
  EXPECT_EQ(error_of("sum", {f32({2, 3})}, {{"axis", Ints{1, -1}}}), "sum: axis 1 is there twice in axis = [1,-1]");
  EXPECT_EQ(error_of("argmax", {f32({int64_t{1} << 20, 1 << 12})}),
            "argmax: positions are int32, and 4294967296 elements are more than 2147483647");
  EXPECT_EQ(error_of("quantile", {f32({3}), f32({})}, {{"method", "middle"}}),
            "quantile: unknown method 'middle'\n  hint: linear, lower, higher, midpoint or nearest");
}

// --- movement ---
TEST(OpsShapes, ReshapeCountsSymbols) {
  EXPECT_EQ(types_of("reshape", {f32({b, 7, 7, 64})}, {{"shape", Dims{b, 3136}}}), "float32[b,3136]");
  EXPECT_EQ(types_of("reshape", {f32({b, 7, 7, 64})}, {{"shape", Dims{b, -1}}}), "float32[b,3136]");
  EXPECT_EQ(types_of("reshape", {f32({b, 7, 7, 64})}, {{"shape", Dims{-1, 3136}}}), "float32[b,3136]");
  EXPECT_EQ(types_of("reshape", {f32({b, 6})}, {{"shape", Dims{-1, 3}}}), "float32[b*2,3]");
  EXPECT_EQ(error_of("reshape", {f32({2, 3})}, {{"shape", Dims{4, 2}}}), "reshape: [2,3] has 6 elements, [4,2] has 8 (6 != 8)");
  EXPECT_EQ(error_of("reshape", {f32({2, 3})}, {{"shape", Dims{4, -1}}}),
            "reshape: [2,3] with 6 elements does not fit into [4,-1]: 6 is not a multiple of 4");
  EXPECT_EQ(error_of("reshape", {f32({b, 3})}, {{"shape", Dims{2, -1}}}),
            "reshape: [b,3] with b*3 elements does not fit into [2,-1]: b*3 is not a multiple of 2");
  EXPECT_EQ(error_of("reshape", {f32({6})}, {{"shape", Dims{-1, -1}}}), "reshape: the shape [-1,-1] has more than one entry -1");
  EXPECT_EQ(error_of("reshape", {f32({6})}, {{"shape", Dims{-2, 3}}}), "reshape: the shape [-2,3] has the negative entry -2");
  EXPECT_EQ(error_of("reshape", {f32({0, 3})}, {{"shape", Dims{0, -1}}}),
            "reshape: the entry -1 of [0,-1] could be anything, for the others make 0 elements");
}

TEST(OpsShapes, AxesComeGoAndMove) {
  EXPECT_EQ(types_of("expand_dims", {f32({b, 3})}, {{"axis", Ints{0, -1}}}), "float32[1,b,3,1]");
  EXPECT_EQ(types_of("squeeze", {f32({1, b, 1})}), "float32[b]");
  EXPECT_EQ(error_of("squeeze", {f32({b, 3})}, {{"axis", Ints{1}}}), "squeeze: axis 1 of [b,3] has size 3, not 1");
  EXPECT_EQ(error_of("squeeze", {f32({b, 3})}, {{"axis", Ints{0}}}), "squeeze: axis 0 of [b,3] has size b, not 1");
  EXPECT_EQ(types_of("transpose", {f32({b, 3, 4})}), "float32[4,3,b]");
  EXPECT_EQ(types_of("transpose", {f32({b, 3, 4})}, {{"perm", Ints{0, -1, 1}}}), "float32[b,4,3]");
  EXPECT_EQ(error_of("transpose", {f32({2, 3})}, {{"perm", Ints{0}}}), "transpose: perm [0] has 1 entries, [2,3] has 2 axes");
  EXPECT_EQ(types_of("moveaxis", {f32({b, 3, 4})}, {{"source", Ints{0}}, {"destination", Ints{-1}}}), "float32[3,4,b]");
  EXPECT_EQ(types_of("rot90", {f32({b, 3})}), "float32[3,b]");
  EXPECT_EQ(types_of("broadcast_to", {f32({b, 1})}, {{"shape", Dims{2, b, 5}}}), "float32[2,b,5]");
  EXPECT_EQ(error_of("broadcast_to", {f32({3})}, {{"shape", Dims{3, 2}}}),
            "broadcast_to: [3] cannot be stretched to [3,2]\n  hint: from the right, sizes must be equal or 1");
  EXPECT_EQ(types_of("tile", {f32({b, 3})}, {{"repeats", Ints{2, 1, 4}}}), "float32[2,b,12]");
  EXPECT_EQ(types_of("repeat", {f32({b, 3})}, {{"repeats", 3}, {"axis", 0}}), "float32[b*3,3]");
  EXPECT_EQ(types_of("roll", {f32({b, 3})}, {{"shift", Ints{2}}, {"axis", Ints{0}}}), "float32[b,3]");
}

TEST(OpsShapes, JoiningAndSplitting) {
  EXPECT_EQ(types_of("concatenate", {f32({b, 3}), f32({1, 3})}), "float32[b+1,3]");
  EXPECT_EQ(types_of("stack", {f32({b, 3}), f32({b, 3})}, {{"axis", -1}}), "float32[b,3,2]");
  EXPECT_EQ(error_of("concatenate", {f32({2, 4}), f32({2, 3})}),
            "concatenate: operand 1 [2,3] and operand 0 [2,4] differ on axis 1 (3 != 4)");
  EXPECT_EQ(error_of("concatenate", {f32({2, 4}), f32({2})}), "concatenate: operand 1 [2] has 1 axes, operand 0 [2,4] has 2");
  EXPECT_EQ(error_of("stack", {f32({2}), f32({b})}), "stack: operand 1 [b] and operand 0 [2] differ on axis 0 (b != 2)");
  EXPECT_EQ(error_of("concatenate", {}), "concatenate: at least one operand is needed");
  EXPECT_EQ(types_of("split", {f32({b, 5})}, {{"sizes", Dims{2, -1}}, {"axis", 1}}), "float32[b,2] float32[b,3]");
  EXPECT_EQ(types_of("split", {f32({b + Dim(1)})}, {{"sizes", Dims{b, 1}}}), "float32[b] float32[1]");
  EXPECT_EQ(error_of("split", {f32({5})}, {{"sizes", Dims{2, 2}}}), "split: the sizes [2,2] make 4, the axis of [5] has 5 (4 != 5)");
  EXPECT_EQ(types_of("unstack", {f32({2, b})}), "float32[b] float32[b]");
  EXPECT_EQ(error_of("unstack", {f32({b, 2})}),
            "unstack: the size of axis 0 of [b,2] must be a number, it is the symbol b\n"
            "  hint: the number of results depends on it; trace with a fixed size");
}

TEST(OpsShapes, PaddingAndDiagonals) {
  EXPECT_EQ(types_of("pad", {f32({b, 3}), f32({})}, {{"low", Dims{1, 0}}, {"high", Dims{b, -1}}}), "float32[b*2+1,2]");
  EXPECT_EQ(error_of("pad", {f32({2}), f32({})}, {{"low", Dims{-1}}, {"high", Dims{-2}}}),
            "pad: axis 0 of [2] cannot lose 3 elements, it has 2");
  EXPECT_EQ(error_of("pad", {f32({2}), f32({1})}, {{"low", Dims{1}}, {"high", Dims{1}}}),
            "pad: the value must be a scalar, got float32[1]");
  EXPECT_EQ(error_of("pad_mode", {f32({0})}, {{"low", Ints{1}}, {"high", Ints{0}}, {"mode", "edge"}}),
            "pad_mode: axis 0 of [0] has no elements to pad with");
  EXPECT_EQ(error_of("pad_mode", {f32({2})}, {{"low", Ints{1}}, {"high", Ints{0}}, {"mode", "constant"}}),
            "pad_mode: unknown mode 'constant'\n  hint: reflect, symmetric, edge or wrap; a constant is padded by pad");
  EXPECT_EQ(types_of("diagonal", {f32({b, b})}), "float32[b]");
  EXPECT_EQ(types_of("diag", {f32({b})}, {{"k", -2}}), "float32[b+2,b+2]");
  EXPECT_EQ(types_of("diagonal", {f32({2, 3})}, {{"offset", INT64_MIN}}), "float32[0]");
  EXPECT_EQ(error_of("diagonal", {f32({2, 3})}, {{"axis1", 1}, {"axis2", -1}}), "diagonal: axis1 and axis2 are both 1, they must differ");
}

// --- create, slice ---
TEST(OpsShapes, Creation) {
  EXPECT_EQ(types_of("iota", {}, {{"shape", Dims{b, 3}}, {"axis", 1}}), "int32[b,3]");
  EXPECT_EQ(types_of("eye", {}, {{"rows", Dims{b}}}), "float32[b,b]");
  EXPECT_EQ(types_of("extent", {}, {{"dims", Dims{b, 3}}, {"dtype", DType::F32}}), "float32[]");
  EXPECT_EQ(types_of("arange", {}, {{"start", 1.0}, {"stop", 2.0}, {"step", 0.25}, {"dtype", DType::F32}}), "float32[4]");
  EXPECT_EQ(types_of("linspace", {f32({2, 1}), f32({b})}, {{"num", 7}}), "float32[7,2,b]");
  EXPECT_EQ(error_of("arange", {}, {{"stop", 3.0}, {"step", 0.0}}), "arange: start 0, stop 3, step 0 must be finite, and the step not 0");
  EXPECT_EQ(error_of("full", {f32({2})}, {{"shape", Dims{3}}}),
            "full: the value must be a scalar, got float32[2]\n  hint: broadcast_to stretches other shapes");
  EXPECT_EQ(error_of("tril", {f32({2})}), "tril: at least two axes are needed, got [2]");
}

Attrs slice_attrs(Dims start, Dims limit, Ints step) { return {{"start", start}, {"limit", limit}, {"step", step}}; }

TEST(OpsShapes, Slices) {
  EXPECT_EQ(types_of("slice", {f32({b, 5})}, slice_attrs({1, 0}, {b, 5}, {1, 2})), "float32[b-1,3]");
  EXPECT_EQ(types_of("slice", {f32({5})}, slice_attrs({4}, {-1}, {-2})), "float32[3]");
  EXPECT_EQ(types_of("slice", {f32({5})}, slice_attrs({3}, {2}, {1})), "float32[0]");
  EXPECT_EQ(error_of("slice", {f32({5})}, slice_attrs({1}, {6}, {1})),
            "slice: start 1 and limit 6 are out of range for axis 0 of [5] with size 5");
  EXPECT_EQ(error_of("slice", {f32({5})}, slice_attrs({0}, {5}, {0})), "slice: the step of axis 0 is 0");
  EXPECT_EQ(error_of("slice", {f32({5})}, slice_attrs({0, 0}, {5}, {1})), "slice: start [0,0] has 2 entries, 1 are needed");
  EXPECT_EQ(types_of("dynamic_slice", {f32({b, 5}), i32({2})}, {{"sizes", Dims{b, 2}}}), "float32[b,2]");
  EXPECT_EQ(error_of("dynamic_slice", {f32({4, 5}), i32({2})}, {{"sizes", Dims{4, 6}}}),
            "dynamic_slice: a box [4,6] does not fit into [4,5]: axis 1 (6 > 5)");
  EXPECT_EQ(error_of("dynamic_update_slice", {f32({4, 5}), f32({2}), i32({2})}),
            "dynamic_update_slice: the update [2] must have as many axes as [4,5] (1 != 2)");
  EXPECT_EQ(error_of("dynamic_slice", {f32({4, 5}), i32({1})}, {{"sizes", Dims{1, 1}}}),
            "dynamic_slice: starts must be a vector with one entry an axis, [2], got [1]");
}

// --- order and index ---
TEST(OpsShapes, OrderAndIndex) {
  EXPECT_EQ(types_of("top_k", {f32({b, 9})}, {{"k", 3}}), "float32[b,3] int32[b,3]");
  EXPECT_EQ(error_of("top_k", {f32({2, 3})}, {{"k", 4}}), "top_k: k is 4, the last axis of [2,3] has 3 elements");
  EXPECT_EQ(types_of("unique", {f32({b, 2})}), "float32[b*2] int32[b,2] int32[b*2] int32[]");
  EXPECT_EQ(types_of("nonzero", {f32({b, 2})}), "int32[b*2,2] int32[]");
  EXPECT_EQ(error_of("searchsorted", {f32({2, 3}), f32({4})}),
            "searchsorted: all axes but the last must be equal, sorted [2,3], values [4]");
  EXPECT_EQ(types_of("bincount", {i32({b, 7})}, {{"length", 4}}), "int32[b,4]");
  EXPECT_EQ(types_of("take", {f32({9, 4}), i32({b, 2})}), "float32[b,2,4]");
  EXPECT_EQ(types_of("take", {f32({b, 9, 4}), i32({})}, {{"axis", 1}}), "float32[b,4]");
  EXPECT_EQ(types_of("take_along_axis", {f32({b, 9}), i32({b, 2})}), "float32[b,2]");
  EXPECT_EQ(error_of("take_along_axis", {f32({2, 9}), i32({3, 2})}), "take_along_axis: [2,9] and indices [3,2] differ on axis 0 (2 != 3)");
  EXPECT_EQ(types_of("gather_nd", {f32({b, 9, 4}), i32({5, 2})}), "float32[5,4]");
  EXPECT_EQ(error_of("gather_nd", {f32({3}), i32({5, 2})}), "gather_nd: the indices [5,2] address 2 axes, [3] has 1");
  EXPECT_EQ(types_of("scatter", {f32({9, 4}), i32({b, 1}), f32({b, 4})}), "float32[9,4]");
  EXPECT_EQ(error_of("scatter", {f32({9, 4}), i32({2, 1}), f32({2, 5})}),
            "scatter: for x [9,4] and indices [2,1] the updates must be [2,4], got [2,5]");
  EXPECT_EQ(error_of("scatter", {f32({9}), i32({2, 1}), f32({2})}, {{"mode", "div"}}),
            "scatter: unknown mode 'div'\n  hint: set, add, max, min or mul");
  EXPECT_EQ(types_of("one_hot", {i32({b, 2})}, {{"classes", 5}, {"axis", 1}}), "float32[b,5,2]");
  EXPECT_EQ(types_of("segment_sum", {f32({b, 4}), i32({b})}, {{"segments", 3}}), "float32[3,4]");
}

TEST(OpsShapes, NoIndexIsUsedUnchecked) {
  const Array x = counted({5, 3}), at = Array::of(DType::I32, {2, 3}, {0, 1, 2, -5, 4, 7});
  EXPECT_EQ(run_error("take", {x, at}), "take: index 7 is out of range for axis 0 with size 5 (at position [1,2])");
  EXPECT_EQ(run_error("take", {x, Array::of(DType::I64, {}, {-4})}, {{"axis", 1}}),
            "take: index -4 is out of range for axis 1 with size 3 (at position [])");
  EXPECT_EQ(run_error("gather_nd", {x, Array::of(DType::I32, {2, 2}, {0, 1, 4, 3})}),
            "gather_nd: index 3 is out of range for axis 1 with size 3 (at position [1,1])");
  EXPECT_EQ(run_error("take_along_axis", {x, Array::of(DType::I32, {5, 1}, {0, 1, 2, 3, 0})}),
            "take_along_axis: index 3 is out of range for axis 1 with size 3 (at position [3,0])");
  EXPECT_EQ(run_error("scatter", {x, Array::of(DType::I32, {2, 1}, {0, 5}), counted({2, 3})}),
            "scatter: index 5 is out of range for axis 0 with size 5 (at position [1])");
  EXPECT_EQ(run_error("put_along_axis", {x, Array::of(DType::I32, {5, 1}, {0, 1, 2, -4, 0}), counted({5, 1})}),
            "put_along_axis: index -4 is out of range for axis 1 with size 3 (at position [3,0])");
  EXPECT_EQ(run_error("take", {counted({0, 3}), Array::of(DType::I32, {1}, {0})}),
            "take: index 0 is out of range for axis 0 with size 0 (at position [0])");
  EXPECT_EQ(run_error("bincount", {Array::of(DType::I32, {2}, {0, -1})}, {{"length", 2}}),
            "bincount: element 1 is -1, elements must not be negative");
  EXPECT_EQ(run_error("take", {x, Array::of(DType::I32, {2}, {4, -5})}), "no error");
}

TEST(OpsShapes, OfRepeatedIndicesTheLastOneSets) {
  const Array x = counted({3}), at = Array::of(DType::I32, {4, 1}, {1, 0, 1, 1}), updates = Array::of(DType::F32, {4}, {10, 20, 30, 40});
  EXPECT_EQ(run("scatter", {x, at, updates})[0].values(), (std::vector<double>{20, 40, x.at(2)}));
}

// 2048 + 1 is 2048 in float16, so a sum that rounds each time never leaves it.
TEST(OpsShapes, Float16SumsRoundOnce) {
  const int64_t n = 2060;
  const Array ones = Array::of(DType::F16, {n}, std::vector<double>(n, 1.0)), zero = Array::of(DType::F16, {1}, {0});
  const Array at = Array::of(DType::I32, {n, 1}, std::vector<double>(n, 0.0));
  EXPECT_EQ(run("sum", {ones})[0].at(0), n);
  EXPECT_EQ(run("scatter", {zero, at, ones}, {{"mode", "add"}})[0].at(0), n);
  EXPECT_EQ(run("cumsum", {ones})[0].at(n - 1), n);
  EXPECT_EQ(run("mean", {ones})[0].at(0), 1);
}

TEST(OpsShapes, AThousandOperandsAreJoinedInGroups) {
  Builder builder(ops::table());
  std::vector<Expr> parts;
  std::vector<Array> in;
  for (int k = 0; k < 1000; ++k) {
    parts.emplace_back(builder, builder.input(f32({k % 3, 2})));
    in.push_back(counted({k % 3, 2}));
  }
  const OpDef& row = ops::table().at("concatenate");
  std::vector<TensorType> types;
  for (const Expr& p : parts) types.push_back(p.type());
  const std::vector<Expr> out = row.decompose(builder, OpCall{row, types, complete_attrs(row, {})}, parts);
  EXPECT_LT(builder.graph().nodes.size(), 1150u);
  const Array joined = test::evaluate(ops::table(), builder.finish(values(out)), in)[0];
  std::vector<double> expected;
  for (const Array& a : in)
    for (double v : a.values()) expected.push_back(v);
  EXPECT_EQ(joined.values(), expected);
}

TEST(OpsShapes, GradientOfMulIsRefusedByName) {
  Builder builder(ops::table());
  const Expr x(builder, builder.input(f32({3}))), at(builder, builder.input(i32({2, 1}))), u(builder, builder.input(f32({2})));
  const Expr y = x.op("scatter", {at, u}, {{"mode", "mul"}});
  const Node node = builder.graph().node(y.value());
  GradCall call{builder, node, {x, at, u}, {y}, {y}, {true, false, true}};
  try {
    node.op->vjp(call);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(std::string(e.what()).substr(0, 37), "scatter: mode 'mul' has no gradient\n ");
  }
  call.needed = {true, false, false};
  EXPECT_TRUE(node.op->vjp(call)[0]) << "x itself has one";
}

// --- symbols when it runs ---
// A graph made with a symbol computes the same as one made with the number, for every number, also 0 and 1.
struct SymbolCase {
  std::string_view op;
  std::vector<Dims> in;
  Attrs attrs;
  std::vector<int64_t> sizes = {0, 1, 5};
};

// Every decomposition made while sizes are still symbols.
Graph expanded(Graph g) {
  while (std::ranges::any_of(g.nodes, [](const Node& n) { return n.op->decompose != nullptr; })) {
    Builder to(ops::table());
    std::map<Value, Value> made;
    for (size_t i = 0; i < g.nodes.size(); ++i) {
      const Node& n = g.nodes[i];
      std::vector<Value> in;
      std::vector<TensorType> types;
      for (Value v : n.inputs) {
        in.push_back(made.at(v));
        types.push_back(g.type(v));
      }
      const std::vector<Value> out =
          n.op->decompose ? values(n.op->decompose(to, OpCall{*n.op, types, n.attrs}, exprs(to, in))) : to.node(*n.op, in, n.attrs);
      for (size_t k = 0; k < out.size(); ++k) {
        made[{static_cast<int32_t>(i), static_cast<int32_t>(k)}] = out[k];
        EXPECT_EQ(to.type(out[k]).str(), n.types[k].str()) << n.op->name;
      }
    }
    std::vector<Value> outputs;
    for (Value v : g.outputs) outputs.push_back(made.at(v));
    g = to.finish(outputs);
  }
  return g;
}

Attrs with_size(const Attrs& attrs, int64_t size) { return test::bound_attrs(attrs, {{"b", size}}); }

TEST(OpsShapes, SymbolsAndNumbersComputeTheSame) {
  const SymbolCase cases[] = {
      {"sum", {{b, 3}}, {{"axis", Ints{0}}}},
      {"mean", {{b, 3}}, {}, {1, 5}},
      {"var", {{3, b}}, {{"axis", Ints{1}}, {"ddof", 1}}, {2, 5}},
      {"logsumexp", {{b, 3}}, {{"axis", Ints{0}}}, {1, 5}},
      {"argmax", {{b, 3}}, {{"axis", 0}}, {1, 5}},
      {"median", {{b, 3}}, {{"axis", Ints{0}}}, {1, 5}},
      {"nanmedian", {{b, 3}}, {}, {1, 5}},
      {"cumsum", {{b, 3}}, {{"axis", 0}, {"reverse", true}, {"exclusive", true}}},
      {"sort", {{3, b}}, {}},
      {"unique", {{b, 2}}, {}},
      {"reshape", {{b, 4, 6}}, {{"shape", Dims{b * Dim(2), 12}}}},
      {"reshape", {{b * Dim(2), 6}}, {{"shape", Dims{3, b, 4}}}},
      {"transpose", {{b, 3}}, {}},
      {"flip", {{b, 3}}, {}},
      {"roll", {{b, 3}}, {{"shift", Ints{-7}}, {"axis", Ints{0}}}},
      {"tile", {{b, 2}}, {{"repeats", Ints{3, 1}}}},
      {"pad", {{b, 2}, {}}, {{"low", Dims{b, 1}}, {"high", Dims{2, 0}}}},
      {"pad_mode", {{b, 2}}, {{"low", Ints{3, 0}}, {"high", Ints{4, 0}}, {"mode", "reflect"}}, {1, 2, 5}},
      {"pad_mode", {{b}}, {{"low", Ints{3}}, {"high", Ints{4}}, {"mode", "symmetric"}}, {1, 2, 5}},
      {"concatenate", {{b, 2}, {1, 2}, {b, 2}}, {}},
      {"split", {{b + Dim(2)}}, {{"sizes", Dims{1, b, 1}}}},
      {"diagonal", {{b, 3}}, {{"offset", 1}}},
      {"tril", {{b, b}}, {}},
      {"slice", {{b, 4}}, slice_attrs({0, 3}, {b, -1}, {2, -2})},
      {"slice", {{b}}, slice_attrs({b - Dim(1)}, {-1}, {-1}), {1, 5}},
      {"place", {{b}}, {{"shape", Dims{b * Dim(2)}}, {"start", Dims{0}}, {"step", Ints{2}}}, {1, 5}},
      {"iota", {}, {{"shape", Dims{2, b}}, {"axis", 1}}},
      {"extent", {}, {{"dims", Dims{b, 3}}}},
      {"eye", {}, {{"rows", Dims{b}}, {"k", 1}}},
  };
  for (const SymbolCase& c : cases) {
    for (int64_t size : c.sizes) {
      std::vector<TensorType> types;
      std::vector<Array> in;
      for (const Dims& dims : c.in) {
        types.push_back(f32(dims));
        in.push_back(counted(bind(dims, {{"b", size}})));
      }
      // The symbol must be bound by an input, so one that nothing reads is added where the op has none of its own.
      Builder builder(ops::table());
      std::vector<Value> operands;
      for (const TensorType& t : types) operands.push_back(builder.input(t));
      builder.input(f32({b}));
      in.push_back(counted({size}));
      const std::vector<Array> symbolic =
          test::evaluate(ops::table(), expanded(builder.finish(builder.nodes(c.op, operands, c.attrs))), in);
      in.pop_back();
      const std::vector<Array> plain = run(c.op, in, with_size(c.attrs, size));
      ASSERT_EQ(symbolic.size(), plain.size());
      for (size_t k = 0; k < plain.size(); ++k) {
        EXPECT_EQ(symbolic[k].shape, plain[k].shape) << c.op << " b=" << size;
        EXPECT_EQ(symbolic[k].values(), plain[k].values()) << c.op << " b=" << size;
      }
    }
  }
}

// What a graph promised of a symbol may turn out wrong; then zeros are read, not somebody else's memory.
TEST(OpsShapes, SmallSymbolsNeverReadOutside) {
  const Array x = counted({2});
  EXPECT_EQ(run("slice", {f32({b})}, {x}, slice_attrs({0}, {4}, {1}))[0].values(), (std::vector<double>{x.at(0), x.at(1), 0, 0}));
  const Array start = Array::of(DType::I32, {1}, {1});
  EXPECT_EQ(run("dynamic_slice", {f32({b}), i32({1})}, {x, start}, {{"sizes", Dims{3}}})[0].values(),
            (std::vector<double>{x.at(0), x.at(1), 0}));
  EXPECT_EQ(run("take_clipped", {f32({b}), i32({1})}, {counted({0}), start})[0].values(), (std::vector<double>{0}));
}

}  // namespace
}  // namespace tandem
