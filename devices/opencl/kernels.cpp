// The policy of OpenCL devices, best first. Adding a kernel is a file under kernels/ and a line here.
#include <algorithm>

#include "opencl_program.hpp"
#include "times.hpp"

namespace tandem::opencl {

std::span<const KernelEntry> kernel_list() {
  static constexpr KernelEntry kList[] = {
      // clang-format off: one line each
      {"gemm", make_gemm},
      {"conv", make_conv},
      {"check", make_check},
      {"put", make_put},
      {"order", make_order},
      {"generated", make_generated},
      // clang-format on
  };
  return kList;
}

// Not check_range and check_classes: a queue cannot skip what follows, and the CPU finds a wrong number before any state is overwritten.
bool has_kernel(std::string_view op) {
  static constexpr std::string_view kOps[] = {"scatter", "put_along_axis", "sort", "argsort", "top_k", "searchsorted"};
  return std::ranges::find(kOps, op) != std::end(kOps);
}

void Launch::set(size_t bytes, const void* value) {
  check(functions().SetKernelArg(code_.kernel(), next_++, bytes, value), "setting an argument");
}
void Launch::memory(const void* address) {
  const Place place = core_.memory->at(address);
  set(sizeof place.memory, &place.memory);
  number(static_cast<int64_t>(place.offset));
}
void Launch::number(int64_t value) {
  const cl_long v = value;
  set(sizeof v, &v);
}
void Launch::buffer(cl_mem memory) { set(sizeof memory, &memory); }
void Launch::run(cl_command_queue queue, std::span<const size_t> groups, std::span<const size_t> group_items) {
  std::array<size_t, 3> all{};
  for (size_t i = 0; i < groups.size(); ++i) all[i] = groups[i] * group_items[i];
  cl_event done = nullptr;
  check(functions().EnqueueNDRangeKernel(queue, code_.kernel(), static_cast<cl_uint>(groups.size()), nullptr, all.data(),
                                         group_items.data(), 0, nullptr, Capture::is_on() ? &done : nullptr),
        "launch");
  if (done) Capture::keep(done);
}

}  // namespace tandem::opencl
