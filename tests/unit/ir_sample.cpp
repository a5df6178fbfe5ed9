// Samples of rows: their text, their types and their values.
#include "ir/sample.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/half.hpp"
#include "ir_rows.hpp"

namespace tandem::ir {
namespace {

using Fill = SampleOperand::Fill;

const OpDef& row(std::string_view name) { return test::table().at(name); }

std::vector<Literal> values(std::string_view op, std::string_view text, DType t) {
  const Sample s = parse_sample(row(op), text);
  return sample_values(row(op), s, std::vector<DType>(s.operands.size(), t));
}
std::vector<double> numbers(const Literal& l) {
  std::vector<double> v;
  for (size_t i = 0; i < l.bytes->size(); i += size_of(l.dtype)) v.push_back(load_number(l.dtype, &(*l.bytes)[i]));
  return v;
}

TEST(Sample, Parses) {
  const Sample s = parse_sample(row("add"), "([2,3] in -2..2, [3]:int32 distinct) !grad");
  ASSERT_EQ(s.operands.size(), 2u);
  EXPECT_EQ(s.operands[0].shape, (Shape{2, 3}));
  EXPECT_TRUE(s.operands[0].has_range);
  EXPECT_EQ(s.operands[0].low, -2);
  EXPECT_EQ(s.operands[0].high, 2);
  EXPECT_FALSE(s.operands[0].has_dtype);
  EXPECT_EQ(s.operands[1].dtype, DType::I32);
  EXPECT_EQ(s.operands[1].fill, Fill::Distinct);
  EXPECT_FALSE(s.gradient);
  EXPECT_TRUE(s.numpy);
  EXPECT_EQ(s.text, "([2,3] in -2..2, [3]:int32 distinct) !grad");

  const Sample a = parse_sample(row("sum"), "([] in 0.5..1e3; axis=[0,-1], keepdims=true) !numpy!grad");
  EXPECT_EQ(a.operands[0].shape, Shape{});
  EXPECT_EQ(a.operands[0].high, 1000);
  EXPECT_EQ(a.attrs, (Attrs{{"axis", Ints{0, -1}}, {"keepdims", true}}));
  EXPECT_FALSE(a.gradient || a.numpy);
  EXPECT_EQ(parse_sample(row("sum"), "([0,3]; axis=1)").attrs, (Attrs{{"axis", Ints{1}}, {"keepdims", false}}));
  EXPECT_EQ(parse_sample(row("sum"), "([2]; axis=none)").attrs, (Attrs{{"axis", Attr{}}, {"keepdims", false}}));
  EXPECT_EQ(parse_sample(row("reshape"), "([4]; shape=[2,2])").attrs, (Attrs{{"shape", Dims{2, 2}}}));
  EXPECT_EQ(parse_sample(row("min_max"), "([4]; mode='b', weights=[0.5,1])").attrs, (Attrs{{"weights", Floats{0.5, 1}}, {"mode", "b"}}));
  EXPECT_EQ(parse_sample(row("stack"), "([4], [4], [4])").operands.size(), 3u);
  EXPECT_EQ(parse_sample(row("bias"), "([4])").operands.size(), 1u);
}

TEST(Sample, ExplicitValues) {
  const Sample s = parse_sample(row("add"), "({{1,2.5},{-3,4}}:float32, 7)");
  EXPECT_EQ(s.operands[0].shape, (Shape{2, 2}));
  EXPECT_EQ(s.operands[0].values, (std::vector<double>{1, 2.5, -3, 4}));
  EXPECT_EQ(s.operands[1].shape, Shape{});
  EXPECT_EQ(parse_sample(row("negative"), "({})").operands[0].shape, Shape{0});
  EXPECT_EQ(numbers(values("negative", "({1,-2,inf})", DType::F16)[0]), (std::vector<double>{1, -2, INFINITY}));
  EXPECT_EQ(numbers(values("where", "({true,false},{1,0},{0,1})", DType::Bool)[0]), (std::vector<double>{1, 0}));
}

TEST(Sample, ErrorsSayWhere) {
  const auto error = [](std::string_view op, std::string_view text) {
    return error_of<InternalError>([&] { parse_sample(row(op), text); });
  };
  EXPECT_EQ(error("negative", "([2] out)"),
            "internal error (this is a bug in tandem): sample \"([2] out)\" of negative: ')' expected, found 'o' at column 6");
  EXPECT_NE(error("reshape", "([2])").find("attribute 'shape' (shape) is missing"), std::string::npos);
  for (const char* text :
       {"", "(", "([2]", "([2],)", "([-1])", "([2] in 2..1)", "([2] in 2)", "([2] in a..b)", "([2,3] posdef)", "([2] symmetric)",
        "([2]) !other", "([2]) more", "([2]; axis=1)", "([2], [2])", "({1,{2}})", "({1,2)", "([2]:float9)", "([99999999999999999999])"})
    EXPECT_NE(error("negative", text).find("at column "), std::string::npos) << text << ": " << error("negative", text);
}

std::vector<std::vector<DType>> types(std::string_view op, std::string_view text) {
  return sample_types(row(op), parse_sample(row(op), text));
}

TEST(SampleTypes, FollowTheSignature) {
  using T = std::vector<std::vector<DType>>;
  EXPECT_EQ(types("exp", "([2])"), (T{{DType::F16}, {DType::BF16}, {DType::F32}, {DType::F64}}));
  EXPECT_EQ(types("add", "([2],[2])").size(), 12u);
  for (const auto& t : types("add", "([2],[2])")) EXPECT_EQ(t[0], t[1]);
  EXPECT_EQ(types("add", "([2]:float64,[2])"), (T{{DType::F64, DType::F64}}));
  EXPECT_EQ(types("where", "([2],[2],[2])").size(), 13u);
  EXPECT_EQ(types("where", "([2],[2]:int8,[2])"), (T{{DType::Bool, DType::I8, DType::I8}}));
  EXPECT_EQ(types("take", "([2],{0,1})").size(), 26u);
  EXPECT_EQ(types("take", "([2]:float32,{0,1})"), (T{{DType::F32, DType::I32}, {DType::F32, DType::I64}}));
  EXPECT_EQ(types("draw", "([2])"), (T{{DType::U32}}));
  EXPECT_EQ(types("constant", "(; value=float32[]{1})"), (T{{}}));
  EXPECT_EQ(types("shift", "([2])").size(), 8u);
  EXPECT_EQ(types("mask", "([2],[2])").size(), 9u);
}

TEST(SampleTypes, OnlyTypesThatCanHoldTheValues) {
  EXPECT_EQ(types("negative", "({-1,2})").size(), 8u);  // no unsigned
  EXPECT_EQ(types("negative", "({0.5})").size(), 4u);   // floats only
  EXPECT_EQ(types("negative", "({300})").size(), 10u);  // no 8 bits
  EXPECT_EQ(types("negative", "([2] in 0.25..0.75)").size(), 4u);
  EXPECT_EQ(types("negative", "([300] distinct)").size(), 9u);
  EXPECT_EQ(types("negative", "([3,3] posdef)").size(), 4u);
  EXPECT_THROW(types("shift", "({0.5})"), InternalError);
  EXPECT_THROW(types("add", "([2]:int8,[2]:int16)"), InternalError);
}

TEST(SampleValues, StayInRange) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    const double low = t == DType::Bool ? 0 : is_float(t) ? -2 : is_signed(t) ? -5 : 0;
    const double high = t == DType::Bool ? 1 : is_float(t) ? 2 : is_signed(t) ? 5 : 10;
    std::set<double> seen;
    for (double v : numbers(values("negative", "([200])", t)[0])) {
      EXPECT_GE(v, low);
      EXPECT_LE(v, high);
      seen.insert(v);
    }
    EXPECT_GE(seen.size(), t == DType::Bool ? 2u : 11u) << name(t);
  }
  for (double v : numbers(values("negative", "([100] in 3..4)", DType::F32)[0])) EXPECT_TRUE(v >= 3 && v <= 4);
  for (double v : numbers(values("negative", "([100] in -3..4)", DType::U8)[0])) EXPECT_TRUE(v >= 0 && v <= 4);
  EXPECT_TRUE(numbers(values("negative", "([0,3])", DType::F32)[0]).empty());
}

