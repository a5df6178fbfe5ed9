// The canonical form: what varies between launches is a parameter, and what is the same code has the same key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <set>

#include "codegen/interpret.hpp"
#include "codegen/kernel.hpp"

namespace tandem::codegen {
namespace {

using ir::axis;
using ir::Fold;
using ir::Loops;
using ir::Scalar;
using ::testing::ElementsAre;

Scalar index(int64_t v) { return ir::constant_int(DType::I64, v); }

LoopKernel canon(const Loops& loops, const std::vector<Layout>& in) {
  std::vector<DType> out;
  for (const Scalar& r : loops.results) out.push_back(r.dtype());
  return canonical(loops, {}, in, out);
}
Loops add(const Dims& extents) {
  std::vector<Scalar> at;
  for (size_t i = 0; i < extents.size(); ++i) at.push_back(axis(static_cast<int>(i)));
  return {.extents = extents, .results = {ir::load(0, DType::F32, at) + ir::load(1, DType::F32, at)}};
}
Layout dense(const Shape& s, DType t = DType::F32) { return Layout::dense(t, s); }

TEST(Canonical, ContiguousAxesBecomeOne) {
  const LoopKernel k = canon(add({4, 5, 6}), {dense({4, 5, 6}), dense({4, 5, 6})});
  EXPECT_THAT(k.extents, ElementsAre(120));
  EXPECT_EQ(k.loops.results[0]->in[0]->in.size(), 1u);
  EXPECT_EQ(ir::str(k.loops.results[0]), "add(load0(axis0):f32, load1(axis0):f32)");
}

TEST(Canonical, AxesOfExtentOneVanish) {
  EXPECT_THAT(canon(add({1, 7, 1}), {dense({1, 7, 1}), dense({1, 7, 1})}).extents, ElementsAre(7));
  EXPECT_TRUE(canon(add({1, 1}), {dense({1, 1}), dense({1, 1})}).extents.empty());
}

TEST(Canonical, AnOperandThatLiesOtherwiseKeepsAxesApart) {
  const Layout turned{DType::F32, {4, 5}, Strides{1, 4}};
  EXPECT_THAT(canon(add({4, 5}), {dense({4, 5}), turned}).extents, ElementsAre(4, 5));
  const Layout repeated{DType::F32, {4, 5}, Strides{0, 1}};
  EXPECT_THAT(canon(add({4, 5}), {dense({4, 5}), repeated}).extents, ElementsAre(4, 5));
  const Layout all{DType::F32, {4, 5}, Strides{0, 0}};
  EXPECT_THAT(canon(add({4, 5}), {dense({4, 5}), all}).extents, ElementsAre(20));
}

TEST(Canonical, NumbersOfAProgramAreParameters) {
  const auto plus = [](const Scalar& number) {
    return canon({.extents = {9}, .results = {ir::load(0, number.dtype(), {axis(0)}) + number}}, {dense({9}, number.dtype())});
  };
  const auto single = [](float x) { return ir::program_constant(DType::F32, std::bit_cast<uint32_t>(x)); };
  const auto twice = [](double x) { return ir::program_constant(DType::F64, std::bit_cast<uint64_t>(x)); };
  EXPECT_EQ(plus(single(2.5f)).key, plus(single(-7e30f)).key);
  EXPECT_EQ(plus(twice(2.5)).key, plus(twice(1e-300)).key);
  EXPECT_NE(plus(single(2.5f)).key, plus(single(1.f)).key) << "what instructions know stays a number";
  EXPECT_NE(plus(ir::constant(DType::F32, 2.5)).key, plus(ir::constant(DType::F32, 3.5)).key) << "a formula's own numbers are code";

  const float x[3] = {1, 2, 3};
  float y[3] = {};
  const void* in[] = {x};
  void* out[] = {y};
  const LoopKernel k = canon({.extents = {3}, .results = {ir::load(0, DType::F32, {axis(0)}) * single(2.5f)}}, {dense({3})});
  interpret(k, std::array{const_cast<void*>(in[0])}, out);
  EXPECT_THAT(y, ElementsAre(2.5f, 5.f, 7.5f));
}

TEST(Canonical, NothingWalksAroundAnEmptyAxis) {
  const int64_t many = 16'000'000'000;
  const Layout turned{DType::F32, {many, 0}, Strides{1, 7}};
  EXPECT_THAT(canon(add({many, 0}), {dense({many, 0}), turned}).extents, ElementsAre(0, 0));
  const ir::Reduction sum = ir::fold(Fold::Sum, {many, 0}, ir::load(0, DType::F32, {axis(1), axis(2)}));
  const LoopKernel k = canon({.extents = {3}, .reduction = sum, .results = {ir::acc(0, DType::F32)}}, {turned});
  EXPECT_THAT(k.extents, ElementsAre(3));
  EXPECT_THAT(k.reduce_extents, ElementsAre(0, 0));
}

TEST(Canonical, OneKeyServesAllSizes) {
  const LoopKernel a = canon(add({4, 5}), {dense({4, 5}), dense({4, 5})}), b = canon(add({100}), {dense({100}), dense({100})});
  EXPECT_EQ(a.key, b.key);
  EXPECT_NE(a.params, b.params);
  const auto sliced = [](int64_t step, int64_t n) {
    return canon({.extents = {n}, .results = {ir::load(0, DType::F32, {axis(0) * index(step) + index(5)})}}, {dense({1000})});
  };
  EXPECT_EQ(sliced(2, 30).key, sliced(7, 20).key);
  EXPECT_NE(sliced(2, 30).key, sliced(1, 30).key);  // contiguous loads are other code
}

TEST(Canonical, KeysTellWhatIsOtherCode) {
  std::set<std::string> keys;
  const Scalar x = ir::load(0, DType::F32, {axis(0)});
  const Loops plain{.extents = {9}, .results = {x}};
  keys.insert(canon(plain, {dense({9})}).key);
  keys.insert(canon(plain, {dense({9}), dense({9})}).key);  // the output stands behind two inputs
  keys.insert(canon({.extents = {9}, .results = {ir::load(0, DType::F64, {axis(0)})}}, {dense({9}, DType::F64)}).key);
  keys.insert(canon({.extents = {9}, .results = {x, x}}, {dense({9})}).key);
  ir::Reduction sum = ir::fold(Fold::Sum, {9}, ir::load(0, DType::F32, {axis(1)}));
  const Scalar a = ir::acc(0, DType::F32);
  keys.insert(canon({.extents = {3}, .reduction = sum, .results = {a}}, {dense({9})}).key);
  sum.limit = axis(0);
  keys.insert(canon({.extents = {3}, .reduction = sum, .results = {a}}, {dense({9})}).key);
  keys.insert(canon({.extents = {9}, .reduction = ir::fold(Fold::Sum, {}, x), .scan_axis = 0, .results = {a}}, {dense({9})}).key);
  EXPECT_EQ(keys.size(), 7u);
}

TEST(Canonical, AxesThatAreUsedAsNumbersKeepTheirIdentity) {
  const Loops loops{.extents = {4, 5}, .results = {ir::cast(axis(1), DType::F32) + ir::load(0, DType::F32, {axis(0), axis(1)})}};
  EXPECT_THAT(canon(loops, {dense({4, 5})}).extents, ElementsAre(4, 5));
}

TEST(StepAlong, IsKnownWhateverTheOtherAxesDo) {
  const ir::Scalar i = axis(0), j = axis(1);
  EXPECT_EQ(step_along(i * index(12) + j + index(3), 0), 12);
  EXPECT_EQ(step_along(i * index(12) + j + index(3), 1), 1);
  EXPECT_EQ(step_along(i * index(12) + j + index(3), 2), 0);
  EXPECT_EQ(step_along(index(7) - (-j), 1), 1);
  EXPECT_EQ(step_along(i / index(2) * index(5) + j, 1), 1);
  EXPECT_EQ(step_along(ir::cast(ir::load(0, DType::I32, {i}), DType::I64) * index(5) + j, 1), 1);
}

TEST(StepAlong, IsNothingWhereItVaries) {
  EXPECT_FALSE(step_along(axis(0) * axis(1), 1));
  EXPECT_FALSE(step_along(axis(0) / index(2), 0));
  EXPECT_FALSE(step_along(ir::cast(ir::load(0, DType::I32, {axis(0)}), DType::I64), 0));
}

TEST(SharedByFour, IsAPositionThatCountsElements) {
  const Scalar p = ir::axis(0) * index(12) + ir::axis(1), words = (p >> 2) * index(7);
  const std::vector<Scalar> one{words + (p & 3)}, along_another{(ir::axis(0) >> 2) + ir::axis(1)}, by_eight{p >> 3};
  const std::vector<Scalar> two{(p >> 2) + ((p + index(4)) >> 2)};
  EXPECT_EQ(shared_by_four(one, 1).get(), p.get());
  EXPECT_FALSE(shared_by_four(one, 0));
  EXPECT_FALSE(shared_by_four(along_another, 1));
  EXPECT_FALSE(shared_by_four(by_eight, 1));
  EXPECT_FALSE(shared_by_four(two, 1));
}

// --- long reductions in two stages ---------------------------------------------------------------------------------------------

thread_local const Loops* current = nullptr;
Kernel kernel_of(const Loops& loops, const std::vector<Layout>& in) {
  static const ir::OpDef row{
      .name = "test", .sig = "(xs: own...) -> custom", .doc = "", .loops = [](const ir::OpCall&, std::span<const ir::TensorType>) {
        return *current;
      }};
  std::vector<ir::TensorType> types, out;
  for (const Layout& o : in) types.push_back({o.dtype, to_dims(o.shape)});
  for (const Scalar& r : loops.results) out.push_back({r.dtype(), loops.extents});
  current = &loops;
  return make_kernel(row, {}, types, out, {}, in);
}

TEST(Split, LongReductionsWithFewResultsHaveTwoStages) {
  for (auto [outputs, reduced, stages] : {std::tuple<int64_t, int64_t, size_t>{1, 100, 1},
                                          {1, 100000, 2},
                                          {7, 33333, 2},
                                          {300, 100000, 1},
                                          {0, 100000, 1},
                                          {1, 32768, 2},
                                          {3, 1, 1}}) {
    const Loops loops{.extents = {outputs},
                      .reduction = ir::fold(Fold::Sum, {reduced}, axis(0) + axis(1)),
                      .results = {ir::acc(0, DType::I64) * index(2)}};
    const Kernel k = kernel_of(loops, {});
    ASSERT_EQ(k.stages.size(), stages) << outputs << " of " << reduced;
    std::vector<int64_t> out(static_cast<size_t>(outputs), -1);
    std::vector<std::byte> scratch(k.partial_bytes());
    void* to = out.data();
    if (stages == 1) {
      interpret(k.stages[0], {}, std::span(&to, 1));
    } else {
      EXPECT_EQ(k.partials.size(), 1u);
      EXPECT_EQ(k.partial_bytes() % kAlignment, 0u);
      void* partial = scratch.data();
      interpret(k.stages[0], {}, std::span(&partial, 1));
      interpret(k.stages[1], std::span(&partial, 1), std::span(&to, 1));
    }
    for (int64_t i = 0; i < outputs; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], 2 * (i * reduced + reduced * (reduced - 1) / 2));
  }
}

}  // namespace
}  // namespace tandem::codegen
