// Random numbers: the generator against its published test vectors, the distributions by their moments.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "evaluate.hpp"
#include "ops/table.hpp"

namespace tandem {
namespace {
using namespace ir;
using test::Array;

Array key_of(uint32_t a, uint32_t b) { return Array::of(DType::U32, {2}, {double(a), double(b)}); }

// One call on arrays.
std::vector<Array> run(std::string_view op, const std::vector<Array>& in, const Attrs& attrs) {
  Builder b(ops::table());
  std::vector<Value> operands;
  for (const Array& a : in) operands.push_back(b.input({a.dtype, to_dims(a.shape)}));
  return test::evaluate(ops::table(), b.finish(b.nodes(op, operands, attrs)), in);
}

Array numbers(std::vector<double> v, DType t = DType::F32) { return Array::of(t, {static_cast<int64_t>(v.size())}, v); }
Array number(double v, DType t = DType::F32) { return Array::of(t, {}, {v}); }

struct Moments {
  double mean, variance, skew;
};
Moments moments(const std::vector<double>& v) {
  const auto n = static_cast<double>(v.size());
  const double mean = std::accumulate(v.begin(), v.end(), 0.0) / n;
  double second = 0, third = 0;
  for (double x : v) {
    second += (x - mean) * (x - mean) / n;
    third += (x - mean) * (x - mean) * (x - mean) / n;
  }
  return {mean, second, third / std::pow(second, 1.5)};
}

constexpr int64_t kMany = 20000, kFew = 5000;  // kFew: for those that draw in a loop

// Mean and variance within five standard errors (of a distribution with tails not much heavier than the normal one's).
void expect_moments(const std::vector<double>& v, double mean, double variance) {
  const Moments m = moments(v);
  const double error = 5 / std::sqrt(static_cast<double>(v.size()));
  EXPECT_NEAR(m.mean, mean, error * std::sqrt(variance));
  EXPECT_NEAR(m.variance, variance, error * variance * 3);
}

std::vector<double> drawn(std::string_view op, const std::vector<Array>& parameters, const Attrs& more = {}, int64_t count = kMany) {
  std::vector<Array> in{key_of(7, 11)};
  in.insert(in.end(), parameters.begin(), parameters.end());
  Attrs attrs = more;
  attrs.set("shape", Dims{count});
  return run(op, in, attrs)[0].values();
}

// Random123's known answer (kat_vectors, philox 4x32, 10 rounds) for counter 0 under key 0.
TEST(Random, PhiloxKnownAnswers) {
  const Array zero = run("random_bits", {key_of(0, 0)}, {{"shape", Dims{4}}})[0];
  const uint32_t expected[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(zero.as<uint32_t>()[i], expected[i]);
}

// Counters count on, four words each, in row-major order whatever the shape.
TEST(Random, BitsFollowThePosition) {
  const Array flat = run("random_bits", {key_of(1, 2)}, {{"shape", Dims{24}}})[0];
  const Array cube = run("random_bits", {key_of(1, 2)}, {{"shape", Dims{2, 3, 4}}})[0];
  EXPECT_EQ(flat.values(), cube.values());
  const Array other = run("random_bits", {key_of(1, 3)}, {{"shape", Dims{24}}})[0];
  for (int64_t i = 0; i < 24; ++i) EXPECT_NE(flat.at(i), other.at(i));
}

TEST(Random, BitsAreBalanced) {
  const Array a = run("random_bits", {key_of(5, 6)}, {{"shape", Dims{kMany}}})[0];
  for (int bit = 0; bit < 32; ++bit) {
    int64_t ones = 0;
    for (int64_t i = 0; i < kMany; ++i) ones += (a.as<uint32_t>()[i] >> bit) & 1;
    EXPECT_NEAR(static_cast<double>(ones) / kMany, 0.5, 5 * 0.5 / std::sqrt(kMany)) << "bit " << bit;
  }
}

TEST(Random, KeysAreIndependent) {
  const Array keys = run("split_key", {key_of(1, 2)}, {{"count", int64_t{100}}})[0];
  std::set<std::pair<double, double>> distinct;
  for (int64_t i = 0; i < 100; ++i) distinct.insert({keys.at(2 * i), keys.at(2 * i + 1)});
  for (int i = 0; i < 100; ++i) {
    const Array folded = run("fold_in", {key_of(1, 2), Array::of(DType::I32, {}, {double(i - 50)})}, {})[0];
    distinct.insert({folded.at(0), folded.at(1)});
  }
  EXPECT_EQ(distinct.size(), 200u);
  const auto wide = run("fold_in", {key_of(1, 2), Array::of(DType::I64, {}, {5})}, {})[0].values();
  EXPECT_EQ(run("fold_in", {key_of(1, 2), Array::of(DType::U8, {}, {5})}, {})[0].values(), wide);
}

TEST(Random, Uniform) {
  for (DType t : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
    const auto v = drawn("random_uniform", {}, {{"dtype", t}});
    EXPECT_GE(*std::min_element(v.begin(), v.end()), 0);
    EXPECT_LT(*std::max_element(v.begin(), v.end()), 1);
    const double step = t == DType::BF16 ? 1.0 / 256 : t == DType::F16 ? 1.0 / 2048 : 0;
    expect_moments(v, 0.5 - step / 2, 1.0 / 12);
  }
  expect_moments(drawn("random_uniform", {number(-3), number(5)}), 1, 64.0 / 12);
  expect_moments(drawn("random_uniform", {Array::of(DType::I32, {}, {2})}), 1.5, 1.0 / 12);
}

TEST(Random, Normal) {
  for (DType t : {DType::F32, DType::F64}) {
    const auto v = drawn("random_normal", {}, {{"dtype", t}});
    expect_moments(v, 0, 1);
    EXPECT_NEAR(moments(v).skew, 0, 0.09);
    const auto beyond = std::count_if(v.begin(), v.end(), [](double x) { return std::fabs(x) > 1.959964; });
    EXPECT_NEAR(static_cast<double>(beyond) / kMany, 0.05, 0.008);
  }
  expect_moments(drawn("random_normal", {number(3), number(0.5)}), 3, 0.25);
}

TEST(Random, TruncatedNormal) {
  const auto v = drawn("truncated_normal", {number(1), number(2)});
  EXPECT_GE(*std::min_element(v.begin(), v.end()), -3);
  EXPECT_LE(*std::max_element(v.begin(), v.end()), 5);
  expect_moments(v, 1, 4 * 0.7737413);
}

TEST(Random, Integers) {
  const auto v = drawn("random_int", {number(-2, DType::I32), number(3, DType::I32)});
  for (int k = -2; k < 3; ++k) EXPECT_NEAR(static_cast<double>(std::count(v.begin(), v.end(), k)) / kMany, 0.2, 0.015) << k;
  EXPECT_EQ(std::count_if(v.begin(), v.end(), [](double x) { return x < -2 || x > 2; }), 0);
  const auto empty = drawn("random_int", {number(4, DType::I32), number(4, DType::I32)});
  EXPECT_EQ(std::count(empty.begin(), empty.end(), 4), kMany);
  const auto wide = drawn("random_int", {number(-9e18, DType::I64), number(9e18, DType::I64)}, {{"dtype", DType::I64}});
  EXPECT_NEAR(moments(wide).variance / (18e18 * 18e18 / 12), 1, 0.04);
}

TEST(Random, Bernoulli) {
  const auto v = drawn("bernoulli", {number(0.3)});
  EXPECT_NEAR(moments(v).mean, 0.3, 0.017);
}

TEST(Random, Categorical) {
  const std::vector<double> p{0.1, 0.0, 0.6, 0.3};
  Array logits = Array::of(DType::F32, {1, 4}, {std::log(0.1), -INFINITY, std::log(0.6), std::log(0.3)});
  const Array found = run("categorical", {key_of(3, 4), logits}, {{"samples", int64_t{20000}}})[0];
  EXPECT_EQ(found.shape, (Shape{1, 20000}));
  const auto v = found.values();
  for (int k = 0; k < 4; ++k)
    EXPECT_NEAR(static_cast<double>(std::count(v.begin(), v.end(), k)) / 20000, p[static_cast<size_t>(k)], 0.018) << k;
  const Array moved = run("categorical", {key_of(3, 4), Array::of(DType::F32, {4, 2, 3}, std::vector<double>(24, 0.0))},
                          {{"samples", int64_t{5}}, {"axis", int64_t{0}}})[0];
  EXPECT_EQ(moved.shape, (Shape{5, 2, 3}));
}

TEST(Random, ShuffleIsAPermutationOfSlices) {
  std::vector<double> v(60);
  std::iota(v.begin(), v.end(), 0);
  const Array found = run("shuffle", {key_of(1, 2), Array::of(DType::I32, {3, 20}, v)}, {{"axis", int64_t{1}}})[0];
  std::set<double> first;
  for (int64_t i = 0; i < 20; ++i) {
    first.insert(found.at(i));
    EXPECT_EQ(found.at(20 + i), found.at(i) + 20);
    EXPECT_EQ(found.at(40 + i), found.at(i) + 40);
  }
  EXPECT_EQ(first.size(), 20u);
  EXPECT_NE(found.values(), v);
}

TEST(Random, Dropout) {
  const Array x = Array::of(DType::F32, {200, 100}, std::vector<double>(20000, 2));
  const auto v = run("dropout", {key_of(1, 2), x}, {{"rate", 0.25}})[0].values();
  const auto dropped = std::count(v.begin(), v.end(), 0.0);
  EXPECT_NEAR(static_cast<double>(dropped) / 20000, 0.25, 0.016);
  EXPECT_EQ(std::count(v.begin(), v.end(), static_cast<double>(2 * static_cast<float>(1 / 0.75))), 20000 - dropped);
  const auto rows = run("dropout", {key_of(1, 2), x}, {{"rate", 0.5}, {"noise_shape", Dims{200, 1}}})[0].values();
  for (size_t r = 0; r < 200; ++r)
    for (size_t c = 1; c < 100; ++c) EXPECT_EQ(rows[r * 100 + c], rows[r * 100]);
  EXPECT_EQ(run("dropout", {key_of(1, 2), x}, {{"rate", 0.0}})[0].values(), x.values());
  const auto none = run("dropout", {key_of(1, 2), x}, {{"rate", 1.0}})[0].values();
  EXPECT_EQ(std::count(none.begin(), none.end(), 0.0), 20000);
}

TEST(Random, Gamma) {
  for (double alpha : {0.1, 0.5, 1.0, 2.5, 40.0}) expect_moments(drawn("gamma", {number(alpha)}, {}, kFew), alpha, alpha);
  const auto odd = run("gamma", {key_of(1, 2), numbers({-1, 0, NAN, INFINITY, 2})}, {{"shape", Dims{5}}})[0].values();
  EXPECT_TRUE(std::isnan(odd[0]) && std::isnan(odd[1]) && std::isnan(odd[2]));
  EXPECT_TRUE(std::isinf(odd[3]) && odd[4] > 0);
}

TEST(Random, Beta) {
  for (auto [a, b] : {std::pair{0.5, 0.5}, {2.0, 5.0}, {0.01, 0.02}}) {
    const auto v = drawn("beta", {number(a), number(b)}, {}, kFew);
    const double s = a + b;
    expect_moments(v, a / s, a * b / (s * s * (s + 1)));
    EXPECT_EQ(std::count_if(v.begin(), v.end(), [](double x) { return !(x >= 0 && x <= 1); }), 0);
  }
}

TEST(Random, Binomial) {
  struct Case {
    double n, p;
  };
  for (const Case c : {Case{8, 0.3}, {8, 0.9}, {1000, 0.001}, {30, 0.5}, {1000, 0.2}, {1000, 0.7}, {1e6, 0.25}}) {
    const auto v = drawn("binomial", {number(c.n), number(c.p)}, {}, kFew);
    expect_moments(v, c.n * c.p, c.n * c.p * (1 - c.p));
    EXPECT_EQ(std::count_if(v.begin(), v.end(), [&](double x) { return x != std::floor(x) || x < 0 || x > c.n; }), 0) << c.n << " " << c.p;
  }
  const auto odd =
      run("binomial", {key_of(1, 2), numbers({5, 5, -1, 5, 0}), numbers({0, 1, 0.5, 1.5, 0.5})}, {{"shape", Dims{5}}})[0].values();
  EXPECT_EQ(odd[0], 0);
  EXPECT_EQ(odd[1], 5);
  EXPECT_TRUE(std::isnan(odd[2]) && std::isnan(odd[3]));
  EXPECT_EQ(odd[4], 0);
}

// The whole distribution where it is small enough to count.
TEST(Random, BinomialProbabilities) {
  const auto v = drawn("binomial", {number(40), number(0.3)}, {}, kFew);  // mean 12: by transformed rejection
  for (int k = 6; k <= 18; ++k) {
    const double p = std::exp(std::lgamma(41) - std::lgamma(k + 1) - std::lgamma(41 - k) + k * std::log(0.3) + (40 - k) * std::log(0.7));
    EXPECT_NEAR(static_cast<double>(std::count(v.begin(), v.end(), k)) / kFew, p, 5 * std::sqrt(p / kFew)) << k;
  }
}

TEST(Random, Errors) {
  const auto error = [](std::string_view op, const std::vector<Array>& in, const Attrs& attrs) -> std::string {
    try {
      run(op, in, attrs);
    } catch (const UserError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(error("random_bits", {Array::of(DType::U32, {3}, {1, 2, 3})}, {{"shape", Dims{4}}}),
            "random_bits: the key must be uint32[2], it is uint32[3]");
  EXPECT_EQ(error("random_uniform", {key_of(1, 2)}, {{"shape", Dims{4}}, {"dtype", DType::I32}}),
            "random_uniform: dtype must be floating, it is int32");
  EXPECT_EQ(error("dropout", {key_of(1, 2), numbers({1, 2})}, {{"rate", 1.5}}), "dropout: rate must lie in 0..1, it is 1.5");
  EXPECT_EQ(error("random_normal", {key_of(1, 2), numbers({1, 2})}, {{"shape", Dims{3, 1}}}),
            "random_normal: operand 1 is float32[2], it does not broadcast to the shape [3,1]");
}

}  // namespace
}  // namespace tandem
