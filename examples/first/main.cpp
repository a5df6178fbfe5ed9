#include <tandem/tandem.hpp>

#include <cstdio>

namespace td = tandem;

int main() {
  // One variable, moved towards 3 by gradient descent.
  td::Variable x(0.0f);
  for (int step = 0; step < 50; ++step) {
    td::Tape tape;
    td::Tensor loss = td::square(x - 3.0f);
    x.assign(x - 0.1f * tape.gradient(loss, x));
  }
  std::printf("x = %.3f\n", x.value().item<float>());
}
