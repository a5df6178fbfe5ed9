// Scalar expressions: types, folding, constants, text, rewriting, derivatives against finite differences, digamma.
#include "ir/scalar.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

#include "base/half.hpp"
#include "base/text.hpp"

namespace tandem::ir {
namespace {

using enum DType;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

// --- a small evaluator: floats only as far as derivatives need it ------------------------------------------------------------

double rounded(DType t, double x) {
  switch (t) {
    case F32: return static_cast<float>(x);
    case F16: return half_bits_to_float(float_to_half_bits(static_cast<float>(x)));
    case BF16: return bfloat16_bits_to_float(float_to_bfloat16_bits(static_cast<float>(x)));
    default: return x;
  }
}

double binary(Prim p, double a, double b) {
  switch (p) {
    case Prim::Add: return a + b;
    case Prim::Sub: return a - b;
    case Prim::Mul: return a * b;
    case Prim::Div: return a / b;
    case Prim::Rem: return std::fmod(a, b);
    case Prim::Min: return std::isnan(a) || a < b ? a : b;
    case Prim::Max: return std::isnan(a) || a > b ? a : b;
    case Prim::Pow: return std::pow(a, b);
    case Prim::Atan2: return std::atan2(a, b);
    case Prim::And: return a != 0 && b != 0;
    case Prim::Or: return a != 0 || b != 0;
    case Prim::Eq: return a == b;
    case Prim::Ne: return a != b;
    case Prim::Lt: return a < b;
    case Prim::Le: return a <= b;
    case Prim::Gt: return a > b;
    case Prim::Ge: return a >= b;
    default: ADD_FAILURE() << name(p); return 0;
  }
}

const std::map<Prim, double (*)(double)> kUnary = {
    {Prim::Neg, [](double x) { return -x; }},
    {Prim::Not, [](double x) { return x == 0 ? 1.0 : 0.0; }},
    {Prim::Abs, [](double x) { return std::fabs(x); }},
    {Prim::Floor, [](double x) { return std::floor(x); }},
    {Prim::Ceil, [](double x) { return std::ceil(x); }},
    {Prim::Trunc, [](double x) { return std::trunc(x); }},
    {Prim::Round, [](double x) { return std::nearbyint(x); }},
    {Prim::Sqrt, [](double x) { return std::sqrt(x); }},
    {Prim::Cbrt, [](double x) { return std::cbrt(x); }},
    {Prim::Exp, [](double x) { return std::exp(x); }},
    {Prim::Exp2, [](double x) { return std::exp2(x); }},
    {Prim::Expm1, [](double x) { return std::expm1(x); }},
    {Prim::Log, [](double x) { return std::log(x); }},
    {Prim::Log2, [](double x) { return std::log2(x); }},
    {Prim::Log10, [](double x) { return std::log10(x); }},
    {Prim::Log1p, [](double x) { return std::log1p(x); }},
    {Prim::Sin, [](double x) { return std::sin(x); }},
    {Prim::Cos, [](double x) { return std::cos(x); }},
    {Prim::Tan, [](double x) { return std::tan(x); }},
    {Prim::Asin, [](double x) { return std::asin(x); }},
    {Prim::Acos, [](double x) { return std::acos(x); }},
    {Prim::Atan, [](double x) { return std::atan(x); }},
    {Prim::Sinh, [](double x) { return std::sinh(x); }},
    {Prim::Cosh, [](double x) { return std::cosh(x); }},
    {Prim::Tanh, [](double x) { return std::tanh(x); }},
    {Prim::Asinh, [](double x) { return std::asinh(x); }},
    {Prim::Acosh, [](double x) { return std::acosh(x); }},
    {Prim::Atanh, [](double x) { return std::atanh(x); }},
    {Prim::Erf, [](double x) { return std::erf(x); }},
    {Prim::Erfc, [](double x) { return std::erfc(x); }},
    {Prim::LGamma, [](double x) { return std::lgamma(x); }},
    {Prim::Cast, [](double x) { return x; }},
};

double eval(const Scalar& root, const std::vector<double>& args) {
  std::unordered_map<const ScalarNode*, double> value;
  for (const Scalar& s : post_order(std::span(&root, 1))) {
    std::vector<double> in;
    for (const Scalar& operand : s->in) in.push_back(value.at(operand.get()));
    double x;
    if (s->prim == Prim::Const)
      x = constant_value(*s);
    else if (s->prim == Prim::Arg)
      x = args.at(static_cast<size_t>(s->index));
    else if (s->prim == Prim::Select)
      x = in[0] != 0 ? in[1] : in[2];
    else if (s->prim == Prim::Fma)
      x = std::fma(in[0], in[1], in[2]);
    else if (in.size() == 1)
      x = kUnary.at(s->prim)(in[0]);
    else
      x = binary(s->prim, in.at(0), in.at(1));
    if (s->prim == Prim::Cast && is_int(s.dtype())) x = std::trunc(x);
    value[s.get()] = rounded(s.dtype(), x);
  }
  return value.at(root.get());
}

size_t node_count(const Scalar& s) { return post_order(std::span(&s, 1)).size(); }

// --- types -------------------------------------------------------------------------------------------------------------------

TEST(Scalar, ResultTypes) {
  const Scalar f = arg(0, F32), i = arg(1, I32), p = arg(2, Bool);
  EXPECT_EQ((f + f).dtype(), F32);
  EXPECT_EQ((f < f).dtype(), Bool);
  EXPECT_EQ((i == 3).dtype(), Bool);
  EXPECT_EQ(select(p, f, f * 2).dtype(), F32);
  EXPECT_EQ((p & (i < 3)).dtype(), Bool);
  EXPECT_EQ((i << i).dtype(), I32);
  EXPECT_EQ(cast(i, F16).dtype(), F16);
  EXPECT_EQ(bitcast(f, U32).dtype(), U32);
  EXPECT_EQ(cast(f, F32).get(), f.get());
  EXPECT_EQ(is_nan(f).dtype(), Bool);
  EXPECT_EQ(str(is_nan(i)), "false");
  EXPECT_EQ(axis(1).dtype(), I64);
  EXPECT_EQ(extent(Dim::symbol("b")).dtype(), I64);
}

TEST(Scalar, WrongTypesAreNamed) {
  const Scalar f = arg(0, F32), i = arg(1, I32), p = arg(2, Bool);
  auto text = [](auto build) -> std::string {
    try {
      build();
    } catch (const InternalError& e) {
      return e.what();
    }
    return "no error";
  };
  const std::string bug = "internal error (this is a bug in tandem): ";
  EXPECT_EQ(text([&] { f + i; }), bug + "scalar add does not take operands (float32, int32)");
  EXPECT_EQ(text([&] { select(i, f, f); }), bug + "scalar select does not take operands (int32, float32, float32)");
  EXPECT_EQ(text([&] { f + Scalar(); }), bug + "scalar add does not take operands (float32, nothing)");
  EXPECT_EQ(text([&] { load(0, F32, {i}); }), bug + "scalar load0 does not take indices (int32)");
  EXPECT_EQ(text([&] { bitcast(f, U64); }), bug + "scalar bitcast from float32 to uint64: not the same width, or bool");
  EXPECT_EQ(text([&] { make(Prim::Cast, {f}); }), bug + "scalar cast is not made by make()");
  EXPECT_THROW(p + p, InternalError);
  EXPECT_THROW(f & f, InternalError);
  EXPECT_THROW(f << f, InternalError);
  EXPECT_THROW(exp(i), InternalError);
  EXPECT_THROW(make(Prim::Add, {f}), InternalError);
  EXPECT_THROW(make(Prim::Axis, {}), InternalError);
  EXPECT_THROW(load_if(0, F32, {}, p, i), InternalError);
  EXPECT_THROW(load_if(0, F32, {}, f, f), InternalError);
}

TEST(Scalar, NotIsAlsoTheQuestionWhetherThereIsOne) {
  const Scalar some = arg(0, F32), none;
  if (!some) FAIL();
  EXPECT_TRUE(!none ? true : false);
  const Scalar logical = !arg(0, Bool);
  EXPECT_EQ(logical->prim, Prim::Not);
}

TEST(Scalar, PrimTable) {
  EXPECT_EQ(name(Prim::MulHi), "mulhi");
  EXPECT_EQ(name(Prim::Bitcast), "bitcast");
  EXPECT_EQ(operand_count(Prim::Load), -1);
  EXPECT_EQ(operand_count(Prim::Axis), 0);
  EXPECT_EQ(operand_count(Prim::Ge), 2);
  EXPECT_EQ(operand_count(Prim::Fma), 3);
  EXPECT_EQ(operand_count(Prim::Neg), 1);
}

// --- constants ---------------------------------------------------------------------------------------------------------------

TEST(Scalar, ConstantsSaturate) {
  EXPECT_EQ(constant(U8, 300)->bits, 255u);
  EXPECT_EQ(constant(U8, -1)->bits, 0u);
  EXPECT_EQ(constant(I8, -1000)->bits, 0x80u);
  EXPECT_EQ(constant(I32, 2.9)->bits, 2u);
  EXPECT_EQ(constant_int_value(*constant(I32, -2.9)), -2);
  EXPECT_EQ(constant(I64, 1e300)->bits, 0x7fffffffffffffffu);
  EXPECT_EQ(constant(I64, -kInfinity)->bits, 0x8000000000000000u);
  EXPECT_EQ(constant(U64, 1e300)->bits, ~uint64_t{0});
  EXPECT_EQ(constant(U64, 0x1p64)->bits, ~uint64_t{0});
  EXPECT_EQ(constant(I32, kNaN)->bits, 0u);
  EXPECT_EQ(constant(Bool, 0.5)->bits, 1u);
  EXPECT_EQ(constant(Bool, kNaN)->bits, 1u);
  EXPECT_EQ(constant(F32, 0.1)->bits, 0x3dcccccdu);
  EXPECT_EQ(constant(F32, 1e300)->bits, 0x7f800000u);
  EXPECT_EQ(constant(F64, -0.0)->bits, 0x8000000000000000u);
  EXPECT_EQ(constant_int(U32, -1)->bits, 0xffffffffu);
  EXPECT_EQ(constant_int(I16, 0x12345)->bits, 0x2345u);
  EXPECT_EQ(constant_int(Bool, 256)->bits, 1u);
  EXPECT_EQ(constant_bits(U8, 0x1ff)->bits, 0xffu);
}

TEST(Scalar, SixteenBitConstantsAreRoundedOnce) {
  EXPECT_EQ(constant(F16, 65504)->bits, 0x7bffu);
  EXPECT_EQ(constant(F16, 65520)->bits, 0x7c00u);
  EXPECT_EQ(constant(F16, 65519.999999999)->bits, 0x7bffu);
  EXPECT_EQ(constant(F16, 1 + 0x1p-11)->bits, 0x3c00u) << "a tie goes to even";
  EXPECT_EQ(constant(F16, 1 + 0x1p-11 + 0x1p-40)->bits, 0x3c01u) << "float32 in between would make it a tie";
  EXPECT_EQ(constant(F16, 1 + 3 * 0x1p-11 - 0x1p-40)->bits, 0x3c01u);
  EXPECT_EQ(constant(F16, -1 - 0x1p-11 - 0x1p-40)->bits, 0xbc01u);
  EXPECT_EQ(constant(F16, 0x1p-25)->bits, 0u);
  EXPECT_EQ(constant(F16, 0x1p-25 * (1 + 0x1p-40))->bits, 1u);
  EXPECT_EQ(constant(F16, 1e-300)->bits, 0u);
  EXPECT_EQ(constant(F16, kInfinity)->bits, 0x7c00u);
  EXPECT_EQ(constant(BF16, 1 + 0x1p-8 + 0x1p-40)->bits, 0x3f81u);
  EXPECT_EQ(constant(BF16, 1 + 0x1p-8)->bits, 0x3f80u);
  EXPECT_EQ(constant(BF16, 1e300)->bits, 0x7f80u);
  EXPECT_TRUE(std::isnan(constant_value(*constant(F16, kNaN))));
  EXPECT_TRUE(std::isnan(constant_value(*constant(BF16, kNaN))));
  const int64_t tie = (int64_t{1} << 62) + (int64_t{1} << 54);
  EXPECT_EQ(constant_int(BF16, tie)->bits, 0x5e80u);
  EXPECT_EQ(constant_int(BF16, tie + 1)->bits, 0x5e81u);
  EXPECT_EQ(constant_int(BF16, tie - 1)->bits, 0x5e80u);
  EXPECT_EQ(constant_int(BF16, -tie - 1)->bits, 0xde81u);
}

TEST(Scalar, ConstantValues) {
  EXPECT_EQ(constant_value(*constant_bits(U64, ~uint64_t{0})), 0x1p64);
  EXPECT_EQ(constant_value(*constant_bits(I8, 0xff)), -1);
  EXPECT_EQ(constant_value(*constant_bits(F16, 0x3c00)), 1);
  EXPECT_EQ(constant_int_value(*constant_bits(U8, 0xff)), 255);
  EXPECT_THROW(constant_value(*axis(0)), InternalError);
  EXPECT_THROW(constant_int_value(*constant(F32, 1)), InternalError);
}

// --- folding -----------------------------------------------------------------------------------------------------------------

std::string folded(Prim p, DType t, int64_t a, int64_t b) {
  const Scalar s = operand_count(p) == 1 ? make(p, {constant_int(t, a)}) : make(p, {constant_int(t, a), constant_int(t, b)});
  EXPECT_EQ(s->prim, Prim::Const);
  return s.dtype() == Bool ? (s->bits ? "true" : "false") : std::to_string(constant_int_value(*s));
}

TEST(Scalar, FoldsIntegers) {
  EXPECT_EQ(folded(Prim::Add, I8, 127, 1), "-128");
  EXPECT_EQ(folded(Prim::Sub, U8, 0, 1), "255");
  EXPECT_EQ(folded(Prim::Mul, U32, 0xffffffff, 0xffffffff), "1");
  EXPECT_EQ(folded(Prim::Div, I64, std::numeric_limits<int64_t>::min(), -1), std::to_string(std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(folded(Prim::Rem, I64, std::numeric_limits<int64_t>::min(), -1), "0");
  EXPECT_EQ(folded(Prim::Div, I8, -128, -1), "-128");
  EXPECT_EQ(folded(Prim::Div, I32, -7, 2), "-3");
  EXPECT_EQ(folded(Prim::Rem, I32, -7, 2), "-1");
  EXPECT_EQ(folded(Prim::Div, I32, 7, 0), "0");
  EXPECT_EQ(folded(Prim::Rem, U32, 7, 0), "0");
  EXPECT_EQ(folded(Prim::Div, U64, -1, 2), std::to_string(std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(folded(Prim::Min, U8, 200, 100), "100");
  EXPECT_EQ(folded(Prim::Max, I8, -56, 100), "100");
  EXPECT_EQ(folded(Prim::Shl, I32, 1, 31), "-2147483648");
  EXPECT_EQ(folded(Prim::Shl, I32, 1, 32), "0");
  EXPECT_EQ(folded(Prim::Shr, I32, -8, 1), "-4");
  EXPECT_EQ(folded(Prim::Shr, I32, -8, 40), "-1");
  EXPECT_EQ(folded(Prim::Shr, I64, -8, 64), "-1");
  EXPECT_EQ(folded(Prim::Shr, U8, 255, 8), "0");
  EXPECT_EQ(folded(Prim::Shr, U64, -1, 63), "1");
  EXPECT_EQ(folded(Prim::MulHi, U32, 0xffffffff, 0xffffffff), std::to_string(0xfffffffe));
  EXPECT_EQ(folded(Prim::MulHi, I32, -1, 1), "-1");
  EXPECT_EQ(folded(Prim::MulHi, U64, -1, -1), "-2") << "2^64-2 as its bits";
  EXPECT_EQ(folded(Prim::MulHi, I64, -1, -1), "0");
  EXPECT_EQ(folded(Prim::MulHi, I64, -1, 1), "-1");
  EXPECT_EQ(folded(Prim::MulHi, U64, int64_t{1} << 40, int64_t{1} << 40), "65536");
  EXPECT_EQ(folded(Prim::MulHi, I64, -(int64_t{1} << 40), int64_t{1} << 40), "-65536");
  EXPECT_EQ(folded(Prim::Lt, U64, -1, 1), "false");
  EXPECT_EQ(folded(Prim::Lt, I64, -1, 1), "true");
  EXPECT_EQ(folded(Prim::Ge, U8, 5, 5), "true");
  EXPECT_EQ(folded(Prim::Not, U8, 1, 0), "254");
  EXPECT_EQ(folded(Prim::Not, Bool, 1, 0), "false");
  EXPECT_EQ(folded(Prim::Neg, I8, -128, 0), "-128");
  EXPECT_EQ(folded(Prim::Abs, I8, -5, 0), "5");
  EXPECT_EQ(folded(Prim::Abs, U8, 200, 0), "200");
  EXPECT_EQ(folded(Prim::Xor, Bool, 1, 1), "false");
}

TEST(Scalar, SimplifiesIndexArithmetic) {
  const Scalar i = axis(0), j = axis(1), zero = constant_int(I64, 0);
  EXPECT_EQ((i + 0).get(), i.get());
  EXPECT_EQ((zero + i).get(), i.get());
  EXPECT_EQ((i - 0).get(), i.get());
  EXPECT_EQ((i * 1).get(), i.get());
  EXPECT_EQ((1 * i).get(), i.get());
  EXPECT_EQ((i / 1).get(), i.get());
  EXPECT_EQ(str(i * 0), "0");
  EXPECT_EQ(str(0 * i), "0");
  EXPECT_EQ(str(i % 1), "0");
  EXPECT_EQ(str(i - i), "0");
  EXPECT_EQ(str(axis(0) - axis(0)), "0");
  EXPECT_EQ(str(i - j), "sub(axis0, axis1)");
  EXPECT_EQ(str(i + 1 + 2), "add(axis0, 3)");
  EXPECT_EQ(str(2 * (i * 3)), "mul(axis0, 6)");
  EXPECT_EQ(str(i + 3 - 3), "axis0");
  EXPECT_EQ(str(i == i), "true");
  EXPECT_EQ(str(i < i), "false");
  EXPECT_EQ(str(min(i, i)), "axis0");
  EXPECT_EQ(str(extent(Dim(7)) + extent(Dim(2))), "9");
  EXPECT_EQ(str(i & constant_int(I64, -1)), "axis0");
  EXPECT_EQ(str(i ^ i), "0");
  EXPECT_EQ(str(-(-i)), "axis0");
  EXPECT_EQ(str(floor(i)), "axis0");
  EXPECT_EQ(str(fma(i, constant_int(I64, 2), j)), "add(mul(axis0, 2), axis1)");
}

TEST(Scalar, SimplifiesLogic) {
  const Scalar p = arg(0, Bool), q = arg(1, Bool), f = arg(2, F32);
  const Scalar yes = constant_int(Bool, 1), no = constant_int(Bool, 0);
  EXPECT_EQ((p & yes).get(), p.get());
  EXPECT_EQ(str(p & no), "false");
  EXPECT_EQ(str(no & p), "false");
  EXPECT_EQ(str(p | yes), "true");
  EXPECT_EQ((no | p).get(), p.get());
  EXPECT_EQ((~~p).get(), p.get());
  EXPECT_EQ(str(q & !p), "and(arg1:bool, not(arg0:bool))");
  EXPECT_EQ(str((!p) & q), "and(not(arg0:bool), arg1:bool)");
  EXPECT_EQ(str(select(!p, f, f * 2)), "select(not(arg0:bool), arg2:f32, mul(arg2:f32, 2:f32))");
  EXPECT_EQ(select(yes, f, f * 2).get(), f.get());
  EXPECT_EQ(select(p, f, f).get(), f.get());
  EXPECT_EQ(select(p, yes, no).get(), p.get());
  EXPECT_EQ(str(select(p, no, yes)), "not(arg0:bool)");
  EXPECT_EQ(str(min(p, q)), "and(arg0:bool, arg1:bool)");
  EXPECT_EQ(str(p < q), "and(not(arg0:bool), arg1:bool)");
  EXPECT_EQ(str(p >= q), "or(arg0:bool, not(arg1:bool))");
  EXPECT_EQ(str(p == q), "eq(arg0:bool, arg1:bool)");
  EXPECT_EQ(str(load_if(0, F32, {}, yes, f)), "load0():f32");
  EXPECT_EQ(load_if(0, F32, {}, no, f).get(), f.get());
}

TEST(Scalar, FloatsAreLeftAlone) {
  const Scalar f = arg(0, F32);
  EXPECT_EQ(str(f + 0), "add(arg0:f32, 0:f32)");
  EXPECT_EQ(str(f * 0), "mul(arg0:f32, 0:f32)");
  EXPECT_EQ(str(f - f), "sub(arg0:f32, arg0:f32)");
  EXPECT_EQ(str(f == f), "eq(arg0:f32, arg0:f32)");
  EXPECT_EQ(str(constant(F32, 1) + constant(F32, 2)), "add(1:f32, 2:f32)");
  EXPECT_EQ(str(-(-f)), "neg(neg(arg0:f32))");
}

TEST(Scalar, FoldsCastsOfConstants) {
  EXPECT_EQ(str(cast(constant(F64, 0.1), F32)), "0.1:f32");
  EXPECT_EQ(str(cast(constant(F32, -3.7), I32)), "-3:i32");
  EXPECT_EQ(str(cast(constant(F32, 1e10), I32)), "2147483647:i32");
  EXPECT_EQ(str(cast(constant(F32, kNaN), I32)), "0:i32");
  EXPECT_EQ(str(cast(constant_int(I32, -1), U8)), "255:u8");
  EXPECT_EQ(constant_value(*cast(constant_int(U64, -1), F32)), 0x1p64);
  EXPECT_EQ(str(cast(constant_int(U64, -1), I32)), "-1:i32");
  EXPECT_EQ(str(cast(constant_int(I64, 16777217), F32)), "16777216:f32");
  EXPECT_EQ(str(cast(constant_int(I32, 3), Bool)), "true");
  EXPECT_EQ(str(cast(constant_int(I32, 3), F16)), "3:f16");
  EXPECT_EQ(cast(constant(F64, 0.1), F16)->prim, Prim::Cast) << "a device may round twice";
  EXPECT_EQ(str(bitcast(constant(F32, 1), U32)), "1065353216:u32");
}

// --- text --------------------------------------------------------------------------------------------------------------------

TEST(Scalar, Text) {
  const Scalar x = arg(0, F32);
  EXPECT_EQ(str(x + 1), "add(arg0:f32, 1:f32)");
  EXPECT_EQ(str(load(1, BF16, {axis(0), axis(2) + extent(Dim::symbol("b"))})), "load1(axis0, add(axis2, extent(b))):bf16");
  EXPECT_EQ(str(load_if(0, F32, {axis(0)}, axis(0) < 3, constant(F32, 0))), "load0(axis0 if lt(axis0, 3) else 0:f32):f32");
  EXPECT_EQ(str(load_if(0, F32, {}, axis(0) < 3, constant(F32, 0))), "load0(if lt(axis0, 3) else 0:f32):f32");
  EXPECT_EQ(str(cast(x, I32)), "cast(arg0:f32):i32");
  EXPECT_EQ(str(acc(0, F32) + right(0, F32)), "add(acc0:f32, right0:f32)");
  EXPECT_EQ(str(Scalar()), "nothing");
}

TEST(Scalar, TextOfNumbers) {
  EXPECT_EQ(str(constant(F32, 0.1)), "0.1:f32");
  EXPECT_EQ(str(constant(F64, 0.1)), "0.1:f64");
  EXPECT_EQ(str(constant(F64, static_cast<double>(0.1f))), "0x3fb99999a0000000:f64");
  EXPECT_EQ(str(constant(F64, 1.0 / 3)), "0x3fd5555555555555:f64");
  EXPECT_EQ(str(constant(F32, -0.0)), "-0:f32");
  EXPECT_EQ(str(constant(F32, -kInfinity)), "-inf:f32");
  EXPECT_EQ(str(constant_bits(F32, 0x7fc00001)), "0x7fc00001:f32");
  EXPECT_EQ(str(constant(F16, 0.5)), "0.5:f16");
  EXPECT_EQ(str(constant(F16, 0.1)), "0x2e66:f16");
  EXPECT_EQ(str(constant_int(I64, -3)), "-3");
  EXPECT_EQ(str(constant_int(U64, -1)), "18446744073709551615:u64");
  EXPECT_EQ(str(constant_int(Bool, 1)), "true");
}

TEST(Scalar, TextNumbersWhatIsShared) {
  const Scalar x = arg(0, F32), e = exp(x);
  EXPECT_EQ(str(e * e), "%0=exp(arg0:f32); mul(%0, %0)");
  EXPECT_EQ(str(exp(x) * exp(arg(0, F32))), "%0=exp(arg0:f32); mul(%0, %0)") << "by structure, not by node";
  Scalar deep = x;
  for (int i = 0; i < 200; ++i) deep = deep * deep + deep;
  EXPECT_LT(str(deep).size(), 20000u);
}

TEST(Scalar, DeepChainsNeedNoStack) {
  constexpr int kDepth = 100000;
  Scalar chain = arg(0, F32);
  for (int i = 0; i < kDepth; ++i) chain = chain + 1;
  const std::string text = str(chain);
  EXPECT_LT(text.size(), size_t{kDepth} * 40);
  Scalar copy = rewrite(chain, [](const Scalar& s) { return s->prim == Prim::Arg ? arg(1, F32) : Scalar(); });
  EXPECT_NE(str(copy), text);
  EXPECT_EQ(str(derivative(chain, 0)), "1:f32");
  chain = Scalar();
  copy = Scalar();
}

// --- rewriting ---------------------------------------------------------------------------------------------------------------

TEST(Scalar, RewriteVisitsSharedNodesOnce) {
  const Scalar x = arg(0, F32), e = exp(x);
  int visits = 0;
  const Scalar out = rewrite(e * e + e, [&](const Scalar& s) {
    ++visits;
    return s->prim == Prim::Arg ? load(s->index, s.dtype(), {axis(0)}) : Scalar();
  });
  EXPECT_EQ(visits, 4);
  EXPECT_EQ(str(out), "%0=exp(load0(axis0):f32); add(mul(%0, %0), %0)");
  EXPECT_EQ(node_count(out), 5u);
  const Scalar same = rewrite(out, [](const Scalar&) { return Scalar(); });
  EXPECT_EQ(same.get(), out.get());
}

TEST(Scalar, RewriteFoldsAndKeepsTypes) {
  const Scalar i = axis(0), j = axis(1);
  const Scalar s = load_if(0, F32, {i * 4 + j}, i < 3, cast(j, F32)) + cast(bitcast(cast(i, I32), U32), F32);
  auto zero = [](const Scalar& n) { return n->prim == Prim::Axis && n->index == 0 ? constant_int(I64, 0) : Scalar(); };
  EXPECT_EQ(str(rewrite(s, zero)), "add(load0(axis1):f32, 0:f32)");
  const std::vector<Scalar> roots = {i, Scalar(), i + j};
  const std::vector<Scalar> out = rewrite(roots, zero);
  EXPECT_EQ(str(out[0]), "0");
  EXPECT_FALSE(out[1]);
  EXPECT_EQ(str(out[2]), "axis1");
}

TEST(Scalar, ShareMakesOneNodeOfEqualOnes) {
  const std::vector<Scalar> roots = {exp(arg(0, F32)) + exp(arg(0, F32)), exp(arg(0, F32))};
  const std::vector<Scalar> out = share(roots);
  EXPECT_EQ(out[0]->in[0].get(), out[0]->in[1].get());
  EXPECT_EQ(out[0]->in[0].get(), out[1].get());
  EXPECT_EQ(post_order(out).size(), 3u);
  EXPECT_EQ(str(out[0]), str(roots[0]));
}

// --- derivatives -------------------------------------------------------------------------------------------------------------

// Central differences, extrapolated once: error O(h^4).
double difference(const Scalar& body, std::vector<double> at, size_t k) {
  auto slope = [&](double h) {
    std::vector<double> up = at, down = at;
    up[k] += h;
    down[k] -= h;
    return (eval(body, up) - eval(body, down)) / (up[k] - down[k]);
  };
  const double h = 1e-3 * std::max(0.1, std::fabs(at[k]));
  return (4 * slope(h / 2) - slope(h)) / 3;
}

void expect_derivative(const Scalar& body, const std::vector<std::vector<double>>& points) {
  for (const std::vector<double>& at : points)
    for (size_t k = 0; k < at.size(); ++k) {
      const Scalar d = derivative(body, static_cast<int>(k));
      const double expected = difference(body, at, k);
      const double tolerance = 1e-7 * std::max(1.0, std::fabs(expected));
      EXPECT_NEAR(d ? eval(d, at) : 0.0, expected, tolerance) << str(body) << " by " << k << " at " << at[0] << ": " << str(d);
      if (!d) continue;
      for (size_t m = 0; m < at.size(); ++m) {  // the derivative is itself a body
        const Scalar dd = derivative(d, static_cast<int>(m));
        const double second = difference(d, at, m);
        EXPECT_NEAR(dd ? eval(dd, at) : 0.0, second, 1e-6 * std::max(1.0, std::fabs(second))) << str(d) << " by " << m << " at " << at[0];
      }
    }
}

TEST(Derivative, UnaryPrimitives) {
  const Scalar x = arg(0, F64);
  const std::vector<std::vector<double>> all = {{-1.7}, {-0.3}, {0.4}, {2.3}};
  for (Prim p : {Prim::Neg, Prim::Abs,  Prim::Cbrt,   Prim::Exp,   Prim::Exp2, Prim::Expm1, Prim::Sin,
                 Prim::Cos, Prim::Tan,  Prim::Atan,   Prim::Sinh,  Prim::Cosh, Prim::Tanh,  Prim::Asinh,
                 Prim::Erf, Prim::Erfc, Prim::LGamma, Prim::Floor, Prim::Ceil, Prim::Round, Prim::Trunc})
    expect_derivative(make(p, {x}), all);
  for (Prim p : {Prim::Sqrt, Prim::Log, Prim::Log2, Prim::Log10, Prim::LGamma}) expect_derivative(make(p, {x}), {{0.3}, {1}, {2.5}, {40}});
  for (Prim p : {Prim::Asin, Prim::Acos, Prim::Atanh}) expect_derivative(make(p, {x}), {{-0.8}, {0}, {0.3}, {0.9}});
  expect_derivative(log1p(x), {{-0.5}, {0}, {3}});
  expect_derivative(acosh(x), {{1.2}, {3}, {50}});
}

TEST(Derivative, BinaryPrimitives) {
  const Scalar x = arg(0, F64), y = arg(1, F64);
  const std::vector<std::vector<double>> all = {{1.3, 0.7}, {-0.4, 2.2}, {2.1, -1.6}, {-1.1, -0.6}};
  for (Prim p : {Prim::Add, Prim::Sub, Prim::Mul, Prim::Div, Prim::Rem, Prim::Min, Prim::Max, Prim::Atan2})
    expect_derivative(make(p, {x, y}), all);
  expect_derivative(pow(x, y), {{1.3, 0.7}, {0.4, -2.2}, {2.1, 3}});
  for (double n : {-1.5, -1.0, 0.5, 1.0, 2.0, 3.0}) expect_derivative(pow(x, n), {{0.4}, {1.9}});
  for (double n : {-1.0, 1.0, 2.0, 3.0}) expect_derivative(pow(x, n), {{-1.9}});
  expect_derivative(pow(2.5, x), {{0.4}, {-1.9}});
  expect_derivative(select(x < y, x * y, sin(x)), all);
  expect_derivative(fma(x, y, x * x), all);
}

TEST(Derivative, Compositions) {
  const Scalar x = arg(0, F64), y = arg(1, F64);
  const std::vector<std::vector<double>> all = {{1.3, 0.7}, {-0.4, 2.2}, {2.1, -1.6}};
  expect_derivative(1 / (1 + exp(-x)) * y, all);
  expect_derivative(0.5 * x * (1 + erf(x * std::sqrt(0.5))) - y / (x * x + y * y), all);
  expect_derivative(log1p(exp(-abs(x))) + max(x, y), all);
  expect_derivative(select(x > 0, sqrt(x), 0) + y, {{0.5, 1}, {-0.5, 1}});
  expect_derivative(cast(x, F64) * cast(cast(x, I32), F64) + y, {{1.3, 0.7}, {-2.4, 2.2}});
  expect_derivative(digamma(x) * y, {{0.3, 1}, {-0.7, 2}, {7.5, 1}});
}

TEST(Derivative, IdenticallyZeroIsEmpty) {
  const Scalar x = arg(0, F32), i = arg(1, I32);
  EXPECT_FALSE(derivative(x * 2, 1));
  EXPECT_FALSE(derivative(floor(x), 0));
  EXPECT_FALSE(derivative(cast(x < 0, F32), 0));
  EXPECT_FALSE(derivative(cast(i, F32) * 2, 1));
  EXPECT_FALSE(derivative(i * i, 1));
  EXPECT_FALSE(derivative(select(x > 0, constant(F32, 1), constant(F32, 0)), 0));
  EXPECT_FALSE(derivative(bitcast(bitcast(x, U32) & 0xffff, F32), 0));
  EXPECT_FALSE(derivative(pow(x, 0), 0));
}

TEST(Derivative, SimpleOnesStaySimple) {
  const Scalar x = arg(0, F32), y = arg(1, F32);
  EXPECT_EQ(str(derivative(x, 0)), "1:f32");
  EXPECT_EQ(str(derivative(x + y, 0)), "1:f32");
  EXPECT_EQ(str(derivative(x - y, 1)), "neg(1:f32)");
  EXPECT_EQ(str(derivative(x * y, 0)), "arg1:f32");
  EXPECT_EQ(str(derivative(exp(x), 0)), "exp(arg0:f32)");
  EXPECT_EQ(str(derivative(x / y, 0)), "div(1:f32, arg1:f32)");
  EXPECT_EQ(str(derivative(pow(x, 2), 0)), "mul(2:f32, arg0:f32)");
  EXPECT_EQ(str(derivative(cast(x, F64), 0)), "1:f64");
}

TEST(Derivative, ConventionsAtKinks) {
  const Scalar x = arg(0, F64), y = arg(1, F64);
  auto at = [&](const Scalar& body, int k, std::vector<double> point) { return eval(derivative(body, k), point); };
  EXPECT_EQ(at(max(x, y), 0, {1, 1}), 0.5);
  EXPECT_EQ(at(min(x, y), 1, {1, 1}), 0.5);
  EXPECT_EQ(at(max(x, y), 0, {2, 1}), 1);
  EXPECT_EQ(at(max(x, y), 1, {2, 1}), 0);
  EXPECT_EQ(at(max(x, x), 0, {2}), 1);
  EXPECT_EQ(at(abs(x), 0, {0}), 0);
  EXPECT_EQ(at(abs(x), 0, {-0.0}), 0);
  EXPECT_EQ(at(select(x > 0, sqrt(x), 0), 0, {0}), 0) << "the branch not taken must not leak its infinity";
}

TEST(Derivative, PowAtZero) {
  const Scalar x = arg(0, F64), y = arg(1, F64);
  auto at = [&](int k, double base, double exponent) { return eval(derivative(pow(x, y), k), {base, exponent}); };
  EXPECT_EQ(at(0, 0, 0), 0);
  EXPECT_EQ(at(0, 0, 1), 1);
  EXPECT_EQ(at(0, 0, 2), 0);
  EXPECT_EQ(at(0, -3, 2), -6);
  EXPECT_EQ(at(1, 0, 2), 0);
  EXPECT_EQ(at(1, 0, 0), 0);
  EXPECT_EQ(at(1, -3, 2), 0);
  EXPECT_EQ(eval(derivative(pow(x, 3), 0), {0}), 0);
  EXPECT_EQ(eval(derivative(pow(x, 1), 0), {0}), 1);
}

TEST(Derivative, GrowsLinearly) {
  Scalar s = arg(0, F64);
  for (int i = 0; i < 100; ++i) s = sin(s) * s + s;
  const Scalar d = derivative(s, 0);
  EXPECT_LT(node_count(d), 1000u);
  EXPECT_LT(node_count(derivative(d, 0)), 5000u);
}

TEST(Derivative, SharesCommonParts) {
  const Scalar x = arg(0, F32);
  const Scalar d = derivative(sqrt(x * x + 1) * sqrt(x * x + 1), 0);
  EXPECT_EQ(node_count(d), node_count(share(std::span(&d, 1)).front()));
}

TEST(Derivative, ShortFloatsAreDerivedInFloat32) {
  for (DType t : {F16, BF16}) {
    const Scalar x = arg(0, t);
    const Scalar d = derivative(asinh(x), 0);
    EXPECT_EQ(d.dtype(), t);
    EXPECT_NEAR(eval(d, {1000}), 1e-3, 1e-5) << "in float16 the square would overflow";
    EXPECT_EQ(str(derivative(x, 0)), t == F16 ? "1:f16" : "1:bf16");
    const Scalar careful = cast(tanh(cast(x, F32)), t);
    EXPECT_EQ(derivative(careful, 0).dtype(), t);
    EXPECT_NEAR(eval(derivative(careful, 0), {0.5}), 0.7864, 4e-3);
    EXPECT_FALSE(derivative(floor(x), 0));
    const Scalar bits = bitcast(bitcast(x, U16) & 0x7fff, t) + x * x;
    EXPECT_EQ(eval(derivative(bits, 0), {3}), 6);
  }
}

// --- digamma -----------------------------------------------------------------------------------------------------------------

long double digamma_reference(long double x) {
  if (x < 0) {
    const long double r = x - std::nearbyint(x), pi = std::acos(-1.0L);
    return digamma_reference(1 - x) - pi / std::tan(pi * r);
  }
  long double out = 0;
  for (; x < 40; x += 1) out -= 1 / x;
  const long double w = 1 / (x * x);
  return out + std::log(x) - 0.5L / x -
         w * (1.0L / 12 - w * (1.0L / 120 - w * (1.0L / 252 - w * (1.0L / 240 - w * (1.0L / 132 - w * 691.0L / 32760)))));
}

void expect_digamma(DType t, double tolerance) {
  const Scalar psi = digamma(arg(0, t));
  for (double x = -20.3; x < 60; x += 0.0931) {
    const double at = rounded(t, x);
    const auto expected = static_cast<double>(digamma_reference(at));
    EXPECT_NEAR(eval(psi, {at}), expected, tolerance * std::max(1.0, std::fabs(expected))) << "at " << at;
  }
  for (double x : {1e-6, 1e-3, 0.5, 1.0, 1.4616321449683622, 2.0, 1e3, 1e6, 1e15, 1e30}) {
    const double at = rounded(t, x);
    const auto expected = static_cast<double>(digamma_reference(at));
    EXPECT_NEAR(eval(psi, {at}), expected, tolerance * std::max(1.0, std::fabs(expected))) << "at " << at;
  }
}

TEST(Digamma, Double) { expect_digamma(F64, 2e-14); }
TEST(Digamma, Float) { expect_digamma(F32, 2e-6); }

TEST(Digamma, ShortFloats) {
  EXPECT_EQ(digamma(arg(0, F16)).dtype(), F16);
  EXPECT_EQ(eval(digamma(arg(0, F16)), {1}), constant_value(*constant(F16, -0.5772156649)));
}

TEST(Digamma, SpecialValues) {
  for (DType t : {F32, F64}) {
    const Scalar psi = digamma(arg(0, t));
    EXPECT_EQ(eval(psi, {0.0}), -kInfinity);
    EXPECT_EQ(eval(psi, {-0.0}), kInfinity);
    EXPECT_EQ(eval(psi, {kInfinity}), kInfinity);
    EXPECT_TRUE(std::isnan(eval(psi, {-1})));
    EXPECT_TRUE(std::isnan(eval(psi, {-17})));
    EXPECT_TRUE(std::isnan(eval(psi, {-kInfinity})));
    EXPECT_TRUE(std::isnan(eval(psi, {kNaN})));
  }
}

}  // namespace
}  // namespace tandem::ir
