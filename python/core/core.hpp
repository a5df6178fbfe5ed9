// What the parts of tandem._core share: Python's objects as operands and attributes, the user's line, and errors.
#pragma once
#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <deque>
#include <exception>
#include <optional>
#include <string_view>
#include <vector>

#include <tandem/dtype.hpp>
#include <tandem/tandem.hpp>

#include "base/fork.hpp"
#include "frontend/apply.hpp"

namespace tandem::python {

namespace nb = nanobind;
using frontend::Promotion;

// --- the interpreter's lock --------------------------------------------------------------------------------------------------------------
// Before 3.14 Python ends a daemon thread that wants its lock while the program ends, by unwinding it. C++ that is in the middle of
// something cannot be unwound so, and the process would abort: the thread stays here instead until the process is over, as in later
// Pythons.
template <class F> decltype(auto) unless_python_ends(F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (const abi::__forced_unwind&) {
    for (;;) pause();
  }
}

// While it lives, this thread is in the engine, and others of Python's run. A fork waits for the engine's part, but not for the lock, which
// the thread that forks has.
class GilReleased {
 public:
  GilReleased() : state_(PyEval_SaveThread()) {}
  ~GilReleased() {
    working_.reset();
    unless_python_ends([this] { PyEval_RestoreThread(state_); });
  }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  std::optional<Working> working_{Working::Thread::Caller};  // begins with the lock
  PyThreadState* state_;
};

// While it lives, this thread may use Python.
class GilHeld {
 public:
  GilHeld() : state_(unless_python_ends([] { return PyGILState_Ensure(); })) {}
  ~GilHeld() { PyGILState_Release(state_); }
  GilHeld(const GilHeld&) = delete;
  GilHeld& operator=(const GilHeld&) = delete;

 private:
  const Visiting visiting_;  // ends without the lock
  PyGILState_STATE state_;
};

// --- what the Python package gives to this module when it is imported (`configure`) ---------------------------------------------------
// Never released: an op may be called while the interpreter ends.
struct Hooks {
  PyObject* convert = nullptr;      // convert(object, dtype or None) -> Tensor: lists, arrays of unusual types, other libraries' objects
  PyObject* as_dtype = nullptr;     // as_dtype(object) -> one of `dtypes`
  PyObject* shape = nullptr;        // the class TensorShape, a tuple
  PyObject* index = nullptr;        // index(tensor, key) -> Tensor: keys that are more than numbers, slices, ... and None
  PyObject* raise_error = nullptr;  // raise_error(code, message, no_plan_fits): raises; the code is a number (ErrorCode)
  std::vector<PyObject*> dtypes;    // by the number of a DType
  std::string folder;               // in which the packages tandem and keras_tandem lie
};
extern Hooks hooks;
extern PyTypeObject* tensor_type;
extern PyTypeObject* variable_type;
extern PyTypeObject* dim_type;

// --- the user's line -------------------------------------------------------------------------------------------------------------------
// Of the innermost Python function that is not the library's own; nothing when there is none.
Location python_line();
// While it lives, nodes name the Python line that called, and C++'s own lines are not named; Ctrl-C is looked for.
class PythonCall {
 public:
  PythonCall();
  ~PythonCall();
  PythonCall(const PythonCall&) = delete;
  PythonCall& operator=(const PythonCall&) = delete;

