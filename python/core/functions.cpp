// Function and control flow.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "data.hpp"
#include "frontend/memory.hpp"
#include "frontend/thread_state.hpp"
#include "frontend/tracer.hpp"
#include "functions.hpp"

namespace tandem::python {
namespace {

using Callbacks = std::vector<std::shared_ptr<Callback>>;

// Of the outermost function that this thread is tracing.
thread_local Callbacks* traced_callbacks = nullptr;

class TracedScope {
 public:
  explicit TracedScope(Callbacks& all) : before_(traced_callbacks) {
    const frontend::Tracer* tracer = frontend::thread_state.tracer;
    if (tracer && !tracer->parent()) traced_callbacks = &all;  // else it becomes part of the one outside
  }
  ~TracedScope() { traced_callbacks = before_; }
  TracedScope(const TracedScope&) = delete;
  TracedScope& operator=(const TracedScope&) = delete;

 private:
  Callbacks* before_;
};

// What a thread is doing, for another one that goes on with it while the first waits: replicas of one step take turns in one trace.
class ThreadWork {
 public:
  ThreadWork() : state_(frontend::thread_state), callbacks_(traced_callbacks), tracer_(state_.tracer) {}
  void enter() {
    if (entered_) user_error("ThreadWork: it was entered already");
    entered_ = true;
    change();
  }
  void leave() {
    change();
    entered_ = false;
  }
  // Whether this thread, which goes on with it, has left all branches and loops that it began to trace.
  bool at_start() const { return frontend::thread_state.tracer == tracer_; }

 private:
  void change() {
    std::swap(frontend::thread_state, state_);
    std::swap(traced_callbacks, callbacks_);
  }
  frontend::ThreadState state_;
  Callbacks* callbacks_;
  const frontend::Tracer* tracer_;
  bool entered_ = false;
};

FlatFunction traced_body(const std::shared_ptr<Callbacks>& callbacks) {
  return [callbacks, f = flat_function(callbacks->front())](const std::vector<Tensor>& in) {
    const TracedScope scope(*callbacks);
    return f(in);
  };
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self))
    for (const auto& f : nb::inst_ptr<CompiledFunction>(self)->callbacks()) Py_VISIT(f->get());
  return 0;
}
int clear(PyObject* self) {
  if (nb::inst_ready(self))
    for (const auto& f : nb::inst_ptr<CompiledFunction>(self)->callbacks()) f->clear();
  return 0;
}
PyType_Slot function_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {Py_tp_clear, reinterpret_cast<void*>(clear)}, {0, nullptr}};

Spec spec_of(nb::handle pair) {
  const nb::tuple t = nb::cast<nb::tuple>(pair);
  return {as_dtype(nb::handle(t[0]).ptr()), as_dims(nb::handle(t[1]).ptr())};
}

nb::list call_function(CompiledFunction& f, nb::handle arguments) {
  const std::vector<Tensor> in = to_tensors(arguments.ptr());
  std::vector<const Tensor*> pointers;
  for (const Tensor& t : in) pointers.push_back(&t);
  std::vector<Tensor> results;
  const PythonCall call;
  const WalkScope walks;
  {
    GilReleased release;
    f.callable().call(pointers, results, std::source_location());
  }
  return from_tensors(results);
}

flat::Thunk thunk(nb::handle f) {
  return [body = flat_function(std::make_shared<Callback>(f))] { return body({}); };
}

Tensor first_of(const FlatFunction& f, const std::vector<Tensor>& in) {
  std::vector<Tensor> results = f(in);
  if (results.size() != 1) user_error("while_loop: the condition gives ", results.size(), " tensors, it must give one");
  return results[0];
}

}  // namespace

std::vector<Spec> specs_of(nb::handle list) {
  std::vector<Spec> specs;
  if (!list.is_none())
    for (nb::handle pair : nb::borrow<nb::sequence>(list)) specs.push_back(spec_of(pair));
  return specs;
}

CompiledFunction::CompiledFunction(nb::handle body, const std::string& name, std::vector<Spec> specs)
    : callbacks_(std::make_shared<Callbacks>(1, std::make_shared<Callback>(body))),
      callable_(traced_body(callbacks_), FunctionOptions{.name = name, .specs = std::move(specs)}) {}

void keep_for_traced_function(std::shared_ptr<Callback> f) {
  if (traced_callbacks) traced_callbacks->push_back(std::move(f));
}

