// A line that shows how far an epoch is: live on a terminal, one line an epoch elsewhere.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace examples {

class Progress {
 public:
  Progress(int epoch, int epochs, int64_t steps);
  void step(int64_t done, float loss);  // draws at most ten times a second
  void finish(float loss, float accuracy);

 private:
  double seconds() const;
  std::string bar(int64_t done) const;

  const int epoch_, epochs_;
  const int64_t steps_;
  const bool is_terminal_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double drawn_ = -1;
};

}  // namespace examples
