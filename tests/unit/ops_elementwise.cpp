// Values of the elementwise rows: against numbers from outside (mpmath with 40 digits, NumPy), at the ends of the types and at the
// places where the usual formulas fail.
#include <gtest/gtest.h>

#include <cmath>

#include "evaluate.hpp"
#include "ir/sample.hpp"
#include "ops/table.hpp"

namespace tandem::ops {
namespace {

using namespace ir;
using test::Array;
using enum DType;
using Doubles = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Only the families under test, so that a mistake in another one does not show here.
const OpTable& rows() {
  static const OpTable& table = *[] {
    auto* t = new OpTable;
    for (auto family : {structural_rows, arithmetic_rows, compare_rows, math_rows, special_rows, activation_rows, convert_rows})
      for (OpDef& row : family()) t->add(std::move(row));
    return t;
  }();
  return table;
}

Array evaluated(std::string_view op, const std::vector<Array>& in, const Attrs& attrs = {}) {
  Builder b(rows());
  std::vector<Value> inputs;
  for (const Array& a : in) inputs.push_back(b.input({a.dtype, to_dims(a.shape)}));
  const std::vector<Value> out = b.nodes(op, inputs, attrs);
  return test::evaluate(rows(), b.finish(out), in)[0];
}

Array vector(DType t, const Doubles& v) { return Array::of(t, Shape{static_cast<int64_t>(v.size())}, v); }

Doubles unary(std::string_view op, DType t, const Doubles& x, const Attrs& attrs = {}) {
  return evaluated(op, {vector(t, x)}, attrs).values();
}
Doubles binary(std::string_view op, DType t, const Doubles& x, const Doubles& y, const Attrs& attrs = {}) {
  return evaluated(op, {vector(t, x), vector(t, y)}, attrs).values();
}

// Equal, NaN to NaN, and zeros by their sign.
void expect_same(const Doubles& got, const Doubles& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const bool same = std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i] && std::signbit(got[i]) == std::signbit(want[i]);
    EXPECT_TRUE(same) << "element " << i << " is " << got[i] << ", not " << want[i];
  }
}

template <class F> std::string refused(F f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "accepted";
}

// --- numbers from outside --------------------------------------------------------------------------------------------------

