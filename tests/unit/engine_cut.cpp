// Products whose ends are updates, cut in two: which may be, and what comes out.
#include <gtest/gtest.h>

#include "ir/verify.hpp"
#include "ops/table.hpp"
#include "passes/pipeline.hpp"
#include "transform/cut.hpp"

namespace tandem::engine {
namespace {

// w - rate * end(x^T y), fused.
ir::Graph update(const char* end, int64_t columns = 24) {
  ir::Builder b(ops::table());
  const ir::Value x = b.input({DType::F32, {16, 32}});
  const ir::Value y = columns ? b.input({DType::F32, {16, columns}}) : b.input({DType::F32, {16}});
  const Dims dims = columns ? Dims{32, columns} : Dims{32};
  const ir::Value w = b.input({DType::F32, dims});
  ir::Value g = b.op("matmul", {x, y}, {{"transpose_x", true}});
  g = b.op("multiply", {b.op(end, {g}), b.scalar(DType::F32, 0.1)});
  const ir::Graph graph = b.finish({b.op("subtract", {w, g}), g}, "update");
  return passes::run_pipeline(ops::table(), graph, {}, Precision::Float32);
}

std::vector<bool> ends_of(const ir::Graph& g) {
  std::vector<bool> ends;
  for (const ir::Node& n : g.nodes) ends.push_back(transform::has_exact_epilogue(n));
  return ends;
}

TEST(Cut, TheEndBecomesAMapThatIsExact) {
  const ir::Graph g = update("sqrt");
  const std::vector<bool> ends = ends_of(g);
  ASSERT_EQ(std::ranges::count(ends, true), 1);
  const ir::Graph cut = transform::cut_epilogues(ops::table(), g, ends);
  ir::verify(ops::table(), cut, ir::Stage::Expanded);
  EXPECT_EQ(cut.input_types(), g.input_types());
  EXPECT_EQ(cut.output_types(), g.output_types());
  int products = 0, maps = 0;
  for (const ir::Node& n : cut.nodes) {
    products += n.op->name == "matmul";
    maps += n.op->name == "fused" && transform::is_exact_map(cut, n);
  }
  EXPECT_EQ(products, 1);
  EXPECT_EQ(maps, 1);
}

TEST(Cut, WhatIsNotRoundedAlikeEverywhereStays) {
  for (const char* end : {"tanh", "exp", "log1p"}) {
    const std::vector<bool> ends = ends_of(update(end));
    EXPECT_EQ(std::ranges::count(ends, true), 0) << end;
  }
}

TEST(Cut, AProductWithOneColumnStays) {
  const std::vector<bool> ends = ends_of(update("sqrt", 0));
  EXPECT_EQ(std::ranges::count(ends, true), 0) << "with an end it is computed the other way round";
}

}  // namespace
}  // namespace tandem::engine
