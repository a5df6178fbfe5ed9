#include <tandem/nn/layers/core.hpp>

#include <tandem/ops.hpp>

#include "nn/layers/input.hpp"

namespace tandem::nn {
namespace {

// --- Dense -----------------------------------------------------------------------------------------------------------------------

struct DenseSettings {
  int64_t units = 1;
  DenseOptions options;
};

template <class F> void describe(F& field, DenseSettings& s) {
  DenseOptions& o = s.options;
  field("units", s.units);
  field("activation", o.activation);
  field("use_bias", o.use_bias);
  field("kernel_initializer", o.kernel_initializer);
  field("bias_initializer", o.bias_initializer);
  field("kernel_regularizer", o.kernel_regularizer);
  field("bias_regularizer", o.bias_regularizer);
  field("kernel_constraint", o.kernel_constraint);
  field("bias_constraint", o.bias_constraint);
  field.fixed("quantization_config", nullptr);
}

class DenseBody : public Kind<DenseSettings> {
 public:
  static constexpr const char* kName = "Dense";
  explicit DenseBody(DenseSettings settings) : Kind(std::move(settings)) { expect_positive(kName, "units", s.units); }
  std::string class_name() const override { return kName; }

  void check(const std::vector<Spec>& inputs) const override {
    Kind::check(inputs);
    expect_rank_at_least(inputs[0], 2, "[batch, ..., features]");
    if (kernel_.defined() && !inputs[0].dims.back().is(kernel_.shape()[0]))
      user_error("was built for ", kernel_.shape()[0], " features, got ", inputs[0].str());
  }

  void build(const std::vector<Spec>& inputs) override {
    const DenseOptions& o = s.options;
    const int64_t features = known_extent(inputs[0], -1, "the kernel");
    kernel_ = add_weight("kernel", {features, s.units}, {o.kernel_initializer, o.kernel_regularizer, o.kernel_constraint});
    if (o.use_bias) bias_ = add_weight("bias", {s.units}, {o.bias_initializer, o.bias_regularizer, o.bias_constraint});
  }

  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    const Tensor y = matmul(inputs[0], kernel_);
    return {activate(s.options.activation, s.options.use_bias ? y + bias_ : y)};
  }

 private:
  Variable kernel_, bias_;
};

// --- Embedding ---------------------------------------------------------------------------------------------------------------------

struct EmbeddingSettings {
  int64_t input_dim = 1, output_dim = 1;
  EmbeddingOptions options;
};

template <class F> void describe(F& field, EmbeddingSettings& s) {
  EmbeddingOptions& o = s.options;
  field("input_dim", s.input_dim);
  field("output_dim", s.output_dim);
  field("embeddings_initializer", o.embeddings_initializer);
  field("embeddings_regularizer", o.embeddings_regularizer);
  field("activity_regularizer", o.activity_regularizer);
  field("embeddings_constraint", o.embeddings_constraint);
  field("mask_zero", o.mask_zero);
  field.fixed("quantization_config", nullptr);
}

class EmbeddingBody : public Kind<EmbeddingSettings> {
 public:
  static constexpr const char* kName = "Embedding";
  explicit EmbeddingBody(EmbeddingSettings settings) : Kind(std::move(settings)) {
    expect_positive(kName, "input_dim", s.input_dim);
    expect_positive(kName, "output_dim", s.output_dim);
  }
  std::string class_name() const override { return kName; }

  void build(const std::vector<Spec>&) override {
    const EmbeddingOptions& o = s.options;
    embeddings_ = add_weight("embeddings", {s.input_dim, s.output_dim},
                             {o.embeddings_initializer, o.embeddings_regularizer, o.embeddings_constraint});
  }

  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override { return {take(embeddings_, ids(inputs[0]))}; }

  std::vector<Tensor> compute_mask(const std::vector<Tensor>& inputs, const Pass&) const override {
    return s.options.mask_zero ? std::vector{inputs[0] != 0} : std::vector<Tensor>{};
  }