TEST(SampleValues, AreTheSameEverywhere) {
  EXPECT_TRUE(equal(values("add", "([5],[5])", DType::F64)[0], values("add", "([5],[5])", DType::F64)[0]));
  EXPECT_FALSE(equal(values("add", "([5],[5])", DType::F64)[0], values("add", "([5],[5])", DType::F64)[1]));
  EXPECT_FALSE(equal(values("add", "([5],[5])", DType::F64)[0], values("subtract", "([5],[5])", DType::F64)[0]));
  EXPECT_FALSE(equal(values("add", "([5],[5])", DType::F64)[0], values("add", "([5], [5])", DType::F64)[0]));
  // These numbers are stored elsewhere (NumPy's results for them), so they may not change.
  EXPECT_EQ(str(values("add", "([2],[2])", DType::F32)[0]), "float32[2]{-1.8777655,1.9379853}");
  EXPECT_EQ(str(values("add", "([6],[6])", DType::I32)[1]), "int32[6]{-4,2,2,-3,-4,1}");
}

TEST(SampleValues, Special) {
  const std::vector<double> v = numbers(values("negative", "([100] special)", DType::F32)[0]);
  const auto has = [&](auto f) { return std::ranges::any_of(v, f); };
  EXPECT_TRUE(has([](double x) { return std::isnan(x); }));
  EXPECT_TRUE(has([](double x) { return x == INFINITY; }));
  EXPECT_TRUE(has([](double x) { return x == -INFINITY; }));
  EXPECT_TRUE(has([](double x) { return x == 0 && std::signbit(x); }));
  EXPECT_TRUE(has([](double x) { return x == std::numeric_limits<float>::max(); }));
  EXPECT_TRUE(has([](double x) { return x == std::numeric_limits<float>::lowest(); }));
  EXPECT_TRUE(has([](double x) { return x == std::numeric_limits<float>::min(); }));
  EXPECT_TRUE(has([](double x) { return x == std::numeric_limits<float>::denorm_min(); }));
  const auto ints = values("negative", "([100] special)", DType::I64)[0];
  const auto has_int = [&](int64_t x) { return std::ranges::count(ints.values<int64_t>(), x) > 0; };
  EXPECT_TRUE(has_int(INT64_MAX) && has_int(INT64_MIN) && has_int(-1) && has_int(0) && has_int(1));
  const Literal half = values("negative", "([100] special)", DType::F16)[0];
  const auto halves = half.values<uint16_t>();
  const auto has_bits = [&](uint16_t x) { return std::ranges::count(halves, x) > 0; };
  EXPECT_TRUE(has_bits(0x7bff) && has_bits(0xfbff) && has_bits(0x0400) && has_bits(0x0001) && has_bits(0x7c00) && has_bits(0x8000));
}

