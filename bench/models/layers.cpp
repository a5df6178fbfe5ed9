#include "layers.hpp"

#include <utility>

namespace bench {
namespace {

double count(const td::Tensor& x) { return static_cast<double>(x.size()); }
double elements(const td::Variable& v) { return static_cast<double>(td::element_count(v.shape())); }

}  // namespace

// Forward, the gradient of the weights and, unless the input is data, the gradient of the input: all of the same size.
void Forward::count_product(double multiply_adds) { flops += 2 * multiply_adds * (std::exchange(weights_before, true) ? 3 : 2); }

Dense::Dense(Weights& weights, const std::string& name, int64_t in, int64_t out)
    : kernel_(weights.trainable(name + "/kernel", {in, out}, Initial::GlorotUniform)),
      bias_(weights.trainable(name + "/bias", {out}, Initial::Zeros)) {}

td::Tensor Dense::operator()(const td::Tensor& x, Forward& forward) const {
  forward.count_product(count(x) * static_cast<double>(kernel_.shape()[1]));
  return td::matmul(x, kernel_) + bias_;
}

Conv2D::Conv2D(Weights& weights, const std::string& name, int64_t size, int64_t in, int64_t out, ConvOptions options)
    : kernel_(weights.trainable(name + "/kernel", {size, size, in, out}, Initial::GlorotUniform)), options_(std::move(options)) {
  if (options_.bias) bias_ = weights.trainable(name + "/bias", {out}, Initial::Zeros);
}

td::Tensor Conv2D::operator()(const td::Tensor& x, Forward& forward) const {
  const td::Tensor y = td::conv(x, kernel_, options_.stride, options_.padding);
  forward.count_product(count(y) * elements(kernel_) / static_cast<double>(kernel_.shape().back()));
  return options_.bias ? y + bias_ : y;
}

BatchNormalization::BatchNormalization(Weights& weights, const std::string& name, int64_t channels)
    : gamma_(weights.trainable(name + "/gamma", {channels}, Initial::Ones)),
      beta_(weights.trainable(name + "/beta", {channels}, Initial::Zeros)),
      moving_mean_(weights.state(name + "/moving_mean", {channels}, Initial::Zeros)),
      moving_variance_(weights.state(name + "/moving_variance", {channels}, Initial::Ones)) {}

td::Tensor BatchNormalization::operator()(const td::Tensor& x) const {
  constexpr float kMomentum = 0.99f;
  constexpr double kEpsilon = 1e-3;
  std::vector<int64_t> all_but_channels;
  for (int axis = 0; axis + 1 < x.rank(); ++axis) all_but_channels.push_back(axis);
  const auto [mean, variance] = td::moments(x, all_but_channels);
  moving_mean_.assign(moving_mean_ * kMomentum + mean * (1 - kMomentum));
  moving_variance_.assign(moving_variance_ * kMomentum + variance * (1 - kMomentum));
  return td::batch_normalization(x, mean, variance, beta_, gamma_, -1, kEpsilon);
}

LayerNormalization::LayerNormalization(Weights& weights, const std::string& name, int64_t features)
    : gamma_(weights.trainable(name + "/gamma", {features}, Initial::Ones)),
      beta_(weights.trainable(name + "/beta", {features}, Initial::Zeros)) {}

td::Tensor LayerNormalization::operator()(const td::Tensor& x) const {
  constexpr double kEpsilon = 1e-3;
  return td::layer_normalization(x, gamma_, beta_, -1, kEpsilon);
}

Embedding::Embedding(Weights& weights, const std::string& name, int64_t words, int64_t features)
    : embeddings_(weights.trainable(name + "/embeddings", {words, features}, Initial::Uniform)) {}

td::Tensor Embedding::operator()(const td::Tensor& ids, Forward& forward) const {
  forward.weights_before = true;
  return td::take(embeddings_, ids);
}

MultiHeadAttention::MultiHeadAttention(Weights& weights, const std::string& name, int64_t features, int64_t heads)
    : heads_(heads), depth_(features / heads) {
  const auto input = [&](const std::string& part) {
    return Projection{weights.trainable(name + "/" + part + "/kernel", {features, heads_, depth_}, Initial::GlorotUniform),
                      weights.trainable(name + "/" + part + "/bias", {heads_, depth_}, Initial::Zeros)};
  };
  query_ = input("query");
  key_ = input("key");
  value_ = input("value");
  output_ = {weights.trainable(name + "/attention_output/kernel", {heads_, depth_, features}, Initial::GlorotUniform),
             weights.trainable(name + "/attention_output/bias", {features}, Initial::Zeros)};
}

td::Tensor MultiHeadAttention::project(const td::Tensor& x, const Projection& p, Forward& forward) const {
  const int64_t features = heads_ * depth_;
  forward.count_product(count(x) * static_cast<double>(features));
  return td::matmul(x, td::reshape(p.kernel, {features, features})) + td::reshape(p.bias, {features});
}

td::Tensor MultiHeadAttention::operator()(const td::Tensor& x, Forward& forward) const {
  const td::Shape s = x.shape();
  const auto heads = [&](const Projection& p) { return project(x, p, forward).reshape({s[0], s[1], heads_, depth_}); };
  const td::Tensor q = heads(query_), k = heads(key_), v = heads(value_);
  forward.count_product(2 * count(q) * static_cast<double>(s[1]));  // scores, and their products with the values
  return project(td::dot_product_attention(q, k, v).reshape({s[0], s[1], heads_ * depth_}), output_, forward);
}

Lstm::Lstm(Weights& weights, const std::string& name, int64_t in, int64_t units)
    : units_(units),
      kernel_(weights.trainable(name + "/lstm_cell/kernel", {in, 4 * units}, Initial::GlorotUniform)),
      recurrent_kernel_(weights.trainable(name + "/lstm_cell/recurrent_kernel", {units, 4 * units}, Initial::Orthogonal)),
      bias_(weights.trainable(name + "/lstm_cell/bias", {4 * units}, Initial::ForgetOnes)) {}

td::Tensor Lstm::operator()(const td::Tensor& x, Forward& forward) const {
  const td::Shape s = x.shape();
  forward.count_product(count(x) * static_cast<double>(4 * units_));
  forward.count_product(static_cast<double>(s[0] * s[1]) * elements(recurrent_kernel_));

  const td::Tensor inputs = td::matmul(x, kernel_) + bias_;  // of all steps at once
  const td::Tensor zero = td::Tensor::zeros({s[1], units_});
  return td::lstm(inputs, recurrent_kernel_, zero, zero)[1];
}

td::Tensor dropout(const td::Tensor& x, double rate, Forward& forward) { return forward.dropout ? forward.random.dropout(x, rate) : x; }

}  // namespace bench
