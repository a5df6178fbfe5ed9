// Tensor: operators, reading, and memory shared with NumPy and other libraries.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>

#include <tandem/dlpack.hpp>
#include "core.hpp"
#include "frontend/memory.hpp"
#include "frontend/shape_values.hpp"
#include "frontend/tensor_impl.hpp"
#include "frontend/thread_state.hpp"

namespace tandem::python {
namespace {

const ir::OpDef& row(const char* name) { return frontend::row(name); }

// --- operators: slots of the type, since Python calls them without looking anything up ------------------------------------------------

PyObject* call_unary(const ir::OpDef& op, PyObject* x) {
  try {
    Operands operands;
    operands.add(x);
    const PythonCall call;
    Tensor result;
    {
      GilReleased release;
      result = frontend::call(op, operands.all());
    }
    return from_tensor(std::move(result)).release().ptr();
  } catch (...) {
    set_python_error(std::current_exception());
    return nullptr;
  }
}

#define TANDEM_BINARY_SLOT(slot, op)                    \
  PyObject* slot(PyObject* a, PyObject* b) {            \
    static const ir::OpDef& op_row = row(op);           \
    return call_binary(op_row, a, b, Promotion::Keras); \
  }
TANDEM_BINARY_SLOT(nb_add, "add")
TANDEM_BINARY_SLOT(nb_subtract, "subtract")
TANDEM_BINARY_SLOT(nb_multiply, "multiply")
TANDEM_BINARY_SLOT(nb_remainder, "remainder")
TANDEM_BINARY_SLOT(nb_floor_divide, "floor_divide")
TANDEM_BINARY_SLOT(nb_matmul, "matmul")
TANDEM_BINARY_SLOT(nb_and, "bitwise_and")
TANDEM_BINARY_SLOT(nb_or, "bitwise_or")
TANDEM_BINARY_SLOT(nb_xor, "bitwise_xor")
TANDEM_BINARY_SLOT(nb_lshift, "left_shift")
TANDEM_BINARY_SLOT(nb_rshift, "right_shift")
#undef TANDEM_BINARY_SLOT

PyObject* nb_power(PyObject* a, PyObject* b, PyObject*) {
  static const ir::OpDef& op = row("power");
  return call_binary(op, a, b, Promotion::Keras);
}

DType dtype_of_operand(PyObject* o, bool& known) {
  known = true;
  if (const Tensor* t = as_tensor(o)) return t->dtype();
  if (const Variable* v = as_variable(o)) return v->dtype();
  known = false;
  return DType::F32;
}

// True division of integers is floating: of 8 and 16 bits in float32, of more in float64.
PyObject* nb_true_divide(PyObject* a, PyObject* b) {
  static const ir::OpDef& op = row("divide");
  try {
    bool known = false;
    DType t = dtype_of_operand(a, known);
    if (!known) t = dtype_of_operand(b, known);
    if (known && !is_float(t)) {
      const DType wide = size_of(t) > 2 ? DType::F64 : DType::F32;
      const nb::object of_a = from_tensor(to_tensor(a, from_dtype(t).ptr()).cast(wide));
      const nb::object of_b = from_tensor(to_tensor(b, from_dtype(t).ptr()).cast(wide));
      return call_binary(op, of_a.ptr(), of_b.ptr(), Promotion::Keras);
    }
  } catch (...) {
    set_python_error(std::current_exception());
    return nullptr;
  }
  return call_binary(op, a, b, Promotion::Keras);
}

PyObject* nb_negative(PyObject* x) {
  static const ir::OpDef& op = row("negative");
  return call_unary(op, x);
}
PyObject* nb_absolute(PyObject* x) {
  static const ir::OpDef& op = row("absolute");
  return call_unary(op, x);
}
PyObject* nb_invert(PyObject* x) {
  static const ir::OpDef& op = row("bitwise_not");
  return call_unary(op, x);
}
PyObject* nb_positive(PyObject* x) { return Py_NewRef(x); }

PyObject* compare(PyObject* a, PyObject* b, int how) {
  static const ir::OpDef* const rows[] = {&row("less"),      &row("less_equal"), &row("equal"),
                                          &row("not_equal"), &row("greater"),    &row("greater_equal")};
  if (b == Py_None) {
    if (how == Py_EQ) Py_RETURN_FALSE;
    if (how == Py_NE) Py_RETURN_TRUE;
  }
  return call_binary(*rows[how], a, b, Promotion::Keras);
}

// --- reading -----------------------------------------------------------------------------------------------------------------------------

const Tensor& self_tensor(PyObject* self) { return *nb::inst_ptr<Tensor>(self); }

// Python's own message would not say what to do.
void check_readable(const Tensor& t, const char* what) {
  if (t.is_traced())
    user_error(what, ": ", t.type_str(),
               " has no value while a function is traced\n  hint: tf.cond, tf.while_loop and tf.function's own if, while and for take "
               "tensors; tf.print and tf.py_function see values");
}

template <class F> auto guarded(F&& f, decltype(f()) failed) -> decltype(f()) {
  try {
    return f();
  } catch (...) {
    set_python_error(std::current_exception());
    return failed;
  }
}

// The one number of a tensor that has numbers, also while a function is traced.
Tensor scalar_of(const Tensor& t) {
  if (t.rank() == 0) return t;
  const frontend::EagerScope eager;
  return t.reshape({});
}

int tensor_bool(PyObject* self) {
  return guarded(
      [&] {
        const Tensor& t = self_tensor(self);
        check_readable(t, "using a tensor as a Python bool");
        if (t.size() != 1)
          throw nb::value_error("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()");
        if (is_string(t)) return strings_of(t)[0].empty() ? 0 : 1;
        return scalar_of(t).item<bool>() ? 1 : 0;
      },
      -1);
}

Py_ssize_t tensor_length(PyObject* self) {
  return guarded(
      [&]() -> Py_ssize_t {
        const Dims dims = self_tensor(self).dims();
        if (dims.empty()) throw nb::type_error("Scalar tensor has no `len()`");
        if (!dims[0].is_const())
          throw nb::type_error("len() of a tensor whose first extent is not known while tracing; use tf.shape(x)[0]");
        return dims[0].value();
      },
      -1);
}

nb::object number_of(const Tensor& t) {
  check_readable(t, "reading a tensor");
  if (t.size() != 1) throw nb::type_error("only length-1 arrays can be converted to Python scalars");
  if (is_string(t)) return bytes_of(strings_of(t)[0]);
  const Tensor one = scalar_of(t);
  if (one.dtype() == DType::Bool) return nb::bool_(one.item<bool>());
  if (is_float(one.dtype())) return nb::float_(one.item<double>());
  return one.dtype() == DType::U64 ? nb::int_(one.item<uint64_t>()) : nb::int_(one.item<int64_t>());
}

PyObject* tensor_int(PyObject* self) {
  return guarded([&] { return PyNumber_Long(number_of(self_tensor(self)).ptr()); }, nullptr);
}
PyObject* tensor_float(PyObject* self) {
  return guarded([&] { return PyNumber_Float(number_of(self_tensor(self)).ptr()); }, nullptr);
}
PyObject* tensor_index(PyObject* self) {
  return guarded(
      [&]() -> PyObject* {
        const Tensor& t = self_tensor(self);
        if (!is_int(t.dtype())) throw nb::type_error("only integer scalar tensors can be converted to a scalar index");
        if (t.is_traced()) {  // an extent that is a number after all
          const Dim d = as_dim(self);
          if (d.is_const()) return nb::int_(d.value()).release().ptr();
        }
        return number_of(t).release().ptr();
      },
      nullptr);
}

// --- indexing: numbers, slices, ... and None here; the rest in Python -------------------------------------------------------------------

bool as_index(PyObject* key, std::vector<Index>& out) {
  if (PyBool_Check(key)) return false;
  if (PyLong_Check(key)) {
    out.emplace_back(static_cast<int64_t>(PyLong_AsLongLong(key)));
    return !PyErr_Occurred();
  }
  if (key == Py_None) return out.emplace_back(newaxis), true;
  if (key == Py_Ellipsis) return out.emplace_back(ellipsis), true;
  if (!PySlice_Check(key)) return false;
  const auto* s = reinterpret_cast<PySliceObject*>(key);
  const auto bound = [](PyObject* o) -> std::optional<Dim> { return o == Py_None ? std::nullopt : std::optional(as_dim(o)); };
  for (PyObject* o : {s->start, s->stop, s->step})
    if (const Tensor* t = o == Py_None ? nullptr : as_tensor(o); t && t->is_traced() && !frontend::try_dims_of(*t)) return false;
  const std::optional<Dim> step = bound(s->step);
  if (step && !step->is_const()) return false;
  out.emplace_back(Slice(bound(s->start), bound(s->stop), step ? std::optional(step->value()) : std::nullopt));
  return true;
}

PyObject* subscript(PyObject* self, PyObject* key) {
  try {
    std::vector<Index> indices;
    bool simple = true;
    if (PyTuple_Check(key)) {
      for (Py_ssize_t i = 0; simple && i < PyTuple_GET_SIZE(key); ++i) simple = as_index(PyTuple_GET_ITEM(key, i), indices);
    } else {
      simple = as_index(key, indices);
    }
    if (PyErr_Occurred()) return nullptr;
    if (!simple || indices.size() > 8) return PyObject_CallFunctionObjArgs(hooks.index, self, key, nullptr);
    if (indices.empty()) return Py_NewRef(self);
    indices.resize(8);
    const PythonCall call;
    Tensor result;
    {
      GilReleased release;
      const auto& i = indices;
      result = self_tensor(self)(i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7]);
    }
    return from_tensor(std::move(result)).release().ptr();
  } catch (...) {
    set_python_error(std::current_exception());
    return nullptr;
  }
}

// What tensors and variables have alike.
#define TANDEM_OPERATOR_SLOTS                                                                                                       \
  {Py_nb_add, reinterpret_cast<void*>(nb_add)}, {Py_nb_subtract, reinterpret_cast<void*>(nb_subtract)},                             \
      {Py_nb_multiply, reinterpret_cast<void*>(nb_multiply)}, {Py_nb_remainder, reinterpret_cast<void*>(nb_remainder)},             \
      {Py_nb_power, reinterpret_cast<void*>(nb_power)}, {Py_nb_negative, reinterpret_cast<void*>(nb_negative)},                     \
      {Py_nb_positive, reinterpret_cast<void*>(nb_positive)}, {Py_nb_absolute, reinterpret_cast<void*>(nb_absolute)},               \
      {Py_nb_invert, reinterpret_cast<void*>(nb_invert)}, {Py_nb_and, reinterpret_cast<void*>(nb_and)},                             \
      {Py_nb_or, reinterpret_cast<void*>(nb_or)}, {Py_nb_xor, reinterpret_cast<void*>(nb_xor)},                                     \
      {Py_nb_floor_divide, reinterpret_cast<void*>(nb_floor_divide)}, {Py_nb_true_divide, reinterpret_cast<void*>(nb_true_divide)}, \
      {Py_nb_matrix_multiply, reinterpret_cast<void*>(nb_matmul)}, {                                                                \
    Py_tp_richcompare, reinterpret_cast<void*>(compare)                                                                             \
  }

PyType_Slot slots[] = {
    TANDEM_OPERATOR_SLOTS,
    {Py_nb_lshift, reinterpret_cast<void*>(nb_lshift)},
    {Py_nb_rshift, reinterpret_cast<void*>(nb_rshift)},
    {Py_nb_bool, reinterpret_cast<void*>(tensor_bool)},
    {Py_nb_int, reinterpret_cast<void*>(tensor_int)},
    {Py_nb_float, reinterpret_cast<void*>(tensor_float)},
    {Py_nb_index, reinterpret_cast<void*>(tensor_index)},
    {Py_mp_length, reinterpret_cast<void*>(tensor_length)},
    {Py_mp_subscript, reinterpret_cast<void*>(subscript)},
    {0, nullptr},
};
PyType_Slot variable_slots[] = {TANDEM_OPERATOR_SLOTS, {0, nullptr}};
#undef TANDEM_OPERATOR_SLOTS

// --- memory of others --------------------------------------------------------------------------------------------------------------------

std::optional<DType> dtype_of_format(const char* format, Py_ssize_t bytes) {
  if (!format || !format[0]) return DType::U8;
  if (format[0] == '@' || format[0] == '=' || format[0] == '<') ++format;
  if (format[1]) return std::nullopt;
  switch (format[0]) {
    case '?': return DType::Bool;
    case 'e': return DType::F16;
    case 'f': return DType::F32;
    case 'd': return DType::F64;
    case 'b': return DType::I8;
    case 'B': return DType::U8;
    case 'h': return DType::I16;
    case 'H': return DType::U16;
    case 'i':
    case 'l':
    case 'q': return bytes == 4 ? DType::I32 : DType::I64;
    case 'I':
    case 'L':
    case 'Q': return bytes == 4 ? DType::U32 : DType::U64;
    default: return std::nullopt;
  }
}

// What offers Python's buffer protocol. With `shares`, its memory is used as it is and it stays alive; it must not be written then.
nb::object from_buffer(nb::handle o, bool shares, nb::handle as) {
  const PythonCall call;
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(o.ptr(), view.get(), PyBUF_STRIDED_RO | PyBUF_FORMAT) != 0) throw nb::python_error();
  struct Release {
    void operator()(Py_buffer* b) const {
      PyBuffer_Release(b);
      delete b;
    }
  };
  std::unique_ptr<Py_buffer, Release> held(view.release());
  std::optional<DType> dtype = dtype_of_format(held->format, held->itemsize);
  if (!as.is_none()) {
    const DType wanted = as_dtype(as.ptr());
    if (static_cast<Py_ssize_t>(size_of(wanted)) != held->itemsize)
      user_error("from_buffer: elements of ", held->itemsize, " bytes are not ", name(wanted));
    dtype = wanted;
  }
  if (!dtype) return nb::none();
  Shape shape;
  Strides strides;
  bool aligned = reinterpret_cast<uintptr_t>(held->buf) % size_of(*dtype) == 0;
  for (int i = 0; i < held->ndim; ++i) {
    shape.push_back(held->shape[i]);
    aligned &= held->strides[i] % held->itemsize == 0;
    strides.push_back(held->strides[i] / held->itemsize);
  }
  if (!aligned) user_error("from_buffer: the elements do not lie at multiples of their size\n  hint: numpy.ascontiguousarray");
  const bool is_dense = PyBuffer_IsContiguous(held.get(), 'C');
  if (!shares && is_dense) return from_tensor(Tensor::from_bytes(held->buf, *dtype, shape));
  Py_buffer* raw = held.release();
  Tensor t = Tensor::view(raw->buf, *dtype, shape, strides, [raw] {
    if (!Py_IsInitialized()) return;
    GilHeld gil;
    Release()(raw);
  });
  if (!shares) {
    GilReleased release;
    t = frontend::concrete(frontend::dense_copy(frontend::numbers_of(t, "from_buffer")));
  }
  return from_tensor(std::move(t));
}