struct Reference {
  std::string_view op;
  Attrs attrs;
  Doubles x, y;
};
const std::vector<Reference>& references() {
  static const std::vector<Reference> all = {
      {"erfinv",
       {},
       {-0.9999847412109375, -0.5, 1e-10, 0.25, 0.875},
       {-3.0581795818509161, -0.47693627620446987, 8.8622692545275805e-11, 0.2253120550121781, 1.0847870400692831}},
      {"ndtri",
       {},
       {1e-100, 9.5367431640625e-07, 0.25, 0.75, 0.9990234375},
       {-21.273453560965324, -4.763001034267814, -0.67448975019608174, 0.67448975019608174, 3.0972690781987845}},
      {"erfcx",
       {},
       {-2.0, 0.0, 0.5, 3.0, 1000.0},
       {108.94090438997797, 1.0, 0.61569034419292587, 0.17900115118138995, 5.6418930145338765e-4}},
      {"ndtr", {}, {-5.0, -1.0, 0.0, 1.5}, {2.8665157187919391e-7, 0.15865525393145705, 0.5, 0.93319279873114193}},
      {"log_ndtr",
       {},
       {-100.0, -5.0, -0.5, 0.5, 5.0},
       {-5005.5242086942051, -15.064998393988726, -1.1759117615936186, -0.36894641528865639, -2.8665161296376359e-7}},
      {"logit",
       {},
       {9.5367431640625e-07, 0.25, 0.5009765625, 0.875},
       {-13.862942657524135, -1.0986122886681097, 3.9062549670651e-3, 1.9459101490553133}},
      {"digamma",
       {},
       {-2.25, 0.125, 1.46875, 1.5, 7.5, 100.0},
       {4.1585835646579723, -8.3884926632958549, 6.8654114707357767e-3, 0.036489973978576521, 1.9467574842460868, 4.6001618527380874}},
      {"polygamma",
       {{"order", int64_t{1}}},
       {-1.25, 0.5, 1.0, 12.0},
       {19.181879647671606, 4.9348022005446793, 1.6449340668482264, 0.086901872871768391}},
      {"polygamma",
       {{"order", int64_t{4}}},
       {-0.25, 0.5, 1.0, 12.0},
       {24473.199394184583, -771.47424982666723, -24.886266123440878, -3.4091005070108939e-4}},
      {"i0", {}, {-3.0, 0.0, 0.5, 20.0}, {4.8807925858650241, 1.0, 1.0634833707413235, 4.3558282559553533e+7}},
      {"i0e", {}, {-3.0, 0.0, 7.5, 500.0}, {0.2430003541618254, 1.0, 0.1483158300773955, 0.017845706500153167}},
      {"i1", {}, {-3.0, 0.0, 0.5, 20.0}, {-3.9533702174026094, 0.0, 0.25789430539089632, 4.245497338512777e+7}},
      {"i1e", {}, {-3.0, 1e-08, 7.5, 500.0}, {-0.19682671329730085, 4.9999999500000004e-9, 0.1380412115485542, 0.017827851852898056}},
      {"gelu",
       {},
       {-6.0, -0.75, 0.0, 0.5, 3.0},
       {-8.4396467007622971e-11, -0.1700394448343797, 0.0, 0.34571400982514392, 2.996362607918227}},
      {"gelu",
       {{"approximate", false}},
       {-6.0, -0.75, 0.0, 0.5, 3.0},
       {-5.9195258702261888e-9, -0.16997051428265115, 0.0, 0.34573123063700655, 2.9959503059051097}},
      {"silu",
       {},
       {-6.0, -0.75, 0.0, 0.5, 3.0},
       {-0.014835738939808646, -0.24061597561845527, 0.0, 0.31122966560092728, 2.8577223804672997}},
      {"mish",
       {},
       {-6.0, -0.75, 0.0, 0.5, 3.0},
       {-0.014854080479424994, -0.27649471450546518, 0.0, 0.3752452113048951, 2.9865350049679573}},
      {"softplus",
       {},
       {-6.0, -0.75, 0.0, 0.5, 3.0},
       {2.4756851377304495e-3, 0.38687100611489994, 0.69314718055994531, 0.97407698418010668, 3.0485873515737421}},
      {"log_sigmoid",
       {},
       {-6.0, -0.75, 0.0, 0.5, 3.0},
       {-6.0024756851377304, -1.1368710061148999, -0.69314718055994531, -0.47407698418010668, -0.048587351573742059}},
      {"sigmoid",
       {},
       {-6.0, -0.75, 0.0, 0.5, 3.0},
       {2.4726231566347743e-3, 0.32082130082460703, 0.5, 0.62245933120185456, 0.95257412682243322}},
      {"selu", {}, {-6.0, -0.75, 0.0, 0.5, 3.0}, {-1.7537414482794557, -0.92763201583505123, 0.0, 0.52535049367774025, 3.1521029620664415}},
      {"squareplus",
       {},
       {-6.0, -0.75, 0.0, 0.5, 3.0},
       {0.16227766016837933, 0.6930004681646914, 1.0, 1.2807764064044151, 3.3027756377319946}},
      {"softsign", {}, {-6.0, -0.75, 0.0, 0.5, 3.0}, {-0.85714285714285714, -0.42857142857142857, 0.0, 0.33333333333333333, 0.75}},
      {"sinc", {}, {-1.25, 0.0, 1e-05, 0.5}, {-0.18006326323142121, 1.0, 0.99999999983550659, 0.63661977236758134}},
      {"entr", {}, {0.25, 1.0, 2.0}, {0.34657359027997265, 0.0, -1.3862943611198906}},
      {"rsqrt", {}, {0.25, 2.0}, {2.0, 0.70710678118654752}},
  };
  return all;
}

