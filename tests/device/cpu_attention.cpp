// Attention on the CPU without a matrix of all scores: against the formula in double, for any lengths and strides; the same bits on any
// number of threads; little memory.
#include <cmath>
#include <cstring>
#include <limits>

#include "base/text.hpp"
#include "cpu/kernels/attention_vectors.hpp"
#include "ops/table.hpp"
#include "product_support.hpp"

namespace tandem::testing {
namespace {

struct Sizes {
  int64_t batch, targets, sources, heads, key_heads, depth, value_depth;
};
std::string text(const Sizes& s) {
  return cat("batch ", s.batch, ", ", s.targets, " x ", s.sources, ", heads ", s.heads, "/", s.key_heads, ", depth ", s.depth, "/",
             s.value_depth);
}

// A matrix [batch, heads, targets, sources] of doubles, and rows of it.
class Logits {
 public:
  explicit Logits(const Sizes& s) : s_(s), values_(static_cast<size_t>(s.batch * s.heads * s.targets * s.sources)) {}
  double& at(int64_t b, int64_t h, int64_t t, int64_t i) {
    return values_[static_cast<size_t>(((b * s_.heads + h) * s_.targets + t) * s_.sources + i)];
  }

 private:
  Sizes s_;
  std::vector<double> values_;
};

// An element, wherever it lies. Axes of extent 1 and those that are missing at the front broadcast.
double element(const HostTensor& x, std::initializer_list<int64_t> index) {
  const Shape& s = x.layout.shape;
  const int64_t* at = index.end() - s.size();
  int64_t offset = x.first;
  for (size_t j = 0; j < s.size(); ++j) offset += s[j] == 1 ? 0 : at[j] * x.layout.strides[j];
  return number(x, offset);
}
double of_logit(const HostTensor& x, int64_t b, int64_t h, int64_t t, int64_t i) {
  return x.layout.shape.size() == 3 ? element(x, {b, t, i}) : element(x, {b, h, t, i});
}

struct Call {
  Sizes s;
  std::vector<HostTensor> in;  // query, key, value, and bias and mask if they are there
  bool is_causal = false;
  double scale = 0.3;
  bool bias_gradient = false;

