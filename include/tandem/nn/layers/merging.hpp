// Layers that make one of several inputs: Add()({a, b}).
#pragma once
#include <tandem/nn/layers/core.hpp>

namespace tandem::nn {

struct Add : Layer {
  explicit Add(const NamedOptions& options = {});
};
struct Subtract : Layer {  // of exactly two
  explicit Subtract(const NamedOptions& options = {});
};
struct Multiply : Layer {
  explicit Multiply(const NamedOptions& options = {});
};
struct Average : Layer {
  explicit Average(const NamedOptions& options = {});
};
struct Maximum : Layer {
  explicit Maximum(const NamedOptions& options = {});
};
struct Minimum : Layer {
  explicit Minimum(const NamedOptions& options = {});
};
struct Concatenate : Layer {
  explicit Concatenate(int64_t axis = -1, const NamedOptions& options = {});
};
struct DotOptions {
  bool normalize = false;  // to length 1 before, so that the result is a cosine
  std::string name = {};
};
// The sum of products over one axis of each of two inputs, for every example.
struct Dot : Layer {
  explicit Dot(const IntList& axes, const DotOptions& options = {});
};

}  // namespace tandem::nn
