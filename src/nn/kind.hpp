// Kind: what every kind of layer with settings shares. From describe(field, settings) follow its config and how to make it from one.
#pragma once
#include <utility>

#include "nn/fields.hpp"

namespace tandem::nn {

template <class S> class Kind : public LayerBody {
 public:
  using Settings = S;
  explicit Kind(S settings) : s(std::move(settings)) {
    hide_lines();
    if constexpr (requires { s.options.activity_regularizer; }) set_activity_regularizer(s.options.activity_regularizer);
  }
  Config config() const override {
    FieldWriter writer;
    S copy = s;
    describe(writer, copy);
    return writer.take();
  }
  void check(const std::vector<Spec>& inputs) const override {
    if (inputs.size() != 1) user_error("takes one input, got ", inputs.size());
  }

 protected:
  const S s;
};

template <class Body> Layer from_config(const Config& config) {
  typename Body::Settings settings;
  FieldReader reader(Body::kName, config);
  describe(reader, settings);
  reader.finish();
  return make<Body>(std::move(settings));
}

void register_own_layer(const char* class_name, LayerMaker maker);  // one of Keras's kinds
template <class Body> void register_kind() { register_own_layer(Body::kName, &from_config<Body>); }

// --- checks that kinds share -------------------------------------------------------------------------------------------------------

void expect_rank(const Spec& input, int rank, const char* axes);  // axes: "[batch, time, features]"
void expect_rank_at_least(const Spec& input, int rank, const char* axes);
int64_t known_extent(const Spec& input, int64_t axis, const char* needed_for);  // UserError when it is a symbol
void expect_positive(const char* kind, const char* setting, int64_t value);
void expect_rate(const char* kind, const char* setting, double value);  // in [0, 1]
void expect_one_of(const char* kind, const char* setting, const std::string& value, const std::vector<std::string>& allowed);
// One number for all axes, or one for each; all at least `least`.
std::vector<int64_t> for_each_axis(const char* kind, const char* setting, const IntList& list, size_t axes, int64_t least = 1);
std::vector<int64_t> axes_without(const std::vector<int64_t>& axes, int rank);  // those that are not among these; may be negative

inline Tensor activate(const ActivationFunction& f, const Tensor& x) { return f ? f(x) : x; }

// --- images and sequences whose channels may come first or last ------------------------------------------------------------------

void expect_data_format(const char* kind, const std::string& data_format);
inline bool is_channels_first(const std::string& data_format) { return data_format == "channels_first"; }
const char* spatial_axes(int count, bool channels_first);  // for messages: "[batch, height, width, channels]"
// UserError when a window without padding is larger than the input; a hint says so when the channels stand at the other end.
void expect_window(const Spec& input, const std::vector<int64_t>& window, bool channels_first);
Tensor channels_last(const Tensor& x, bool channels_first);  // as kernels want it
Tensor as_given(const Tensor& y, bool channels_first);       // back again

// --- the families, each in its own file: what the registry knows from the beginning ------------------------------------------------------

void register_core_layers();
void register_activation_layers();
void register_regularization_layers();
void register_reshaping_layers();
void register_einsum_layers();
void register_convolution_layers();
void register_pooling_layers();
void register_normalization_layers();
void register_merging_layers();
void register_recurrent_layers();
void register_wrapper_layers();
void register_attention_layers();
void register_preprocessing_layers();
void register_augmentation_layers();
void register_lambda_layer();
void register_networks();

}  // namespace tandem::nn
