// Graphs with loops, for tests of passes.
#pragma once
#include "passes_support.hpp"

namespace tandem::passes {

using ir::Builder;
using ir::Expr;
using ir::TensorType;

inline const TensorType kF4{DType::F32, {4}};
inline const TensorType kF54{DType::F32, {5, 4}};
inline const TensorType kI{DType::I32, {}};

inline std::vector<Expr> scan(Builder& b, const std::vector<Expr>& in, ir::GraphRef body, int64_t carries, int64_t sequences,
                              int64_t length) {
  return ir::call(b, "scan", in,
                  {{"functions", ir::Graphs{std::move(body)}}, {"carries", carries}, {"sequences", sequences}, {"length", Dims{length}}});
}

inline const ir::Node& only(const Graph& g, std::string_view op) {
  EXPECT_EQ(count_of(g, op), 1u) << ir::print(g);
  for (const ir::Node& n : g.nodes)
    if (n.op->name == op) return n;
  throw InternalError("there is none");
}

// A recurrence with a per-step output, as a layer would have it; the gradient runs it again.
inline Graph recurrence() {
  return built({kF4, kF54}, [](Builder& b, std::vector<Expr> in) {
    const auto step = part({kF4, kF4}, [](Builder&, std::vector<Expr> x) {
      const Expr h = (x[0] * x[1]).op("tanh");
      return std::vector{h, h * 2.0};
    });
    const std::vector<Expr> out = scan(b, {in[0], in[1]}, step, 1, 1, 5);
    return std::vector{(out[0].sum({0}) + out[1].sum({0, 1}))};
  });
}

}  // namespace tandem::passes
