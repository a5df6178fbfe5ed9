// Callbacks that watch one number from epoch to epoch: early stopping, rates on a plateau, checkpoints.
#include <cmath>
#include <cstdio>
#include <set>

#include <tandem/nn/model.hpp>

#include "base/text.hpp"

namespace tandem::nn {
namespace {

// What a number is compared with, and which way it should go.
class Watch {
 public:
  Watch(std::string who, std::string monitor, Mode mode, double min_delta)
      : who_(std::move(who)), monitor_(std::move(monitor)), mode_(mode), min_delta_(std::abs(min_delta)) {}
  const std::string& monitor() const { return monitor_; }

  // The number; null, said once, when it is not there.
  const double* current(const Logs& logs) {
    const double* value = logs.find(monitor_);
    if (!value && !std::exchange(warned_, true))
      std::fprintf(stderr, "%s: there is no %s, there are %s\n", who_.c_str(), monitor_.c_str(), logs.names().c_str());
    return value;
  }
  bool improves(const Run& run, double value, std::optional<double> reference) {
    if (!reference) return true;
    return direction(run) == Mode::Min ? value + min_delta_ < *reference : value - min_delta_ > *reference;
  }

 private:
  Mode direction(const Run& run) {
    if (mode_ != Mode::Auto) return mode_;
    const std::string metric = monitor_.starts_with("val_") ? monitor_.substr(4) : monitor_;
    switch (run.model().better(metric)) {
      case MetricBody::Better::Higher: return mode_ = Mode::Max;
      case MetricBody::Better::Lower: return mode_ = Mode::Min;
      case MetricBody::Better::Unknown: break;
    }
    user_error(who_, ": whether ", monitor_, " should be high or low is not known\n  hint: .mode = Mode::Min or Mode::Max");
  }

  const std::string who_, monitor_;
  Mode mode_;
  const double min_delta_;
  bool warned_ = false;
};

class Early final : public CallbackBody {
 public:
  explicit Early(const EarlyStoppingOptions& options) : o_(options), watch_("EarlyStopping", o_.monitor, o_.mode, o_.min_delta) {}
  void on_train_begin(Run&) override {
    wait_ = 0;
    stopped_epoch_ = {};
    best_ = {};
    best_weights_.clear();
  }
  void on_epoch_end(Run& run, int64_t epoch, Logs& logs) override {
    const double* current = watch_.current(logs);
    if (!current || epoch < o_.start_from_epoch) return;
    if (o_.restore_best_weights && best_weights_.empty()) keep(run, epoch);
    ++wait_;
    if (watch_.improves(run, *current, best_)) {
      best_ = *current;
      best_epoch_ = epoch;
      if (o_.restore_best_weights) keep(run, epoch);
      if (!o_.baseline || watch_.improves(run, *current, o_.baseline)) wait_ = 0;
      return;
    }
    if (wait_ >= o_.patience && epoch > 0) {
      stopped_epoch_ = epoch;
      run.stop = true;
    }
  }
  void on_train_end(Run& run, const Logs&) override {
    if (stopped_epoch_ && o_.verbose) std::printf("Epoch %lld: early stopping\n", static_cast<long long>(*stopped_epoch_ + 1));
    if (best_weights_.empty()) return;
    if (o_.verbose) std::printf("Restoring model weights from the end of the best epoch: %lld.\n", static_cast<long long>(best_epoch_ + 1));
    const std::vector<Variable> weights = run.model().weights();
    for (size_t i = 0; i < weights.size(); ++i) weights[i].assign(best_weights_[i]);
  }

 private:
  void keep(const Run& run, int64_t epoch) {
    best_epoch_ = epoch;
    best_weights_.clear();
    for (const Variable& v : run.model().weights()) best_weights_.push_back(v.value());  // a value never changes: no copy
  }

  const EarlyStoppingOptions o_;
  Watch watch_;
  int64_t wait_ = 0, best_epoch_ = 0;
  std::optional<int64_t> stopped_epoch_;
  std::optional<double> best_;
  std::vector<Tensor> best_weights_;
};

class Plateau final : public CallbackBody {
 public:
  explicit Plateau(const ReduceLROnPlateauOptions& options) : o_(options), watch_("ReduceLROnPlateau", o_.monitor, o_.mode, o_.min_delta) {
    if (!(o_.factor < 1)) user_error("ReduceLROnPlateau: factor is ", o_.factor, ", it must be below 1");
  }
  void on_train_begin(Run&) override {
    best_ = {};
    wait_ = cooldown_ = 0;
  }
  void on_epoch_end(Run& run, int64_t epoch, Logs& logs) override {
    const Optimizer& optimizer = run.model().optimizer();
    const double rate = optimizer.learning_rate();
    logs.set("learning_rate", rate);
    const double* current = watch_.current(logs);
    if (!current) return;
    if (cooldown_ > 0) {
      --cooldown_;
      wait_ = 0;
    }
    if (watch_.improves(run, *current, best_)) {
      best_ = *current;
      wait_ = 0;
    } else if (cooldown_ == 0 && ++wait_ >= o_.patience && rate > o_.min_lr) {
      const double next = std::max(rate * o_.factor, o_.min_lr);
      optimizer.set_learning_rate(next);
      if (o_.verbose)
        std::printf("\nEpoch %lld: ReduceLROnPlateau reduces the learning rate to %g\n", static_cast<long long>(epoch + 1), next);
      cooldown_ = o_.cooldown;
      wait_ = 0;
    }
  }