TEST(Elementwise, ReferencesInFloat64) {
  for (const Reference& r : references()) {
    const Doubles y = unary(r.op, F64, r.x, r.attrs);
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], r.y[i], 1e-13 * std::fabs(r.y[i])) << r.op << " of " << r.x[i];
  }
}

TEST(Elementwise, ReferencesInFloat32) {
  for (const Reference& r : references()) {
    const Doubles y = unary(r.op, F32, r.x, r.attrs);
    for (size_t i = 0; i < y.size(); ++i)
      if (static_cast<double>(static_cast<float>(r.x[i])) == r.x[i]) {
        EXPECT_NEAR(y[i], r.y[i], 2e-6 * std::fabs(r.y[i])) << r.op << " of " << r.x[i];
      }
  }
}

// The 16-bit types compute in float32: the result is the float32 one rounded, nothing is lost on the way.
TEST(Elementwise, HalvesRoundOnce) {
  for (const Reference& r : references()) {
    const Doubles half = unary(r.op, F16, r.x, r.attrs);
    const Doubles x = vector(F16, r.x).values();
    const Doubles full = unary(r.op, F32, x, r.attrs);
    for (size_t i = 0; i < half.size(); ++i) EXPECT_EQ(half[i], vector(F16, full).values()[i]) << r.op << " of " << x[i];
  }
}

// --- quotients -------------------------------------------------------------------------------------------------------------

TEST(Elementwise, FloatDivisionIsNumPys) {
  const Doubles x = {7, -7, 7, -7, 5, -5, -5, 0.0, -0.0, 1, -1, 0, kInf, 6, -6};
  const Doubles y = {2, 2, -2, -2, kInf, kInf, -kInf, 3, 3, 0, 0, 0, 2, 3, 3};
  for (DType t : {F16, BF16, F32, F64}) {
    expect_same(binary("floor_divide", t, x, y), {3, -4, -4, 3, 0, -1, 0, 0, -0.0, kInf, -kInf, kNaN, kNaN, 2, -2});
    expect_same(binary("remainder", t, x, y), {1, 1, -1, -1, 5, kInf, -5, 0, 0, kNaN, kNaN, kNaN, kNaN, 0, 0});
    expect_same(binary("fmod", t, x, y), {1, -1, 1, -1, 5, -5, -5, 0, -0.0, kNaN, kNaN, kNaN, kNaN, 0, -0.0});
    expect_same(binary("divide_no_nan", t, {1, 0, kNaN, 6}, {0, 0, 0, 3}), {0, 0, 0, 2});
  }
}

TEST(Elementwise, IntegerDivisionFloorsAndNeverTraps) {
  const Doubles x = {7, -7, 7, -7, 5, -6, -128}, y = {2, 2, -2, -2, 0, 3, -1};
  expect_same(binary("floor_divide", I8, x, y), {3, -4, -4, 3, 0, -2, -128});
  expect_same(binary("remainder", I8, x, y), {1, 1, -1, -1, 0, 0, 0});
  expect_same(binary("fmod", I8, x, y), {1, -1, 1, -1, 0, 0, 0});
  expect_same(binary("truncate_divide", I8, x, y), {3, -3, -3, 3, 0, -2, -128});
  expect_same(binary("floor_divide", U8, {250, 7, 9}, {7, 0, 10}), {35, 0, 0});
}

TEST(Elementwise, CommonDivisors) {
  for (DType t : {I8, I16, I32, I64}) {
    expect_same(binary("gcd", t, {12, -18, 0, 7, 0, 89, 55}, {18, 12, 5, 0, 0, 55, 89}), {6, 6, 5, 7, 0, 1, 1});
    expect_same(binary("lcm", t, {4, -6, 0, 7}, {6, 4, 5, 0}), {12, 12, 0, 0});
  }
  expect_same(binary("gcd", U8, {233, 144}, {144, 233}), {1, 1});  // the longest run of Euclid's algorithm
}

// --- powers ----------------------------------------------------------------------------------------------------------------

