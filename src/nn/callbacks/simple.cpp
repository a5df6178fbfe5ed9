// Callbacks that need little: the base, CSV, rates by epoch, NaN, functions of the caller.
#include <cmath>
#include <cstdio>
#include <fstream>

#include <tandem/nn/model.hpp>

#include "base/text.hpp"

namespace tandem::nn {

void CallbackBody::on_train_begin(Run&) {}
void CallbackBody::on_train_end(Run&, const Logs&) {}
void CallbackBody::on_epoch_begin(Run&, int64_t) {}
void CallbackBody::on_epoch_end(Run&, int64_t, Logs&) {}
void CallbackBody::on_test_begin(Run&) {}
void CallbackBody::on_test_end(Run&, const Logs&) {}
void CallbackBody::on_predict_begin(Run&) {}
void CallbackBody::on_predict_end(Run&) {}
void CallbackBody::on_batch_end(Run&) {}

namespace {

class Csv final : public CallbackBody {
 public:
  Csv(std::filesystem::path file, char separator, bool append) : path_(std::move(file)), separator_(separator), append_(append) {}
  void on_train_begin(Run&) override {
    std::error_code error;
    const bool has_lines = append_ && std::filesystem::file_size(path_, error) > 0 && !error;
    needs_header_ = !has_lines;
    file_.open(path_, append_ ? std::ios::app : std::ios::trunc);
    if (!file_) resource_error("CSVLogger: cannot write ", path_.string());
    names_.clear();
  }
  void on_epoch_end(Run&, int64_t epoch, Logs& logs) override {
    if (names_.empty()) {
      for (const auto& [name, value] : logs.sorted()) names_.push_back(name);
      if (std::exchange(needs_header_, false)) {
        file_ << "epoch";
        for (const std::string& name : names_) file_ << separator_ << name;
        file_ << "\r\n";
      }
    }
    file_ << epoch;
    for (const std::string& name : names_) {
      char text[32] = "NA";
      if (const double* value = logs.find(name)) std::snprintf(text, sizeof text, "%.9g", *value);
      file_ << separator_ << text;
    }
    file_ << "\r\n" << std::flush;
    if (!file_) resource_error("CSVLogger: writing ", path_.string(), " failed");
  }
  void on_train_end(Run&, const Logs&) override { file_.close(); }

 private:
  const std::filesystem::path path_;
  const char separator_;
  const bool append_;
  bool needs_header_ = true;
  std::ofstream file_;
  std::vector<std::string> names_;
};

class RateByEpoch final : public CallbackBody {
 public:
  RateByEpoch(std::function<double(int64_t, double)> schedule, int verbose) : schedule_(std::move(schedule)), verbose_(verbose) {}
  void on_epoch_begin(Run& run, int64_t epoch) override {
    const Optimizer& optimizer = run.model().optimizer();
    const double rate = schedule_(epoch, optimizer.learning_rate());
    if (!std::isfinite(rate)) user_error("LearningRateScheduler: the rate of epoch ", epoch, " is ", rate);
    optimizer.set_learning_rate(rate);
    if (verbose_)
      std::printf("\nEpoch %lld: LearningRateScheduler sets the learning rate to %g\n", static_cast<long long>(epoch + 1), rate);
  }
  void on_epoch_end(Run& run, int64_t, Logs& logs) override { logs.set("learning_rate", run.model().optimizer().learning_rate()); }

 private:
  const std::function<double(int64_t, double)> schedule_;
  const int verbose_;
};

class StopOnNaN final : public CallbackBody {
 public:
  int64_t every_steps() const override { return 1; }
  void on_batch_end(Run& run) override {
    if (run.kind != Run::Kind::Train) return;
    const Logs logs = run.logs();
    const double* loss = logs.find("loss");
    if (!loss || std::isfinite(*loss)) return;
    std::printf("\nBatch %lld: the loss is %g, training ends\n", static_cast<long long>(run.step - 1), *loss);
    run.stop = true;
  }
};

class Lambda final : public CallbackBody {
 public:
  explicit Lambda(LambdaCallbackOptions options) : o_(std::move(options)) {}
  void on_train_begin(Run& run) override {
    if (o_.on_train_begin) o_.on_train_begin(run);
  }
  void on_train_end(Run& run, const Logs&) override {
    if (o_.on_train_end) o_.on_train_end(run);
  }
  void on_epoch_begin(Run& run, int64_t epoch) override {
    if (o_.on_epoch_begin) o_.on_epoch_begin(run, epoch);
  }
  void on_epoch_end(Run& run, int64_t epoch, Logs& logs) override {
    if (o_.on_epoch_end) o_.on_epoch_end(run, epoch, logs);
  }
  void on_batch_end(Run& run) override { o_.on_batch_end(run); }
  int64_t every_steps() const override { return o_.on_batch_end ? 1 : 0; }

 private:
  const LambdaCallbackOptions o_;
};

}  // namespace

Callback CSVLogger(const std::filesystem::path& file, char separator, bool append) {
  return std::make_shared<Csv>(file, separator, append);
}
Callback LearningRateScheduler(std::function<double(int64_t, double)> schedule, int verbose) {
  return std::make_shared<RateByEpoch>(std::move(schedule), verbose);
}
Callback TerminateOnNaN() { return std::make_shared<StopOnNaN>(); }
Callback LambdaCallback(const LambdaCallbackOptions& options) { return std::make_shared<Lambda>(options); }

}  // namespace tandem::nn
