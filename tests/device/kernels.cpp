// Kernels of every kind and type on every device that computes, compared with the interpreter.
#include <cmath>

#include "base/text.hpp"
#include "support.hpp"

namespace tandem::testing {
namespace {

using ir::axis;
using ir::Fold;
using ir::Loops;
using ir::Prim;
using ir::Scalar;

Scalar index(int64_t v) { return ir::constant_int(DType::I64, v); }

class Kernels : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = missing(GetParam()); !why.empty()) GTEST_SKIP() << why;
    if (!device::get(GetParam()).info().executes) GTEST_SKIP() << "computes nothing";
  }
  void check(const Loops& loops, std::vector<HostTensor> in, Allowed allowed = {}) {
    const auto expected = interpreted(loops, in);
    const codegen::Kernel k = kernel_of(loops, in);
    const auto got = launched(device::get(GetParam()), k, in);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(near(got[i], expected[i], allowed)) << "output " << i << " of " << ir::str(loops);
  }
  std::mt19937_64 random_{7};
};

TEST_P(Kernels, ElementwiseInEveryType) {
  for (DType t : all_types())
    for (int64_t n : {0, 1, 7, 8, 15, 16, 17, 64, 1000}) {
      const Scalar x = ir::load(0, t, {axis(0)}), y = ir::load(1, t, {axis(0)});
      const Loops loops{.extents = {n}, .results = {t == DType::Bool ? x ^ y : x + y, ir::select(x == y, x, y), ir::cast(x, DType::F32)}};
      check(loops, {dense(t, {n}, random_), dense(t, {n}, random_)});
    }
}

TEST_P(Kernels, CastsBetweenAllTypes) {
  for (DType from : all_types())
    for (DType to : all_types()) {
      const Loops loops{.extents = {100}, .results = {ir::cast(ir::load(0, from, {axis(0)}), to)}};
      check(loops, {dense(from, {100}, random_, Values::Special)});
    }
}

TEST_P(Kernels, Broadcasting) {
  for (DType t : {DType::F32, DType::I16, DType::BF16}) {
    const Loops loops{.extents = {3, 5, 33},
                      .results = {ir::load(0, t, {axis(0), index(0), axis(2)}) * ir::load(1, t, {axis(1), index(0)}) + ir::load(2, t, {})}};
    check(loops, {dense(t, {3, 1, 33}, random_), dense(t, {5, 1}, random_), dense(t, {}, random_)});
  }
}

TEST_P(Kernels, OperandsThatLieAnyhow) {
  for (int round = 0; round < 40; ++round)
    for (DType t : {DType::F64, DType::I8, DType::F16}) {
      const Loops loops{.extents = {4, 3, 19},
                        .results = {ir::load(0, t, {axis(0), axis(1), axis(2)}) - ir::load(1, t, {axis(2), axis(0)})}};
      check(loops, {scattered(t, {4, 3, 19}, random_), scattered(t, {19, 4}, random_)});
    }
}

TEST_P(Kernels, FiveAxesTransposed) {
  const Loops loops{.extents = {2, 3, 4, 5, 6}, .results = {ir::load(0, DType::I32, {axis(4), axis(0), axis(3), axis(1), axis(2)})}};
  check(loops, {dense(DType::I32, {6, 2, 5, 3, 4}, random_)});
}

