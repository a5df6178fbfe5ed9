// Structures of tensors: how the arguments and results of user's functions (a Tensor, tuples, pairs, arrays, one vector of them, or
// nothing) become flat lists and come back.
#pragma once
#include <array>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tandem/tensor.hpp>

namespace tandem {

// kFixed: how many tensors it always has. kOpen: whether it has a vector, which takes all the others; there may be one at most.
template <class T> struct Structure;

template <> struct Structure<Tensor> {
  static constexpr size_t kFixed = 1;
  static constexpr bool kOpen = false;
  static void flatten(const Tensor& t, std::vector<Tensor>& out) { out.push_back(t); }
  static Tensor unflatten(std::span<const Tensor>& in, size_t) {
    Tensor t = in.front();
    in = in.subspan(1);
    return t;
  }
};

template <> struct Structure<std::vector<Tensor>> {
  static constexpr size_t kFixed = 0;
  static constexpr bool kOpen = true;
  static void flatten(const std::vector<Tensor>& t, std::vector<Tensor>& out) { out.insert(out.end(), t.begin(), t.end()); }
  static std::vector<Tensor> unflatten(std::span<const Tensor>& in, size_t open) {
    std::vector<Tensor> t(in.begin(), in.begin() + static_cast<ptrdiff_t>(open));
    in = in.subspan(open);
    return t;
  }
};

template <class... T> struct Structure<std::tuple<T...>> {
  static constexpr size_t kFixed = (size_t{0} + ... + Structure<T>::kFixed);
  static constexpr bool kOpen = (false || ... || Structure<T>::kOpen);
  static_assert((0 + ... + int{Structure<T>::kOpen}) <= 1, "only one std::vector<Tensor>, or its length could not be told");
  static void flatten(const std::tuple<T...>& t, std::vector<Tensor>& out) {
    std::apply([&](const T&... part) { (Structure<T>::flatten(part, out), ...); }, t);
  }
  static std::tuple<T...> unflatten([[maybe_unused]] std::span<const Tensor>& in, [[maybe_unused]] size_t open) {
    return std::tuple<T...>{Structure<T>::unflatten(in, open)...};  // braces: from left to right
  }
};

template <class A, class B> struct Structure<std::pair<A, B>> {
  using Tuple = Structure<std::tuple<A, B>>;
  static constexpr size_t kFixed = Tuple::kFixed;
  static constexpr bool kOpen = Tuple::kOpen;
  static void flatten(const std::pair<A, B>& t, std::vector<Tensor>& out) {
    Structure<A>::flatten(t.first, out);
    Structure<B>::flatten(t.second, out);
  }
  static std::pair<A, B> unflatten(std::span<const Tensor>& in, size_t open) {
    auto [a, b] = Tuple::unflatten(in, open);
    return {std::move(a), std::move(b)};
  }
};

template <size_t N> struct Structure<std::array<Tensor, N>> {
  static constexpr size_t kFixed = N;
  static constexpr bool kOpen = false;
  static void flatten(const std::array<Tensor, N>& t, std::vector<Tensor>& out) { out.insert(out.end(), t.begin(), t.end()); }
  static std::array<Tensor, N> unflatten(std::span<const Tensor>& in, size_t) {
    std::array<Tensor, N> t;
    for (size_t i = 0; i < N; ++i) t[i] = in[i];
    in = in.subspan(N);
    return t;
  }
};

template <class T> std::vector<Tensor> flatten(const T& structure) {
  std::vector<Tensor> flat;
  Structure<T>::flatten(structure, flat);
  return flat;
}

template <class T> T unflatten(std::span<const Tensor> flat) {
  if (flat.size() < Structure<T>::kFixed || (!Structure<T>::kOpen && flat.size() > Structure<T>::kFixed))
    throw UserError("a structure of " + std::string(Structure<T>::kOpen ? "at least " : "") + std::to_string(Structure<T>::kFixed) +
                    " tensors is made from " + std::to_string(flat.size()));
  return Structure<T>::unflatten(flat, flat.size() - Structure<T>::kFixed);
}

// The parameters of a callable as one tuple, and what it returns.
template <class F> struct CallableTraits : CallableTraits<decltype(&F::operator())> {};
template <class R, class... A> struct CallableTraits<R (*)(A...)> {
  using Result = R;
  using Arguments = std::tuple<std::remove_cvref_t<A>...>;
  using Signature = R(std::remove_cvref_t<A>...);
};
template <class C, class R, class... A> struct CallableTraits<R (C::*)(A...)> : CallableTraits<R (*)(A...)> {};
template <class C, class R, class... A> struct CallableTraits<R (C::*)(A...) const> : CallableTraits<R (*)(A...)> {};

using FlatFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// Calls f(arguments…) and flattens what it returns; void gives nothing.
template <class F, class Arguments> std::vector<Tensor> apply_flat(F& f, Arguments&& arguments) {
  using R = decltype(std::apply(f, std::forward<Arguments>(arguments)));
  if constexpr (std::is_void_v<R>) {
    std::apply(f, std::forward<Arguments>(arguments));
    return {};
  } else {
    return flatten<std::remove_cvref_t<R>>(std::apply(f, std::forward<Arguments>(arguments)));
  }
}

// A state as callables see it: a tuple's or pair's parts are arguments of their own, everything else is one argument.
template <class T> decltype(auto) spread(T&& state) {
  if constexpr (requires { std::tuple_size<std::remove_cvref_t<T>>::value; })
    return std::forward<T>(state);
  else
    return std::tuple<std::remove_cvref_t<T>>(std::forward<T>(state));
}

}  // namespace tandem
