// StepLoop: the native loop of fit, evaluate and predict.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <tandem/train.hpp>

#include "data.hpp"
#include "functions.hpp"

namespace tandem::python {
namespace {

// Signals are Python's: it looks for them at least this often.
constexpr double kSignalSeconds = 0.1;

// Runs without the GIL in slices of time; Ctrl-C raises KeyboardInterrupt between two steps.
int64_t run(train::StepLoop& loop, int64_t steps, double seconds) {
  const PythonCall call;
  int64_t done = 0;
  while (true) {
    const double slice = std::min(seconds, kSignalSeconds);
    {
      GilReleased release;
      done += loop.run(steps - done, slice);
    }
    seconds -= slice;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (done >= steps || loop.at_end() || seconds <= 0) return done;
  }
}

// Rows of each array, as they are or in another order at each walk.
std::unique_ptr<train::Batches> array_batches(nb::handle arrays, int64_t batch_size, bool shuffled, uint64_t seed) {
  train::ArraySlice slice;
  slice.arrays = to_tensors(arrays.ptr());
  if (slice.arrays.empty()) user_error("StepLoop: there are no arrays");
  for (const Tensor& t : slice.arrays)
    if (t.rank() == 0) user_error("StepLoop: an array is ", t.type_str(), ", it needs an axis of examples in front");
  slice.count = slice.arrays.front().shape()[0];
  for (const Tensor& t : slice.arrays)
    if (t.shape()[0] != slice.count) user_error("StepLoop: arrays have ", slice.count, " and ", t.shape()[0], " rows");
  return train::batches_of(slice, batch_size, shuffled ? train::Order::Shuffled : train::Order::AsItIs, seed);
}

}  // namespace

void add_loop(nb::module_& m) {
  nb::class_<train::StepLoop>(m, "StepLoop", "A compiled function over batches; see include/tandem/train.hpp.")
      .def_static(
          "over_arrays",
          [](const CompiledFunction& step, nb::handle arrays, int64_t batch_size, bool shuffled, uint64_t seed,
             std::optional<int64_t> steps, nb::handle after) {
            train::LoopOptions options{.name = "fit", .steps_per_epoch = steps};
            if (!after.is_none()) {
              options.after = [f = flat_function(std::make_shared<Callback>(after))](const std::vector<Tensor>& results) { f(results); };
            }
            return train::StepLoop(step.callable(), array_batches(arrays, batch_size, shuffled, seed), std::move(options));
          },
          nb::arg("step"), nb::arg("arrays"), nb::arg("batch_size"), nb::arg("shuffled") = false, nb::arg("seed") = 0,
          nb::arg("steps_per_epoch").none() = nb::none(), nb::arg("after").none() = nb::none(),
          "`after`, if given, is called with the results of each step.")
      .def_static(
          "over_dataset",
          [](const CompiledFunction& step, const Pipeline& batches, std::optional<int64_t> steps) {
            return train::StepLoop(step.callable(), train::batches_of(batches.dataset, 0), {.name = "fit", .steps_per_epoch = steps});
          },
          nb::arg("step"), nb::arg("batches"), nb::arg("steps_per_epoch").none() = nb::none(), nb::keep_alive<0, 2>(),
          "The dataset's elements are the batches; their types must be known.")
      .def("begin_epoch", &train::StepLoop::begin_epoch, nb::call_guard<GilReleased>())
      .def("run", run, nb::arg("steps"), nb::arg("seconds"),
           "Runs until so many steps are done, so many seconds have passed, or the epoch ends.")
      .def_prop_ro("at_end", &train::StepLoop::at_end)
      .def_prop_ro("step", &train::StepLoop::step)
      .def_prop_ro("steps", &train::StepLoop::steps)
      .def_prop_ro("results", [](const train::StepLoop& l) { return from_tensors(l.results()); })
      .def("position",
           [](const train::StepLoop& l) {
             const std::string p = l.position();
             return nb::bytes(p.data(), p.size());
           })
      .def("restore", [](train::StepLoop& l, nb::bytes p) { l.restore(std::string(p.c_str(), p.size())); });
}

}  // namespace tandem::python
