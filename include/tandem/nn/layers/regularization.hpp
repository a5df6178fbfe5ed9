// Layers that do something to the data while training and nothing otherwise.
#pragma once
#include <tandem/nn/layers/core.hpp>

namespace tandem::nn {

struct DropoutOptions {
  IntList noise_shape = {};  // 1 where one decision serves a whole axis, -1 for the input's extent
  std::optional<int64_t> seed = {};
  std::string name = {};
};
// Sets elements to zero with probability `rate` and scales the others up.
struct Dropout : Layer {
  explicit Dropout(double rate, const DropoutOptions& options = {});
};

struct SeedOptions {
  std::optional<int64_t> seed = {};
  std::string name = {};
};
// Dropout of whole channels.
struct SpatialDropout1D : Layer {
  explicit SpatialDropout1D(double rate, const SeedOptions& options = {});
};
struct SpatialDropoutOptions {
  std::string data_format = "channels_last";
  std::optional<int64_t> seed = {};
  std::string name = {};
};
struct SpatialDropout2D : Layer {
  explicit SpatialDropout2D(double rate, const SpatialDropoutOptions& options = {});
};
struct SpatialDropout3D : Layer {
  explicit SpatialDropout3D(double rate, const SpatialDropoutOptions& options = {});
};
// Adds normal noise of this deviation.
struct GaussianNoise : Layer {
  explicit GaussianNoise(double stddev, const SeedOptions& options = {});
};
// Multiplies by normal noise around 1 with the deviation sqrt(rate / (1 - rate)).
struct GaussianDropout : Layer {
  explicit GaussianDropout(double rate, const SeedOptions& options = {});
};
// For networks with selu: what is dropped becomes its lowest value, and mean and variance stay.
struct AlphaDropout : Layer {
  explicit AlphaDropout(double rate, const DropoutOptions& options = {});
};
// A loss of what passes through.
struct ActivityRegularization : Layer {
  explicit ActivityRegularization(double l1 = 0.0, double l2 = 0.0, const NamedOptions& options = {});
};

}  // namespace tandem::nn
