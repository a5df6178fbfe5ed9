#include "nn/saving/loading.hpp"

#include "base/text.hpp"

namespace tandem::nn {
namespace {

thread_local LoadingScope* current = nullptr;
constexpr uint64_t kWidest = 8;  // a weight may be wider than its value in the file: float64 where Keras kept float32

}  // namespace

LoadingScope::LoadingScope(uint64_t file_bytes) : outer_(current), file_bytes_(file_bytes), left_(kWidest * file_bytes) { current = this; }
LoadingScope::~LoadingScope() { current = outer_; }

bool LoadingScope::active() { return current != nullptr; }

void LoadingScope::take(const std::string& weight, const Shape& shape, DType dtype) {
  const size_t needed = byte_size(shape, dtype);
  if (needed > current->left_)
    user_error("weight '", weight, "' of shape ", shape, " has ", needed, " bytes, more than the file's ", current->file_bytes_,
               " can fill");
  current->left_ -= needed;
}

}  // namespace tandem::nn
