// What a program says about devices before it uses them: limits, logical devices, threads.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "core.hpp"
#include "device/device.hpp"

namespace tandem::python {

void add_devices_config(nb::module_& m) {
  m.def(
      "configure_device", [](const std::string& name, const std::vector<size_t>& limits_bytes) { device::configure(name, limits_bytes); },
      nb::arg("name"), nb::arg("limits_bytes"),
      "Before its first use: the device gets one limit (0: none), or becomes as many devices as there are limits. An error once it was "
      "made.");
  m.def("set_threads", &device::set_threads, nb::arg("threads"),
        "Threads of the cpu device, before its first use; 0: one for each of its cores.");
  m.def("is_device_made", &device::is_made, nb::arg("name"));
}

}  // namespace tandem::python
