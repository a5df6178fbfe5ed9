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
      : body_(std::make_shared<Callback>(body)), callable_(flat_function(body_), FunctionOptions{.name = name, .specs = std::move(specs)}) {}
  const FlatCallable& callable() const { return callable_; }
  Callback& body() const { return *body_; }

 private:
  std::shared_ptr<Callback> body_;
  FlatCallable callable_;
};

}  // namespace tandem::python