TEST(SampleValues, Distinct) {
  for (DType t : {DType::I8, DType::U8, DType::F16, DType::BF16, DType::F32, DType::F64, DType::I64}) {
    const std::vector<double> v = numbers(values("negative", "([10,25] distinct)", t)[0]);
    EXPECT_EQ(std::set<double>(v.begin(), v.end()).size(), 250u) << name(t);
    EXPECT_FALSE(std::ranges::is_sorted(v));
  }
}

TEST(SampleValues, Matrices) {
  for (DType t : {DType::F16, DType::F32, DType::F64}) {
    for (const char* text : {"([2,4,4] posdef)", "([2,4,4] symmetric)"}) {
      const std::vector<double> v = numbers(values("negative", text, t)[0]);
      for (size_t m = 0; m < 2; ++m)
        for (size_t i = 0; i < 4; ++i)
          for (size_t j = 0; j < 4; ++j) EXPECT_EQ(v[m * 16 + i * 4 + j], v[m * 16 + j * 4 + i]);
    }
    const std::vector<double> a = numbers(values("negative", "([4,4] posdef)", t)[0]);
    for (size_t i = 0; i < 4; ++i) EXPECT_GE(a[i * 4 + i], 4);
  }
  EXPECT_TRUE(numbers(values("negative", "([3,0,0] posdef)", DType::F32)[0]).empty());
}

}  // namespace
}  // namespace tandem::ir
