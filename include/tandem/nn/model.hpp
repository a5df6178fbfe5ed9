// Model: a graph of layers, or a list of them, that can be trained, measured, used and kept in files. It is a layer itself.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tandem/data.hpp>
#include <tandem/loss_scale.hpp>
#include <tandem/nn/callbacks.hpp>
#include <tandem/nn/example_weights.hpp>
#include <tandem/nn/losses.hpp>
#include <tandem/nn/metrics.hpp>
#include <tandem/nn/network.hpp>
#include <tandem/nn/optimizers.hpp>
#include <tandem/nn/step.hpp>

namespace tandem::nn {

struct CompileOptions {
  Optimizer optimizer = "rmsprop";                  // from a name, or made: Adam(1e-3)
  std::vector<Loss> loss = {};                      // one for all outputs, or one an output
  std::vector<Metric> metrics = {};                 // "accuracy" means what Keras makes of it for the loss
  std::vector<Metric> weighted_metrics = {};        // these take sample and class weights into account
  std::vector<double> loss_weights = {};            // one an output; default: 1
  std::optional<Precision> precision = {};          // of the compiled steps and the layers' policies; default: what the layers say
  std::optional<LossScaleOptions> loss_scale = {};  // default: Keras's with MixedFloat16, else none
  StepFunction train_step = {}, test_step = {};     // instead of the built-in ones (step.hpp)
};

struct FitOptions {
  std::optional<int64_t> batch_size = {};  // default: 32; for arrays only, the elements of a dataset are batches
  int64_t epochs = 1;
  int64_t initial_epoch = 0;
  std::optional<int64_t> steps_per_epoch = {}, validation_steps = {};
  double validation_split = 0;
  std::optional<data::Dataset> validation_data = {};
  bool shuffle = true;
  ClassWeight class_weight = {};    // fit only
  SampleWeight sample_weight = {};  // for arrays only; a dataset has them as further components
  uint64_t seed = 0;                // of the permutation of each epoch
  std::vector<Callback> callbacks = {};
  int verbose = 1;  // 0 nothing, 1 a progress bar, 2 one line an epoch
};

struct LoadOptions {
  bool compile = true;  // with what is in the file
};

class Model : public Network {
 public:
  Model() = default;
  Model(std::vector<Symbol> inputs, std::vector<Symbol> outputs, const std::string& name = "", Where where = Where::current())
      : Network(std::move(inputs), std::move(outputs), name, where) {}
  explicit Model(const Layer& layer) : Network(layer) {}  // one that is a network, such as layer_from_config gives; UserError otherwise

  void compile(const CompileOptions& options) const;
  bool compiled() const;
  const CompileOptions& compile_options() const;  // UserError when it is not compiled
  Optimizer& optimizer() const;
  const std::optional<LossScale>& loss_scale() const;  // none when the gradients are not scaled
  Config compile_config() const;                       // as Keras keeps it in a file
  void compile_from_config(const Config& config) const;
  MetricBody::Better better(const std::string& metric) const;  // which way a metric of this model, or a loss, should go

  // `where` is the line that errors name.
  using Tensors = std::vector<Tensor>;
  History fit(const Tensors& x, const Tensors& y, const FitOptions& options = {}, Where where = Where::current()) const;
  History fit(const Tensor& x, const Tensor& y, const FitOptions& options = {}, Where where = Where::current()) const {
    return fit(Tensors{x}, Tensors{y}, options, where);
  }
  History fit(const Tensor& x, const FitOptions& options = {}, Where where = Where::current()) const {  // a train_step without targets
    return fit(Tensors{x}, Tensors(), options, where);
  }
  // Elements: inputs, then targets, then sample weights: none, one for all outputs, or one an output.
  History fit(const data::Dataset& batches, const FitOptions& options = {}, Where where = Where::current()) const;
  Logs evaluate(const Tensors& x, const Tensors& y, const FitOptions& options = {}, Where where = Where::current()) const;
  Logs evaluate(const Tensor& x, const Tensor& y, const FitOptions& options = {}, Where where = Where::current()) const {
    return evaluate(Tensors{x}, Tensors{y}, options, where);
  }
  Logs evaluate(const Tensor& x, const FitOptions& options = {}, Where where = Where::current()) const {  // a test_step without targets
    return evaluate(Tensors{x}, Tensors(), options, where);
  }
  Logs evaluate(const data::Dataset& batches, const FitOptions& options = {}, Where where = Where::current()) const;
  Tensors predict(const Tensors& x, const FitOptions& options = {}, Where where = Where::current()) const;
  Tensor predict(const Tensor& x, const FitOptions& options = {}, Where where = Where::current()) const;  // for one output only
  Tensors predict(const data::Dataset& batches, const FitOptions& options = {}, Where where = Where::current()) const;
  Logs train_on_batch(const Tensors& x, const Tensors& y, Where where = Where::current()) const;
  Logs test_on_batch(const Tensors& x, const Tensors& y, Where where = Where::current()) const;
  Tensors predict_on_batch(const Tensors& x, Where where = Where::current()) const;

  // Files as Keras 3 writes and reads them (docs/nn.md). A file that is replaced stays as it was until the new one is whole.
  void save(const std::filesystem::path& file) const;          // .keras: layers, weights, what it was compiled with, the optimizer's state
  void expect_saveable() const;                                // UserError that says what a file cannot keep, and what to register
  void save_weights(const std::filesystem::path& file) const;  // .weights.h5
  // From .weights.h5 or .keras. All weights or, with a UserError, none; an optimizer's state that does not fit is left out.
  void load_weights(const std::filesystem::path& file) const;
  static Model load(const std::filesystem::path& file, const LoadOptions& options = {});
};

// The layers one after the other. Its shapes are known when the first is an Input or has an input shape, else at the first call.
inline Model Sequential(std::vector<Layer> layers = {}, const std::string& name = "", Layer::Where where = Layer::Where::current()) {
  return Model(Network::sequential(std::move(layers), name, where));
}

}  // namespace tandem::nn
