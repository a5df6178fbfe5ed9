// Errors and the user's line, between C++ and Python.
#include "core.hpp"

#include <frameobject.h>

#include <cstring>
#include <mutex>
#include <string>
#include <unordered_set>

#include "base/border.hpp"
#include "frontend/thread_state.hpp"

namespace tandem::python {
namespace {

// Names of files live as long as the process: nodes of graphs point to them.
const char* interned(std::string_view text) {
  static auto& mutex = *new std::mutex;
  static auto& all = *new std::unordered_set<std::string>;
  std::lock_guard guard(mutex);
  return all.emplace(text).first->c_str();
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Ours, Keras's and AutoGraph's functions are not where a user looks for his mistake.
bool is_library(std::string_view file) {
  return contains(file, "/tandem/") || contains(file, "/keras_tandem/") || contains(file, "/keras/src/") || contains(file, "/malt/") ||
         file.starts_with("<");
}

std::string text_with_line(const char* what, const Location& line) {
  std::string text = what;
  if (!line || contains(text, "\n  at ")) return text;
  return text.insert(std::min(text.find("\n  hint:"), text.size()), cat("\n  at ", line));
}

void raise(ErrorCode code, const std::string& text) {
  if (!hooks.raise_error) {
    PyErr_SetString(PyExc_RuntimeError, text.c_str());
    return;
  }
  nb::object none = nb::steal(PyObject_CallFunction(hooks.raise_error, "is", static_cast<int>(code), text.c_str()));
  if (none.is_valid()) PyErr_SetString(PyExc_RuntimeError, text.c_str());
}

void add_note(const char* text) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (value && trace) PyException_SetTraceback(value, trace);
  // "map: element 17: the whole text": the text is the exception's own.
  const std::string all = text;
  const size_t element = all.find(": element ");
  const std::string first = all.substr(0, element == std::string::npos ? all.find('\n') : all.find(": ", element + 2));
  nb::object none = value ? nb::steal(PyObject_CallMethod(value, "add_note", "s", first.c_str())) : nb::object();
  if (!none.is_valid()) PyErr_Clear();  // before Python 3.11 exceptions carry no notes
  PyErr_Restore(type, value, trace);
}

}  // namespace

Location python_line() {
  Location fallback;
  nb::object frame = nb::steal(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
  while (frame.is_valid() && frame.ptr()) {
    auto* f = reinterpret_cast<PyFrameObject*>(frame.ptr());
    nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(f)));
    Py_ssize_t size = 0;
    const char* name = PyUnicode_AsUTF8AndSize(reinterpret_cast<PyCodeObject*>(code.ptr())->co_filename, &size);
    if (name) {
      const std::string_view file(name, static_cast<size_t>(size));
      const Location line{interned(file), static_cast<uint32_t>(PyFrame_GetLineNumber(f))};
      if (!is_library(file)) return line;
      if (!fallback && !contains(file, "/tandem/") && !contains(file, "/keras_tandem/")) fallback = line;
    }
    frame = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
  return fallback;
}

PythonCall::PythonCall() : before_(frontend::thread_state) {
  frontend::thread_state.in_library = true;
  frontend::thread_state.caller = frontend::thread_state.tracer ? python_line() : Location{};
}
PythonCall::~PythonCall() {
  frontend::thread_state.in_library = before_.in_library;
  frontend::thread_state.caller = before_.caller;
}

void set_python_error(const std::exception_ptr& e) {
  try {
    try {
      std::rethrow_exception(e);
    } catch (...) {
      rethrow_as_ours("tandem");
    }
  } catch (const nb::python_error& error) {
    nb::python_error(error).restore();  // the object may be thrown once more
  } catch (const nb::builtin_exception& error) {
    PyErr_SetString(error.type() == nb::exception_type::type_error    ? PyExc_TypeError
                    : error.type() == nb::exception_type::index_error ? PyExc_IndexError
                    : error.type() == nb::exception_type::value_error ? PyExc_ValueError
                                                                      : PyExc_RuntimeError,
                    error.what());
  } catch (const data::CallbackError& error) {  // as itself; where it arose is a note
    set_python_error(error.original());
    add_note(error.what());
  } catch (const Error& error) {
    raise(error.code(), text_with_line(error.what(), python_line()));
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an exception of an unknown kind");
  }
}

}  // namespace tandem::python
