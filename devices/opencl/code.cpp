#include "code.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/log.hpp"
#include "base/text.hpp"
#include "core.hpp"

namespace tandem::opencl {
namespace {

constexpr size_t kMostLoaded = 8192;

std::string build_log(cl_program program, cl_device_id device) {
  size_t bytes = 0;
  functions().GetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
  std::string text(bytes, '\0');
  functions().GetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, text.data(), nullptr);
  while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
  return text;
}

// The source line that the first error of a log speaks of; compilers write its number as ":12:5:". Empty when there is none.
std::string line_of_error(const std::string& log, const std::string& source) {
  const size_t error = log.find("error");
  if (error == std::string::npos) return "";
  const size_t begin = log.rfind('\n', error) + 1;  // 0 when it is in the first line
  const std::string_view said = std::string_view(log).substr(begin, log.find('\n', error) - begin);
  for (size_t colon = said.find(':'); colon != std::string_view::npos; colon = said.find(':', colon + 1)) {
    size_t number = 0;
    const char* last = said.data() + said.size();
    const auto [end, bad] = std::from_chars(said.data() + colon + 1, last, number);
    if (bad != std::errc() || end == last || *end != ':') continue;
    std::istringstream lines(source);
    std::string text;
    for (size_t i = 0; i < number && std::getline(lines, text); ++i) {
    }
    return cat("\n  line ", number, ": ", text);
  }
  return "";
}

// What the driver made for the device, of a program that is of all devices of its context; empty when it does not say. PoCL names the CPU
// itself for a part of it, and has one binary then.
std::vector<char> binary_of(cl_program program, cl_device_id device) {
  const auto ask = [&](cl_program_info what, auto& list) {
    return functions().GetProgramInfo(program, what, list.size() * sizeof(list[0]), list.data(), nullptr) == CL_SUCCESS;
  };
  size_t bytes = 0;
  if (functions().GetProgramInfo(program, CL_PROGRAM_DEVICES, 0, nullptr, &bytes) != CL_SUCCESS) return {};
  std::vector<cl_device_id> devices(bytes / sizeof(cl_device_id));
  std::vector<size_t> sizes(devices.size());
  if (devices.empty() || !ask(CL_PROGRAM_DEVICES, devices) || !ask(CL_PROGRAM_BINARY_SIZES, sizes)) return {};
  const auto found = std::ranges::find(devices, device);
  const size_t at = devices.size() == 1 ? 0 : static_cast<size_t>(found - devices.begin());
  if (at == devices.size() || sizes[at] == 0) return {};
  std::vector<char> binary(sizes[at]);
  std::vector<unsigned char*> places(devices.size());  // none: that one is not asked for
  places[at] = reinterpret_cast<unsigned char*>(binary.data());
  if (!ask(CL_PROGRAM_BINARIES, places)) return {};
  return binary;
}

}  // namespace

Code::~Code() {
  functions().ReleaseKernel(kernel_);
  functions().ReleaseProgram(program_);
}

Codes::Codes(std::string folder, uint64_t limit_bytes) : codes_(kMostLoaded, std::move(folder), limit_bytes) {}

std::shared_ptr<const Code> Codes::from_binary(const Core& core, const std::vector<char>& binary) const {
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const size_t size = binary.size();
  cl_int loaded = CL_SUCCESS, status = CL_SUCCESS;
  cl_program program = functions().CreateProgramWithBinary(core.context, 1, &core.device, &size, &bytes, &loaded, &status);
  if (!program) return nullptr;
  cl_kernel kernel = nullptr;
  if (loaded == CL_SUCCESS &&
      functions().BuildProgram(program, 1, &core.device, core.build_options.c_str(), nullptr, nullptr) == CL_SUCCESS)
    kernel = functions().CreateKernel(program, codegen::kCEntry.data(), &status);
  if (kernel) return std::make_shared<Code>(program, kernel);
  functions().ReleaseProgram(program);
  return nullptr;
}

std::shared_ptr<const Code> Codes::build(const Core& core, const std::string& source, std::string_view what,
                                         std::vector<char>& binary) const {
  const char* text = source.data();
  const size_t size = source.size();
  cl_int status = CL_SUCCESS;
  cl_program program = functions().CreateProgramWithSource(core.context, 1, &text, &size, &status);
  check(status, "making a program");
  status = functions().BuildProgram(program, 1, &core.device, core.build_options.c_str(), nullptr, nullptr);
  if (status != CL_SUCCESS) {
    const std::string log = build_log(program, core.device);
    functions().ReleaseProgram(program);
    internal_error(what, ": the compiler of ", core.name, " refused the kernel (", error_name(status), ")", line_of_error(log, source),
                   "\n", log);
  }
  cl_kernel kernel = functions().CreateKernel(program, codegen::kCEntry.data(), &status);
  if (!kernel) functions().ReleaseProgram(program);
  check(status, "making a kernel");
  binary = binary_of(program, core.device);
  return std::make_shared<Code>(program, kernel);
}

std::shared_ptr<const Code> Codes::get(const Core& core, const std::string& source, std::string_view what) {
  const std::string key = cat("opencl ", core.identity, " ", core.build_options, "\n", source);
  return codes_.get(
      key, [&](const std::vector<char>& binary) { return from_binary(core, binary); },  // a driver may refuse what it made itself
      [&](std::vector<char>& binary) { return build(core, source, what, binary); });
}

}  // namespace tandem::opencl
