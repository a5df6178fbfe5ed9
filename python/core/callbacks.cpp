// Python functions that the engine calls: custom gradients, functions that are computed again, and host calls.
#include <nanobind/stl/string.h>

#include "core.hpp"
#include "frontend/thread_state.hpp"
#include "frontend/variable_impl.hpp"

namespace tandem::python {
namespace {

// A None is a tensor that holds nothing.
std::vector<Tensor> optional_tensors(nb::handle sequence) {
  std::vector<Tensor> tensors;
  for (nb::handle t : nb::borrow<nb::sequence>(sequence)) tensors.push_back(t.is_none() ? Tensor() : to_tensor(t.ptr()));
  return tensors;
}

flat::DifferentiableFunction differentiable(nb::handle f) {
  return [f = std::make_shared<Callback>(f)](const std::vector<Tensor>& in) {
    GilHeld gil;
    const nb::tuple pair = nb::cast<nb::tuple>((*f)(from_tensors(in)));
    auto backward = std::make_shared<Callback>(nb::handle(pair[1]));
    return flat::Differentiable{to_tensors(nb::handle(pair[0]).ptr()),
                                [backward](const std::vector<Tensor>& gradients, const std::vector<Variable>& variables) {
                                  GilHeld taken;
                                  if (variables.empty()) return optional_tensors((*backward)(from_tensors(gradients)));
                                  nb::list numbers;
                                  for (const Variable& v : variables) numbers.append(v.impl()->id);
                                  return optional_tensors((*backward)(from_tensors(gradients), numbers));
                                }};
  };
}

// As a `with` block: what is inside computes at once, whatever this thread is tracing or recording.
class EagerBlock {
 public:
  void enter() {
    if (scope_) user_error("EagerScope: it was entered already");
    thread_ = frontend::thread_number();
    scope_.emplace();
  }
  void leave() {
    if (!scope_ || thread_ != frontend::thread_number()) user_error("EagerScope: it was not entered by this thread");
    scope_.reset();
  }

 private:
  uint32_t thread_ = 0;
  std::optional<frontend::EagerScope> scope_;
};

}  // namespace

void add_callbacks(nb::module_& m) {
  m.def(
      "custom_gradient",
      [](nb::handle f, nb::handle inputs) {
        const flat::DifferentiableFunction function = differentiable(f);
        const std::vector<Tensor> in = to_tensors(inputs.ptr());
        const PythonCall call;
        std::vector<Tensor> results;
        {
          GilReleased release;
          results = flat::custom_gradient(function, in, std::source_location());
        }
        return from_tensors(results);
      },
      nb::arg("f"), nb::arg("inputs"),
      "f(list of tensors) -> (list of outputs, backward). backward(list of output gradients) -> list of input gradients, each a tensor or "
      "None.\n"
      "Where f reads trainable variables, backward gets their numbers as a second list and gives a gradient for each behind those of the "
      "inputs.");

  m.def(
      "remat",
      [](nb::handle f, nb::handle inputs) {
        const FlatFunction function = flat_function(std::make_shared<Callback>(f));
        const std::vector<Tensor> in = to_tensors(inputs.ptr());
        const PythonCall call;
        std::vector<Tensor> results;
        {
          GilReleased release;
          results = flat::remat(function, in, std::source_location());
        }
        return from_tensors(results);
      },
      nb::arg("f"), nb::arg("inputs"),
      "f(list of tensors) -> list of tensors; its gradient computes f again instead of keeping what it computed.");

  m.def(
      "host_call",
      [](nb::handle f, nb::handle inputs, nb::handle results, const std::string& name) {
        auto callback = std::make_shared<Callback>(f);
        if (frontend::thread_state.tracer) keep_for_traced_function(callback);
        const FlatFunction function = flat_function(callback);
        const std::vector<Tensor> in = to_tensors(inputs.ptr());
        const std::vector<Spec> declared = specs_of(results);
        const PythonCall call;
        std::vector<Tensor> found;
        {
          GilReleased release;
          found = host_call(function, in, declared, name, std::source_location());
        }
        return from_tensors(found);
      },
      nb::arg("callback"), nb::arg("inputs"), nb::arg("results").none() = nb::none(), nb::arg("name") = "host_call",
      "callback(list of tensors) -> list of tensors of the types (dtype, dims) in `results`. While a function is traced, the callback is "
      "called\n"
      "each time the compiled function comes to this place, in order.");

  nb::class_<EagerBlock>(m, "EagerScope", "`with EagerScope():` computes at once, whatever is traced or recorded outside.")
      .def(nb::init<>())
      .def("__enter__",
           [](nb::handle self) {
             nb::inst_ptr<EagerBlock>(self)->enter();
             return nb::borrow(self);
           })
      .def("__exit__", [](EagerBlock& e, nb::args) { e.leave(); });
}

}  // namespace tandem::python
