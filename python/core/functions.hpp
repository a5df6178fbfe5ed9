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
  CompiledFunction(nb::handle body, const std::string& name, std::vector<Spec> specs)
      : callbacks_{std::make_shared<Callback>(body)},
        callable_(flat_function(callbacks_[0]), FunctionOptions{.name = name, .specs = std::move(specs)}) {}
  const FlatCallable& callable() const { return callable_; }
  // What it calls: its body, and the callbacks of host calls that were traced into it.
  std::vector<std::shared_ptr<Callback>>& callbacks() { return callbacks_; }

 private:
  std::vector<std::shared_ptr<Callback>> callbacks_;
  FlatCallable callable_;
};

// While it lives, host calls that are traced belong to this function, if it is the outermost one.
class CalledScope {
 public:
  explicit CalledScope(CompiledFunction& f);
  ~CalledScope();
  CalledScope(const CalledScope&) = delete;
  CalledScope& operator=(const CalledScope&) = delete;

 private:
  CompiledFunction* before_;
};

}  // namespace tandem::python