// The bytes into memory that Python made for it: `.numpy()`, which the caller may write.
void copy_into(const Tensor& t, nb::handle to) {
  check_readable(t, "numpy()");
  Py_buffer view;
  if (PyObject_GetBuffer(to.ptr(), &view, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
  const std::unique_ptr<Py_buffer, decltype(&PyBuffer_Release)> held(&view, PyBuffer_Release);
  const size_t bytes = static_cast<size_t>(t.size()) * size_of(t.dtype());
  if (static_cast<size_t>(view.len) != bytes) user_error("copy_into: ", bytes, " bytes do not go into ", view.len);
  frontend::read(frontend::numbers_of(t, "numpy()"), t.dtype(), view.buf);
}

// Python's view of a tensor's memory, read-only: whatever looks at it keeps the tensor alive.
const char* format_of(DType t) {
  switch (t) {
    case DType::Bool: return "?";
    case DType::U8: return "B";
    case DType::U16: return "H";
    case DType::U32: return "I";
    case DType::U64: return "Q";
    case DType::I8: return "b";
    case DType::I16: return "h";
    case DType::I32: return "i";
    case DType::I64: return "q";
    case DType::F16: return "e";
    case DType::BF16: return "H";
    case DType::F32: return "f";
    case DType::F64: return "d";
  }
  return "B";
}

struct Exported {
  Tensor tensor;
  std::vector<Py_ssize_t> shape, strides;
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  try {
    const Tensor& t = self_tensor(self);
    check_readable(t, "the buffer of a tensor");
    if (flags & PyBUF_WRITABLE) {
      PyErr_SetString(PyExc_BufferError, "a tensor's memory is read-only; use .numpy() for a copy");
      return -1;
    }
    const bool wants_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
    auto e = std::make_unique<Exported>(Exported{wants_strides ? t : t.contiguous(), {}, {}});
    const Shape shape = e->tensor.shape();
    const auto size = static_cast<Py_ssize_t>(size_of(e->tensor.dtype()));
    const Strides strides = e->tensor.strides();
    Py_ssize_t count = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
      e->shape.push_back(shape[i]);
      e->strides.push_back(strides[i] * size);
      count *= shape[i];
    }
    view->buf = const_cast<void*>(e->tensor.raw_data());
    view->obj = Py_NewRef(self);
    view->len = count * size;
    view->itemsize = size;
    view->readonly = 1;
    view->ndim = static_cast<int>(shape.size());
    view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format_of(e->tensor.dtype())) : nullptr;
    view->shape = flags & PyBUF_ND ? e->shape.data() : nullptr;
    view->strides = wants_strides ? e->strides.data() : nullptr;
    view->suboffsets = nullptr;
    view->internal = e.release();
    return 0;
  } catch (...) {
    set_python_error(std::current_exception());
    return -1;
  }
}
void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Exported*>(view->internal); }

