// Function: a callable over tensors that is traced once for each signature and runs as one compiled graph.
#pragma once
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include <tandem/precision.hpp>
#include <tandem/structure.hpp>
#include <tandem/tensor.hpp>
#include <tandem/variable.hpp>

namespace tandem {

// The type of an argument; dims may be symbols, and then one trace serves every extent: Spec{DType::F32, {Dim::symbol("b"), 784}}.
struct Spec {
  DType dtype = DType::F32;
  Dims dims;
  std::string str() const;  // "float32[b,784]"
};

struct FunctionOptions {
  std::string name = "function";
  std::vector<Spec> specs = {};  // one for each argument tensor; empty: as the arguments of each call
  // Of the compiled graph, with the gradients and updates inside it. A gradient that a tape outside asks for is computed in float32.
  Precision precision = Precision::Float32;
};

namespace frontend {
class FunctionImpl;
}

struct PlacementRow;  // <tandem/device.hpp>

// The function over flat lists, which Function<R(A…)> wraps; other front-ends use it directly.
// Tracing runs the callable once, with tensors that have no numbers. Tensors from outside become inputs that are bound at each call,
// variables become state that comes in and, when assigned, goes out. Called while another function is traced, it becomes part of that, and
// then the other's precision holds: asking for another mixed one is a UserError.
// An exception while tracing changes nothing; one while running may leave variables that are assigned with a part of their new values.
class FlatCallable {
 public:
  FlatCallable() = default;
  FlatCallable(FlatFunction body, FunctionOptions options);
  using Where = std::source_location;
  std::vector<Tensor> operator()(const std::vector<Tensor>& arguments, Where where = Where::current()) const;
  // Runs in a lean way: `results` is replaced and its memory reused.
  void call(std::span<const Tensor* const> arguments, std::vector<Tensor>& results, const Where& where) const;

  // Traces and compiles a function with specs now, so that what is wrong with it is known before its first call.
  void prepare(Where where = Where::current()) const;

  size_t trace_count() const;                                                // how often the callable was traced
  std::vector<Spec> result_specs(const std::vector<Spec>& arguments) const;  // types of the results, by tracing only; nothing is compiled
  std::string graph_str() const;                                             // the last traced graph, as text
  // What its largest plan does to stay within a device's memory, one line a device; empty when all fit as they are.
  std::string budget_summary() const;
  // How long a call is expected to take when calls follow each other, with copies beside computing. 0 before the first one.
  double predicted_seconds() const;
  std::vector<Variable> variables() const;  // those that the last trace reads or writes

 private:
  friend class frontend::FunctionImpl;
  friend std::vector<PlacementRow> explain(const FlatCallable& function);
  std::shared_ptr<frontend::FunctionImpl> impl_;
};

template <class Signature> class Function;

// Function step([&](Tensor x, Tensor y) { … return loss; });   Tensor loss = step(x, y);
// Arguments and results are Tensors or structures of them (see structure.hpp); a callable may return nothing.
template <class R, class... A> class Function<R(A...)> {
 public:
  Function() = default;
  template <class F> explicit Function(F f, FunctionOptions options = {}) : flat_(flat(std::move(f)), std::move(options)) {}
  template <class F>
  Function(F f, std::vector<Spec> specs, std::string name = "function")
      : flat_(flat(std::move(f)), FunctionOptions{std::move(name), std::move(specs)}) {}

  R operator()(const A&... arguments, std::source_location where = std::source_location::current()) const {
    std::vector<Tensor> results;
    if constexpr ((true && ... && std::is_same_v<A, Tensor>)) {
      const Tensor* const list[] = {&arguments..., nullptr};
      flat_.call({list, sizeof...(A)}, results, where);
    } else {
      results = flat_(flatten(std::tuple<A...>(arguments...)), where);
    }
    if constexpr (!std::is_void_v<R>) return unflatten<R>(results);
  }

  size_t trace_count() const { return flat_.trace_count(); }
  std::vector<Spec> result_specs(const std::vector<Spec>& arguments) const { return flat_.result_specs(arguments); }
  std::string graph_str() const { return flat_.graph_str(); }
  const FlatCallable& flat() const { return flat_; }

 private:
  template <class F> static FlatFunction flat(F f) {
    return [f = std::move(f)](const std::vector<Tensor>& in) mutable { return apply_flat(f, unflatten<std::tuple<A...>>(in)); };
  }
  FlatCallable flat_;
};

template <class F> Function(F) -> Function<typename CallableTraits<F>::Signature>;
template <class F> Function(F, FunctionOptions) -> Function<typename CallableTraits<F>::Signature>;
template <class F> Function(F, std::vector<Spec>, std::string = "") -> Function<typename CallableTraits<F>::Signature>;

}  // namespace tandem
