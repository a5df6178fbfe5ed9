// Random changes of pictures while training.
#include <algorithm>
#include <numbers>

#include <tandem/nn/layers/preprocessing.hpp>
#include <tandem/ops.hpp>

#include "nn/layers/affine.hpp"
#include "nn/layers/images.hpp"
#include "nn/layers/resize.hpp"
#include "nn/shapes_of_training.hpp"

namespace tandem::nn {
namespace {

struct Range {
  double low, high;
};
// One number f is -f … f.
Range range_of(const char* kind, const char* setting, const FloatList& list) {
  const auto& v = list.values();
  if (v.size() != 1 && v.size() != 2) user_error(kind, ": ", setting, " has ", v.size(), " numbers, expected 1 or 2");
  const Range r = v.size() == 1 ? Range{-std::abs(v[0]), std::abs(v[0])} : Range{v[0], v[1]};
  if (!(r.low <= r.high)) user_error(kind, ": ", setting, " goes from ", r.low, " to ", r.high, ", which is backwards");
  return r;
}

// --- RandomFlip, RandomCrop ------------------------------------------------------------------------------------------------------------

struct RandomFlipSettings {
  std::string mode = "horizontal_and_vertical";
  AugmentationOptions options;
};
template <class F> void describe(F& field, RandomFlipSettings& s) {
  field("data_format", s.options.data_format);
  field("seed", s.options.seed);
  field("mode", s.mode);
}

class RandomFlipBody : public ImageKind<RandomFlipSettings> {
 public:
  static constexpr const char* kName = "RandomFlip";
  explicit RandomFlipBody(RandomFlipSettings settings) : ImageKind(std::move(settings)) {
    expect_one_of(kName, "mode", s.mode, {"horizontal", "vertical", "horizontal_and_vertical"});
    expect_data_format(kName, s.options.data_format);
  }
  std::string class_name() const override { return kName; }

 protected:
  Tensor transform(const Tensor& x, const Pass& pass) override {
    if (!pass.training) return x;
    const Tensor flips = random(s.options.seed).uniform({x.dims()[0], 1, 1, 1}) <= 0.5;  // one decision for both directions, as in Keras
    std::vector<int64_t> axes;
    if (s.mode != "horizontal") axes.push_back(1);
    if (s.mode != "vertical") axes.push_back(2);
    return where(flips, flip(x, axes), x);
  }
};

struct RandomCropSettings {
  int64_t height = 1, width = 1;
  AugmentationOptions options;
};
template <class F> void describe(F& field, RandomCropSettings& s) {
  field("data_format", s.options.data_format);
  field("height", s.height);
  field("width", s.width);
  field("seed", s.options.seed);
}

class RandomCropBody : public ImageKind<RandomCropSettings>, public ShapesOfTraining {
 public:
  static constexpr const char* kName = "RandomCrop";
  explicit RandomCropBody(RandomCropSettings settings) : ImageKind(std::move(settings)) {
    expect_positive(kName, "height", s.height);
    expect_positive(kName, "width", s.width);
    expect_data_format(kName, s.options.data_format);
  }
  std::string class_name() const override { return kName; }

 protected:
  // As Keras does, though its documentation promises one size: without training pictures stay as they are. A picture that is too small to
  // choose from begins where its largest window of the asked proportions does, and what is missing at the end is made up by resizing.
  Tensor transform(const Tensor& x, const Pass& pass) override {
    if (!pass.training) return x;
    const int64_t h = height_of(x), w = width_of(x);
    if (h <= s.height || w <= s.width) {
      const int64_t top = (h - std::clamp<int64_t>(in_proportion(w, s.height, s.width), 1, h)) / 2;
      const int64_t left = (w - std::clamp<int64_t>(in_proportion(h, s.width, s.height), 1, w)) / 2;
      const Tensor part =
          x(ellipsis, Slice(top, top + std::min(s.height, h - top)), Slice(left, left + std::min(s.width, w - left)), Slice(_, _));
      if (height_of(part) == s.height && width_of(part) == s.width) return part;
      return resize_image(part, s.height, s.width, "bilinear");
    }
    Generator& random_numbers = random(s.options.seed);
    const Tensor top = random_numbers.integers(1, 0, h - s.height + 1), left = random_numbers.integers(1, 0, w - s.width + 1);
    const Tensor zero = Tensor::zeros(1, DType::I32);
    return dynamic_slice(x, concatenate({zero, top, left, zero}), {x.dims()[0], s.height, s.width, x.dims()[3]});
  }
};

// --- RandomRotation, RandomTranslation, RandomZoom -------------------------------------------------------------------------------------

template <class F, class O> void describe_fill(F& field, O& o) {
  field("fill_mode", o.fill_mode);
  field("interpolation", o.interpolation);
  field("seed", o.seed);
  field("fill_value", o.fill_value);
}

template <class S> class TransformKind : public ImageKind<S> {
 public:
  using Base = ImageKind<S>;
  using Base::s;
  TransformKind(const char* kind, S settings) : Base(std::move(settings)) {
    expect_one_of(kind, "fill_mode", s.options.fill_mode, {"reflect", "wrap", "constant", "nearest"});
    expect_one_of(kind, "interpolation", s.options.interpolation, {"nearest", "bilinear"});
    expect_data_format(kind, s.options.data_format);
  }

 protected:
  Tensor transform(const Tensor& x, const Pass& pass) override {
    if (!pass.training) return x;
    return affine_transform(x, matrix(x), {s.options.interpolation, s.options.fill_mode, s.options.fill_value});
  }
  virtual Affine matrix(const Tensor& x) = 0;
  Tensor draw(const Tensor& x, const Range& r) { return this->random(s.options.seed).uniform({x.dims()[0]}, r.low, r.high); }
};

struct RandomRotationSettings {
  FloatList factor = 0.0;
  TransformOptions options;
};
template <class F> void describe(F& field, RandomRotationSettings& s) {
  field("data_format", s.options.data_format);
  describe_numbers(field, "factor", s.factor);
  describe_fill(field, s.options);
}

// Keras writes ranges as pairs even where one number was given.
FloatList as_pair(const char* kind, const FloatList& list) {
  const Range r = range_of(kind, "factor", list);
  return std::vector{r.low, r.high};
}

class RandomRotationBody : public TransformKind<RandomRotationSettings> {
 public:
  static constexpr const char* kName = "RandomRotation";
  explicit RandomRotationBody(RandomRotationSettings settings)
      : TransformKind(kName, {as_pair(kName, settings.factor), settings.options}), turns_(range_of(kName, "factor", s.factor)) {}
  std::string class_name() const override { return kName; }

