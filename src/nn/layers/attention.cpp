#include <tandem/nn/layers/attention.hpp>

#include <cmath>

#include <tandem/nn/layers/regularization.hpp>
#include <tandem/ops.hpp>

#include "nn/kind.hpp"

namespace tandem::nn {
namespace {

struct MultiHeadAttentionSettings {
  int64_t num_heads = 1, key_dim = 1;
  MultiHeadAttentionOptions options;
};

// Keras writes none where nothing was given, and a number where there is one.
void describe_list(FieldWriter& field, const char* key, const std::vector<int64_t>& list) {
  field.fixed(key, list.empty() ? Config() : Config(list));
}
void describe_list(FieldReader& field, const char* key, std::vector<int64_t>& list) {
  IntList given;
  field(key, given);
  list = given.values();
}

template <class F> void describe(F& field, MultiHeadAttentionSettings& s) {
  MultiHeadAttentionOptions& o = s.options;
  field("num_heads", s.num_heads);
  field("key_dim", s.key_dim);
  field("value_dim", o.value_dim);
  field("dropout", o.dropout);
  field("use_bias", o.use_bias);
  field("use_gate", o.use_gate);
  describe_list(field, "output_shape", o.output_shape);
  describe_list(field, "attention_axes", o.attention_axes);
  field("sliding_window", o.sliding_window);
  field("kernel_initializer", o.kernel_initializer);
  field("bias_initializer", o.bias_initializer);
  field("kernel_regularizer", o.kernel_regularizer);
  field("bias_regularizer", o.bias_regularizer);
  field("activity_regularizer", o.activity_regularizer);
  field("kernel_constraint", o.kernel_constraint);
  field("bias_constraint", o.bias_constraint);
  field("seed", o.seed);
}

std::string labels(size_t first, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += static_cast<char>('a' + first + i);
  return text;
}

class MultiHeadAttentionBody : public Kind<MultiHeadAttentionSettings> {
 public:
  static constexpr const char* kName = "MultiHeadAttention";
  explicit MultiHeadAttentionBody(MultiHeadAttentionSettings settings) : Kind(with_value_dim(std::move(settings))) {
    expect_positive(kName, "num_heads", s.num_heads);
    expect_positive(kName, "key_dim", s.key_dim);
    expect_positive(kName, "value_dim", *s.options.value_dim);
    expect_rate(kName, "dropout", s.options.dropout);
    if (s.options.sliding_window) expect_positive(kName, "sliding_window", *s.options.sliding_window);
  }
  std::string class_name() const override { return kName; }
  std::vector<std::string> call_arguments() const override { return {"query", "value", "key", "attention_mask"}; }

  void check(const std::vector<Spec>& inputs) const override {
    if (inputs.size() < 2 || inputs.size() > 4)
      user_error("takes query, value and possibly key and attention_mask, got ", inputs.size(), " inputs");
    expect_rank_at_least(inputs[0], 3, "[batch, ..., features]");
    for (size_t i = 1; i < std::min<size_t>(inputs.size(), 3); ++i)
      if (inputs[i].dims.size() != inputs[0].dims.size())
        user_error("query, value and key differ in the number of axes, ", inputs[0].str(), " and ", inputs[i].str());
  }

  void build(const std::vector<Spec>& inputs) override {
    const MultiHeadAttentionOptions& o = s.options;
    const Spec& query = inputs[0];
    const Spec& value = inputs[1];
    const Spec& key = inputs.size() > 2 ? inputs[2] : value;
    rank_ = query.dims.size();
    query_ = projection("query_dense", "query", {s.num_heads, s.key_dim}, query);
    key_ = projection("key_dense", "key", {s.num_heads, s.key_dim}, key);
    if (o.use_gate) gate_ = projection("_gate_dense", "gate", {s.num_heads, *o.value_dim}, query, "sigmoid");
    value_ = projection("value_dense", "value", {s.num_heads, *o.value_dim}, value);
    const std::vector<int64_t> shape = o.output_shape.empty() ? std::vector{known_extent(query, -1, "the result")} : o.output_shape;
    // From heads and their features to the features of the result.
    const std::string kept = labels(0, rank_ - 1), summed = labels(rank_ - 1, 2), made = labels(rank_ + 1, shape.size());
    output_ = EinsumDense(kept + summed + "," + summed + made + "->" + kept + made, open_shape(shape),
                          dense_options("attention_output", made, {}));
    Spec heads = query;
    heads.dims.back() = s.num_heads;
    heads.dims.push_back(*o.value_dim);
    output_.build({heads});
    add_child("output_dense", output_);
  }

  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass& pass) override {
    for (const auto& [flag, value] : pass.flags) {
      if (flag == "return_attention_scores" && value) user_error("return_attention_scores is not supported, only the result is given");
      if (flag != "use_causal_mask" && flag != "return_attention_scores" && flag != "training")
        user_error("unknown flag '", flag, "' of a call");
    }
    const Tensor &query = inputs[0], &value = inputs[1], &key = inputs.size() > 2 ? inputs[2] : value;
    const auto causal = pass.flags.find("use_causal_mask");
    const Tensor mask = attention_mask(inputs, pass, causal != pass.flags.end() && causal->second);
    const Pass inner{.training = pass.training, .losses = pass.losses};
    Tensor heads = attend(query_(query, inner), key_(key, inner), value_(value, inner), mask, pass);
    if (s.options.use_gate) heads = heads * gate_(query, inner);
    return {output_(heads, inner)};
  }

 private:
  static MultiHeadAttentionSettings with_value_dim(MultiHeadAttentionSettings settings) {
    if (!settings.options.value_dim) settings.options.value_dim = settings.key_dim;
    return settings;
  }

