// While a model is made from a file, its weights are about to be replaced: they begin as zeros, and together they may not be larger than
// what the file can fill, so that a few words in a config cannot ask for all memory.
#pragma once
#include <cstdint>
#include <string>

#include <tandem/shape.hpp>

namespace tandem::nn {

class LoadingScope {
 public:
  explicit LoadingScope(uint64_t file_bytes);  // for this thread
  ~LoadingScope();
  LoadingScope(const LoadingScope&) = delete;
  LoadingScope& operator=(const LoadingScope&) = delete;

  static bool active();
  static void take(const std::string& weight, const Shape& shape, DType dtype);  // UserError when it is more than is left

 private:
  LoadingScope* outer_;
  uint64_t file_bytes_, left_;
};

}  // namespace tandem::nn
