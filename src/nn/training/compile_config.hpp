// What a model was compiled with, to and from Keras's compile_config.
#pragma once
#include <string>
#include <vector>

#include <tandem/nn/model.hpp>

namespace tandem::nn {

// `outputs`: the names of the layers that give the model's outputs.
Config compile_config(const CompileOptions& options, const std::vector<std::string>& outputs);
CompileOptions compile_options_from(const Config& config, const std::vector<std::string>& outputs);

}  // namespace tandem::nn
