// Layers that only move, cut or repeat what they are given.
#pragma once
#include <tandem/nn/layers/core.hpp>

namespace tandem::nn {

struct DataFormatOptions {
  std::string data_format = "channels_last";
  std::string name = {};
};

// [batch, ...] -> [batch, all]
struct Flatten : Layer {
  explicit Flatten(const DataFormatOptions& options = {});
};
// The shape is without the batch; one entry may be -1.
struct Reshape : Layer {
  explicit Reshape(std::vector<int64_t> target_shape, const NamedOptions& options = {});
};
// Axes without the batch, which count from 1: Permute({2, 1}).
struct Permute : Layer {
  explicit Permute(std::vector<int64_t> dims, const NamedOptions& options = {});
};
// [batch, features] -> [batch, n, features]
struct RepeatVector : Layer {
  explicit RepeatVector(int64_t n, const NamedOptions& options = {});
};

// How much at the beginning and at the end of an axis; one number is both.
struct Border {
  Border(int64_t both) : before(both), after(both) {}  // NOLINT
  Border(int64_t b, int64_t a) : before(b), after(a) {}
  int64_t before, after;
};
// One border for all axes, or one for each: 1, {1, 2}, {{1, 0}, {2, 3}}.
class Borders {
 public:
  Borders(int64_t all) : list_{all} {}  // NOLINT
  Borders(std::initializer_list<Border> list) : list_(list) {}
  const std::vector<Border>& list() const { return list_; }

 private:
  std::vector<Border> list_;
};

struct Cropping1D : Layer {
  explicit Cropping1D(const Border& cropping = 1, const NamedOptions& options = {});
};
struct Cropping2D : Layer {
  explicit Cropping2D(const Borders& cropping = 0, const DataFormatOptions& options = {});
};
struct Cropping3D : Layer {
  explicit Cropping3D(const Borders& cropping = 1, const DataFormatOptions& options = {});
};
struct ZeroPadding1D : Layer {
  explicit ZeroPadding1D(const Border& padding = 1, const DataFormatOptions& options = {});
};
struct ZeroPadding2D : Layer {
  explicit ZeroPadding2D(const Borders& padding = 1, const DataFormatOptions& options = {});
};
struct ZeroPadding3D : Layer {
  explicit ZeroPadding3D(const Borders& padding = 1, const DataFormatOptions& options = {});
};

struct UpSampling1D : Layer {
  explicit UpSampling1D(int64_t size = 2, const NamedOptions& options = {});
};
struct UpSampling2DOptions {
  std::string data_format = "channels_last";
  std::string interpolation = "nearest";  // nearest, bilinear, bicubic, lanczos3, lanczos5
  std::string name = {};
};
struct UpSampling2D : Layer {
  explicit UpSampling2D(const IntList& size = 2, const UpSampling2DOptions& options = {});
};
struct UpSampling3D : Layer {
  explicit UpSampling3D(const IntList& size = 2, const DataFormatOptions& options = {});
};

}  // namespace tandem::nn
