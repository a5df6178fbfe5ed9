// Order: sorting, the k largest, unique values, searching, counting. Host routines: loops cannot say where an element goes.
#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <type_traits>

#include "ops/helpers.hpp"
#include "ops/host.hpp"
#include "ops/table.hpp"

namespace tandem::ops {
using namespace ir;
namespace {

using Types = std::vector<TensorType>;

// --- keys: unsigned integers that compare as the elements do, NaN after all numbers and both zeros equal ---
template <size_t kBytes>
using UnsignedOf = std::conditional_t<kBytes == 1, uint8_t,
                                      std::conditional_t<kBytes == 2, uint16_t, std::conditional_t<kBytes == 4, uint32_t, uint64_t>>>;
template <class T> using KeyOf = UnsignedOf<sizeof(T)>;

template <class T> KeyOf<T> key_of(T v) {
  using U = KeyOf<T>;
  constexpr U kSign = static_cast<U>(U{1} << (sizeof(U) * 8 - 1));
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    return static_cast<U>(static_cast<U>(v) ^ kSign);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<U>(v);
  } else {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    auto wide = static_cast<Wide>(v);
    if (wide != wide) return static_cast<U>(~U{0});
    if (wide == 0) return kSign;
    U bits = std::bit_cast<U>(v);
    return static_cast<U>(bits & kSign ? ~bits : bits | kSign);
  }
}

template <class U> struct Entry {
  U key;
  uint32_t at;
  friend bool operator<(const Entry& a, const Entry& b) { return a.key != b.key ? a.key < b.key : a.at < b.at; }
};

// Byte by byte from the lowest (LSD radix sort): stable, and linear in the number of entries.
template <class U> void radix_sort(std::vector<Entry<U>>& entries, std::vector<Entry<U>>& spare) {
  std::array<std::array<uint32_t, 256>, sizeof(U)> counts{};
  for (const Entry<U>& e : entries)
    for (size_t b = 0; b < sizeof(U); ++b) ++counts[b][(e.key >> (8 * b)) & 255];
  spare.resize(entries.size());
  for (size_t b = 0; b < sizeof(U); ++b) {
    std::array<uint32_t, 256>& count = counts[b];
    if (std::ranges::find(count, entries.size()) != count.end()) continue;  // all have the same byte here
    std::exclusive_scan(count.begin(), count.end(), count.begin(), uint32_t{0});
    for (const Entry<U>& e : entries) spare[count[(e.key >> (8 * b)) & 255]++] = e;
    std::swap(entries, spare);
  }
}

constexpr size_t kRadixFrom = 1024;  // below, the 256 counters of each byte cost more than they save

// Positions along one line in the order of its elements; equal elements keep their order.
template <class T> class LineSorter {
 public:
  using U = KeyOf<T>;
  std::vector<Entry<U>>& load(const T* x, int64_t n, int64_t stride, bool descending) {
    entries_.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      U key = key_of(x[i * stride]);
      entries_[static_cast<size_t>(i)] = {static_cast<U>(descending ? ~key : key), static_cast<uint32_t>(i)};
    }
    return entries_;
  }
  std::vector<Entry<U>>& sort(const T* x, int64_t n, int64_t stride, bool descending) {
    load(x, n, stride, descending);
    if (entries_.size() < kRadixFrom)
      std::sort(entries_.begin(), entries_.end());
    else
      radix_sort(entries_, spare_);
    return entries_;
  }
  std::vector<Entry<U>>& largest(const T* x, int64_t n, int64_t k) {
    if (k == n) return sort(x, n, 1, true);
    load(x, n, 1, true);
    auto end = entries_.begin() + k;
    std::nth_element(entries_.begin(), end, entries_.end());
    std::sort(entries_.begin(), end);
    return entries_;
  }

 private:
  std::vector<Entry<U>> entries_, spare_;
};

void check_positions(const HostCall& c, int64_t length) {
  if (length > INT32_MAX) user_error(c.op.name, ": positions are int32, and ", length, " elements are more than 2147483647");
}