 protected:
  Affine matrix(const Tensor& x) override {
    const double middle_x = static_cast<double>(width_of(x) - 1) / 2, middle_y = static_cast<double>(height_of(x) - 1) / 2;
    const Tensor angle = draw(x, turns_) * (2 * std::numbers::pi);
    const Tensor c = cos(angle), n = sin(angle);
    return {c, -n, middle_x - middle_x * c + middle_y * n, n, c, middle_y - middle_x * n - middle_y * c};
  }

 private:
  Range turns_;
};

struct RandomTranslationSettings {
  FloatList height_factor = 0.0, width_factor = 0.0;
  TransformOptions options;
};
template <class F> void describe(F& field, RandomTranslationSettings& s) {
  field("data_format", s.options.data_format);
  describe_numbers(field, "height_factor", s.height_factor);
  describe_numbers(field, "width_factor", s.width_factor);
  describe_fill(field, s.options);
}

class RandomTranslationBody : public TransformKind<RandomTranslationSettings> {
 public:
  static constexpr const char* kName = "RandomTranslation";
  explicit RandomTranslationBody(RandomTranslationSettings settings)
      : TransformKind(kName, std::move(settings)),
        height_(range_of(kName, "height_factor", s.height_factor)),
        width_(range_of(kName, "width_factor", s.width_factor)) {}
  std::string class_name() const override { return kName; }

 protected:
  Affine matrix(const Tensor& x) override {
    const Tensor down = draw(x, height_) * static_cast<double>(height_of(x)), right = draw(x, width_) * static_cast<double>(width_of(x));
    const Tensor one = Tensor::ones({x.dims()[0]}), zero = Tensor::zeros({x.dims()[0]});
    return {one, zero, -right, zero, one, -down};
  }

 private:
  Range height_, width_;
};

struct RandomZoomSettings {
  FloatList height_factor = 0.0;
  ZoomOptions options;
};
template <class F> void describe(F& field, RandomZoomSettings& s) {
  field("data_format", s.options.data_format);
  describe_numbers(field, "height_factor", s.height_factor);
  describe_numbers(field, "width_factor", s.options.width_factor);
  describe_fill(field, s.options);
}

class RandomZoomBody : public TransformKind<RandomZoomSettings> {
 public:
  static constexpr const char* kName = "RandomZoom";
  explicit RandomZoomBody(RandomZoomSettings settings)
      : TransformKind(kName, std::move(settings)),
        height_(range_of(kName, "height_factor", s.height_factor)),
        width_(s.options.width_factor.given() ? range_of(kName, "width_factor", s.options.width_factor) : height_) {
    if (height_.low < -1 || width_.low < -1) user_error(kName, ": a factor below -1 turns pictures over");
  }
  std::string class_name() const override { return kName; }

 protected:
  Affine matrix(const Tensor& x) override {
    const double middle_x = static_cast<double>(width_of(x) - 1) / 2, middle_y = static_cast<double>(height_of(x) - 1) / 2;
    const Tensor by_y = 1.0 + draw(x, height_), by_x = s.options.width_factor.given() ? 1.0 + draw(x, width_) : by_y;
    const Tensor zero = Tensor::zeros({x.dims()[0]});
    return {by_x, zero, middle_x * (1.0 - by_x), zero, by_y, middle_y * (1.0 - by_y)};
  }