TEST(Elementwise, IntegerPowersWrapAndTruncate) {
  expect_same(binary("power", I32, {2, -3, 0, 0, 7, 3}, {10, 3, 0, 5, 1, 21}), {1024, -27, 1, 0, 7, 1870418611});
  expect_same(binary("power", I32, {2, -2, 1, -1, -1, 0}, {-1, -2, -5, -3, -4, -1}), {0, 0, 1, -1, 1, 0});
  expect_same(binary("power", U8, {2, 3, 255}, {9, 6, 2}), {0, 217, 1});
}

TEST(Elementwise, LdexpRoundsOnce) {
  const Array n = Array::of(I32, Shape{6}, {-149, -150, -2000, 130, 2147483647, -2147483648.0});
  const Array x = vector(F32, {1, 1.5, 1, 0.125, 1, 1});
  expect_same(evaluated("ldexp", {x, n}).values(), {0x1p-149, 0x1p-149, 0, 0x1p127, kInf, 0});
}

TEST(Elementwise, HypotDoesNotOverflow) {
  expect_same(binary("hypot", F32, {3e38, 0, kInf, kNaN, 3}, {0, 0, kNaN, 1, 4}), {static_cast<double>(3e38f), 0, kInf, kNaN, 5});
  EXPECT_NEAR(binary("hypot", F64, {3e300}, {4e300})[0], 5e300, 1e286);
}

// --- neighbours, signs, extrema --------------------------------------------------------------------------------------------

TEST(Elementwise, NextAfter) {
  expect_same(binary("nextafter", F32, {1, 1, 0, -0.0, 0x1.fffffep127, kNaN, 2}, {2, 0, -1, 1, kInf, 1, 2}),
              {1 + 0x1p-23, 1 - 0x1p-24, -0x1p-149, 0x1p-149, kInf, kNaN, 2});
  expect_same(binary("nextafter", F16, {1, 0}, {2, 1}), {1 + 0x1p-10, 0x1p-24});
}

TEST(Elementwise, SignsOfZeros) {
  expect_same(binary("copysign", F32, {1, -1, 0, kInf}, {-0.0, 0.0, -3, -1}), {-1, 1, -0.0, -kInf});
  expect_same(unary("signbit", F32, {-0.0, 0.0, -1, kInf}), {1, 0, 1, 0});
  expect_same(unary("sign", F32, {-0.0, 3, -3, kNaN, -kInf}), {0, 1, -1, kNaN, -1});
  expect_same(unary("sign", U8, {0, 200}), {0, 1});
}

TEST(Elementwise, ExtremaAndNaN) {
  expect_same(binary("maximum", F32, {kNaN, 1, 2}, {1, kNaN, 1}), {kNaN, kNaN, 2});
  expect_same(binary("fmax", F32, {kNaN, 1, 2, kNaN}, {1, kNaN, 1, kNaN}), {1, 1, 2, kNaN});
  expect_same(binary("fmin", F32, {kNaN, 1, 2, kNaN}, {1, kNaN, 1, kNaN}), {1, 1, 1, kNaN});
  expect_same(evaluated("clip", {vector(F32, {-1, 0.5, 9, kNaN}), vector(F32, {0}), vector(F32, {1})}).values(), {0, 0.5, 1, kNaN});
  expect_same(unary("relu", F32, {-1, 2, kNaN}), {0, 2, kNaN});
}

TEST(Elementwise, InfinitiesOfLogAddExp) {
  expect_same(binary("logaddexp", F32, {-kInf, kInf, kInf, -kInf}, {-kInf, kInf, -kInf, 3}), {-kInf, kInf, kInf, 3});
  expect_same(binary("xlogy", F32, {0, 0, 0, 1}, {0, -1, kNaN, 1}), {0, 0, kNaN, 0});
}

// --- rounding, logic, bits -------------------------------------------------------------------------------------------------

