#include <tandem/loss_scale.hpp>

#include <cmath>
#include <map>

#include <tandem/ops.hpp>

#include "base/text.hpp"
#include "frontend/tensor_impl.hpp"
#include "frontend/tracer.hpp"

namespace tandem {
namespace {

using namespace frontend;

constexpr float kLargest = 0x1p127f, kSmallest = 1;

LossScaleOptions checked(const LossScaleOptions& o) {
  if (!(o.initial >= kSmallest && o.initial <= kLargest))
    user_error("loss scale: the initial scale must lie between 1 and 2^127, got ", o.initial);
  if (o.growth_steps < 1) user_error("loss scale: growth_steps must be at least 1, got ", o.growth_steps);
  return o;
}

// Runs `update`; what it assigns in this trace becomes a choice between the new and the old value.
void update_if(const Tensor& condition, const std::function<void()>& update) {
  Tracer* tracer = thread_state.tracer;
  if (!tracer) {
    if (condition.item<bool>()) update();
    return;
  }
  std::map<const void*, Tensor> before;  // only looked up
  for (const Tracer::External& e : tracer->externals())
    if (e.variable.defined()) before.emplace(e.key(), e.current);
  update();
  const std::vector<Tracer::External> after = tracer->externals();  // a copy: assigning adds to it
  for (const Tracer::External& e : after) {
    if (!e.variable.defined() || !e.written) continue;
    const auto found = before.find(e.key());
    const Tensor old = found != before.end() ? found->second : tracer->wrap(e.input);
    if (e.current.impl() != old.impl()) tracer->assign(e.variable, where(condition, e.current, old));
  }
}

}  // namespace

LossScale::LossScale(const LossScaleOptions& options)
    : options_(checked(options)),
      scale_(Tensor::full({}, static_cast<float>(options.initial)), {.name = "loss_scale/scale", .trainable = false}),
      finite_steps_(Tensor::zeros({}, DType::I32), {.name = "loss_scale/finite_steps", .trainable = false}) {}

Tensor LossScale::scale(const Tensor& loss) const { return loss * scale_.value().cast(loss.dtype()); }

LossScale::Unscaled LossScale::unscale(const std::vector<Tensor>& gradients) const {
  Unscaled u;
  const Tensor inverse = 1 / scale_.value();
  for (const Tensor& g : gradients) {
    u.gradients.push_back(g.defined() ? g * inverse.cast(g.dtype()) : g);
    if (!g.defined()) continue;
    const Tensor finite = all(is_finite(u.gradients.back()));  // the scale is at least 1: as finite as it was
    u.finite = u.finite.defined() ? logical_and(u.finite, finite) : finite;
  }
  if (!u.finite.defined()) user_error("loss scale: none of the ", gradients.size(), " gradients is defined");
  return u;
}

void LossScale::apply(const std::vector<Tensor>& gradients, const Update& update) const {
  Unscaled u = unscale(gradients);
  // Nothing of the update can begin before all gradients are known to be finite. Said at its start, not only at its end, so that it becomes
  // one pass over gradients and state, instead of new state beside the old that is chosen from later.
  if (u.finite.is_traced())
    for (Tensor& g : u.gradients)
      if (g.defined()) g = where(u.finite, g, 0);
  update_if(u.finite, [&] { update(u.gradients); });
  if (options_.dynamic) adapt(u.finite);
}

void LossScale::adapt(const Tensor& finite) const {
  const Tensor steps = where(finite, finite_steps_.value() + 1, 0);
  const Tensor full = steps >= options_.growth_steps;
  const Tensor scale = scale_.value();
  const Tensor grown = where(full, minimum(scale * 2, kLargest), scale);
  scale_.assign(where(finite, grown, maximum(scale * 0.5f, kSmallest)));
  finite_steps_.assign(where(full, 0, steps));
}

}  // namespace tandem
