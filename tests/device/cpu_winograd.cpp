// Convolutions of 3x3 in fewer multiplications: what the interpreter gives, at every size and edge, and only where there is something to
// gain.
#include <gmock/gmock.h>

#include "conv_support.hpp"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Axis same(int64_t in) { return {in, 3, 1, 1, 1}; }
constexpr Axis valid(int64_t in) { return {in, 3}; }
constexpr Axis full(int64_t in) { return {in, 3, 1, 2, 2}; }  // as the gradient by the input of a valid one

void check_both(const Geometry& g, std::mt19937_64& random, Lies lies = Lies::Densely) {
  SCOPED_TRACE(g.text());
  check_entry(cpu::make_conv_winograd, forward(g, random, lies));
  check_entry(cpu::make_conv_weights_winograd, weights(g, random, lies));
}

TEST(Winograd, EvenAndOddSizes) {
  std::mt19937_64 random(1);
  check_both({9, 16, 18, {valid(6), valid(6)}}, random);
  check_both({3, 17, 16, {valid(12), same(10)}}, random);
  for (auto [height, width] : {std::pair<int64_t, int64_t>{7, 8}, {9, 11}, {12, 7}}) {
    check_both({4, 40, 33, {valid(height), valid(width)}}, random);
    check_both({3, 33, 40, {same(height), same(width)}}, random);
    check_both({3, 32, 32, {same(height), valid(width)}}, random);
  }
}

// Images of an odd size with zeros all around lie two by two on a canvas; the last one may be incomplete.
TEST(Winograd, ImagesThatShareTheirPadding) {
  std::mt19937_64 random(2);
  for (int64_t batch : {1, 2, 3, 4, 7, 9}) check_both({batch, 32, 32, {full(15), full(17)}}, random);
  for (int64_t batch : {2, 5}) {
    check_both({batch, 32, 32, {full(14), full(13)}}, random);
    check_both({batch, 32, 32, {full(13), full(14)}}, random);
  }
  check_both({4, 20, 32, {full(11), valid(13)}}, random);
}

TEST(Winograd, PaddingOfAnyKind) {
  std::mt19937_64 random(3);
  for (auto [low, high] : {std::pair<int64_t, int64_t>{0, 1}, {2, 0}, {0, 2}, {-1, 2}, {2, -2}, {3, 1}, {1, 4}})
    check_both({3, 32, 40, {{12, 3, 1, low, high}, {11, 3, 1, high, low}}}, random);
}

TEST(Winograd, ChannelsOfAllWidths) {
  std::mt19937_64 random(4);
  for (int64_t channels : {16, 23, 65})
    for (int64_t filters : {16, 17, 31, 48, 70, 130}) check_both({2, channels, filters, {same(8), valid(10)}}, random);
}

// More than one block a chunk, more than one row of windows a block, and parts of a sum that end within an image.
TEST(Winograd, LargeImagesAndManySmallOnes) {
  std::mt19937_64 random(5);
  check_both({1, 16, 16, {same(70), same(90)}}, random);
  check_both({1, 40, 16, {same(6), same(301)}}, random);
  check_both({70, 16, 16, {same(4), same(4)}}, random);
  check_both({2, 130, 70, {same(8), same(14)}}, random);
}

TEST(Winograd, AnEndSeesEveryElementOnce) {
  std::mt19937_64 random(6);
  for (const Axis& a : {same(9), same(8), valid(13), full(11)})
    for (int64_t filters : {32, 81}) {
      const Geometry g{4, 32, filters, {a, a}};
      SCOPED_TRACE(g.text());
      check_entry(cpu::make_conv_winograd, with_end(forward(g, random), random));
      check_entry(cpu::make_conv_weights_winograd, with_end(weights(g, random), random));
    }
}

// Batch, rows and columns may lie anyhow; channels side by side.
TEST(Winograd, OperandsThatLieAnyhow) {
  std::mt19937_64 random(7);
  int taken = 0;
  for (int round = 0; round < 60; ++round) {
    const Geometry g{4, 16, 20, {same(8), valid(8)}};
    const ProductCall there = forward(g, random, Lies::Anyhow), back = weights(g, random, Lies::Anyhow);
    const auto try_entry = [&](Make make, const ProductCall& call) {
      const std::string refusal = refusal_of(make, call.kernel);
      if (refusal.empty()) {
        ++taken;
        check_entry(make, call);
      } else {
        EXPECT_THAT(refusal, HasSubstr("side by side"));
      }
    };
    try_entry(cpu::make_conv_winograd, there);
    try_entry(cpu::make_conv_weights_winograd, back);
  }
  EXPECT_GT(taken, 10);
}

// The gradient by the input reads the kernel transposed: filters do not lie side by side.
TEST(Winograd, AKernelThatIsTurnedAround) {
  std::mt19937_64 random(8);
  const Geometry g{4, 24, 40, {full(11), full(11)}};
  HostTensor kernel = dense(DType::F32, {3, 3, 40, 24}, random);
  kernel.layout.shape = g.kernel();
  kernel.layout.strides = {-3 * 40 * 24, -40 * 24, 1, 24};
  kernel.first = 8 * 40 * 24;
  ir::Attrs attrs = g.attrs();
  check_entry(cpu::make_conv_winograd, product_call("general_conv", attrs, {dense(DType::F32, g.image(false), random), kernel}));
}

