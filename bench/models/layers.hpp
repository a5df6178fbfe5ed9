// The layers of the benchmark's models, as Keras computes them: its names, its layouts (channels last), its defaults.
#pragma once
#include <string>

#include "weights.hpp"

namespace bench {

// What a forward pass shares with its layers, and what they leave there.
struct Forward {
  td::Generator& random;
  bool dropout = true;

  double flops = 0;             // of the products of a whole step, backward included
  bool weights_before = false;  // whether a layer with weights came before: if not, the input needs no gradient
  void count_product(double multiply_adds);
};

class Dense {
 public:
  Dense(Weights& weights, const std::string& name, int64_t in, int64_t out);
  td::Tensor operator()(const td::Tensor& x, Forward& forward) const;  // along the last axis

 private:
  td::Variable kernel_, bias_;
};

struct ConvOptions {
  int64_t stride = 1;
  std::string padding = "valid";
  bool bias = true;
};

class Conv2D {
 public:
  Conv2D(Weights& weights, const std::string& name, int64_t size, int64_t in, int64_t out, ConvOptions options = {});
  td::Tensor operator()(const td::Tensor& x, Forward& forward) const;

 private:
  td::Variable kernel_, bias_;
  ConvOptions options_;
};

// By the statistics of the batch; each pass moves the averages that inference would use.
class BatchNormalization {
 public:
  BatchNormalization(Weights& weights, const std::string& name, int64_t channels);
  td::Tensor operator()(const td::Tensor& x) const;

 private:
  td::Variable gamma_, beta_, moving_mean_, moving_variance_;
};

class LayerNormalization {
 public:
  LayerNormalization(Weights& weights, const std::string& name, int64_t features);
  td::Tensor operator()(const td::Tensor& x) const;

 private:
  td::Variable gamma_, beta_;
};

class Embedding {
 public:
  Embedding(Weights& weights, const std::string& name, int64_t words, int64_t features);
  td::Tensor operator()(const td::Tensor& ids, Forward& forward) const;

 private:
  td::Variable embeddings_;
};

// Self-attention over [batch, length, features].
class MultiHeadAttention {
 public:
  MultiHeadAttention(Weights& weights, const std::string& name, int64_t features, int64_t heads);
  td::Tensor operator()(const td::Tensor& x, Forward& forward) const;

 private:
  struct Projection {
    td::Variable kernel, bias;
  };
  td::Tensor project(const td::Tensor& x, const Projection& p, Forward& forward) const;

  int64_t heads_, depth_;
  Projection query_, key_, value_, output_;
};

// The last output of the sequence [length, batch, features]: time comes first, so that each step reads one piece of memory.
class Lstm {
 public:
  Lstm(Weights& weights, const std::string& name, int64_t in, int64_t units);
  td::Tensor operator()(const td::Tensor& x, Forward& forward) const;

 private:
  int64_t units_;
  td::Variable kernel_, recurrent_kernel_, bias_;
};

td::Tensor dropout(const td::Tensor& x, double rate, Forward& forward);

}  // namespace bench
