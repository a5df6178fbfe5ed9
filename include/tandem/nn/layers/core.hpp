// The layers that most models begin and end with.
#pragma once
#include <tandem/nn/layer.hpp>

namespace tandem::nn {

struct InputOptions {
  DType dtype = DType::F32;
  std::string name = {};
};
// The input of a model, for the beginning of a sequence; the shape is without the batch.
struct InputLayer : Layer {
  explicit InputLayer(const DimList& shape, const InputOptions& options = {});
  Symbol symbol() const;
};

struct DenseOptions {
  ActivationFunction activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform", bias_initializer = "zeros";
  Regularizer kernel_regularizer = {}, bias_regularizer = {}, activity_regularizer = {};
  Constraint kernel_constraint = {}, bias_constraint = {};
  std::string name = {};
};
// activation(x kernel + bias), along the last axis.
struct Dense : Layer {
  explicit Dense(int64_t units, const DenseOptions& options = {});
};

struct EinsumDenseOptions {
  ActivationFunction activation = {};
  std::string bias_axes = {};  // labels of the result; none: no bias
  Initializer kernel_initializer = "glorot_uniform", bias_initializer = "zeros";
  Regularizer kernel_regularizer = {}, bias_regularizer = {}, activity_regularizer = {};
  Constraint kernel_constraint = {}, bias_constraint = {};
  std::string name = {};
};
// EinsumDense("abc,cd->abd", {-1, 64}): the shape is that of the result without its first axis; -1 is taken from the input.
struct EinsumDense : Layer {
  EinsumDense(const std::string& equation, std::vector<int64_t> output_shape, const EinsumDenseOptions& options = {});
};

struct EmbeddingOptions {
  Initializer embeddings_initializer = "uniform";
  Regularizer embeddings_regularizer = {}, activity_regularizer = {};
  Constraint embeddings_constraint = {};
  bool mask_zero = false;  // 0 is padding: later layers skip it
  std::string name = {};
};
// A row of a table for each integer.
struct Embedding : Layer {
  Embedding(int64_t input_dim, int64_t output_dim, const EmbeddingOptions& options = {});
};

struct NamedOptions {
  std::string name = {};
};
// Masks the time steps all of whose features are mask_value.
struct Masking : Layer {
  explicit Masking(double mask_value = 0.0, const NamedOptions& options = {});
};
struct Identity : Layer {
  explicit Identity(const NamedOptions& options = {});
};

}  // namespace tandem::nn