TEST(Elementwise, RoundToDecimals) {
  expect_same(unary("round", F64, {0.5, 1.5, 2.5, -0.5}), {0, 2, 2, -0.0});
  expect_same(unary("round", F64, {1.125, 1e300, kInf}, {{"decimals", int64_t{2}}}), {1.12, 1e300, kInf});
  expect_same(unary("round", I32, {15, 25, -15, -26, 4}, {{"decimals", int64_t{-1}}}), {20, 20, -20, -30, 0});
  expect_same(unary("round", U8, {255, 50, 150}, {{"decimals", int64_t{-2}}}), {44, 0, 200});  // 300 wraps
  expect_same(unary("round", I8, {100}, {{"decimals", int64_t{-5}}}), {0});
}

TEST(Elementwise, NanToNum) {
  expect_same(unary("nan_to_num", F16, {kNaN, kInf, -kInf, 1}), {0, 65504, -65504, 1});
  expect_same(unary("nan_to_num", F32, {kNaN, kInf, -kInf}, {{"nan", 7.0}, {"posinf", 8.0}, {"neginf", 9.0}}), {7, 8, 9});
}

TEST(Elementwise, BoolsAddAndMultiply) {
  expect_same(binary("add", Bool, {0, 1, 1}, {0, 0, 1}), {0, 1, 1});
  expect_same(binary("multiply", Bool, {0, 1, 1}, {0, 0, 1}), {0, 0, 1});
  expect_same(binary("less", Bool, {0, 1, 1}, {1, 0, 1}), {1, 0, 0});
}

TEST(Elementwise, ShiftsBeyondTheWidth) {
  expect_same(binary("left_shift", I8, {1, 1, 1, 64}, {3, 8, -1, 1}), {8, 0, 0, -128});
  expect_same(binary("right_shift", I8, {-8, -8, 8, -8}, {1, 9, -1, -1}), {-4, -1, 0, -1});
}

TEST(Elementwise, IsClose) {
  const Attrs nan{{"equal_nan", true}};
  expect_same(binary("is_close", F32, {kInf, kInf, kNaN, 1}, {kInf, 1, kNaN, 1.000001}), {1, 0, 0, 1});
  expect_same(binary("is_close", F32, {kNaN, kNaN}, {kNaN, 1}, nan), {1, 0});
}

// --- conversions -----------------------------------------------------------------------------------------------------------

TEST(Elementwise, CastSaturates) {
  expect_same(unary("cast", F32, {300, -1, 3.9, kNaN, -kInf}, {{"dtype", U8}}), {255, 0, 3, 0, 0});
  expect_same(unary("cast", I32, {300, -1}, {{"dtype", U8}}), {44, 255});
  expect_same(unary("cast", F32, {0, -0.0, 0.5, kNaN}, {{"dtype", Bool}}), {0, 0, 1, 1});
}

TEST(Elementwise, BitcastChangesTheLastAxisWithTheWidth) {
  expect_same(unary("bitcast", F32, {1}, {{"dtype", I32}}), {0x3f800000});
  expect_same(unary("bitcast", F32, {1, -2}, {{"dtype", U8}}), {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0});
  expect_same(unary("bitcast", U8, {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}, {{"dtype", F32}}), {1, -2});
  expect_same(unary("bitcast", BF16, {1, 1}, {{"dtype", U32}}), {0x3f803f80});
}

TEST(Elementwise, BitcastRefusals) {
  const auto bitcast = [](TensorType from, DType to) {
    return refused([&] { infer(rows().at("bitcast"), std::span(&from, 1), Attrs{{"dtype", to}}); });
  };
  EXPECT_EQ(bitcast({U8, {Dim(2), Dim(6)}}, F32),
            "bitcast: the last axis of uint8[2,6] must be a multiple of 4 to become float32, it is 6");
  EXPECT_EQ(bitcast({F64, {}}, F32), "bitcast: a tensor without axes cannot change its width, float64 has 8 bytes, float32 has 4");
  EXPECT_EQ(bitcast({Bool, {Dim(4)}}, U8), "bitcast: bool has no bits of its own, got bool[4] to uint8\n  hint: cast to uint8 first");
  EXPECT_EQ(bitcast({U8, {Dim::symbol("b") * Dim(4)}}, F32), "accepted");
}

