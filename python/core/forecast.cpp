// Forecasts: a step of training planned for a device that may not be there.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "forecast/forecast.hpp"
#include "functions.hpp"

namespace tandem::python {
namespace {

std::vector<Variable> variables_of(nb::handle list) {
  std::vector<Variable> all;
  for (nb::handle v : nb::borrow<nb::sequence>(list)) {
    const Variable* variable = as_variable(v.ptr());
    if (!variable) type_error("forecast: a list of variables holds something else");
    all.push_back(*variable);
  }
  return all;
}

forecast::Forecast made(const CompiledFunction& function, nb::handle specs, nb::handle weights, nb::handle optimizer, int64_t batch,
                        size_t limit_bytes, const std::string& card, const std::string& device, int curve_points, int64_t effort,
                        const std::string& name) {
  const std::vector<Spec> arguments = specs_of(specs);
  const std::vector<Variable> own = variables_of(weights), state = variables_of(optimizer);
  const PythonCall call;
  GilReleased release;
  forecast::TrainingStep step = forecast::step_of(frontend::traced_step(function.callable(), arguments), own, state);
  if (!name.empty()) step.name = name;
  forecast::Question question{.batch = batch, .limit_bytes = limit_bytes, .curve_points = curve_points, .effort = effort};
  std::unique_ptr<device::Device> absent;
  if (device.empty()) {
    if (!card.empty()) question.card = device::card(card).name;
    absent = device::make(card.empty() ? "null" : cat("null:", question.card));
    if (card.empty()) step.notes.emplace_back("no card was named: times are those of a card with the rates above");
  }
  forecast::Planner planner(std::move(step), absent ? *absent : device::get(device));
  return forecast::ask(planner, question);
}

}  // namespace

void add_forecast(nb::module_& m) {
  nb::class_<forecast::Forecast>(m, "Forecast", "What a step would take on a device.")
      .def("text", &forecast::text_of)
      .def("json", &forecast::json_of)
      .def("html", &forecast::html_of);
  m.def("forecast", made, nb::arg("function"), nb::arg("specs"), nb::arg("weights"), nb::arg("optimizer"), nb::arg("batch"),
        nb::arg("limit_bytes") = 0, nb::arg("card") = "", nb::arg("device") = "", nb::arg("curve_points") = 5,
        nb::arg("effort") = 100'000'000, nb::arg("name") = "",
        "Plans a call of the function on arguments of these types, for a card of the catalogue or a device. Nothing runs.");
  m.def("cards", [] {
    nb::list names;
    for (const device::Card& c : device::cards()) names.append(nb::str(c.name.data(), c.name.size()));
    return names;
  });
}

}  // namespace tandem::python
