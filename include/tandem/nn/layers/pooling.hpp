// Pooling in one to three spatial axes. Without strides the windows lie side by side.
#pragma once
#include <tandem/nn/layers/reshaping.hpp>

namespace tandem::nn {

struct PoolingOptions {
  IntList strides = {};
  std::string padding = "valid";  // valid, same
  std::string data_format = "channels_last";
  std::string name = {};
};
struct MaxPooling1D : Layer {
  explicit MaxPooling1D(const IntList& pool_size = 2, const PoolingOptions& options = {});
};
struct MaxPooling2D : Layer {
  explicit MaxPooling2D(const IntList& pool_size = 2, const PoolingOptions& options = {});
};
struct MaxPooling3D : Layer {
  explicit MaxPooling3D(const IntList& pool_size = 2, const PoolingOptions& options = {});
};
struct AveragePooling1D : Layer {
  explicit AveragePooling1D(const IntList& pool_size = 2, const PoolingOptions& options = {});
};
struct AveragePooling2D : Layer {
  explicit AveragePooling2D(const IntList& pool_size = 2, const PoolingOptions& options = {});
};
struct AveragePooling3D : Layer {
  explicit AveragePooling3D(const IntList& pool_size = 2, const PoolingOptions& options = {});
};

struct GlobalPoolingOptions {
  std::string data_format = "channels_last";
  bool keepdims = false;
  std::string name = {};
};
struct GlobalMaxPooling1D : Layer {
  explicit GlobalMaxPooling1D(const GlobalPoolingOptions& options = {});
};
struct GlobalMaxPooling2D : Layer {
  explicit GlobalMaxPooling2D(const GlobalPoolingOptions& options = {});
};
struct GlobalMaxPooling3D : Layer {
  explicit GlobalMaxPooling3D(const GlobalPoolingOptions& options = {});
};
// Masked steps do not count.
struct GlobalAveragePooling1D : Layer {
  explicit GlobalAveragePooling1D(const GlobalPoolingOptions& options = {});
};
struct GlobalAveragePooling2D : Layer {
  explicit GlobalAveragePooling2D(const GlobalPoolingOptions& options = {});
};
struct GlobalAveragePooling3D : Layer {
  explicit GlobalAveragePooling3D(const GlobalPoolingOptions& options = {});
};

}  // namespace tandem::nn