 private:
  frontend::ThreadState before_;
};

// --- errors ----------------------------------------------------------------------------------------------------------------------------
// Makes the exception Python's current one. For functions that Python calls directly; those of nanobind have a translator that comes here.
void set_python_error(const std::exception_ptr& e);
[[noreturn]] void type_error(const std::string& text);

// --- objects ---------------------------------------------------------------------------------------------------------------------------
inline bool is_a(PyObject* o, PyTypeObject* type) { return Py_TYPE(o) == type || PyType_IsSubtype(Py_TYPE(o), type); }
inline const Tensor* as_tensor(PyObject* o) { return is_a(o, tensor_type) ? nb::inst_ptr<Tensor>(o) : nullptr; }
inline const Variable* as_variable(PyObject* o) { return is_a(o, variable_type) ? nb::inst_ptr<Variable>(o) : nullptr; }

DType as_dtype(PyObject* o);
nb::object from_dtype(DType t);
Dim as_dim(PyObject* o);  // an int, a Dim, or a traced tensor that was computed from extents
nb::object from_dim(const Dim& d);
Dims as_dims(PyObject* o);  // one, or a sequence, or a tensor of them
nb::object from_dims(const Dims& dims);
ir::Attr as_attr(PyObject* o, ir::AttrKind kind);

// Any object as a tensor; with a dtype, of that one.
Tensor to_tensor(PyObject* o, PyObject* dtype = nullptr);
nb::object from_tensor(Tensor t);  // None when it holds nothing
inline nb::object bytes_of(const std::string& s) { return nb::bytes(s.data(), s.size()); }
std::vector<Tensor> to_tensors(PyObject* sequence);
nb::list from_tensors(const std::vector<Tensor>& tensors);

// Operands of one call, with what they refer to. A few take no memory of their own: an eager op cannot afford it.
class Operands {
 public:
  Operands() = default;
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;
  void add(PyObject* o);
  void add_held(Tensor t) { push(hold(std::move(t))); }
  std::span<const Operand* const> all() const {
    return more_ ? std::span<const Operand* const>(more_->pointers) : std::span(few_pointers_, count_);
  }
  size_t size() const { return count_; }

 private:
  static constexpr size_t kFew = 4;
  struct More {
    std::deque<Operand> operands;
    std::vector<const Operand*> pointers;
  };
  void push(const Operand& o);
  const Tensor& hold(Tensor t);

  size_t count_ = 0;
  Operand few_[kFew];
  const Operand* few_pointers_[kFew];
  std::unique_ptr<More> more_;
  std::unique_ptr<std::deque<Tensor>> held_;
};

// A Python callable that C++ calls. Any thread may let go of it.
class Callback {
 public:
  explicit Callback(nb::handle f) : f_(f.inc_ref().ptr()) {}
  ~Callback();
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  PyObject* get() const { return f_; }
  void clear() { Py_CLEAR(f_); }
  // With the lock of Python.
  template <class... Arguments> nb::object operator()(const Arguments&... arguments) const {
    if (!f_) user_error("this function was collected by Python");
    const nb::object result = nb::steal(unless_python_ends([&] { return PyObject_CallFunctionObjArgs(f_, arguments.ptr()..., nullptr); }));
    if (!result.is_valid()) throw nb::python_error();
    return result;
  }

 private:
  PyObject* f_;
};
FlatFunction flat_function(std::shared_ptr<Callback> f);  // f(list of tensors) -> list of tensors
// The function that this thread is tracing owns the callback too, so that the cycle collector sees it: a host call of a model's method must
// not keep the model alive.
void keep_for_traced_function(std::shared_ptr<Callback> f);
std::vector<Spec> specs_of(nb::handle list);  // of pairs (dtype, dims); None is an empty list

// --- the parts -------------------------------------------------------------------------------------------------------------------------
void add_types(nb::module_& m);           // dtypes, Dim
void add_errors(nb::module_& m);          // the user's lines in generated code
void add_tensor(nb::module_& m);          // Tensor, to and from arrays
void add_ops(nb::module_& m);             // one callable for each row
void add_state(nb::module_& m);           // Variable, Tape
void add_functions(nb::module_& m);       // Function, control flow
void add_callbacks(nb::module_& m);       // custom_gradient, remat, host_call, EagerScope
void add_loop(nb::module_& m);            // StepLoop
void add_devices(nb::module_& m);         // devices, scopes, memory, placement
void add_devices_config(nb::module_& m);  // logical devices, threads
void add_profile(nb::module_& m);         // profiles
void add_data(nb::module_& m);            // Dataset, Iterator
void add_graphs(nb::module_& m);          // traced graphs as text
void add_forecast(nb::module_& m);        // steps planned for devices that are not there
void add_strings(nb::module_& m);         // tensors of strings

nb::list placement_rows(const FlatCallable& function);  // of explain(), as tuples

// An op as a Python operator calls it.
PyObject* call_binary(const ir::OpDef& op, PyObject* a, PyObject* b, Promotion promotion);

}  // namespace tandem::python
