#include <tandem/nn/layers/convolution.hpp>

#include <tandem/ops.hpp>

#include "base/checked.hpp"
#include "nn/kind.hpp"

namespace tandem::nn {
namespace {

// What all of them share: sizes made one an axis, the rank, the bias and the activation at the end.
template <class S, int N> class ConvBase : public Kind<S> {
 public:
  using Base = Kind<S>;
  using Base::s;
  void check(const std::vector<Spec>& inputs) const override {
    Base::check(inputs);
    expect_rank(inputs[0], N + 2, spatial_axes(N, first()));
    const Dim& channels = inputs[0].dims[static_cast<size_t>(first() ? 1 : N + 1)];
    if (built_channels_ > 0 && !channels.is(built_channels_))
      user_error("was built for ", built_channels_, " channels, got ", inputs[0].str(), ", whose axes are ", spatial_axes(N, first()));
    constexpr bool is_transposed = requires { s.options.output_padding; };  // these make images larger
    if (is_transposed || s.options.padding != "valid") return;
    std::vector<int64_t> window = s.kernel_size.values();
    for (size_t i = 0; i < window.size(); ++i)
      if (__builtin_mul_overflow(window[i] - 1, s.options.dilation_rate.values()[i], &window[i]) ||
          __builtin_add_overflow(window[i], 1, &window[i]))
        window[i] = INT64_MAX;
    expect_window(inputs[0], window, first());
  }
  std::vector<Tensor> compute_mask(const std::vector<Tensor>&, const Pass&) const override { return {}; }

 protected:
  ConvBase(const char* kind, S settings) : Base(normalized(kind, std::move(settings))) {
    auto& o = s.options;
    if constexpr (requires { s.filters; }) expect_positive(kind, "filters", s.filters);
    expect_data_format(kind, o.data_format);
    expect_one_of(
        kind, "padding", o.padding,
        N == 1 && requires { o.groups; } ? std::vector<std::string>{"valid", "same", "causal"} : std::vector<std::string>{"valid", "same"});
    bool strided = false, dilated = false;
    for (const int64_t n : o.strides.values()) strided |= n > 1;
    for (const int64_t n : o.dilation_rate.values()) dilated |= n > 1;
    if (strided && dilated) user_error(kind, ": strides and dilation_rate are both larger than 1");
  }

  bool first() const { return is_channels_first(s.options.data_format); }
  int64_t channels_of(const Spec& input) { return built_channels_ = known_extent(input, first() ? 1 : -1, "the kernel"); }
  Shape kernel_shape(int64_t a, int64_t b) const {
    Shape shape(s.kernel_size.values());
    shape.push_back(a);
    shape.push_back(b);
    return shape;
  }
  void add_bias(int64_t filters) {
    const auto& o = s.options;
    if (o.use_bias) bias_ = this->add_weight("bias", {filters}, {o.bias_initializer, o.bias_regularizer, o.bias_constraint});
  }
  std::vector<Tensor> finish(const Tensor& y) const {
    return {as_given(activate(s.options.activation, s.options.use_bias ? y + bias_ : y), first())};
  }

 private:
  static S normalized(const char* kind, S settings) {
    auto& o = settings.options;
    settings.kernel_size = for_each_axis(kind, "kernel_size", settings.kernel_size, N);
    o.strides = for_each_axis(kind, "strides", o.strides, N);
    o.dilation_rate = for_each_axis(kind, "dilation_rate", o.dilation_rate, N);
    return settings;
  }
  int64_t built_channels_ = 0;
  Variable bias_;
};

// --- Conv --------------------------------------------------------------------------------------------------------------------------

template <int N> struct ConvSettings {
  int64_t filters = 1;
  IntList kernel_size = 1;
  ConvOptions options;
};
template <class F, int N> void describe(F& field, ConvSettings<N>& s) {
  ConvOptions& o = s.options;
  field("filters", s.filters);
  field("kernel_size", s.kernel_size);
  field("strides", o.strides);
  field("padding", o.padding);
  field("data_format", o.data_format);
  field("dilation_rate", o.dilation_rate);
  field("groups", o.groups);
  field("activation", o.activation);
  field("use_bias", o.use_bias);
  field("kernel_initializer", o.kernel_initializer);
  field("bias_initializer", o.bias_initializer);
  field("kernel_regularizer", o.kernel_regularizer);
  field("bias_regularizer", o.bias_regularizer);
  field("activity_regularizer", o.activity_regularizer);
  field("kernel_constraint", o.kernel_constraint);
  field("bias_constraint", o.bias_constraint);
}

template <int N> class ConvBody : public ConvBase<ConvSettings<N>, N> {
 public:
  using Base = ConvBase<ConvSettings<N>, N>;
  using Base::s;
  static constexpr const char* kNames[] = {"Conv1D", "Conv2D", "Conv3D"};
  static constexpr const char* kName = kNames[N - 1];
  explicit ConvBody(ConvSettings<N> settings) : Base(kName, std::move(settings)) {
    expect_positive(kName, "groups", s.options.groups);
    if (s.filters % s.options.groups != 0)
      user_error(kName, ": ", s.filters, " filters cannot be shared out evenly among ", s.options.groups, " groups");
  }
  std::string class_name() const override { return kName; }

  void build(const std::vector<Spec>& inputs) override {
    const ConvOptions& o = s.options;
    const int64_t channels = this->channels_of(inputs[0]);
    if (channels % o.groups != 0) user_error(channels, " channels cannot be shared out evenly among ", o.groups, " groups");
    kernel_ = this->add_weight("kernel", this->kernel_shape(channels / o.groups, s.filters),
                               {o.kernel_initializer, o.kernel_regularizer, o.kernel_constraint});
    this->add_bias(s.filters);
  }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    const ConvOptions& o = s.options;
    return this->finish(conv(channels_last(inputs[0], this->first()), kernel_, o.strides, o.padding, o.dilation_rate, o.groups));
  }

