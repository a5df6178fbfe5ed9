// A compiled function as Python holds it.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core.hpp"

namespace tandem::python {

// What it calls is Python's, and the cycle collector sees it: a model that holds its step, which holds the model, goes.
class CompiledFunction {
 public:
  CompiledFunction(nb::handle body, const std::string& name, std::vector<Spec> specs);
  const FlatCallable& callable() const { return callable_; }
  // What it calls: its body, and the callbacks of host calls that were traced into it, whoever called it then.
  const std::vector<std::shared_ptr<Callback>>& callbacks() const { return *callbacks_; }

 private:
  std::shared_ptr<std::vector<std::shared_ptr<Callback>>> callbacks_;
  FlatCallable callable_;
};

}  // namespace tandem::python
