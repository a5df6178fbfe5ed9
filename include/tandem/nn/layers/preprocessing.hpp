// Layers that prepare data: fixed arithmetic, sizes of pictures, and random changes of pictures while training. Pictures are
// [batch, height, width, channels] or one picture without the batch.
#pragma once
#include <tandem/data.hpp>
#include <tandem/nn/layers/reshaping.hpp>

namespace tandem::nn {

struct RescalingOptions {
  FloatList offset = 0.0;
  std::string name = {};
};
// x * scale + offset; lists have one number a channel.
struct Rescaling : Layer {
  explicit Rescaling(const FloatList& scale, const RescalingOptions& options = {});
};

struct NormalizationOptions {
  std::optional<std::vector<int64_t>> axis =
      std::vector<int64_t>{-1};        // axes that have a mean and a variance of their own; none: one for all
  FloatList mean = {}, variance = {};  // given, or learned by adapt
  bool invert = false;
  std::string name = {};
};
// (x - mean) / sqrt(variance).
struct Normalization : Layer {
  explicit Normalization(const NormalizationOptions& options = {});
  void adapt(const Tensor& data, Where where = Where::current()) const;
  void adapt(const data::Dataset& batches, Where where = Where::current()) const;  // of its first component
};

struct ResizingOptions {
  std::string interpolation = "bilinear";  // nearest, bilinear, bicubic, lanczos3, lanczos5
  bool crop_to_aspect_ratio = false, pad_to_aspect_ratio = false;
  double fill_value = 0.0;  // of what is padded
  bool antialias = false;
  std::string data_format = "channels_last";
  std::string name = {};
};
struct Resizing : Layer {
  Resizing(int64_t height, int64_t width, const ResizingOptions& options = {});
};
// The middle; a picture that is too small is scaled.
struct CenterCrop : Layer {
  CenterCrop(int64_t height, int64_t width, const DataFormatOptions& options = {});
};

// --- while training only ------------------------------------------------------------------------------------------------------------

struct AugmentationOptions {
  std::optional<int64_t> seed = {};
  std::string data_format = "channels_last";
  std::string name = {};
};
struct RandomFlip : Layer {
  explicit RandomFlip(const std::string& mode = "horizontal_and_vertical", const AugmentationOptions& options = {});
};
// The same place for the whole batch.
struct RandomCrop : Layer {
  RandomCrop(int64_t height, int64_t width, const AugmentationOptions& options = {});
};

struct TransformOptions {
  std::string fill_mode = "reflect";       // reflect, wrap, constant, nearest
  std::string interpolation = "bilinear";  // nearest, bilinear
  std::optional<int64_t> seed = {};
  double fill_value = 0.0;
  std::string data_format = "channels_last";
  std::string name = {};
};
// Factors are ranges, {low, high}; one number f is {-f, f}.
struct RandomRotation : Layer {  // in turns
  explicit RandomRotation(const FloatList& factor, const TransformOptions& options = {});
};
struct RandomTranslation : Layer {  // in heights and widths
  RandomTranslation(const FloatList& height_factor, const FloatList& width_factor, const TransformOptions& options = {});
};
struct ZoomOptions {
  FloatList width_factor = {};  // none: that of the height, so that the shape of things is kept
  std::string fill_mode = "reflect";
  std::string interpolation = "bilinear";
  std::optional<int64_t> seed = {};
  double fill_value = 0.0;
  std::string data_format = "channels_last";
  std::string name = {};
};
struct RandomZoom : Layer {  // positive makes things smaller
  explicit RandomZoom(const FloatList& height_factor, const ZoomOptions& options = {});
};

struct ColorOptions {
  std::pair<double, double> value_range = {0, 255};
  std::optional<int64_t> seed = {};
  std::string data_format = "channels_last";
  std::string name = {};
};
struct RandomBrightness : Layer {
  explicit RandomBrightness(const FloatList& factor, const ColorOptions& options = {});
};
// Distances from the mean times 1 - low … 1 + high; one number f is {0, f}.
struct RandomContrast : Layer {
  explicit RandomContrast(const FloatList& factor, const ColorOptions& options = {});
};

}  // namespace tandem::nn
