// ProgressBar: what verbose shows. On a terminal the line of an epoch is written again a few times a second; elsewhere once, at its end.
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>

#include <tandem/nn/callbacks.hpp>

#include "base/text.hpp"

namespace tandem::nn {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kSecondsBetween = 0.2;
constexpr int kBarWidth = 20;

template <class... A> std::string formatted(const char* format, A... arguments) {
  char text[128];
  std::snprintf(text, sizeof text, format, arguments...);
  return text;
}

std::string time_per_step(double seconds) {
  if (seconds >= 1 || seconds == 0) return formatted("%.0fs/step", seconds);
  return seconds >= 1e-3 ? formatted("%.0fms/step", seconds * 1e3) : formatted("%.0fus/step", seconds * 1e6);
}

std::string eta(double seconds) {
  const auto s = static_cast<long long>(seconds);
  if (s > 3600) return formatted("%lld:%02lld:%02lld", s / 3600, s % 3600 / 60, s % 60);
  return s > 60 ? formatted("%lld:%02lld", s / 60, s % 60) : formatted("%llds", s);
}

std::string shown(const Logs& logs) {
  std::string text;
  for (const auto& [name, value] : logs.sorted())
    text += " - " + name + (std::abs(value) > 1e-3 ? formatted(": %.4f", value) : formatted(": %.4e", value));
  return text;
}

class Bar final : public CallbackBody {
 public:
  double every_seconds() const override { return is_terminal_ ? kSecondsBetween : 0; }

  void on_train_begin(Run&) override { inside_fit_ = true; }
  void on_train_end(Run&, const Logs&) override { inside_fit_ = false; }
  void on_epoch_begin(Run& run, int64_t epoch) override {
    if (run.epochs > 1) std::printf("Epoch %lld/%lld\n", static_cast<long long>(epoch + 1), static_cast<long long>(run.epochs));
    begin();
  }
  void on_epoch_end(Run& run, int64_t, Logs& logs) override { finish(run, logs); }
  void on_test_begin(Run&) override {
    if (!inside_fit_) begin();
  }
  void on_test_end(Run& run, const Logs& logs) override {
    if (!inside_fit_) finish(run, logs);
  }
  void on_predict_begin(Run&) override { begin(); }
  void on_predict_end(Run& run) override { finish(run, {}); }
  void on_batch_end(Run& run) override {
    if (run.verbose != 1 || (inside_fit_ && run.kind != Run::Kind::Train)) return;
    const double seconds = elapsed(), per_step = run.step ? seconds / static_cast<double>(run.step) : 0;
    const double left = run.steps ? per_step * static_cast<double>(*run.steps - run.step) : seconds;
    line(bar(run) + " " + eta(left) + " " + time_per_step(per_step) + shown(run.logs()), false);
  }

 private:
  void begin() {
    start_ = Clock::now();
    width_ = 0;
  }
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  static std::string count(const Run& run) {
    if (!run.steps) return formatted("%lld/?", static_cast<long long>(run.step));
    const int digits = formatted("%lld", static_cast<long long>(*run.steps)).size();
    return formatted("%*lld/%lld", digits, static_cast<long long>(run.step), static_cast<long long>(*run.steps));
  }
  std::string bar(const Run& run) const {
    const double share = run.steps && *run.steps ? static_cast<double>(run.step) / static_cast<double>(*run.steps) : 1;
    const int full = std::min(kBarWidth, static_cast<int>(kBarWidth * share));
    std::string text = count(run) + " ";
    if (is_terminal_) text += "\x1b[32m";
    for (int i = 0; i < kBarWidth; ++i) {
      if (i == full && is_terminal_) text += "\x1b[37m";
      text += i < full || is_terminal_ ? "━" : "─";
    }
    if (is_terminal_) text += "\x1b[0m";
    return text;
  }
  void line(const std::string& text, bool is_last) {
    if (is_terminal_) std::printf("\r");
    std::printf("%s", text.c_str());
    for (size_t i = text.size(); i < width_; ++i) std::printf(" ");
    width_ = text.size();
    if (is_last) std::printf("\n");
    std::fflush(stdout);
  }
  void finish(const Run& run, const Logs& logs) {
    const double seconds = elapsed();
    const std::string time = time_per_step(run.step ? seconds / static_cast<double>(run.step) : 0);
    if (run.verbose == 1)
      line(bar(run) + formatted(" %.0fs ", seconds) + time + shown(logs), true);
    else if (run.verbose == 2)
      line(count(run) + formatted(" - %.0fs - ", seconds) + time + shown(logs), true);
  }

  const bool is_terminal_ = isatty(STDOUT_FILENO) == 1;
  bool inside_fit_ = false;
  Clock::time_point start_;
  size_t width_ = 0;
};

}  // namespace

Callback ProgressBar() { return std::make_shared<Bar>(); }

}  // namespace tandem::nn