template <bool kPositions> void evaluate_sort(const HostCall& c) {
  Lines lines(c.in[0].shape, host_axis(c, c.in[0].shape));
  check_positions(c, lines.length);
  bool descending = c.attrs.get<bool>("descending");
  dispatch(c.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* x = c.in[0].as<T>();
    for_lines(c, lines.count(), lines.length, [&](int64_t first, int64_t last) {
      LineSorter<T> sorter;
      for (int64_t line = first; line < last; ++line) {
        int64_t to = lines.begin(line);
        const T* from = x + to;
        for (const auto& e : sorter.sort(from, lines.length, lines.inner, descending)) {
          if constexpr (kPositions)
            c.out[0].as<int32_t>()[to] = static_cast<int32_t>(e.at);
          else
            c.out[0].as<T>()[to] = from[e.at * lines.inner];
          to += lines.inner;
        }
      }
    });
  });
}

void evaluate_top_k(const HostCall& c) {
  int64_t n = c.in[0].shape.back(), k = c.out[0].shape.back();
  check_positions(c, n);
  if (k > n) user_error("top_k: k is ", k, ", the last axis of ", c.in[0].shape, " has only ", n, " elements");
  dispatch(c.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    for_lines(c, element_count(c.in[0].shape) / std::max<int64_t>(n, 1), n, [&](int64_t first, int64_t last) {
      LineSorter<T> sorter;
      for (int64_t line = first; line < last; ++line) {
        const T* x = c.in[0].as<T>() + line * n;
        auto& entries = sorter.largest(x, n, k);
        for (int64_t i = 0; i < k; ++i) {
          auto at = entries[static_cast<size_t>(i)].at;
          c.out[0].as<T>()[line * k + i] = x[at];
          c.out[1].as<int32_t>()[line * k + i] = static_cast<int32_t>(at);
        }
      }
    });
  });
}

void evaluate_unique(const HostCall& c) {
  int64_t n = element_count(c.in[0].shape), number = 0;
  check_positions(c, n);
  dispatch(c.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* x = c.in[0].as<T>();
    T* values = c.out[0].as<T>();
    int32_t *inverse = c.out[1].as<int32_t>(), *counts = c.out[2].as<int32_t>();
    LineSorter<T> sorter;
    const auto& entries = sorter.sort(x, n, 1, false);
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i == 0 || entries[i].key != entries[i - 1].key) {
        values[number] = x[entries[i].at];
        counts[number++] = 0;
      }
      ++counts[number - 1];
      inverse[entries[i].at] = static_cast<int32_t>(number - 1);
    }
    std::fill(values + number, values + n, T{});
    std::fill(counts + number, counts + n, 0);
  });
  *c.out[3].as<int32_t>() = static_cast<int32_t>(number);
}

void evaluate_searchsorted(const HostCall& c) {
  const Shape &sorted = c.in[0].shape, &values = c.in[1].shape;
  bool one_row = sorted.rank() == 1, right = c.attrs.get<bool>("right");
  int64_t n = sorted.back(), m = one_row ? element_count(values) : values.back();
  int64_t rows = one_row ? 1 : element_count(values) / std::max<int64_t>(m, 1);
  check_positions(c, n);
  dispatch(c.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const T *s = c.in[0].as<T>(), *v = c.in[1].as<T>();
    int32_t* out = c.out[0].as<int32_t>();
    for_lines(c, rows * m, 16, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const T* row = s + i / m * n;
        auto key = key_of(v[i]);
        auto before = [&](const T& x) { return right ? key_of(x) <= key : key_of(x) < key; };
        out[i] = static_cast<int32_t>(std::partition_point(row, row + n, before) - row);
      }
    });
  });
}

// Additions in the order of the elements; float16 in float32, rounded once at the end.
template <class X, class Sum, class Weight> void count_row(const X* x, int64_t n, std::span<Sum> sums, Weight weight) {
  std::fill(sums.begin(), sums.end(), Sum{});
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_signed_v<X>)
      if (x[i] < 0) user_error("bincount: element ", i, " is ", int64_t{x[i]}, ", elements must not be negative");
    auto at = static_cast<uint64_t>(x[i]);
    if (at < sums.size()) sums[at] = static_cast<Sum>(sums[at] + weight(i));
  }
}

