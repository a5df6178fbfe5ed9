#include <tandem/nn/layers/regularization.hpp>

#include <cmath>

#include <tandem/ops.hpp>

#include "nn/kind.hpp"

namespace tandem::nn {
namespace {

// --- Dropout, whole channels or single elements -----------------------------------------------------------------------------------

struct DropoutSettings {
  double rate = 0;
  DropoutOptions options;
};
template <class F> void describe(F& field, DropoutSettings& s) {
  field("rate", s.rate);
  field("seed", s.options.seed);
  extents_or_null(field, "noise_shape", s.options.noise_shape);
}

// -1 stands for the input's extent.
Dims noise_dims(const IntList& noise_shape, const Tensor& x) {
  Dims shape = x.dims();
  const std::vector<int64_t>& noise = noise_shape.values();
  if (noise.size() != shape.size()) user_error("noise_shape has ", noise.size(), " entries, the input is ", x.type_str());
  for (size_t i = 0; i < shape.size(); ++i)
    if (noise[i] >= 0) shape[i] = noise[i];
  return shape;
}

class DropoutBody : public Kind<DropoutSettings> {
 public:
  static constexpr const char* kName = "Dropout";
  explicit DropoutBody(DropoutSettings settings) : Kind(std::move(settings)) { expect_rate(kName, "rate", s.rate); }
  std::string class_name() const override { return kName; }

  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass& pass) override {
    const Tensor& x = inputs[0];
    if (!pass.training || s.rate == 0) return {x};
    const Tensor key = random(s.options.seed).next_key();
    return {s.options.noise_shape.given() ? dropout(key, x, s.rate, noise_dims(s.options.noise_shape, x)) : dropout(key, x, s.rate)};
  }
};

struct AlphaDropoutSettings : DropoutSettings {};
template <class F> void describe(F& field, AlphaDropoutSettings& s) { describe(field, static_cast<DropoutSettings&>(s)); }

// Klambauer et al. (2017): the two numbers of selu.
class AlphaDropoutBody : public Kind<AlphaDropoutSettings> {
 public:
  static constexpr const char* kName = "AlphaDropout";
  explicit AlphaDropoutBody(AlphaDropoutSettings settings) : Kind(std::move(settings)) {
    expect_rate(kName, "rate", s.rate);
    if (s.rate == 1) user_error(kName, ": rate is 1, expected less");
  }
  std::string class_name() const override { return kName; }

  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass& pass) override {
    const Tensor& x = inputs[0];
    if (!pass.training || s.rate == 0) return {x};
    constexpr double kLowest = -1.6732632423543772 * 1.0507009873554805;
    const Dims shape = s.options.noise_shape.given() ? noise_dims(s.options.noise_shape, x) : x.dims();
    const Tensor kept = random(s.options.seed).uniform(shape) >= s.rate;
    const double a = 1 / std::sqrt((1 - s.rate) * (1 + s.rate * kLowest * kLowest)), b = -a * kLowest * s.rate;
    return {a * where(kept, x, kLowest) + b};
  }
};

template <int N> struct SpatialDropoutSettings {
  double rate = 0;
  SpatialDropoutOptions options;
};
template <class F, int N> void describe(F& field, SpatialDropoutSettings<N>& s) {
  field("rate", s.rate);
  field("seed", s.options.seed);
  field.absent("trainable");
  if constexpr (N > 1) field("data_format", s.options.data_format);
}

template <int N> class SpatialDropoutBody : public Kind<SpatialDropoutSettings<N>> {
 public:
  using Base = Kind<SpatialDropoutSettings<N>>;
  using Base::s;
  static constexpr const char* kNames[] = {"SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D"};
  static constexpr const char* kName = kNames[N - 1];
  explicit SpatialDropoutBody(SpatialDropoutSettings<N> settings) : Base(std::move(settings)) {
    expect_rate(kName, "rate", s.rate);
    expect_data_format(kName, s.options.data_format);
  }
  std::string class_name() const override { return kName; }
  void check(const std::vector<Spec>& inputs) const override {
    Base::check(inputs);
    expect_rank(inputs[0], N + 2, spatial_axes(N, is_channels_first(s.options.data_format)));
  }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass& pass) override {
    if (!pass.training || s.rate == 0) return inputs;
    Dims noise = inputs[0].dims();
    for (size_t i = 0; i < N; ++i) noise[i + (is_channels_first(s.options.data_format) ? 2 : 1)] = 1;
    return {dropout(this->random(s.options.seed).next_key(), inputs[0], s.rate, noise)};
  }
};

// --- noise ---------------------------------------------------------------------------------------------------------------------------

struct GaussianNoiseSettings {
  double stddev = 0;
  SeedOptions options;
};
template <class F> void describe(F& field, GaussianNoiseSettings& s) {
  field("stddev", s.stddev);
  field("seed", s.options.seed);
}

