// The weights of a model as the tree of groups that Keras keeps them in: layers/<class>_<n>/…/vars/<i>, and optimizer/vars/<i>.
#pragma once
#include <functional>
#include <string>

#include <tandem/loss_scale.hpp>
#include <tandem/nn/layer.hpp>
#include <tandem/nn/optimizers.hpp>

#include "io/hdf5.hpp"

namespace tandem::nn {

// A layer and everything inside it, each once, by the path of its group. The order is Keras's.
using VisitLayer = std::function<void(const std::string& path, const Layer& layer)>;
void for_each_layer(const Layer& model, const VisitLayer& visit);

// What the training of a model keeps besides its weights.
struct TrainingState {
  const Optimizer* optimizer = nullptr;
  const LossScale* loss_scale = nullptr;
};

io::Hdf5Group weights_tree(const Layer& model, const TrainingState& training);
// Those of the optimizer in a file, of the inner one where it has a loss scale; null: there are none.
const io::Hdf5Group* optimizer_variables(const io::Hdf5Group& file);

// Whether the state of the optimizer has to fit as well, as it does when the optimizer came with the file, or is left as it was when
// it does not: the file may come from a model that was trained in another way.
enum class OptimizerState : uint8_t { Required, IfItFits };

// Either all weights are assigned, or none and a UserError lists what does not fit, by path and with both shapes. `label` begins it.
// Returns whether the optimizer's state was taken.
bool assign_weights(const io::Hdf5Group& file, const std::string& label, const Layer& model, const TrainingState& training,
                    OptimizerState state);

}  // namespace tandem::nn
