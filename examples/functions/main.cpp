// Numbers, batches and compiled functions: what the front-end does below models.
#include "support.hpp"

namespace td = tandem;
namespace nn = tandem::nn;
using namespace examples;

int main() {
  return run([] {
    td::Generator random(7);

    // A product and a sum, op by op.
    const td::Tensor product = td::matmul(random.normal({1024, 1024}), random.normal({1024, 1024}));
    const double sum = td::sum(product).item<double>(), exact = td::sum(product.cast(td::DType::F64)).item<double>();
    std::printf("the sum of a product: %.3f\n", sum);
    expect(std::abs(sum - exact) < 1.0, "a float32 sum near the float64 one");

    // A model over batches.
    const nn::Model model = nn::Sequential({nn::InputLayer(td::Dims{100}), nn::Dense(64, {.activation = "relu"}), nn::Dense(10)});
    int64_t rows = 0;
    td::data::Iterator walk = td::data::Dataset::from_slices({random.uniform({10000, 100})}).batch(1024).iterate();
    for (td::data::Element batch; walk.next(batch);) rows += model(batch[0]).shape()[0];
    std::printf("predictions for %lld rows\n", static_cast<long long>(rows));
    expect(rows == 10000, "all rows");

    // A function: traced once, then compiled code.
    const td::Function mean_square([](const td::Tensor& x) { return td::mean(td::square(x)); });
    const float first = mean_square(random.normal({1000, 1000})).item<float>();
    mean_square(random.normal({1000, 1000}));
    std::printf("mean square %.3f, %zu trace\n", first, mean_square.trace_count());
    expect(first > 0.98f && first < 1.02f && mean_square.trace_count() == 1, "the variance of a normal distribution, traced once");
  });
}
