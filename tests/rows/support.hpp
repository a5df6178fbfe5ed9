// What the tests of the rows share: run a graph on a device, compare tensors, iterate over a row's samples.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/half.hpp"
#include "engine/engine.hpp"
#include "ir/builder.hpp"
#include "ir/sample.hpp"
#include "ops/table.hpp"

namespace tandem::testing {

inline engine::Engine& engine_on(std::string_view device) {
  static engine::Engine cpu(device::get("cpu")), ref(device::get("ref"));
  if (device == "ref") return ref;
  if (device == "cpu") return cpu;
  static std::map<std::string, std::unique_ptr<engine::Engine>, std::less<>> others;
  auto& made = others[std::string(device)];
  if (!made) made = std::make_unique<engine::Engine>(device::get(device));
  return *made;
}

inline engine::TensorRef upload(engine::Engine& e, const ir::Literal& l) {
  engine::TensorRef t;
  t.buffer = e.device().allocate(l.bytes->size());
  e.device().stream(device::StreamKind::Compute).upload(t.buffer->data(), l.bytes->data(), l.bytes->size());
  t.layout = codegen::Layout::dense(l.dtype, l.shape);
  return t;
}
inline ir::Literal download(const engine::TensorRef& t) {
  EXPECT_TRUE(t.layout.is_dense());
  device::Stream& stream = t.buffer->device().stream(device::StreamKind::Compute);
  std::vector<std::byte> host(byte_size(t.layout.shape, t.layout.dtype));
  stream.download(host.data(), t.data(), host.size());
  stream.synchronize();
  return ir::Literal::of(t.layout.dtype, t.layout.shape, host.data());
}
inline std::vector<const engine::TensorRef*> addresses(const std::vector<engine::TensorRef>& t) {
  std::vector<const engine::TensorRef*> p;
  for (const auto& x : t) p.push_back(&x);
  return p;
}
inline std::vector<ir::Literal> downloads(const std::vector<engine::TensorRef>& t) {
  std::vector<ir::Literal> l;
  for (const auto& x : t) l.push_back(download(x));
  return l;
}
inline std::vector<engine::TensorRef> uploads(engine::Engine& e, const std::vector<ir::Literal>& l) {
  std::vector<engine::TensorRef> t;
  for (const auto& x : l) t.push_back(upload(e, x));
  return t;
}

inline std::vector<ir::Literal> run_eager(engine::Engine& e, const ir::OpDef& op, const ir::Attrs& attrs,
                                          const std::vector<ir::Literal>& in) {
  const auto tensors = uploads(e, in);
  std::vector<engine::TensorRef> out;
  e.eager(op, attrs, addresses(tensors), out);
  return downloads(out);
}
inline std::vector<ir::Literal> run_graph(engine::Executable& x, engine::Engine& e, const std::vector<ir::Literal>& in) {
  const auto tensors = uploads(e, in);
  std::vector<engine::TensorRef> out;
  x.run(addresses(tensors), out);
  return downloads(out);
}

// One call as a graph of its own.
inline ir::Graph call_graph(const ir::OpDef& op, const ir::Attrs& attrs, const std::vector<ir::Literal>& in) {
  ir::Builder b(ops::table());
  std::vector<ir::Value> v;
  for (const auto& l : in) v.push_back(b.input(l.type()));
  return b.finish(b.node(op, v, attrs), std::string(op.name));
}

inline double at(const ir::Literal& l, size_t i) {
  return dispatch(l.dtype, [&](auto zero) -> double {
    using T = decltype(zero);
    T x;
    std::memcpy(&x, l.bytes->data() + i * sizeof(T), sizeof(T));
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      return static_cast<float>(x);
    else
      return static_cast<double>(x);
  });
}
inline size_t count(const ir::Literal& l) { return static_cast<size_t>(element_count(l.shape)); }

struct Close {
  double rel, abs;
};
inline Close closeness(const ir::OpDef& op, DType t) {
  Close c{0, 0};
  if (t == DType::F64) c = {1e-9, 1e-11};
  if (t == DType::F32) c = {2e-5, 2e-6};
  if (t == DType::F16) c = {4e-3, 2e-3};
  if (t == DType::BF16) c = {3e-2, 2e-2};
  if (is_float(t)) {  // a row's own tolerance is for float32, in which the 16-bit types are computed too
    const double scale = t == DType::F64 ? 1e-4 : 1;
    c.rel = std::max(c.rel, op.tolerance.rel * scale);
    c.abs = std::max(c.abs, op.tolerance.abs * scale);
  }
  return c;
}

inline ::testing::AssertionResult near(double a, double b, Close c) {
  if (std::isnan(a) && std::isnan(b)) return ::testing::AssertionSuccess();
  if (a == b || std::abs(a - b) <= c.abs + c.rel * std::max(std::abs(a), std::abs(b))) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << a << " and " << b << " differ by " << std::abs(a - b);
}

inline void expect_close(const std::vector<ir::Literal>& got, const std::vector<ir::Literal>& want, const ir::OpDef& op,
                         const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].dtype, want[k].dtype) << what;
    ASSERT_EQ(got[k].shape.str(), want[k].shape.str()) << what;
    const Close c = closeness(op, got[k].dtype);
    for (size_t i = 0; i < count(got[k]); ++i)
      ASSERT_TRUE(near(at(got[k], i), at(want[k], i), c)) << what << ": result " << k << ", element " << i;
  }
}
inline void expect_same_bits(const std::vector<ir::Literal>& a, const std::vector<ir::Literal>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t k = 0; k < a.size(); ++k) ASSERT_EQ(*a[k].bytes, *b[k].bytes) << what << ": result " << k;
}

inline std::string type_names(const std::vector<DType>& types) {
  std::string s;
  for (DType t : types) s += cat(s.empty() ? "" : ",", name(t));
  return s;
}

// Calls f(sample, types, values, description) for every sample and every type it is to run with.
inline void for_each_sample(
    const ir::OpDef& op,
    const std::function<void(const ir::Sample&, const std::vector<DType>&, const std::vector<ir::Literal>&, const std::string&)>& f) {
  for (std::string_view text : op.samples) {
    const ir::Sample s = ir::parse_sample(op, text);
    for (const auto& types : ir::sample_types(op, s))
      f(s, types, ir::sample_values(op, s, types), cat(op.name, " ", text, " ", type_names(types)));
  }
}

// Every row, as a parameter of tests.
inline std::vector<std::string> row_names() {
  std::vector<std::string> names;
  for (const ir::OpDef* op : ops::table().all())
    if (!op->has(ir::kStructural)) names.emplace_back(op->name);
  return names;
}

}  // namespace tandem::testing
