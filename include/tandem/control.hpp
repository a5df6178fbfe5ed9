// Control flow. Outside a Function the callables simply run; while a function is traced, they become sub-graphs of its graph. Either
// way they may use tensors from outside and read and assign variables, and gradients flow through.
#pragma once
#include <optional>
#include <source_location>
#include <tuple>
#include <utility>
#include <vector>

#include <tandem/structure.hpp>
#include <tandem/tensor.hpp>

namespace tandem {

// --- over flat lists ---------------------------------------------------------------------------------------------------------
namespace flat {
using Where = std::source_location;
using Thunk = std::function<std::vector<Tensor>()>;
struct Step {
  std::vector<Tensor> carry, outputs;
};
using ScanBody = std::function<Step(const std::vector<Tensor>& carry, const std::vector<Tensor>& slices)>;
using Condition = std::function<Tensor(const std::vector<Tensor>&)>;

std::vector<Tensor> cond(const Operand& predicate, const Thunk& then, const Thunk& otherwise);
std::vector<Tensor> switch_case(const Operand& index, const std::vector<Thunk>& branches);
std::vector<Tensor> while_loop(const Condition& condition, const FlatFunction& body, const std::vector<Tensor>& state,
                               std::optional<int64_t> max_trips, Where where);
// Without sequences `length` says how many steps.
Step scan(const ScanBody& body, const std::vector<Tensor>& carry, const std::vector<Tensor>& sequences, const std::optional<Dim>& length,
          bool reverse, Where where);
}  // namespace flat

// then() or otherwise(), which give the same types. The predicate is a bool tensor without axes.
template <class Then, class Else> auto cond(const Operand& predicate, Then then, Else otherwise) {
  using R = decltype(then());
  static_assert(std::is_same_v<R, decltype(otherwise())>, "both branches return the same type");
  const auto results =
      flat::cond(predicate, [&] { return apply_flat(then, std::tuple<>()); }, [&] { return apply_flat(otherwise, std::tuple<>()); });
  if constexpr (!std::is_void_v<R>) return unflatten<R>(results);
}

// branches[index](); an index beyond the ends takes the first or the last.
template <class R> R switch_case(const Operand& index, const std::vector<std::function<R()>>& branches) {
  std::vector<flat::Thunk> thunks;
  for (const auto& branch : branches) thunks.push_back([&branch] { return apply_flat(branch, std::tuple<>()); });
  const auto results = flat::switch_case(index, thunks);
  if constexpr (!std::is_void_v<R>) return unflatten<R>(results);
}

// while (condition(state)) state = body(state). A tuple's parts are separate parameters:
//   auto [i, x] = while_loop([](Tensor i, Tensor x) { return i < 10; }, [](Tensor i, Tensor x) { return std::tuple(i + 1, x * 2); },
//   std::tuple(i0, x0));
template <class C, class B, class S>
S while_loop(C condition, B body, const S& state, std::optional<int64_t> max_trips = {},
             std::source_location where = std::source_location::current()) {
  return unflatten<S>(flat::while_loop([&](const std::vector<Tensor>& v) { return std::apply(condition, spread(unflatten<S>(v))); },
                                       [&](const std::vector<Tensor>& v) { return apply_flat(body, spread(unflatten<S>(v))); },
                                       flatten(state), max_trips, where));
}

// carry, y = body(carry, x) for each slice x of the sequences' first axis; gives the last carry and all y, stacked.
//   auto [total, sums] = scan([](Tensor c, Tensor x) { Tensor s = c + x; return std::pair(s, s); }, Tensor::scalar(0.f), xs);
template <class B, class C, class X>
auto scan(B body, const C& carry, const X& sequences, bool reverse = false, std::source_location where = std::source_location::current()) {
  using R = decltype(body(carry, sequences));
  using Carry = std::remove_cvref_t<typename R::first_type>;
  using Output = std::remove_cvref_t<typename R::second_type>;
  static_assert(std::is_same_v<Carry, C>, "the body returns a pair of the next carry, of the carry's type, and an output");
  const flat::Step last = flat::scan(
      [&](const std::vector<Tensor>& c, const std::vector<Tensor>& x) {
        const auto [next, output] = body(unflatten<C>(c), unflatten<X>(x));
        return flat::Step{flatten<Carry>(next), flatten<Output>(output)};
      },
      flatten(carry), flatten(sequences), {}, reverse, where);
  return std::pair<C, Output>(unflatten<C>(last.carry), unflatten<Output>(last.outputs));
}

// state = body(i, state…) for i in [first, last), i an int32 tensor.
template <class B, class S>
S fori_loop(int64_t first, int64_t last, B body, const S& state, std::source_location where = std::source_location::current()) {
  const int64_t length = last > first ? last - first : 0;
  const flat::Step end = flat::scan(
      [&](const std::vector<Tensor>& c, const std::vector<Tensor>& i) {
        return flat::Step{apply_flat(body, std::tuple_cat(std::tuple<Tensor>(i[0]), spread(unflatten<S>(c)))), {}};
      },
      flatten(state), {Tensor::arange(first, first + length)}, {}, false, where);
  return unflatten<S>(end.carry);
}
template <class B, class S>
S fori_loop(const Tensor& first, const Tensor& last, B body, const S& state, std::source_location where = std::source_location::current()) {
  const std::vector<Tensor> flat_state = flatten(std::pair<Tensor, S>(first, state));
  const std::vector<Tensor> end =
      flat::while_loop([&](const std::vector<Tensor>& v) { return v[0] < last; },
                       [&](const std::vector<Tensor>& v) {
                         auto [i, s] = unflatten<std::pair<Tensor, S>>(v);
                         std::vector<Tensor> next{i + 1};
                         for (Tensor& t : apply_flat(body, std::tuple_cat(std::tuple<Tensor>(i), spread(std::move(s)))))
                           next.push_back(std::move(t));
                         return next;
                       },
                       flat_state, {}, where);
  return unflatten<std::pair<Tensor, S>>(end).second;
}

// f(x) for each slice x of the first axis, stacked.
template <class F, class X> auto map(F f, const X& sequences, std::source_location where = std::source_location::current()) {
  using R = std::remove_cvref_t<decltype(std::apply(f, spread(sequences)))>;
  const flat::Step all = flat::scan(
      [&](const std::vector<Tensor>&, const std::vector<Tensor>& x) { return flat::Step{{}, apply_flat(f, spread(unflatten<X>(x)))}; }, {},
      flatten(sequences), {}, false, where);
  return unflatten<R>(all.outputs);
}

}  // namespace tandem
