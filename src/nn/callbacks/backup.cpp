// BackupAndRestore: weights, optimizer, random numbers and the place in the data, kept so that a fit that was cut goes on as if nothing had
// happened.
#include <nlohmann/json.hpp>

#include <tandem/nn/model.hpp>

#include "base/text.hpp"
#include "io/file.hpp"
#include "nn/saving/keras_file.hpp"
#include "nn/saving/weights_tree.hpp"

namespace tandem::nn {
namespace {

namespace fs = std::filesystem;

// Where the layers' streams of random numbers are, by the path of the layer in a file. Keras keeps them out of its weights, so do we.
Config random_states(const Layer& model) {
  Config states = Config::object();
  for_each_layer(model, [&](const std::string& path, const Layer& layer) {
    if (const Tensor state = layer.body().random_state(); state.defined()) states[path] = state.to_vector<uint32_t>();
  });
  return states;
}

void set_random_states(const Layer& model, const Config& states, const std::string& file) {
  const auto is_word = [](const Config& c) { return c.is_number_unsigned() && c.get<uint64_t>() <= UINT32_MAX; };
  std::vector<std::pair<Layer, Tensor>> found;
  for_each_layer(model, [&](const std::string& path, const Layer& layer) {
    if (!states.contains(path)) return;
    const Config& words = states[path];
    if (!words.is_array() || words.size() != 2 || !is_word(words[0]) || !is_word(words[1]))
      resource_error("BackupAndRestore: ", file, ": the random state of '", path, "' is not two words of 32 bits");
    found.emplace_back(layer, Tensor::from(words.get<std::vector<uint32_t>>()));
  });
  if (!states.is_object() || found.size() != states.size())
    resource_error("BackupAndRestore: ", file, " has the random states of ", states.size(), " layers, the model has ", found.size(),
                   " of them\n  hint: it is a backup of another model");
  for (const auto& [layer, state] : found) layer.body().set_random_state(state);
}

class Backup final : public CallbackBody {
 public:
  Backup(fs::path folder, const BackupAndRestoreOptions& options) : folder_(std::move(folder)), o_(options) {
    if (folder_.empty()) user_error("BackupAndRestore: needs a folder");
    if (o_.save_every_steps && *o_.save_every_steps < 1)
      user_error("BackupAndRestore: save_every_steps is ", *o_.save_every_steps, ", it must be at least 1");
  }
  int64_t every_steps() const override { return o_.save_every_steps.value_or(0); }

  // The file that says which weights belong to it comes last and replaces the old one in one go, so a cut at any moment leaves a pair.
  void on_train_begin(Run& run) override {
    if (!fs::exists(metadata())) return;
    const Config saved = read_metadata();
    if (!saved.is_object() || !saved.contains("epoch") || !saved.contains("position") || !saved.contains("weights") ||
        !saved["epoch"].is_number_unsigned() || saved["epoch"].get<uint64_t>() > INT64_MAX || !saved["position"].is_string() ||
        !saved["weights"].is_string())
      resource_error("BackupAndRestore: ", metadata().string(), " is damaged\n  hint: delete it to begin anew");
    const std::string name = saved["weights"];
    if (name != "0.weights.h5" && name != "1.weights.h5")
      resource_error("BackupAndRestore: ", metadata().string(), " names no weights of its own: '", name, "'");
    if (const Optimizer& optimizer = run.model().optimizer(); !optimizer.built()) optimizer.build(run.model().trainable_weights());
    run.model().load_weights(folder_ / name);
    if (saved.contains("random")) set_random_states(run.model(), saved["random"], metadata().string());
    turn_ = name[0] == '0' ? 1 : 0;
    run.resume(saved["epoch"], saved["position"]);
  }
  void on_batch_end(Run& run) override {
    if (run.kind == Run::Kind::Train && run.step != run.steps) save(run, run.epoch);  // the last one of an epoch: on_epoch_end
  }
  void on_epoch_end(Run& run, int64_t epoch, Logs&) override {
    completed_ = !run.stop || epoch + 1 >= run.epochs;
    save(run, epoch + 1);
  }
  void on_train_end(Run& run, const Logs&) override {
    if (o_.delete_checkpoint && run.epoch + 1 >= run.epochs && completed_) fs::remove_all(folder_);
  }

 private:
  fs::path metadata() const { return folder_ / "training_metadata.json"; }
  Config read_metadata() const {
    const io::Bytes text = io::read_file(metadata());
    try {
      return parse_config(io::text_of(text), metadata().string());
    } catch (const UserError&) {
      return {};
    }
  }
  void save(const Run& run, int64_t epoch) {
    fs::create_directories(folder_);
    const std::string name = cat(turn_, ".weights.h5");
    turn_ = 1 - turn_;
    run.model().save_weights(folder_ / name);
    AtomicFile out(metadata());
    const Config all = {
        {"epoch", epoch}, {"batch", run.step}, {"weights", name}, {"position", run.position()}, {"random", random_states(run.model())}};
    out.write(all.dump() + "\n");
    out.commit();
  }

  const fs::path folder_;
  const BackupAndRestoreOptions o_;
  int turn_ = 0;
  bool completed_ = false;
};

}  // namespace

Callback BackupAndRestore(const fs::path& folder, const BackupAndRestoreOptions& options) {
  return std::make_shared<Backup>(folder, options);
}

}  // namespace tandem::nn
