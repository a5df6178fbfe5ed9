// Model to and from files.
#include <nlohmann/json.hpp>

#include <tandem/nn/model.hpp>

#include "base/border.hpp"
#include "base/text.hpp"
#include "nn/network.hpp"
#include "nn/saving/keras_file.hpp"
#include "nn/saving/loading.hpp"
#include "nn/saving/weights_tree.hpp"

namespace tandem::nn {
namespace {

constexpr char kCompileConfig[] = "compile_config";

void expect_built(const Model& model, const char* what) {
  if (!model.built() && !model.as<NetworkBody>()->has_graph())
    user_error(what, ": model '", model.name(), "' has no weights yet, since the shape of its input is not known",
               "\n  hint: begin it with Input({…}), or call it once");
}

TrainingState training_state(const Model& model) {
  if (!model.compiled()) return {};
  const std::optional<LossScale>& scale = model.loss_scale();
  return {&model.optimizer(), scale ? &*scale : nullptr};
}

uint64_t numbers_in(const io::Hdf5Group& group) {
  uint64_t count = 0;
  for (const auto& [name, tensor] : group.datasets) count += static_cast<uint64_t>(tensor.size());
  for (const auto& [name, child] : group.groups) count += numbers_in(child);
  return count;
}

Config config_for_file(const Model& model) {
  Config config = serialize(model);
  // A step of one's own is code. Without it the model would be trained another way than it was, so it is loaded as one to be compiled.
  const bool has_own_step = model.compiled() && (model.compile_options().train_step || model.compile_options().test_step);
  if (model.compiled() && !has_own_step) config[kCompileConfig] = model.compile_config();
  return config;
}

Model model_from(const Config& config) {
  const Layer layer = deserialize(config);
  if (!layer.as<NetworkBody>()) user_error("it is a ", layer.class_name(), ", not a model");
  return Model(Network(layer));
}

// A file that was saved before the first step has no state but the step's number and the learning rate.
bool is_untrained(const io::Hdf5Group& weights, const Optimizer& optimizer) {
  constexpr size_t kHead = 2;
  const io::Hdf5Group* vars = optimizer_variables(weights);
  return !vars || (vars->datasets.size() <= kHead && optimizer.variables().size() > kHead);
}

// What goes wrong while a config is read names the file and the part of it.
template <class Call> auto reading(const std::filesystem::path& path, const char* part, const char* hint, Call call) {
  const auto named = [&](const char* what) { return cat(path.string(), ": ", part, ": ", what, hint); };
  try {
    return call();
  } catch (const UserError& e) {
    throw UserError(named(e.what()), e.code());
  } catch (const ResourceError& e) {
    throw ResourceError(named(e.what()), e.code());
  } catch (const nlohmann::json::exception& e) {
    throw UserError(named(e.what()));
  }
}

}  // namespace

void Model::expect_saveable() const { config_for_file(*this); }

void Model::save(const std::filesystem::path& path) const {
  at_border("save", [&] {
    expect_built(*this, "save");
    const Config config = config_for_file(*this);
    write_keras_file(path, config, weights_tree(*this, training_state(*this)));
  });
}

void Model::save_weights(const std::filesystem::path& path) const {
  at_border("save_weights", [&] {
    expect_built(*this, "save_weights");
    write_weights_file(path, weights_tree(*this, training_state(*this)));
  });
}

void Model::load_weights(const std::filesystem::path& path) const {
  at_border("load_weights", [&] {
    expect_built(*this, "load_weights");
    assign_weights(read_weights_file(path), path.string(), *this, training_state(*this), OptimizerState::IfItFits);
  });
}

namespace {

Model load_model(const std::filesystem::path& path, const LoadOptions& options) {
  if (!path.filename().string().ends_with(".keras")) user_error("load: the name of a model's file ends in .keras, got ", path.string());
  const KerasFile file = read_keras_file(path);
  const LoadingScope loading(numbers_in(file.weights));
  Model model = reading(path, "config.json", "", [&] { return model_from(file.config); });
  TrainingState training;
  if (const auto found = file.config.find(kCompileConfig);
      options.compile && found != file.config.end() && !found->is_null() && !found->empty())
    reading(path, kCompileConfig, "\n  hint: load with {.compile = false} leaves it out", [&] {
      model.compile_from_config(*found);
      model.optimizer().build(model.trainable_weights());
      if (!is_untrained(file.weights, model.optimizer())) training = training_state(model);
    });
  assign_weights(file.weights, path.string(), model, training, OptimizerState::Required);
  return model;
}

}  // namespace

Model Model::load(const std::filesystem::path& path, const LoadOptions& options) {
  return at_border("load", [&] { return load_model(path, options); });
}

}  // namespace tandem::nn
