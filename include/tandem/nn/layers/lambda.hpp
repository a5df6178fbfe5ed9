// Lambda: a callable on tensors as a layer, for what has no weights. What has some is a kind of its own (LayerBody).
#pragma once
#include <string>
#include <type_traits>
#include <utility>

#include <tandem/nn/layers/core.hpp>
#include <tandem/structure.hpp>

namespace tandem::nn {

namespace lambda_detail {
template <class R, class... A, class F> FlatFunction flat(F f, R (*)(A...)) {
  return [f = std::move(f)](const std::vector<Tensor>& in) mutable { return apply_flat(f, unflatten<std::tuple<A...>>(in)); };
}
template <class F> FlatFunction flat(F f) {
  return flat(std::move(f), static_cast<std::add_pointer_t<typename CallableTraits<F>::Signature>>(nullptr));
}
}  // namespace lambda_detail

// Makes a function known by a name, so that a Lambda of it can be in files. A second one of the same name replaces the first, for layers
// that are made later.
void register_lambda(const std::string& function, FlatFunction f);
template <class F> void register_lambda(const std::string& function, F f) { register_lambda(function, lambda_detail::flat(std::move(f))); }

class Lambda : public Layer {
 public:
  // Lambda([](Tensor x) { return x * 2; }), with tensors or structures of them as arguments and result. A model with it cannot be saved.
  template <class F>
    requires(!std::is_convertible_v<F, std::string>)
  explicit Lambda(F f, const NamedOptions& options = {}) : Lambda(lambda_detail::flat(std::move(f)), "", options) {}
  // One that register_lambda made known; UserError with near names.
  explicit Lambda(const std::string& function, const NamedOptions& options = {});

 private:
  Lambda(FlatFunction f, const std::string& function, const NamedOptions& options);
};

}  // namespace tandem::nn
