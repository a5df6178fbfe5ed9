// A compiled function's graph before anything is compiled, with what each of its inputs is: for planning it on a device that is not there.
#pragma once
#include <string>
#include <vector>

#include <tandem/function.hpp>

#include "ir/graph.hpp"

namespace tandem::frontend {

struct TracedStep {
  // Arguments come first, then what the function takes from outside: variables, and tensors, of which the variable is undefined.
  struct External {
    Variable variable;
    bool written = false;
  };
  ir::Graph graph;
  size_t argument_count = 0;
  std::vector<External> externals;
  std::vector<int32_t> donations;  // one an output: the input whose place it may take, or -1
  Precision precision = Precision::Float32;
};

// Traces the function for arguments of these types, whatever was traced before. Nothing is compiled and nothing runs.
TracedStep traced_step(const FlatCallable& function, const std::vector<Spec>& arguments);

}  // namespace tandem::frontend