TEST_P(Kernels, ReductionsOfManyShapes) {
  struct Case {
    std::vector<int64_t> outputs, reduced;
  };
  const Case cases[] = {{{}, {1000}},     {{}, {100000}},  {{}, {0}},        {{5}, {0}},        {{0}, {5}},
                        {{1}, {1}},       {{300}, {7}},    {{7}, {300}},     {{4, 9}, {33}},    {{2}, {3, 50}},
                        {{}, {17, 4, 9}}, {{16}, {40000}}, {{3}, {65, 700}}, {{17, 3}, {2, 2}}, {{2, 3}, {}}};
  for (DType t : all_types())
    for (Fold how : {Fold::Sum, Fold::Product, Fold::Min, Fold::Max, Fold::And, Fold::Or})
      for (const Case& c : cases) {
        const bool bits = how == Fold::And || how == Fold::Or;
        if (is_float(t) ? bits : t == DType::Bool && !bits) continue;
        Shape shape;
        std::vector<Scalar> at;
        int64_t terms = 1;
        for (int64_t e : c.outputs) shape.push_back(e);
        for (int64_t e : c.reduced) shape.push_back(e), terms *= e;
        for (size_t i = 0; i < shape.size(); ++i) at.push_back(axis(static_cast<int>(i)));
        Scalar x = ir::load(0, t, at);
        const bool accumulates = how == Fold::Sum || how == Fold::Product;
        if (accumulates && (t == DType::F16 || t == DType::BF16)) x = ir::cast(x, DType::F32);
        if (how == Fold::Product && is_float(t)) x = ir::constant(x.dtype(), 1) + x * ir::constant(x.dtype(), 1e-3);
        const Loops loops{.extents = to_dims(Shape(c.outputs)),
                          .reduction = ir::fold(how, to_dims(Shape(c.reduced)), x),
                          .results = {ir::cast(ir::acc(0, x.dtype()), t)}};
        check(loops, {dense(t, shape, random_)}, accumulates ? sum_tolerance(t, terms) : Allowed{});
        if (HasFailure()) return;
      }
}

TEST_P(Kernels, ColumnsRowsAndAllSummed) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{1000, 300}, {3, 50000}, {50000, 3}, {129, 257}}) {
    const auto x = dense(DType::F32, {rows, columns}, random_);
    const Scalar by_row = ir::load(0, DType::F32, {axis(0), axis(1)}), by_column = ir::load(0, DType::F32, {axis(1), axis(0)});
    const Scalar a = ir::acc(0, DType::F32);
    check({.extents = {rows}, .reduction = ir::fold(Fold::Sum, {columns}, by_row), .results = {a}}, {x},
          sum_tolerance(DType::F32, columns));
    check({.extents = {columns}, .reduction = ir::fold(Fold::Sum, {rows}, by_column), .results = {a * 2.0}}, {x},
          sum_tolerance(DType::F32, rows));
    check({.extents = {}, .reduction = ir::fold(Fold::Sum, {rows, columns}, by_row), .results = {a}}, {x},
          sum_tolerance(DType::F32, rows * columns));
  }
}

// Blocks of a split reduction end at different places, also when nothing else tells them apart.
TEST_P(Kernels, LongSumsOfOneNumber) {
  for (int64_t rows : {1000, 40000})
    for (int64_t columns : {1, 16, 128, 150}) {
      const Loops loops{.extents = {1},
                        .reduction = ir::fold(Fold::Sum, {rows, columns}, ir::load(0, DType::I32, {})),
                        .results = {ir::acc(0, DType::I32)}};
      check(loops, {dense(DType::I32, {}, random_)});
    }
}

// Value and place of the largest element, the first of equal ones: a state of two components.
ir::Reduction argmax(Dims extents, const Scalar& element, const Scalar& place) {
  const DType t = element.dtype();
  const Scalar l = ir::acc(0, t), r = ir::right(0, t), li = ir::acc(1, DType::I32), ri = ir::right(1, DType::I32);
  const Scalar take = (r > l) | ((r == l) & (ri < li));
  return {std::move(extents),
          {element, ir::cast(place, DType::I32)},
          {ir::identity_of(Fold::Max, t), ir::constant_int(DType::I32, INT32_MAX)},
          {ir::select(take, r, l), ir::select(take, ri, li)},
          {}};
}

TEST_P(Kernels, ArgmaxInEveryType) {
  for (DType t : all_types())
    for (auto [outputs, reduced] : {std::pair<int64_t, int64_t>{5, 40}, {40, 5}, {1, 100000}, {300, 17}}) {
      if (t == DType::Bool) continue;
      const Loops loops{.extents = {outputs},
                        .reduction = argmax({reduced}, ir::load(0, t, {axis(0), axis(1)}), axis(1)),
                        .results = {ir::acc(1, DType::I32), ir::acc(0, t)}};
      check(loops, {dense(t, {outputs, reduced}, random_)});
    }
}