 private:
  const ReduceLROnPlateauOptions o_;
  Watch watch_;
  std::optional<double> best_;
  int64_t wait_ = 0, cooldown_ = 0;
};

// "{epoch:02d}-{val_loss:.2f}": Python's format for numbers with names.
std::string filled(const std::string& pattern, int64_t epoch, int64_t batch, const Logs& logs) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '{') {
      out += pattern[i];
      continue;
    }
    const size_t end = pattern.find('}', i);
    if (end == std::string::npos) user_error("ModelCheckpoint: '", pattern, "' has a { without a }");
    const std::string field = pattern.substr(i + 1, end - i - 1);
    const size_t colon = field.find(':');
    const std::string name = field.substr(0, colon), format = colon == std::string::npos ? "" : field.substr(colon + 1);
    const bool is_count = name == "epoch" || name == "batch";
    const double* value = logs.find(name);
    if (!is_count && !value)
      user_error("ModelCheckpoint: there is no ", name, " for '", pattern, "', there are epoch, batch, ", logs.names());
    const std::string allowed = is_count ? "d" : "feg";
    const bool is_plain = format.find_first_not_of("0123456789." + allowed) == std::string::npos && format.size() < 8 &&
                          (format.empty() || allowed.find(format.back()) != std::string::npos);
    if (!is_plain) user_error("ModelCheckpoint: '", format, "' is no format of a number");
    char text[64];
    if (is_count)
      std::snprintf(text, sizeof text, ("%" + (format.empty() ? "d" : format)).insert(format.empty() ? 1 : format.size(), "ll").c_str(),
                    static_cast<long long>(name == "epoch" ? epoch + 1 : batch));
    else
      std::snprintf(text, sizeof text, ("%" + (format.empty() ? "g" : format)).c_str(), *value);
    out += text;
    i = end;
  }
  return out;
}

class Checkpoint final : public CallbackBody {
 public:
  Checkpoint(std::string file, const ModelCheckpointOptions& options)
      : file_(std::move(file)), o_(options), watch_("ModelCheckpoint", o_.monitor, o_.mode, 0), best_(o_.initial_value_threshold) {
    const char* ending = o_.save_weights_only ? ".weights.h5" : ".keras";
    if (!file_.ends_with(ending)) user_error("ModelCheckpoint: '", file_, "' must end in ", ending);
    if (o_.save_every_steps && *o_.save_every_steps < 1)
      user_error("ModelCheckpoint: save_every_steps is ", *o_.save_every_steps, ", it must be at least 1");
  }
  int64_t every_steps() const override { return o_.save_every_steps.value_or(0); }
  // What a file cannot keep is better known now than after the first epoch.
  void on_train_begin(Run& run) override {
    if (!o_.save_weights_only) run.model().expect_saveable();
  }
  void on_batch_end(Run& run) override {
    if (run.kind == Run::Kind::Train) save(run, run.epoch, run.logs());
  }
  void on_epoch_end(Run& run, int64_t epoch, Logs& logs) override {
    if (!o_.save_every_steps) save(run, epoch, logs);
  }

 private:
  void save(Run& run, int64_t epoch, const Logs& logs) {
    const std::string path = filled(file_, epoch, run.step, logs);
    if (o_.save_best_only) {
      const double* current = watch_.current(logs);
      if (current && !watch_.improves(run, *current, best_)) return;
      if (current) best_ = *current;
    }
    if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) std::filesystem::create_directories(folder);
    if (o_.save_weights_only)
      run.model().save_weights(path);
    else
      run.model().save(path);
    if (o_.verbose) std::printf("\nEpoch %lld: the model is in %s\n", static_cast<long long>(epoch + 1), path.c_str());
  }

  const std::string file_;
  const ModelCheckpointOptions o_;
  Watch watch_;
  std::optional<double> best_;
};

}  // namespace

Callback EarlyStopping(const EarlyStoppingOptions& options) { return std::make_shared<Early>(options); }
Callback ReduceLROnPlateau(const ReduceLROnPlateauOptions& options) { return std::make_shared<Plateau>(options); }
Callback ModelCheckpoint(const std::string& file, const ModelCheckpointOptions& options) {
  return std::make_shared<Checkpoint>(file, options);
}

}  // namespace tandem::nn