// --- DLPack ------------------------------------------------------------------------------------------------------------------------------

template <class Managed> void delete_capsule(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;  // taken over: renamed by the receiver
  auto* m = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (m && m->deleter) m->deleter(m);
}

nb::object to_dlpack(const Tensor& t, bool versioned) {
  check_readable(t, "__dlpack__");
  PyObject* capsule =
      versioned ? PyCapsule_New(dlpack::export_versioned(t), "dltensor_versioned",
                                [](PyObject* c) { delete_capsule<dlpack::ManagedVersioned>(c, "dltensor_versioned"); })
                : PyCapsule_New(dlpack::export_tensor(t), "dltensor", [](PyObject* c) { delete_capsule<dlpack::Managed>(c, "dltensor"); });
  if (!capsule) throw nb::python_error();
  return nb::steal(capsule);
}

Tensor from_dlpack(nb::handle capsule) {
  PyObject* c = capsule.ptr();
  if (PyCapsule_IsValid(c, "dltensor_versioned")) {
    Tensor t = dlpack::import_tensor(static_cast<dlpack::ManagedVersioned*>(PyCapsule_GetPointer(c, "dltensor_versioned")));
    PyCapsule_SetName(c, "used_dltensor_versioned");
    return t;
  }
  if (!PyCapsule_IsValid(c, "dltensor")) throw nb::type_error("from_dlpack: this capsule holds no tensor, or was used before");
  Tensor t = dlpack::import_tensor(static_cast<dlpack::Managed*>(PyCapsule_GetPointer(c, "dltensor")));
  PyCapsule_SetName(c, "used_dltensor");
  return t;
}

}  // namespace

