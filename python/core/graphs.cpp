// Traced graphs as text, for files: a function is traced into one, and one that was read is called as a function.
#include <nanobind/stl/string.h>

#include <tandem/custom_gradient.hpp>

#include "core.hpp"
#include "frontend/host_token.hpp"
#include "frontend/tracer.hpp"
#include "frontend/variable_impl.hpp"
#include "ir/parse.hpp"
#include "ir/print.hpp"
#include "ops/table.hpp"

namespace tandem::python {
namespace {

using frontend::Tracer;

// What a trace takes from outside, in the order of the graph's inputs behind the parameters; those that are written are its last outputs.
nb::list externals_of(const std::vector<Tracer::External>& externals) {
  nb::list list;
  for (const Tracer::External& e : externals) {
    nb::object what = e.variable.defined() ? nb::cast(e.variable.impl()->id) : from_tensor(e.outer);
    list.append(nb::make_tuple(what, e.variable.defined(), e.written));
  }
  return list;
}

nb::tuple traced(nb::handle body, const std::string& name, nb::handle specs) {
  const FlatFunction f = flat_function(std::make_shared<Callback>(body));
  const std::vector<Spec> in = specs_of(specs);
  const PythonCall call;
  Tracer tracer(name, Precision::Float32);
  std::vector<Tensor> outputs;
  size_t count = 0;
  {
    const GilReleased released;
    std::vector<Tensor> parameters;
    for (const Spec& s : in) parameters.push_back(tracer.parameter({s.dtype, s.dims}));
    {
      const frontend::TraceScope scope(tracer);
      outputs = f(parameters);
    }
    count = outputs.size();
    for (const Tensor& t : outputs) tracer.value_of(t);  // one from outside may be a result: then it is an external too
    for (const Tracer::External& e : tracer.externals()) {
      if (frontend::is_host_token(e.variable))
        user_error(name, ": calls Python while it runs (a py_function, a print), so its graph is not all of it");
      if (e.written) outputs.push_back(e.current);
    }
  }
  std::vector<Tracer::External> externals = tracer.externals();
  const std::string text = ir::print(tracer.finish(outputs));
  return nb::make_tuple(text, count, externals_of(externals));
}

// A graph that was read. Eager calls run it compiled; within a trace it becomes part of that, and a tape goes back through it either way.
class ReadGraph {
 public:
  explicit ReadGraph(const std::string& text)
      : graph_(std::make_shared<const ir::Graph>(ir::parse(ops::table(), text))),
        body_([g = graph_](const std::vector<Tensor>& in) { return frontend::thread_state.tracer->inlined(*g, in, Location{}); }),
        compiled_(body_, FunctionOptions{.name = graph_->name}) {}

  std::vector<Tensor> operator()(const std::vector<Tensor>& in) const {
    if (in.size() != graph_->inputs.size()) user_error(graph_->name, ": takes ", graph_->inputs.size(), " tensors, got ", in.size());
    return frontend::thread_state.tracer ? flat::remat(body_, in, std::source_location()) : compiled_(in, std::source_location());
  }

 private:
  ir::GraphRef graph_;
  FlatFunction body_;
  FlatCallable compiled_;
};

}  // namespace

void add_graphs(nb::module_& m) {
  m.def("trace_graph", traced, nb::arg("body"), nb::arg("name"), nb::arg("specs"),
        "(text, number of results, [(variable's number or tensor, is a variable, is written)]) of a function over lists of tensors.");
  nb::class_<ReadGraph>(m, "ReadGraph").def(nb::init<const std::string&>()).def("__call__", [](const ReadGraph& g, nb::handle arguments) {
    const std::vector<Tensor> in = to_tensors(arguments.ptr());
    const PythonCall call;
    std::vector<Tensor> results;
    {
      const GilReleased released;
      results = g(in);
    }
    return from_tensors(results);
  });
}

}  // namespace tandem::python
