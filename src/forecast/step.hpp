// A training step as it was traced, with what each of its inputs is: what a forecast is made for. Nothing of it ever runs.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tandem/nn/model.hpp>

#include "frontend/traced_step.hpp"
#include "ir/graph.hpp"

namespace tandem::forecast {

// What memory is for. Other: constants, metrics, results; Gap: between values that do not lie side by side.
enum class Role : uint8_t { Weight, OptimizerState, Gradient, Activation, Workspace, Batch, Other, Gap };
inline constexpr size_t kRoles = 8;
const char* name(Role role);  // "weights"
const char* key(Role role);   // "optimizer_state"

struct TrainingStep {
  struct Input {
    std::string name;
    Role role = Role::Other;
  };
  std::string name;
  ir::Graph graph;  // before any pass
  std::vector<Input> inputs;
  std::vector<int32_t> donations;  // one an output: the input whose place it may take, or -1
  Precision precision = Precision::Float32;
  std::string batch_symbol;        // of the graph's extents; empty: the batch is part of the graph
  int64_t batch = 0;               // then: how large it is
  std::vector<std::string> notes;  // what had to be assumed
  bool has_lines = true;           // whether the locations of its nodes are the user's lines
};

// `weights`, `optimizer`: which variables are what; others are Role::Other. The arguments of the function are the batch.
TrainingStep step_of(const frontend::TracedStep& traced, std::span<const Variable> weights, std::span<const Variable> optimizer);

struct ModelOptions {
  std::optional<std::string> optimizer = {}, loss = {};  // instead of what the model was compiled with
  std::optional<int64_t> length = {};                    // of axes that the model leaves open, besides the batch
};
// The step of fit. What the model was not compiled with, is assumed and noted.
TrainingStep step_of(const nn::Model& model, const ModelOptions& options);

}  // namespace tandem::forecast
