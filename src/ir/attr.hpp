// Attributes: what an op is told besides its operands. A closed set of kinds, each with text, equality and a hash.
#pragma once
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/text.hpp"
#include "ir/type.hpp"

namespace tandem::ir {

class Graph;
using GraphRef = std::shared_ptr<const Graph>;
class HostFunction;  // ir/op.hpp
using HostFunctionRef = std::shared_ptr<const HostFunction>;

// A constant tensor: bytes in row-major order.
struct Literal {
  DType dtype = DType::F32;
  Shape shape;
  std::shared_ptr<const std::vector<std::byte>> bytes;
  template <class T> std::span<const T> values() const { return {reinterpret_cast<const T*>(bytes->data()), bytes->size() / sizeof(T)}; }
  static Literal scalar(DType t, double value);
  static Literal scalar_int(DType t, int64_t value);
  static Literal of(DType t, Shape s, const void* data);
  TensorType type() const { return {dtype, to_dims(shape)}; }
};

// One element as a number. Storing into an integer truncates and saturates like Scalar's Cast, NaN gives 0; 64-bit integers beyond
// 2^53 are rounded on the way out.
void store_number(DType t, std::byte* element, double value);
double load_number(DType t, const std::byte* element);

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;
using Graphs = std::vector<GraphRef>;
// monostate is "none": an optional attribute that was not given.
using Attr = std::variant<std::monostate, bool, int64_t, double, std::string, DType, Ints, Floats, Dims, Graphs, Literal, HostFunctionRef>;

std::string str(const Literal& v);                             // "float32[2]{1,2.5}": exact; long ones as hexadecimal bytes
std::string str(const Attr& a);                                // exact, but for graphs and functions, which show their names only
std::string quoted(std::string_view text, char quote = '\'');  // with escapes, as in graph text
bool equal(const Attr& a, const Attr& b);                      // numbers by their bits: NaN equals itself, 0 and -0 differ
size_t hash(const Attr& a);
inline size_t hash_combine(size_t seed, size_t h) { return (seed ^ h) * 0x9E3779B97F4A7C15u + (seed << 6) + (h >> 3); }

// In the order of the op's signature, defaults filled in.
class Attrs {
 public:
  struct Entry {
    std::string name;
    Attr value;
  };
  Attrs() = default;
  Attrs(std::initializer_list<Entry> e) : entries_(e) {}
  void set(std::string_view name, Attr value);
  const Attr* find(std::string_view name) const;
  bool has(std::string_view name) const;  // present and not none
  template <class T> const T& get(std::string_view name) const {
    const Attr* a = find(name);
    const T* v = a ? std::get_if<T>(a) : nullptr;
    if (!v) internal_error("attribute '", name, "' is missing or has another kind");
    return *v;
  }
  const std::vector<Entry>& entries() const { return entries_; }
  friend bool operator==(const Attrs& a, const Attrs& b);
  size_t hash() const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace tandem::ir
