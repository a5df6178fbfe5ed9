// Graphs as text, and back.
#include "ir/print.hpp"

#include <gtest/gtest.h>

#include <random>

#include "ir/parse.hpp"
#include "ir/verify.hpp"
#include "ir_rows.hpp"

namespace tandem::ir {
namespace {

using test::f32;
using test::sym;

std::string parse_error(std::string_view text) {
  return error_of<UserError>([&] { parse(test::table(), text); });
}

TEST(Print, ReadsWell) {
  Builder b(test::table());
  const Value x = b.input(f32({sym("b"), 784}), "x");
  const Value w = b.input(f32({784}));
  b.location = {"src/model.cpp", 42};
  const Value y = b.op("multiply", {x, w});
  b.location = {};
  const Value z = b.op("sum", {y}, {{"axis", Ints{-1}}});
  EXPECT_EQ(print(b.finish({z, x}, "step")),
            "graph step(%0: float32[b,784] \"x\", %1: float32[784]) {\n"
            "  %2 = multiply(%0, %1) : float32[b,784]  # at model.cpp:42\n"
            "  %3 = sum(%2; axis=[-1], keepdims=false) : float32[b]\n"
            "  return %3, %0\n"
            "}\n");
}

// What was asked for is a part of the graph, as a location is not.
TEST(Print, NamesTheDeviceThatWasAskedFor) {
  const auto made = [](int32_t device) {
    Builder b(test::table());
    b.device = device;
    const Value x = b.input(f32({4})), one = b.scalar(DType::F32, 1);
    return b.finish({b.op("add", {x, one})});
  };
  const Graph asked = made(2), free = made(-1);
  EXPECT_EQ(print(asked),
            "graph(%0: float32[4]) {\n"
            "  %1 = constant(; value=float32[]{1}) : float32[]\n"
            "  %2 = add(%0, %1) : float32[4] on 2\n"
            "  return %2\n"
            "}\n");
  EXPECT_EQ(parse(test::table(), print(asked)), asked);
  EXPECT_FALSE(asked == free);
  EXPECT_NE(hash(asked), hash(free));
}

TEST(Print, NestsSubgraphs) {
  const std::string expected = R"(graph "rich graph"(
  %0: float32[b,3] "x \"quoted\"\x0a",
  %3: float16[4]  # at model.cpp:42
) {
  %1 = constant(; value=float32[]{2.5}) : float32[]  # at model.cpp:42
  %2 = multiply(%0, %1) : float32[b,3]  # at model.cpp:42
  %4 = call(%2; functions=[
    graph body(%0: float32[b,3] "x") {
      %1 = exp(%0) : float32[b,3]  # at inner.cpp:7
      return %1, %0
    }
  ], trips=none) : float32[b,3], float32[b,3]
  %5 = min_max(%4.1; weights=[0.1,1e+300], mode='it\'s\x09') : float32[], float32[], int32[]
  %6 = constant(; value=float32[40]x'00000000cdcccc3dcdcc4c3e9a99993e)";
  EXPECT_EQ(print(test::rich_graph()).substr(0, expected.size()), expected);
}

TEST(Parse, RoundTrip) {
  const Graph g = test::rich_graph();
  const std::string text = print(g);
  const Graph h = parse(test::table(), text);
  EXPECT_EQ(g, h);
  EXPECT_EQ(print(h), text);
  EXPECT_EQ(h.name, g.name);
  EXPECT_EQ(h.nodes[0].attrs, g.nodes[0].attrs);
  EXPECT_EQ(h.nodes[2].location.str(), "model.cpp:42");
  verify(test::table(), h, Stage::Traced);
}

TEST(Parse, EmptyAndHandWritten) {
  EXPECT_EQ(print(parse(test::table(), "graph () { return }")), "graph() {\n  return\n}\n");
  const Graph g = parse(test::table(), R"(
# numbers may have gaps, attributes may be left to their defaults
graph f(%10: float32[2,3]) {  # at ignored.cpp:1
  %20 = sum(%10; keepdims=true) : float32[1,1]
  %30 = add(%20, %10)   # a remark
      : float32[2,3] # at x y.py
  return %30
})");
  EXPECT_EQ(g.nodes.size(), 3u);
  EXPECT_EQ(g.nodes[2].location.str(), "x y.py");
  EXPECT_FALSE(g.nodes[0].location);
}

TEST(Parse, EqualConstantsStayTwo) {
  const char* text =
      "graph() {\n  %0 = constant(; value=float32[]{1}) : float32[]\n  %1 = constant(; value=float32[]{1}) : float32[]\n  return %0, "
      "%1\n}\n";
  EXPECT_EQ(print(parse(test::table(), text)), text);
}

TEST(Parse, ErrorsSayWhere) {
  EXPECT_EQ(parse_error("graph f(%0: float32[2]) {\n  %1 = ad(%0) : float32[2]\n  return %1\n}"),
            "graph text, line 2, column 8: no op is called 'ad'\n  hint: did you mean 'add'?");
  EXPECT_EQ(parse_error("graph f(%0: float32[2]) {\n  %1 = exp(%0) : float32[3]\n  return %1\n}"),
            "graph text, line 2, column 18: exp gives float32[2] as result 0, the text says float32[3]");
  EXPECT_EQ(parse_error("graph f(%0: float32[2]) {\n  %1 = exp(%7) : float32[2]\n  return %1\n}"),
            "graph text, line 2, column 12: %7 is not there yet");
  EXPECT_EQ(parse_error("graph f(%0: float32[2]) {\n  %1 = exp(%0.1) : float32[2]\n  return %1\n}"),
            "graph text, line 2, column 12: %0 has 1 results, asked for number 1");
  EXPECT_EQ(parse_error("graph f(%0: float32[2]) {\n  %1 = exp(%0) : float32[2]\n"),
            "graph text, line 3, column 1: 'return' expected, the text ends");
  EXPECT_EQ(parse_error("graph f(%0: float32[2]) {\n  %1 = add(%0) : float32[2]  # at m.py:3\n  return %1\n}"),
            "graph text, line 2, column 8: add: takes 2 operands (x, y), got 1 (float32[2])\n  at m.py:3");
  EXPECT_EQ(parse_error(""), "graph text, line 1, column 1: 'graph' expected, the text ends");
}

TEST(Parse, Refuses) {
  for (const char* body :
       {"%1 = input(; index=0, dtype=float32, shape=[]) : float32[]", "%0 = exp(%0) : float32[2]", "%1 = exp(%1) : float32[2]",
        "%1 = exp(%0; by=1) : float32[2]", "%1 = scale(%0; by=1, by=2) : float32[2]", "%1 = scale(%0; by=none) : float32[2]",
        "%1 = exp(%0) : float32[2], float32[2]", "%1 = exp(%0) : ()", "%1 = exp(%0 : float32[2]", "%1 exp(%0) : float32[2]",
        "%99999999999 = exp(%0) : float32[2]", "%-1 = exp(%0) : float32[2]", "%1 = constant() : float32[]",
        "%1 = constant(; value=float32[3]{1,2}) : float32[3]", "%1 = call(%0; functions=[graph() { return %0 }]) : float32[2]",
        "%1 = reshape(%0; shape=[2,) : float32[2]", "%1 = reshape(%0; shape=[b+) : float32[2]"}) {
    const std::string text = cat("graph f(%0: float32[2]) {\n  ", body, "\n  return %0\n}");
    EXPECT_TRUE(parse_error(text).starts_with("graph text, line 2, column ")) << body << ": " << parse_error(text);
  }
  EXPECT_NE(parse_error("graph f(%0: float32[2], %0: float32[2]) { return }").find("numbers must increase"), std::string::npos);
  EXPECT_NE(parse_error("graph f() { return } more").find("the end of the text"), std::string::npos);
  EXPECT_NE(parse_error("graph f(%0: float32[1,1,1,1,1,1,1,1,1,1,1,1,1]) { return }").find("at most 12"), std::string::npos);
}

TEST(Parse, DeepNestingIsAnError) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "graph() { %0 = call(; functions=[";
  EXPECT_NE(parse_error(text).find("nested more than"), std::string::npos);
  EXPECT_TRUE(parse_error("graph f(%0: float32[" + std::string(100000, '(')).starts_with("graph text, line 1"));
}

// Broken text must end in a UserError, or in a graph that is good; never in anything else.
void survives(const std::string& text) {
  try {
    verify(test::table(), parse(test::table(), text), Stage::Traced);
  } catch (const UserError&) {
  }
}

TEST(Parse, SurvivesMutations) {
  const std::string good =
      print(test::rich_graph()) + print(parse(test::table(), "graph g(%0: int32[b]) {\n %1 = sum(%0; axis=[0]) : int32[]\n return %1\n}"));
  const std::string first = print(test::rich_graph());
  std::mt19937 random(1);
  const auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  for (int i = 0; i < 8000; ++i) {
    std::string text = first;
    const size_t edits = 1 + below(4);
    for (size_t e = 0; e < edits && !text.empty(); ++e) {
      const size_t at = below(text.size());
      const size_t length = 1 + below(12);
      switch (below(6)) {
        case 0: text[at] = static_cast<char>(below(256)); break;
        case 1: text.erase(at, length); break;
        case 2: text.insert(at, good.substr(below(good.size()), length)); break;
        case 3: text[at] = good[below(good.size())]; break;
        case 4: text.resize(at); break;
        default: text.insert(at, 1, "%.()[]{};:,=#'\"\\-0123456789bx\n"[below(31)]); break;
      }
    }
    ASSERT_NO_THROW(survives(text)) << text;
  }
}

}  // namespace
}  // namespace tandem::ir
