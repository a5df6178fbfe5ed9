// matmul through OpenBLAS: every layout it takes gives what the interpreter gives, and what it does not take says why.
#include <gmock/gmock.h>

#include <map>

#include "base/env.hpp"
#include "base/text.hpp"
#include "cpu/cpu_program.hpp"
#include "cpu/host_target.hpp"
#include "ops/table.hpp"
#include "support.hpp"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;

const ir::OpDef& matmul_row() {
  static ir::OpTable& table = *new ir::OpTable;
  static const ir::OpDef& row = [&]() -> const ir::OpDef& {
    for (ir::OpDef& r : ops::matmul_rows()) table.add(std::move(r));
    return table.at("matmul");
  }();
  return row;
}

struct Call {
  codegen::Kernel kernel;
  ir::Loops loops;
};
Call matmul(const std::vector<HostTensor>& in, bool transpose_x = false, bool transpose_y = false) {
  const ir::Attrs attrs = ir::complete_attrs(matmul_row(), {{"transpose_x", transpose_x}, {"transpose_y", transpose_y}});
  std::vector<ir::TensorType> types;
  std::vector<codegen::Operand> layouts;
  for (const HostTensor& x : in) {
    types.push_back({x.layout.dtype, to_dims(x.layout.shape)});
    layouts.push_back(x.layout);
  }
  const auto out = ir::infer(matmul_row(), types, attrs);
  return {codegen::make_kernel(matmul_row(), attrs, types, out, {}, layouts), ir::loops_of(matmul_row(), types, attrs, out)};
}

std::string refusal_of(const codegen::Kernel& k) {
  cpu::CodeCache cache("");
  cpu::Toolbox tools{cpu::host_target("native"), cache};
  std::string refusal;
  return cpu::make_gemm_openblas(k, tools, refusal) ? "" : refusal;
}

void check(std::vector<HostTensor> in, bool transpose_x = false, bool transpose_y = false, bool expect_gemm = true) {
  SCOPED_TRACE(cat(in[0].layout.shape, " strides ", in[0].layout.strides, " x ", in[1].layout.shape, " strides ", in[1].layout.strides, " ",
                   transpose_x, transpose_y));
  const Call call = matmul(in, transpose_x, transpose_y);
  if (expect_gemm) {
    EXPECT_EQ(refusal_of(call.kernel), "");
  }
  const auto expected = interpreted(call.loops, in);
  const auto got = launched(device::get("cpu"), call.kernel, in);
  const int64_t terms = call.kernel.stages[0].reduce_extents.empty() ? 1 : call.kernel.stages[0].reduce_extents[0];
  EXPECT_TRUE(near(got[0], expected[0], sum_tolerance(in[0].layout.dtype, terms + 10)));
}

TEST(Gemm, AllTransposes) {
  std::mt19937_64 random(1);
  for (DType t : {DType::F32, DType::F64})
    for (auto [m, k, n] :
         {std::tuple<int64_t, int64_t, int64_t>{17, 33, 40}, {200, 64, 300}, {1, 300, 70}, {300, 70, 1}, {400, 3, 400}, {33, 500, 2}})
      for (bool tx : {false, true})
        for (bool ty : {false, true})
          check({dense(t, tx ? Shape{k, m} : Shape{m, k}, random), dense(t, ty ? Shape{n, k} : Shape{k, n}, random)}, tx, ty);
}

TEST(Gemm, Batches) {
  std::mt19937_64 random(2);
  const auto f = [&](const Shape& s) { return dense(DType::F32, s, random); };
  check({f({5, 20, 30}), f({5, 30, 10})});
  check({f({2, 3, 20, 30}), f({3, 30, 10})});
  check({f({2, 1, 20, 30}), f({1, 4, 30, 10})});
  check({f({20, 30}), f({4, 30, 10})});
  check({f({4, 20, 30}), f({30, 10})});
  check({f({4, 1, 30}), f({30, 200})});
  check({f({4, 3, 1, 30}), f({30, 200})});
  check({f({4, 30, 20}), f({30, 10})}, true, false);
  check({f({7, 20, 30}), f({7, 10, 30})}, false, true);
  check({f({300}), f({300, 40})});
  check({f({40, 300}), f({300})});
  check({f({6, 40, 300}), f({300})});
  check({f({300}), f({6, 300, 40})});
  check({f({64, 40, 20}), f({64, 20, 30})});
}