 private:
  Variable kernel_;
};

// --- transposed ----------------------------------------------------------------------------------------------------------------------

template <int N> struct ConvTransposeSettings {
  int64_t filters = 1;
  IntList kernel_size = 1;
  ConvTransposeOptions options;
};
template <class F, int N> void describe(F& field, ConvTransposeSettings<N>& s) {
  ConvTransposeOptions& o = s.options;
  field("filters", s.filters);
  field("kernel_size", s.kernel_size);
  field("strides", o.strides);
  field("padding", o.padding);
  field("output_padding", o.output_padding);
  field("data_format", o.data_format);
  field("dilation_rate", o.dilation_rate);
  field("activation", o.activation);
  field("use_bias", o.use_bias);
  field("kernel_initializer", o.kernel_initializer);
  field("bias_initializer", o.bias_initializer);
  field("kernel_regularizer", o.kernel_regularizer);
  field("bias_regularizer", o.bias_regularizer);
  field("activity_regularizer", o.activity_regularizer);
  field("kernel_constraint", o.kernel_constraint);
  field("bias_constraint", o.bias_constraint);
}

template <int N> class ConvTransposeBody : public ConvBase<ConvTransposeSettings<N>, N> {
 public:
  using Base = ConvBase<ConvTransposeSettings<N>, N>;
  using Base::s;
  static constexpr const char* kNames[] = {"Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"};
  static constexpr const char* kName = kNames[N - 1];
  explicit ConvTransposeBody(ConvTransposeSettings<N> settings) : Base(kName, with_output_padding(std::move(settings))) {}
  std::string class_name() const override { return kName; }

  void build(const std::vector<Spec>& inputs) override {
    const ConvTransposeOptions& o = s.options;
    const int64_t channels = this->channels_of(inputs[0]);
    kernel_ = this->add_weight("kernel", this->kernel_shape(s.filters, channels),
                               {o.kernel_initializer, o.kernel_regularizer, o.kernel_constraint});
    this->add_bias(s.filters);
  }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    const ConvTransposeOptions& o = s.options;
    return this->finish(
        conv_transpose(channels_last(inputs[0], this->first()), kernel_, o.strides, o.padding, o.output_padding, o.dilation_rate));
  }