template <class X, class W> void count_weights(const HostCall& c, const X* x, int64_t rows, int64_t n, int64_t length) {
  using Sum = std::conditional_t<kIsHalf<W>, float, W>;
  for_lines(c, rows, n + length, [&](int64_t first, int64_t last) {
    std::vector<float> wide(kIsHalf<W> ? static_cast<size_t>(length) : 0);
    for (int64_t row = first; row < last; ++row) {
      const W* w = c.in[1].as<W>() + row * n;
      W* out = c.out[0].as<W>() + row * length;
      auto size = static_cast<size_t>(length);
      if constexpr (kIsHalf<W>) {
        count_row(x + row * n, n, std::span(wide), [&](int64_t i) { return static_cast<float>(w[i]); });
        std::transform(wide.begin(), wide.end(), out, [](float v) { return W(v); });
      } else if constexpr (std::is_signed_v<Sum> && std::is_integral_v<Sum>) {
        using U = std::make_unsigned_t<Sum>;  // wraps
        count_row(x + row * n, n, std::span(reinterpret_cast<U*>(out), size), [&](int64_t i) { return static_cast<U>(w[i]); });
      } else {
        count_row(x + row * n, n, std::span(out, size), [&](int64_t i) { return w[i]; });
      }
    }
  });
}

void evaluate_bincount(const HostCall& c) {
  int64_t n = c.in[0].shape.back(), length = c.out[0].shape.back();
  int64_t rows = c.in[0].shape.rank() == 1 ? 1 : c.in[0].shape[0];
  dispatch(c.in[0].dtype, [&](auto zero) {
    using X = decltype(zero);
    if constexpr (std::is_integral_v<X> && !std::is_same_v<X, bool>) {
      const X* x = c.in[0].as<X>();
      if (c.in.size() == 2) {
        dispatch(c.in[1].dtype, [&](auto one) { count_weights<X, decltype(one)>(c, x, rows, n, length); });
        return;
      }
      auto* out = c.out[0].as<uint32_t>();
      for_lines(c, rows, n + length, [&](int64_t first, int64_t last) {
        for (int64_t row = first; row < last; ++row)
          count_row(x + row * n, n, std::span(out + row * length, static_cast<size_t>(length)), [](int64_t) { return 1u; });
      });
    }
  });
}

void evaluate_nonzero(const HostCall& c) {
  const Shape& shape = c.in[0].shape;
  int64_t n = element_count(shape);
  check_positions(c, n);
  int32_t* out = c.out[0].as<int32_t>();
  int64_t number = 0;
  dispatch(c.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* x = c.in[0].as<T>();
    const KeyOf<T> none = key_of(T{});
    for (int64_t i = 0; i < n; ++i) {
      if (key_of(x[i]) == none) continue;
      int64_t rest = i;
      for (int k = shape.rank(); k-- > 0; rest /= shape[static_cast<size_t>(k)])
        out[number * shape.rank() + k] = static_cast<int32_t>(rest % shape[static_cast<size_t>(k)]);
      ++number;
    }
  });
  std::fill(out + number * shape.rank(), out + n * shape.rank(), 0);
  *c.out[1].as<int32_t>() = static_cast<int32_t>(number);
}

// --- types ---
Types infer_sort(const OpCall& call) {
  require_int32(call, call.in[0].dims[static_cast<size_t>(call.axis("axis", call.in[0].rank()))]);
  return {call.in[0]};
}
Types infer_argsort(const OpCall& call) {
  Types types = infer_sort(call);
  types[0].dtype = DType::I32;
  return types;
}

Types infer_top_k(const OpCall& call) {
  const TensorType& x = call.in[0];
  int64_t k = call.attrs.get<int64_t>("k");
  if (x.rank() == 0) call.fail("a tensor with at least one axis is needed, got ", x);
  const Dim& n = x.dims.back();
  if (k < 0 || (n.is_const() && k > n.value())) call.fail("k is ", k, ", the last axis of ", str(x.dims), " has ", n, " elements");
  require_int32(call, n);
  Dims dims = x.dims;
  dims.back() = k;
  return {{x.dtype, dims}, {DType::I32, dims}};
}

Types infer_unique(const OpCall& call) {
  Dim n = product(call.in[0].dims);
  require_int32(call, n);
  return {{call.in[0].dtype, {n}}, {DType::I32, call.in[0].dims}, {DType::I32, {n}}, {DType::I32, {}}};
}

