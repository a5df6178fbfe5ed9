#include "codegen/routine_cost.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace tandem::codegen {
namespace {

double elements(const Layout& o) {
  double n = 1;
  for (const int64_t e : o.shape) n *= static_cast<double>(e);
  return n;
}

// The extent along the axis that the attribute names, else along the last one.
double line(const Kernel& k, const Layout& o) {
  const auto rank = static_cast<int64_t>(o.shape.size());
  if (rank == 0) return 1;
  const ir::Attr* named = k.attrs.find("axis");
  const int64_t* axis = named ? std::get_if<int64_t>(named) : nullptr;
  const int64_t at = axis ? (*axis < 0 ? *axis + rank : *axis) : rank - 1;
  return static_cast<double>(o.shape[static_cast<size_t>(std::clamp<int64_t>(at, 0, rank - 1))]);
}
double log2_of(double n) { return std::log2(std::max(n, 2.0)); }

// Of a stack of matrices: how many there are, their shorter side and their longer one.
struct Matrices {
  double count = 0, least = 0, most = 0;
  explicit Matrices(const Layout& o) {
    if (o.shape.size() < 2) return;
    const auto rows = static_cast<double>(o.shape[o.shape.size() - 2]), columns = static_cast<double>(o.shape.back());
    least = std::min(rows, columns);
    most = std::max(rows, columns);
    count = least > 0 ? elements(o) / (rows * columns) : 0;
  }
};

// Golub and Van Loan, Matrix Computations, 4th edition: a number for each count * least^2 * most.
struct Factorisation {
  std::string_view name;
  double operations;
};
constexpr Factorisation kFactorisations[] = {{"cholesky", 1.0 / 3}, {"lu", 2.0 / 3}, {"qr", 4}, {"svd", 21}, {"eigh", 9}, {"eig", 25}};

}  // namespace

double routine_flops(const Kernel& k) {
  const std::string_view name = k.op->name;
  double touched = 0;
  for (const auto* list : {&k.in, &k.out})
    for (const Layout& o : *list) touched += elements(o);
  if (k.in.empty()) return touched;
  const Layout& x = k.in[0];
  if (const auto* f = std::ranges::find(kFactorisations, name, &Factorisation::name); f != std::end(kFactorisations)) {
    const Matrices m(x);
    return f->operations * m.count * m.least * m.least * m.most;
  }
  if (name == "triangular_solve" && k.in.size() > 1) return elements(k.in[1]) * Matrices(x).most;
  if (name == "sort" || name == "argsort") return elements(x) * log2_of(line(k, x));
  if (name == "unique") return elements(x) * log2_of(elements(x));
  if (name == "top_k") return elements(x) * log2_of(k.out.empty() ? 1 : line(k, k.out[0]));
  if (name == "searchsorted" && k.in.size() > 1) return elements(k.in[1]) * log2_of(line(k, x));
  if (name.ends_with("fft")) return 5 * elements(k.out[0]) * log2_of(std::max(line(k, x), line(k, k.out[0])));
  if (name.starts_with("attention_") && k.in.size() > 2) {  // [batch, positions, heads, features]: scores, and sums of values by them
    const Layout& key = k.in[1];
    if (key.shape.size() < 3) return touched;
    const double products = 2 * elements(x) * static_cast<double>(key.shape[key.shape.size() - 3]);
    return name == "attention_gradient" ? 5 * products : 2 * products;
  }
  if ((name.starts_with("lstm") || name.starts_with("gru")) && k.in.size() > 2) {  // a product a step, and two in the gradient
    const auto kernel = std::ranges::find_if(k.in, [](const Layout& o) { return o.shape.size() == 2 && o.shape[1] > o.shape[0]; });
    if (kernel != k.in.end()) return 2 * elements(x) * static_cast<double>(kernel->shape[0]) * (name.ends_with("gradient") ? 2 : 1);
  }
  return touched;
}

}  // namespace tandem::codegen
