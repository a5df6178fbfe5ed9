// One Python callable for each row of the op table: op(operands…, attributes…). Attributes may be given by position behind the operands.
#include "core.hpp"

#include <structmember.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/text.hpp"
#include "ops/callable.hpp"
#include "ops/table.hpp"

namespace tandem::python {
namespace {

// What a call looks up, made once for each row.
struct Row {
  const ir::OpDef* op;
  ir::Attrs defaults;  // complete; only usable when no attribute must be given
  bool must_give = false;
  std::vector<PyObject*> operand_names, attribute_names;  // interned
  std::string doc;
  explicit Row(const ir::OpDef& o) : op(&o) {
    for (const auto& operand : o.signature.operands) operand_names.push_back(PyUnicode_InternFromString(operand.name.c_str()));
    for (const auto& a : o.signature.attributes) {
      attribute_names.push_back(PyUnicode_InternFromString(a.name.c_str()));
      must_give |= a.required;
      defaults.set(a.name, a.default_value);
    }
    doc = cat(o.name, o.sig, "\n\n", o.doc);
  }
};

struct OpObject {
  PyObject_HEAD;
  vectorcallfunc vectorcall;
  const Row* row;
  Promotion promotion;
};

bool is_variadic(const ir::OpDef& op) { return !op.signature.operands.empty() && op.signature.operands.back().variadic; }

size_t place_of(const std::vector<PyObject*>& names, PyObject* name) {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return i;
  for (size_t i = 0; i < names.size(); ++i)
    if (PyUnicode_Compare(names[i], name) == 0) return i;
  return names.size();
}

void add_all(Operands& operands, PyObject* sequence) {
  nb::object items = nb::steal(PySequence_Fast(sequence, "a sequence of tensors is wanted"));
  if (!items.is_valid()) throw nb::python_error();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i) operands.add(PySequence_Fast_GET_ITEM(items.ptr(), i));
}

PyObject* results_of(const ir::OpDef& op, std::vector<Tensor>& results) {
  if (results.size() == 1 && op.signature.results.size() <= 1 && op.name != "split" && op.name != "unstack")
    return from_tensor(std::move(results[0])).release().ptr();
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
  for (size_t i = 0; i < results.size(); ++i)
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), from_tensor(std::move(results[i])).release().ptr());
  return tuple.release().ptr();
}

PyObject* call_op(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
  const auto* object = reinterpret_cast<OpObject*>(self);
  const Row& row = *object->row;
  const ir::OpDef& op = *row.op;
  try {
    const auto count = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
    const size_t wanted = row.operand_names.size();
    Operands operands;
    ir::Attrs given;
    const ir::Attrs* attrs = &row.defaults;
    const size_t named = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
    if (count == wanted && named == 0 && !row.must_give && !is_variadic(op)) [[likely]] {
      for (size_t i = 0; i < count; ++i) operands.add(args[i]);
    } else {
      std::vector<PyObject*> operand_values(wanted), attribute_values(row.attribute_names.size());
      if (count > wanted + attribute_values.size())
        type_error(cat(op.name, op.sig, ": takes ", wanted + attribute_values.size(), " arguments, got ", count));
      for (size_t i = 0; i < count; ++i) (i < wanted ? operand_values[i] : attribute_values[i - wanted]) = args[i];
      for (size_t i = 0; i < named; ++i) {
        PyObject* name = PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i));
        const size_t at_operand = place_of(row.operand_names, name), at_attribute = place_of(row.attribute_names, name);
        if (at_operand == wanted && at_attribute == attribute_values.size())
          type_error(cat(op.name, op.sig, ": has no argument '", PyUnicode_AsUTF8(name), "'"));
        PyObject*& slot = at_operand < wanted ? operand_values[at_operand] : attribute_values[at_attribute];
        if (slot) type_error(cat(op.name, ": argument '", PyUnicode_AsUTF8(name), "' is given twice"));
        slot = args[count + i];
      }
      for (size_t i = 0; i < wanted; ++i) {
        const auto& o = op.signature.operands[i];
        if (!operand_values[i]) {
          if (!o.optional) type_error(cat(op.name, op.sig, ": operand '", o.name, "' is missing"));
          operands.add(Py_None);
        } else if (o.variadic) {
          add_all(operands, operand_values[i]);
        } else {
          operands.add(operand_values[i]);
        }
      }
      if (row.must_give || std::ranges::any_of(attribute_values, [](PyObject* v) { return v != nullptr; })) {
        for (size_t i = 0; i < attribute_values.size(); ++i) {
          const auto& a = op.signature.attributes[i];
          if (!attribute_values[i] && a.required) type_error(cat(op.name, op.sig, ": attribute '", a.name, "' is missing"));
          given.set(a.name, attribute_values[i] ? as_attr(attribute_values[i], a.kind) : a.default_value);
        }
        given = ir::complete_attrs(op, given);
        attrs = &given;
      }
    }
    const PythonCall call;
    const bool is_single = op.signature.results.size() == 1 && op.signature.results[0] != "custom";
    if (is_single && op.name != "split" && op.name != "unstack") {
      Tensor result;
      {
        GilReleased release;
        result = frontend::call(op, operands.all(), *attrs, {}, object->promotion);
      }
      return from_tensor(std::move(result)).release().ptr();
    }
    std::vector<Tensor> results;
    {
      GilReleased release;
      results = frontend::call_all(op, operands.all(), *attrs, {}, object->promotion);
    }
    return results_of(op, results);
  } catch (...) {
    set_python_error(std::current_exception());
    return nullptr;
  }
}

