// Samples: calls written as text beside an op's row; the tests, the docs and the benchmarks make them.
//
//   "([2,3] in -2..2, [3]; axis=1)"       operands, then attributes as name=value
//   operand:  [dims] [:dtype] [in lo..hi | special | distinct | posdef | symmetric]   or   {1,2,3}[:dtype] explicit values
//             ({{1,2},{3,4}} a matrix, 5 a number without axes); types that cannot hold the values or the range are left out
//             no :dtype means every type that the signature accepts, one after the other; `special` adds NaN, infinities, -0,
//             the largest and smallest numbers; `distinct` gives a shuffled sequence without ties; default: -2..2 (integers -5..5, unsigned
//             0..10)
//   attribute values: 3  0.5  true  none  'text'  float32  [1,2]  (a shape is written like ints)
//   a trailing "!grad" keeps a sample out of the gradient test (it sits on a kink), "!numpy" out of the comparison with stored values.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/op.hpp"

namespace tandem::ir {

struct SampleOperand {
  enum class Fill : uint8_t { Range, Special, Distinct, PosDef, Symmetric, Values };
  Shape shape;
  bool has_dtype = false;
  DType dtype = DType::F32;
  Fill fill = Fill::Range;
  bool has_range = false;
  double low = 0, high = 0;
  std::vector<double> values;
};
struct Sample {
  std::vector<SampleOperand> operands;
  Attrs attrs;  // completed
  bool gradient = true, numpy = true;
  std::string text;
};

Sample parse_sample(const OpDef& op, std::string_view text);  // InternalError shows where
// Every assignment of operand types that the sample and the signature admit (float operands: only floating types). Operands of T go
// together, and so do those of a type of their own without a given one, and the indices. InternalError when there is none.
std::vector<std::vector<DType>> sample_types(const OpDef& op, const Sample& s);
// The operands' values: deterministic in (op name, sample text, operand index, dtype); the same on every machine.
std::vector<Literal> sample_values(const OpDef& op, const Sample& s, const std::vector<DType>& types);

}  // namespace tandem::ir
