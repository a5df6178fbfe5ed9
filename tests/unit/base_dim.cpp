// Dims: canonical form, arithmetic, text and back, evaluation, broadcasting, unification.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <thread>

#include <tandem/dim.hpp>
#include <tandem/error.hpp>

#include "error_of.hpp"

namespace tandem {
namespace {

const Dim b = Dim::symbol("b"), c = Dim::symbol("c"), n = Dim::symbol("n");
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max(), kSmallest = std::numeric_limits<int64_t>::min();

TEST(Dim, NumbersAreNumbers) {
  EXPECT_TRUE(Dim(3).is_const());
  EXPECT_TRUE((Dim(3) + 4).is(7));
  EXPECT_TRUE((b - b).is(0));
  EXPECT_TRUE((b * 0).is(0));
  EXPECT_FALSE(b.is_const());
  EXPECT_FALSE(b.is(0));
  EXPECT_EQ(Dim().str(), "0");
  EXPECT_THROW(b.value(), InternalError);
}

TEST(Dim, EqualPolynomialsCompareEqual) {
  EXPECT_EQ((b + 1) * (b - 1), b * b - 1);
  EXPECT_EQ((b + c) * (b + c), b * b + c * c + 2 * b * c);
  EXPECT_EQ(b + c + n, n + (c + b));
  EXPECT_EQ(((b + c) * n).hash(), (c * n + n * b).hash());
  EXPECT_FALSE(b == c);
  EXPECT_FALSE(b == b + 1);
  EXPECT_FALSE(b * b == b);
  EXPECT_EQ(Dim::symbol("b"), b);
}

TEST(Dim, Text) {
  EXPECT_EQ((b * 49).str(), "b*49");
  EXPECT_EQ((floor_div(b, 2) + 1).str(), "floor(b/2)+1");
  EXPECT_EQ((1 - b).str(), "-b+1");
  EXPECT_EQ((b * c * b * -3 + c - 7).str(), "-b*b*c*3+c-7");
  EXPECT_EQ(floor_div(b * c + 1, 3).str(), "floor((b*c+1)/3)");
  EXPECT_EQ(floor_div(b, c * n).str(), "floor(b/(c*n))");
  EXPECT_EQ(floor_div(b, c + 1).str(), "floor(b/(c+1))");
  EXPECT_EQ(min(5, b).str(), "min(b,5)");
  EXPECT_EQ(max(c, min(b, n)).str(), "max(c,min(b,n))");
  EXPECT_EQ(str(Dims{b, 3}), "[b,3]");
  EXPECT_EQ(str(Dims{}), "[]");
}

TEST(Dim, TextIsReadBack) {
  const Dims all = {0,
                    -7,
                    kLargest,
                    kSmallest,
                    b,
                    b * kSmallest,
                    b * kLargest - 1,
                    1 - b,
                    b * kSmallest + kSmallest,
                    (b + c) * (n - 4),
                    floor_div(b * 3 + c, 7) * n - 1,
                    ceil_div(b, c + 2),
                    floor_div(b * b, c * n),
                    min(b, max(c - 1, floor_div(n, 2))),
                    max(max(b, c), n)};
  for (const Dim& d : all) EXPECT_EQ(parse_dim(d.str()), d) << d.str();
  EXPECT_EQ(parse_dim(" ( b + 1 ) * 2 "), b * 2 + 2);
  EXPECT_EQ(parse_dim("min + floor*max"), Dim::symbol("min") + Dim::symbol("floor") * Dim::symbol("max"));
}

TEST(Dim, TextThatIsNoDim) {
  EXPECT_EQ(error_of([] { parse_dim("b+"); }), "dim: cannot read 'b+': expected a number, a name or '(' at position 2");
  EXPECT_EQ(error_of([] { parse_dim("b c"); }), "dim: cannot read 'b c': expected an operator or the end at position 2");
  EXPECT_EQ(error_of([] { parse_dim("99999999999999999999"); }), "dim: a number in '99999999999999999999' does not fit in 64 bits");
  for (const char* text : {"", "(b", "b)", "floor(b)", "floor(b/0)", "min(b)", "sin(b)", "b/2", "2b", "-", "min(b,", "é"})
    EXPECT_THROW(parse_dim(text), UserError) << text;
  EXPECT_THROW(parse_dim(std::string_view("b\0", 2)), UserError);
  EXPECT_THROW(parse_dim(std::string(100000, '(')), UserError);
}

TEST(Dim, SymbolNames) {
  EXPECT_EQ(Dim::symbol("_batch2").str(), "_batch2");
  for (const char* name : {"", "2b", "b c", "b*2", "b-", "ü"}) EXPECT_THROW(Dim::symbol(name), UserError) << name;
  EXPECT_EQ(error_of([] { Dim::symbol("2b"); }), "dim: '2b' is no name for a symbol (letters, digits and _, not starting with a digit)");
}

TEST(Dim, Eval) {
  const Bindings v = {{"b", 7}, {"c", 3}};
  EXPECT_EQ((b * b - c * 2 + 1).eval(v), 44);
  EXPECT_EQ(floor_div(b, c).eval(v), 2);
  EXPECT_EQ(ceil_div(b, c).eval(v), 3);
  EXPECT_EQ(floor_div(c - b, 3).eval(v), -2);
  EXPECT_EQ(error_of([&] { (b + n).eval(v); }), "dim: the symbol 'n' has no value");
  EXPECT_EQ(error_of([&] { floor_div(b, c - 3).eval(v); }), "dim: b divided by c-3 = 0, which must be positive");
  EXPECT_EQ(error_of([&] { (b * b * b).eval({{"b", 10000000}}); }), "dim: the value of b*b*b does not fit in 64 bits");
  EXPECT_EQ(error_of([&] { b.eval({{"b", -1}}); }), "dim: the symbol 'b' is -1, an extent must not be negative");
}

TEST(Dim, NumbersDoNotWrap) {
  EXPECT_THROW(Dim(kLargest) + 1, UserError);
  EXPECT_THROW(Dim(kSmallest) - 1, UserError);
  EXPECT_THROW(Dim(kLargest) * 2, UserError);
  EXPECT_THROW(b * kLargest + b, UserError);
  EXPECT_THROW(b * kLargest * kLargest, UserError);
  EXPECT_EQ(error_of([] { product({kLargest, 2}); }), "dim: 9223372036854775807*2 does not fit in 64 bits");
  EXPECT_TRUE(ceil_div(kLargest, 2).is(kLargest / 2 + 1));
  EXPECT_TRUE(ceil_div(-7, 2).is(-3));
  EXPECT_TRUE(floor_div(-7, 2).is(-4));
}

TEST(Dim, CollectsSymbolsOnceInOrder) {
  std::vector<std::string> names = {"n"};
  (floor_div(c, 2) * 3 + b * c + min(n, 9)).collect_symbols(names);
  EXPECT_EQ(names, (std::vector<std::string>{"n", "b", "c"}));
}

TEST(Dim, DividesExactly) {
  Dim q;
  EXPECT_TRUE(divides_exactly(b * 49, 49, q));
  EXPECT_EQ(q, b);
  EXPECT_TRUE(divides_exactly(b * b - c * c, b + c, q));
  EXPECT_EQ(q, b - c);
  EXPECT_TRUE(divides_exactly((b * 2 + c * 3 + 1) * (floor_div(b, 2) - n), floor_div(b, 2) - n, q));
  EXPECT_EQ(q, b * 2 + c * 3 + 1);
  EXPECT_TRUE(divides_exactly(0, b, q));
  EXPECT_TRUE(q.is(0));
  EXPECT_TRUE(divides_exactly(12, -4, q));
  EXPECT_TRUE(q.is(-3));
  q = 5;
  EXPECT_FALSE(divides_exactly(b * 49 + 1, 49, q));
  EXPECT_FALSE(divides_exactly(b, c, q));
  EXPECT_FALSE(divides_exactly(b, b * b, q));
  EXPECT_FALSE(divides_exactly(b, 0, q));
  EXPECT_FALSE(divides_exactly(kSmallest, -1, q));
  EXPECT_TRUE(q.is(5)) << "a failed division leaves the quotient alone";
}

TEST(Dim, FloorDivSimplifies) {
  EXPECT_EQ(floor_div(b * 4, 4), b);
  EXPECT_EQ(floor_div(b * 4 + 3, 4), b);
  EXPECT_EQ(floor_div(b * 4 - 1, 4), b - 1);
  EXPECT_EQ(floor_div(b + 5, 2), floor_div(b + 1, 2) + 2);
  EXPECT_EQ(floor_div(b * 5, 2), b * 2 + floor_div(b, 2));
  EXPECT_EQ(floor_div(b * 4 + 3, 6), floor_div(b * 2 + 1, 3));
  EXPECT_EQ(floor_div(floor_div(b, 2), 2), floor_div(b, 4));
  EXPECT_EQ(floor_div(floor_div(b - 3, 2) + 1 - 3, 2), floor_div(b - 7, 4));
  EXPECT_EQ(floor_div(b * c + b, b), c + 1);
  EXPECT_EQ(floor_div(b * c + 1, c), b + floor_div(1, c));
  EXPECT_EQ(floor_div(b * 4 + min(n, 3), 4), b) << "the remainder is known to lie in 0..3";
  EXPECT_EQ(ceil_div(b * 4, 4), b);
  EXPECT_EQ(ceil_div(b * (c + 1), c + 1), b);
  EXPECT_EQ(ceil_div(b * 4 + 1, 4), b + 1);
  EXPECT_EQ(error_of([] { floor_div(b, 0); }), "dim: b divided by 0, which must be positive");
  EXPECT_THROW(floor_div(4, -2), UserError);
}

TEST(Dim, MinAndMaxDecideWhatTheyCan) {
  EXPECT_EQ(min(b, b), b);
  EXPECT_EQ(min(b, b + 1), b);
  EXPECT_EQ(max(b, b + c), b + c);
  EXPECT_TRUE(min(b, 0).is(0));
  EXPECT_EQ(max(b, 0), b);
  EXPECT_EQ(max(b + 1, 1), b + 1);
  EXPECT_EQ(min(min(b, c), n), min(n, min(c, b)));
  EXPECT_EQ(min(min(b, 5), 3), min(b, 3));
  EXPECT_EQ(max(min(b, 5), 7), Dim(7));
  EXPECT_EQ(min(max(b, 2), 1), Dim(1));
  EXPECT_FALSE(min(b, 3).is_const());
  EXPECT_FALSE(max(b - 1, 0) == b - 1);
}

TEST(Dim, RandomExpressionsKeepTheirValue) {
  std::mt19937 random(1);
  auto pick = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  const Bindings v = {{"b", 5}, {"c", 3}, {"n", 0}};
  struct Pair {
    Dim dim;
    int64_t value;
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<Pair> pool = {{b, 5}, {c, 3}, {n, 0}, {pick(9) - 4, 0}};
    pool.back().value = pool.back().dim.value();
    for (int step = 0; step < 6; ++step) {
      const Pair x = pool[static_cast<size_t>(pick(static_cast<int>(pool.size())))];
      const Pair y = pool[static_cast<size_t>(pick(static_cast<int>(pool.size())))];
      const int64_t k = pick(5) + 1;
      auto floored = [](int64_t p, int64_t q) { return p / q - (p % q < 0); };
      switch (pick(7)) {
        case 0: pool.push_back({x.dim + y.dim, x.value + y.value}); break;
        case 1: pool.push_back({x.dim - y.dim, x.value - y.value}); break;
        case 2:
          if (std::abs(x.value) < 1000 && std::abs(y.value) < 1000) pool.push_back({x.dim * y.dim, x.value * y.value});
          break;
        case 3: pool.push_back({floor_div(x.dim, k), floored(x.value, k)}); break;
        case 4: pool.push_back({ceil_div(x.dim, k), -floored(-x.value, k)}); break;
        case 5: pool.push_back({min(x.dim, y.dim), std::min(x.value, y.value)}); break;
        case 6: pool.push_back({max(x.dim, y.dim), std::max(x.value, y.value)}); break;
      }
    }
    for (const Pair& p : pool) {
      ASSERT_EQ(p.dim.eval(v), p.value) << p.dim.str();
      const Dim again = parse_dim(p.dim.str());
      ASSERT_EQ(again, p.dim) << p.dim.str();
      ASSERT_EQ(again.hash(), p.dim.hash());
    }
  }
}

TEST(Dim, Lists) {
  EXPECT_EQ(product({b, 7, 7}), b * 49);
  EXPECT_TRUE(product({}).is(1));
  EXPECT_EQ(to_dims(Shape{2, 3}), (Dims{2, 3}));
  EXPECT_EQ(bind({b, c + 1}, {{"b", 2}, {"c", 4}}), (Shape{2, 5}));
}

TEST(Dim, Broadcast) {
  EXPECT_EQ(broadcast(Dims{b, 1, 3}, Dims{n, 1}), (Dims{b, n, 3}));
  EXPECT_EQ(broadcast(Dims{b, 3}, Dims{b, 1}), (Dims{b, 3}));
  EXPECT_EQ(broadcast(Dims{}, Dims{b}), (Dims{b}));
  EXPECT_EQ(error_of([] { broadcast(Dims{b, 3}, Dims{4}); }), "broadcast: shapes [b,3] and [4] do not fit (3 != 4 at axis -1)");
  EXPECT_EQ(error_of([] { broadcast(Dims{b, 3}, Dims{c, 3}); }),
            "broadcast: shapes [b,3] and [c,3] do not fit, b and c at axis -2 need not be equal\n"
            "  hint: use one symbol for extents that are the same");
  EXPECT_THROW(broadcast(Dims{b}, Dims{5}), UserError);
}

TEST(Dim, UnifyBindsAndChecks) {
  Bindings v;
  unify({b, 3, b}, Shape{4, 3, 4}, v, "x");
  EXPECT_EQ(v, (Bindings{{"b", 4}}));
  unify({b * c, c, b + 1}, Shape{20, 5, 5}, v, "y");
  EXPECT_EQ(v.at("c"), 5);
  Bindings w;
  unify({b * c + 2, c * 7 - 1}, Shape{14, 27}, w, "z");
  EXPECT_EQ(w, (Bindings{{"b", 3}, {"c", 4}}));
  Bindings zero;
  unify({b}, Shape{0}, zero, "empty");
  EXPECT_EQ(zero.at("b"), 0);
  unify({}, Shape{}, zero, "scalar");
}

TEST(Dim, UnifyErrors) {
  auto attempt = [](Dims dims, Shape shape, Bindings v) { return error_of([&] { unify(dims, shape, v, "f: input 0"); }); };
  EXPECT_EQ(attempt({b, 3}, {4, 5}, {}), "f: input 0: shape [4,5] does not fit [b,3] (3 != 5 at axis 1)");
  EXPECT_EQ(attempt({b, 3}, {4}, {}), "f: input 0: shape [4] has 1 dimensions, [b,3] has 2");
  EXPECT_EQ(attempt({b}, {4}, {{"b", 2}}), "f: input 0: shape [4] does not fit [b] (b = 2 != 4 at axis 0)");
  EXPECT_EQ(attempt({b, b}, {4, 5}, {}), "f: input 0: shape [4,5] does not fit [b,b] (b = 4 != 5 at axis 1)");
  EXPECT_EQ(attempt({b * 49}, {50}, {}), "f: input 0: shape [50] does not fit [b*49] (no b makes b*49 = 50 at axis 0)");
  EXPECT_EQ(attempt({b + 5}, {3}, {}), "f: input 0: shape [3] does not fit [b+5] (no b makes b+5 = 3 at axis 0)");
  EXPECT_EQ(attempt({floor_div(b, 2)}, {3}, {}),
            "f: input 0: the shape [3] for [floor(b/2)] leaves the symbol 'b' open (floor(b/2) = 3 at axis 0)\n"
            "  hint: give one input an axis that is just 'b'");
  EXPECT_NE(attempt({b * c}, {6}, {}), "no error");
  EXPECT_NE(attempt({b * b}, {9}, {}), "no error");
}

TEST(Dim, ThreadsMayShareValues) {
  const Dim shared = floor_div(b * 3 + c, 4) * n;
  std::vector<std::thread> threads;
  std::vector<int64_t> results(4);
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 200; ++k) {
        const Dim copy = shared + 1;
        results[i] += (copy - shared).value() + (copy == shared ? 1 : 0);
      }
    });
  for (std::thread& t : threads) t.join();
  for (int64_t r : results) EXPECT_EQ(r, 200);
}

}  // namespace
}  // namespace tandem
