// The scalar primitives as C-style text: a statement for each node, with the meanings of ir/scalar.hpp. For the renderer, and
// for kernels of devices that need a piece of it.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/c_render.hpp"

namespace tandem::codegen {

// What an i64 can be. `known`: it lies in [low, high]; only then may it be computed in 32 bits.
struct CRange {
  bool known = false;
  int64_t low = 0, high = 0;
  bool is_narrow() const { return known && low >= INT32_MIN && high <= INT32_MAX; }
  static CRange of(int64_t low, int64_t high) { return {true, low, high}; }
};

struct CValue {
  std::string text;
  bool narrow = false;  // an i64 whose text is an int
  CRange range = {};
};

// The functions of our own that a program needs, in an order in which each comes behind those it calls.
class CHelpers {
 public:
  explicit CHelpers(const CDialect& d) : d_(d) {}
  std::string text() const { return text_; }
  bool uses_double() const { return uses_double_; }
  void use_double() { uses_double_ = true; }
  // Names of functions, which are written when they are first asked for.
  std::string integer(ir::Prim p, DType t);                            // div, rem, shl, shr, mulhi
  std::string extreme(ir::Prim p, DType t);                            // min and max of floats
  std::string saturating(DType from, DType to);                        // float to integer
  std::string from_bits(DType t), to_bits(DType t), rounded(DType t);  // of the 16-bit floats
  std::string divide(), square_root();

 private:
  void add(const std::string& name, const std::string& text);
  const CDialect& d_;
  std::set<std::string> names_;
  std::string text_;
  bool uses_double_ = false;
};

// Writes statements for expressions. One for each scope: a node that was written there is not written again.
class CValues {
 public:
  struct Leaves {
    std::vector<CValue> axes;
    std::vector<std::string> acc, right;
    const std::vector<int64_t>* params;
    const std::vector<DType>* inputs;
  };
  CValues(const CDialect& d, CHelpers& helpers, int& next_name, Leaves leaves)
      : d_(d), helpers_(helpers), next_name_(next_name), leaves_(std::move(leaves)) {}

  // The names of the roots' values; statements go to `out`, each behind `indent`.
  std::vector<CValue> write(std::span<const ir::Scalar> roots, std::string& out, std::string_view indent);

  static std::string to_memory(CHelpers& helpers, const std::string& value, DType t);
  static std::string_view memory_type(const CDialect& d, DType t);

 private:
  CValue leaf(const ir::ScalarNode& n) const;
  CValue node(const ir::ScalarNode& n);
  CValue load(const ir::ScalarNode& n);
  CValue index_arithmetic(const ir::ScalarNode& n);  // i64
  std::string integer(const ir::ScalarNode& n, const std::vector<std::string>& in, DType t);
  std::string floating(const ir::ScalarNode& n, const std::vector<std::string>& in, DType t);
  std::string cast(const std::string& v, DType from, DType to);
  std::string bitcast(const std::string& v, DType from, DType to);
  std::string constant(const ir::ScalarNode& n) const;
  const CValue& of(const ir::Scalar& s) const { return done_.at(s.get()); }
  std::string wide(const CValue& v) const;
  std::string_view type(DType t) const { return d_.types[static_cast<size_t>(t)]; }

  const CDialect& d_;
  CHelpers& helpers_;
  int& next_name_;
  Leaves leaves_;
  std::unordered_map<const ir::ScalarNode*, CValue> done_;
  std::vector<ir::Scalar> kept_;  // what `done_` points into
};

}  // namespace tandem::codegen
