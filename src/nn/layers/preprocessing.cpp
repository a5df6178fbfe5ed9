#include <tandem/nn/layers/preprocessing.hpp>

#include <tandem/ops.hpp>

#include "base/checked.hpp"
#include "frontend/thread_state.hpp"
#include "nn/layer_frame.hpp"
#include "nn/layers/images.hpp"
#include "nn/layers/resize.hpp"

namespace tandem::nn {

void describe_numbers(FieldWriter& field, const char* key, const FloatList& v) {
  field.fixed(key, !v.given() ? Config() : v.values().size() == 1 ? Config(v.values()[0]) : Config(v.values()));
}

void describe_numbers(FieldReader& field, const char* key, FloatList& v) {
  Config given;
  field(key, given);
  while (given.is_array() && given.size() == 1 && given[0].is_array()) given = Config(given[0]);  // Keras keeps means with leading axes
  if (given.is_null()) return;
  std::vector<double> values;
  for (const Config& c : given.is_array() ? given : Config::array({given})) {
    if (!c.is_number()) user_error(key, " is ", given.dump().substr(0, 60), ", expected numbers");
    values.push_back(c.get<double>());
  }
  v = values;
}

int64_t in_proportion(int64_t extent, int64_t numerator, int64_t denominator) {
  return product_of(extent, numerator, "the proportions of the new size") / denominator;
}

Tensor cropped_and_resized(const Tensor& x, int64_t height, int64_t width, const std::string& interpolation, bool antialias) {
  const int64_t h = height_of(x), w = width_of(x);
  const auto part = [](int64_t extent, int64_t wanted) { return std::max<int64_t>(std::min(extent, wanted), 1); };
  const int64_t crop_h = part(h, in_proportion(w, height, width)), crop_w = part(w, in_proportion(h, width, height));
  const int64_t top = (h - crop_h) / 2, left = (w - crop_w) / 2;
  return resize_image(x(Slice(), Slice(top, top + crop_h), Slice(left, left + crop_w)), height, width, interpolation, antialias);
}

namespace {

// --- Rescaling -------------------------------------------------------------------------------------------------------------------------

struct RescalingSettings {
  FloatList scale = 1.0, offset = 0.0;
};
template <class F> void describe(F& field, RescalingSettings& s) {
  describe_numbers(field, "scale", s.scale);
  describe_numbers(field, "offset", s.offset);
}

// A number, or one for each position along the last axis.
Tensor constant(const FloatList& list, DType dtype) {
  const auto& v = list.values();
  return (v.size() == 1 ? Tensor::scalar(v[0]) : Tensor::from(v)).cast(dtype);
}

class RescalingBody : public Kind<RescalingSettings> {
 public:
  static constexpr const char* kName = "Rescaling";
  explicit RescalingBody(RescalingSettings settings) : Kind(std::move(settings)) {
    if (s.scale.values().empty() || s.offset.values().empty()) user_error(kName, ": scale and offset need at least one number");
  }
  std::string class_name() const override { return kName; }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    return {inputs[0].cast(dtype()) * constant(s.scale, dtype()) + constant(s.offset, dtype())};
  }
};

// --- Normalization -------------------------------------------------------------------------------------------------------------------

struct NormalizationSettings {
  NormalizationOptions options;
};
void describe_axis(FieldWriter& field, const std::optional<std::vector<int64_t>>& axis) {
  field.fixed("axis", axis ? Config(*axis) : Config());
}
void describe_axis(FieldReader& field, std::optional<std::vector<int64_t>>& axis) {
  IntList given = axis ? IntList(*axis) : IntList();
  field("axis", given);
  axis = given.given() ? std::optional(given.values()) : std::nullopt;
}
template <class F> void describe(F& field, NormalizationSettings& s) {
  NormalizationOptions& o = s.options;
  describe_axis(field, o.axis);
  field("invert", o.invert);
  describe_numbers(field, "mean", o.mean);
  describe_numbers(field, "variance", o.variance);
}

class NormalizationBody : public Kind<NormalizationSettings> {
 public:
  static constexpr const char* kName = "Normalization";
  explicit NormalizationBody(NormalizationSettings settings) : Kind(std::move(settings)) {
    if (s.options.mean.given() != s.options.variance.given()) user_error(kName, ": mean and variance are given together or not at all");
  }
  std::string class_name() const override { return kName; }
  bool is_given() const { return s.options.mean.given(); }

