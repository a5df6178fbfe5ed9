// Config: what a layer, loss, metric, optimizer or schedule was made with, under Keras's names.
#pragma once
#include <nlohmann/json_fwd.hpp>

namespace tandem::nn {

using Config = nlohmann::ordered_json;

}  // namespace tandem::nn
