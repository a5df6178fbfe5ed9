// `tandem doctor`: what was found on this machine, and what to do about what is missing.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/env.hpp"
#include "base/text.hpp"
#include "command.hpp"
#include "device/device.hpp"
#include "probe.hpp"
#include "size_text.hpp"

namespace tandem::cli {
namespace {

// One line of the report; needs are what tandem cannot run without.
class Report {
 public:
  void found(std::string_view what, const std::string& text) { line("ok", what, text); }
  void lacks(std::string_view what, const std::string& text, const std::string& remedy) {
    line("--", what, text);
    line("", "", "hint: " + remedy);
  }
  void needs(std::string_view what, const std::string& text, const std::string& remedy) {
    lacks(what, text, remedy);
    complete_ = false;
  }
  bool complete() const { return complete_; }

 private:
  static void line(std::string_view mark, std::string_view what, const std::string& text) {
    std::printf("%-2s %-15s %s\n", std::string(mark).c_str(), std::string(what).c_str(), text.c_str());
  }
  bool complete_ = true;
};

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown";
}

void check_processor(Report& report) {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const std::string name = processor_name();
  if (!avx2)
    report.needs("processor", cat(name, ", without AVX2, FMA and F16C"), "use a processor of the level x86-64-v3, or TANDEM_DEVICE=ref");
  else
    report.found("processor", cat(name, avx512 ? ", AVX2 and AVX-512" : ", AVX2"));
}

// The code generator is tried out with the cache off: a kernel that was compiled earlier would prove nothing. Must come before
// anything else makes the device, which reads the variable once.
void check_cpu_device(Report& report) {
  setenv("TANDEM_CACHE_DIR", "off", 1);
  if (const std::string reason = why_not("cpu"); !reason.empty()) {
    const bool is_generator = reason.find("libtandem_llvm") != reason.npos;
    report.needs("cpu device", reason,
                 is_generator ? "libtandem_llvm.so belongs beside the tandem library and needs libLLVM 19.1 (Debian: libllvm19)"
                              : "mend what the line above names; TANDEM_DEVICE=ref computes without it, slowly");
    return;
  }
  report.found("cpu device", cat(device::get("cpu").info().description, "; the code generator compiles and the result is right"));
}

void check_openblas(Report& report) {
  setenv("OPENBLAS_NUM_THREADS", "1", 0);  // it starts threads as soon as it is loaded
  void* library = dlopen("libopenblas.so.0", RTLD_LAZY | RTLD_LOCAL);
  if (!library) {
    report.lacks("OpenBLAS", "cannot be loaded; large matrix products run on generated code and are slower, factorisations do not run",
                 "install libopenblas0 (Debian) or another package with libopenblas.so.0");
    return;
  }
  const auto config = reinterpret_cast<const char* (*)()>(dlsym(library, "openblas_get_config"));
  report.found("OpenBLAS", config ? config() : "loaded");
}

// What a graphics card on the bus needs, by the number of who made it.
struct Vendor {
  std::string_view number, name, package;
};
constexpr Vendor kVendors[] = {{"0x10de", "NVIDIA", "nvidia-opencl-icd"},
                               {"0x1002", "AMD", "mesa-opencl-icd or rocm-opencl-icd"},
                               {"0x8086", "Intel", "intel-opencl-icd"}};

std::vector<const Vendor*> cards() {
  namespace fs = std::filesystem;
  std::vector<const Vendor*> found;
  std::error_code error;
  for (fs::directory_iterator it("/sys/class/drm", error), end; !error && it != end; it.increment(error)) {
    std::string number;
    std::ifstream(it->path() / "device" / "vendor") >> number;
    for (const Vendor& v : kVendors)
      if (v.number == number && std::ranges::find(found, &v) == found.end()) found.push_back(&v);
  }
  return found;
}

// Asks the devices themselves; only what none of them can say is looked up: whether there is a loader, and a card without a driver.
void check_gpus(Report& report) {
  std::string used, skipped;
  for (const std::string& name : device::names()) {
    if (!name.starts_with("opencl:") && !name.starts_with("gpu:")) continue;
    const std::string reason = device::skipped_because(name);
    (reason.empty() ? used : skipped) +=
        cat((reason.empty() ? used : skipped).empty() ? "" : "; ", name, reason.empty() ? "" : ": ", reason);
  }
  const bool has_loader = dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr;
  std::string drivers;
  for (const Vendor* v : cards()) drivers += cat(drivers.empty() ? "" : ", ", v->package, " for ", v->name);
  if (!used.empty()) report.found("GPUs", used);
  if (!skipped.empty()) report.lacks("GPUs", skipped, "a newer driver, or another device; the CPU computes without it");
  if (used.empty() && skipped.empty()) {
    if (drivers.empty())
      report.found("GPUs", "none in this machine");
    else
      report.lacks("GPUs", cat("there is a card, and ", has_loader ? "no driver for OpenCL" : "no OpenCL loader"),
                   cat("install ", has_loader ? "" : "ocl-icd-libopencl1 and ", drivers, " (Debian)"));
  }
  std::error_code error;
  if (has_loader && (std::filesystem::exists("/etc/OpenCL/vendors/pocl.icd", error) || !used.empty()))
    report.found("emulated GPUs", "TANDEM_EMULATE_GPU=1x2GiB makes one of a core, by PoCL");
  else
    report.lacks("emulated GPUs", cat("TANDEM_EMULATE_GPU has nothing to make one of: ", has_loader ? "no PoCL" : "no OpenCL loader"),
                 "install ocl-icd-libopencl1 and pocl-opencl-icd (Debian)");
}

void check_cache(Report& report, const std::string& folder) {
  namespace fs = std::filesystem;
  if (folder.empty()) {
    report.lacks("cache", "off: every process compiles its kernels anew", "unset TANDEM_CACHE_DIR, or set it to a folder");
    return;
  }
  std::error_code error;
  size_t files = 0, bytes = 0;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;  // another process may remove a file meanwhile
    if (!it->is_regular_file(gone)) continue;
    const auto size = it->file_size(gone);
    if (gone) continue;
    ++files;
    bytes += size;
  }
  if (error == std::errc::no_such_file_or_directory)
    report.found("cache", cat(folder, ", not there yet"));
  else if (error || access(folder.c_str(), W_OK) != 0)
    report.lacks("cache", cat(folder, ": ", error ? error.message() : "cannot be written"), "set TANDEM_CACHE_DIR to a folder of yours");
  else
    report.found("cache", cat(folder, ", ", files, files == 1 ? " file, " : " files, ", size_text(bytes)));
}

