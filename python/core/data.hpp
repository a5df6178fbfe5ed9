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

// Around the call of a compiled function: walks that it began and, for an exception, did not end, end here.
class WalkScope {
 public:
  WalkScope();
  ~WalkScope();
  WalkScope(const WalkScope&) = delete;
  WalkScope& operator=(const WalkScope&) = delete;

 private:
  const size_t before_;
};

}  // namespace tandem::python
