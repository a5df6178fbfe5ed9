// Reading and writing logs by name.
#pragma once
#include <algorithm>
#include <string>

#include <tandem/nn/callbacks.hpp>

namespace tandem::nn {

const double* find(const Logs& logs, const std::string& name);  // null when it is not there
void set(Logs& logs, const std::string& name, double value);
std::string names_of(const Logs& logs);  // "loss, accuracy"
inline Logs sorted(Logs logs) {          // by name, as Keras shows them
  std::ranges::stable_sort(logs, {}, [](const auto& l) { return l.first; });
  return logs;
}

}  // namespace tandem::nn
