// Patterns that match, and rewrites to a fixed point.
#include "ir/pattern.hpp"

#include <gtest/gtest.h>

#include "ir/print.hpp"
#include "ir/verify.hpp"
#include "ir_rows.hpp"

namespace tandem::ir::pattern {
namespace {

using test::f32;
using test::sym;

const P x = any("x"), y = any("y"), z = any("z");

RuleSet simplify() {
  return RuleSet("simplify", {
                                 {"add-zero", op("add", {x, constant_value(0)}), [](Match& m) { return m["x"]; }},
                                 {"multiply-one", op("multiply", {x, constant_value(1)}), [](Match& m) { return m["x"]; }},
                                 {"negative-negative", op("negative", {op("negative", {x})}), [](Match& m) { return m["x"]; }},
                                 {"factor", op("add", {op("multiply", {x, y}), op("multiply", {x, z})}),
                                  [](Match& m) {
                                    const Expr sum = m["y"] + m["z"];
                                    return m["x"] * sum;
                                  }},
                             });
}

struct RewriteTest : testing::Test {
  Builder b{test::table()};
  Expr input(Dims dims, DType t = DType::F32) { return {b, b.input({t, std::move(dims)})}; }
  Graph run(const Expr& out, const RuleSet& rules) {
    Graph g = rewrite(test::table(), b.finish({out.value()}, "f"), rules);
    verify(test::table(), g, Stage::Traced);
    return g;
  }
  static std::vector<std::string> ops(const Graph& g) {
    std::vector<std::string> names;
    for (const Node& n : g.nodes) names.emplace_back(n.op->name);
    return names;
  }
};
using Names = std::vector<std::string>;

TEST_F(RewriteTest, ReplacesAndPrunes) {
  const RuleSet rules = simplify();
  const Expr a = input({sym("b"), 2});
  const Graph g = run(a + 0, rules);
  EXPECT_EQ(ops(g), Names{"input"});
  EXPECT_EQ(g.outputs, g.inputs);
  EXPECT_EQ(g.name, "f");
  EXPECT_EQ(rules.hits("add-zero"), 1u);
  EXPECT_EQ(rules.hits("multiply-one"), 0u);
  EXPECT_THROW(rules.hits("nothing"), InternalError);
}

TEST_F(RewriteTest, CommutativeOpsMatchInEitherOrder) {
  const RuleSet rules = simplify();
  const Expr a = input({2});
  EXPECT_EQ(ops(run(1.0 * (0.0 + a), rules)), Names{"input"});
}

TEST_F(RewriteTest, OtherOpsDoNot) {
  const P zero = constant_value(0);
  const RuleSet rules("r", {{"subtract-zero", op("subtract", {x, zero}), [](Match& m) { return m["x"]; }}});
  const Expr a = input({2});
  const Expr kept = 0 - a;
  EXPECT_EQ(ops(run((a - 0) + kept, rules)), (Names{"input", "constant", "subtract", "add"}));
}

TEST_F(RewriteTest, BacktracksOverNestedOrders) {
  const RuleSet rules = simplify();
  const Expr a = input({2}), c = input({2}), d = input({2});
  for (const bool swap_left : {false, true})
    for (const bool swap_right : {false, true}) {
      Builder inner(test::table());
      const Expr p(inner, inner.input(f32({2}))), q(inner, inner.input(f32({2}))), r(inner, inner.input(f32({2})));
      const Expr out = (swap_left ? q * p : p * q) + (swap_right ? r * p : p * r);
      const Graph g = rewrite(test::table(), inner.finish({out.value()}), rules);
      EXPECT_EQ(ops(g), (Names{"input", "input", "input", "add", "multiply"})) << print(g);
    }
  EXPECT_EQ(rules.hits("factor"), 4u);
  EXPECT_EQ(ops(run(a * c + d * d, rules)).size(), 6u);  // nothing in common
}

TEST_F(RewriteTest, ReachesAFixedPoint) {
  const RuleSet rules = simplify();
  Expr a = input({2});
  for (int i = 0; i < 100; ++i) a = -(-(a + 0) * 1);
  EXPECT_EQ(ops(run(a, rules)), Names{"input"});
}

TEST_F(RewriteTest, ResultsOfRulesAreMatchedAgain) {
  const RuleSet rules("chain", {
                                   {"square", op("square", {x}), [](Match& m) { return m["x"] * m["x"]; }},
                                   {"to-scale", op("multiply", {x, x}), [](Match& m) { return m["x"].op("exp"); }},
                               });
  EXPECT_EQ(ops(run(input({2}).op("square"), rules)), (Names{"input", "exp"}));
}

TEST_F(RewriteTest, KeepsLocations) {
  const RuleSet rules("r", {{"square", op("square", {x}), [](Match& m) { return m["x"] * m["x"]; }}});
  const Expr a = input({2});
  b.location = {"model.cpp", 42};
  const Expr s = a.op("square");
  b.location = {"model.cpp", 43};
  const Graph g = run(-s, rules);
  ASSERT_EQ(ops(g), (Names{"input", "multiply", "negative"}));
  EXPECT_EQ(g.nodes[1].location.str(), "model.cpp:42");
  EXPECT_EQ(g.nodes[2].location.str(), "model.cpp:43");
}

TEST_F(RewriteTest, ConditionsCapturesAndConstants) {
  const P by_two = op("scale", {x}).where([](const Node& n) { return n.attrs.get<double>("by") == 2; }).as("scaled");
  const RuleSet rules("r", {
                               {"double", by_two,
                                [](Match& m) {
                                  EXPECT_EQ(m.node("scaled").op, m.node().op);
                                  EXPECT_EQ(m["scaled"].value(), m.root().value());
                                  return m["x"] + m["x"];
                                }},
                               {"fold", op("negative", {constant("c")}),
                                [](Match& m) {
                                  const float v = -m.literal("c").values<float>()[0];
                                  return m.root().number(v);
                                }},
                           });
  const Expr a = input({2});
  const Expr doubled = a.op("scale");
  const Expr tripled = a.op("scale", {{"by", 3}});
  const Expr scaled = tripled * -a.number(4);
  const Graph g = run(doubled + scaled, rules);
  EXPECT_EQ(ops(g), (Names{"input", "add", "scale", "constant", "multiply", "add"})) << print(g);
}

TEST_F(RewriteTest, ConstantValues) {
  const RuleSet rules("r", {
                               {"plus-zero", op("negative", {constant_value(0)}), [](Match& m) { return m.root().number(10); }},
                               {"minus-zero", op("negative", {constant_value(-0.0)}), [](Match& m) { return m.root().number(20); }},
                           });
  const auto value_of = [&](Literal l) {
    const Graph g = run(Expr(b, b.constant(std::move(l))).op("negative"), rules);
    return g.node(g.outputs[0]).op->name == "constant"
               ? load_number(g.type(g.outputs[0]).dtype, g.node(g.outputs[0]).attrs.get<Literal>("value").bytes->data())
               : -1;
  };
  EXPECT_EQ(value_of(Literal::scalar(DType::F32, 0.0)), 10);
  EXPECT_EQ(value_of(Literal::scalar(DType::F32, -0.0)), 20);
  EXPECT_EQ(value_of(Literal::scalar(DType::F16, -0.0)), 20);
  EXPECT_EQ(value_of(Literal::scalar(DType::I32, 0)), 10);
  EXPECT_EQ(value_of(Literal::scalar(DType::F32, 1)), -1);
  const float zeros[] = {0, 0};
  EXPECT_EQ(value_of(Literal::of(DType::F32, {2}, zeros)), -1);  // has axes: broadcasting it would change the shape
}

TEST_F(RewriteTest, AnyOperands) {
  const RuleSet rules("r", {{"stack-of-one", op("stack"), [](Match& m) -> Expr {
                               if (m.node().inputs.size() != 1) return {};
                               const Expr only(m.builder(), m.node().inputs[0]);
                               return only.reshape(m.root().dims());
                             }}});
  const Expr a = input({2});
  const Expr one = call(b, "stack", {a})[0];
  const Expr two = call(b, "stack", {a, a})[0];
  EXPECT_EQ(ops(run(one + two, rules)), (Names{"input", "reshape", "stack", "add"}));
}

TEST_F(RewriteTest, SubgraphsToo) {
  const RuleSet rules = simplify();
  Builder inner(test::table());
  const Expr p(inner, inner.input(f32({2})));
  const auto body = std::make_shared<const Graph>(inner.finish({((p + 0) * 1).value()}, "body"));
  const Expr a = input({2});
  const Expr out = call(b, "call", {a}, {{"functions", Graphs{body}}})[0];
  const Graph g = run(out, rules);
  EXPECT_EQ(ops(*g.nodes[1].attrs.get<Graphs>("functions")[0]), Names{"input"});
  EXPECT_EQ(body->nodes.size(), 5u);  // the old one is as it was
}

TEST_F(RewriteTest, WrongTypeNamesTheRule) {
  const RuleSet rules("r", {{"bad", op("add", {x, y}), [](Match& m) { return m["x"]; }}});
  const Expr a = input({3}), c = input({2, 3});
  EXPECT_EQ(error_of<InternalError>([&] { run(a + c, rules); }),
            "internal error (this is a bug in tandem): rule 'bad' puts float32[3] in the place of float32[2,3] (add)");
}

TEST_F(RewriteTest, BadRulesAreInternalErrors) {
  const Expr a = input({3});
  const Graph g = b.finish({(a + a).value()});
  const auto error = [&](Rule rule) {
    return error_of<InternalError>([&] { rewrite(test::table(), g, RuleSet("r", {std::move(rule)})); });
  };
  EXPECT_NE(error({"typo", op("ad", {x, y}), [](Match& m) { return m["x"]; }}).find("rule 'typo' is about the op 'ad'"), std::string::npos);
  EXPECT_NE(error({"name", op("add", {x, y}), [](Match& m) { return m["q"]; }}).find("no part called 'q'"), std::string::npos);
  EXPECT_NE(error({"node", op("add", {x, y}), [](Match& m) { return m["x"].op("sum", {{"axis", 7}}); }}).find("rule 'node': sum: axis 7"),
            std::string::npos);
  EXPECT_NE(error({"root", any("x"), [](Match& m) { return m["x"]; }}).find("rule 'root' of 'r' needs the pattern of an op"),
            std::string::npos);
}

TEST_F(RewriteTest, RulesThatUndoEachOtherEnd) {
  const RuleSet rules("r", {{"turn", op("subtract", {x, y}), [](Match& m) { return m["y"] - m["x"]; }}});
  const Graph g = run(input({2}) - input({2}), rules);
  EXPECT_EQ(ops(g), (Names{"input", "input", "subtract"}));
}

TEST_F(RewriteTest, NothingToDoGivesTheSameGraph) {
  const RuleSet rules = simplify();
  const Graph g = test::rich_graph();
  EXPECT_EQ(rewrite(test::table(), g, rules), g);
}

}  // namespace
}  // namespace tandem::ir::pattern
