#include "nn/saving/loading.hpp"

#include "base/text.hpp"

namespace tandem::nn {
namespace {
thread_local LoadingScope* current = nullptr;
}

LoadingScope::LoadingScope(uint64_t bytes) : outer_(current), bytes_(bytes), left_(bytes) { current = this; }
LoadingScope::~LoadingScope() { current = outer_; }

bool LoadingScope::active() { return current != nullptr; }

void LoadingScope::take(const std::string& weight, const Shape& shape, DType dtype) {
  const size_t needed = byte_size(shape, dtype);
  if (needed > current->left_)
    user_error("weight '", weight, "' of shape ", shape, " needs ", needed, " bytes; ", current->left_, " of the ", current->bytes_,
               " bytes of weights in the file are left for it");
  current->left_ -= needed;
}

}  // namespace tandem::nn
