// The type of a value in a graph: element type and extents, which may be symbols.
#pragma once
#include <string>

#include <tandem/dim.hpp>
#include <tandem/dtype.hpp>

namespace tandem::ir {

struct TensorType {
  DType dtype = DType::F32;
  Dims dims;
  int rank() const { return static_cast<int>(dims.size()); }
  friend bool operator==(const TensorType& a, const TensorType& b) { return a.dtype == b.dtype && a.dims == b.dims; }
  std::string str() const;  // "float32[b,3]"
};

}  // namespace tandem::ir
