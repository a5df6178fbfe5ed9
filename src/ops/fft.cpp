// Fourier transforms. Complex numbers are pairs of tensors, real and imaginary parts. The transforms run on the host in float64 and are
// rounded once; gradients are the adjoint transforms.
#include "ops/fourier.hpp"
#include "ops/helpers.hpp"
#include "ops/table.hpp"

namespace tandem::ops {
using namespace ir;

namespace {

using Types = std::vector<TensorType>;

// --- inference -------------------------------------------------------------------------------------------------------------

void check_type(const OpCall& call, const TensorType& x) {
  if (x.dtype != DType::F32 && x.dtype != DType::F64) call.fail("takes float32 and float64, got ", x, "\n  hint: cast to float32 first");
}
void check_pair(const OpCall& call) {
  check_type(call, call.in[0]);
  if (!(call.in[0] == call.in[1])) call.fail("the real part is ", call.in[0], ", the imaginary part is ", call.in[1]);
}
void check_points(const OpCall& call, const Dim& n) {
  if (n.is_const() && n.value() < 1) call.fail("there must be at least one point to transform, there are ", n, " in ", call.in[0]);
}

Types infer_fft(const OpCall& call) {
  check_pair(call);
  check_points(call, call.in[0].dims[static_cast<size_t>(call.axis("axis", call.in[0].rank()))]);
  return {call.in[0], call.in[1]};
}

Types infer_fftn(const OpCall& call) {
  check_pair(call);
  for (int64_t a : call.axes("axes", call.in[0].rank())) check_points(call, call.in[0].dims[static_cast<size_t>(a)]);
  return {call.in[0], call.in[1]};
}

TensorType with_last(TensorType t, const Dim& n) {
  t.dims.back() = n;
  return t;
}
Dim half_spectrum(const Dim& n) { return floor_div(n, 2) + 1; }

void check_row(const OpCall& call) {
  check_type(call, call.in[0]);
  if (call.in[0].rank() == 0) call.fail("transforms the last axis, and ", call.in[0], " has none");
}
Dim length_or(const OpCall& call, const Dim& otherwise) {
  Dim n = call.attrs.has("length") ? Dim(call.attrs.get<int64_t>("length")) : otherwise;
  check_points(call, n);
  return n;
}

Types infer_real_fft(const OpCall& call) {
  check_row(call);
  check_points(call, call.in[0].dims.back());
  const TensorType t = with_last(call.in[0], half_spectrum(call.in[0].dims.back()));
  return {t, t};
}
Types infer_rfft(const OpCall& call) {
  check_row(call);
  const TensorType t = with_last(call.in[0], half_spectrum(length_or(call, call.in[0].dims.back())));
  return {t, t};
}
Types infer_real_ifft(const OpCall& call) {
  check_row(call);
  check_pair(call);
  const Dim& n = dims_attr(call, "length", 1)[0];
  check_points(call, n);
  if (!(call.in[0].dims.back() == half_spectrum(n)))
    call.fail("a row of ", n, " numbers has ", half_spectrum(n), " coefficients, got ", call.in[0]);
  return {with_last(call.in[0], n)};
}
Types infer_irfft(const OpCall& call) {
  check_row(call);
  check_pair(call);
  return {with_last(call.in[0], length_or(call, (call.in[0].dims.back() - 1) * 2))};
}

// --- host routines ---------------------------------------------------------------------------------------------------------

constexpr int64_t kChunkElements = 1 << 14;  // enough work to be worth a thread

// Calls f(first, end) for ranges of rows of n elements each.
template <class F> void parallel_rows(const HostCall& call, int64_t rows, int64_t n, F f) {
  const int64_t step = std::max<int64_t>(1, kChunkElements / n), chunks = (rows + step - 1) / step;
  call.parallel(chunks, [&](int64_t c) { f(c * step, std::min(rows, (c + 1) * step)); });
}

template <class T> void transform_axis(const HostCall& call, bool inverse) {
  const Shape& shape = call.in[0].shape;
  const auto at = static_cast<size_t>(normalize_axis(call.attrs.get<int64_t>("axis"), shape.rank(), call.op.name));
  const int64_t n = shape[at], count = element_count(shape);
  if (count == 0) return;
  int64_t inner = 1;
  for (size_t d = at + 1; d < shape.size(); ++d) inner *= shape[d];
  const Fourier plan(n);
  const double scale = inverse ? 1 / static_cast<double>(n) : 1;
  const T *re = call.in[0].as<T>(), *im = call.in[1].as<T>();
  T *out_re = call.out[0].as<T>(), *out_im = call.out[1].as<T>();
  parallel_rows(call, count / n, n, [&](int64_t first, int64_t end) {
    Fourier::Row x(static_cast<size_t>(n)), scratch;
    for (int64_t row = first; row < end; ++row) {
      const int64_t base = row / inner * inner * n + row % inner;
      for (int64_t k = 0; k < n; ++k)
        x[static_cast<size_t>(k)] = {static_cast<double>(re[base + k * inner]), static_cast<double>(im[base + k * inner])};
      inverse ? plan.inverse(x, scratch) : plan.forward(x, scratch);
      for (int64_t k = 0; k < n; ++k) {
        out_re[base + k * inner] = static_cast<T>(x[static_cast<size_t>(k)].re * scale);
        out_im[base + k * inner] = static_cast<T>(x[static_cast<size_t>(k)].im * scale);
      }
    }
  });
}

template <class T> void transform_real(const HostCall& call) {
  const int64_t n = call.in[0].shape.back(), rows = n == 0 ? 0 : element_count(call.in[0].shape) / n;
  if (rows == 0) return;
  const RealFourier plan(n);
  const int64_t m = plan.coefficients();
  parallel_rows(call, rows, n, [&](int64_t first, int64_t end) {
    Fourier::Row work, scratch, spectrum(static_cast<size_t>(m));
    std::vector<double> x(static_cast<size_t>(n));
    for (int64_t row = first; row < end; ++row) {
      std::copy_n(call.in[0].as<T>() + row * n, n, x.begin());
      plan.forward(x.data(), spectrum.data(), work, scratch);
      for (int64_t k = 0; k < m; ++k) {
        call.out[0].as<T>()[row * m + k] = static_cast<T>(spectrum[static_cast<size_t>(k)].re);
        call.out[1].as<T>()[row * m + k] = static_cast<T>(spectrum[static_cast<size_t>(k)].im);
      }
    }
  });
}

template <class T> void transform_to_real(const HostCall& call) {
  const int64_t n = call.out[0].shape.back(), rows = n == 0 ? 0 : element_count(call.out[0].shape) / n;
  if (rows == 0) return;
  const RealFourier plan(n);
  const int64_t m = plan.coefficients();
  parallel_rows(call, rows, n, [&](int64_t first, int64_t end) {
    Fourier::Row work, scratch, spectrum(static_cast<size_t>(m));
    std::vector<double> x(static_cast<size_t>(n));
    for (int64_t row = first; row < end; ++row) {
      for (int64_t k = 0; k < m; ++k)
        spectrum[static_cast<size_t>(k)] = {static_cast<double>(call.in[0].as<T>()[row * m + k]),
                                            static_cast<double>(call.in[1].as<T>()[row * m + k])};
      plan.inverse(spectrum.data(), x.data(), work, scratch);
      std::transform(x.begin(), x.end(), call.out[0].as<T>() + row * n, [](double v) { return static_cast<T>(v); });
    }
  });
}

template <bool kInverse> void evaluate_fft(const HostCall& call) {
  call.in[0].dtype == DType::F32 ? transform_axis<float>(call, kInverse) : transform_axis<double>(call, kInverse);
}
void evaluate_real_fft(const HostCall& call) {
  call.in[0].dtype == DType::F32 ? transform_real<float>(call) : transform_real<double>(call);
}
void evaluate_real_ifft(const HostCall& call) {
  call.in[0].dtype == DType::F32 ? transform_to_real<float>(call) : transform_to_real<double>(call);
}

// --- compositions and gradients --------------------------------------------------------------------------------------------

template <bool kInverse> std::vector<Expr> decompose_fftn(Builder& b, const OpCall& call, std::span<const Expr> in) {
  std::vector<Expr> x(in.begin(), in.end());
  for (int64_t a : call.axes("axes", in[0].rank())) x = ir::call(b, kInverse ? "ifft" : "fft", x, {{"axis", a}});
  return x;
}

// The first n of the last axis, with zeros behind where there are fewer.
Expr fit_last(const Expr& x, const Dim& n) {
  const Dim have = x.dims().back();
  if (have == n) return x;
  Dims zeros(x.dims().size(), 0), other = zeros;
  const bool cut = have.is_const() && n.is_const() && have.value() > n.value();
  if (cut) {
    other = x.dims();
    other.back() = n;
    return x.op("slice", {{"start", zeros}, {"limit", other}, {"step", Ints(zeros.size(), 1)}});
  }
  if (!have.is_const() || !n.is_const()) {  // either way round: padded by n, then cut
    other.back() = n;
    const Expr padded = x.op("pad", {x.number(0)}, {{"low", zeros}, {"high", other}});
    other = x.dims();
    other.back() = n;
    return padded.op("slice", {{"start", zeros}, {"limit", other}, {"step", Ints(zeros.size(), 1)}});
  }
  other.back() = n - have;
  return x.op("pad", {x.number(0)}, {{"low", zeros}, {"high", other}});
}

std::vector<Expr> decompose_rfft(Builder& b, const OpCall& call, std::span<const Expr> in) {
  return ir::call(b, "real_fft", {fit_last(in[0], length_or(call, in[0].dims().back()))});
}

std::vector<Expr> decompose_irfft(Builder& b, const OpCall& call, std::span<const Expr> in) {
  const Dim n = length_or(call, (in[0].dims().back() - 1) * 2), m = half_spectrum(n);
  return ir::call(b, "real_ifft", {fit_last(in[0], m), fit_last(in[1], m)}, {{"length", Dims{n}}});
}

// The transform F is symmetric, so its adjoint is conj(F). Exchanging real and imaginary parts before and after a transform conjugates it.
std::vector<Expr> vjp_fft(const GradCall& g) {
  const std::vector<Expr> y = call(g.builder, g.node.op->name, {g.grad(1), g.grad(0)}, g.node.attrs);
  return {y[1], y[0]};
}

std::vector<Expr> vjp_real_fft(const GradCall& g) {
  const Dim n = g.in[0].dims().back();
  const Dim missing = n - g.out[0].dims().back();
  const auto padded = [&](const Expr& x) {
    Dims low(x.dims().size(), 0), high = low;
    high.back() = missing;
    return x.op("pad", {x.number(0)}, {{"low", low}, {"high", high}});
  };
  return {call(g.builder, "fft", {padded(g.grad(1)), padded(g.grad(0))})[1]};
}

// All coefficients but the first and, for an even length, the last stand for two of the full spectrum.
std::vector<Expr> vjp_real_ifft(const GradCall& g) {
  const Dim n = g.out[0].dims().back(), m = g.in[0].dims().back();
  const std::vector<Expr> y = call(g.builder, "real_fft", {g.grad()});
  const Expr k = iota(g.builder, {m}, 0, DType::I32);
  const Expr single = equal(k, 0).op("logical_or", {equal(k * 2, count_of(g.builder, n, DType::I32))});
  const Expr weight = where(single, 1, filled(g.builder, {y[0].dtype(), {m}}, 2));
  return {divide_by_count(y[0] * weight, n), divide_by_count(y[1] * weight, n)};
}

constexpr Tolerance kTolerance{1e-5, 1e-5};

template <bool kInverse>
OpDef along_axes(std::string_view name, std::string_view sig, std::string_view doc, std::vector<std::string_view> samples) {
  return {.name = name,
          .sig = sig,
          .doc = doc,
          .infer = infer_fftn,
          .decompose = decompose_fftn<kInverse>,
          .samples = std::move(samples),
          .tolerance = kTolerance};
}

}  // namespace

Rows fft_rows() {
  return {
      {.name = "fft",
       .sig = "(re: float, im: float; axis: int = -1) -> same, same",
       .doc = "The discrete Fourier transform along one axis: y[k] is the sum of x[j] exp(-2 pi i jk/n).",
       .infer = infer_fft,
       .evaluate = evaluate_fft<false>,
       .vjp = vjp_fft,
       .samples = {"([8]:float64, [8]:float64)", "([3,12]:float32, [3,12]:float32)", "([2,5,3]:float64, [2,5,3]:float64; axis=1)",
                   "([1]:float32, [1]:float32)", "([2,100]:float32, [2,100]:float32)", "([0,4]:float32, [0,4]:float32)",
                   "([2,128]:float32, [2,128]:float32)", "([2,1,3,2,7]:float32, [2,1,3,2,7]:float32; axis=-3)"},
       .tolerance = kTolerance},
      {.name = "ifft",
       .sig = "(re: float, im: float; axis: int = -1) -> same, same",
       .doc = "The inverse of fft: y[k] is the sum of x[j] exp(2 pi i jk/n), divided by n.",
       .infer = infer_fft,
       .evaluate = evaluate_fft<true>,
       .vjp = vjp_fft,
       .samples = {"([8]:float64, [8]:float64)", "([3,12]:float32, [3,12]:float32)", "([2,5,3]:float64, [2,5,3]:float64; axis=1)",
                   "([2]:float32, [2]:float32)", "([0,4]:float32, [0,4]:float32)"},
       .tolerance = kTolerance},
      along_axes<false>(
          "fft2", "(re: float, im: float; axes: ints = [-2, -1]) -> same, same", "fft along two axes.",
          {"([3,4]:float64, [3,4]:float64)", "([2,4,6]:float32, [2,4,6]:float32; axes=[0,2])", "([0,3,4]:float32, [0,3,4]:float32)"}),
      along_axes<true>("ifft2", "(re: float, im: float; axes: ints = [-2, -1]) -> same, same", "ifft along two axes.",
                       {"([3,4]:float64, [3,4]:float64)", "([2,4,6]:float32, [2,4,6]:float32)"}),
      along_axes<false>(
          "fftn", "(re: float, im: float; axes: ints? = none) -> same, same", "fft along several axes, by default all.",
          {"([2,3,4]:float64, [2,3,4]:float64)", "([2,3,4]:float32, [2,3,4]:float32; axes=[-1,0])", "([]:float32, []:float32)"}),
      along_axes<true>("ifftn", "(re: float, im: float; axes: ints? = none) -> same, same", "ifft along several axes, by default all.",
                       {"([2,3,4]:float64, [2,3,4]:float64)", "([2,3,4]:float32, [2,3,4]:float32; axes=[1])"}),
      {.name = "real_fft",
       .sig = "(x: float) -> same, same",
       .doc = "The first n/2+1 coefficients of the Fourier transform of real rows; the others are their conjugates.",
       .infer = infer_real_fft,
       .evaluate = evaluate_real_fft,
       .vjp = vjp_real_fft,
       .samples = {"([8]:float64)", "([3,7]:float64)", "([2,100]:float32)", "([1]:float32)", "([2]:float64)", "([0,4]:float32)"},
       .tolerance = kTolerance},
      {.name = "real_ifft",
       .sig = "(re: float, im: float; length: shape) -> same",
       .doc = "The real rows of the given length that have these first length/2+1 coefficients. The imaginary part of the first one, and "
              "for an even length of the last one, does not count.",
       .infer = infer_real_ifft,
       .evaluate = evaluate_real_ifft,
       .vjp = vjp_real_ifft,
       .samples = {"([5]:float64, [5]:float64; length=[8])", "([2,4]:float64, [2,4]:float64; length=[7])",
                   "([2,51]:float32, [2,51]:float32; length=[100])", "([1]:float64, [1]:float64; length=[1])"},
       .tolerance = kTolerance},
      {.name = "rfft",
       .sig = "(x: float; length: int? = none) -> same, same",
       .doc = "The Fourier transform of real rows, cut or filled up with zeros to `length`: the first length/2+1 coefficients.",
       .infer = infer_rfft,
       .decompose = decompose_rfft,
       .samples = {"([2,9]:float64)", "([2,9]:float32; length=6)", "([2,5]:float64; length=8)", "([3]:float32; length=1)",
                   "([0,4]:float32)"},
       .tolerance = kTolerance},
      {.name = "irfft",
       .sig = "(re: float, im: float; length: int? = none) -> same",
       .doc = "The inverse of rfft, giving rows of `length` numbers, by default 2(m-1) for m coefficients; coefficients are cut or filled "
              "up with zeros to length/2+1.",
       .infer = infer_irfft,
       .decompose = decompose_irfft,
       .samples = {"([2,5]:float64, [2,5]:float64)", "([2,5]:float32, [2,5]:float32; length=7)", "([2,3]:float64, [2,3]:float64; length=9)",
                   "([4]:float64, [4]:float64; length=3)", "([0,3]:float32, [0,3]:float32)"},
       .tolerance = kTolerance},
  };
}

}  // namespace tandem::ops
