// A plain evaluator of graphs for the tests of ops and gradients: one element at a time, nothing fused, nothing fast. It stands on the
// rows alone, so it can judge them before there is any device.
#pragma once
#include <cstring>
#include <vector>

#include "base/half.hpp"
#include "ir/builder.hpp"
#include "ir/loops.hpp"

namespace tandem::test {

struct Array {
  DType dtype = DType::F32;
  Shape shape;
  std::vector<std::byte> bytes;

  Array() = default;
  Array(DType t, Shape s) : dtype(t), shape(s), bytes(byte_size(s, t)) {}
  int64_t count() const { return element_count(shape); }
  template <class T> const T* as() const { return reinterpret_cast<const T*>(bytes.data()); }
  template <class T> T* as() { return reinterpret_cast<T*>(bytes.data()); }
  double at(int64_t i) const {
    return dispatch(dtype, [&](auto zero) {
      using T = decltype(zero);
      const T v = as<T>()[i];
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
        return static_cast<double>(static_cast<float>(v));
      else
        return static_cast<double>(v);
    });
  }
  void set(int64_t i, double v) {
    dispatch(dtype, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
        as<T>()[i] = T(static_cast<float>(v));
      else
        as<T>()[i] = static_cast<T>(v);
    });
  }
  std::vector<double> values() const {
    std::vector<double> v;
    for (int64_t i = 0; i < count(); ++i) v.push_back(at(i));
    return v;
  }
  static Array of(DType t, Shape s, const std::vector<double>& v) {
    Array a(t, s);
    for (size_t i = 0; i < v.size(); ++i) a.set(static_cast<int64_t>(i), v[i]);
    return a;
  }
  static Array of(const ir::Literal& l) {
    Array a(l.dtype, l.shape);
    a.bytes = *l.bytes;
    return a;
  }
};

std::vector<Array> evaluate(const ir::OpTable& table, const ir::Graph& g, const std::vector<Array>& inputs, const Bindings& bindings = {});
// Of one op that has loops, and its attributes with symbols bound.
std::vector<Array> run_loops(const ir::Loops& l, const std::vector<Array>& in, const Bindings& bindings);
ir::Attrs bound_attrs(const ir::Attrs& attrs, const Bindings& bindings);

}  // namespace tandem::test
