// An op of one's own in one row: softsign2(x) = x / sqrt(1 + x^2). Computing, compiling, gradients and checks follow from the row.
#include <tandem/extend.hpp>
#include <tandem/tandem.hpp>

#include <cmath>
#include <cstdio>

namespace td = tandem;

// The row. Its body is a formula over one element; the gradient is derived from it.
const td::ir::OpDef& softsign2_row() {
  using td::ir::Scalar;
  static const td::ir::OpDef& row = td::extend::register_op({
      .name = "softsign2",
      .sig = "(x: float) -> same",
      .doc = "x / sqrt(1 + x^2): like softsign, but it nears its limits faster.",
      .body = [](Scalar x) { return x / sqrt(1 + x * x); },
      .samples = {"([2,3])", "([])", "([0,3])", "([67])"},
  });
  return row;
}

td::Tensor softsign2(const td::Operand& x) { return td::extend::call(softsign2_row(), {x}); }

bool check(const char* what, float got, float wanted) {
  const bool is_right = std::abs(got - wanted) < 1e-5f;
  std::printf("%-28s %.6f %s\n", what, got, is_right ? "" : "WRONG");
  return is_right;
}

int main() {
  bool all = true;
  const td::Tensor x = td::Tensor::of({0.75f, -2.f});

  all &= check("at once", softsign2(x)[0].item<float>(), 0.6f);

  td::Function f([](const td::Tensor& y) { return td::sum(softsign2(y) * 10); });
  all &= check("in a compiled function", f(x).item<float>(), 10 * (0.6f - 2 / std::sqrt(5.f)));

  td::Tape tape;
  tape.watch(x);
  const td::Tensor y = softsign2(x);
  all &= check("its gradient", tape.gradient(y, x)[0].item<float>(), std::pow(1 + 0.75f * 0.75f, -1.5f));

  td::Function g([](const td::Tensor& v) {
    td::Tape inner;
    inner.watch(v);
    return inner.gradient(softsign2(v), v);
  });
  all &= check("its gradient, compiled", g(x)[0].item<float>(), std::pow(1 + 0.75f * 0.75f, -1.5f));
  return all ? 0 : 1;
}
