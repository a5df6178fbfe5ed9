// A layer whose outputs have another shape in training than without it, and behind which layers are built for those of training.
#pragma once

namespace tandem::nn {

class ShapesOfTraining {
 public:
  virtual ~ShapesOfTraining() = default;
};

}  // namespace tandem::nn
