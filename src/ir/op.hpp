// OpDef: everything known about one op, in one row. Shape inference, gradient, C++ wrapper, interpreter, generated kernels, docs and
// tests are derived from it. A row gives exactly one of body, loops, decompose, evaluate, or is `structural` (input, constant, branch …).
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/attr.hpp"
#include "ir/graph.hpp"
#include "ir/loops.hpp"
#include "ir/scalar.hpp"

namespace tandem::ir {

class Builder;
class Expr;

// --- signature -------------------------------------------------------------------------------------------------------------
// "(x: number, y: number; axis: int = -1, keepdims: bool = false) -> same"
// Operand classes:  any  number (not bool)  float  int  boolean: these share one type T, to which the front-end promotes them;
//                   float also takes integers and promotes them to floating_type.
//                   own: any type, independent of T.  bool  index (int32 or int64)  key (uint32): fixed, never promoted.
//                   `xs: any...` any number of operands.  `b: any?` may be left out (trailing only).
// Attribute kinds:  bool int float string dtype ints floats shape graphs literal function; a trailing ? makes it optional with default
// none. Result:           same (T)  bool  int32  or custom: `infer` decides. Several results: "-> same, int32".
enum class OperandClass : uint8_t { Any, Number, Float, Int, Boolean, Own, Bool, Index, Key };
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // scoped, so the kinds may be called as the types that hold them
enum class AttrKind : uint8_t { Bool, Int, Float, String, DType, Ints, Floats, Shape, Graphs, Literal, Function };
#pragma GCC diagnostic pop
std::string_view name(OperandClass c);  // "number", as in a signature
std::string_view name(AttrKind k);      // "ints"
struct Signature {
  struct Parameter {
    std::string name;
    OperandClass type;
    bool variadic = false;
    bool optional = false;
  };
  struct Attribute {
    std::string name;
    AttrKind kind;
    bool optional = false;
    bool required = false;  // no default was given
    Attr default_value;
  };
  std::vector<Parameter> operands;
  std::vector<Attribute> attributes;
  std::vector<std::string> results;
};
Signature parse_signature(std::string_view text);  // InternalError says where it went wrong
bool accepts(OperandClass c, DType t);             // as a node's operand, after promotion

// --- the hooks of a row ----------------------------------------------------------------------------------------------------
// A call as inference sees it.
struct OpCall {
  const OpDef& op;
  std::span<const TensorType> in;
  const Attrs& attrs;
  int32_t device = -1;  // of the node (Node::device)
  // UserError with the op's name in front: call.fail("inner dimensions differ, lhs ", a, " x rhs ", b)
  template <class... T> [[noreturn]] void fail(const T&... parts) const;
  int64_t axis(std::string_view attr, int rank) const;  // a normalised int attribute
  Ints axes(std::string_view attr, int rank) const;     // a normalised ints? attribute, none = all; sorted, unique; UserError on repeats
};

// A scalar expression of one to four arguments, optionally seeing the call: [](Scalar x) {…}, [](const OpCall& c, Scalar x) {…}.
class Body {
 public:
  Body() = default;
  template <class F> Body(F f) : Body(+f) {}  // NOLINT: captureless lambdas only
  template <class... S> Body(Scalar (*f)(S...)) : arity_(sizeof...(S)), f_(reinterpret_cast<void (*)()>(f)) {  // NOLINT
    call_ = [](void (*g)(), const OpCall&, std::span<const Scalar> a) {
      return apply(reinterpret_cast<Scalar (*)(S...)>(g), a, std::index_sequence_for<S...>{});
    };
  }
  template <class... S> Body(Scalar (*f)(const OpCall&, S...)) : arity_(sizeof...(S)), f_(reinterpret_cast<void (*)()>(f)) {  // NOLINT
    call_ = [](void (*g)(), const OpCall& c, std::span<const Scalar> a) {
      return apply_call(reinterpret_cast<Scalar (*)(const OpCall&, S...)>(g), c, a, std::index_sequence_for<S...>{});
    };
  }
  explicit operator bool() const { return call_ != nullptr; }
  size_t arity() const { return arity_; }
  Scalar operator()(const OpCall& c, std::span<const Scalar> args) const { return call_(f_, c, args); }

