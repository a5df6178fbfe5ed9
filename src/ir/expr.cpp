// Expr: values that read like formulas.
#include "ir/builder.hpp"

namespace tandem::ir {
namespace {

std::vector<Value> gathered(const Builder& b, std::string_view op, std::span<const Expr> in) {
  std::vector<Value> v;
  v.reserve(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    TANDEM_CHECK(in[i] && &in[i].builder() == &b, "operand ", i, " of ", op, " is empty or belongs to another graph");
    v.push_back(in[i].value());
  }
  return v;
}

// A reduction over no axes changes nothing.
Expr reduced(const Expr& x, std::string_view op, Ints axes, bool keepdims) {
  if (axes.empty()) return x;
  return x.op(op, {{"axis", std::move(axes)}, {"keepdims", keepdims}});
}

bool is_identity(const Ints& perm) {
  for (size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<int64_t>(i)) return false;
  return true;
}

}  // namespace

std::vector<Expr> exprs(Builder& b, std::span<const Value> v) {
  std::vector<Expr> e;
  e.reserve(v.size());
  for (Value x : v) e.emplace_back(b, x);
  return e;
}

std::vector<Value> values(std::span<const Expr> e) {
  std::vector<Value> v;
  v.reserve(e.size());
  for (const Expr& x : e) v.push_back(x.value());
  return v;
}

std::vector<Expr> call(Builder& b, std::string_view op, std::span<const Expr> in, const Attrs& attrs) {
  return exprs(b, b.nodes(op, gathered(b, op, in), attrs));
}

std::vector<Expr> call(Builder& b, std::string_view op, std::initializer_list<Expr> in, const Attrs& attrs) {
  return call(b, op, std::span<const Expr>(in.begin(), in.size()), attrs);
}

Expr Expr::op(std::string_view name, const Attrs& attrs) const { return op(name, {}, attrs); }

Expr Expr::op(std::string_view name, std::initializer_list<Expr> more, const Attrs& attrs) const {
  TANDEM_CHECK(builder_, "operand 0 of ", name, " is empty");
  std::vector<Expr> in{*this};
  in.insert(in.end(), more.begin(), more.end());
  const std::vector<Expr> results = call(*builder_, name, in, attrs);
  TANDEM_CHECK(!results.empty(), name, " has no result");
  return results.front();
}

Expr Expr::number(double v) const { return {*builder_, builder_->scalar(dtype(), v)}; }
Expr Expr::like(double v) const { return number(v).broadcast_to(dims()); }
Expr Expr::cast(DType t) const { return t == dtype() ? *this : op("cast", {{"dtype", t}}); }
Expr Expr::reshape(Dims to) const { return to == dims() ? *this : op("reshape", {{"shape", std::move(to)}}); }
Expr Expr::broadcast_to(Dims to) const { return to == dims() ? *this : op("broadcast_to", {{"shape", std::move(to)}}); }
Expr Expr::transpose(Ints perm) const { return is_identity(perm) ? *this : op("transpose", {{"perm", std::move(perm)}}); }
Expr Expr::sum(Ints axes, bool keepdims) const { return reduced(*this, "sum", std::move(axes), keepdims); }
Expr Expr::max(Ints axes, bool keepdims) const { return reduced(*this, "max", std::move(axes), keepdims); }
Expr Expr::stop_gradient() const { return op("stop_gradient"); }

Expr Expr::sum_to(const Dims& to) const {
  const Dims& from = dims();
  TANDEM_CHECK(to.size() <= from.size(), "sum_to ", tandem::str(to), " of ", type());
  const size_t added = from.size() - to.size();
  Ints axes;
  for (size_t i = 0; i < from.size(); ++i) {
    const bool is_stretched = i < added || (to[i - added].is(1) && !from[i].is(1));
    if (is_stretched)
      axes.push_back(static_cast<int64_t>(i));
    else
      TANDEM_CHECK(to[i - added] == from[i], "sum_to ", tandem::str(to), " of ", type());
  }
  return sum(std::move(axes)).reshape(to);
}

Expr GradCall::grad(size_t i) const {
  const bool flows = i < grads.size() && grads[i];
  return flows ? grads[i] : out.at(i).like(0);
}

}  // namespace tandem::ir