class GaussianNoiseBody : public Kind<GaussianNoiseSettings> {
 public:
  static constexpr const char* kName = "GaussianNoise";
  explicit GaussianNoiseBody(GaussianNoiseSettings settings) : Kind(std::move(settings)) {
    if (!(s.stddev >= 0)) user_error(kName, ": stddev is ", s.stddev, ", expected a number that is not negative");
  }
  std::string class_name() const override { return kName; }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass& pass) override {
    if (!pass.training || s.stddev == 0) return inputs;
    const Tensor& x = inputs[0];
    return {x + random(s.options.seed).normal(x.dims(), 0.0, s.stddev, dtype())};
  }
};

struct GaussianDropoutSettings {
  double rate = 0;
  SeedOptions options;
};
template <class F> void describe(F& field, GaussianDropoutSettings& s) {
  field("rate", s.rate);
  field("seed", s.options.seed);
}

class GaussianDropoutBody : public Kind<GaussianDropoutSettings> {
 public:
  static constexpr const char* kName = "GaussianDropout";
  explicit GaussianDropoutBody(GaussianDropoutSettings settings) : Kind(std::move(settings)) {
    expect_rate(kName, "rate", s.rate);
    if (s.rate == 1) user_error(kName, ": rate is 1, expected less");
  }
  std::string class_name() const override { return kName; }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass& pass) override {
    if (!pass.training || s.rate == 0) return inputs;
    const Tensor& x = inputs[0];
    return {x * random(s.options.seed).normal(x.dims(), 1.0, std::sqrt(s.rate / (1 - s.rate)), dtype())};
  }
};

// --- ActivityRegularization ----------------------------------------------------------------------------------------------------------

struct ActivityRegularizationSettings {
  double l1 = 0, l2 = 0;
};
template <class F> void describe(F& field, ActivityRegularizationSettings& s) {
  field("l1", s.l1);
  field("l2", s.l2);
  field.absent("activity_regularizer");  // it follows from the two numbers
}

class ActivityRegularizationBody : public Kind<ActivityRegularizationSettings> {
 public:
  static constexpr const char* kName = "ActivityRegularization";
  explicit ActivityRegularizationBody(ActivityRegularizationSettings settings) : Kind(settings) {
    set_activity_regularizer(regularizers::L1L2(s.l1, s.l2));
  }
  std::string class_name() const override { return kName; }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override { return inputs; }
};

}  // namespace

Dropout::Dropout(double rate, const DropoutOptions& options)
    : Layer(std::make_shared<DropoutBody>(DropoutSettings{rate, options}), options.name) {}
AlphaDropout::AlphaDropout(double rate, const DropoutOptions& options)
    : Layer(std::make_shared<AlphaDropoutBody>(AlphaDropoutSettings{{rate, options}}), options.name) {}
SpatialDropout1D::SpatialDropout1D(double rate, const SeedOptions& options)
    : Layer(std::make_shared<SpatialDropoutBody<1>>(SpatialDropoutSettings<1>{rate, {.seed = options.seed}}), options.name) {}
SpatialDropout2D::SpatialDropout2D(double rate, const SpatialDropoutOptions& options)
    : Layer(std::make_shared<SpatialDropoutBody<2>>(SpatialDropoutSettings<2>{rate, options}), options.name) {}
SpatialDropout3D::SpatialDropout3D(double rate, const SpatialDropoutOptions& options)
    : Layer(std::make_shared<SpatialDropoutBody<3>>(SpatialDropoutSettings<3>{rate, options}), options.name) {}
GaussianNoise::GaussianNoise(double stddev, const SeedOptions& options)
    : Layer(std::make_shared<GaussianNoiseBody>(GaussianNoiseSettings{stddev, options}), options.name) {}
GaussianDropout::GaussianDropout(double rate, const SeedOptions& options)
    : Layer(std::make_shared<GaussianDropoutBody>(GaussianDropoutSettings{rate, options}), options.name) {}
ActivityRegularization::ActivityRegularization(double l1, double l2, const NamedOptions& options)
    : Layer(std::make_shared<ActivityRegularizationBody>(ActivityRegularizationSettings{l1, l2}), options.name) {}

void register_regularization_layers() {
  register_kind<DropoutBody>();
  register_kind<AlphaDropoutBody>();
  register_kind<SpatialDropoutBody<1>>();
  register_kind<SpatialDropoutBody<2>>();
  register_kind<SpatialDropoutBody<3>>();
  register_kind<GaussianNoiseBody>();
  register_kind<GaussianDropoutBody>();
  register_kind<ActivityRegularizationBody>();
}

}  // namespace tandem::nn
