// A dataset as Python holds it.
#pragma once
#include <memory>
#include <vector>

#include <tandem/data.hpp>

#include "core.hpp"

namespace tandem::python {

// A description. The cycle collector sees the functions of its last stage; those of the stages before are seen by their own objects, which
// the Python object of this one keeps alive. Whoever holds `dataset` must hold the Python object too.
struct Pipeline {
  data::Dataset dataset;
  std::vector<std::shared_ptr<Callback>> callbacks = {};
};

}  // namespace tandem::python
