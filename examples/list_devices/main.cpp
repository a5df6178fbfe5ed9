// Which devices there are, and a product and a small training on one of them: the argument, or what TANDEM_DEVICE says, or the CPU.
#include <cmath>
#include <string>

#include "support.hpp"

namespace td = tandem;
namespace nn = tandem::nn;
using namespace examples;

int main(int count, char** arguments) {
  return run([&] {
    if (count > 1) setenv("TANDEM_DEVICE", arguments[1], 1);  // before the first tensor
    for (const td::DeviceDescription& d : td::devices())
      std::printf("%-10s %s\n", d.name.c_str(), d.problem.empty() ? d.description.c_str() : d.problem.c_str());

    const td::DeviceDescription chosen = td::active_device();
    expect(chosen.computes, "a device that computes");
    td::Generator random(7);
    const td::Tensor product = td::matmul(random.normal({64, 64}), random.normal({64, 64}));
    const double sum = td::sum(product).item<double>(), exact = td::sum(product.cast(td::DType::F64)).item<double>();
    std::printf("the sum of a product: %.3f\n", sum);
    expect(std::abs(sum - exact) < 0.1, "a float32 sum near the float64 one");

    const Set train = digits(200, 1);
    const nn::Model model = nn::Sequential({nn::InputLayer(td::Dims{kPixels}), nn::Dense(10, {.activation = "softmax"})});
    model.compile({.optimizer = nn::Adam(0.05), .loss = {"sparse_categorical_crossentropy"}, .metrics = {"accuracy"}});
    const nn::History history = model.fit(train.x, train.y, {.batch_size = 50, .epochs = 4, .verbose = 0});
    const double accuracy = history["accuracy"].back();
    std::printf("accuracy %.3f\n", accuracy);
    expect(accuracy > 0.75, "an accuracy above 0.75");

    // It stays what it is: tensors are in its memory.
    setenv("TANDEM_DEVICE", "another", 1);
    expect(td::active_device().name == chosen.name, "one device a process");
    std::printf("all of it on %s\n", chosen.name.c_str());
  });
}
