// Softmax and the losses on it: at the ends of the range, and for classes that are none.
#include "ops_calls.hpp"

namespace tandem {
namespace {
using namespace ir;
using namespace test::calls;
using test::Array;

TEST(OpsSoftmax, SoftmaxAtTheEnds) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  expect_near(run("softmax", {of({3}, {1e4, 1e4, -1e4})}).values(), {0.5, 0.5, 0});
  expect_near(run("softmax", {of({3}, {-inf, 0, 0})}).values(), {0, 0.5, 0.5});
  expect_near(run("softmax", {of({2}, {-inf, -inf})}).values(), {nan, nan});
  expect_near(run("log_softmax", {of({2}, {0, 200})}).values(), {-200, 0});
  expect_near(run("softmax", {of({2, 2}, {0, 0, 0, std::log(3.0)})}, {{"axis", 0}}).values(), {0.5, 0.25, 0.5, 0.75});
  expect_near(run("sparsemax", {of({4}, {0.5, 0.3, -1, 0.4})}).values(), {13 / 30.0, 7 / 30.0, 0, 10 / 30.0});
  EXPECT_EQ(types_of("softmax", {f32({b, 0})}), "float32[b,0]");
  EXPECT_EQ(run("softmax", {Array(DType::F32, {2, 0})}).shape, (Shape{2, 0}));
  EXPECT_NE(error_of("softmax", {f32({b, 3})}, {{"axis", 2}}).find("softmax: "), std::string::npos);
}

TEST(OpsSoftmax, CategoricalCrossentropy) {
  const Array target = of({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
  const Array output = of({3, 3}, {.9, .05, .05, .05, .89, .06, .05, .01, .94});
  const Doubles want{0.10536, 0.11653, 0.06188};  // of Keras's documentation
  expect_near(run("categorical_crossentropy", {target, output}).values(), want, 1e-5);
  expect_near(run("categorical_crossentropy", {target, target}).values(), {1e-7, 1e-7, 1e-7}, 1e-6);
  const Array classes = of({3}, {0, 1, 2}, DType::I32), column = of({3, 1}, {0, 1, 2}, DType::I32);
  expect_near(run("sparse_categorical_crossentropy", {classes, output}).values(), want, 1e-5);
  expect_near(run("sparse_categorical_crossentropy", {column, output}).values(), want, 1e-5);
  // Probabilities are made to sum to 1.
  expect_near(run("categorical_crossentropy", {target, of({3, 3}, Doubles(9, 2))}).values(), Doubles(3, std::log(3.0)));
  const Array logits = of({1, 3}, {1000, 0, -1000});
  expect_near(run("sparse_categorical_crossentropy", {of({1}, {2}, DType::I32), logits}, {{"from_logits", true}}).values(), {2000});
  EXPECT_EQ(error_of("categorical_crossentropy", {f32({b, 3}), f32({b, 4})}),
            "categorical_crossentropy: shapes differ, target [b,3] and output [b,4]");
  EXPECT_EQ(error_of("sparse_categorical_crossentropy", {i32({b, 3}), f32({b, 4})}),
            "sparse_categorical_crossentropy: target [b,3] must be output [b,4] without axis 1 ([b])");
}

TEST(OpsSoftmax, UnknownClassesGiveNaNAndNoGradient) {
  const Array classes = of({3}, {-1, 1, 3}, DType::I32), logits = of({3, 3}, Doubles(9, 0));
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  expect_near(run("sparse_softmax_crossentropy", {classes, logits}).values(), {nan, std::log(3.0), nan});
  const double third = 1 / 3.0;
  expect_near(gradients("sparse_softmax_crossentropy", {classes, logits}, of({3}, {1, 1, 1}))[0].values(),
              {0, 0, 0, third, -2 * third, third, 0, 0, 0});
}

TEST(OpsSoftmax, BinaryCrossentropy) {
  const Array target = of({4}, {0, 1, 1, 0}), logits = of({4}, {-1000, 1000, 0, 3});
  expect_near(run("binary_crossentropy", {target, logits}, {{"from_logits", true}}).values(), {0, 0, std::log(2.0), 3.0485873}, 1e-6);
  // The slope at 0 lies in the middle of the kinks of the formula.
  expect_near(gradients("sigmoid_crossentropy", {target, logits}, of({4}, {1, 1, 1, 1}))[1].values(), {0, 0, -0.5, 0.9525741}, 1e-6);
  expect_near(run("binary_crossentropy", {of({2}, {1, 0}), of({2}, {0.25, 0.25})}).values(), {std::log(4.0), -std::log(0.75)});
  expect_near(run("binary_crossentropy", {of({1}, {1}), of({1}, {0})}).values(), {-std::log(1e-7)}, 1e-5);
}

}  // namespace
}  // namespace tandem
