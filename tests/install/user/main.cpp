// A user's program: a layer learns y = 2x + 1. It ends with 0 when it did.
#include <tandem/tandem.hpp>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace td = tandem;
namespace nn = tandem::nn;

int main() {
  const nn::Dense layer(1);
  if (layer.config()["units"] != 1) return 1;  // the JSON library comes with tandem, in the version that it was built with

  const td::Tensor x = td::linspace(-1.0f, 1.0f, 64).reshape({64, 1});
  const nn::Model model = nn::Sequential({nn::InputLayer(td::Dims{1}), layer});
  model.compile({.optimizer = nn::SGD(0.1), .loss = {"mean_squared_error"}});
  model.fit(x, 2.0f * x + 1.0f, {.batch_size = 16, .epochs = 50, .verbose = 0});
  const float result = model.predict(td::Tensor::of({3.0f}).reshape({1, 1}), {.verbose = 0}).item<float>();
  std::printf("2 * 3 + 1 = %.2f\n", static_cast<double>(result));
  return std::abs(result - 7.0f) < 0.01f ? 0 : 1;
}