// One operand of an operator decides which objects the other may be: what no tensor can be made of is left to the other's own operator.
PyObject* call_binary(const ir::OpDef& op, PyObject* a, PyObject* b, Promotion promotion) {
  try {
    Operands operands;
    // An array, a list or another library's object takes the type of the tensor beside it.
    bool known_a = false, known_b = false;
    const DType type_a = dtype_of_operand(a, known_a), type_b = dtype_of_operand(b, known_b);
    const auto add = [&](PyObject* o, bool known, bool other_known, DType other) {
      if (known || !other_known || PyLong_CheckExact(o) || PyFloat_CheckExact(o)) return operands.add(o);
      if (PyBool_Check(o) && other != DType::Bool) return operands.add(o);
      const nb::object converted = from_tensor(to_tensor(o, from_dtype(other).ptr()));
      operands.add_held(*as_tensor(converted.ptr()));
    };
    add(a, known_a, known_b, type_b);
    add(b, known_b, known_a, type_a);
    const PythonCall call;
    Tensor result;
    {
      GilReleased release;
      result = frontend::call(op, operands.all(), frontend::no_attrs(), {}, promotion);
    }
    return from_tensor(std::move(result)).release().ptr();
  } catch (...) {
    set_python_error(std::current_exception());
    // Another class may know what to do with a tensor.
    if (PyErr_ExceptionMatches(PyExc_TypeError) && !(is_a(a, tensor_type) && is_a(b, tensor_type)) && !PyLong_Check(a) &&
        !PyFloat_Check(a) && !PyLong_Check(b) && !PyFloat_Check(b)) {
      PyObject* other = is_a(a, tensor_type) || is_a(a, variable_type) ? b : a;
      if (Py_TYPE(other)->tp_as_number && PyType_HasFeature(Py_TYPE(other), Py_TPFLAGS_HEAPTYPE)) {
        PyErr_Clear();
        Py_RETURN_NOTIMPLEMENTED;
      }
    }
    return nullptr;
  }
}