  bool seen(int64_t b, int64_t h, int64_t t, int64_t i) const {
    if (is_causal && i > t) return false;
    return in.size() < 5 || of_logit(in[4], b, h, t, i) != 0;
  }
  Logits logits() const {
    Logits l(s);
    for_all([&](int64_t b, int64_t h, int64_t t, int64_t i) {
      double sum = 0;
      for (int64_t d = 0; d < s.depth; ++d) sum += element(in[0], {b, t, h, d}) * element(in[1], {b, i, h / (s.heads / s.key_heads), d});
      sum = sum * scale + (in.size() > 3 ? of_logit(in[3], b, h, t, i) : 0);
      l.at(b, h, t, i) = seen(b, h, t, i) ? sum : double{-2e38f};
    });
    return l;
  }
  template <class F> void for_all(const F& f) const {
    for_rows([&](int64_t b, int64_t h, int64_t t) {
      for (int64_t i = 0; i < s.sources; ++i) f(b, h, t, i);
    });
  }
  template <class F> void for_rows(const F& f) const {
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t h = 0; h < s.heads; ++h)
        for (int64_t t = 0; t < s.targets; ++t) f(b, h, t);
  }
};

ProductCall kernel_call(std::string_view op, const ir::Attrs& attrs, const std::vector<HostTensor>& in) {
  const ir::OpDef& row = ops::table().at(op);
  const ir::Attrs all = ir::complete_attrs(row, attrs);
  std::vector<ir::TensorType> types;
  std::vector<codegen::Layout> layouts;
  for (const HostTensor& x : in) {
    types.push_back({x.layout.dtype, to_dims(x.layout.shape)});
    layouts.push_back(x.layout);
  }
  ProductCall call{codegen::make_kernel(row, all, types, ir::infer(row, types, all), {}, layouts), in, {}, 1};
  call.expected = outputs_of(call.kernel);
  return call;
}

void put(HostTensor& t, int64_t element, double value) {
  const auto x = static_cast<float>(value);
  std::memcpy(t.bytes.data() + static_cast<size_t>(element) * sizeof x, &x, sizeof x);
}
void add_to(HostTensor& t, int64_t b, int64_t i, int64_t h, int64_t d, std::vector<double>& sums, double value) {
  const Shape& s = t.layout.shape;
  sums[static_cast<size_t>(((b * s[1] + i) * s[2] + h) * s[3] + d)] += value;
}

ProductCall forward(const Call& c) {
  ProductCall call = kernel_call("attention_parts", {{"scale", c.scale}, {"is_causal", c.is_causal}}, c.in);
  call.terms = c.s.depth + c.s.sources;
  Logits l = c.logits();
  c.for_rows([&](int64_t b, int64_t h, int64_t t) {
    double peak = -std::numeric_limits<double>::infinity(), total = 0;
    for (int64_t i = 0; i < c.s.sources; ++i) peak = std::max(peak, l.at(b, h, t, i));
    for (int64_t i = 0; i < c.s.sources; ++i) total += std::exp(l.at(b, h, t, i) - peak);
    for (int64_t d = 0; d < c.s.value_depth; ++d) {
      double sum = 0;
      for (int64_t i = 0; i < c.s.sources; ++i)
        sum += std::exp(l.at(b, h, t, i) - peak) / total * element(c.in[2], {b, i, h / (c.s.heads / c.s.key_heads), d});
      put(call.expected[0], ((b * c.s.targets + t) * c.s.heads + h) * c.s.value_depth + d, sum);
    }
    const int64_t row = (b * c.s.heads + h) * c.s.targets + t;
    put(call.expected[1], row, peak);
    put(call.expected[2], row, total);
  });
  return call;
}

// `rows` are gradient, peak, total and mean: any numbers, for the row says what is made of them.
ProductCall backward(const Call& c, const std::vector<HostTensor>& rows) {
  std::vector<HostTensor> in(c.in.begin(), c.in.begin() + 3);
  in.insert(in.end(), rows.begin(), rows.end());
  in.insert(in.end(), c.in.begin() + 3, c.in.end());
  ProductCall call =
      kernel_call("attention_gradient", {{"scale", c.scale}, {"is_causal", c.is_causal}, {"bias_gradient", c.bias_gradient}}, in);
  call.terms = c.s.depth + c.s.value_depth + c.s.sources + c.s.targets * (c.s.heads / c.s.key_heads);
  Logits l = c.logits();
  std::vector<std::vector<double>> sums;
  for (const HostTensor& o : call.expected) sums.emplace_back(static_cast<size_t>(element_count(o.layout.shape)));
  c.for_all([&](int64_t b, int64_t h, int64_t t, int64_t i) {
    const int64_t k = h / (c.s.heads / c.s.key_heads), row = (b * c.s.heads + h) * c.s.targets + t;
    const double weight = std::exp(l.at(b, h, t, i) - element(rows[1], {b, h, t})) / element(rows[2], {b, h, t});
    double by_weight = 0;
    for (int64_t d = 0; d < c.s.value_depth; ++d) {
      by_weight += element(rows[0], {b, t, h, d}) * element(c.in[2], {b, i, k, d});
      add_to(call.expected[2], b, i, k, d, sums[2], weight * element(rows[0], {b, t, h, d}));
    }
    const double by_logit = c.seen(b, h, t, i) ? weight * (by_weight - element(rows[3], {b, h, t})) : 0;
    for (int64_t d = 0; d < c.s.depth; ++d) {
      add_to(call.expected[0], b, t, h, d, sums[0], c.scale * by_logit * element(c.in[1], {b, i, k, d}));
      add_to(call.expected[1], b, i, k, d, sums[1], c.scale * by_logit * element(c.in[0], {b, t, h, d}));
    }
    if (c.bias_gradient) sums[3][static_cast<size_t>(row * c.s.sources + i)] = by_logit;
  });
  for (size_t o = 0; o < sums.size(); ++o)
    for (size_t e = 0; e < sums[o].size(); ++e) put(call.expected[o], static_cast<int64_t>(e), sums[o][e]);
  return call;
}

class Attention : public ::testing::Test {
 protected:
  using MakeTensor = HostTensor (*)(DType, const Shape&, std::mt19937_64&, Values);
  Call call(const Sizes& s, MakeTensor make = dense) {
    Call c{s, {}};
    for (const Shape& shape : {Shape{s.batch, s.targets, s.heads, s.depth}, Shape{s.batch, s.sources, s.key_heads, s.depth},
                               Shape{s.batch, s.sources, s.key_heads, s.value_depth}})
      c.in.push_back(make(DType::F32, shape, random_, Values::Small));
    return c;
  }
  HostTensor f(const Shape& s) { return dense(DType::F32, s, random_); }
  // Peaks near the largest logits, so that weights are neither all 0 nor enormous.
  std::vector<HostTensor> rows(const Call& c, MakeTensor make = dense) {
    const Shape each{c.s.batch, c.s.heads, c.s.targets};
    std::vector<HostTensor> r{make(DType::F32, {c.s.batch, c.s.targets, c.s.heads, c.s.value_depth}, random_, Values::Small)};
    ProductCall parts = forward(c);
    r.push_back(parts.expected[1]);
    r.push_back(parts.expected[2]);
    r.push_back(make(DType::F32, each, random_, Values::Small));
    return r;
  }
  void check(const Call& c) {
    SCOPED_TRACE(cat(text(c.s), c.is_causal ? ", causal" : "", ", ", c.in.size(), " operands"));
    check_entry(cpu::make_attention_parts, forward(c));
    check_entry(cpu::make_attention_gradient, backward(c, rows(c)));
  }