  void build(const std::vector<Spec>& inputs) override {
    const auto rank = static_cast<int>(inputs[0].dims.size());
    kept_.clear();
    kept_shape_ = {};
    for (const int64_t a : s.options.axis.value_or(std::vector<int64_t>{})) kept_.push_back(normalize_axis(a, rank, "axis"));
    std::sort(kept_.begin(), kept_.end());
    for (const int64_t a : kept_) kept_shape_.push_back(known_extent(inputs[0], a, "the mean"));
    if (is_given()) {
      expect_count("mean", s.options.mean);
      expect_count("variance", s.options.variance);
      return;
    }
    mean_ = add_weight("mean", kept_shape_, {.initializer = "zeros", .trainable = false});
    variance_ = add_weight("variance", kept_shape_, {.initializer = "ones", .trainable = false});
    add_weight("count", {}, {.initializer = "zeros", .trainable = false, .dtype = DType::I32});  // Keras's files have it
  }

  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    const Tensor x = inputs[0].cast(dtype());
    const Tensor mean = shaped(is_given() ? constant(s.options.mean, dtype()) : mean_.value(), x);
    const Tensor variance = shaped(is_given() ? constant(s.options.variance, dtype()) : variance_.value(), x);
    const Tensor deviation = maximum(sqrt(variance), 1e-7);
    return {s.options.invert ? mean + x * deviation : (x - mean) / deviation};
  }

  // From sums over all that was seen.
  void assign(const Tensor& sum, const Tensor& sum_of_squares, double count) {
    const Tensor mean = sum / count;
    mean_.assign(mean.cast(dtype()));
    variance_.assign(maximum(sum_of_squares / count - square(mean), 0.0).cast(dtype()));
  }
  std::vector<int64_t> reduced(int rank) const { return axes_without(kept_, rank); }

 private:
  void expect_count(const char* setting, const FloatList& list) const {
    const auto count = static_cast<int64_t>(list.values().size());
    if (count != 1 && count != element_count(kept_shape_))
      user_error(setting, " has ", count, " numbers, expected 1 or ", element_count(kept_shape_));
  }
  // With the axes of x, so that it is broadcast along those that have no mean of their own.
  Tensor shaped(const Tensor& t, const Tensor& x) const {
    if (t.size() == 1 && element_count(kept_shape_) != 1) return t.reshape(Dims{});
    Dims dims(static_cast<size_t>(x.rank()), 1);
    for (size_t i = 0; i < kept_.size(); ++i) dims[static_cast<size_t>(kept_[i])] = kept_shape_[i];
    return t.reshape(dims);
  }
  std::vector<int64_t> kept_;
  Shape kept_shape_;
  Variable mean_, variance_;
};

// --- Resizing, CenterCrop --------------------------------------------------------------------------------------------------------------

struct ResizingSettings {
  int64_t height = 1, width = 1;
  ResizingOptions options;
};
template <class F> void describe(F& field, ResizingSettings& s) {
  ResizingOptions& o = s.options;
  field("data_format", o.data_format);
  field("height", s.height);
  field("width", s.width);
  field("interpolation", o.interpolation);
  field("crop_to_aspect_ratio", o.crop_to_aspect_ratio);
  field("pad_to_aspect_ratio", o.pad_to_aspect_ratio);
  field.fixed("fill_mode", "constant");
  field("fill_value", o.fill_value);
  field("antialias", o.antialias);
}

class ResizingBody : public ImageKind<ResizingSettings> {
 public:
  static constexpr const char* kName = "Resizing";
  explicit ResizingBody(ResizingSettings settings) : ImageKind(std::move(settings)) {
    expect_positive(kName, "height", s.height);
    expect_positive(kName, "width", s.width);
    expect_interpolation(kName, s.options.interpolation);
    expect_data_format(kName, s.options.data_format);
    if (s.options.crop_to_aspect_ratio && s.options.pad_to_aspect_ratio) user_error(kName, ": crops and pads to the aspect ratio at once");
  }
  std::string class_name() const override { return kName; }