 private:
  static Tensor ids(const Tensor& x) { return is_int(x.dtype()) ? x : x.cast(DType::I32); }
  Variable embeddings_;
};

// --- Masking, Identity ---------------------------------------------------------------------------------------------------------------

struct MaskingSettings {
  double mask_value = 0;
};
template <class F> void describe(F& field, MaskingSettings& s) { field("mask_value", s.mask_value); }

class MaskingBody : public Kind<MaskingSettings> {
 public:
  static constexpr const char* kName = "Masking";
  using Kind::Kind;
  std::string class_name() const override { return kName; }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    return {where(any(inputs[0] != s.mask_value, -1, true), inputs[0], 0)};
  }
  std::vector<Tensor> compute_mask(const std::vector<Tensor>& inputs, const Pass&) const override {
    return {any(inputs[0] != s.mask_value, -1)};
  }
};

struct IdentitySettings {};
template <class F> void describe(F&, IdentitySettings&) {}

class IdentityBody : public Kind<IdentitySettings> {
 public:
  static constexpr const char* kName = "Identity";
  using Kind::Kind;
  std::string class_name() const override { return kName; }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override { return inputs; }
};

}  // namespace

// --- InputLayer ----------------------------------------------------------------------------------------------------------------------

template <class F> void describe(F& field, InputSettings& s) {
  field("batch_shape", s.batch_shape);
  field("dtype", s.dtype);
  field.fixed("sparse", false);
  field.fixed("ragged", false);
  field.fixed("optional", false);
  field.absent("trainable");
}

InputLayerBody::InputLayerBody(InputSettings settings) : Kind(std::move(settings)) {
  keep_input_types();
  const auto dtype = parse_dtype(s.dtype);
  if (!dtype) user_error(kName, ": unknown dtype '", s.dtype, "'");
  if (s.batch_shape.empty()) user_error(kName, ": batch_shape has no axes");
  for (const Dim& d : s.batch_shape)
    if (d.is_const() && d.value() < 0) user_error(kName, ": the shape ", str(s.batch_shape), " has a negative extent");
  spec_ = {*dtype, s.batch_shape};
}

Symbol input_symbol(const Layer& input_layer) {
  const auto* body = input_layer.as<InputLayerBody>();
  TANDEM_CHECK(body, "not an InputLayer");
  return {body->spec(), std::make_shared<Symbol::Origin>(input_layer, std::vector<Symbol>(), CallFlags(), size_t{0}), 0};
}

InputLayer::InputLayer(const DimList& shape, const InputOptions& options)
    : Layer(std::make_shared<InputLayerBody>([&] {
              InputSettings s{{Dim::symbol("b")}, std::string(tandem::name(options.dtype))};
              s.batch_shape.insert(s.batch_shape.end(), shape.dims().begin(), shape.dims().end());
              return s;
            }()),
            options.name) {}
Symbol InputLayer::symbol() const { return input_symbol(*this); }

// --- handles -------------------------------------------------------------------------------------------------------------------------

Dense::Dense(int64_t units, const DenseOptions& options)
    : Layer(std::make_shared<DenseBody>(DenseSettings{units, options}), options.name) {}
Embedding::Embedding(int64_t input_dim, int64_t output_dim, const EmbeddingOptions& options)
    : Layer(std::make_shared<EmbeddingBody>(EmbeddingSettings{input_dim, output_dim, options}), options.name) {}
Masking::Masking(double mask_value, const NamedOptions& options)
    : Layer(std::make_shared<MaskingBody>(MaskingSettings{mask_value}), options.name) {}
Identity::Identity(const NamedOptions& options) : Layer(std::make_shared<IdentityBody>(IdentitySettings{}), options.name) {}

void register_core_layers() {
  register_kind<InputLayerBody>();
  register_kind<DenseBody>();
  register_kind<EmbeddingBody>();
  register_kind<MaskingBody>();
  register_kind<IdentityBody>();
}

}  // namespace tandem::nn
