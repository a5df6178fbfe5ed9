// Text of tensor types.
#include "ir/type.hpp"

namespace tandem::ir {

std::string TensorType::str() const { return std::string(name(dtype)) + tandem::str(dims); }

}  // namespace tandem::ir
