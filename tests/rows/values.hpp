// Which calls are compared with NumPy, and the file of values that tools/numpy_values.py computed for them.
//
//   call <op> <tab> <sample> <tab> <types> <tab> <hash of the inputs>
//   result <dtype> <shape> <values …>          one line a result
#pragma once
#include <fstream>
#include <map>
#include <sstream>

#include "support.hpp"

namespace tandem::testing {

// What a sample names is compared as it is. Of the types that it leaves open, one floating type and one integer type of each kind say
// what an op means; the others are compared with the interpreter.
inline bool compared_with_numpy(const ir::Sample& s, const std::vector<DType>& types) {
  if (!s.numpy) return false;
  for (DType t : types) {
    bool compared = t == DType::F64 || t == DType::I32 || t == DType::U32 || t == DType::Bool;
    for (const auto& o : s.operands) compared |= o.has_dtype && o.dtype == t;
    if (!compared) return false;
  }
  return true;
}

// An element of an integer or bool tensor, exact where a double is not.
inline std::string integer_text(const ir::Literal& l, size_t i) {
  return dispatch(l.dtype, [&](auto zero) -> std::string {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      T x;
      std::memcpy(&x, l.bytes->data() + i * sizeof(T), sizeof(T));
      return std::to_string(x);
    } else {
      internal_error("integer_text of ", l.dtype);
    }
  });
}

inline uint64_t input_hash(const std::vector<ir::Literal>& in) {
  uint64_t h = 0xcbf29ce484222325ULL;
  for (const auto& l : in)
    for (std::byte b : *l.bytes) h = (h ^ static_cast<uint64_t>(b)) * 0x100000001b3ULL;
  return h;
}

inline std::string call_key(const ir::OpDef& op, const ir::Sample& s, const std::vector<DType>& types, const std::vector<ir::Literal>& in) {
  return cat(op.name, "\t", s.text, "\t", type_names(types), "\t", input_hash(in));
}

struct Expected {
  std::string dtype, shape;
  std::vector<std::string> values;
};
inline ::testing::AssertionResult matches(const ir::Literal& got, size_t i, const std::string& want, Close c) {
  if (is_float(got.dtype)) return near(at(got, i), std::strtod(want.c_str(), nullptr), c);
  if (integer_text(got, i) == want) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << integer_text(got, i) << " is not " << want;
}

inline std::map<std::string, std::vector<Expected>> read_values(const std::string& path) {
  std::map<std::string, std::vector<Expected>> all;
  std::ifstream in(path);
  std::vector<Expected>* current = nullptr;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("call ", 0) == 0) {
      current = &all[line.substr(5)];
    } else if (line.rfind("result ", 0) == 0 && current) {
      std::istringstream words(line.substr(7));
      Expected e;
      words >> e.dtype >> e.shape;
      for (std::string w; words >> w;) e.values.push_back(w);
      current->push_back(std::move(e));
    }
  }
  return all;
}

}  // namespace tandem::testing