Types infer_searchsorted(const OpCall& call) {
  const Dims &sorted = call.in[0].dims, &values = call.in[1].dims;
  if (sorted.empty()) call.fail("the sorted operand needs at least one axis, got []");
  require_int32(call, sorted.back());
  if (sorted.size() > 1 && (values.size() != sorted.size() || !std::equal(sorted.begin(), sorted.end() - 1, values.begin())))
    call.fail("all axes but the last must be equal, sorted ", str(sorted), ", values ", str(values));
  return {{DType::I32, values}};
}

Types infer_bincount(const OpCall& call) {
  const TensorType& x = call.in[0];
  int64_t length = call.attrs.get<int64_t>("length");
  if (x.rank() != 1 && x.rank() != 2) call.fail("one or two axes are needed, got ", str(x.dims));
  if (length < 0) call.fail("length is ", length, ", it must not be negative");
  if (call.in.size() == 2 && !(call.in[1].dims == x.dims))
    call.fail("weights must have the shape of the elements, got ", str(call.in[1].dims), " and ", str(x.dims));
  Dims dims = x.dims;
  dims.back() = length;
  return {{call.in.size() == 2 ? call.in[1].dtype : DType::I32, dims}};
}

Types infer_in_top_k(const OpCall& call) {
  const Dims &targets = call.in[0].dims, &predictions = call.in[1].dims;
  if (predictions.size() != targets.size() + 1 || !std::equal(targets.begin(), targets.end(), predictions.begin()))
    call.fail("predictions must have the shape of the targets and one axis more, targets ", str(targets), ", predictions ",
              str(predictions));
  return {{DType::Bool, targets}};
}

Types infer_nonzero(const OpCall& call) {
  const Dims& dims = call.in[0].dims;
  require_int32(call, product(dims));
  return {{DType::I32, {product(dims), static_cast<int64_t>(dims.size())}}, {DType::I32, {}}};
}

// --- compositions and gradients ---
// Ties at the border all count as in, as in TensorFlow; a target that is no class or whose prediction is not finite is out.
std::vector<Expr> decompose_in_top_k(Builder& b, const OpCall& call, std::span<const Expr> in) {
  const Expr &targets = in[0], &predictions = in[1];
  Ints last{predictions.rank() - 1};
  Dims one = targets.dims();
  one.push_back(1);
  Expr chosen = predictions.op("take_along_axis_clipped", {targets.reshape(one)}, {{"axis", -1}});
  Expr larger = (predictions > chosen).op("count_nonzero", {{"axis", last}});
  Expr inside = larger < static_cast<double>(call.attrs.get<int64_t>("k"));
  Expr is_class = (targets >= 0).op("logical_and", {targets < count_of(b, predictions.dims().back(), targets.dtype())});
  Expr finite = chosen.op("is_finite").reshape(targets.dims());
  return {inside.op("logical_and", {is_class}).op("logical_and", {finite})};
}

Expr put_back(const GradCall& g, const Expr& positions, int axis) {
  return g.in[0].like(0).op("put_along_axis", {positions, g.grad()}, {{"axis", axis}, {"mode", "add"}});
}
std::vector<Expr> vjp_sort(const GradCall& g) { return {put_back(g, g.in[0].op("argsort", g.node.attrs), grad_axis(g))}; }
std::vector<Expr> vjp_top_k(const GradCall& g) { return {put_back(g, g.out[1], g.in[0].rank() - 1)}; }

std::vector<Expr> vjp_bincount(const GradCall& g) {
  if (g.in.size() < 2) return {Expr()};
  const Expr& x = g.in[0];
  Dim length = g.grad().dims().back();
  if (length.is(0)) return {Expr(), g.in[1].like(0)};
  Expr at = x.cast(DType::I64);
  Expr taken = g.grad().op("take_along_axis_clipped", {at}, {{"axis", -1}});
  return {Expr(), where(at < static_cast<double>(length.value()), taken, 0)};
}

}  // namespace

