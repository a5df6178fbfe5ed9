// The body of InputLayer, which networks look for.
#pragma once
#include "nn/kind.hpp"

namespace tandem::nn {

struct InputSettings {
  Dims batch_shape;
  std::string dtype = "float32";
};

class InputLayerBody : public Kind<InputSettings> {
 public:
  static constexpr const char* kName = "InputLayer";
  explicit InputLayerBody(InputSettings settings);
  std::string class_name() const override { return kName; }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override { return inputs; }
  const Spec& spec() const { return spec_; }

 private:
  Spec spec_;
};

Symbol input_symbol(const Layer& input_layer);

}  // namespace tandem::nn
