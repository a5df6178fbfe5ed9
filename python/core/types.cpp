// DType and Dim.
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "core.hpp"

namespace tandem::python {

void add_types(nb::module_& m) {
  m.def("configure", [](nb::dict given) {
    const auto take = [&](const char* name) { return nb::object(given[name]).release().ptr(); };
    hooks.convert = take("convert");
    hooks.as_dtype = take("as_dtype");
    hooks.shape = take("shape");
    hooks.index = take("index");
    hooks.raise_error = take("raise_error");
    hooks.folder = nb::cast<std::string>(given["folder"]);
    hooks.dtypes.clear();
    for (nb::handle d : nb::list(given["dtypes"])) hooks.dtypes.push_back(d.inc_ref().ptr());
  });
  nb::list names;
  for (int i = 0; i < kDTypeCount; ++i) names.append(std::string(name(static_cast<DType>(i))));
  m.attr("dtype_names") = names;

  nb::class_<Dim> dim(m, "Dim", "An extent that is not known while a function is traced, or an expression of such extents.");
  dim_type = reinterpret_cast<PyTypeObject*>(dim.ptr());
  const auto binary = [&dim](const char* name, const char* reflected, Dim (*f)(const Dim&, const Dim&)) {
    dim.def(name, [f](const Dim& a, nb::handle b) { return from_dim(f(a, as_dim(b.ptr()))); }, nb::is_operator());
    dim.def(reflected, [f](const Dim& a, nb::handle b) { return from_dim(f(as_dim(b.ptr()), a)); }, nb::is_operator());
  };
  binary("__add__", "__radd__", [](const Dim& a, const Dim& b) { return a + b; });
  binary("__sub__", "__rsub__", [](const Dim& a, const Dim& b) { return a - b; });
  binary("__mul__", "__rmul__", [](const Dim& a, const Dim& b) { return a * b; });
  binary("__floordiv__", "__rfloordiv__", [](const Dim& a, const Dim& b) { return floor_div(a, b); });
  binary("__mod__", "__rmod__", [](const Dim& a, const Dim& b) { return a - floor_div(a, b) * b; });
  dim.def("__neg__", [](const Dim& a) { return from_dim(Dim(0) - a); });
  dim.def(
      "__eq__", [](const Dim& a, nb::handle b) { return (PyLong_Check(b.ptr()) || is_a(b.ptr(), dim_type)) && a == as_dim(b.ptr()); },
      nb::arg("other").none());
  dim.def("__hash__", &Dim::hash);
  dim.def("__repr__", &Dim::str);
  m.def("symbol", [](const std::string& name) { return Dim::symbol(name); });
  m.def("min_dim", [](nb::handle a, nb::handle b) { return from_dim(min(as_dim(a.ptr()), as_dim(b.ptr()))); });
  m.def("max_dim", [](nb::handle a, nb::handle b) { return from_dim(max(as_dim(a.ptr()), as_dim(b.ptr()))); });
}

}  // namespace tandem::python
