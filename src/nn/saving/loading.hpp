// While a model is made from a file, a few words of its config could ask for all memory or all time. So its weights, which are about to be
// replaced and begin as zeros, have together hardly more numbers than the file; and what layers and metrics compute from their settings
// alone, and how often layers are called, is limited.
#pragma once
#include <cstdint>
#include <string>

#include <tandem/shape.hpp>

namespace tandem::nn {

class LoadingScope {
 public:
  explicit LoadingScope(uint64_t file_numbers);  // for this thread; how many numbers the file has
  ~LoadingScope();
  LoadingScope(const LoadingScope&) = delete;
  LoadingScope& operator=(const LoadingScope&) = delete;

  static bool active();
  // UserErrors with both numbers when it is more than is left. Without a scope nothing is counted.
  static void take_weight(const std::string& weight, const Shape& shape);
  static void take_constant(const std::string& what, int64_t numbers);  // the matrix of a Resizing, the state of a metric
  static void count_call();                                             // of a layer, also inside another one

 private:
  LoadingScope* outer_;
  const uint64_t file_numbers_;
  uint64_t weights_left_;
  int64_t constants_left_, calls_left_;
};

}  // namespace tandem::nn
