// Python's objects as operands, attributes and extents, and back.
#include "core.hpp"

#include <cmath>
#include <cstring>
#include <string>
#include <unordered_set>

#include "base/text.hpp"
#include "frontend/shape_values.hpp"

namespace tandem::python {

Hooks hooks;
PyTypeObject* tensor_type = nullptr;
PyTypeObject* variable_type = nullptr;
PyTypeObject* dim_type = nullptr;

void type_error(const std::string& text) { throw nb::type_error(text.c_str()); }

// --- types -------------------------------------------------------------------------------------------------------------------------------

DType as_dtype(PyObject* o) {
  nb::object known = nb::borrow(o);
  if (!hooks.dtypes.empty() && Py_TYPE(o) != Py_TYPE(hooks.dtypes[0])) known = nb::steal(PyObject_CallOneArg(hooks.as_dtype, o));
  if (!known.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < hooks.dtypes.size(); ++i)
    if (known.ptr() == hooks.dtypes[i]) return static_cast<DType>(i);
  type_error(cat("a tensor of numbers cannot be of type ", nb::str(known).c_str()));
}

nb::object from_dtype(DType t) {
  if (t == kString) return nb::steal(PyObject_CallFunction(hooks.as_dtype, "s", "string"));
  return nb::borrow(hooks.dtypes.at(static_cast<size_t>(t)));
}

// --- extents -----------------------------------------------------------------------------------------------------------------------------

nb::object from_dim(const Dim& d) {
  if (d.is_const()) return nb::int_(d.value());
  return nb::cast(d);
}

nb::object from_dims(const Dims& dims) {
  nb::object t = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(dims.size())));
  for (size_t i = 0; i < dims.size(); ++i) PyTuple_SET_ITEM(t.ptr(), static_cast<Py_ssize_t>(i), from_dim(dims[i]).release().ptr());
  return t;
}

Dim as_dim(PyObject* o) {
  if (PyLong_Check(o)) {
    const int64_t value = PyLong_AsLongLong(o);
    if (value == -1 && PyErr_Occurred()) throw nb::python_error();
    return value;
  }
  if (is_a(o, dim_type)) return *nb::inst_ptr<Dim>(o);
  if (const Tensor* t = as_tensor(o); t && t->is_traced()) {
    const Dims dims = frontend::dims_of(*t);
    if (dims.size() != 1) type_error(cat("an extent must be one number, not ", t->type_str()));
    return dims[0];
  }
  if (o == Py_None) return -1;
  nb::object index = nb::steal(PyNumber_Index(o));
  if (!index.is_valid()) throw nb::python_error();
  return as_dim(index.ptr());
}

Dims as_dims(PyObject* o) {
  if (const Tensor* t = as_tensor(o)) {
    if (t->is_traced()) return frontend::dims_of(*t);
    Dims dims;
    for (const int64_t n : t->to_vector<int64_t>()) dims.emplace_back(n);
    return dims;
  }
  if (PyLong_Check(o) || is_a(o, dim_type)) return {as_dim(o)};
  nb::object items = nb::steal(PySequence_Fast(o, "a shape is a number, or a sequence of them"));
  if (!items.is_valid()) {
    PyErr_Clear();
    return {as_dim(o)};
  }
  Dims dims;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i) dims.push_back(as_dim(PySequence_Fast_GET_ITEM(items.ptr(), i)));
  return dims;
}

// --- attributes --------------------------------------------------------------------------------------------------------------------------

namespace {

int64_t as_int(PyObject* o) {
  const Dim d = as_dim(o);
  if (!d.is_const()) user_error("a number is wanted where the extent ", d, " was given, which is not known while tracing");
  return d.value();
}

double as_float(PyObject* o) {
  const double value = PyFloat_AsDouble(o);
  if (value == -1.0 && PyErr_Occurred()) throw nb::python_error();
  return value;
}

template <class T> std::vector<T> as_list(PyObject* o, T (*one)(PyObject*)) {
  if (PyLong_Check(o) || PyFloat_Check(o)) return {one(o)};
  nb::object items = nb::steal(PySequence_Fast(o, "a sequence of numbers is wanted"));
  if (!items.is_valid()) {
    PyErr_Clear();
    return {one(o)};
  }
  std::vector<T> list;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i) list.push_back(one(PySequence_Fast_GET_ITEM(items.ptr(), i)));
  return list;
}

}  // namespace