PyObject* op_name(PyObject* self, void*) {
  const std::string_view name = reinterpret_cast<OpObject*>(self)->row->op->name;
  return PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
}
PyObject* op_doc(PyObject* self, void*) { return PyUnicode_FromString(reinterpret_cast<OpObject*>(self)->row->doc.c_str()); }
PyObject* op_repr(PyObject* self) {
  const ir::OpDef& op = *reinterpret_cast<OpObject*>(self)->row->op;
  return PyUnicode_FromString(cat("<op ", op.name, op.sig, ">").c_str());
}

PyGetSetDef properties[] = {{"__name__", op_name, nullptr, nullptr, nullptr},
                            {"__doc__", op_doc, nullptr, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(OpObject, vectorcall), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyType_Slot op_slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                          {Py_tp_repr, reinterpret_cast<void*>(op_repr)},
                          {Py_tp_getset, properties},
                          {Py_tp_members, members},
                          {0, nullptr}};
PyType_Spec op_spec = {"tandem._core.Op", sizeof(OpObject), 0,
                       Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, op_slots};

}  // namespace

void add_ops(nb::module_& m) {
  auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&op_spec));
  if (!type) throw nb::python_error();
  m.attr("Op") = nb::borrow(reinterpret_cast<PyObject*>(type));
  struct Space {
    const char* name;
    Promotion promotion;
    const char* doc;
  };
  std::map<const ir::OpDef*, const Row*> rows;
  for (const Space& s :
       {Space{"ops", Promotion::Native, "All ops; operands are promoted as NumPy does."},
        Space{"keras_ops", Promotion::Keras, "All ops; operands of different types never meet in 64 bits, as Keras wants it."},
        Space{"strict_ops", Promotion::Strict, "All ops; tensors of different types are an error, as TensorFlow wants it."}}) {
    nb::module_ space = m.def_submodule(s.name, s.doc);
    for (const ir::OpDef* op : ops::table().all()) {
      if (!ops::is_callable(*op)) continue;
      const Row*& row = rows[op];
      if (!row) row = new Row(*op);  // as long as the process
      auto* object = PyObject_New(OpObject, type);
      object->vectorcall = call_op;
      object->row = row;
      object->promotion = s.promotion;
      space.attr(std::string(op->name).c_str()) = nb::steal(reinterpret_cast<PyObject*>(object));
    }
  }
}

}  // namespace tandem::python