 private:
  static ConvTransposeSettings<N> with_output_padding(ConvTransposeSettings<N> settings) {
    IntList& p = settings.options.output_padding;
    if (p.given()) p = for_each_axis(kName, "output_padding", p, N, 0);
    return settings;
  }
  Variable kernel_;
};

// --- depthwise -----------------------------------------------------------------------------------------------------------------------

// What both kinds that have a depthwise kernel say of it.
template <class F, class Options> void describe_depthwise(F& field, IntList& kernel_size, Options& o) {
  field("kernel_size", kernel_size);
  field("strides", o.strides);
  field("padding", o.padding);
  field("data_format", o.data_format);
  field("dilation_rate", o.dilation_rate);
  field("activation", o.activation);
  field("use_bias", o.use_bias);
  field("depthwise_initializer", o.depthwise_initializer);
}

template <int N> struct DepthwiseConvSettings {
  IntList kernel_size = 1;
  DepthwiseConvOptions options;
};
template <class F, int N> void describe(F& field, DepthwiseConvSettings<N>& s) {
  DepthwiseConvOptions& o = s.options;
  field("depth_multiplier", o.depth_multiplier);
  describe_depthwise(field, s.kernel_size, o);
  field("bias_initializer", o.bias_initializer);
  field("depthwise_regularizer", o.depthwise_regularizer);
  field("bias_regularizer", o.bias_regularizer);
  field("activity_regularizer", o.activity_regularizer);
  field("depthwise_constraint", o.depthwise_constraint);
  field("bias_constraint", o.bias_constraint);
}

template <int N> class DepthwiseConvBody : public ConvBase<DepthwiseConvSettings<N>, N> {
 public:
  using Base = ConvBase<DepthwiseConvSettings<N>, N>;
  using Base::s;
  static constexpr const char* kNames[] = {"DepthwiseConv1D", "DepthwiseConv2D"};
  static constexpr const char* kName = kNames[N - 1];
  explicit DepthwiseConvBody(DepthwiseConvSettings<N> settings) : Base(kName, std::move(settings)) {
    expect_positive(kName, "depth_multiplier", s.options.depth_multiplier);
  }
  std::string class_name() const override { return kName; }

  void build(const std::vector<Spec>& inputs) override {
    const DepthwiseConvOptions& o = s.options;
    const int64_t channels = this->channels_of(inputs[0]);
    kernel_ = this->add_weight("kernel", this->kernel_shape(channels, o.depth_multiplier),
                               {o.depthwise_initializer, o.depthwise_regularizer, o.depthwise_constraint});
    this->add_bias(product_of(channels, o.depth_multiplier, "depth_multiplier"));
  }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    const DepthwiseConvOptions& o = s.options;
    return this->finish(depthwise_conv(channels_last(inputs[0], this->first()), kernel_, o.strides, o.padding, o.dilation_rate));
  }

 private:
  Variable kernel_;
};

// --- separable -----------------------------------------------------------------------------------------------------------------------

template <int N> struct SeparableConvSettings {
  int64_t filters = 1;
  IntList kernel_size = 1;
  SeparableConvOptions options;
};
template <class F, int N> void describe(F& field, SeparableConvSettings<N>& s) {
  SeparableConvOptions& o = s.options;
  field("depth_multiplier", o.depth_multiplier);
  field("filters", s.filters);
  describe_depthwise(field, s.kernel_size, o);
  field("pointwise_initializer", o.pointwise_initializer);
  field("bias_initializer", o.bias_initializer);
  field("depthwise_regularizer", o.depthwise_regularizer);
  field("pointwise_regularizer", o.pointwise_regularizer);
  field("bias_regularizer", o.bias_regularizer);
  field("activity_regularizer", o.activity_regularizer);
  field("depthwise_constraint", o.depthwise_constraint);
  field("pointwise_constraint", o.pointwise_constraint);
  field("bias_constraint", o.bias_constraint);
}

