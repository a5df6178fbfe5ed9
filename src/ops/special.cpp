// Special functions: error functions and the normal distribution, gamma and its logarithmic derivatives, modified Bessel functions.
// Chebyshev coefficients were computed with 60 digits from the definitions; a type uses as many of them as it can see.
#include <cmath>

#include "ops/elementwise.hpp"
#include "ops/table.hpp"

namespace tandem::ops {
namespace {

using namespace ir;

// --- the normal distribution -----------------------------------------------------------------------------------------------

// (1 + 2x) exp(x^2) erfc(x) for x >= 0, over t = 1 - 6/(x+3) (the mapping of Shepherd and Laframboise, 1981).
constexpr double kErfcx[] = {1.17756257419656005,     5.35390453961567677e-3,   -9.37755034228420905e-2,  5.43665255574432205e-2,
                             -1.89765967078452074e-2, 4.45342606146271157e-3,   -6.33553171055314694e-4,  1.76617195231715919e-5,
                             1.28415328640566707e-5,  -2.00722856590599144e-6,  -1.8075227904148371e-7,   7.54982834382509283e-8,
                             1.88566852383860279e-9,  -2.699519049798364e-9,    -1.46007911993910494e-11, 1.03616074459694897e-10,
                             1.47571597662347301e-12, -4.27734006439691082e-12, -2.07922492859798998e-13, 1.81345020031769624e-13,
                             1.97342557454473883e-14, -7.28794373759267316e-15, -1.51698786902281157e-15, 2.35141122587814035e-16,
                             1.00061116918216676e-16, -2.05725281695385462e-18, -5.60860821886318295e-18};

Scalar erfcx_positive(const Scalar& x) { return chebyshev(1 - 6 / (x + 3), kErfcx) / (1 + 2 * x); }

// exp(x^2) with the rounding error of the square made good: it would grow with the size of the square.
Scalar exp_square(const Scalar& x) {
  const Scalar square = x * x;
  const Scalar rest = fma(x, x, -square);
  const Scalar e = exp(square);
  return select(e < kInf, fma(e, rest, e), e);
}

Scalar erfcx_of(const Scalar& x) {
  const Scalar right = erfcx_positive(abs(x));
  return select(x < 0, 2 * exp_square(x) - right, right);
}

Scalar ndtr_of(const Scalar& x) { return 0.5 * erfc(-kSqrtHalf * x); }

// By erfcx at the left, where the distribution function itself becomes 0.
Scalar log_ndtr_of(const Scalar& x) {
  const Scalar far = log(0.5 * erfcx_positive(max(-kSqrtHalf * x, 0))) - 0.5 * (x * x);
  const Scalar right = log1p(-0.5 * erfc(kSqrtHalf * x));
  return select(x > 0, right, select(x < -1, far, log(ndtr_of(x))));
}

// The quantile of the normal distribution by Wichura's algorithm AS 241 (Applied Statistics 37, 1988): PPND7 for float32, PPND16 for
// float64. `centre` is p - 1/2, `tail` the smaller one of p and 1 - p; a caller that knows both exactly loses nothing at the ends.
struct Rational {
  std::span<const double> numerator, denominator;
};
struct QuantileTable {
  Rational middle, near, far;
};

constexpr double kA7[] = {3.3871327179, 5.0434271938e+1, 1.5929113202e+2, 5.9109374720e+1};
constexpr double kB7[] = {1, 1.7895169469e+1, 7.8757757664e+1, 6.7187563600e+1};
constexpr double kC7[] = {1.4234372777, 2.7568153900, 1.3067284816, 1.7023821103e-1};
constexpr double kD7[] = {1, 7.3700164250e-1, 1.2021132975e-1};
constexpr double kE7[] = {6.6579051150, 3.0812263860, 4.2868294337e-1, 1.7337203997e-2};
constexpr double kF7[] = {1, 2.4197894225e-1, 1.2258202635e-2};

constexpr double kA16[] = {3.3871328727963666080,    1.3314166789178437745e+2, 1.9715909503065514427e+3, 1.3731693765509461125e+4,
                           4.5921953931549871457e+4, 6.7265770927008700853e+4, 3.3430575583588128105e+4, 2.5090809287301226727e+3};
constexpr double kB16[] = {1,
                           4.2313330701600911252e+1,
                           6.8718700749205790830e+2,
                           5.3941960214247511077e+3,
                           2.1213794301586595867e+4,
                           3.9307895800092710610e+4,
                           2.8729085735721942674e+4,
                           5.2264952788528545610e+3};
constexpr double kC16[] = {1.42343711074968357734, 4.63033784615654529590,    5.76949722146069140550,    3.64784832476320460504,
                           1.27045825245236838258, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr double kD16[] = {1,
                           2.05319162663775882187,
                           1.67638483018380384940,
                           6.89767334985100004550e-1,
                           1.48103976427480074590e-1,
                           1.51986665636164571966e-2,
                           5.47593808499534494600e-4,
                           1.05075007164441684324e-9};
constexpr double kE16[] = {6.65790464350110377720,    5.46378491116411436990,    1.78482653991729133580,    2.96560571828504891230e-1,
                           2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr double kF16[] = {1,
                           5.99832206555887937690e-1,
                           1.36929880922735805310e-1,
                           1.48753612908506148525e-2,
                           7.86869131145613259100e-4,
                           1.84631831751005468180e-5,
                           1.42151175831644588870e-7,
                           2.04426310338993978564e-15};

constexpr QuantileTable kQuantile7 = {{kA7, kB7}, {kC7, kD7}, {kE7, kF7}};
constexpr QuantileTable kQuantile16 = {{kA16, kB16}, {kC16, kD16}, {kE16, kF16}};

Scalar rational(const Scalar& x, const Rational& r) { return polynomial(x, r.numerator) / polynomial(x, r.denominator); }

Scalar normal_quantile(const Scalar& centre, const Scalar& tail) {
  const QuantileTable& table = centre.dtype() == DType::F64 ? kQuantile16 : kQuantile7;
  const Scalar middle = centre * rational(0.180625 - centre * centre, table.middle);
  const Scalar r = sqrt(-log(tail));
  const Scalar size = select(r <= 5, rational(r - 1.6, table.near), rational(r - 5, table.far));
  const Scalar at_end = select(tail == 0, kInf, size);  // there r is infinite, and so are both polynomials
  return select(abs(centre) <= 0.425, middle, select(centre < 0, -at_end, at_end));
}

Scalar erfinv_of(const Scalar& x) { return kSqrtHalf * normal_quantile(0.5 * x, 0.5 * (1 - abs(x))); }
Scalar ndtri_of(const Scalar& p) { return normal_quantile(p - 0.5, min(p, 1 - p)); }

// log(x / (1 - x)); around 1/2 the quotient is near 1 and log1p keeps the digits.
Scalar logit_of(const Scalar& x) {
  const Scalar odds = (2 * x - 1) / (1 - x);
  return select(abs(x - 0.5) < 0.25, log1p(odds), log(x) - log1p(-x));
}

// --- gamma -----------------------------------------------------------------------------------------------------------------

// digamma(x) / (x - root) on 1..2, over t = 2x - 3: keeps the digits around the root, where recurrences cancel.
constexpr double kDigammaRoot = 1.461632144968362341;
constexpr double kDigamma[] = {9.83570260441566988e-1,  -2.27064086334644397e-1,  3.3368899023930109e-2,   -5.32007727159654744e-3,
                               8.78865693782050533e-4,  -1.47734926506060433e-4,  2.50605434683591444e-5,  -4.27210340299933221e-6,
                               7.30276927246592305e-7,  -1.25028868135595955e-7,  2.14250093223594737e-8,  -3.67329591856517904e-9,
                               6.29971723610893091e-10, -1.08059302888326601e-10, 1.85373519205363789e-11, -3.18023536582553001e-12,
                               5.45614757032279418e-13, -9.36099313103643816e-14, 1.60606463629507501e-14, -2.75554313774388131e-15,
                               4.72773617860191139e-16, -8.11148420346509003e-17, 1.39170776947415407e-17, -2.3877901082188627e-18};

Scalar digamma_of(const Scalar& x) {
  // The root to twice the precision: x - root is exact in its upper part.
  const double high = x.dtype() == DType::F64 ? kDigammaRoot : static_cast<double>(static_cast<float>(kDigammaRoot));
  const double low = x.dtype() == DType::F64 ? 9.54999542996569772e-17 : kDigammaRoot - high;
  const Scalar near_root = (x - high - low) * chebyshev(2 * x - 3, kDigamma);
  return select((x >= 1) & (x <= 2), near_root, digamma(x));
}

// sum over k >= 0 of (x+k)^-s for x > 0 and whole s > 1: some terms, then Euler and Maclaurin's formula for the others.
Scalar hurwitz_zeta(const Scalar& x, int64_t s) {
  static constexpr double kBernoulli[] = {1. / 6,       -1. / 30, 1. / 42,      -1. / 30,     5. / 66,
                                          -691. / 2730, 7. / 6,   -3617. / 510, 43867. / 798, -174611. / 330};
  const bool is_double = x.dtype() == DType::F64;
  const int64_t terms = (is_double ? 9 : 5) + s / 2;
  const double n = static_cast<double>(s);
  Scalar sum = constant(x.dtype(), 0);
  for (int64_t k = terms; k-- > 0;) sum = sum + pow(x + static_cast<double>(k), -n);
  const Scalar y = x + static_cast<double>(terms);
  const Scalar w = 1 / (y * y);
  // sum of B(2j)/(2j)! s(s+1)…(s+2j-2) y^(1-2j), by Horner's rule in 1/y^2.
  const size_t length = is_double ? std::size(kBernoulli) : 5;
  std::vector<double> series;
  double factor = 1;  // s…(s+2j-2) / (2j)!
  for (size_t j = 1; j <= length; ++j) {
    const double m = 2 * static_cast<double>(j);
    factor *= j == 1 ? n / 2 : (n + m - 3) * (n + m - 2) / ((m - 1) * m);
    series.push_back(kBernoulli[j - 1] * factor);
  }
  const Scalar tail = 1 / (n - 1) + 0.5 / y + polynomial(w, series) * w;
  return sum + pow(y, 1 - n) * tail;
}

// The n-th derivative of cot(pi x): a polynomial in that cotangent, for d(cot u)/du = -(1 + cot^2 u).
Scalar cotangent_derivative(const Scalar& x, int64_t n) {
  std::vector<double> p = {0, 1};
  for (int64_t k = 0; k < n; ++k) {
    std::vector<double> next(p.size() + 1, 0.0);
    for (size_t i = 1; i < p.size(); ++i) {
      const double slope = -kPi * static_cast<double>(i) * p[i];
      next[i - 1] += slope;
      next[i + 1] += slope;
    }
    p = std::move(next);
  }
  const Scalar fraction = x - round(x);  // exact, and the cotangent has period 1
  return polynomial(1 / tan(kPi * fraction), p);
}

// (-1)^(n+1) n! zeta(n+1, x); for negative x by reflection:
// psi_n(x) = (-1)^n psi_n(1-x) - pi d^n/dx^n cot(pi x).
Scalar polygamma_of(const Scalar& x, int64_t n) {
  if (n == 0) return digamma_of(x);
  const double sign = n % 2 == 0 ? -1 : 1;
  const Scalar is_left = x < 0;
  const Scalar right = select(is_left, 1 - x, x);
  const Scalar value = (sign * std::tgamma(static_cast<double>(n) + 1)) * hurwitz_zeta(right, n + 1);
  const Scalar reflected = -sign * value - kPi * cotangent_derivative(x, n);
  // The poles at -1, -2 …: infinities of one sign on both sides for odd n, of two for even n.
  const Scalar pole = constant(x.dtype(), n % 2 == 1 ? kInf : kNaN);
  return select(is_left, select(x == floor(x), pole, reflected), value);
}

constexpr int64_t kMaxOrder = 30;  // n! must be a float32

std::vector<TensorType> infer_polygamma(const OpCall& c) {
  const auto order = c.attrs.get<int64_t>("order");
  if (order < 0 || order > kMaxOrder) c.fail("order must be in 0..", kMaxOrder, ", got ", order);
  return {c.in[0]};
}

// --- modified Bessel functions of the first kind ---------------------------------------------------------------------------

// Divided by exp(x): for x in 0..8 over t = x/4 - 1 (I1 also divided by x/(1+x), for its small values); beyond, times sqrt(x) over t = 16/x
// - 1 (Clenshaw, Chebyshev Series for Mathematical Functions, 1962).
constexpr double kI0Near[] = {3.38397637204738042e-1,  -3.04682672343198399e-1,  1.71620901522208775e-1,  -9.49010970480476444e-2,
                              4.93052842396707085e-2,  -2.37374148058994688e-2,  1.05464603945949983e-2,  -4.32430999505057594e-3,
                              1.6394756169413358e-3,   -5.76375574538582366e-4,  1.88502885095841656e-4,  -5.7541950100821037e-5,
                              1.64484480707288971e-5,  -4.41673835845875056e-6,  1.11738753912010372e-6,  -2.67079385394061173e-7,
                              6.04699502254191895e-8,  -1.30002500998624804e-8,  2.65982372468238665e-9,  -5.18979560163526291e-10,
                              9.67580903537323691e-11, -1.72682629144155571e-11, 2.95505266312963983e-12, -4.85644678311192946e-13,
                              7.67618549860493562e-14, -1.16853328779934517e-14, 1.71539128555513303e-15, -2.43127984654795469e-16,
                              3.3307945188222381e-17,  -4.41534164647933938e-18, 5.66917800692149616e-19};
constexpr double kI0Far[] = {4.02245205507054416e-1,   3.36911647825569409e-3,   6.88975834691682398e-5,   2.89137052083475648e-6,
                             2.04891858946906374e-7,   2.26666899049817806e-8,   3.39623202570838635e-9,   4.94060238822496959e-10,
                             1.18891471078464383e-11,  -3.14991652796324136e-11, -1.32158118404477131e-11, -1.79417853150680612e-12,
                             7.18012445138366623e-13,  3.8527783827421427e-13,   1.54008621752140983e-14,  -4.15056934728722209e-14,
                             -9.55484669882830765e-15, 3.81168066935262242e-15,  1.77256013305652638e-15,  -3.42548561967721913e-16,
                             -2.82762398051658348e-16, 3.46122286769746109e-17,  4.46562142029676e-17,     -4.83050448594418207e-18,
                             -7.23318048787475395e-18, 9.9214754121736986e-19,   1.19365089084598209e-18};
constexpr double kI1Near[] = {2.78634929393416027e-1,   -1.71620901522208775e-1, 5.44932943173773838e-2,   -9.98969059952773271e-3,
                              -3.38788705230979502e-3,  4.94531947674781919e-3,  -3.37319996895046183e-3,  1.76955554780666211e-3,
                              -7.89236752071420925e-4,  3.11399135358668902e-4,  -1.10989703586369652e-4,  3.62059864870792623e-5,
                              -1.09088148243295702e-5,  3.05680143463805664e-6,  -8.00997858738949879e-7,  1.97169069043602192e-7,
                              -4.57679951468933613e-8,  1.00519440706878205e-8,  -2.09497415713964061e-9,  4.15415942733103824e-10,
                              -7.85568117711159341e-11, 1.41972592821461996e-11, -2.45689582265165831e-12, 4.07850766542190171e-13,
                              -6.50514825163519717e-14, 9.98411024234112242e-15, -1.4766063408898357e-15,  2.10711159054853883e-16,
                              -2.9047170077866517e-17,  3.87262339438412606e-18, -4.99864676640822974e-19};
constexpr double kI1Far[] = {3.8928811750914006e-1,    -9.76109749136146841e-3,  -1.10588938762623716e-4,  -3.88256480887769039e-6,
                             -2.51223623787020893e-7,  -2.63146884688951951e-8,  -3.83538038596423702e-9,  -5.58974346219658381e-10,
                             -1.89749581235054123e-11, 3.25260358301548824e-11,  1.41258074366137813e-11,  2.03562854414708951e-12,
                             -7.19855177624590851e-13, -4.08355111109219732e-13, -2.10154184277266431e-14, 4.27244001671195135e-14,
                             1.04202769841288028e-14,  -3.8144030724370078e-15,  -1.88035477551078245e-15, 3.30820231092092828e-16,
                             2.96262899764595014e-16,  -3.20952592199342396e-17, -4.65030536848935833e-17, 4.41434832307170795e-18,
                             7.51729631084210481e-18,  -9.31417886732688338e-19, -1.24219327519489096e-18};

// f(|x|) from the two expansions, each kept inside its own range.
Scalar bessel(const Scalar& size, std::span<const double> near, std::span<const double> far, bool is_odd) {
  const Scalar inner = min(size, 8), outer = max(size, 8);
  const Scalar left = chebyshev(0.25 * inner - 1, near);
  const Scalar right = chebyshev(16 / outer - 1, far) / sqrt(outer);
  return select(size <= 8, is_odd ? left * (inner / (1 + inner)) : left, right);
}

Scalar i0e_of(const Scalar& x) { return bessel(abs(x), kI0Near, kI0Far, false); }
Scalar i1e_size(const Scalar& x) { return bessel(abs(x), kI1Near, kI1Far, true); }

// Times exp(|x|), in two steps: the first factor alone would overflow before the product does.
Scalar unscaled(const Scalar& scaled, const Scalar& x) {
  const Scalar half = exp(0.5 * abs(x));
  return select(half == kInf, kInf, scaled * half * half);
}

Scalar odd(const Scalar& size, const Scalar& x) { return select(x < 0, -size, size); }

Scalar i0_of(const Scalar& x) { return unscaled(i0e_of(x), x); }
Scalar i1_of(const Scalar& x) { return odd(unscaled(i1e_size(x), x), x); }
Scalar i1e_of(const Scalar& x) { return odd(i1e_size(x), x); }

// f(x)/x for f = I1 or I1 scaled: 1/2 at 0.
Expr over_x(const Expr& f, const Expr& x) {
  const Expr is_zero = equal(x, 0.0);
  return where(is_zero, 0.5, f / where(is_zero, 1.0, x));
}

Rows normal_rows() {
  return {
      {.name = "erf",
       .sig = "(x: float) -> same",
       .doc = "The error function: 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.",
       .body = [](Scalar x) { return erf(x); },
       .vjp = [](const GradCall& c) { return chain(c, (2 / kSqrtPi) * exp(-(c.in[0] * c.in[0]))); },
       .samples = unary_samples()},
      {.name = "erfc",
       .sig = "(x: float) -> same",
       .doc = "1 - erf(x), accurate for large x.",
       .body = [](Scalar x) { return erfc(x); },
       .vjp = [](const GradCall& c) { return chain(c, (-2 / kSqrtPi) * exp(-(c.in[0] * c.in[0]))); },
       .samples = unary_samples()},
      {.name = "erfcx",
       .sig = "(x: float) -> same",
       .doc = "exp(x^2) * erfc(x), which does not vanish for large x.",
       .body = [](Scalar x) { return wide(erfcx_of, x); },
       .vjp = [](const GradCall& c) { return chain(c, 2.0 * c.in[0] * c.out[0] - 2 / kSqrtPi); },
       .samples = TANDEM_SAMPLES_IN("-2..6")},
      {.name = "erfinv",
       .sig = "(x: float) -> same",
       .doc = "The inverse of erf; infinite at -1 and 1, NaN outside.",
       .body = [](Scalar x) { return wide(erfinv_of, x); },
       .vjp = [](const GradCall& c) { return chain(c, (kSqrtPi / 2) * exp(c.out[0] * c.out[0])); },
       .samples = TANDEM_SAMPLES_IN("-0.95..0.95")},
      {.name = "ndtr",
       .sig = "(x: float) -> same",
       .doc = "The distribution function of the normal distribution, erfc(-x/sqrt(2)) / 2.",
       .body = [](Scalar x) { return wide(ndtr_of, x); },
       .vjp = [](const GradCall& c) { return chain(c, (kSqrtHalf / kSqrtPi) * exp(-0.5 * c.in[0] * c.in[0])); },
       .samples = TANDEM_SAMPLES_IN("-5..5")},
      {.name = "log_ndtr",
       .sig = "(x: float) -> same",
       .doc = "log(ndtr(x)), also where ndtr(x) is too small for the type.",
       .body = [](Scalar x) { return wide(log_ndtr_of, x); },
       .vjp = [](const GradCall& c) { return std::vector{c.grad() * (2 * kSqrtHalf / kSqrtPi) / (-kSqrtHalf * c.in[0]).op("erfcx")}; },
       .samples = TANDEM_SAMPLES_IN("-20..5")},
      {.name = "ndtri",
       .sig = "(p: float) -> same",
       .doc = "The inverse of ndtr; infinite at 0 and 1, NaN outside.",
       .body = [](Scalar p) { return wide(ndtri_of, p); },
       .vjp = [](const GradCall& c) { return chain(c, (kSqrtPi / kSqrtHalf) * exp(0.5 * c.out[0] * c.out[0])); },
       .samples = TANDEM_SAMPLES_IN("0.02..0.98")},
      {.name = "logit",
       .sig = "(x: float) -> same",
       .doc = "log(x / (1 - x)), the inverse of sigmoid; infinite at 0 and 1, NaN outside.",
       .body = [](Scalar x) { return wide(logit_of, x); },
       .vjp = [](const GradCall& c) { return std::vector{c.grad() / (c.in[0] * (1.0 - c.in[0]))}; },
       .samples = TANDEM_SAMPLES_IN("0.02..0.98")},
      {.name = "entr",
       .sig = "(x: float) -> same",
       .doc = "-x * log(x): the entropy of a probability. 0 at 0, -infinity below.",
       .body = [](Scalar x) { return wide([](Scalar a) { return select(a == 0, 0, select(a < 0, -kInf, -(a * log(a)))); }, x); },
       .vjp = [](const GradCall& c) { return chain(c, -1.0 - log(c.in[0])); },
       .samples = TANDEM_SAMPLES_IN("0.1..3")},
      {.name = "expit",
       .sig = "(x: float) -> same",
       .doc = "SciPy's name for sigmoid.",
       .infer = [](const OpCall& c) { return std::vector{c.in[0]}; },
       .decompose = [](Builder&, const OpCall&, std::span<const Expr> in) { return std::vector{in[0].op("sigmoid")}; },
       .samples = unary_samples()},
  };
}

Rows gamma_rows() {
  return {
      {.name = "lgamma",
       .sig = "(x: float) -> same",
       .doc = "The logarithm of |gamma(x)|; infinite at 0, -1, -2 …",
       .body = [](Scalar x) { return lgamma(x); },
       .vjp = [](const GradCall& c) { return chain(c, c.in[0].op("digamma")); },
       .samples = TANDEM_SAMPLES_IN("0.2..5")},
      {.name = "gammaln",
       .sig = "(x: float) -> same",
       .doc = "SciPy's name for lgamma.",
       .infer = [](const OpCall& c) { return std::vector{c.in[0]}; },
       .decompose = [](Builder&, const OpCall&, std::span<const Expr> in) { return std::vector{in[0].op("lgamma")}; },
       .samples = TANDEM_SAMPLES_IN("0.2..5")},
      {.name = "digamma",
       .sig = "(x: float) -> same",
       .doc = "The derivative of lgamma; NaN at -1, -2 …",
       .body = [](Scalar x) { return wide(digamma_of, x); },
       .vjp = [](const GradCall& c) { return chain(c, c.in[0].op("polygamma", Attrs{{"order", int64_t{1}}})); },
       .samples = {"([2,3] in 0.2..5)", "([67] in 1..2)", "([67] in -0.9..-0.1)", "([67] in 2..40)", "([])", "([0,3])",
                   "([2,1,3,2,2] in 0.1..1)", "([24] special) !grad"},
       .tolerance = {.abs = 1e-5}},
      {.name = "polygamma",
       .sig = "(x: float; order: int) -> same",
       .doc = "The derivative of digamma of the given order; digamma itself for order 0, trigamma for 1.",
       .body =
           [](const OpCall& c, Scalar x) {
             const auto order = c.attrs.get<int64_t>("order");
             return wide([&](Scalar a) { return polygamma_of(a, order); }, x);
           },
       .infer = infer_polygamma,
       .vjp = [](const GradCall& c) { return chain(c, c.in[0].op("polygamma", Attrs{{"order", c.node.attrs.get<int64_t>("order") + 1}})); },
       .samples = {"([2,3] in 0.5..5; order=1)", "([67] in 1..20; order=2)", "([67] in -0.8..-0.2; order=1)", "([5] in 1..3; order=0)",
                   "([5] in 1..3; order=5)", "([] in 1..2; order=3)", "([0,3]; order=1)", "([24] special; order=1) !grad"},
       .tolerance = {.rel = 1e-5}},
  };
}

Rows bessel_rows() {
  return {
      {.name = "i0",
       .sig = "(x: float) -> same",
       .doc = "The modified Bessel function of the first kind of order 0.",
       .body = [](Scalar x) { return wide(i0_of, x); },
       .vjp = [](const GradCall& c) { return chain(c, c.in[0].op("i1")); },
       .samples = TANDEM_SAMPLES_IN("-10..10")},
      {.name = "i0e",
       .sig = "(x: float) -> same",
       .doc = "exp(-|x|) * i0(x), which does not overflow.",
       .body = [](Scalar x) { return wide(i0e_of, x); },
       .vjp = [](const GradCall& c) { return chain(c, c.in[0].op("i1e") - c.in[0].op("sign") * c.out[0]); },
       .samples = TANDEM_SAMPLES_IN("-20..20")},
      {.name = "i1",
       .sig = "(x: float) -> same",
       .doc = "The modified Bessel function of the first kind of order 1.",
       .body = [](Scalar x) { return wide(i1_of, x); },
       .vjp = [](const GradCall& c) { return chain(c, c.in[0].op("i0") - over_x(c.out[0], c.in[0])); },
       .samples = TANDEM_SAMPLES_IN("-10..10")},
      {.name = "i1e",
       .sig = "(x: float) -> same",
       .doc = "exp(-|x|) * i1(x), which does not overflow.",
       .body = [](Scalar x) { return wide(i1e_of, x); },
       .vjp =
           [](const GradCall& c) {
             const Expr x = c.in[0], y = c.out[0];
             return chain(c, x.op("i0e") - x.op("sign") * y - over_x(y, x));
           },
       .samples = TANDEM_SAMPLES_IN("-20..20")},
  };
}

}  // namespace

Rows special_rows() {
  Rows rows;
  for (Rows (*family)() : {normal_rows, gamma_rows, bessel_rows})
    for (OpDef& row : family()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace tandem::ops
