// Signatures, the table of rows, and what follows from a row.
#include "ir/op.hpp"

#include <gtest/gtest.h>

#include "ir_rows.hpp"

namespace tandem::ir {
namespace {

using test::f32;
using test::sym;

std::vector<TensorType> infer_of(std::string_view op, std::vector<TensorType> in, const Attrs& attrs = {}) {
  const OpDef& row = test::table().at(op);
  return infer(row, in, complete_attrs(row, attrs));
}
std::string infer_error(std::string_view op, std::vector<TensorType> in, const Attrs& attrs = {}) {
  return error_of<UserError>([&] { infer_of(op, in, attrs); });
}
TensorType of(DType t, Dims dims = {}) { return {t, std::move(dims)}; }

// --- signatures ------------------------------------------------------------------------------------------------------------

TEST(Signature, OperandsAttributesResults) {
  const Signature s = parse_signature(
      " ( x : number, y: index ?; axis: int=-1, scale: float = 1e-3, keepdims: bool = false, perm: ints? = none, sizes: ints = [1,2], "
      "shape: shape, mode: string = 'it\\'s', dtype: dtype = bfloat16, weights: floats = [0.5], f: graphs, v: literal? , n: int?) -> same, "
      "int32");
  ASSERT_EQ(s.operands.size(), 2u);
  EXPECT_EQ(s.operands[0].name, "x");
  EXPECT_EQ(s.operands[0].type, OperandClass::Number);
  EXPECT_FALSE(s.operands[0].optional);
  EXPECT_EQ(s.operands[1].type, OperandClass::Index);
  EXPECT_TRUE(s.operands[1].optional);
  ASSERT_EQ(s.attributes.size(), 12u);
  EXPECT_EQ(str(s.attributes[0].default_value), "-1");
  EXPECT_EQ(str(s.attributes[1].default_value), "0.001");
  EXPECT_EQ(str(s.attributes[2].default_value), "false");
  EXPECT_TRUE(s.attributes[3].optional);
  EXPECT_FALSE(s.attributes[3].required);
  EXPECT_EQ(str(s.attributes[4].default_value), "[1,2]");
  EXPECT_TRUE(s.attributes[5].required);
  EXPECT_EQ(s.attributes[5].kind, AttrKind::Shape);
  EXPECT_EQ(std::get<std::string>(s.attributes[6].default_value), "it's");
  EXPECT_EQ(str(s.attributes[7].default_value), "bfloat16");
  EXPECT_EQ(str(s.attributes[8].default_value), "[0.5]");
  EXPECT_TRUE(s.attributes[9].required);
  EXPECT_FALSE(s.attributes[11].required);
  EXPECT_EQ(s.results, (std::vector<std::string>{"same", "int32"}));
}

TEST(Signature, Empty) {
  EXPECT_TRUE(parse_signature("() -> custom").operands.empty());
  EXPECT_TRUE(parse_signature("(; a: int) -> custom").operands.empty());
  EXPECT_TRUE(parse_signature("(xs: own...) -> custom").operands[0].variadic);
}

TEST(Signature, ErrorsSayWhere) {
  const auto error = [](std::string_view text) { return error_of<InternalError>([&] { parse_signature(text); }); };
  EXPECT_EQ(error("(x: nmber) -> same"),
            "internal error (this is a bug in tandem): signature \"(x: nmber) -> same\": a known operand class expected at column 4");
  for (const char* text :
       {"", "(", "x: any", "(x any) -> same", "(x: any)", "(x: any) ->", "(x: any) -> some", "(x: any) -> same more", "(x: any,) -> same",
        "(x: any..., y: any) -> same", "(x: any?, y: any) -> same", "(x: any; x: int) -> same", "(x: any; a: int = x) -> same",
        "(x: any; a: int = none) -> same", "(x: any;) -> same", "(x: any; a: what) -> same", "(; a: string = 'open) -> same",
        "(; a: int = 99999999999999999999) -> same", "(1x: any) -> same"})
    EXPECT_NE(error(text).find("at column "), std::string::npos) << text << ": " << error(text);
}

TEST(Signature, ClassesAccept) {
  EXPECT_TRUE(accepts(OperandClass::Any, DType::Bool));
  EXPECT_TRUE(accepts(OperandClass::Own, DType::F64));
  EXPECT_FALSE(accepts(OperandClass::Number, DType::Bool));
  EXPECT_TRUE(accepts(OperandClass::Number, DType::U8));
  EXPECT_FALSE(accepts(OperandClass::Float, DType::I32));
  EXPECT_TRUE(accepts(OperandClass::Float, DType::BF16));
  EXPECT_FALSE(accepts(OperandClass::Int, DType::Bool));
  EXPECT_TRUE(accepts(OperandClass::Boolean, DType::Bool));
  EXPECT_TRUE(accepts(OperandClass::Boolean, DType::I8));
  EXPECT_FALSE(accepts(OperandClass::Boolean, DType::F32));
  EXPECT_FALSE(accepts(OperandClass::Bool, DType::U8));
  EXPECT_TRUE(accepts(OperandClass::Index, DType::I64));
  EXPECT_FALSE(accepts(OperandClass::Index, DType::U32));
  EXPECT_TRUE(accepts(OperandClass::Key, DType::U32));
  EXPECT_FALSE(accepts(OperandClass::Key, DType::I32));
}

// --- table -----------------------------------------------------------------------------------------------------------------

TEST(OpTable, FindsAndSuggests) {
  const OpTable& t = test::table();
  EXPECT_EQ(t.at("add").name, "add");
  EXPECT_EQ(t.find("nothing"), nullptr);
  EXPECT_EQ(error_of<UserError>([&] { t.at("ad"); }), "no op is called 'ad'\n  hint: did you mean 'add'?");
  EXPECT_EQ(error_of<UserError>([&] { t.at("reshap"); }), "no op is called 'reshap'\n  hint: did you mean 'reshape'?");
  EXPECT_EQ(error_of<UserError>([&] { t.at("completely_else"); }), "no op is called 'completely_else'");
  EXPECT_EQ(t.all().at(2)->name, "add");
  EXPECT_EQ(t.at("add").id, 2);
}

TEST(OpTable, RefusesIncompleteRows) {
  OpTable t;
  const auto error = [&](OpDef row) { return error_of<UserError>([&] { t.add(std::move(row)); }); };
  const Body unary = [](Scalar x) { return x; };
  EXPECT_EQ(error({.name = "f", .sig = "(x: any) -> same", .doc = "d"}),
            "op 'f': a row has exactly one of body, loops, decompose, evaluate and the trait kStructural, this one has 0");
  EXPECT_EQ(error({.name = "f", .sig = "(x: any) -> same", .doc = "d", .body = unary, .evaluate = test::no_evaluate}),
            "op 'f': a row has exactly one of body, loops, decompose, evaluate and the trait kStructural, this one has 2");
  EXPECT_EQ(error({.name = "f", .sig = "(x: any) -> same", .body = unary}), "op 'f': the row has no doc");
  EXPECT_EQ(error({.name = "f", .sig = "(x: any) -> custom", .doc = "d", .body = unary}),
            "op 'f': the row has no infer, and its signature does not say its result");
  EXPECT_EQ(error({.name = "f", .sig = "(x: any) -> same", .doc = "d", .loops = test::no_loops}),
            "op 'f': the row has no infer, and its signature does not say its result");
  EXPECT_EQ(error({.name = "f", .sig = "(x: any, y: any) -> same", .doc = "d", .body = unary}),
            "op 'f': the body takes 1 arguments, the signature has 2 operands");
  EXPECT_EQ(error({.name = "f", .sig = "(x: any?) -> same", .doc = "d", .body = unary}),
            "op 'f': a body cannot have the optional or repeated operand 'x'");
  EXPECT_EQ(error({.name = "f", .sig = "(x: any) -> same, same", .doc = "d", .body = unary}),
            "op 'f': a body gives one result, the signature has 2");
  EXPECT_EQ(error({.name = "f g", .sig = "(x: any) -> same", .doc = "d", .body = unary}),
            "op 'f g': a name is made of letters, digits and _");
  t.add({.name = "f", .sig = "(x: any) -> same", .doc = "d", .body = unary});
  EXPECT_EQ(error({.name = "f", .sig = "(x: any) -> same", .doc = "d", .body = unary}), "op 'f' is there already");
}

// --- attributes ------------------------------------------------------------------------------------------------------------

TEST(CompleteAttrs, DefaultsInOrder) {
  const OpDef& sum = test::table().at("sum");
  EXPECT_EQ(complete_attrs(sum, {}), (Attrs{{"axis", Attr{}}, {"keepdims", false}}));
  EXPECT_EQ(complete_attrs(sum, {{"keepdims", true}, {"axis", Ints{1}}}), (Attrs{{"axis", Ints{1}}, {"keepdims", true}}));
}

TEST(CompleteAttrs, ConvertsWhatMeansTheSame) {
  const OpTable& t = test::table();
  EXPECT_EQ(complete_attrs(t.at("sum"), {{"axis", 1}}).get<Ints>("axis"), Ints{1});
  EXPECT_EQ(complete_attrs(t.at("sum"), {{"axis", Dims{1, 0}}}).get<Ints>("axis"), (Ints{1, 0}));
  EXPECT_EQ(complete_attrs(t.at("reshape"), {{"shape", Ints{2, 3}}}).get<Dims>("shape"), (Dims{2, 3}));
  EXPECT_EQ(complete_attrs(t.at("scale"), {{"by", 3}}).get<double>("by"), 3.0);
  EXPECT_EQ(complete_attrs(t.at("min_max"), {{"weights", Ints{1, 2}}}).get<Floats>("weights"), (Floats{1, 2}));
}

TEST(CompleteAttrs, Errors) {
  const auto error = [](std::string_view op, Attrs attrs) {
    return error_of<UserError>([&] { complete_attrs(test::table().at(op), attrs); });
  };
  EXPECT_EQ(error("sum", {{"axes", 1}}), "sum: no attribute is called 'axes', there are axis, keepdims\n  hint: did you mean 'axis'?");
  EXPECT_EQ(error("add", {{"axis", 1}}), "add: takes no attributes, got 'axis'");
  EXPECT_EQ(error("sum", {{"keepdims", 1}}), "sum: attribute 'keepdims' must be of kind bool, got 1");
  EXPECT_EQ(error("sum", {{"axis", Dims{sym("b")}}}), "sum: attribute 'axis' must be of kind ints, got [b]");
  EXPECT_EQ(error("sum", {{"keepdims", Attr{}}}), "sum: attribute 'keepdims' must be of kind bool, got none");
  EXPECT_EQ(error("reshape", {}), "reshape: attribute 'shape' (shape) is missing");
  EXPECT_EQ(error("call", {{"functions", Graphs{nullptr}}}), "call: attribute 'functions' must be of kind graphs, got [graph]");
  EXPECT_EQ(error("constant", {{"value", Literal{}}}), "constant: attribute 'value' must be of kind literal, got float32[]{}");
}

// --- inference -------------------------------------------------------------------------------------------------------------

TEST(Infer, BroadcastsAndGivesTheSignaturesType) {
  EXPECT_EQ(infer_of("add", {f32({2, 1}), f32({3})}), std::vector{f32({2, 3})});
  EXPECT_EQ(infer_of("less", {f32({sym("b"), 3}), f32({})}), std::vector{of(DType::Bool, {sym("b"), 3})});
  EXPECT_EQ(infer_of("where", {of(DType::Bool, {2, 1}), of(DType::I8, {3}), of(DType::I8)}), std::vector{of(DType::I8, {2, 3})});
  EXPECT_EQ(infer_of("min_max", {of(DType::I16, {3})}), (std::vector{of(DType::I16), of(DType::I16), of(DType::I32)}));
  EXPECT_EQ(infer_of("bias", {f32({3})}), std::vector{f32({3})});
  EXPECT_EQ(infer_of("bias", {f32({3}), f32({3})}), std::vector{f32({3})});
  EXPECT_EQ(infer_of("stack", {f32({3}), f32({3})}), std::vector{f32({2, 3})});
  EXPECT_EQ(infer_of("reshape", {of(DType::Bool, {sym("b"), 4})}, {{"shape", Dims{sym("b") * 4}}}),
            std::vector{of(DType::Bool, {sym("b") * 4})});
}

TEST(Infer, Errors) {
  EXPECT_EQ(infer_error("add", {f32({2})}), "add: takes 2 operands (x, y), got 1 (float32[2])");
  EXPECT_EQ(infer_error("negative", {}), "negative: takes 1 operand (x), got 0");
  EXPECT_EQ(infer_error("bias", {}), "bias: takes 1 to 2 operands (x, b?), got 0");
  EXPECT_EQ(infer_error("stack", {}), "stack: needs an operand");
  EXPECT_EQ(infer_error("exp", {of(DType::I32, {2})}), "exp: operand 'x' must be a floating type, got int32[2]");
  EXPECT_EQ(infer_error("add", {of(DType::Bool), of(DType::Bool)}), "add: operand 'x' must be a number, not bool, got bool[]");
  EXPECT_EQ(infer_error("where", {f32({}), f32({}), f32({})}), "where: operand 'cond' must be bool, got float32[]");
  EXPECT_EQ(infer_error("take", {f32({}), of(DType::U8)}), "take: operand 'indices' must be int32 or int64, got uint8[]");
  EXPECT_EQ(infer_error("draw", {of(DType::I32)}), "draw: operand 'key' must be uint32, got int32[]");
  EXPECT_EQ(infer_error("mask", {f32({}), f32({})}), "mask: operand 'x' must be bool or an integer type, got float32[]");
  EXPECT_EQ(infer_error("shift", {f32({})}), "shift: operand 'x' must be an integer type, got float32[]");
  EXPECT_EQ(infer_error("add", {f32({2}), of(DType::F64, {3})}),
            "add: operands must have one element type, 'x' is float32[2], 'y' is float64[3]");
  EXPECT_EQ(infer_error("stack", {f32({2}), f32({2}), of(DType::I8)}),
            "stack: operands must have one element type, 'xs[0]' is float32[2], 'xs[2]' is int8[]");
  EXPECT_EQ(infer_error("add", {f32({2, 3}), f32({4})}),
            "add: x is float32[2,3], y is float32[4]: shapes [2,3] and [4] do not fit (3 != 4 at axis -1)");
  EXPECT_NE(infer_error("add", {f32({sym("b")}), f32({sym("c")})}).find("add: x is float32[b], y is float32[c]: "), std::string::npos);
  EXPECT_EQ(infer_error("sum", {f32({2})}, {{"axis", Ints{1}}}), "sum: axis 1 is out of range for rank 1 (-1 to 0)");
  EXPECT_EQ(infer_error("reshape", {f32({6})}, {{"shape", Ints{4}}}), "reshape: cannot make [4] of float32[6]");
}

TEST(Infer, ResultsThatNoTensorCanHave) {
  EXPECT_NE(infer_error("broadcast_to", {f32({})}, {{"shape", Dims(13, Dim(1))}}).find("13 dimensions, at most 12"), std::string::npos);
  EXPECT_NE(infer_error("broadcast_to", {f32({})}, {{"shape", Ints{sym("b").is_const(), -1}}}).find("negative extent -1"),
            std::string::npos);
  EXPECT_NE(infer_error("broadcast_to", {f32({})}, {{"shape", Ints{1LL << 40, 1LL << 40}}}).find("do not fit in 64 bits"),
            std::string::npos);
}

TEST(Infer, RowsAreHeldToTheirSignature) {
  OpTable t;
  const OpDef& liar = t.add({.name = "liar", .sig = "(x: any) -> bool", .doc = "d", .infer = test::infer_same, .loops = test::no_loops});
  EXPECT_THROW(infer(liar, std::vector{f32({})}, {}), InternalError);
  EXPECT_EQ(infer(liar, std::vector{of(DType::Bool)}, {}), std::vector{of(DType::Bool)});
}

TEST(OpCall, AxesAreNormalised) {
  const OpDef& sum = test::table().at("sum");
  const auto axes = [&](Attr value, int rank) {
    const Attrs attrs = complete_attrs(sum, {{"axis", value}});
    return OpCall{sum, {}, attrs}.axes("axis", rank);
  };
  EXPECT_EQ(axes(Attr{}, 3), (Ints{0, 1, 2}));
  EXPECT_EQ(axes(Ints{-1, 0}, 3), (Ints{0, 2}));
  EXPECT_EQ(axes(Ints{}, 3), Ints{});
  EXPECT_EQ(axes(Attr{}, 0), Ints{});
  EXPECT_EQ(error_of<UserError>([&] { axes(Ints{2, -1}, 3); }), "sum: axis 2 is there twice in axis = [2,-1]");
  EXPECT_THROW(axes(Ints{3}, 3), UserError);
  const OpDef& stack = test::table().at("stack");
  const Attrs attrs = complete_attrs(stack, {{"axis", -1}});
  EXPECT_EQ((OpCall{stack, {}, attrs}.axis("axis", 4)), 3);
}

// --- loops -----------------------------------------------------------------------------------------------------------------

std::string loops_text(std::string_view op, std::vector<TensorType> in, const Attrs& given = {}) {
  const OpDef& row = test::table().at(op);
  const Attrs attrs = complete_attrs(row, given);
  return str(loops_of(row, in, attrs, infer(row, in, attrs)));
}

TEST(LoopsOf, BroadcastAxesStayAtZero) {
  const OpDef& row = test::table().at("add");
  const std::vector<TensorType> in{f32({1, 3}), f32({sym("b"), 1})};
  const Loops l = loops_of(row, in, {}, infer(row, in, {}));
  EXPECT_EQ(l.extents, (Dims{sym("b"), 3}));
  EXPECT_FALSE(l.reduction);
  ASSERT_EQ(l.results.size(), 1u);
  const Scalar expected =
      load(0, DType::F32, {constant_int(DType::I64, 0), axis(1)}) + load(1, DType::F32, {axis(0), constant_int(DType::I64, 0)});
  EXPECT_EQ(str(l.results[0]), str(expected));
}

TEST(LoopsOf, AxesAlignAtTheRight) {
  const OpDef& row = test::table().at("where");
  const std::vector<TensorType> in{of(DType::Bool), f32({2, 1, 4}), f32({4})};
  const Loops l = loops_of(row, in, {}, infer(row, in, {}));
  const Scalar expected =
      select(load(0, DType::Bool, {}), load(1, DType::F32, {axis(0), axis(1), axis(2)}), load(2, DType::F32, {axis(2)}));
  EXPECT_EQ(str(l.results[0]), str(expected));
}

TEST(LoopsOf, BodiesSeeAttributes) {
  EXPECT_NE(loops_text("scale", {f32({2})}, {{"by", 3}}), loops_text("scale", {f32({2})}, {{"by", 4}}));
  EXPECT_THROW(loops_text("square", {f32({2})}), InternalError);
}

}  // namespace
}  // namespace tandem::ir
