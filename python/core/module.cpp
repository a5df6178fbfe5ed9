// tandem._core: the engine, as Python sees it. The packages `tandem` and `keras_tandem` are written on it.
#include "core.hpp"

NB_MODULE(_core, m) {
  using namespace tandem::python;
  m.doc() = "The engine. Use the packages tandem and keras_tandem instead.";
  nb::set_leak_warnings(false);  // tensors may live in modules until the interpreter ends
  nb::register_exception_translator([](const std::exception_ptr& e, void*) {
    try {
      std::rethrow_exception(e);
    } catch (const tandem::Error&) {
      set_python_error(e);
    } catch (const std::bad_alloc&) {
      set_python_error(e);
    }
  });
  add_types(m);
  add_tensor(m);
  add_ops(m);
  add_state(m);
  add_functions(m);
  add_errors(m);
  add_callbacks(m);
  add_data(m);
  add_graphs(m);
  add_forecast(m);
  add_strings(m);
  add_loop(m);
  add_devices(m);
  add_devices_config(m);
  add_profile(m);
}