 protected:
  Tensor transform(const Tensor& x, const Pass&) override {
    const ResizingOptions& o = s.options;
    if (o.crop_to_aspect_ratio) return cropped_and_resized(x, s.height, s.width, o.interpolation, o.antialias);
    if (!o.pad_to_aspect_ratio) return resize_image(x, s.height, s.width, o.interpolation, o.antialias);
    const int64_t h = height_of(x), w = width_of(x);
    const int64_t down = std::max(h, in_proportion(w, s.height, s.width)) - h, right = std::max(w, in_proportion(h, s.width, s.height)) - w;
    const Tensor padded = pad(x, o.fill_value, {0, down / 2, right / 2, 0}, {0, down - down / 2, right - right / 2, 0});
    return resize_image(padded, s.height, s.width, o.interpolation, o.antialias);
  }
};

struct CenterCropSettings {
  int64_t height = 1, width = 1;
  DataFormatOptions options;
};
template <class F> void describe(F& field, CenterCropSettings& s) {
  field("data_format", s.options.data_format);
  field("height", s.height);
  field("width", s.width);
}

class CenterCropBody : public ImageKind<CenterCropSettings> {
 public:
  static constexpr const char* kName = "CenterCrop";
  explicit CenterCropBody(CenterCropSettings settings) : ImageKind(std::move(settings)) {
    expect_positive(kName, "height", s.height);
    expect_positive(kName, "width", s.width);
    expect_data_format(kName, s.options.data_format);
  }
  std::string class_name() const override { return kName; }

 protected:
  Tensor transform(const Tensor& x, const Pass&) override {
    const int64_t top = height_of(x) - s.height, left = width_of(x) - s.width;
    if (top < 0 || left < 0) return cropped_and_resized(x, s.height, s.width, "bilinear", false);
    return x(Slice(), Slice(top / 2, top / 2 + s.height), Slice(left / 2, left / 2 + s.width));
  }
};

NormalizationBody& learning(const Layer& layer) {
  auto& body = *layer.as<NormalizationBody>();
  if (body.is_given()) user_error("mean and variance were given, so there is nothing to adapt");
  return body;
}

}  // namespace

Rescaling::Rescaling(const FloatList& scale, const RescalingOptions& options)
    : Layer(std::make_shared<RescalingBody>(RescalingSettings{scale, options.offset}), options.name) {}
Normalization::Normalization(const NormalizationOptions& options)
    : Layer(std::make_shared<NormalizationBody>(NormalizationSettings{options}), options.name) {}
Resizing::Resizing(int64_t height, int64_t width, const ResizingOptions& options)
    : Layer(std::make_shared<ResizingBody>(ResizingSettings{height, width, options}), options.name) {}
CenterCrop::CenterCrop(int64_t height, int64_t width, const DataFormatOptions& options)
    : Layer(std::make_shared<CenterCropBody>(CenterCropSettings{height, width, options}), options.name) {}

void Normalization::adapt(const Tensor& data, Where where) const {
  in_layer(body(), where, [&] {
    if (data.rank() == 0) user_error("adapts to examples along a first axis, got ", data.type_str());
    adapt(data::Dataset::from_slices({data}).batch(std::max<int64_t>(data.shape()[0], 1)), where);
  });
}

void Normalization::adapt(const data::Dataset& batches, Where where) const {
  in_layer(body(), where, [&] {
    const frontend::EagerScope eager;
    NormalizationBody& own = learning(*this);
    Tensor total, squares;
    double count = 0;
    data::Iterator iterator = batches.iterate();
    for (data::Element element; iterator.next(element);) {
      const Tensor x = element.at(0).cast(DType::F64);
      build({{own.dtype(), x.dims()}});
      const std::vector<int64_t> axes = own.reduced(x.rank());
      const Tensor part = sum(x, axes), part_of_squares = sum(square(x), axes);
      total = total.defined() ? total + part : part;
      squares = squares.defined() ? squares + part_of_squares : part_of_squares;
      count += static_cast<double>(x.size()) / static_cast<double>(std::max<int64_t>(part.size(), 1));
    }
    if (count == 0) user_error("there is no data to adapt to");
    own.assign(total, squares, count);
  });
}

void register_preprocessing_layers() {
  register_kind<RescalingBody>();
  register_kind<NormalizationBody>();
  register_kind<ResizingBody>();
  register_kind<CenterCropBody>();
}

}  // namespace tandem::nn
