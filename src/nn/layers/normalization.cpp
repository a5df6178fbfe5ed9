#include <tandem/nn/layers/normalization.hpp>

#include <tandem/ops.hpp>

#include "nn/kind.hpp"

namespace tandem::nn {
namespace {

// gamma and beta, where there are any.
template <class F, class O> void describe_affine(F& field, O& o) {
  field("beta_initializer", o.beta_initializer);
  field("gamma_initializer", o.gamma_initializer);
}
template <class F, class O> void describe_affine_rules(F& field, O& o) {
  field("beta_regularizer", o.beta_regularizer);
  field("gamma_regularizer", o.gamma_regularizer);
  field("beta_constraint", o.beta_constraint);
  field("gamma_constraint", o.gamma_constraint);
}

template <class S> class AffineKind : public Kind<S> {
 protected:
  using Kind<S>::Kind;
  void add_affine(const Shape& shape) {
    const auto& o = this->s.options;
    if (o.scale) gamma_ = this->add_weight("gamma", shape, {o.gamma_initializer, o.gamma_regularizer, o.gamma_constraint});
    if (o.center) beta_ = this->add_weight("beta", shape, {o.beta_initializer, o.beta_regularizer, o.beta_constraint});
  }
  Operand gamma() const { return gamma_.defined() ? Operand(gamma_) : Operand(); }
  Operand beta() const { return beta_.defined() ? Operand(beta_) : Operand(); }

 private:
  Variable gamma_, beta_;
};

void expect_epsilon(const char* kind, double epsilon) {
  if (!(epsilon >= 0)) user_error(kind, ": epsilon is ", epsilon, ", expected a number that is not negative");
}

// --- BatchNormalization --------------------------------------------------------------------------------------------------------------

struct BatchNormalizationSettings {
  BatchNormalizationOptions options;
};
template <class F> void describe(F& field, BatchNormalizationSettings& s) {
  BatchNormalizationOptions& o = s.options;
  field("axis", o.axis);
  field("momentum", o.momentum);
  field("epsilon", o.epsilon);
  field("center", o.center);
  field("scale", o.scale);
  describe_affine(field, o);
  field("moving_mean_initializer", o.moving_mean_initializer);
  field("moving_variance_initializer", o.moving_variance_initializer);
  describe_affine_rules(field, o);
  field.fixed("synchronized", false);
  field.fixed("renorm", false);
  field.fixed("renorm_clipping", nullptr);
  field.fixed("renorm_momentum", 0.99);
}

class BatchNormalizationBody : public AffineKind<BatchNormalizationSettings> {
 public:
  static constexpr const char* kName = "BatchNormalization";
  explicit BatchNormalizationBody(BatchNormalizationSettings settings) : AffineKind(std::move(settings)) {
    expect_rate(kName, "momentum", s.options.momentum);
    expect_epsilon(kName, s.options.epsilon);
  }
  std::string class_name() const override { return kName; }

  void build(const std::vector<Spec>& inputs) override {
    const BatchNormalizationOptions& o = s.options;
    const Shape shape{known_extent(inputs[0], o.axis, "the weights")};
    add_affine(shape);
    moving_mean_ = add_weight("moving_mean", shape, {.initializer = o.moving_mean_initializer, .trainable = false});
    moving_variance_ = add_weight("moving_variance", shape, {.initializer = o.moving_variance_initializer, .trainable = false});
  }

  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass& pass) override {
    const BatchNormalizationOptions& o = s.options;
    const Tensor& x = inputs[0];
    if (!pass.training || !trainable()) return {batch_normalization(x, moving_mean_, moving_variance_, beta(), gamma(), o.axis, o.epsilon)};
    const auto [mean, variance] = batch_moments(x, pass);
    moving_mean_.assign(moving_mean_ * o.momentum + mean * (1 - o.momentum));
    moving_variance_.assign(moving_variance_ * o.momentum + variance * (1 - o.momentum));
    return {batch_normalization(x, mean, variance, beta(), gamma(), o.axis, o.epsilon)};
  }

 private:
  // Masked steps do not count.
  std::array<Tensor, 2> batch_moments(const Tensor& x, const Pass& pass) const {
    const std::vector<int64_t> axes = axes_without({s.options.axis}, x.rank());
    if (pass.masks.empty() || !pass.masks[0].defined()) return moments(x, axes);
    const Tensor& mask = pass.masks[0];
    if (mask.rank() != x.rank() - 1) user_error("the mask is ", mask.type_str(), ", expected one axis less than ", x.type_str());
    constexpr double kEpsilon = 1e-7;
    const Tensor seen = broadcast_to(mask.expand_dims(-1), x.dims());
    const Tensor count = sum(seen.cast(x.dtype()), axes, true) + kEpsilon;
    const Tensor mean = sum(where(seen, x, 0), axes, true) / count;
    const Tensor variance = sum(square(where(seen, x - mean, 0)), axes, true) / count;
    return {mean.squeeze(axes), variance.squeeze(axes)};
  }
  Variable moving_mean_, moving_variance_;
};

// --- LayerNormalization --------------------------------------------------------------------------------------------------------------

struct LayerNormalizationSettings {
  LayerNormalizationOptions options;
};
template <class F> void describe(F& field, LayerNormalizationSettings& s) {
  LayerNormalizationOptions& o = s.options;
  one_or_list(field, "axis", o.axis);
  field("epsilon", o.epsilon);
  field("center", o.center);
  field("scale", o.scale);
  field.fixed("rms_scaling", false);
  describe_affine(field, o);
  describe_affine_rules(field, o);
}

// The extents along some axes, in the order of the axes.
Shape extents_along(const Spec& input, const IntList& axes) {
  const auto rank = static_cast<int>(input.dims.size());
  std::vector<int64_t> sorted;
  for (const int64_t a : axes.values()) sorted.push_back(normalize_axis(a, rank, "axis"));
  std::sort(sorted.begin(), sorted.end());
  Shape shape;
  for (const int64_t a : sorted) shape.push_back(known_extent(input, a, "the weights"));
  return shape;
}

class LayerNormalizationBody : public AffineKind<LayerNormalizationSettings> {
 public:
  static constexpr const char* kName = "LayerNormalization";
  explicit LayerNormalizationBody(LayerNormalizationSettings settings) : AffineKind(std::move(settings)) {
    expect_epsilon(kName, s.options.epsilon);
    if (s.options.axis.values().empty()) user_error(kName, ": axis is empty");
  }
  std::string class_name() const override { return kName; }
  void build(const std::vector<Spec>& inputs) override { add_affine(extents_along(inputs[0], s.options.axis)); }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    return {layer_normalization(inputs[0], gamma(), beta(), s.options.axis, s.options.epsilon)};
  }
};