Rows order_rows() {
  return {
      {.name = "sort",
       .sig = "(x: any; axis: int = -1, descending: bool = false) -> same",
       .doc = "The elements along an axis in ascending or descending order. NaN counts as larger than every number.",
       .infer = infer_sort,
       .evaluate = evaluate_sort<false>,
       .vjp = vjp_sort,
       .samples = {"([2,5] distinct)", "([5,2] distinct; axis=0, descending=true)", "([0,3]; axis=0)", "([3,0])", "([24] special) !grad",
                   "([2000]:float32 distinct)", "([2,3,2,3,2]:float32 distinct; axis=-2)", "([70])  !grad"}},
      {.name = "argsort",
       .sig = "(x: any; axis: int = -1, descending: bool = false) -> int32",
       .doc = "The positions that sort an axis; equal elements keep their order. NaN counts as larger than every number.",
       .traits = kZeroGradient,
       .infer = infer_argsort,
       .evaluate = evaluate_sort<true>,
       .samples = {"([2,5])", "([5,2]; axis=0, descending=true)", "([0,3]; axis=0)", "([3,0])", "([24] special)", "([2000])",
                   "([2,3,2,3,2]:float32; axis=-2)"}},
      {.name = "top_k",
       .sig = "(x: any; k: int, sorted: bool = true) -> same, int32",
       .doc = "The k largest elements of the last axis, largest first, and their positions; of equal elements the first ones.",
       .infer = infer_top_k,
       .evaluate = evaluate_top_k,
       .vjp = vjp_top_k,
       .samples = {"([2,5] distinct; k=3)", "([7] distinct; k=7)", "([0,3]; k=2)", "([2,3]; k=0)", "([24] special; k=9) !grad",
                   "([300]:float32 distinct; k=5, sorted=false)", "([2,2,2,2,6] distinct; k=1)"}},
      {.name = "unique",
       .sig = "(x: any) -> same, int32, int32, int32",
       .doc =
           "The different values in ascending order, the place of each element among them, how often each occurs, and how many there are. "
           "Values and counts are as long as x has elements; zeros fill the rest.",
       .traits = kNotDifferentiable,
       .infer = infer_unique,
       .evaluate = evaluate_unique,
       .samples = {"([2,3])", "([100])", "([0,3])", "([])", "([24] special)"}},
      {.name = "searchsorted",
       .sig = "(sorted: any, values: any; right: bool = false) -> int32",
       .doc = "Where each value would have to go into the sorted last axis to keep it sorted: before equal elements, or after them when "
              "right.",
       .traits = kZeroGradient,
       .infer = infer_searchsorted,
       .evaluate = evaluate_searchsorted,
       .samples = {"({0,1,1,4,7}, [2,3] in 0..8)", "({0,1,1,4,7}, [100] in 0..8; right=true)", "({{0,2,4},{1,1,3}}, {{1,5},{1,0}})",
                   "([0], [3])", "({1,2}, [0,3])", "({1,2,3}, [])", "({-inf,0,1,inf,nan}, [24] special)",
                   "({-inf,0,1,inf,nan}, [24] special; right=true)"}},
      {.name = "bincount",
       .sig = "(x: int, weights: own?; length: int) -> custom",
       .doc = "How often each of the numbers 0 … length-1 occurs along the last axis, or the sum of the weights of its occurrences. "
              "Larger numbers are not counted.",
       .infer = infer_bincount,
       .evaluate = evaluate_bincount,
       .vjp = vjp_bincount,
       .samples = {"([7] in 0..4; length=5)", "([2,9] in 0..7; length=4)", "([7]:int32 in 0..4, [7]; length=5)", "([0]; length=3)",
                   "([2,0]; length=3)", "([500]:int32 in 0..99; length=100)"}},
      {.name = "in_top_k",
       .sig = "(targets: index, predictions: float; k: int) -> bool",
       .doc = "Whether the prediction for the target class is among the k largest along the last axis.",
       .traits = kZeroGradient,
       .infer = infer_in_top_k,
       .decompose = decompose_in_top_k,
       .samples = {"({1,0,3}, [3,4] distinct; k=2)", "([70] in 0..9, [70,10]; k=3)", "([0], [0,3]; k=1)", "({-1,4}, [2,4]; k=4)"}},
      {.name = "nonzero",
       .sig = "(x: any) -> int32, int32",
       .doc = "The positions of the elements that are not zero, one row each, in row-major order, and how many there are. "
              "There are as many rows as elements; zeros fill the rest.",
       .traits = kZeroGradient,
       .infer = infer_nonzero,
       .evaluate = evaluate_nonzero,
       .samples = {"([2,3] in -1..1)", "([100]:bool)", "([0,3])", "([])", "([2,3,2]:int32 in 0..1)", "([24] special)"}},
  };
}

}  // namespace tandem::ops
