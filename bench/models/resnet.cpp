// The ResNet for small pictures of He et al., "Deep residual learning for image recognition", 2015: 20 layers at full size.
#include <optional>
#include <string>

#include "works.hpp"

namespace bench {
namespace {

class ConvNorm {
 public:
  ConvNorm(Weights& weights, const std::string& name, int64_t size, int64_t in, int64_t out, int64_t stride)
      : conv_(weights, name + "_conv", size, in, out, {.stride = stride, .padding = size == 1 ? "valid" : "same", .bias = false}),
        norm_(weights, name + "_norm", out) {}
  td::Tensor operator()(const td::Tensor& x, Forward& f) const { return norm_(conv_(x, f)); }

 private:
  Conv2D conv_;
  BatchNormalization norm_;
};

class Block {
 public:
  Block(Weights& weights, const std::string& name, int64_t in, int64_t out, int64_t stride)
      : first_(weights, name + "_a", 3, in, out, stride), second_(weights, name + "_b", 3, out, out, 1) {
    if (stride != 1 || in != out) shortcut_.emplace(weights, name + "_s", 1, in, out, stride);
  }
  td::Tensor operator()(const td::Tensor& x, Forward& f) const {
    const td::Tensor y = second_(td::relu(first_(x, f)), f);
    return td::relu(y + (shortcut_ ? (*shortcut_)(x, f) : x));
  }

 private:
  ConvNorm first_, second_;
  std::optional<ConvNorm> shortcut_;
};

}  // namespace

Work make_resnet(Scale scale, Weights& weights) {
  const bool full = scale == Scale::Full;
  const int64_t side = full ? 32 : 8, filters = full ? 16 : 4, blocks_per_stage = full ? 3 : 1, classes = 10;
  const ConvNorm stem(weights, "stem", 3, 3, filters, 1);
  std::vector<Block> blocks;
  int64_t channels = filters;
  for (int64_t stage = 0; stage < 3; ++stage)
    for (int64_t i = 0; i < blocks_per_stage; ++i) {
      const int64_t out = filters << stage;
      blocks.emplace_back(weights, "block" + std::to_string(blocks.size()), channels, out, stage > 0 && i == 0 ? 2 : 1);
      channels = out;
    }
  const Dense output(weights, "output", channels, classes);
  return {
      .batch = full ? 64 : 6,  // with 8, one relu of step 8 gets a number so near 0 that the last bit decides
      .steps = full ? 15 : 10,
      .x = {side, side, 3},
      .y = {},
      .classes = classes,
      .loss = Loss::ClassLogits,
      .model =
          [=](const td::Tensor& x, Forward& f) {
            td::Tensor y = td::relu(stem(x, f));
            for (const Block& block : blocks) y = block(y, f);
            return output(td::global_average_pool(y), f);
          },
  };
}

}  // namespace bench