// --- GroupNormalization --------------------------------------------------------------------------------------------------------------

struct GroupNormalizationSettings {
  int64_t groups = 32;
  GroupNormalizationOptions options;
};
template <class F> void describe(F& field, GroupNormalizationSettings& s) {
  GroupNormalizationOptions& o = s.options;
  field("groups", s.groups);
  field("axis", o.axis);
  field("epsilon", o.epsilon);
  field("center", o.center);
  field("scale", o.scale);
  describe_affine(field, o);
  describe_affine_rules(field, o);
}

class GroupNormalizationBody : public AffineKind<GroupNormalizationSettings> {
 public:
  static constexpr const char* kName = "GroupNormalization";
  explicit GroupNormalizationBody(GroupNormalizationSettings settings) : AffineKind(std::move(settings)) {
    if (s.groups != -1) expect_positive(kName, "groups", s.groups);
    expect_epsilon(kName, s.options.epsilon);
  }
  std::string class_name() const override { return kName; }
  void build(const std::vector<Spec>& inputs) override {
    const int64_t channels = known_extent(inputs[0], s.options.axis, "the weights");
    groups_ = s.groups == -1 ? channels : s.groups;
    if (groups_ > channels || channels % groups_ != 0)
      user_error(channels, " channels cannot be shared out evenly among ", groups_, " groups");
    add_affine({channels});
  }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    return {group_normalization(inputs[0], groups_, gamma(), beta(), s.options.axis, s.options.epsilon)};
  }

 private:
  int64_t groups_ = 1;
};

// --- RMSNormalization, UnitNormalization -----------------------------------------------------------------------------------------------

struct RMSNormalizationSettings {
  IntList axis = -1;
  double epsilon = 1e-6;
};
template <class F> void describe(F& field, RMSNormalizationSettings& s) {
  one_or_list(field, "axis", s.axis);
  field("epsilon", s.epsilon);
}

class RMSNormalizationBody : public Kind<RMSNormalizationSettings> {
 public:
  static constexpr const char* kName = "RMSNormalization";
  explicit RMSNormalizationBody(RMSNormalizationSettings settings) : Kind(std::move(settings)) { expect_epsilon(kName, s.epsilon); }
  std::string class_name() const override { return kName; }
  void build(const std::vector<Spec>& inputs) override {
    scale_ = add_weight("scale", extents_along(inputs[0], s.axis), {.initializer = "ones"});
  }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    return {rms_normalization(inputs[0], scale_, s.axis, s.epsilon)};
  }
  std::vector<Tensor> compute_mask(const std::vector<Tensor>&, const Pass&) const override { return {}; }

 private:
  Variable scale_;
};

struct UnitNormalizationSettings {
  IntList axis = -1;
};
template <class F> void describe(F& field, UnitNormalizationSettings& s) { one_or_list(field, "axis", s.axis); }

class UnitNormalizationBody : public Kind<UnitNormalizationSettings> {
 public:
  static constexpr const char* kName = "UnitNormalization";
  using Kind::Kind;
  std::string class_name() const override { return kName; }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override { return {normalize(inputs[0], s.axis, 2, 1e-12)}; }
};

}  // namespace

BatchNormalization::BatchNormalization(const BatchNormalizationOptions& options)
    : Layer(std::make_shared<BatchNormalizationBody>(BatchNormalizationSettings{options}), options.name) {}
LayerNormalization::LayerNormalization(const LayerNormalizationOptions& options)
    : Layer(std::make_shared<LayerNormalizationBody>(LayerNormalizationSettings{options}), options.name) {}
GroupNormalization::GroupNormalization(int64_t groups, const GroupNormalizationOptions& options)
    : Layer(std::make_shared<GroupNormalizationBody>(GroupNormalizationSettings{groups, options}), options.name) {}
RMSNormalization::RMSNormalization(const RMSNormalizationOptions& options)
    : Layer(std::make_shared<RMSNormalizationBody>(RMSNormalizationSettings{options.axis, options.epsilon}), options.name) {}
UnitNormalization::UnitNormalization(const IntList& axis, const NamedOptions& options)
    : Layer(std::make_shared<UnitNormalizationBody>(UnitNormalizationSettings{axis}), options.name) {}

void register_normalization_layers() {
  register_kind<BatchNormalizationBody>();
  register_kind<LayerNormalizationBody>();
  register_kind<GroupNormalizationBody>();
  register_kind<RMSNormalizationBody>();
  register_kind<UnitNormalizationBody>();
}

}  // namespace tandem::nn
