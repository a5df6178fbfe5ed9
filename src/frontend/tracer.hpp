// Tracer: turns calls into nodes of one graph. What comes from outside the traced callable becomes an input of the graph: a tensor as it
// is, a variable as state that may also go out. A callable inside a traced one (a branch, a loop's body) has a tracer of its own.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include <tandem/precision.hpp>
#include <tandem/tensor.hpp>
#include <tandem/variable.hpp>

#include "frontend/thread_state.hpp"
#include "ir/builder.hpp"

namespace tandem::frontend {

class Tracer {
 public:
  // Either a tensor from outside or a variable.
  struct External {
    Tensor outer;       // the tensor; undefined for a variable
    Variable variable;  // undefined for a tensor
    ir::Value input;
    Tensor current;  // a variable's value at this point of the trace
    bool written = false;
    const void* key() const;  // equal for the same thing from outside
  };

  explicit Tracer(std::string name);              // inside the thread's present one, if there is one
  Tracer(std::string name, Precision precision);  // of a function: what its graph will be compiled with
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  uint64_t id() const { return id_; }
  const std::string& name() const { return name_; }
  Precision precision() const { return precision_; }
  const Tracer* parent() const { return parent_; }
  ir::Builder& builder() { return builder_; }
  const ir::Graph& graph() const { return builder_.graph(); }                  // so far
  Tensor parameter(const ir::TensorType& type, const std::string& name = "");  // all parameters come before anything else
  Tensor wrap(ir::Value v) const;
  // The value of a tensor in this graph. One from outside is an input from now on; UserError when its trace has ended.
  ir::Value value_of(const Tensor& t);
  std::vector<Tensor> node(const ir::OpDef& op, std::span<const Tensor> operands, const ir::Attrs& attrs, Location where);
  std::vector<Tensor> inlined(const ir::Graph& g, std::span<const Tensor> inputs, Location where);

  Tensor read(const Variable& v);
  void assign(const Variable& v, const Tensor& value);  // of the variable's type

  const std::vector<External>& externals() const { return externals_; }  // in the order of the graph's inputs behind the parameters
  size_t parameter_count() const { return parameter_count_; }
  // The graph with these outputs; the tracer has done its work then.
  ir::Graph finish(std::span<const Tensor> outputs);

 private:
  bool is_inside(uint64_t tracer) const;
  External& external(const Variable& v);
  ir::Value add_input(const ir::TensorType& type, const std::string& name);

  const uint64_t id_;
  Tracer* const parent_;
  const int depth_;  // how many it is inside of
  const std::string name_;
  const Precision precision_;
  ir::Builder builder_;
  size_t parameter_count_ = 0;
  std::vector<External> externals_;
  std::unordered_map<const void*, size_t> external_index_;  // by key; only looked up, never walked
};

// While it lives, this thread's ops become nodes of the tracer's graph.
class TraceScope {
 public:
  explicit TraceScope(Tracer& t) : outer_(thread_state.tracer) { thread_state.tracer = &t; }
  ~TraceScope() { thread_state.tracer = outer_; }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  Tracer* outer_;
};

}  // namespace tandem::frontend
