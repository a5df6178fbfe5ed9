// Convolutions and their kernels' gradients from register tiles: every geometry gives what the interpreter gives.
#include <gmock/gmock.h>

#include "conv_support.hpp"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;
constexpr DType kTypes[] = {DType::F32, DType::F16, DType::BF16};  // that the tiles take; the result is float32

// In float32, and in one of the 16-bit types by turns.
void check_both(const Geometry& g, std::mt19937_64& random, Lies lies = Lies::Densely) {
  SCOPED_TRACE(g.text());
  static size_t turn = 0;
  for (DType t : {kTypes[0], kTypes[1 + turn++ % 2]}) {
    SCOPED_TRACE(name(t));
    check_entry(cpu::make_conv_forward, forward(g, random, lies, t));
    check_entry(cpu::make_conv_weights, weights(g, random, lies, t));
  }
}

TEST(Conv, Geometries) {
  std::mt19937_64 random(1);
  for (int64_t stride : {1, 2, 3})
    for (int64_t dilation : {1, 2})
      for (int64_t spread : {1, 2, 3})
        for (auto [low, high] : {std::pair<int64_t, int64_t>{0, 0}, {1, 1}, {2, 0}, {-1, 3}, {4, -2}}) {
          const Axis h{9, 3, stride, low, high, dilation, spread}, w{11, 2, 1, high, low, dilation, spread};
          check_both({2, 5, 18, {h, w}}, random);
          check_both({2, 5, 18, {w, h}}, random);
        }
}

TEST(Conv, OneAndThreeAxes) {
  std::mt19937_64 random(2);
  for (int64_t stride : {1, 2})
    for (int64_t spread : {1, 2}) {
      const Axis a{6, 3, stride, 1, 1, 1, spread}, b{5, 2, 1, 0, 1, 2, 1};
      check_both({3, 7, 20, {{40, 5, stride, 2, 2, 1, spread}}}, random);
      check_both({2, 3, 17, {a, b, a}}, random);
      check_both({2, 4, 5, {b, a, b}}, random);
    }
}

TEST(Conv, ChannelsOfAllWidths) {
  std::mt19937_64 random(3);
  const Axis same{8, 3, 1, 1, 1}, valid{8, 3};
  for (int64_t channels : {1, 3, 16, 33})
    for (int64_t filters : {1, 7, 8, 16, 31, 32, 64, 70}) {
      const int64_t batch = channels * filters < 8 ? 16 : 2;
      check_both({batch, channels, filters, {same, same}}, random);
      check_both({batch, channels, filters, {valid, valid}}, random);
    }
}

TEST(Conv, BandsAndManyImages) {
  std::mt19937_64 random(4);
  check_both({1, 16, 16, {{130, 3, 1, 1, 1}, {120, 3, 1, 1, 1}}}, random);  // more than fits into the cache
  check_both({1, 16, 24, {{130, 3, 2, 1, 1}, {120, 3}}}, random);
  check_both({70, 3, 8, {{8, 3, 1, 1, 1}, {8, 3, 1, 1, 1}}}, random);
  check_both({23, 4, 8, {{9, 1, 2}, {9, 1, 2}}}, random);
  check_both({2, 70, 300, {{6, 3, 1, 1, 1}, {6, 3, 1, 1, 1}}}, random);  // weights of which only few partial sums are kept
}

TEST(Conv, AnEndSeesEveryElementOnce) {
  std::mt19937_64 random(5);
  const Axis same{9, 3, 1, 1, 1}, strided{9, 3, 2, 1, 1}, spread{6, 3, 1, 1, 2, 1, 2};
  for (const Axis& a : {same, strided, spread})
    for (int64_t filters : {7, 32, 48}) {
      const Geometry g{5, 6, filters, {a, a}};
      SCOPED_TRACE(g.text());
      for (DType t : kTypes) {
        check_entry(cpu::make_conv_forward, with_end(forward(g, random, Lies::Densely, t), random));
        check_entry(cpu::make_conv_weights, with_end(weights(g, random, Lies::Densely, t), random));
      }
    }
  const Geometry bands{1, 16, 16, {{130, 3, 1, 1, 1}, {120, 3, 1, 1, 1}}};
  check_entry(cpu::make_conv_forward, with_end(forward(bands, random), random));
}

TEST(Conv, OperandsThatLieAnyhow) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 40; ++round) {
    const Axis a{8, 3, 1 + round % 2, 1, 1, 1, 1 + round / 2 % 2};
    check_both({3, 5, 18, {a, {7, 2}}}, random, Lies::Anyhow);
  }
}

// One chain of multiplications and additions an element, whatever the registers' width.
TEST(Conv, InstructionSetsAgreeToTheBit) {
  if (instruction_sets().size() < 2) GTEST_SKIP() << "only one instruction set here";
  std::mt19937_64 random(7);
  const Axis same{13, 3, 1, 1, 1};
  const Geometry g{9, 12, 40, {same, same}};
  for (bool back : {false, true}) {
    ProductCall call = back ? weights(g, random) : forward(g, random);
    const Make make = back ? cpu::make_conv_weights : cpu::make_conv_forward;
    EXPECT_EQ(run_entry(make, call, "avx2", 1)[0].bytes, run_entry(make, call, "avx512", 2)[0].bytes);
  }
}

TEST(Conv, RefusalsGiveTheirReason) {
  std::mt19937_64 random(8);
  const Axis a{9, 3};
  const auto refused = [](const ProductCall& call, Make make) { return refusal_of(make, call.kernel); };
  EXPECT_THAT(refused(forward({1, 1, 2, {a, a}}, random), cpu::make_conv_forward), HasSubstr("too small"));
  EXPECT_THAT(refused(forward({0, 8, 16, {a, a}}, random), cpu::make_conv_forward), HasSubstr("too small"));
  EXPECT_THAT(refused(weights({0, 8, 16, {a, a}}, random), cpu::make_conv_weights), HasSubstr("too small"));
  const Geometry g{2, 8, 16, {a, a}};
  ir::Attrs grouped = g.attrs();
  grouped.set("groups", int64_t{4});
  EXPECT_THAT(refused(product_call("general_conv", grouped, {dense(DType::F32, {2, 9, 9, 8}), dense(DType::F32, {3, 3, 2, 16})}),
                      cpu::make_conv_forward),
              HasSubstr("one group, not 4"));
  EXPECT_THAT(refused(product_call("general_conv", g.attrs(), {dense(DType::F64, g.image(false)), dense(DType::F64, g.kernel())}),
                      cpu::make_conv_forward),
              HasSubstr("float64"));
  EXPECT_THAT(refused(product_call("general_conv", g.attrs(), {dense(DType::F16, g.image(false)), dense(DType::F16, g.kernel())}),
                      cpu::make_conv_forward),
              HasSubstr("gives float32, not float16"));
}

}  // namespace
}  // namespace tandem::testing