 private:
  template <class... S, size_t... I> static Scalar apply(Scalar (*f)(S...), std::span<const Scalar> a, std::index_sequence<I...>) {
    return f(a[I]...);
  }
  template <class... S, size_t... I>
  static Scalar apply_call(Scalar (*f)(const OpCall&, S...), const OpCall& c, std::span<const Scalar> a, std::index_sequence<I...>) {
    return f(c, a[I]...);
  }
  size_t arity_ = 0;
  void (*f_)() = nullptr;
  Scalar (*call_)(void (*)(), const OpCall&, std::span<const Scalar>) = nullptr;
};

// What a vjp rule sees. in/out are the forward values, grad(i) the cotangent of output i (zeros when nothing flowed into it).
struct GradCall {
  Builder& builder;
  const Node& node;
  std::vector<Expr> in;
  std::vector<Expr> out;
  std::vector<Expr> grads;        // an empty Expr where no gradient flows
  Expr grad(size_t i = 0) const;  // materialises zeros
  std::vector<bool> needed;       // which inputs want a gradient; a rule may skip the others
};

// Plain host memory for ops that loops cannot say (sort, unique, factorisations). Dense row-major, shapes bound.
struct HostTensor {
  DType dtype;
  Shape shape;
  void* data;
  template <class T> T* as() const { return static_cast<T*>(data); }
};
// A function of the host program that a graph calls (the row host_call). It lives as long as a graph or plan that names it. Each is equal
// to itself only; its number stands for it where order or hashes matter (I6).
class HostFunction {
 public:
  using Call = std::function<void(std::span<const HostTensor> in, std::span<const HostTensor> out)>;
  HostFunction(std::string name, Call call);
  uint64_t number() const { return number_; }
  const std::string& name() const { return name_; }
  void operator()(std::span<const HostTensor> in, std::span<const HostTensor> out) const { call_(in, out); }

 private:
  const uint64_t number_;
  const std::string name_;
  const Call call_;
};
struct HostCall {
  const OpDef& op;
  const Attrs& attrs;
  std::span<const HostTensor> in;
  std::span<HostTensor> out;
  // Runs f(chunk) on the engine's threads where the caller has some, else in order. Results must not depend on which.
  std::function<void(int64_t chunks, const std::function<void(int64_t)>&)> parallel;
};

// Which composites stay whole, because somebody has a kernel for them. Dims may be symbols; what is kept must be taken at every extent.
using KeepsFn = std::function<bool(const OpCall&)>;

using InferFn = std::vector<TensorType> (*)(const OpCall&);
using LoopsFn = Loops (*)(const OpCall&, std::span<const TensorType> out);
using DecomposeFn = std::vector<Expr> (*)(Builder&, const OpCall&, std::span<const Expr> in);
using EvaluateFn = void (*)(const HostCall&);
using VjpFn = std::vector<Expr> (*)(const GradCall&);  // one an input; an empty Expr is "no gradient", no list "as the decomposition"

enum Trait : uint32_t {
  kNone = 0,
  kStructural = 1 << 0,         // the engine itself gives it meaning: input, constant, branch, while, scan
  kView = 1 << 1,               // output 0 has input 0's bytes: reshape, identity
  kNotDifferentiable = 1 << 2,  // asking for its gradient is an error that names the op
  kZeroGradient = 1 << 3,       // piecewise constant: gradient is zero (floor, comparisons)
  kCommutative = 1 << 4,
  kProduct = 1 << 5,     // sums of products that libraries compute best: fusion adds an epilogue, and nothing before
  kSensitive = 1 << 6,   // exp, log, powers: a rounded operand may be far off in the result, so mixed precision rounds nothing before it
  kOverwrites = 1 << 7,  // `evaluate` takes a result that lies where operand 0 does, and checks everything before it writes
};

struct Tolerance {
  double rel = 0, abs = 0;  // 0: by type, from the table in tests (float32 1e-5 …)
};

struct OpDef {
  std::string_view name;
  std::string_view sig;
  std::string_view doc;  // one or two sentences; becomes the docs page and the comment of the C++ wrapper
  uint32_t traits = kNone;
  Body body = {};           // elementwise with broadcasting
  InferFn infer = nullptr;  // default for rows with a body: broadcast shapes, dtype from the signature
  LoopsFn loops = nullptr;
  DecomposeFn decompose = nullptr;
  EvaluateFn evaluate = nullptr;
  VjpFn vjp = nullptr;  // default for rows with a body: its derivative, summed over broadcast axes
  // Calls the tests make, as text: "([2,3] in -2..2, [3]; axis=1)". See ir/sample.hpp for the notation.
  std::vector<std::string_view> samples = {};
  Tolerance tolerance = {};

  // Filled in by OpTable::add.
  Signature signature = {};
  int id = -1;
  bool has(Trait t) const { return (traits & t) != 0; }
};

class OpTable {
 public:
  const OpDef& add(OpDef row);                   // UserError when the name is taken or the row is incomplete
  const OpDef& at(std::string_view name) const;  // UserError suggests near names
  const OpDef* find(std::string_view name) const;
  std::vector<const OpDef*> all() const;  // in order of registration

 private:
  mutable std::mutex mutex_;
  std::deque<OpDef> rows_;
  std::map<std::string_view, const OpDef*> by_name_;
};

// Completes and checks attributes against the signature: unknown names, wrong kinds, missing values are UserErrors; defaults are filled in.
Attrs complete_attrs(const OpDef& op, const Attrs& given);
// Result types of a call whose operand types are final: counts, classes, one T, then `infer`.
std::vector<TensorType> infer(const OpDef& op, std::span<const TensorType> in, const Attrs& attrs);
// The loops of a call: from `loops`, or from `body` by broadcasting. Only for rows that have one of them.
Loops loops_of(const OpDef& op, std::span<const TensorType> in, const Attrs& attrs, std::span<const TensorType> out);

template <class... T> void OpCall::fail(const T&... parts) const { user_error(op.name, ": ", parts...); }

}  // namespace tandem::ir
