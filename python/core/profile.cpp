// Profiles: the recorder's beginning and end, and what a program names itself.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "core.hpp"
#include "profile/profile.hpp"
#include "profile/recorder.hpp"

namespace tandem::python {
namespace {

std::vector<std::string> stop() {
  std::vector<std::string> names;
  for (const std::filesystem::path& f : profile::end()) names.push_back(f.string());
  return names;
}

// A `with` block. It ends on the thread where it began.
class Block {
 public:
  Block(std::string name, std::optional<int64_t> step) : name_(std::move(name)), step_(step) {}
  void enter() {
    if (step_)
      span_.emplace(profile::Kind::Step, name_, static_cast<uint64_t>(*step_));
    else
      span_.emplace(profile::Kind::Annotation, name_);
  }
  void leave() { span_.reset(); }

 private:
  const std::string name_;
  const std::optional<int64_t> step_;
  std::optional<profile::Span> span_;
};

}  // namespace

void add_profile(nb::module_& m) {
  m.def(
      "profile_start", [](const std::string& file, const std::string& title) { profile::begin(file, title); }, nb::arg("file"),
      nb::arg("title") = "Profile", nb::call_guard<GilReleased>(),
      "From now on it is recorded what runs where. `file` ends in .html or .json; with another ending both are written.");
  m.def("profile_stop", stop, nb::call_guard<GilReleased>(), "Writes the files, and gives their names; none when nothing was begun.");
  m.def("profile_abandon", profile::abandon, nb::call_guard<GilReleased>(), "Ends it and writes nothing.");
  m.def("profile_is_on", [] { return profile::Recorder::is_on(); });
  nb::class_<Block>(m, "ProfileBlock",
                    "`with ProfileBlock(name, step):` a part of the program that profiles show; with a number it is a step.")
      .def(nb::init<std::string, std::optional<int64_t>>(), nb::arg("name"), nb::arg("step").none() = nb::none())
      .def("__enter__",
           [](nb::handle self) {
             nb::inst_ptr<Block>(self)->enter();
             return nb::borrow(self);
           })
      .def("__exit__", [](Block& b, nb::args) { b.leave(); });
}

}  // namespace tandem::python
