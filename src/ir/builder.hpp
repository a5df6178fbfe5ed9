// Builder: the only way to make nodes. Infers and checks types, carries the user's location into nodes and errors.
#pragma once
#include <initializer_list>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph.hpp"
#include "ir/op.hpp"

namespace tandem::ir {

class Builder {
 public:
  explicit Builder(const OpTable& table) : table_(table) {}
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  Value input(TensorType type, std::string name = "");
  Value input_like(const Node& input);  // of the type and name of another graph's
  Value constant(Literal value);        // equal scalar constants are one node
  Value scalar(DType t, double value);
  // One node. Operand types must already agree; see ops/promote.hpp for what the front-end does before. UserErrors get the location
  // appended.
  std::vector<Value> node(const OpDef& op, std::span<const Value> in, const Attrs& attrs = {});
  std::vector<Value> nodes(std::string_view op, std::span<const Value> in, const Attrs& attrs = {});
  Value op(std::string_view op, std::initializer_list<Value> in, const Attrs& attrs = {});  // the first result
  // A node as it is, with its location, on other inputs of the same types: nothing is inferred again. Not for inputs of a graph.
  Value copy(Node n, std::vector<Value> inputs);  // its first result

  const TensorType& type(Value v) const { return graph_.type(v); }
  const Graph& graph() const { return graph_; }  // so far
  const OpTable& table() const { return table_; }
  Graph finish(std::vector<Value> outputs, std::string name = "");  // the builder is empty afterwards

  // Given to nodes made from now on.
  Location location;
  int32_t device = -1;
  void follow(const Node& n) { location = n.location, device = n.device; }

 private:
  const OpTable& table_;
  Graph graph_;
  std::unordered_multimap<size_t, Value> scalars_;  // constants without axes, by the hash of their literal
};

// Copies a graph's nodes behind those already there, its inputs replaced by `inputs` (types must match); returns its outputs.
std::vector<Value> inline_graph(Builder& b, const Graph& g, std::span<const Value> inputs);
// Only what the outputs need; inputs all stay.
Graph prune(const OpTable& table, const Graph& g);

// A value with its builder, so that decompositions and gradients read like formulas. Operators broadcast; numbers take the other
// side's type. Nothing here promotes: both sides have one type.
class Expr {
 public:
  Expr() = default;
  Expr(Builder& b, Value v) : builder_(&b), value_(v) {}
  explicit operator bool() const { return builder_ != nullptr; }
  Builder& builder() const { return *builder_; }
  Value value() const { return value_; }
  const TensorType& type() const { return builder_->type(value_); }
  DType dtype() const { return type().dtype; }
  const Dims& dims() const { return type().dims; }
  int rank() const { return type().rank(); }

  Expr op(std::string_view name, const Attrs& attrs = {}) const;                                    // name(this)
  Expr op(std::string_view name, std::initializer_list<Expr> more, const Attrs& attrs = {}) const;  // name(this, more…)
  Expr number(double v) const;                                                                      // a scalar of this type
  Expr like(double v) const;                                                                        // filled, of this shape
  Expr cast(DType t) const;
  Expr reshape(Dims dims) const;
  Expr broadcast_to(Dims dims) const;
  Expr transpose(Ints perm) const;
  Expr sum(Ints axes, bool keepdims = false) const;
  Expr max(Ints axes, bool keepdims = false) const;
  Expr sum_to(const Dims& dims) const;  // the transpose of broadcasting: sums the axes that were stretched
  Expr stop_gradient() const;

 private:
  Builder* builder_ = nullptr;
  Value value_;
};
std::vector<Expr> exprs(Builder& b, std::span<const Value> v);
std::vector<Value> values(std::span<const Expr> e);
std::vector<Expr> call(Builder& b, std::string_view op, std::initializer_list<Expr> in, const Attrs& attrs = {});
std::vector<Expr> call(Builder& b, std::string_view op, std::span<const Expr> in, const Attrs& attrs = {});

#define TANDEM_EXPR(fn, name)                                                   \
  inline Expr fn(const Expr& a, const Expr& b) { return a.op(name, {b}); }      \
  inline Expr fn(const Expr& a, double b) { return a.op(name, {a.number(b)}); } \
  inline Expr fn(double a, const Expr& b) { return b.number(a).op(name, {b}); }
TANDEM_EXPR(operator+, "add")
TANDEM_EXPR(operator-, "subtract")
TANDEM_EXPR(operator*, "multiply")
TANDEM_EXPR(operator/, "divide")
TANDEM_EXPR(operator<, "less")
TANDEM_EXPR(operator<=, "less_equal")
TANDEM_EXPR(operator>, "greater")
TANDEM_EXPR(operator>=, "greater_equal")
TANDEM_EXPR(equal, "equal")
TANDEM_EXPR(not_equal, "not_equal")
TANDEM_EXPR(maximum, "maximum")
TANDEM_EXPR(minimum, "minimum")
TANDEM_EXPR(power, "power")
#undef TANDEM_EXPR
inline Expr operator-(const Expr& a) { return a.op("negative"); }
inline Expr exp(const Expr& a) { return a.op("exp"); }
inline Expr log(const Expr& a) { return a.op("log"); }
inline Expr sqrt(const Expr& a) { return a.op("sqrt"); }
inline Expr where(const Expr& c, const Expr& a, const Expr& b) { return c.op("where", {a, b}); }
inline Expr where(const Expr& c, const Expr& a, double b) { return c.op("where", {a, a.number(b)}); }
inline Expr where(const Expr& c, double a, const Expr& b) { return c.op("where", {b.number(a), b}); }

}  // namespace tandem::ir
