// Two encoders over a sequence of words, which say a word for each place.
#include <string>

#include "works.hpp"

namespace bench {
namespace {

class Encoder {
 public:
  Encoder(Weights& weights, const std::string& name, int64_t features, int64_t heads)
      : attention_(weights, name + "_attention", features, heads),
        attention_norm_(weights, name + "_attention_norm", features),
        wide_(weights, name + "_wide", features, 4 * features),
        narrow_(weights, name + "_narrow", 4 * features, features),
        norm_(weights, name + "_norm", features) {}
  td::Tensor operator()(const td::Tensor& x, Forward& f) const {
    const td::Tensor y = attention_norm_(x + attention_(x, f));
    return norm_(y + narrow_(td::gelu(wide_(y, f), false), f));
  }

 private:
  MultiHeadAttention attention_;
  LayerNormalization attention_norm_;
  Dense wide_, narrow_;
  LayerNormalization norm_;
};

}  // namespace

Work make_transformer(Scale scale, Weights& weights) {
  const bool full = scale == Scale::Full;
  const int64_t words = full ? 5000 : 50, length = full ? 128 : 6, features = full ? 256 : 16, heads = full ? 4 : 2;
  const Embedding embedding(weights, "embedding", words, features);
  const Encoder first(weights, "encoder0", features, heads), second(weights, "encoder1", features, heads);
  const Dense output(weights, "output", features, words);
  return {
      .batch = full ? 8 : 4,
      .steps = full ? 15 : 10,
      .x = {length},
      .words = words,
      .y = {length},
      .classes = words,
      .loss = Loss::ClassLogits,
      .model = [=](const td::Tensor& x, Forward& f) { return output(second(first(embedding(x, f), f), f), f); },
  };
}

}  // namespace bench