 private:
  Range height_, width_;
};

// --- RandomBrightness, RandomContrast
// ------------------------------------------------------------------------------------------------------

struct ColorSettings {
  FloatList factor = 0.0;
  ColorOptions options;
};
template <class F> void describe_color(F& field, ColorSettings& s) {
  field("data_format", s.options.data_format);
  describe_numbers(field, "factor", s.factor);
  field("value_range", s.options.value_range);
  field("seed", s.options.seed);
}
struct RandomBrightnessSettings : ColorSettings {};
template <class F> void describe(F& field, RandomBrightnessSettings& s) { describe_color(field, s); }
struct RandomContrastSettings : ColorSettings {};
template <class F> void describe(F& field, RandomContrastSettings& s) { describe_color(field, s); }

class RandomBrightnessBody : public ImageKind<RandomBrightnessSettings> {
 public:
  static constexpr const char* kName = "RandomBrightness";
  explicit RandomBrightnessBody(RandomBrightnessSettings settings)
      : ImageKind({{as_pair(kName, settings.factor), settings.options}}), range_(range_of(kName, "factor", s.factor)) {
    if (range_.low < -1 || range_.high > 1) user_error(kName, ": factor goes from ", range_.low, " to ", range_.high, ", expected -1 to 1");
    expect_data_format(kName, s.options.data_format);
  }
  std::string class_name() const override { return kName; }

 protected:
  Tensor transform(const Tensor& x, const Pass& pass) override {
    if (!pass.training) return x;
    const auto [low, high] = s.options.value_range;
    const Tensor delta = random(s.options.seed).uniform({x.dims()[0], 1, 1, 1}, range_.low, range_.high, x.dtype()) * (high - low);
    return clip(x + delta, low, high);
  }

 private:
  Range range_;
};

FloatList contrast_pair(const char* kind, const FloatList& list) {
  const auto& v = list.values();
  const FloatList pair = v.size() == 1 ? FloatList(std::vector{0.0, v[0]}) : list;
  if (pair.values().size() != 2) user_error(kind, ": factor has ", v.size(), " numbers, expected 1 or 2");
  for (const double f : pair.values())
    if (!(f >= 0 && f <= 1)) user_error(kind, ": factor has ", f, ", expected 0 to 1");
  return pair;
}

class RandomContrastBody : public ImageKind<RandomContrastSettings> {
 public:
  static constexpr const char* kName = "RandomContrast";
  explicit RandomContrastBody(RandomContrastSettings settings) : ImageKind({{contrast_pair(kName, settings.factor), settings.options}}) {
    expect_data_format(kName, s.options.data_format);
  }
  std::string class_name() const override { return kName; }

 protected:
  Tensor transform(const Tensor& x, const Pass& pass) override {
    if (!pass.training) return x;
    const auto [low, high] = s.options.value_range;
    const auto& f = s.factor.values();
    const Tensor factor = random(s.options.seed).uniform({x.dims()[0], 1, 1, 1}, 1 - f[0], 1 + f[1], x.dtype());
    const Tensor middle = mean(x, {1, 2}, true);
    return clip((x - middle) * factor + middle, low, high);
  }
};

}  // namespace

RandomFlip::RandomFlip(const std::string& mode, const AugmentationOptions& options)
    : Layer(std::make_shared<RandomFlipBody>(RandomFlipSettings{mode, options}), options.name) {}
RandomCrop::RandomCrop(int64_t height, int64_t width, const AugmentationOptions& options)
    : Layer(std::make_shared<RandomCropBody>(RandomCropSettings{height, width, options}), options.name) {}
RandomRotation::RandomRotation(const FloatList& factor, const TransformOptions& options)
    : Layer(std::make_shared<RandomRotationBody>(RandomRotationSettings{factor, options}), options.name) {}
RandomTranslation::RandomTranslation(const FloatList& height_factor, const FloatList& width_factor, const TransformOptions& options)
    : Layer(std::make_shared<RandomTranslationBody>(RandomTranslationSettings{height_factor, width_factor, options}), options.name) {}
RandomZoom::RandomZoom(const FloatList& height_factor, const ZoomOptions& options)
    : Layer(std::make_shared<RandomZoomBody>(RandomZoomSettings{height_factor, options}), options.name) {}
RandomBrightness::RandomBrightness(const FloatList& factor, const ColorOptions& options)
    : Layer(std::make_shared<RandomBrightnessBody>(RandomBrightnessSettings{{factor, options}}), options.name) {}
RandomContrast::RandomContrast(const FloatList& factor, const ColorOptions& options)
    : Layer(std::make_shared<RandomContrastBody>(RandomContrastSettings{{factor, options}}), options.name) {}

void register_augmentation_layers() {
  register_kind<RandomFlipBody>();
  register_kind<RandomCropBody>();
  register_kind<RandomRotationBody>();
  register_kind<RandomTranslationBody>();
  register_kind<RandomZoomBody>();
  register_kind<RandomBrightnessBody>();
  register_kind<RandomContrastBody>();
}

}  // namespace tandem::nn
