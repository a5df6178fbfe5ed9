// Callbacks: what happens between the steps of fit, evaluate and predict. Own ones derive from Callback.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <tandem/nn/logs.hpp>

namespace tandem::nn {

class Model;

// A run of fit, evaluate or predict, as its callbacks see it and change it.
class Run {
 public:
  virtual ~Run() = default;
  virtual const Model& model() const = 0;
  virtual Logs logs() const = 0;                                        // of the steps so far; reading them costs a few small operations
  virtual std::string position() const = 0;                             // where in its data the epoch is, exactly
  virtual void resume(int64_t epoch, const std::string& position) = 0;  // in on_train_begin: where to go on

  enum class Kind : uint8_t { Train, Test, Predict };
  Kind kind = Kind::Train;
  int64_t epochs = 1, epoch = 0;
  std::optional<int64_t> steps;  // of an epoch; none: not known yet
  int64_t step = 0;              // how many of the epoch are done
  int verbose = 0;
  bool stop = false;  // set it: after this step and its epoch's end, nothing more is run
};

class CallbackBody {
 public:
  virtual ~CallbackBody() = default;
  virtual void on_train_begin(Run& run);
  virtual void on_train_end(Run& run, const Logs& logs);
  virtual void on_epoch_begin(Run& run, int64_t epoch);
  virtual void on_epoch_end(Run& run, int64_t epoch, Logs& logs);  // with validation; what is added to the logs reaches the history
  virtual void on_test_begin(Run& run);
  virtual void on_test_end(Run& run, const Logs& logs);
  virtual void on_predict_begin(Run& run);
  virtual void on_predict_end(Run& run);
  // After steps of any kind, when a multiple of every_steps() is reached or every_seconds() have passed. By default never: between such
  // points nothing but compiled code runs.
  virtual void on_batch_end(Run& run);
  virtual int64_t every_steps() const { return 0; }
  virtual double every_seconds() const { return 0; }
};
using Callback = std::shared_ptr<CallbackBody>;

// --- those that there are ---------------------------------------------------------------------------------------------------------

enum class Mode : uint8_t { Auto, Min, Max };  // Auto: by the metric's own direction
struct EarlyStoppingOptions {
  std::string monitor = "val_loss";
  double min_delta = 0;
  int64_t patience = 0;
  Mode mode = Mode::Auto;
  std::optional<double> baseline = {};
  bool restore_best_weights = false;
  int64_t start_from_epoch = 0;
  int verbose = 0;
};
Callback EarlyStopping(const EarlyStoppingOptions& options = {});

struct ModelCheckpointOptions {
  std::string monitor = "val_loss";
  bool save_best_only = false;
  bool save_weights_only = false;
  Mode mode = Mode::Auto;
  std::optional<int64_t> save_every_steps = {};  // default: at the end of each epoch
  std::optional<double> initial_value_threshold = {};
  int verbose = 0;
};
// "model.{epoch:02d}-{val_loss:.2f}.keras", or ".weights.h5" with save_weights_only.
Callback ModelCheckpoint(const std::string& file, const ModelCheckpointOptions& options = {});

Callback CSVLogger(const std::filesystem::path& file, char separator = ',', bool append = false);
// rate = schedule(epoch, rate) at the start of each epoch.
Callback LearningRateScheduler(std::function<double(int64_t epoch, double rate)> schedule, int verbose = 0);

struct ReduceLROnPlateauOptions {
  std::string monitor = "val_loss";
  double factor = 0.1;
  int64_t patience = 10;
  Mode mode = Mode::Auto;
  double min_delta = 1e-4;
  int64_t cooldown = 0;
  double min_lr = 0;
  int verbose = 0;
};
Callback ReduceLROnPlateau(const ReduceLROnPlateauOptions& options = {});
Callback TerminateOnNaN();

struct BackupAndRestoreOptions {
  std::optional<int64_t> save_every_steps = {};  // default: at the end of each epoch
  bool delete_checkpoint = true;                 // after a fit that reached its end
};
// Keeps weights, optimizer and the exact place in the data in a folder; a fit that was cut goes on from there.
Callback BackupAndRestore(const std::filesystem::path& folder, const BackupAndRestoreOptions& options = {});

struct LambdaCallbackOptions {
  std::function<void(Run&)> on_train_begin = {}, on_train_end = {}, on_batch_end = {};
  std::function<void(Run&, int64_t epoch)> on_epoch_begin = {};
  std::function<void(Run&, int64_t epoch, Logs&)> on_epoch_end = {};
};
Callback LambdaCallback(const LambdaCallbackOptions& options);

// What verbose = 1 and 2 show. Added by fit, evaluate and predict themselves.
Callback ProgressBar();

}  // namespace tandem::nn