void add_functions(nb::module_& m) {
  nb::class_<CompiledFunction>(m, "Function", nb::type_slots(function_slots))
      .def(
          "__init__",
          [](CompiledFunction* self, nb::handle body, const std::string& name, nb::handle specs) {
            new (self) CompiledFunction(body, name, specs_of(specs));
          },
          nb::arg("body"), nb::arg("name") = "function", nb::arg("specs").none() = nb::none())
      .def("__call__", call_function)
      .def_prop_ro("trace_count", [](const CompiledFunction& f) { return f.callable().trace_count(); })
      .def(
          "prepare",
          [](CompiledFunction& f) {
            const PythonCall call;
            GilReleased release;
            f.callable().prepare(std::source_location());
          },
          "Traces and compiles a function with specs now.")
      .def("graph", [](const CompiledFunction& f) { return f.callable().graph_str(); })
      .def(
          "explain", [](const CompiledFunction& f) { return placement_rows(f.callable()); },
          "(op, device, why, seconds, bytes moved, line) of each step of the last call, as if one came after the other.")
      .def(
          "predicted_seconds",
          [](const CompiledFunction& f) {
            GilReleased release;
            return f.callable().predicted_seconds();
          },
          "Of a call when calls follow each other, with copies beside computing; 0 before the first one.")
      .def(
          "result_specs",
          [](CompiledFunction& f, nb::handle specs) {
            const std::vector<Spec> in = specs_of(specs);
            std::vector<Spec> out;
            const PythonCall call;
            {
              GilReleased release;
              out = f.callable().result_specs(in);
            }
            nb::list results;
            for (const Spec& s : out) results.append(nb::make_tuple(from_dtype(s.dtype), from_dims(s.dims)));
            return results;
          },
          "Types of the results for arguments of these types: (dtype, dims) each. Traces only.");

  m.def(
      "budget_summary", [](const CompiledFunction& f) { return f.callable().budget_summary(); }, nb::arg("function"),
      "What the function's largest plan does to stay within a device's memory, one line a device; empty when all fit as they are.");

  m.def("cond", [](nb::handle predicate, nb::handle then, nb::handle otherwise) {
    const Tensor p = to_tensor(predicate.ptr());
    const flat::Thunk a = thunk(then), b = thunk(otherwise);
    const PythonCall call;
    std::vector<Tensor> results;
    {
      GilReleased release;
      results = flat::cond(p, a, b);
    }
    return from_tensors(results);
  });
  m.def("switch_case", [](nb::handle index, nb::handle branches) {
    const Tensor i = to_tensor(index.ptr());
    std::vector<flat::Thunk> thunks;
    for (nb::handle f : nb::borrow<nb::sequence>(branches)) thunks.push_back(thunk(f));
    const PythonCall call;
    std::vector<Tensor> results;
    {
      GilReleased release;
      results = flat::switch_case(i, thunks);
    }
    return from_tensors(results);
  });
  m.def(
      "while_loop",
      [](nb::handle condition, nb::handle body, nb::handle state, std::optional<int64_t> max_trips) {
        const FlatFunction test = flat_function(std::make_shared<Callback>(condition)),
                           step = flat_function(std::make_shared<Callback>(body));
        const std::vector<Tensor> initial = to_tensors(state.ptr());
        const PythonCall call;
        std::vector<Tensor> results;
        {
          GilReleased release;
          results = flat::while_loop([&](const std::vector<Tensor>& s) { return first_of(test, s); }, step, initial, max_trips,
                                     std::source_location());
        }
        return from_tensors(results);
      },
      nb::arg("condition"), nb::arg("body"), nb::arg("state"), nb::arg("max_trips").none() = nb::none());
  m.def(
      "scan",
      [](nb::handle body, nb::handle carry, nb::handle sequences, nb::handle length, bool reverse) {
        const auto f = std::make_shared<Callback>(body);
        const flat::ScanBody step = [&](const std::vector<Tensor>& c, const std::vector<Tensor>& x) {
          GilHeld gil;
          const nb::tuple pair = nb::cast<nb::tuple>((*f)(from_tensors(c), from_tensors(x)));
          return flat::Step{to_tensors(nb::handle(pair[0]).ptr()), to_tensors(nb::handle(pair[1]).ptr())};
        };
        const std::vector<Tensor> c = to_tensors(carry.ptr()), x = to_tensors(sequences.ptr());
        std::optional<Dim> steps;
        if (!length.is_none()) steps = as_dim(length.ptr());
        const PythonCall call;
        flat::Step last;
        {
          GilReleased release;
          last = flat::scan(step, c, x, steps, reverse, std::source_location());
        }
        return nb::make_tuple(from_tensors(last.carry), from_tensors(last.outputs));
      },
      nb::arg("body"), nb::arg("carry"), nb::arg("sequences"), nb::arg("length").none() = nb::none(), nb::arg("reverse") = false);

  m.def(
      "memory_account",
      [](bool reset) {
        device::Device& d = engine::default_engine().device();
        nb::dict all;
        const auto add = [&](const char* name, device::Account& a) {
          nb::dict numbers;
          numbers["in_use"] = a.in_use();
          numbers["peak"] = a.peak();
          numbers["limit"] = a.limit();
          all[name] = numbers;
          if (reset) a.reset_peak();
        };
        add("device", d.memory());
        add("pinned", d.pinned_memory());
        add("host", device::host_account());
        return all;
      },
      nb::arg("reset") = false,
      "Bytes in use, at most so far, and the limit (0: none): of the engine's device, of host memory that copies to it reach, and of the "
      "host's account.");
  nb::class_<ThreadWork>(m, "ThreadWork",
                         "What this thread traces and records. `with work:` in another thread goes on with it, while this one waits.")
      .def(nb::init<>())
      .def("__enter__",
           [](nb::handle self) {
             nb::inst_ptr<ThreadWork>(self)->enter();
             return nb::borrow(self);
           })
      .def("__exit__", [](ThreadWork& w, nb::args) { w.leave(); })
      .def_prop_ro("at_start", &ThreadWork::at_start);

  m.def("is_tracing", [] { return frontend::thread_state.tracer != nullptr; });
  m.def("release_memory", [] {
    GilReleased release;
    release_memory();
  });
}

}  // namespace tandem::python
