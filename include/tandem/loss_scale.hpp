// LossScale: keeps gradients within the range of float16. The loss is multiplied by a large number before gradients are taken, so that
// small ones do not become zero, and the gradients are divided by it afterwards.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include <tandem/tensor.hpp>
#include <tandem/variable.hpp>

namespace tandem {

// Keras's defaults. A dynamic scale is doubled after so many steps with finite gradients in a row, and halved (down to 1) after a step in
// which one is not finite.
struct LossScaleOptions {
  double initial = 32768;
  bool dynamic = true;
  int64_t growth_steps = 2000;
};

// In a Function or outside of any:
//
//   Tape tape;
//   const Tensor loss = …;
//   loss_scale.apply(tape.gradients(loss_scale.scale(loss), weights), [&](const std::vector<Tensor>& gradients) { adam.apply(gradients);
//   });
//
// Copies are handles of the same state.
class LossScale {
 public:
  explicit LossScale(const LossScaleOptions& options = {});

  Tensor scale(const Tensor& loss) const;

  struct Unscaled {
    std::vector<Tensor> gradients;  // undefined where they were given so
    Tensor finite;                  // bool[]: whether all elements of all of them are
  };
  Unscaled unscale(const std::vector<Tensor>& gradients) const;

  // Calls `update` with the gradients divided by the scale, then adapts the scale. When a gradient is not finite, no variable that `update`
  // assigns changes. In a Function `update` is always traced and each assigned variable takes its new or its old value, element by
  // element, in the kernel that computes it: there is no branch.
  using Update = std::function<void(const std::vector<Tensor>& gradients)>;
  void apply(const std::vector<Tensor>& gradients, const Update& update) const;

  Tensor value() const { return scale_.value(); }
  std::vector<Variable> variables() const { return {scale_, finite_steps_}; }  // to be saved with the model

 private:
  void adapt(const Tensor& finite) const;

  LossScaleOptions options_;
  Variable scale_, finite_steps_;
};

}  // namespace tandem
