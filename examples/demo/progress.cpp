#include "progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace examples {

Progress::Progress(int epoch, int epochs, int64_t steps)
    : epoch_(epoch), epochs_(epochs), steps_(steps), is_terminal_(isatty(STDOUT_FILENO) != 0) {}

double Progress::seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

std::string Progress::bar(int64_t done) const {
  constexpr int64_t kWidth = 30;
  const auto filled = static_cast<size_t>(kWidth * done / steps_);
  return std::string(filled, '=') + (filled < kWidth ? ">" : "") + std::string(filled < kWidth ? kWidth - 1 - filled : 0, ' ');
}

void Progress::step(int64_t done, float loss) {
  const double now = seconds();
  if (!is_terminal_ || now - drawn_ < 0.1) return;
  drawn_ = now;
  const double rate = static_cast<double>(done) / now, left = static_cast<double>(steps_ - done) / rate;
  std::printf("\repoch %2d/%d [%s] %5.0f steps/s, %3.1f s left, loss %.4f\x1b[K", epoch_, epochs_, bar(done).c_str(), rate, left,
              static_cast<double>(loss));
  std::fflush(stdout);
}

void Progress::finish(float loss, float accuracy) {
  const double time = std::max(seconds(), 1e-9);
  std::printf("%sepoch %2d/%d  loss %.4f  accuracy %5.2f %%  %5.0f steps/s  %.2f s%s\n", is_terminal_ ? "\r" : "", epoch_, epochs_,
              static_cast<double>(loss), 100.0 * static_cast<double>(accuracy), static_cast<double>(steps_) / time, time,
              is_terminal_ ? "\x1b[K" : "");
  std::fflush(stdout);
}

}  // namespace examples
