// Functions that say themselves how gradients go back through them, and functions that are computed again on the way back.
#pragma once
#include <functional>
#include <source_location>
#include <tuple>
#include <vector>

#include <tandem/structure.hpp>
#include <tandem/tensor.hpp>
#include <tandem/variable.hpp>

namespace tandem {

// --- over flat lists ---------------------------------------------------------------------------------------------------------
namespace flat {
// What a function with a gradient of its own gives. `backward` gets the gradients of the outputs and the trainable variables that the
// function read, and gives one gradient for each input, then one for each of those variables; an undefined tensor is no gradient.
struct Differentiable {
  std::vector<Tensor> outputs;
  std::function<std::vector<Tensor>(const std::vector<Tensor>& gradients, const std::vector<Variable>& variables)> backward;
};
using DifferentiableFunction = std::function<Differentiable(const std::vector<Tensor>&)>;

// While a function is traced outside of any tape, f is called twice: its gradient is traced for a tape that may look at the function later.
std::vector<Tensor> custom_gradient(const DifferentiableFunction& f, const std::vector<Tensor>& inputs, std::source_location where);
std::vector<Tensor> remat(const FlatFunction& f, const std::vector<Tensor>& inputs, std::source_location where);
}  // namespace flat

// A function with a gradient of its own: f(inputs…) gives a pair of the outputs and of backward(gradients of the outputs…), which gives one
// gradient for each input and may use what f has computed.
//   auto f = custom_gradient([](Tensor x) { return std::pair(x, [](Tensor g) { return clip(g, -1, 1); }); });
// Where f reads trainable variables, backward takes them as its last parameter, a std::vector<Variable>, and gives a gradient for each
// behind those of the inputs.
template <class F> auto custom_gradient(F f, std::source_location where = std::source_location::current()) {
  using Arguments = typename CallableTraits<F>::Arguments;
  using Outputs = std::remove_cvref_t<typename CallableTraits<F>::Result::first_type>;
  using Backward = std::remove_cvref_t<typename CallableTraits<F>::Result::second_type>;
  return [f, where]<class... A>(const A&... arguments) mutable {
    const auto differentiable = [&](const std::vector<Tensor>& in) {
      auto [outputs, backward] = std::apply(f, unflatten<Arguments>(in));
      const auto back = [backward](const std::vector<Tensor>& gradients, const std::vector<Variable>& variables) mutable {
        auto flowing = spread(unflatten<Outputs>(gradients));
        using Parameters = typename CallableTraits<Backward>::Arguments;
        if constexpr (std::tuple_size_v<Parameters> > std::tuple_size_v<decltype(flowing)>)
          return apply_flat(backward, std::tuple_cat(std::move(flowing), std::tuple(variables)));
        else
          return apply_flat(backward, std::move(flowing));
      };
      return flat::Differentiable{flatten<Outputs>(outputs), back};
    };
    return unflatten<Outputs>(flat::custom_gradient(differentiable, flatten(Arguments(arguments...)), where));
  };
}

// f, but what it computes on the way is not kept for its gradient: that computes f again, from its inputs. Less memory for more time.
//   auto block = remat([&](Tensor x) { return dense2(relu(dense1(x))); });
template <class F> auto remat(F f, std::source_location where = std::source_location::current()) {
  using Arguments = typename CallableTraits<F>::Arguments;
  using R = std::remove_cvref_t<typename CallableTraits<F>::Result>;
  return [f, where]<class... A>(const A&... arguments) mutable {
    return unflatten<R>(flat::remat([&](const std::vector<Tensor>& in) { return apply_flat(f, unflatten<Arguments>(in)); },
                                    flatten(Arguments(arguments...)), where));
  };
}

}  // namespace tandem
