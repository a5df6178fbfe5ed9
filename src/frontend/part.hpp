// A callable traced into a sub-graph, and what it takes from outside. A sub-graph is closed, so the tensors that a callable takes from
// outside and the variables that it reads become operands of the node, and variables that it assigns become results.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tandem/structure.hpp>

#include "frontend/tracer.hpp"

namespace tandem::frontend {

// Its tracer lives on, because another callable of the same node may have more to ask of it.
struct Part {
  std::unique_ptr<Tracer> tracer;
  std::vector<Tensor> parameters, outputs;
};
Part traced_part(std::string name, std::span<const ir::TensorType> parameters, const FlatFunction& f);
std::vector<ir::TensorType> types_of(std::span<const Tensor> tensors);

// What all callables of a node take from outside, in one order.
class Externals {
 public:
  using Pointers = std::vector<const Tracer::External*>;
  explicit Externals(std::span<Part* const> parts);
  std::vector<Variable> written() const;
  Pointers all() const;
  Pointers states() const { return chosen(true); }      // assigned
  Pointers constants() const { return chosen(false); }  // only read

 private:
  void add(const Tracer& t);
  Pointers chosen(bool written) const;
  std::vector<Tracer::External> all_;
};
ir::TensorType external_type(const Tracer::External& e);
// As tensors of the trace that we are in. Reading variables here lets the tapes know.
std::vector<Tensor> outside(std::span<const Tracer::External* const> externals);

// The part's graph with other inputs: parameters[0, split), `middle`, the other parameters, `last`. Externals that a part does not use are
// inputs that nothing reads.
ir::GraphRef arranged(Part& p, std::span<const Tensor> outputs, size_t split, std::span<const Tracer::External* const> middle,
                      std::span<const Tracer::External* const> last);

// The node's results behind the callable's own are the new values of variables.
void assign_all(std::span<const Variable> variables, std::span<const Tensor> values);

template <class T> void append(std::vector<T>& to, const std::vector<T>& more) { to.insert(to.end(), more.begin(), more.end()); }

}  // namespace tandem::frontend
