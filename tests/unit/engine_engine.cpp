// Compiled graphs and eager ops: binding of symbols, aliases, donation, caches, several threads at once.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "engine/engine.hpp"
#include "ops/table.hpp"

namespace tandem::engine {
namespace {

Engine& cpu() { return default_engine(); }

TensorRef tensor(const Shape& shape, const std::vector<float>& values) {
  TensorRef t;
  t.layout = codegen::Layout::dense(DType::F32, shape);
  t.buffer = cpu().device().allocate(values.size() * sizeof(float));
  std::memcpy(t.buffer->data(), values.data(), values.size() * sizeof(float));
  return t;
}
std::vector<float> values(const TensorRef& t) {
  const auto* p = static_cast<const float*>(t.data());
  return {p, p + element_count(t.layout.shape)};
}
std::vector<TensorRef> run(Executable& x, std::vector<const TensorRef*> in) {
  std::vector<TensorRef> out;
  x.run(in, out);
  return out;
}

ir::Graph row_sums() {
  ir::Builder b(ops::table());
  const ir::Value x = b.input({DType::F32, {Dim::symbol("b"), 3}});
  return b.finish({b.op("sum", {b.op("add", {x, x})}, {{"axis", ir::Ints{1}}})});
}

TEST(Executable, OneGraphServesEveryBatch) {
  auto x = cpu().compile(row_sums());
  const TensorRef two = tensor({2, 3}, {1, 2, 3, 4, 5, 6}), one = tensor({1, 3}, {1, 1, 1});
  EXPECT_EQ(values(run(*x, {&two})[0]), (std::vector<float>{12, 30}));
  EXPECT_EQ(values(run(*x, {&one})[0]), (std::vector<float>{6}));
  EXPECT_EQ(values(run(*x, {&two})[0]), (std::vector<float>{12, 30}));
  EXPECT_EQ(x->plan_count(), 2u);
}

TEST(Executable, RefusesWhatItWasNotMadeFor) {
  auto x = cpu().compile(row_sums());
  const TensorRef wrong = tensor({2, 2}, {1, 2, 3, 4});
  EXPECT_THROW(run(*x, {&wrong}), UserError);
  EXPECT_THROW(run(*x, {&wrong, &wrong}), UserError);
  const TensorRef right = tensor({1, 3}, {1, 1, 1});
  EXPECT_EQ(values(run(*x, {&right})[0]), (std::vector<float>{6}));
}

TEST(Engine, TheSameGraphIsCompiledOnce) { EXPECT_EQ(cpu().compile(row_sums()), cpu().compile(row_sums())); }

TEST(Engine, AViewSharesItsBytes) {
  const TensorRef x = tensor({4}, {1, 2, 3, 4});
  std::vector<TensorRef> out;
  const TensorRef* in[] = {&x};
  cpu().eager(ops::table().at("reshape"), ir::complete_attrs(ops::table().at("reshape"), {{"shape", Dims{2, 2}}}), in, out);
  EXPECT_EQ(out[0].data(), x.data());
}

TEST(Executable, UpdatesInPlaceUnlessSomebodyLooks) {
  ir::Builder b(ops::table());
  const ir::Value v = b.input({DType::F32, {2}}), g = b.input({DType::F32, {2}});
  auto x = cpu().compile(b.finish({b.op("subtract", {v, g})}), {0});
  const TensorRef variable = tensor({2}, {5, 6}), gradient = tensor({2}, {1, 1});
  const void* place = variable.data();
  {
    const auto out = run(*x, {&variable, &gradient});
    EXPECT_EQ(out[0].data(), place);
    EXPECT_EQ(values(out[0]), (std::vector<float>{4, 5}));
  }
  const TensorRef witness = variable;
  const auto out = run(*x, {&variable, &gradient});
  EXPECT_NE(out[0].data(), place);
  EXPECT_EQ(values(witness), (std::vector<float>{4, 5}));
  EXPECT_EQ(values(out[0]), (std::vector<float>{3, 4}));
}

TEST(Executable, RunsOnSeveralThreadsAtOnce) {
  ir::Builder b(ops::table());
  const ir::Value a = b.input({DType::F32, {64, 64}});
  ir::Value v = a;
  for (int i = 0; i < 4; ++i) v = b.op("add", {b.op("transpose", {v}), a});
  auto x = cpu().compile(b.finish({v}));
  const TensorRef in = tensor({64, 64}, std::vector<float>(64 * 64, 1));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i)
        if (values(run(*x, {&in})[0]) != std::vector<float>(64 * 64, 5)) ++wrong;
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Engine, EagerOpsFromSeveralThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 1; i < 40; ++i) {
        const TensorRef x = tensor({i}, std::vector<float>(static_cast<size_t>(i), static_cast<float>(t)));
        const TensorRef* in[] = {&x, &x};
        std::vector<TensorRef> out;
        cpu().eager(ops::table().at("add"), {}, in, out);
        if (values(out[0]) != std::vector<float>(static_cast<size_t>(i), static_cast<float>(2 * t))) ++wrong;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Engine, AHostRoutineThatFailsLeavesEverythingUsable) {
  const ir::OpDef& op = ops::table().at("take");
  TensorRef indices;
  indices.layout = codegen::Layout::dense(DType::I32, {1});
  indices.buffer = cpu().device().allocate(4);
  *static_cast<int32_t*>(indices.data()) = 7;
  const TensorRef x = tensor({3}, {1, 2, 3});
  const TensorRef* in[] = {&x, &indices};
  std::vector<TensorRef> out;
  const ir::Attrs attrs = ir::complete_attrs(op, {{"axis", int64_t{0}}});
  EXPECT_THROW(cpu().eager(op, attrs, in, out), UserError);
  *static_cast<int32_t*>(indices.data()) = 2;
  cpu().eager(op, attrs, in, out);
  EXPECT_EQ(values(out[0]), (std::vector<float>{3}));
}

}  // namespace
}  // namespace tandem::engine