void check_environment(Report& report) {
  bool any = false;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry, name = text.substr(0, text.find('='));
    if (!name.starts_with("TANDEM_")) continue;
    any = true;
    const auto known = env::variables();
    if (std::any_of(known.begin(), known.end(), [&](const env::Variable& v) { return v.name == name; }))
      report.found("environment", std::string(text));
    else
      report.lacks("environment", cat(text, ", which nothing reads"), "docs/env.md lists the variables there are");
  }
  if (!any) report.found("environment", "no variable TANDEM_* is set");
}

Exit run(const Arguments& arguments) {
  arguments.allow({});
  Report report;
  report.found("tandem", TANDEM_VERSION);
  check_environment(report);
  check_cache(report, env::cache_dir());
  check_processor(report);
  check_cpu_device(report);
  check_openblas(report);
  check_gpus(report);
  return report.complete() ? Exit::Done : Exit::Failure;
}

}  // namespace

const Command kDoctor = {"doctor", "says what was found on this machine, and what to do about what is missing",
                         R"(usage: tandem doctor

Looks at the environment variables, the cache of compiled kernels, the processor, the code generator, OpenBLAS and GPUs. A line
begins with "ok", or with "--" when something is missing; then a hint follows.

Exit code: 0 when tandem can run, 1 when something that it needs is missing, 2 for a wrong command line.
)",
                         run};

}  // namespace tandem::cli
