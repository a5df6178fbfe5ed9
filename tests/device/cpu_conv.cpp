// Convolutions and their kernels' gradients from register tiles: every geometry gives what the interpreter gives.
#include <gmock/gmock.h>

#include "base/text.hpp"
#include "product_support.hpp"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

// One axis of a convolution; the same for all axes unless said otherwise.
struct Axis {
  int64_t in, kernel, stride = 1, low = 0, high = 0, dilation = 1, spread = 1;
  int64_t out() const {
    const int64_t span = in == 0 ? 0 : (in - 1) * spread + 1;
    return std::max<int64_t>(0, (span + low + high - ((kernel - 1) * dilation + 1)) / stride + 1);
  }
};

struct Geometry {
  int64_t batch, channels, filters;
  std::vector<Axis> axes;
  std::string text() const {
    std::string t = cat(batch, " images, ", channels, "->", filters);
    for (const Axis& a : axes)
      t += cat("; in ", a.in, " kernel ", a.kernel, " stride ", a.stride, " pad ", a.low, ",", a.high, " dilation ", a.dilation, ",",
               a.spread);
    return t;
  }
  ir::Attrs attrs() const {
    Ints strides, dilation, spread;
    Dims low, high;
    for (const Axis& a : axes) {
      strides.push_back(a.stride);
      dilation.push_back(a.dilation);
      spread.push_back(a.spread);
      low.emplace_back(a.low);
      high.emplace_back(a.high);
    }
    return {{"strides", strides}, {"low", low}, {"high", high}, {"dilation", dilation}, {"input_dilation", spread}, {"groups", int64_t{1}}};
  }
  Shape image(bool output) const {
    Shape s{batch};
    for (const Axis& a : axes) s.push_back(output ? a.out() : a.in);
    s.push_back(output ? filters : channels);
    return s;
  }
  Shape kernel() const {
    Shape s;
    for (const Axis& a : axes) s.push_back(a.kernel);
    s.push_back(channels);
    s.push_back(filters);
    return s;
  }
  Dims kernel_attr() const {
    Dims d;
    for (const Axis& a : axes) d.emplace_back(a.kernel);
    return d;
  }
};

enum class Lies { Densely, Anyhow };
HostTensor tensor(DType t, const Shape& s, std::mt19937_64& random, Lies lies) {
  return lies == Lies::Densely ? dense(t, s, random) : scattered(t, s, random);
}
constexpr DType kTypes[] = {DType::F32, DType::F16, DType::BF16};  // that the tiles take; the result is float32

ProductCall forward(const Geometry& g, std::mt19937_64& random, Lies lies = Lies::Densely, DType t = DType::F32) {
  ir::Attrs attrs = g.attrs();
  attrs.set("dtype", DType::F32);
  return product_call("general_conv", attrs, {tensor(t, g.image(false), random, lies), tensor(t, g.kernel(), random, lies)});
}

ProductCall weights(const Geometry& g, std::mt19937_64& random, Lies lies = Lies::Densely, DType t = DType::F32) {
  ir::Attrs attrs = g.attrs();
  attrs.set("kernel", g.kernel_attr());
  attrs.set("dtype", DType::F32);
  return product_call("conv_kernel_gradient", attrs, {tensor(t, g.image(false), random, lies), dense(t, g.image(true), random)});
}

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