template <int N> class SeparableConvBody : public ConvBase<SeparableConvSettings<N>, N> {
 public:
  using Base = ConvBase<SeparableConvSettings<N>, N>;
  using Base::s;
  static constexpr const char* kNames[] = {"SeparableConv1D", "SeparableConv2D"};
  static constexpr const char* kName = kNames[N - 1];
  explicit SeparableConvBody(SeparableConvSettings<N> settings) : Base(kName, std::move(settings)) {
    expect_positive(kName, "depth_multiplier", s.options.depth_multiplier);
  }
  std::string class_name() const override { return kName; }

  void build(const std::vector<Spec>& inputs) override {
    const SeparableConvOptions& o = s.options;
    const int64_t channels = this->channels_of(inputs[0]);
    depthwise_ = this->add_weight("depthwise_kernel", this->kernel_shape(channels, o.depth_multiplier),
                                  {o.depthwise_initializer, o.depthwise_regularizer, o.depthwise_constraint});
    Shape ones(std::vector<int64_t>(N, 1));
    ones.push_back(product_of(channels, o.depth_multiplier, "depth_multiplier"));
    ones.push_back(s.filters);
    pointwise_ = this->add_weight("pointwise_kernel", ones, {o.pointwise_initializer, o.pointwise_regularizer, o.pointwise_constraint});
    this->add_bias(s.filters);
  }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    const SeparableConvOptions& o = s.options;
    return this->finish(
        separable_conv(channels_last(inputs[0], this->first()), depthwise_, pointwise_, o.strides, o.padding, o.dilation_rate));
  }

 private:
  Variable depthwise_, pointwise_;
};

}  // namespace

#define TANDEM_CONV(N)                                                                                                       \
  Conv##N##D::Conv##N##D(int64_t filters, const IntList& kernel_size, const ConvOptions& options)                            \
      : Layer(std::make_shared<ConvBody<N>>(ConvSettings<N>{filters, kernel_size, options}), options.name) {}                \
  Conv##N##DTranspose::Conv##N##DTranspose(int64_t filters, const IntList& kernel_size, const ConvTransposeOptions& options) \
      : Layer(std::make_shared<ConvTransposeBody<N>>(ConvTransposeSettings<N>{filters, kernel_size, options}), options.name) {}
TANDEM_CONV(1)
TANDEM_CONV(2)
TANDEM_CONV(3)
DepthwiseConv1D::DepthwiseConv1D(const IntList& kernel_size, const DepthwiseConvOptions& options)
    : Layer(std::make_shared<DepthwiseConvBody<1>>(DepthwiseConvSettings<1>{kernel_size, options}), options.name) {}
DepthwiseConv2D::DepthwiseConv2D(const IntList& kernel_size, const DepthwiseConvOptions& options)
    : Layer(std::make_shared<DepthwiseConvBody<2>>(DepthwiseConvSettings<2>{kernel_size, options}), options.name) {}
SeparableConv1D::SeparableConv1D(int64_t filters, const IntList& kernel_size, const SeparableConvOptions& options)
    : Layer(std::make_shared<SeparableConvBody<1>>(SeparableConvSettings<1>{filters, kernel_size, options}), options.name) {}
SeparableConv2D::SeparableConv2D(int64_t filters, const IntList& kernel_size, const SeparableConvOptions& options)
    : Layer(std::make_shared<SeparableConvBody<2>>(SeparableConvSettings<2>{filters, kernel_size, options}), options.name) {}

void register_convolution_layers() {
  register_kind<ConvBody<1>>();
  register_kind<ConvBody<2>>();
  register_kind<ConvBody<3>>();
  register_kind<ConvTransposeBody<1>>();
  register_kind<ConvTransposeBody<2>>();
  register_kind<ConvTransposeBody<3>>();
  register_kind<DepthwiseConvBody<1>>();
  register_kind<DepthwiseConvBody<2>>();
  register_kind<SeparableConvBody<1>>();
  register_kind<SeparableConvBody<2>>();
}

}  // namespace tandem::nn