// Each element is transformed and summed in one order, whatever the registers' width.
TEST(Winograd, InstructionSetsAgreeToTheBit) {
  if (instruction_sets().size() < 2) GTEST_SKIP() << "only one instruction set here";
  std::mt19937_64 random(9);
  for (const Geometry& g : {Geometry{9, 20, 40, {same(13), same(14)}}, Geometry{9, 33, 26, {full(13), valid(14)}}})
    for (bool back : {false, true}) {
      SCOPED_TRACE(g.text());
      ProductCall call = back ? weights(g, random) : forward(g, random);
      const Make make = back ? cpu::make_conv_weights_winograd : cpu::make_conv_winograd;
      EXPECT_EQ(run_entry(make, call, "avx2", 1)[0].bytes, run_entry(make, call, "avx512", 2)[0].bytes);
    }
}

// Small whole numbers go through all transforms without rounding.
TEST(Winograd, WholeNumbersStayExact) {
  std::mt19937_64 random(10);
  const auto whole = [&](const Shape& s) {
    HostTensor t = dense(DType::F32, s);
    auto* x = reinterpret_cast<float*>(t.data());
    for (int64_t i = 0; i < element_count(s); ++i) x[i] = static_cast<float>(static_cast<int>(random() % 17) - 8);
    return t;
  };
  const Geometry g{4, 16, 16, {same(12), valid(10)}};
  ir::Attrs back = g.attrs();
  back.set("kernel", g.kernel_attr());
  ProductCall there = product_call("general_conv", g.attrs(), {whole(g.image(false)), whole(g.kernel())});
  ProductCall gradient = product_call("conv_kernel_gradient", back, {whole(g.image(false)), whole(g.image(true))});
  EXPECT_TRUE(near(run_entry(cpu::make_conv_winograd, there, "native", 2)[0], there.expected[0], {}));
  EXPECT_TRUE(near(run_entry(cpu::make_conv_weights_winograd, gradient, "native", 2)[0], gradient.expected[0], {}));
}

TEST(Winograd, RefusalsGiveTheirReason) {
  std::mt19937_64 random(11);
  const Axis a = same(12);
  const auto refused = [&](const Geometry& g, DType t = DType::F32) {
    const std::string there = refusal_of(cpu::make_conv_winograd, forward(g, random, Lies::Densely, t).kernel);
    EXPECT_EQ(there, refusal_of(cpu::make_conv_weights_winograd, weights(g, random, Lies::Densely, t).kernel));
    return there;
  };
  EXPECT_THAT(refused({4, 16, 16, {a, a}}), IsEmpty());
  EXPECT_THAT(refused({4, 16, 16, {a, a}}, DType::BF16), HasSubstr("takes float32, not bfloat16"));
  EXPECT_THAT(refused({4, 15, 16, {a, a}}), HasSubstr("too few channels, 15 to 16"));
  EXPECT_THAT(refused({4, 16, 8, {a, a}}), HasSubstr("too few channels, 16 to 8"));
  EXPECT_THAT(refused({4, 16, 16, {a, {12, 3, 2, 1, 1}}}), HasSubstr("3x3 in steps of 1"));
  EXPECT_THAT(refused({4, 16, 16, {a, {12, 3, 1, 1, 1, 2}}}), HasSubstr("3x3 in steps of 1"));
  EXPECT_THAT(refused({4, 16, 16, {a, {12, 3, 1, 1, 1, 1, 2}}}), HasSubstr("3x3 in steps of 1"));
  EXPECT_THAT(refused({4, 16, 16, {a, {12, 5, 1, 2, 2}}}), HasSubstr("3x3 in steps of 1"));
  EXPECT_THAT(refused({4, 16, 16, {a}}), HasSubstr("3x3 in steps of 1"));
  EXPECT_THAT(refused({4, 16, 16, {a, a, a}}), HasSubstr("3x3 in steps of 1"));
  EXPECT_THAT(refused({4, 16, 16, {{40, 3, 1, 1, 1}, valid(3)}}), HasSubstr("too little to gain"));  // one column
  EXPECT_THAT(refused({1, 16, 16, {a, same(4)}}), HasSubstr("too little to gain, 12 windows"));
  EXPECT_THAT(refused({8, 16, 16, {same(7), same(7)}}),
              HasSubstr("too little to gain, 128 windows"));  // transforms cost more than is saved
  EXPECT_THAT(refused({0, 16, 16, {a, a}}), HasSubstr("too little to gain"));
  EXPECT_THAT(refused({4, 16, 16, {valid(2), a}}), HasSubstr("too little to gain"));  // no output
  ir::Attrs grouped = Geometry{4, 64, 64, {a, a}}.attrs();
  grouped.set("groups", int64_t{4});
  EXPECT_THAT(
      refusal_of(cpu::make_conv_winograd,
                 product_call("general_conv", grouped, {dense(DType::F32, {4, 12, 12, 64}), dense(DType::F32, {3, 3, 16, 64})}).kernel),
      HasSubstr("one group, not 4"));
}

}  // namespace
}  // namespace tandem::testing
