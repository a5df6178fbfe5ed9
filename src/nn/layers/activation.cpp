#include <tandem/nn/layers/activation.hpp>

#include <limits>

#include <tandem/ops.hpp>

#include "nn/kind.hpp"

namespace tandem::nn {
namespace {

struct ActivationSettings {
  ActivationFunction activation;
};
template <class F> void describe(F& field, ActivationSettings& s) { field("activation", s.activation); }

class ActivationBody : public Kind<ActivationSettings> {
 public:
  static constexpr const char* kName = "Activation";
  using Kind::Kind;
  std::string class_name() const override { return kName; }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override { return {activate(s.activation, inputs[0])}; }
};

struct ReLUSettings {
  ReLUOptions options;
};
template <class F> void describe(F& field, ReLUSettings& s) {
  field("max_value", s.options.max_value);
  field("negative_slope", s.options.negative_slope);
  field("threshold", s.options.threshold);
}

class ReLUBody : public Kind<ReLUSettings> {
 public:
  static constexpr const char* kName = "ReLU";
  explicit ReLUBody(ReLUSettings settings) : Kind(std::move(settings)) {
    const auto not_negative = [](const char* setting, double value) {
      if (!(value >= 0)) user_error(kName, ": ", setting, " is ", value, ", expected a number that is not negative");
    };
    not_negative("max_value", s.options.max_value.value_or(0));
    not_negative("negative_slope", s.options.negative_slope);
    not_negative("threshold", s.options.threshold);
  }
  std::string class_name() const override { return kName; }

  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    const auto& [max_value, slope, threshold, name] = s.options;
    const Tensor& x = inputs[0];
    if (slope != 0 && !max_value && threshold == 0) return {leaky_relu(x, slope)};
    Tensor y = threshold != 0 ? where(x > threshold, x, 0) : relu(x);
    if (max_value) y = clip(y, 0, *max_value);
    return {slope == 0 ? y : y - slope * relu(threshold - x)};
  }
};

struct LeakyReLUSettings {
  double negative_slope = 0.3;
};
template <class F> void describe(F& field, LeakyReLUSettings& s) { field("negative_slope", s.negative_slope); }

class LeakyReLUBody : public Kind<LeakyReLUSettings> {
 public:
  static constexpr const char* kName = "LeakyReLU";
  using Kind::Kind;
  std::string class_name() const override { return kName; }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override { return {leaky_relu(inputs[0], s.negative_slope)}; }
};

struct PReLUSettings {
  PReLUOptions options;
};
template <class F> void describe(F& field, PReLUSettings& s) {
  PReLUOptions& o = s.options;
  field("alpha_initializer", o.alpha_initializer);
  field("alpha_regularizer", o.alpha_regularizer);
  field("alpha_constraint", o.alpha_constraint);
  field("shared_axes", o.shared_axes);
}

class PReLUBody : public Kind<PReLUSettings> {
 public:
  static constexpr const char* kName = "PReLU";
  using Kind::Kind;
  std::string class_name() const override { return kName; }

  void build(const std::vector<Spec>& inputs) override {
    const PReLUOptions& o = s.options;
    const auto rank = static_cast<int>(inputs[0].dims.size());
    std::vector<bool> shared(static_cast<size_t>(rank), false);
    for (const int64_t axis : o.shared_axes.values()) shared[static_cast<size_t>(normalize_axis(axis, rank, "shared_axes"))] = true;
    Shape shape;
    for (int axis = 1; axis < rank; ++axis) shape.push_back(shared[static_cast<size_t>(axis)] ? 1 : known_extent(inputs[0], axis, "alpha"));
    alpha_ = add_weight("alpha", shape, {o.alpha_initializer, o.alpha_regularizer, o.alpha_constraint});
  }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    return {relu(inputs[0]) - alpha_ * relu(-inputs[0])};
  }

 private:
  Variable alpha_;
};

struct ELUSettings {
  double alpha = 1;
};
template <class F> void describe(F& field, ELUSettings& s) { field("alpha", s.alpha); }

class ELUBody : public Kind<ELUSettings> {
 public:
  static constexpr const char* kName = "ELU";
  using Kind::Kind;
  std::string class_name() const override { return kName; }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override { return {elu(inputs[0], s.alpha)}; }
};

struct SoftmaxSettings {
  IntList axis = -1;
};
template <class F> void describe(F& field, SoftmaxSettings& s) { one_or_list(field, "axis", s.axis); }

class SoftmaxBody : public Kind<SoftmaxSettings> {
 public:
  static constexpr const char* kName = "Softmax";
  using Kind::Kind;
  std::string class_name() const override { return kName; }
  std::vector<std::string> call_arguments() const override { return {"inputs", "mask"}; }
  void check(const std::vector<Spec>& inputs) const override {
    if (inputs.empty() || inputs.size() > 2) user_error("takes an input and possibly a mask, got ", inputs.size(), " inputs");
  }

  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass& pass) override {
    Tensor mask = inputs.size() > 1 ? inputs[1] : pass.masks.empty() ? Tensor() : pass.masks[0];
    if (!mask.defined()) return {share(inputs[0])};
    if (mask.dtype() != DType::Bool) mask = mask > 0.5;
    constexpr double kFarBelow = -1e9;
    const double low = inputs[0].dtype() == DType::F16 ? -3e4 : kFarBelow;
    return {where(mask, share(where(mask, inputs[0], low)), 0.0)};
  }

 private:
  Tensor share(const Tensor& x) const {
    return s.axis.values().size() == 1 ? softmax(x, s.axis.values()[0]) : exp(x - logsumexp(x, s.axis, true));
  }
};

}  // namespace

Activation::Activation(const ActivationFunction& activation, const NamedOptions& options)
    : Layer(std::make_shared<ActivationBody>(ActivationSettings{activation}), options.name) {}
ReLU::ReLU(const ReLUOptions& options) : Layer(std::make_shared<ReLUBody>(ReLUSettings{options}), options.name) {}
LeakyReLU::LeakyReLU(double negative_slope, const NamedOptions& options)
    : Layer(std::make_shared<LeakyReLUBody>(LeakyReLUSettings{negative_slope}), options.name) {}
PReLU::PReLU(const PReLUOptions& options) : Layer(std::make_shared<PReLUBody>(PReLUSettings{options}), options.name) {}
ELU::ELU(double alpha, const NamedOptions& options) : Layer(std::make_shared<ELUBody>(ELUSettings{alpha}), options.name) {}
Softmax::Softmax(const IntList& axis, const NamedOptions& options)
    : Layer(std::make_shared<SoftmaxBody>(SoftmaxSettings{axis}), options.name) {}

void register_activation_layers() {
  register_kind<ActivationBody>();
  register_kind<ReLUBody>();
  register_kind<LeakyReLUBody>();
  register_kind<PReLUBody>();
  register_kind<ELUBody>();
  register_kind<SoftmaxBody>();
}

}  // namespace tandem::nn