  std::mt19937_64 random_{7};
};

constexpr Sizes kSizes[] = {{1, 1, 1, 1, 1, 1, 1},      {2, 3, 5, 2, 2, 4, 3},       {1, 33, 17, 1, 1, 8, 8},    {2, 16, 128, 2, 1, 16, 16},
                            {1, 130, 129, 2, 2, 5, 33}, {1, 1, 300, 4, 2, 64, 64},   {1, 257, 300, 1, 1, 32, 7}, {1, 65, 1, 3, 3, 20, 20},
                            {3, 31, 64, 6, 2, 12, 40},  {1, 128, 2100, 1, 1, 16, 16}};

TEST_F(Attention, AllLengths) {
  for (const Sizes& s : kSizes) check(call(s));
}

TEST_F(Attention, Causal) {
  for (const Sizes& s : kSizes) {
    Call c = call(s);
    c.is_causal = true;
    check(c);
  }
}

TEST_F(Attention, BiasAndMaskOfAllShapes) {
  for (const Sizes& s : {Sizes{2, 35, 150, 4, 2, 8, 8}, {2, 20, 9, 2, 2, 4, 4}})
    for (const Shape& shape :
         {Shape{}, Shape{s.sources}, Shape{s.targets, 1}, Shape{s.targets, s.sources}, Shape{s.batch, s.targets, s.sources},
          Shape{s.batch, 1, 1, s.sources}, Shape{1, s.heads, s.targets, 1}, Shape{s.batch, s.heads, s.targets, s.sources}}) {
      Call c = call(s);
      c.in.push_back(f(shape));
      c.bias_gradient = true;
      check(c);
      c.in[3] = f({});
      c.in.push_back(dense(DType::Bool, shape, random_));
      check(c);
      c.is_causal = true;
      check(c);
    }
}

TEST_F(Attention, RowsThatSeeNothingAreMeans) {
  for (bool is_causal : {false, true}) {
    Call c = call({1, 40, 200, 2, 1, 8, 8});
    c.is_causal = is_causal;
    c.in.push_back(f({}));
    c.in.push_back(dense(DType::Bool, {40, 1}));  // nobody
    c.in[4].bytes[3] = std::byte{1};              // but target 3
    check(c);
  }
}

TEST_F(Attention, OperandsThatLieAnyhow) {
  for (int round = 0; round < 6; ++round) {
    Call c = call({2, 37, 140, 4, 2, 9, 20}, scattered);
    c.in.push_back(scattered(DType::F32, {2, 4, 37, 140}, random_));
    c.in.push_back(scattered(DType::Bool, {2, 1, 37, 140}, random_));
    check_entry(cpu::make_attention_parts, forward(c));
    check_entry(cpu::make_attention_gradient, backward(c, rows(c, scattered)));
  }
  // Rows that meet in the same sets of the cache.
  check(call({1, 40, 140, 16, 16, 64, 64}));
}

TEST_F(Attention, NothingToAttendTo) {
  for (const Sizes& s :
       {Sizes{1, 3, 0, 2, 2, 4, 4}, {0, 3, 5, 2, 2, 4, 4}, {1, 0, 5, 2, 2, 4, 4}, {1, 3, 5, 2, 2, 4, 0}, {1, 3, 5, 2, 2, 0, 4}})
    check(call(s));
}

TEST_F(Attention, SpecialValues) {
  const float inf = std::numeric_limits<float>::infinity();
  Call c = call({1, 40, 300, 1, 1, 4, 4});
  c.in.push_back(dense(DType::F32, {40, 300}));
  for (int64_t i = 0; i < 300; ++i) put(c.in[3], 2 * 300 + i, -inf);      // nothing but -infinity: NaN
  for (int64_t i = 0; i < 150; ++i) put(c.in[3], 5 * 300 + i, -inf);      // the first block, and a little more
  for (int64_t i = 0; i < 300; ++i) put(c.in[3], 7 * 300 + i, -3.4e38f);  // all the same: a mean
  for (int64_t i = 0; i < 300; ++i) put(c.in[3], 8 * 300 + i, -1e9f);     // the same, up to rounding
  put(c.in[3], 9 * 300 + 200, inf);                                       // NaN
  put(c.in[3], 10 * 300 + 299, std::numeric_limits<float>::quiet_NaN());  // NaN
  put(c.in[3], 11 * 300 + 250, 1e5f);                                     // one alone
  ProductCall expected = forward(c);
  for (int64_t row : {2, 9, 10})
    for (int64_t d = 0; d < 4; ++d) put(expected.expected[0], row * 4 + d, std::numeric_limits<double>::quiet_NaN());
  for (const std::string& isa : instruction_sets()) {
    const auto got = run_entry(cpu::make_attention_parts, expected, isa, 1);
    Allowed a = expected.allowed();
    a.abs = std::max(a.abs, 1e-4);  // logits of -1e9 have steps of 64
    for (int64_t row = 0; row < 40; ++row) {
      if (row == 8) continue;
      for (int64_t d = 0; d < 4; ++d) {
        const double x = number(got[0], row * 4 + d), y = number(expected.expected[0], row * 4 + d);
        EXPECT_TRUE((std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= a.abs + a.rel * std::abs(y)) << row << ": " << x << " and " << y;
      }
    }
    // Steps of 64 hide the products: every source has the same weight.
    for (int64_t d = 0; d < 4; ++d) {
      double mean = 0;
      for (int64_t i = 0; i < 300; ++i) mean += element(c.in[2], {0, i, 0, d}) / 300;
      EXPECT_NEAR(number(got[0], 8 * 4 + d), mean, 1e-5);
    }
  }
}

TEST_F(Attention, ScratchMemoryGrowsWithTheLengthNotItsSquare) {
  const Call c = call({1, 8192, 8192, 2, 2, 64, 64});
  std::vector<HostTensor> in = c.in;
  for (const Shape& s : {Shape{1, 8192, 2, 64}, Shape{1, 2, 8192}, Shape{1, 2, 8192}, Shape{1, 2, 8192}})
    in.push_back(dense(DType::F32, s));
  const size_t scores = sizeof(float) * 2 * 8192 * 8192, query = sizeof(float) * 8192 * 2 * 64;
  EXPECT_LT(scratch_of(cpu::make_attention_parts, kernel_call("attention_parts", {}, c.in).kernel), scores / 500);
  EXPECT_LT(scratch_of(cpu::make_attention_gradient, kernel_call("attention_gradient", {}, in).kernel), 8 * query + scores / 500);
}

// In units in the last place, against the C library's in double.
TEST_F(Attention, ExpIsCorrectToOneUnit) {
  std::vector<float> x, vector(1 << 16);
  for (size_t i = 0; i < vector.size(); ++i) x.push_back(-110.0f + 200.0f * static_cast<float>(i) / static_cast<float>(vector.size()));
  const float inf = std::numeric_limits<float>::infinity();
  for (size_t i = 0; const float special : {0.0f, -0.0f, -inf, inf, std::nanf(""), 88.72f, 88.73f, -87.4f, -103.9f, 1e-30f, -3e38f, 3e38f})
    x[i++] = special;
  for (const std::string& isa : instruction_sets()) {
    cpu::attention_set(isa == "avx512").exp(x.data(), static_cast<int64_t>(x.size()), vector.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = std::exp(static_cast<double>(x[i]));
      if (std::isnan(exact) || static_cast<float>(exact) == inf || static_cast<float>(exact) == 0) {
        EXPECT_EQ(std::isnan(vector[i]), std::isnan(exact)) << x[i];
        if (!std::isnan(exact)) {
          EXPECT_EQ(vector[i], static_cast<float>(exact)) << x[i];
        }
        continue;
      }
      const float near = static_cast<float>(exact);
      const double unit = std::nextafter(near, inf) - static_cast<double>(near);
      ASSERT_LE(std::abs(vector[i] - exact), unit) << isa << " exp(" << x[i] << ") = " << vector[i] << ", exactly " << exact;
    }
  }
}

}  // namespace
}  // namespace tandem::testing
