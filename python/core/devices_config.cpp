// What a program says about devices before it uses them: limits, logical devices, threads.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <tandem/device.hpp>

#include "core.hpp"

namespace tandem::python {

void add_devices_config(nb::module_& m) {
  m.def(
      "configure_device", [](const std::string& name, const std::vector<size_t>& limits_bytes) { set_logical_devices(name, limits_bytes); },
      nb::arg("name"), nb::arg("limits_bytes"),
      "Before its first use: the device gets one limit (0: none), or becomes as many devices as there are limits. An error once it was "
      "made.");
  m.def("set_threads", &set_threads, nb::arg("threads"), "Threads of the cpu device, before its first use; 0: one for each of its cores.");
  m.def("set_pipeline_threads", &set_pipeline_threads, nb::arg("threads"),
        "The most threads that the autotuned stages of a pipeline take together, before the first tensor; 0: as many as its cores.");
  m.def("has_started", &has_started, "Whether something was computed or placed already.");
  m.def(
      "set_visible_devices", [](const std::vector<std::string>& names) { set_visible_devices(names); }, nb::arg("names"),
      "Only these are found beside the default device; before anything else.");
}

}  // namespace tandem::python