ir::Attr as_attr(PyObject* o, ir::AttrKind kind) {
  if (o == Py_None) return {};
  switch (kind) {
    case ir::AttrKind::Bool: {
      const int truth = PyObject_IsTrue(o);
      if (truth < 0) throw nb::python_error();
      return truth == 1;
    }
    case ir::AttrKind::Int: return as_int(o);
    case ir::AttrKind::Float: return as_float(o);
    case ir::AttrKind::String: {
      Py_ssize_t size = 0;
      const char* text = PyUnicode_AsUTF8AndSize(o, &size);
      if (!text) throw nb::python_error();
      return std::string(text, static_cast<size_t>(size));
    }
    case ir::AttrKind::DType: return as_dtype(o);
    case ir::AttrKind::Ints: return as_list(o, as_int);
    case ir::AttrKind::Floats: return as_list(o, as_float);
    case ir::AttrKind::Shape: return as_dims(o);
    default: type_error("this attribute cannot be given from Python");
  }
}

// --- tensors -----------------------------------------------------------------------------------------------------------------------------

Tensor to_tensor(PyObject* o, PyObject* dtype) {
  if (!dtype || dtype == Py_None) {
    if (const Tensor* t = as_tensor(o)) return *t;
    if (const Variable* v = as_variable(o)) return v->value();
  }
  nb::object made = nb::steal(PyObject_CallFunctionObjArgs(hooks.convert, o, dtype ? dtype : Py_None, nullptr));
  if (!made.is_valid()) throw nb::python_error();
  const Tensor* t = as_tensor(made.ptr());
  if (!t) type_error(cat("not a tensor of numbers: ", nb::repr(made).c_str()));
  return *t;
}

nb::object from_tensor(Tensor t) { return t.defined() ? nb::cast(std::move(t)) : nb::none(); }

std::vector<Tensor> to_tensors(PyObject* sequence) {
  nb::object items = nb::steal(PySequence_Fast(sequence, "a sequence of tensors is wanted"));
  if (!items.is_valid()) throw nb::python_error();
  std::vector<Tensor> tensors;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.ptr(), i);
    tensors.push_back(item == Py_None ? Tensor() : to_tensor(item));
  }
  return tensors;
}

nb::list from_tensors(const std::vector<Tensor>& tensors) {
  nb::list list;
  for (const Tensor& t : tensors) list.append(from_tensor(t));
  return list;
}

void Operands::push(const Operand& o) {
  if (count_ < kFew) {
    few_[count_] = o;
    few_pointers_[count_] = &few_[count_];
  } else {
    if (!more_) {
      more_ = std::make_unique<More>();
      more_->pointers.assign(few_pointers_, few_pointers_ + kFew);
    }
    more_->pointers.push_back(&more_->operands.emplace_back(o));
  }
  ++count_;
}

const Tensor& Operands::hold(Tensor t) {
  if (!held_) held_ = std::make_unique<std::deque<Tensor>>();
  return held_->emplace_back(std::move(t));
}

void Operands::add(PyObject* o) {
  if (const Tensor* t = as_tensor(o)) return push(*t);
  if (const Variable* v = as_variable(o)) return push(*v);
  if (o == Py_None) return push({});
  if (PyBool_Check(o)) return push(o == Py_True);
  if (PyLong_CheckExact(o)) {
    int overflow = 0;
    const int64_t n = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow) return push(n);
  } else if (PyFloat_CheckExact(o)) {
    return push(PyFloat_AS_DOUBLE(o));
  }
  push(hold(to_tensor(o)));
}

// --- callables ---------------------------------------------------------------------------------------------------------------------------

Callback::~Callback() {
  if (!f_ || !Py_IsInitialized()) return;
  GilHeld gil;
  Py_CLEAR(f_);
}

FlatFunction flat_function(std::shared_ptr<Callback> f) {
  return [f = std::move(f)](const std::vector<Tensor>& in) {
    GilHeld gil;
    return to_tensors((*f)(from_tensors(in)).ptr());
  };
}

}  // namespace tandem::python
