// Factorisations through LAPACK give what the rows' own plain routines give, also where there is no answer.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "base/text.hpp"
#include "cpu/cpu_program.hpp"
#include "cpu/host_target.hpp"
#include "ops/table.hpp"
#include "support.hpp"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;

const ir::OpDef& row(std::string_view name) {
  static ir::OpTable& table = *[] {
    auto* t = new ir::OpTable;
    for (ir::OpDef& r : ops::linalg_rows()) t->add(std::move(r));
    return t;
  }();
  return table.at(name);
}

codegen::Kernel kernel(std::string_view op, const std::vector<HostTensor>& in, const ir::Attrs& given = {}) {
  const ir::Attrs attrs = ir::complete_attrs(row(op), given);
  std::vector<ir::TensorType> types;
  std::vector<codegen::Layout> layouts;
  for (const HostTensor& x : in) {
    types.push_back({x.layout.dtype, to_dims(x.layout.shape)});
    layouts.push_back(x.layout);
  }
  return codegen::make_kernel(row(op), attrs, types, ir::infer(row(op), types, attrs), {}, layouts);
}

std::string refusal_of(const codegen::Kernel& k) {
  cpu::CodeCache cache("");
  cpu::Toolbox tools{cpu::host_target("native"), cache};
  std::string refusal;
  return cpu::make_lapack(k, tools, refusal) ? "" : refusal;
}

void check(std::string_view op, std::vector<HostTensor> in, const ir::Attrs& attrs = {}) {
  SCOPED_TRACE(cat(op, " of ", name(in[0].layout.dtype), in[0].layout.shape));
  const codegen::Kernel k = kernel(op, in, attrs);
  EXPECT_EQ(refusal_of(k), "");
  const auto expected = launched(device::get("ref"), k, in), got = launched(device::get("cpu"), k, in);
  const Allowed allowed = in[0].layout.dtype == DType::F64 ? Allowed{1e-9, 1e-9} : Allowed{1e-5, 1e-5};
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(near(got[i], expected[i], allowed)) << "output " << i;
}

std::byte* element(HostTensor& t, int64_t i) { return t.bytes.data() + i * static_cast<int64_t>(size_of(t.layout.dtype)); }

// a a' + n for the last two axes: positive definite.
HostTensor posdef(DType t, const Shape& shape, std::mt19937_64& random) {
  const HostTensor a = dense(t, shape, random);
  HostTensor r = dense(t, shape);
  const int64_t n = shape.back(), batch = element_count(shape) / (n * n);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = i == j ? static_cast<double>(n) / 4 : 0;
        for (int64_t k = 0; k < n; ++k) sum += number(a, (b * n + i) * n + k) * number(a, (b * n + j) * n + k);
        ir::store_number(t, element(r, (b * n + i) * n + j), sum);
      }
  return r;
}

class Lapack : public ::testing::TestWithParam<DType> {
 protected:
  std::mt19937_64 random_{11};
};

TEST_P(Lapack, Cholesky) {
  for (const Shape& s : {Shape{16, 16}, Shape{3, 40, 40}, Shape{70, 70}, Shape{0, 20, 20}})
    check("cholesky", {posdef(GetParam(), s, random_)});
  check("cholesky", {dense(GetParam(), {20, 20}, random_)});  // not positive definite: NaN
}

TEST_P(Lapack, TriangularSolve) {
  for (bool lower : {true, false})
    for (bool transpose : {true, false})
      for (bool unit : {true, false}) {
        HostTensor a = posdef(GetParam(), {2, 30, 30}, random_);
        for (int64_t i = 0; i < 2 * 30 * 30; ++i) {
          // The other triangle is not to be read.
          const int64_t r = i / 30 % 30, c = i % 30;
          ir::store_number(GetParam(), element(a, i), (lower ? c > r : c < r) ? std::nan("") : number(a, i) / (r == c ? 30 : 60));
        }
        check("triangular_solve", {a, dense(GetParam(), {2, 30, 7}, random_)},
              {{"lower", lower}, {"transpose", transpose}, {"unit", unit}});
      }
}

TEST_P(Lapack, Lu) {
  for (const Shape& s : {Shape{20, 20}, Shape{3, 30, 20}, Shape{20, 33}}) check("lu", {dense(GetParam(), s, random_)});
}

TEST_P(Lapack, Qr) {
  for (const Shape& s : {Shape{20, 20}, Shape{2, 30, 17}, Shape{17, 33}})
    for (const char* mode : {"reduced", "complete"}) check("qr", {dense(GetParam(), s, random_)}, {{"mode", std::string(mode)}});
}

TEST_P(Lapack, Svd) {
  for (const Shape& s : {Shape{20, 20}, Shape{2, 30, 17}, Shape{17, 33}})
    check("svd", {dense(GetParam(), s, random_)}, {{"full_matrices", false}});
  check("svd", {dense(GetParam(), {20, 20}, random_)}, {{"full_matrices", true}});
}

TEST_P(Lapack, SvdWithFullMatricesIsOrthogonal) {
  std::vector<HostTensor> in{dense(GetParam(), {30, 17}, random_)};
  const auto got = launched(device::get("cpu"), kernel("svd", in, {{"full_matrices", true}}), in);
  for (int64_t i = 0; i < 30; ++i)
    for (int64_t j = 0; j < 30; ++j) {
      double dot = 0;
      for (int64_t k = 0; k < 30; ++k) dot += number(got[0], k * 30 + i) * number(got[0], k * 30 + j);
      EXPECT_NEAR(dot, i == j ? 1 : 0, 1e-5);
    }
}

TEST_P(Lapack, Eigh) {
  for (const Shape& s : {Shape{20, 20}, Shape{3, 17, 17}}) check("eigh", {dense(GetParam(), s, random_)});
}

TEST_P(Lapack, Eig) {
  for (const Shape& s : {Shape{16, 16}, Shape{3, 17, 17}}) check("eig", {dense(GetParam(), s, random_)});
}

TEST_P(Lapack, MatricesThatHoldNan) {
  for (double bad : {std::nan(""), std::numeric_limits<double>::infinity()})
    for (const char* op : {"cholesky", "lu", "qr", "svd", "eigh", "eig"}) {
      HostTensor x = posdef(GetParam(), {2, 20, 20}, random_);
      ir::store_number(GetParam(), element(x, 33), bad);
      check(op, {x});
    }
}

TEST_P(Lapack, ASingularMatrixHasFactors) { check("lu", {dense(GetParam(), {20, 20})}); }

INSTANTIATE_TEST_SUITE_P(Types, Lapack, ::testing::Values(DType::F32, DType::F64),
                         [](const auto& p) { return std::string(name(p.param)); });

TEST(LapackRefusals, GiveTheirReason) {
  EXPECT_THAT(refusal_of(kernel("lu", {dense(DType::F32, {4, 30})})), HasSubstr("too small, 4x30"));
  HostTensor turned = dense(DType::F32, {20, 20});
  turned.layout.strides = Strides{1, 20};
  EXPECT_THAT(refusal_of(kernel("lu", {turned})), HasSubstr("not dense"));
}

}  // namespace
}  // namespace tandem::testing
