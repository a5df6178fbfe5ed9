// The interpreter against numbers written by hand: it is the oracle for every device, so nothing else may be its oracle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.hpp"
#include "codegen/dense_copy.hpp"
#include "codegen/interpret.hpp"

namespace tandem::codegen {
namespace {

using ir::axis;
using ir::Fold;
using ir::Loops;
using ir::Prim;
using ir::Scalar;
using ::testing::ElementsAre;

constexpr double kInf = std::numeric_limits<double>::infinity();

Scalar index(int64_t v) { return ir::constant_int(DType::I64, v); }

// std::vector<bool> has no memory to point at.
template <class T> using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

// Runs loops over dense 1-D inputs (or of given shapes).
template <class T> struct Input {
  std::vector<T> values;
  Shape shape = {};
};
template <class Out, class... In> std::vector<Stored<Out>> run(const Loops& loops, Input<In>... in) {
  std::vector<HostOperand> from;
  [[maybe_unused]] const auto add = [&](auto& x) {
    using T = typename std::decay_t<decltype(x.values)>::value_type;
    const Shape s = x.shape.empty() ? Shape{static_cast<int64_t>(x.values.size())} : x.shape;
    from.push_back({Layout::dense(DTypeOf<T>::value, s), x.values.data()});
  };
  (add(in), ...);
  const Shape shape = bind(loops.extents, {});
  std::vector<Stored<Out>> out(static_cast<size_t>(element_count(shape)));
  const HostOperand to{Layout::dense(DTypeOf<Out>::value, shape), out.data()};
  interpret(loops, {}, from, std::span(&to, 1));
  return out;
}

template <class T> Scalar arg(int k) { return ir::load(k, DTypeOf<T>::value, {axis(0)}); }
template <class Out, class T> std::vector<Stored<Out>> unary(Prim p, std::vector<T> x) {
  return run<Out>(Loops{.extents = {static_cast<int64_t>(x.size())}, .results = {ir::make(p, {arg<T>(0)})}}, Input<T>{x});
}
template <class Out, class T> std::vector<Stored<Out>> binary(Prim p, std::vector<T> x, std::vector<T> y) {
  return run<Out>(Loops{.extents = {static_cast<int64_t>(x.size())}, .results = {ir::make(p, {arg<T>(0), arg<T>(1)})}}, Input<T>{x},
                  Input<T>{y});
}
template <class Out, class T> std::vector<Stored<Out>> cast(std::vector<T> x) {
  return run<Out>(Loops{.extents = {static_cast<int64_t>(x.size())}, .results = {ir::cast(arg<T>(0), DTypeOf<Out>::value)}}, Input<T>{x});
}

TEST(Interpret, IntegersWrap) {
  EXPECT_THAT((binary<int8_t, int8_t>(Prim::Add, {127, -128, 5}, {1, -1, 6})), ElementsAre(-128, 127, 11));
  EXPECT_THAT((binary<uint16_t, uint16_t>(Prim::Mul, {65535, 300}, {65535, 300})), ElementsAre(1, 24464));
  EXPECT_THAT((binary<int32_t, int32_t>(Prim::Sub, {INT32_MIN}, {1})), ElementsAre(INT32_MAX));
  EXPECT_THAT((unary<int64_t, int64_t>(Prim::Neg, {INT64_MIN, 3})), ElementsAre(INT64_MIN, -3));
  EXPECT_THAT((unary<int8_t, int8_t>(Prim::Abs, {-128, -3, 4})), ElementsAre(-128, 3, 4));
}

TEST(Interpret, DivisionTruncatesAndByZeroGivesZero) {
  EXPECT_THAT((binary<int32_t, int32_t>(Prim::Div, {7, -7, 7, 5, INT32_MIN}, {2, 2, -2, 0, -1})), ElementsAre(3, -3, -3, 0, INT32_MIN));
  EXPECT_THAT((binary<int32_t, int32_t>(Prim::Rem, {7, -7, 7, 5, INT32_MIN}, {2, 2, -2, 0, -1})), ElementsAre(1, -1, 1, 0, 0));
  EXPECT_THAT((binary<uint8_t, uint8_t>(Prim::Div, {200, 200}, {7, 0})), ElementsAre(28, 0));
  EXPECT_THAT((binary<float, float>(Prim::Rem, {7.5f, -7.5f}, {2, 2})), ElementsAre(1.5f, -1.5f));
}

TEST(Interpret, ShiftsByTheWidthOrMore) {
  EXPECT_THAT((binary<int8_t, int8_t>(Prim::Shl, {1, 1, 3, 1}, {7, 8, 1, -1})), ElementsAre(-128, 0, 6, 0));
  EXPECT_THAT((binary<int8_t, int8_t>(Prim::Shr, {-128, -128, 127, -5}, {7, 8, 100, -1})), ElementsAre(-1, -1, 0, -1));
  EXPECT_THAT((binary<uint64_t, uint64_t>(Prim::Shr, {~uint64_t{0}, ~uint64_t{0}}, {63, 64})), ElementsAre(1u, 0u));
}

TEST(Interpret, MultiplyHigh) {
  EXPECT_THAT((binary<uint32_t, uint32_t>(Prim::MulHi, {0xffffffffu}, {0xffffffffu})), ElementsAre(0xfffffffeu));
  EXPECT_THAT((binary<int32_t, int32_t>(Prim::MulHi, {-1, INT32_MIN}, {1, INT32_MIN})), ElementsAre(-1, 1 << 30));
  EXPECT_THAT((binary<uint64_t, uint64_t>(Prim::MulHi, {~uint64_t{0}}, {~uint64_t{0}})), ElementsAre(~uint64_t{1}));
  EXPECT_THAT((binary<int64_t, int64_t>(Prim::MulHi, {INT64_MIN, -1}, {2, 1})), ElementsAre(-1, -1));
  EXPECT_THAT((binary<int8_t, int8_t>(Prim::MulHi, {-128, 127}, {-128, 2})), ElementsAre(64, 0));
}

TEST(Interpret, NanWinsInMinAndMax) {
  const auto low = binary<float, float>(Prim::Min, {NAN, 1, 1, -0.f, 0.f}, {1, NAN, 2, 0.f, -0.f});
  EXPECT_TRUE(std::isnan(low[0]) && std::isnan(low[1]) && low[2] == 1 && std::signbit(low[3]) && std::signbit(low[4]));
  const auto high = binary<double, double>(Prim::Max, {NAN, 1, 1, -0., 0.}, {1, NAN, 2, 0., -0.});
  EXPECT_TRUE(std::isnan(high[0]) && std::isnan(high[1]) && high[2] == 2 && !std::signbit(high[3]) && !std::signbit(high[4]));
}

TEST(Interpret, ComparisonsWithNan) {
  EXPECT_THAT((binary<bool, float>(Prim::Eq, {NAN, 1}, {NAN, 1})), ElementsAre(false, true));
  EXPECT_THAT((binary<bool, float>(Prim::Ne, {NAN, 1}, {NAN, 1})), ElementsAre(true, false));
  EXPECT_THAT((binary<bool, float>(Prim::Le, {NAN, 1}, {1, 1})), ElementsAre(false, true));
  EXPECT_THAT((binary<bool, uint8_t>(Prim::Gt, {200, 1}, {100, 255})), ElementsAre(true, false));
}

TEST(Interpret, RoundingToNearestEven) {
  EXPECT_THAT((unary<float, float>(Prim::Round, {0.5f, 1.5f, 2.5f, -0.5f, 2.6f})), ElementsAre(0.f, 2.f, 2.f, -0.f, 3.f));
  EXPECT_THAT((unary<double, double>(Prim::Floor, {-1.5, 1.5})), ElementsAre(-2, 1));
  EXPECT_THAT((unary<double, double>(Prim::Trunc, {-1.5, 1.5})), ElementsAre(-1, 1));
}

TEST(Interpret, CastsTruncateAndSaturate) {
  EXPECT_THAT((cast<int8_t, float>({3.9f, -3.9f, 1000.f, -1000.f, NAN})), ElementsAre(3, -3, 127, -128, 0));
  EXPECT_THAT((cast<uint8_t, double>({-1, 255.9, 256, kInf, -kInf})), ElementsAre(0, 255, 255, 255, 0));
  EXPECT_THAT((cast<int64_t, double>({9.3e18, -9.3e18, 1e15})), ElementsAre(INT64_MAX, INT64_MIN, 1000000000000000));
  EXPECT_THAT((cast<uint64_t, float>({1e20f, -5.f})), ElementsAre(UINT64_MAX, 0u));
  EXPECT_THAT((cast<bool, float>({0.f, -0.f, 0.25f, NAN})), ElementsAre(false, false, true, true));
  EXPECT_THAT((cast<int8_t, int32_t>({300, -300})), ElementsAre(44, -44));
  EXPECT_THAT((cast<float, uint64_t>({UINT64_MAX})), ElementsAre(0x1p64f));
}

TEST(Interpret, BytesOfBoolsAreOneOrZero) {
  // Memory may hold any byte that is not zero for true.
  std::vector<uint8_t> x{0, 1, 2, 255};
  std::vector<uint8_t> out(4, 9);
  const HostOperand in{Layout::dense(DType::Bool, {4}), x.data()}, to{Layout::dense(DType::Bool, {4}), out.data()};
  interpret(Loops{.extents = {4}, .results = {ir::load(0, DType::Bool, {axis(0)})}}, {}, std::span(&in, 1), std::span(&to, 1));
  EXPECT_THAT(out, ElementsAre(0, 1, 1, 1));
}

TEST(Interpret, SmallFloatsRoundAfterEachPrimitive) {
  // 2048 + 1 is halfway and goes to even; so adding 1 twice to 2048 stays there, while 2048 + 2 would not.
  const Scalar x = arg<Half>(0), one = ir::constant(DType::F16, 1);
  const auto sums = run<Half>(Loops{.extents = {1}, .results = {(x + one) + one}}, Input<Half>{{Half(2048)}});
  EXPECT_EQ(static_cast<float>(sums[0]), 2048);
  const auto fused = run<Half>(Loops{.extents = {1}, .results = {ir::fma(x, one, one + one)}}, Input<Half>{{Half(2048)}});
  EXPECT_EQ(static_cast<float>(fused[0]), 2050);
  const auto b =
      run<BFloat16>(Loops{.extents = {1}, .results = {arg<BFloat16>(0) + ir::constant(DType::BF16, 1)}}, Input<BFloat16>{{BFloat16(256)}});
  EXPECT_EQ(static_cast<float>(b[0]), 256);
}

TEST(Interpret, NoContraction) {
  const Scalar a = arg<float>(0), b = arg<float>(1), c = arg<float>(2);
  const float x = 1 + 0x1p-13f, y = 1 - 0x1p-13f;
  const auto run3 = [&](const Scalar& s) {
    return run<float>(Loops{.extents = {1}, .results = {s}}, Input<float>{{x}}, Input<float>{{y}}, Input<float>{{-1}})[0];
  };
  EXPECT_EQ(run3(a * b + c), 0);
  EXPECT_EQ(run3(ir::fma(a, b, c)), -0x1p-26f);
}

TEST(Interpret, MathFunctions) {
  EXPECT_THAT((unary<double, double>(Prim::Exp, {0, 1, -kInf})), ElementsAre(1, std::exp(1.0), 0));
  EXPECT_THAT((unary<double, double>(Prim::LGamma, {1, 5, -0.5})),
              ElementsAre(0, ::testing::DoubleEq(std::log(24.0)), ::testing::DoubleNear(1.2655121234846454, 1e-14)));
  EXPECT_THAT((unary<float, float>(Prim::Erfc, {0, 3})), ElementsAre(1.f, ::testing::FloatEq(2.209049699858544e-05f)));
  EXPECT_THAT((binary<double, double>(Prim::Pow, {2, -8, 0}, {10, 1.0 / 3, 0})),
              ElementsAre(1024, ::testing::NanSensitiveDoubleEq(NAN), 1));
  EXPECT_THAT((binary<double, double>(Prim::Atan2, {0, 1}, {-1, 0})),
              ElementsAre(::testing::DoubleEq(M_PI), ::testing::DoubleEq(M_PI / 2)));
}

TEST(Interpret, Bitcasts) {
  const auto bits = run<uint32_t>(Loops{.extents = {2}, .results = {ir::bitcast(arg<float>(0), DType::U32)}}, Input<float>{{1.f, -0.f}});
  EXPECT_THAT(bits, ElementsAre(0x3f800000u, 0x80000000u));
  const auto half =
      run<uint16_t>(Loops{.extents = {2}, .results = {ir::bitcast(arg<Half>(0), DType::U16)}}, Input<Half>{{Half(1), Half(-2)}});
  EXPECT_THAT(half, ElementsAre(0x3c00, 0xc000));
}

TEST(Interpret, GuardedLoadsDoNotTouchMemory) {
  const Loops loops{.extents = {4},
                    .results = {ir::load_if(0, DType::F32, {axis(0) * index(1000000)}, axis(0) > index(3), ir::constant(DType::F32, 8))}};
  std::vector<float> out(4);
  const HostOperand in{Layout::dense(DType::F32, {0}), nullptr}, to{Layout::dense(DType::F32, {4}), out.data()};
  interpret(loops, {}, std::span(&in, 1), std::span(&to, 1));
  EXPECT_THAT(out, ElementsAre(8, 8, 8, 8));
}

TEST(Interpret, AnIndexOutsideIsAnInternalError) {
  const Loops loops{.extents = {4}, .results = {ir::load(0, DType::F32, {axis(0) + index(1)})}};
  EXPECT_THROW(run<float>(loops, Input<float>{{1, 2, 3, 4}}), InternalError);
}

TEST(Interpret, OperandsLieAsTheyDo) {
  // A transposed, reversed view: element (i, j) is at 5 - (i + 2 j).
  std::vector<int32_t> x{0, 1, 2, 3, 4, 5}, out(6);
  const HostOperand in{{DType::I32, {2, 3}, Strides{-1, -2}}, x.data() + 5}, to{Layout::dense(DType::I32, {2, 3}), out.data()};
  interpret(Loops{.extents = {2, 3}, .results = {ir::load(0, DType::I32, {axis(0), axis(1)})}}, {}, std::span(&in, 1), std::span(&to, 1));
  EXPECT_THAT(out, ElementsAre(5, 3, 1, 4, 2, 0));
  dense_copy(in.layout, in.data, out.data());
  EXPECT_THAT(out, ElementsAre(5, 3, 1, 4, 2, 0));
}

TEST(Interpret, SymbolsAreBound) {
  const Dim b = Dim::symbol("b");
  const Loops loops{.extents = {b}, .results = {axis(0) * ir::extent(b)}};
  std::vector<int64_t> out(3);
  const HostOperand to{Layout::dense(DType::I64, {3}), out.data()};
  interpret(loops, {{"b", 3}}, {}, std::span(&to, 1));
  EXPECT_THAT(out, ElementsAre(0, 3, 6));
}

TEST(Interpret, Reductions) {
  const Scalar x = ir::load(0, DType::F32, {axis(0), axis(1)});
  const Loops sums{.extents = {2}, .reduction = ir::fold(Fold::Sum, {3}, x), .results = {ir::acc(0, DType::F32) * 10.0}};
  EXPECT_THAT((run<float>(sums, Input<float>{{1, 2, 3, 4, 5, 6}, {2, 3}})), ElementsAre(60, 150));
  const Loops empty{.extents = {2}, .reduction = ir::fold(Fold::Max, {0}, x), .results = {ir::acc(0, DType::F32)}};
  EXPECT_THAT((run<float>(empty, Input<float>{{}, {2, 0}})), ElementsAre(-kInf, -kInf));
  // Many outputs and few elements, and the other way round.
  const Loops wide{.extents = {1000}, .reduction = ir::fold(Fold::Sum, {2}, axis(0) + axis(1)), .results = {ir::acc(0, DType::I64)}};
  const auto w = run<int64_t>(wide);
  EXPECT_TRUE(w[0] == 1 && w[999] == 1999);
  const Loops all{
      .extents = {}, .reduction = ir::fold(Fold::Sum, {1000, 3}, axis(0) * index(10) + axis(1)), .results = {ir::acc(0, DType::I64)}};
  EXPECT_THAT((run<int64_t>(all)), ElementsAre(3 * 10 * 499500 + 1000 * 3));
}

TEST(Interpret, SumsRunInPlainOrder) {
  // 2^24 + 1 + 1 … stays at 2^24 in float, one by one.
  std::vector<float> x(1000, 1);
  x[0] = 0x1p24f;
  const Loops loops{
      .extents = {}, .reduction = ir::fold(Fold::Sum, {1000}, ir::load(0, DType::F32, {axis(0)})), .results = {ir::acc(0, DType::F32)}};
  EXPECT_THAT((run<float>(loops, Input<float>{x})), ElementsAre(0x1p24f));
}

TEST(Interpret, ALimitCutsTheFirstReduceAxis) {
  ir::Reduction r = ir::fold(Fold::Sum, {4, 2}, index(1) + axis(1) * index(0));
  r.limit = axis(0);
  EXPECT_THAT((run<int64_t>(Loops{.extents = {6}, .reduction = r, .results = {ir::acc(0, DType::I64)}})), ElementsAre(0, 2, 4, 6, 8, 8));
}

ir::Reduction argmax(Dims extents, const Scalar& element, const Scalar& place) {
  const DType t = element.dtype();
  const Scalar l = ir::acc(0, t), r = ir::right(0, t), li = ir::acc(1, DType::I64), ri = ir::right(1, DType::I64);
  const Scalar take = (r > l) | ((r == l) & (ri < li));
  return {std::move(extents),
          {element, place},
          {ir::identity_of(Fold::Max, t), index(INT64_MAX)},
          {ir::select(take, r, l), ir::select(take, ri, li)},
          {}};
}

TEST(Interpret, StatesOfTwoComponents) {
  const Loops loops{
      .extents = {2}, .reduction = argmax({4}, ir::load(0, DType::I8, {axis(0), axis(1)}), axis(1)), .results = {ir::acc(1, DType::I64)}};
  EXPECT_THAT((run<int64_t>(loops, Input<int8_t>{{3, 9, 9, 1, -5, -7, -5, -9}, {2, 4}})), ElementsAre(1, 0));
}

// Both results swap the accumulators: each must see the state before.
TEST(Interpret, CombinationsReadAllBeforeTheyWrite) {
  const Scalar a = ir::acc(0, DType::I64), b = ir::acc(1, DType::I64), r = ir::right(0, DType::I64);
  const ir::Reduction swap{{5}, {axis(0), index(0)}, {index(1), index(2)}, {b + r * index(0), a}, {}};
  EXPECT_THAT((run<int64_t>(Loops{.extents = {}, .reduction = swap, .results = {ir::acc(0, DType::I64)}})), ElementsAre(2));
}

TEST(Interpret, Scans) {
  const Scalar x = ir::load(0, DType::I32, {axis(0), axis(1)});
  const auto sums = [&](int a) {
    const Loops l{.extents = {2, 3}, .reduction = ir::fold(Fold::Sum, {}, x), .scan_axis = a, .results = {ir::acc(0, DType::I32)}};
    return run<int32_t>(l, Input<int32_t>{{1, 2, 3, 4, 5, 6}, {2, 3}});
  };
  EXPECT_THAT(sums(0), ElementsAre(1, 2, 3, 5, 7, 9));
  EXPECT_THAT(sums(1), ElementsAre(1, 3, 6, 4, 9, 15));
  const Loops places{.extents = {5},
                     .reduction = argmax({}, ir::load(0, DType::F32, {axis(0)}), axis(0)),
                     .scan_axis = 0,
                     .results = {ir::acc(1, DType::I64)}};
  EXPECT_THAT((run<int64_t>(places, Input<float>{{1, 3, 2, 3, 4}})), ElementsAre(0, 1, 1, 1, 4));
}

TEST(Interpret, LongScansCarryTheirStateAlong) {
  std::vector<int64_t> x(1000, 1);
  const Loops l{.extents = {1000},
                .reduction = ir::fold(Fold::Sum, {}, ir::load(0, DType::I64, {axis(0)})),
                .scan_axis = 0,
                .results = {ir::acc(0, DType::I64)}};
  const auto out = run<int64_t>(l, Input<int64_t>{x});
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<int64_t>(i) + 1);
}

TEST(Interpret, DeepExpressions) {
  Scalar s = arg<float>(0);
  for (int i = 0; i < 50000; ++i) s = s + 1.0;
  EXPECT_THAT((run<float>(Loops{.extents = {1}, .results = {s}}, Input<float>{{0}})), ElementsAre(50000));
}

}  // namespace
}  // namespace tandem::codegen