TEST_P(Kernels, ScansAlongEveryAxis) {
  for (DType t : {DType::I32, DType::F32, DType::F64, DType::U8})
    for (const Shape& shape : {Shape{7}, Shape{1}, Shape{0}, Shape{5, 33}, Shape{33, 5}, Shape{3, 20, 4}, Shape{70000}, Shape{2, 300, 40}})
      for (int a = 0; a < shape.rank(); ++a) {
        std::vector<Scalar> at;
        for (int i = 0; i < shape.rank(); ++i) at.push_back(axis(i));
        const Scalar x = ir::load(0, t, at);
        const Loops sums{.extents = to_dims(shape),
                         .reduction = ir::fold(Fold::Sum, {}, x),
                         .scan_axis = a,
                         .results = {ir::acc(0, t), ir::acc(0, t) - x}};
        check(sums, {dense(t, shape, random_)}, sum_tolerance(t, shape[static_cast<size_t>(a)]));
        Loops places{.extents = to_dims(shape), .reduction = argmax({}, x, axis(a)), .scan_axis = a, .results = {ir::acc(1, DType::I32)}};
        check(places, {dense(t, shape, random_)});
      }
}

TEST_P(Kernels, GuardedLoadsStayInside) {
  // Padding on both sides; what lies outside is never read: the operand is a slice whose neighbours are poisoned by what follows.
  for (DType t : {DType::F32, DType::Bool, DType::I64, DType::F16}) {
    const Scalar i = axis(0) - index(3), j = axis(1) - index(2);
    const Scalar inside = (i >= index(0)) & (i < index(5)) & (j >= index(0)) & (j < index(37));
    const Loops loops{.extents = {11, 45}, .results = {ir::load_if(0, t, {i, j}, inside, ir::constant(t, 1))}};
    check(loops, {dense(t, {5, 37}, random_)});
    // Nothing is inside, and there is nothing.
    const Loops nothing{.extents = {20},
                        .results = {ir::load_if(0, t, {axis(0) * index(1) << 40}, axis(0) < index(0), ir::constant(t, 1))}};
    check(nothing, {dense(t, {0}, random_)});
  }
}

TEST_P(Kernels, GuardsThatDoNotVaryAlongLanes) {
  const Scalar row = axis(0) - index(1);
  const Loops loops{
      .extents = {4, 40},
      .results = {ir::load_if(0, DType::F32, {row, axis(1)}, (row >= index(0)) & (row < index(2)), ir::cast(axis(1), DType::F32)),
                  ir::load_if(1, DType::F32, {row}, (row >= index(0)) & (row < index(2)), ir::constant(DType::F32, 7))}};
  check(loops, {dense(DType::F32, {2, 40}, random_), dense(DType::F32, {2}, random_)});
}

TEST_P(Kernels, Gathers) {
  for (DType t : all_types())
    for (DType index_type : {DType::I32, DType::I64}) {
      HostTensor at = dense(index_type, {50});
      for (int64_t i = 0; i < 50; ++i)
        ir::store_number(index_type, at.bytes.data() + i * static_cast<int64_t>(size_of(index_type)), static_cast<double>((i * 7) % 13));
      const Scalar i = ir::cast(ir::load(1, index_type, {axis(0)}), DType::I64),
                   j = ir::cast(ir::load(1, index_type, {axis(1)}), DType::I64);
      check({.extents = {50, 3}, .results = {ir::load(0, t, {i, axis(1)})}}, {dense(t, {13, 3}, random_), at});
      check({.extents = {3, 50}, .results = {ir::load(0, t, {axis(0), j})}}, {dense(t, {3, 13}, random_), at});
    }
}

TEST_P(Kernels, ManyOutputsAndNoInputs) {
  const Loops loops{.extents = {3, 21},
                    .results = {ir::cast(axis(0) * index(100) + axis(1), DType::I32), ir::cast(axis(1), DType::F32), axis(0) == axis(1)}};
  check(loops, {});
  check({.extents = {}, .results = {ir::constant(DType::F32, 2.5)}}, {});
}

TEST_P(Kernels, AnInputThatIsNotRead) {
  check({.extents = {9}, .results = {ir::cast(axis(0), DType::F32)}}, {dense(DType::F32, {9}, random_), dense(DType::I8, {}, random_)});
}

TEST_P(Kernels, FusedMultiplyAddRoundsOnceAndMulAddTwice) {
  const Scalar x = ir::load(0, DType::F32, {axis(0)}), y = ir::load(1, DType::F32, {axis(0)}), z = ir::load(2, DType::F32, {axis(0)});
  const Loops loops{.extents = {500}, .results = {ir::fma(x, y, z), x * y + z}};
  check(loops, {dense(DType::F32, {500}, random_), dense(DType::F32, {500}, random_), dense(DType::F32, {500}, random_)});
}

