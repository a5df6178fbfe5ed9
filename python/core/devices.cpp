// Devices: which there are, scopes, memory, and where things run.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include <tandem/device.hpp>

#include "base/text.hpp"
#include "core.hpp"
#include "device/device.hpp"
#include "engine/engine.hpp"
#include "frontend/device_names.hpp"
#include "frontend/memory.hpp"

namespace tandem::python {
namespace {

nb::tuple as_tuple(const MemoryInfo& m) { return nb::make_tuple(m.current, m.peak, m.limit); }

}  // namespace

nb::list placement_rows(const FlatCallable& function) {
  std::vector<PlacementRow> all;
  {
    GilReleased release;
    all = explain(function);
  }
  nb::list rows;
  for (const PlacementRow& r : all) rows.append(nb::make_tuple(r.op, r.device, r.why, r.seconds, r.moved_bytes, r.where));
  return rows;
}

void add_devices(nb::module_& m) {
  nb::class_<DeviceDescription>(m, "Device")
      .def_ro("name", &DeviceDescription::name)
      .def_ro("description", &DeviceDescription::description)
      .def_ro("memory_bytes", &DeviceDescription::memory_bytes)
      .def_ro("computes", &DeviceDescription::computes)
      .def_ro("is_host", &DeviceDescription::is_host)
      .def_ro("is_ordinary", &DeviceDescription::is_ordinary)
      .def_ro("problem", &DeviceDescription::problem)
      .def("__repr__", [](const DeviceDescription& d) { return cat("<Device ", d.name, ">"); });
  m.def(
      "devices",
      [] {
        GilReleased release;
        return devices();
      },
      "All that this build has, also those that cannot be used; loads drivers.");
  m.def(
      "engine_devices",
      [] {
        std::vector<std::string> names;
        const engine::Devices* all = nullptr;
        {
          GilReleased release;
          all = &engine::engine_with_all_devices().devices();
        }
        for (size_t d = 0; d < all->count(); ++d) names.push_back(all->at(d).info().name);
        return names;
      },
      "The names of those that compute in this process.");
  m.def(
      "physical_devices",
      [] {
        const std::vector<std::string> ordinary = device::ordinary_names();
        std::vector<std::pair<std::string, bool>> all;
        for (const std::string& name : device::names()) all.emplace_back(name, std::ranges::find(ordinary, name) != ordinary.end());
        nb::list result;
        for (const auto& [name, is] : all) result.append(nb::make_tuple(name, is));
        return result;
      },
      "(name, whether a program may get it without naming it) of each; none of them is opened.");
  m.def("default_device", &default_device, "Empty: the placement decides.");
  m.def("set_default_device", [](const std::string& name) { set_default_device(name); });
  m.def(
      "enter_device",
      [](nb::handle name) {
        const int32_t before = frontend::thread_state.device;
        int32_t now = -1;
        if (!name.is_none()) {
          const std::string text = nb::cast<std::string>(name);
          GilReleased release;
          now = frontend::device_number(text);
        }
        frontend::thread_state.device = now;
        return before;
      },
      nb::arg("name").none(), "From now on this thread asks for it; gives what leave_device takes.");
  m.def("leave_device", [](int32_t before) { frontend::thread_state.device = before; });
  m.def("current_device", &current_device);
  m.def(
      "device_name",
      [](const std::string& name) {
        int32_t device = -1;
        {
          GilReleased release;
          device = frontend::device_number(name);
        }
        return device < 0 ? std::string() : engine::default_engine().devices().at(device).info().name;
      },
      "The engine's name of a device that may be called as in TensorFlow.");
  m.def("tensor_device", [](const Tensor& t) { return t.device(); }, "The engine's name of the device that it belongs to.");
  m.def("to_device", [](nb::handle tensor, const std::string& name) {
    const Tensor t = to_tensor(tensor.ptr());
    const PythonCall call;
    Tensor moved;
    {
      GilReleased release;
      moved = t.to(name);
    }
    return from_tensor(std::move(moved));
  });
  m.def(
      "memory_info", [](const std::string& name) { return as_tuple(memory_info(name)); },
      "(current, peak, limit) in bytes; limit 0 is none.");
  m.def("pinned_memory_info", [](const std::string& name) { return as_tuple(pinned_memory_info(name)); });
  m.def("reset_peak", [](const std::string& name) { reset_peak(name); });
  m.def("set_memory_limit", [](const std::string& name, size_t bytes) {
    GilReleased release;
    set_memory_limit(name, bytes);
  });
  m.def("set_placement", [](const std::string& name) {
    if (name != "cost" && name != "tensorflow") user_error("set_placement: there is no \"", name, "\"; there are cost, tensorflow");
    GilReleased release;
    set_placement(name == "cost" ? Placement::Cost : Placement::Tensorflow);
  });
  m.def("set_soft_placement", [](bool on) { set_soft_placement(on); });
  m.def("soft_placement", [] { return soft_placement(); });
  m.def("set_log_placement", [](bool on) { set_placement_log(on); });
}

}  // namespace tandem::python