  EinsumDenseOptions dense_options(const char* name, const std::string& bias_axes, const ActivationFunction& activation) const {
    const MultiHeadAttentionOptions& o = s.options;
    return {.activation = activation,
            .bias_axes = o.use_bias ? bias_axes : "",
            .kernel_initializer = o.kernel_initializer,
            .bias_initializer = o.bias_initializer,
            .kernel_regularizer = o.kernel_regularizer,
            .bias_regularizer = o.bias_regularizer,
            .activity_regularizer = o.activity_regularizer,
            .kernel_constraint = o.kernel_constraint,
            .bias_constraint = o.bias_constraint,
            .name = name};
  }
  // -1 for each of the axes that are kept, but for the batch.
  std::vector<int64_t> open_shape(const std::vector<int64_t>& last) const {
    std::vector<int64_t> shape(rank_ - 2, -1);
    shape.insert(shape.end(), last.begin(), last.end());
    return shape;
  }

  // From features to heads and their features.
  Layer projection(const char* attribute, const char* name, const std::vector<int64_t>& to, const Spec& input,
                   const ActivationFunction& activation = {}) {
    const std::string kept = labels(0, rank_ - 1), summed = labels(rank_ - 1, 1), made = labels(rank_, 2);
    const EinsumDense dense(kept + summed + "," + summed + made + "->" + kept + made, open_shape(to),
                            dense_options(name, made, activation));
    dense.build({input});
    add_child(attribute, dense);
    return dense;
  }

  // What earlier layers masked, what comes later, what is too far away, and what was given: bool[batch, targets, sources] or less.
  Tensor attention_mask(const std::vector<Tensor>& inputs, const Pass& pass, bool causal) const {
    Tensor mask;
    const auto meet = [&](const Tensor& m) { mask = mask.defined() ? mask & m : m; };
    const auto mask_of = [&](size_t i) { return i < pass.masks.size() ? pass.masks[i] : Tensor(); };
    if (const Tensor m = mask_of(0); m.defined()) meet(m.expand_dims(-1));
    if (const Tensor m = mask_of(1); m.defined()) meet(m.expand_dims(-2));
    if (inputs.size() > 2)
      if (const Tensor m = mask_of(2); m.defined()) meet(m.expand_dims(-2));
    if (causal || s.options.sliding_window) {
      const Dims shape{1, inputs[0].dims()[1], inputs[1].dims()[1]};
      const Tensor target = iota(shape, 1), source = iota(shape, 2);
      if (causal) meet(source <= target);
      if (s.options.sliding_window) meet(absolute(target - source) < *s.options.sliding_window);
    }
    if (inputs.size() > 3) meet(inputs[3].dtype() == DType::Bool ? inputs[3] : inputs[3] != 0);
    return mask;
  }

  Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, const Pass& pass) {
    const double scale = 1 / std::sqrt(static_cast<double>(s.key_dim));
    const bool drops = s.options.dropout > 0 && pass.training;
    if (rank_ == 3 && !drops && s.options.dropout == 0)
      return mask.defined() ? dot_product_attention(query, key, value, 0.0, mask, scale)
                            : dot_product_attention(query, key, value, {}, {}, scale);
    return attend_by_axes(query * scale, key, value, mask, drops);
  }

  // For any axes: scores, shares, and the shares of the values. Letters: those of the query; sources get new ones.
  Tensor attend_by_axes(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, bool drops) {
    const size_t rank = rank_ + 1;
    std::vector<size_t> axes;
    if (s.options.attention_axes.empty())
      for (size_t i = 1; i + 2 < rank; ++i) axes.push_back(i);
    for (const int64_t a : s.options.attention_axes)
      axes.push_back(static_cast<size_t>(normalize_axis(a, static_cast<int>(rank_), "attention_axes")));
    const std::string target = labels(0, rank);
    std::string source = target, kept, targets, sources;
    for (size_t i = 0; i < rank; ++i) {
      const bool attends = std::find(axes.begin(), axes.end(), i) != axes.end();
      if (attends) source[i] = static_cast<char>('a' + rank + i);
      if (attends) {
        targets += target[i];
        sources += source[i];
      } else if (i + 1 < rank) {
        kept += target[i];
      }
    }
    const std::string product = kept + targets + sources;
    Tensor scores = einsum({key, query}, source + "," + target + "->" + product);
    Tensor seen = mask;
    std::vector<int64_t> last;
    for (size_t i = 1; i <= axes.size(); ++i) last.push_back(-static_cast<int64_t>(i));
    const int64_t before_pairs = -static_cast<int64_t>(2 * axes.size()) - 1;
    while (seen.defined() && seen.rank() < scores.rank()) seen = seen.expand_dims(before_pairs);
    if (seen.defined()) scores = where(seen, scores, scores.dtype() == DType::F16 ? -3e4 : -1e9);
    Tensor shares = exp(scores - logsumexp(scores, last, true));
    if (seen.defined()) shares = where(seen, shares, 0.0);
    if (drops) shares = dropout(random(s.options.seed).next_key(), shares, s.options.dropout);
    return einsum({shares, value}, product + "," + source + "->" + target);
  }

  size_t rank_ = 0;
  Layer query_, key_, gate_, value_, output_;
};

}  // namespace

MultiHeadAttention::MultiHeadAttention(int64_t num_heads, int64_t key_dim, const MultiHeadAttentionOptions& options)
    : Layer(std::make_shared<MultiHeadAttentionBody>(MultiHeadAttentionSettings{num_heads, key_dim, options}), options.name) {}

void register_attention_layers() { register_kind<MultiHeadAttentionBody>(); }

}  // namespace tandem::nn
