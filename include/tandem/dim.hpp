// Dim: an extent that is a number, a symbol ("b"), or an expression over symbols ("b*49", "floor(b/2)+1").
// Kept in canonical form, so two equal polynomials compare equal whichever way they were written.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tandem/shape.hpp>

namespace tandem {

class Dim;
using Dims = std::vector<Dim>;
using Bindings = std::map<std::string, int64_t, std::less<>>;  // symbol -> value, fixed before a run

class Dim {
 public:
  Dim() = default;
  Dim(int64_t value) : value_(value) {}      // NOLINT: a number is an extent
  Dim(int value) : value_(value) {}          // NOLINT
  static Dim symbol(std::string_view name);  // the same name is the same symbol; letters, digits, _ ; UserError otherwise

  bool is_const() const { return !expression_; }
  int64_t value() const;  // InternalError unless is_const()
  bool is(int64_t v) const { return is_const() && value_ == v; }
  // The value under these bindings; UserError names a symbol that is not bound.
  int64_t eval(const Bindings& bindings) const;
  std::string str() const;
  size_t hash() const;
  void collect_symbols(std::vector<std::string>& out) const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend bool operator==(const Dim& a, const Dim& b);
  friend Dim floor_div(const Dim& a, const Dim& b);  // b > 0
  friend Dim ceil_div(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);
  // a/b when that is exact for every binding ("b*49" / 49), else nothing.
  friend bool divides_exactly(const Dim& a, const Dim& b, Dim& quotient);

  struct Expression;  // canonical polynomial over symbols and non-polynomial atoms; private to dim.cpp

 private:
  int64_t value_ = 0;
  std::shared_ptr<const Expression> expression_;
  friend struct DimAccess;
};

Dim floor_div(const Dim& a, const Dim& b);
Dim ceil_div(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);
bool divides_exactly(const Dim& a, const Dim& b, Dim& quotient);

Dim parse_dim(std::string_view text);  // what str() printed; UserError otherwise
std::string str(const Dims& dims);     // "[b,3]"
Dim product(const Dims& dims);
Dims to_dims(const Shape& s);
Shape bind(const Dims& dims, const Bindings& bindings);
// NumPy's broadcasting with symbols: equal dims, or one of them the number 1. A UserError names the symbols it cannot compare.
Dims broadcast(const Dims& a, const Dims& b);
// Matches a concrete shape against dims: binds symbols not yet bound, checks the others; UserError names `what`, the axis and both numbers.
void unify(const Dims& dims, const Shape& shape, Bindings& bindings, std::string_view what);

}  // namespace tandem
