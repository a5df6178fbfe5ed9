// Indexing, with NumPy's results written down.
#include "frontend_support.hpp"

namespace tandem {
namespace {

Tensor cube() { return Tensor::arange(24).reshape({2, 3, 4}); }

TEST(Index, NumbersTakeAnAxisAway) {
  const Tensor x = cube();
  EXPECT_EQ(x[1].shape(), (Shape{3, 4}));
  EXPECT_EQ(ints(x[1][2]), (I{20, 21, 22, 23}));
  EXPECT_EQ(ints(x[-1](-1, -1)), (I{23}));
  EXPECT_EQ(ints(x(0, 1, 2)), (I{6}));
  EXPECT_EQ(x(0, 1, 2).rank(), 0);
}

TEST(Index, SlicesClipAndStep) {
  const Tensor x = Tensor::arange(10);
  EXPECT_EQ(ints(x[Slice(2, 5)]), (I{2, 3, 4}));
  EXPECT_EQ(ints(x[Slice(-3, _)]), (I{7, 8, 9}));
  EXPECT_EQ(ints(x[Slice(_, -8)]), (I{0, 1}));
  EXPECT_EQ(ints(x[Slice(1, 8, 3)]), (I{1, 4, 7}));
  EXPECT_EQ(ints(x[Slice(_, _, -3)]), (I{9, 6, 3, 0}));
  EXPECT_EQ(ints(x[Slice(7, 2, -2)]), (I{7, 5, 3}));
  EXPECT_EQ(ints(x[Slice(100, _, -4)]), (I{9, 5, 1}));
  EXPECT_EQ(ints(x[Slice(-100, 3)]), (I{0, 1, 2}));
  EXPECT_EQ(x[Slice(5, 2)].size(), 0);
  EXPECT_EQ(x[Slice(2, 5, -1)].size(), 0);
  EXPECT_EQ(x[Slice(20, 30)].size(), 0);
  EXPECT_EQ(ints(x[Slice()]), ints(x));
}

TEST(Index, MixesWithEllipsisAndNewAxes) {
  const Tensor x = cube();
  EXPECT_EQ(ints(x(ellipsis, 0)), (I{0, 4, 8, 12, 16, 20}));
  EXPECT_EQ(x(ellipsis, 0).shape(), (Shape{2, 3}));
  EXPECT_EQ(x(newaxis, ellipsis, newaxis, 1).shape(), (Shape{1, 2, 3, 1}));
  EXPECT_EQ(ints(x(Slice(), 1, Slice(_, _, -2))), (I{7, 5, 19, 17}));
  EXPECT_EQ(x(1, ellipsis).shape(), (Shape{3, 4}));
  EXPECT_EQ(x(0, 0, 0, ellipsis).rank(), 0);
}

TEST(Index, TensorsGather) {
  const Tensor x = cube(), rows = Tensor::of({2, 0, -1});
  EXPECT_EQ(x(Slice(), rows).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(ints(x(0, rows, 1)), (I{9, 1, 9}));
  EXPECT_EQ(ints(x[Tensor::of({1})](0, 0)), (I{12, 13, 14, 15}));
  EXPECT_EQ(ints(x(Tensor::of({0, 1}), Tensor::of({2, 0}), Tensor::of({3, 1}))), (I{11, 13}));
  // Neighbours stand where they stood; others go to the front.
  EXPECT_EQ(x(Slice(), Tensor::of({0, 1}), Tensor::of({2, 0})).shape(), (Shape{2, 2}));
  EXPECT_EQ(ints(x(Slice(), Tensor::of({0, 1}), Tensor::of({2, 0}))), (I{2, 4, 14, 16}));
  EXPECT_EQ(x(Tensor::of({0, 1, 1}), Slice(), Tensor::of({2, 0, 0})).shape(), (Shape{3, 3}));
  EXPECT_EQ(ints(x(Tensor::of({0, 1}), Slice(), Tensor::of({2, 0}))), (I{2, 6, 10, 12, 16, 20}));
  EXPECT_EQ(x(Tensor::of({{0}, {1}}), Tensor::of({0, 2})).shape(), (Shape{2, 2, 4}));
}

TEST(Index, WorksOnSymbols) {
  Function f([](Tensor x) { return std::tuple(x[0], x[-1], x[Slice(1, _)], x[Slice(_, _, -1)], x[Slice(0, 3)], x(Slice(-2, _), 1)); },
             {Spec{DType::I32, {Dim::symbol("b"), 2}}});
  for (const int64_t b : {1, 3, 5}) {
    const Tensor x = Tensor::arange(2 * b).reshape({b, 2});
    const auto [first, last, rest, reversed, three, column] = f(x);
    EXPECT_EQ(ints(first), ints(x[0]));
    EXPECT_EQ(ints(last), ints(x[-1]));
    EXPECT_EQ(ints(rest), ints(x[Slice(1, _)]));
    EXPECT_EQ(ints(reversed), ints(x[Slice(_, _, -1)]));
    EXPECT_EQ(ints(three), ints(x[Slice(0, 3)]));
    EXPECT_EQ(ints(column), ints(x(Slice(-2, _), 1)));
  }
  EXPECT_EQ(f.trace_count(), 1u);
}

TEST(Index, HasGradients) {
  Tape tape;
  const Tensor x = Tensor::arange(0.f, 6.f, 1.f);
  tape.watch(x);
  const Tensor y = x[Slice(_, _, -2)] * Tensor::of({1.f, 2.f, 3.f});
  const Tensor z = x[Tensor::of({0, 0, 5})];
  const Tensor g = tape.gradients({y, z}, {x})[0];
  EXPECT_EQ(floats(g), (F{2, 3, 0, 2, 0, 2}));
}

}  // namespace
}  // namespace tandem
