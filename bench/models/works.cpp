#include "works.hpp"

#include <string>

namespace bench {

std::span<const WorkEntry> works() {
  static constexpr WorkEntry kWorks[] = {
      {"mlp", make_mlp},       {"mlp_big", make_mlp_big},         {"cnn", make_cnn},
      {"resnet", make_resnet}, {"transformer", make_transformer}, {"lstm", make_lstm},
  };
  return kWorks;
}

Work make_work(std::string_view name, Scale scale, Weights& weights) {
  std::string names;
  for (const WorkEntry& w : works()) {
    if (w.name == name) return w.make(scale, weights);
    names.append(" ").append(w.name);
  }
  throw td::UserError("there is no work '" + std::string(name) + "'; there are:" + names);
}

}  // namespace bench