// A vector function may err by a few units in the last place, nowhere by more, and keeps the special values.
TEST_P(Kernels, MathFunctions) {
  for (DType t : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
    constexpr int64_t kCount = 4001;
    HostTensor wide = dense(t, {kCount}), unit = dense(t, {kCount}), usual = dense(t, {kCount});
    std::uniform_real_distribution<double> exponent(-40, 40), small(-1.2, 1.2), middle(-12, 12);
    for (int64_t i = 0; i < kCount; ++i) {
      const auto put = [&](HostTensor& x, double v) { ir::store_number(t, x.bytes.data() + i * static_cast<int64_t>(size_of(t)), v); };
      put(wide, (i % 2 ? 1 : -1) * std::exp2(exponent(random_)));
      put(unit, small(random_));
      put(usual, middle(random_));
    }
    const HostTensor special = dense(t, {kCount}, random_, Values::Special);
    const double unit_of_type = t == DType::F16 ? 0x1p-10 : t == DType::BF16 ? 0x1p-7 : t == DType::F32 ? 0x1p-23 : 0x1p-52;
    const double smallest = t == DType::F16 ? 0x1p-24 : t == DType::BF16 || t == DType::F32 ? 0x1p-126 : 0x1p-1022;
    for (int p = static_cast<int>(Prim::Sqrt); p <= static_cast<int>(Prim::LGamma); ++p)
      for (const HostTensor& x : {wide, unit, usual, special}) {
        const Loops loops{.extents = {kCount}, .results = {ir::make(static_cast<Prim>(p), {ir::load(0, t, {axis(0)})})}};
        SCOPED_TRACE(cat(ir::name(static_cast<Prim>(p)), " of ", name(t)));
        // lgamma crosses 0 between negative whole numbers. The libraries of drivers keep the digits of 1 there, not those of the result.
        const bool by_driver = p == static_cast<int>(Prim::LGamma) && !device::get(GetParam()).info().host_memory;
        const bool is_exact = p == static_cast<int>(Prim::Sqrt);
        check(loops, {x}, is_exact ? Allowed{} : Allowed{4 * unit_of_type, by_driver ? 4 * unit_of_type : smallest});
      }
    for (Prim p : {Prim::Pow, Prim::Atan2, Prim::Rem})
      for (const HostTensor& x : {wide, unit, special})
        for (const HostTensor& y : {unit, special}) {
          const Loops loops{.extents = {kCount}, .results = {ir::make(p, {ir::load(0, t, {axis(0)}), ir::load(1, t, {axis(0)})})}};
          SCOPED_TRACE(cat(ir::name(p), " of ", name(t)));
          check(loops, {x, y}, {p == Prim::Rem ? 0 : 4 * unit_of_type, p == Prim::Rem ? 0 : smallest});
        }
  }
}

// I9: what an element becomes must not depend on where it stands: alone, in a full vector or in a tail.
TEST_P(Kernels, PlaceDoesNotChangeBits) {
  for (DType t : {DType::F32, DType::F64, DType::BF16}) {
    const HostTensor x = dense(t, {37}, random_);
    const auto loops = [&](int64_t n, int64_t shift) {
      const Scalar v = ir::load(0, t, {axis(0) + index(shift)});
      return Loops{.extents = {n}, .results = {ir::tanh(ir::exp(v) * v) + ir::sin(v)}};
    };
    std::vector<HostTensor> in{x};
    device::Device& d = device::get(GetParam());
    const auto all = launched(d, kernel_of(loops(37, 0), in), in);
    for (int64_t shift = 0; shift < 37; ++shift)
      for (int64_t n : {int64_t{1}, int64_t{5}}) {
        if (shift + n > 37) continue;
        const auto part = launched(d, kernel_of(loops(n, shift), in), in);
        const auto width = static_cast<int64_t>(size_of(t));
        EXPECT_TRUE(std::equal(part[0].bytes.begin(), part[0].bytes.end(), all[0].bytes.begin() + shift * width))
            << name(t) << " at " << shift;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Kernels, ::testing::ValuesIn(device::names()), [](const auto& p) { return test_name(p.param); });

}  // namespace
}  // namespace tandem::testing