TEST(Gemm, OperandsThatLieAnyhow) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 60; ++round) {
    const bool tx = round % 2, ty = round % 4 >= 2;
    check({scattered(DType::F32, tx ? Shape{3, 25, 20} : Shape{3, 20, 25}, random),
           scattered(DType::F32, ty ? Shape{18, 25} : Shape{25, 18}, random)},
          tx, ty, false);
    check({scattered(DType::F64, {25}, random), scattered(DType::F64, {25, 300}, random)}, false, false, false);
    check({scattered(DType::F64, {300, 25}, random), scattered(DType::F64, {25}, random)}, false, false, false);
  }
}

TEST(Gemm, BlocksCoverEverything) {
  std::mt19937_64 random(4);
  for (auto [m, k, n] :
       {std::tuple<int64_t, int64_t, int64_t>{513, 129, 257}, {64, 200, 1000}, {1000, 200, 64}, {1, 700, 1300}, {1300, 700, 1}})
    check({dense(DType::F32, {m, k}, random), dense(DType::F32, {k, n}, random)});
}

TEST(Gemm, EmptyProductsAreLeftToGeneratedCode) {
  std::mt19937_64 random(5);
  const auto f = [&](const Shape& s) { return dense(DType::F32, s, random); };
  check({f({40, 0}), f({0, 30})}, false, false, false);
  check({f({0, 40}), f({40, 30})}, false, false, false);
  check({f({40, 30}), f({30, 0})}, false, false, false);
  check({f({0, 20, 30}), f({30, 10})}, false, false, false);
  check({f({0, 20, 30}), f({0, 30, 10})}, false, false, false);
  check({f({3, 20, 0}), f({3, 0, 10})}, false, false, false);
}

TEST(Gemm, NansAndInfinitiesGoThrough) {
  std::mt19937_64 random(6);
  HostTensor x = dense(DType::F64, {40, 40}, random);
  ir::store_number(DType::F64, x.bytes.data() + 8 * 41, std::nan(""));
  ir::store_number(DType::F64, x.bytes.data() + 8 * 401, std::numeric_limits<double>::infinity());
  check({x, dense(DType::F64, {40, 40}, random)});
}

TEST(Gemm, RefusalsGiveTheirReason) {
  std::mt19937_64 random(7);
  EXPECT_THAT(refusal_of(matmul({dense(DType::F32, {8, 8}), dense(DType::F32, {8, 8})}).kernel), HasSubstr("too small"));
  EXPECT_THAT(refusal_of(matmul({dense(DType::F16, {80, 80}), dense(DType::F16, {80, 80})}).kernel), HasSubstr("float16"));
  EXPECT_THAT(refusal_of(matmul({dense(DType::I32, {80, 80}), dense(DType::I32, {80, 80})}).kernel), HasSubstr("int32"));
  EXPECT_THAT(refusal_of(matmul({dense(DType::F32, {5000}), dense(DType::F32, {5000})}).kernel), HasSubstr("two vectors"));
  HostTensor spread = dense(DType::F32, {80, 80});
  spread.layout.strides = Strides{160, 2};
  EXPECT_THAT(refusal_of(matmul({spread, dense(DType::F32, {80, 80})}).kernel), HasSubstr("contiguous"));
}

TEST(Gemm, ThreadsDoNotChangeBits) {
  std::mt19937_64 random(8);
  cpu::CodeCache cache("");
  cpu::Toolbox tools{cpu::host_target("native"), cache};
  for (auto [m, k, n] : {std::tuple<int64_t, int64_t, int64_t>{300, 257, 500}, {1, 1000, 2000}, {64, 3000, 64}}) {
    std::vector<HostTensor> in{dense(DType::F32, {m, k}, random), dense(DType::F32, {k, n}, random)};
    const Call call = matmul(in);
    std::string refusal;
    const auto program = cpu::make_gemm_openblas(call.kernel, tools, refusal);
    ASSERT_NE(program, nullptr) << refusal;
    std::vector<std::byte> first;
    for (int threads : {1, 2, 4}) {
      ThreadPool pool(threads);
      HostTensor out = dense(DType::F32, {m, n});
      void* pointers[] = {in[0].data(), in[1].data(), out.data()};
      program->run({pointers, nullptr}, pool);
      if (first.empty()) first = out.bytes;
      EXPECT_EQ(first, out.bytes) << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace tandem::testing