// --- functions with a gradient of their own --------------------------------------------------------------------------------

GraphRef graph_of(std::vector<TensorType> types, std::vector<Expr> (*f)(std::vector<Expr>)) {
  Builder b(rows());
  std::vector<Expr> in;
  for (TensorType& t : types) in.emplace_back(b, b.input(std::move(t)));
  const std::vector<Value> out = values(f(std::move(in)));
  return std::make_shared<const Graph>(b.finish(out));
}

TEST(CustomGradient, ForwardAndBackward) {
  const TensorType t{F32, {Dim(2)}};
  const GraphRef forward = graph_of({t}, [](std::vector<Expr> x) { return std::vector{exp(x[0])}; });
  // (x, y, g) -> x + y * g: uses all three, and is not the true gradient.
  const GraphRef backward = graph_of({t, t, t}, [](std::vector<Expr> x) { return std::vector{x[0] + x[1] * x[2]}; });
  Builder b(rows());
  const Value x = b.input(t), g = b.input(t);
  const std::vector<Value> out = b.nodes("custom_gradient", std::array{x}, {{"forward", Graphs{forward}}, {"backward", Graphs{backward}}});
  const Node node = b.graph().node(out[0]);
  const GradCall call{b, node, exprs(b, std::array{x}), exprs(b, out), exprs(b, std::array{g}), {true}};
  const Value gradient = node.op->vjp(call).at(0).value();
  const auto results = test::evaluate(rows(), b.finish({out[0], gradient}), {vector(F32, {0, 1}), vector(F32, {2, 3})});
  const float e = std::exp(1.0f);
  expect_same(results[0].values(), {1, e});
  expect_same(results[1].values(), {2, 1 + e * 3});
}

TEST(CustomGradient, Refusals) {
  const TensorType t{F32, {Dim(2)}};
  const GraphRef one = graph_of({t}, [](std::vector<Expr> x) { return std::vector{exp(x[0])}; });
  const GraphRef three = graph_of({t, t, t}, [](std::vector<Expr> x) { return std::vector{x[0], x[1]}; });
  const auto error = [&](TensorType in, Graphs forward, Graphs backward) {
    return refused([&] { infer(rows().at("custom_gradient"), std::span(&in, 1), Attrs{{"forward", forward}, {"backward", backward}}); });
  };
  EXPECT_EQ(error(t, {one}, {one}), "custom_gradient: the backward graph takes 1 inputs, but there are 3");
  EXPECT_EQ(error(t, {one, one}, {one}), "custom_gradient: 'forward' must be one graph, got 2");
  EXPECT_EQ(error(t, {one}, {three}), "custom_gradient: the backward graph gives 2 gradients, but there are 1 operands");
  EXPECT_EQ(error({F64, {Dim(2)}}, {one}, {three}), "custom_gradient: input 0 of the forward graph is float32[2], but gets float64[2]");
}

// --- all of them -----------------------------------------------------------------------------------------------------------

TEST(Elementwise, EverySampleMakesAKernel) {
  for (const OpDef* op : rows().all())
    for (std::string_view text : op->samples) {
      const Sample sample = parse_sample(*op, text);
      const auto assignments = sample_types(*op, sample);
      EXPECT_FALSE(assignments.empty()) << op->name << ' ' << text;
      for (const auto& types : assignments) {
        std::vector<TensorType> in;
        for (const Literal& l : sample_values(*op, sample, types)) in.push_back(l.type());
        const auto out = infer(*op, in, sample.attrs);
        if (op->body || op->loops) {
          EXPECT_EQ(loops_of(*op, in, sample.attrs, out).results.size(), 1u) << op->name << ' ' << text;
        }
      }
    }
}

TEST(Elementwise, OrderOfPolygammaIsChecked) {
  EXPECT_EQ(refused([] { unary("polygamma", F32, {1}, {{"order", int64_t{-1}}}); }), "polygamma: order must be in 0..30, got -1");
}

}  // namespace
}  // namespace tandem::ops
