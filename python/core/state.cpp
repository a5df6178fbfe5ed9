// Variable and Tape.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "core.hpp"
#include "frontend/gradient.hpp"
#include "frontend/tape_impl.hpp"
#include "frontend/variable_impl.hpp"

namespace tandem::python {

PyType_Slot* operator_slots_of_variables();

namespace {

Source source_of(PyObject* o) {
  if (const Variable* v = as_variable(o)) return {*v};
  return {to_tensor(o)};
}

template <class F> void assigned(const Variable& v, nb::handle value, F f) {
  Operands operands;
  operands.add(value.ptr());
  const PythonCall call;
  GilReleased release;
  f(v, *operands.all()[0]);
}

nb::list gradients(Tape& tape, nb::handle targets, nb::handle sources, nb::handle output_gradients, bool zero) {
  std::vector<Source> by;
  for (nb::handle s : nb::borrow<nb::sequence>(sources)) by.push_back(source_of(s.ptr()));
  GradientOptions options;
  if (!output_gradients.is_none()) options.output_gradients = to_tensors(output_gradients.ptr());
  if (zero) options.unconnected = Unconnected::Zero;
  const std::vector<Tensor> of = to_tensors(targets.ptr());
  const PythonCall call;
  std::vector<Tensor> results;
  {
    GilReleased release;
    results = tape.gradients(of, Sources(std::move(by)), options);
  }
  return from_tensors(results);
}

nb::list traced_gradients(nb::handle targets, nb::handle sources, nb::handle output_gradients, nb::handle stops) {
  const std::vector<Tensor> of = to_tensors(targets.ptr()), by = to_tensors(sources.ptr()), constants = to_tensors(stops.ptr());
  std::vector<Tensor> given;
  for (nb::handle t : nb::borrow<nb::sequence>(output_gradients)) given.push_back(t.is_none() ? Tensor() : to_tensor(t.ptr()));
  const PythonCall call;
  std::vector<Tensor> results;
  {
    GilReleased release;
    results = frontend::traced_gradients(of, given, by, constants, {});
  }
  return from_tensors(results);
}

nb::object jacobian(Tape& tape, nb::handle target, nb::handle source, Tensor (Tape::*f)(const Tensor&, const Source&, Tape::Where)) {
  const Tensor of = to_tensor(target.ptr());
  const Source by = source_of(source.ptr());
  const PythonCall call;
  Tensor result;
  {
    GilReleased release;
    result = (tape.*f)(of, by, std::source_location());
  }
  return from_tensor(std::move(result));
}

}  // namespace

void add_state(nb::module_& m) {
  nb::class_<Variable> variable(m, "Variable", nb::dynamic_attr(), nb::is_weak_referenceable(),
                                nb::type_slots(operator_slots_of_variables()));
  variable_type = reinterpret_cast<PyTypeObject*>(variable.ptr());
  variable.def(
      "__init__",
      [](Variable* self, nb::handle initial, const std::string& name, bool trainable, nb::handle dtype) {
        VariableOptions options{.name = name, .trainable = trainable, .dtype = {}};
        if (!dtype.is_none()) options.dtype = as_dtype(dtype.ptr());
        const Tensor value = to_tensor(initial.ptr(), dtype.ptr());
        new (self) Variable(value, options);
      },
      nb::arg("initial"), nb::arg("name") = "", nb::arg("trainable") = true, nb::arg("dtype").none() = nb::none());
  variable.def_prop_ro("dtype", [](const Variable& v) { return from_dtype(v.dtype()); });
  variable.def_prop_ro("shape",
                       [](const Variable& v) { return nb::steal(PyObject_CallOneArg(hooks.shape, from_dims(to_dims(v.shape())).ptr())); });
  variable.def_prop_ro("dims", [](const Variable& v) { return from_dims(to_dims(v.shape())); });
  variable.def_prop_ro("core_name", [](const Variable& v) { return v.name(); });
  variable.def_prop_ro("number", [](const Variable& v) { return v.impl()->id; }, "Another one for each variable of the process.");
  variable.def_prop_rw("core_trainable", &Variable::trainable, [](const Variable& v, bool on) { Variable(v).set_trainable(on); });
  variable.def("read", [](const Variable& v) {
    const PythonCall call;
    GilReleased release;
    return v.value();
  });
  variable.def("store",
               [](const Variable& v, nb::handle x) { assigned(v, x, [](const Variable& to, const Operand& o) { to.assign(o); }); });
  variable.def("store_add",
               [](const Variable& v, nb::handle x) { assigned(v, x, [](const Variable& to, const Operand& o) { to.assign_add(o); }); });
  variable.def("store_sub",
               [](const Variable& v, nb::handle x) { assigned(v, x, [](const Variable& to, const Operand& o) { to.assign_sub(o); }); });

  m.def("is_recording", [] { return frontend::TapeImpl::any_records(); }, "Whether a tape of this thread records at this place.");
  m.def(
      "is_recorded_outside", [] { return frontend::TapeImpl::any_records_outside(); },
      "Whether a tape of this thread records outside of every trace.");
  m.def("traced_gradients", traced_gradients, nb::arg("targets"), nb::arg("sources"), nb::arg("output_gradients"), nb::arg("stops"),
        "Gradients of what the present trace has computed; None where a source is not connected.");

  nb::class_<Tape>(m, "Tape")
      .def(
          "__init__",
          [](Tape* self, bool persistent, bool watch_variables) {
            new (self) Tape(TapeOptions{.persistent = persistent, .watch_variables = watch_variables});
          },
          nb::arg("persistent") = false, nb::arg("watch_variables") = true)
      .def("watch",
           [](Tape& t, nb::handle x) {
             const PythonCall call;
             if (const Variable* v = as_variable(x.ptr()))
               t.watch(*v);
             else
               t.watch(to_tensor(x.ptr()));
           })
      .def("gradients", gradients, nb::arg("targets"), nb::arg("sources"), nb::arg("output_gradients").none() = nb::none(),
           nb::arg("zero") = false)
      .def(
          "stacked_gradients",
          [](Tape& t, nb::handle target, nb::handle sources, nb::handle output_gradients) {
            std::vector<Source> by;
            for (nb::handle s : nb::borrow<nb::sequence>(sources)) by.push_back(source_of(s.ptr()));
            const Tensor of = to_tensor(target.ptr()), stack = to_tensor(output_gradients.ptr());
            const PythonCall call;
            std::vector<Tensor> results;
            {
              GilReleased release;
              results = t.stacked_gradients(of, Sources(std::move(by)), stack);
            }
            return from_tensors(results);
          },
          nb::arg("target"), nb::arg("sources"), nb::arg("output_gradients"),
          "The gradients [n, source...] for each of the gradients [n, target...] of the target; None where nothing is connected.")
      .def(
          "jacobian", [](Tape& t, nb::handle target, nb::handle source) { return jacobian(t, target, source, &Tape::jacobian); },
          nb::arg("target"), nb::arg("source"), "[target..., source...], or None when nothing is connected.")
      .def(
          "batch_jacobian",
          [](Tape& t, nb::handle target, nb::handle source) { return jacobian(t, target, source, &Tape::batch_jacobian); },
          nb::arg("target"), nb::arg("source"), "[b, target..., source...] of [b, target...] by [b, source...].")
      .def("stop", &Tape::stop)
      .def("resume", &Tape::resume)
      .def("reset", &Tape::reset)
      .def(
          "watched",
          [](const Tape& t) {
            nb::list numbers;
            for (const Variable& v : t.watched_variables()) numbers.append(v.impl()->id);
            return numbers;
          },
          "The numbers of the variables that were read.");
}

}  // namespace tandem::python