PyType_Slot* operator_slots_of_variables() { return variable_slots; }

void add_tensor(nb::module_& m) {
  nb::class_<Tensor> tensor(m, "Tensor", nb::dynamic_attr(), nb::is_weak_referenceable(), nb::type_slots(slots));
  tensor_type = reinterpret_cast<PyTypeObject*>(tensor.ptr());
  tensor_type->tp_as_buffer->bf_getbuffer = get_buffer;
  tensor_type->tp_as_buffer->bf_releasebuffer = release_buffer;
  tensor.def_prop_ro("shape", [](const Tensor& t) {
    nb::object tuple = nb::steal(PyTuple_New(t.rank()));
    const Dims dims = t.dims();
    for (size_t i = 0; i < dims.size(); ++i)
      PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i),
                       dims[i].is_const() ? PyLong_FromLongLong(dims[i].value()) : Py_NewRef(Py_None));
    nb::object shape = nb::steal(PyObject_CallOneArg(hooks.shape, tuple.ptr()));
    // Where an extent prints as None, the shape still knows which one it is: set_shape(x.shape) can use it.
    if (std::ranges::any_of(dims, [](const Dim& d) { return !d.is_const(); })) shape.attr("_symbols") = from_dims(dims);
    return shape;
  });
  tensor.def_prop_ro("dtype", [](const Tensor& t) { return from_dtype(t.dtype()); });
  tensor.def_prop_ro("ndim", &Tensor::rank);
  tensor.def_prop_ro("dims", [](const Tensor& t) { return from_dims(t.dims()); }, "The extents; Dim objects where they are not known yet.");
  tensor.def_prop_ro("is_traced", &Tensor::is_traced);
  tensor.def_prop_ro("device", &Tensor::device,
                     "The engine's name of the device that it belongs to; while a function is traced, that of the scope it was made in.");
  tensor.def("copy_into", copy_into);
  tensor.def("item", [](const Tensor& t) { return number_of(t); });
  tensor.def("dlpack_capsule", to_dlpack, nb::arg("versioned"));
  tensor.def("__dlpack_device__", [](const Tensor&) { return nb::make_tuple(1, 0); });
  tensor.def(
      "identity", [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.impl()); },
      "A number that names the value, not the Python object.");
  m.def("from_buffer", from_buffer, nb::arg("object"), nb::arg("shares") = false, nb::arg("dtype").none() = nb::none());
  m.def("from_dlpack", from_dlpack);
}

}  // namespace tandem::python
