// Generators: repeatable, never the same twice, state of compiled functions.
#include <algorithm>
#include <cmath>

#include "frontend_support.hpp"

namespace tandem {
namespace {

TEST(Generator, TheSameSeedGivesTheSameNumbers) {
  Generator a(7), b(7), c(8);
  const F first = floats(a.uniform({5}));
  EXPECT_EQ(first, floats(b.uniform({5})));
  EXPECT_NE(first, floats(c.uniform({5})));
  EXPECT_NE(first, floats(a.uniform({5})));
}

TEST(Generator, GoesBackToAPlaceInTheStream) {
  Generator g(1);
  const Tensor place = g.state().value();
  const F first = floats(g.normal({3}));
  g.state().assign(place);
  EXPECT_EQ(floats(g.normal({3})), first);
}

TEST(Generator, DrawsNewNumbersAtEachCallOfAFunction) {
  Generator traced(3), eager(3);
  Function f([&](Tensor x) { return x + traced.normal({4}, 1.0, 2.0); });
  const Tensor zero = Tensor::scalar(0.f);
  const F first = floats(f(zero)), second = floats(f(zero));
  EXPECT_NE(first, second);
  expect_near(eager.normal({4}, 1.0, 2.0), first);
  expect_near(eager.normal({4}, 1.0, 2.0), second);
  EXPECT_EQ(f.trace_count(), 1u);
}

TEST(Generator, KeepsToItsRanges) {
  Generator g(5);
  for (const float x : floats(g.uniform({200}, -2, 3))) EXPECT_TRUE(x >= -2 && x <= 3) << x;
  for (const int64_t n : ints(g.integers({200}, 3, 6))) EXPECT_TRUE(n >= 3 && n < 6) << n;
  for (const float x : floats(g.truncated_normal({200}, 10, 0.5))) EXPECT_NEAR(x, 10, 1.0001);
  const F noise = floats(g.normal({20000}));
  double sum = 0, squares = 0;
  for (const float x : noise) {
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 20000, 0, 0.03);
  EXPECT_NEAR(squares / 20000, 1, 0.05);
  I order = ints(g.permutation(50));
  EXPECT_FALSE(std::ranges::is_sorted(order));
  std::ranges::sort(order);
  EXPECT_EQ(order, ints(Tensor::arange(50)));
  EXPECT_NEAR(mean(g.bernoulli({10000}, 0.3).cast(DType::F32)).item<float>(), 0.3, 0.03);
  EXPECT_EQ(floats(g.dropout(Tensor::ones({4}), 0.0)), (F{1, 1, 1, 1}));
}

}  // namespace
}  // namespace tandem
