// Errors and the user's line, between C++ and Python.
#include "core.hpp"

#include <frameobject.h>

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <unordered_set>

#include "base/border.hpp"
#include "base/caller_poll.hpp"
#include "engine/within_budget.hpp"
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

// Lines of code that AutoGraph generated, and whose they are: by file, then by line.
struct Generated {
  std::mutex mutex;
  std::unordered_map<std::string, std::map<uint32_t, Location>> files;
};
Generated& generated() {
  static auto& all = *new Generated;
  return all;
}

// The user's line behind a generated one: its own, or the next one before it that has one.
Location original(const std::string& file, uint32_t line) {
  std::lock_guard guard(generated().mutex);
  const auto found = generated().files.find(file);
  if (found == generated().files.end()) return {};
  const auto next = found->second.upper_bound(line);
  return next == found->second.begin() ? Location{} : std::prev(next)->second;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// By where the packages lie: a user's folder may be called tandem as well.
bool is_ours(std::string_view file) {
  if (!file.starts_with(hooks.folder)) return false;
  file.remove_prefix(hooks.folder.size());
  return file.starts_with("/tandem/") || file.starts_with("/keras_tandem/");
}

// Ours, Keras's and AutoGraph's functions are not where a user looks for his mistake.
bool is_library(std::string_view file) {
  return is_ours(file) || contains(file, "/keras/src/") || contains(file, "/malt/") || file.starts_with("<");
}

std::string text_with_line(const char* what, const Location& line) {
  std::string text = what;
  if (!line || contains(text, "\n  at ")) return text;
  return text.insert(std::min(text.find("\n  hint:"), text.size()), cat("\n  at ", line));
}

void raise(ErrorCode code, const std::string& text, bool no_plan_fits = false) {
  if (!hooks.raise_error) {
    PyErr_SetString(PyExc_RuntimeError, text.c_str());
    return;
  }
  nb::object none = nb::steal(PyObject_CallFunction(hooks.raise_error, "isi", static_cast<int>(code), text.c_str(), no_plan_fits ? 1 : 0));
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

// Signals are the main thread's: the others have nothing to look for.
constinit thread_local bool knows_signals = false;

void check_signals() {
  GilHeld gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void look_for_signals() {
  const nb::object main_thread = nb::module_::import_("threading").attr("main_thread")();
  if (nb::cast<unsigned long>(main_thread.attr("ident")) == PyThread_get_thread_ident()) caller_poll = check_signals;
  knows_signals = true;
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
      Location line{interned(file), static_cast<uint32_t>(PyFrame_GetLineNumber(f))};
      if (contains(file, "__autograph_generated_file"))
        if (const Location users = original(line.file, line.line)) line = users;
      if (!is_library(line.file)) return line;
      if (!fallback && !is_ours(file)) fallback = line;
    }
    frame = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
  return fallback;
}

void add_errors(nb::module_& m) {
  m.def(
      "name_generated_lines",
      [](const std::string& file, nb::handle lines) {
        std::map<uint32_t, Location> made;
        for (nb::handle entry : nb::borrow<nb::sequence>(lines)) {
          const auto [line, users_file, users_line] = nb::cast<std::tuple<uint32_t, std::string, uint32_t>>(entry);
          made.emplace(line, Location{interned(users_file), users_line});
        }
        std::lock_guard guard(generated().mutex);
        generated().files[file] = std::move(made);
      },
      "(generated file, [(its line, the user's file, the user's line)...]): errors and graphs name the user's.");
  m.def("is_library", [](const std::string& file) { return is_library(file); }, "Whether a file is ours, Keras's or AutoGraph's.");
  m.def(
      "users_line",
      [](const std::string& file, uint32_t line) -> nb::object {
        const Location found = contains(file, "__autograph_generated_file") ? original(file, line) : Location{interned(file), line};
        if (!found || is_library(found.file)) return nb::none();
        return nb::make_tuple(found.file, found.line);
      },
      "(file, line) of the user's for a line of code, or None when it is the library's.");
}

PythonCall::PythonCall() : before_(frontend::thread_state) {
  require_sound_fork();
  if (!knows_signals) [[unlikely]]
    look_for_signals();
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
  } catch (const engine::DoesNotFit& error) {
    raise(error.code(), text_with_line(error.what(), python_line()), true);
  } catch (const Error& error) {
    raise(error.code(), text_with_line(error.what(), python_line()));
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an exception of an unknown kind");
  }
}

}  // namespace tandem::python
