#include "opencl_device.hpp"

#include <array>
#include <cstdio>

#include "base/cores.hpp"
#include "base/env.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "core.hpp"
#include "device/host_buffer.hpp"
#include "opencl_program.hpp"
#include "paced_stream.hpp"

namespace tandem::opencl {
namespace {

constexpr int64_t kMostCacheMib = int64_t{1} << 40;

template <class T> T info_of(cl_device_id device, cl_device_info what) {
  T value{};
  functions().GetDeviceInfo(device, what, sizeof value, &value, nullptr);
  return value;
}
std::string text_of(cl_device_id device, cl_device_info what) {
  size_t bytes = 0;
  functions().GetDeviceInfo(device, what, 0, nullptr, &bytes);
  std::string text(bytes, '\0');
  functions().GetDeviceInfo(device, what, bytes, text.data(), nullptr);
  while (!text.empty() && (text.back() == '\0' || text.back() == ' ')) text.pop_back();
  return text;
}
bool has_extension(cl_device_id device, std::string_view name) {
  return cat(" ", text_of(device, CL_DEVICE_EXTENSIONS), " ").find(cat(" ", name, " ")) != std::string::npos;
}

std::vector<cl_device_id> devices_of(cl_device_type type) {
  cl_uint count = 0;
  if (functions().GetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) return {};  // a loader without any driver
  std::vector<cl_platform_id> platforms(count);
  functions().GetPlatformIDs(count, platforms.data(), nullptr);
  std::vector<cl_device_id> all;
  for (cl_platform_id p : platforms) {
    cl_uint n = 0;
    if (functions().GetDeviceIDs(p, type, 0, nullptr, &n) != CL_SUCCESS || n == 0) continue;
    std::vector<cl_device_id> found(n);
    functions().GetDeviceIDs(p, type, n, found.data(), nullptr);
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

// Why a device cannot keep what src/ir/scalar.hpp promises; empty when it can.
std::string shortcoming(cl_device_id device) {
  const auto single = info_of<cl_device_fp_config>(device, CL_DEVICE_SINGLE_FP_CONFIG);
  if (!info_of<cl_bool>(device, CL_DEVICE_ENDIAN_LITTLE)) return "it is big-endian";
  if (!info_of<cl_bool>(device, CL_DEVICE_COMPILER_AVAILABLE)) return "its driver has no compiler";
  if (!(single & CL_FP_DENORM)) return "it flushes small numbers of float32 to zero, so results would differ from the CPU's";
  if (!(single & CL_FP_INF_NAN)) return "it has no infinities and NaNs of float32";
  if (!(single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) && !has_extension(device, "cl_khr_fp64"))
    return "it neither rounds quotients of float32 correctly nor has double to compute them in";
  return "";
}

class OpenCl;

class OpenClBuffer final : public device::Buffer {
 public:
  OpenClBuffer(OpenCl& owner, void* address, size_t bytes);
  ~OpenClBuffer() override;

 private:
  OpenCl& opencl_;
};
class PinnedBuffer final : public device::Buffer {
 public:
  PinnedBuffer(OpenCl& owner, void* memory, size_t bytes);
  ~PinnedBuffer() override;

 private:
  OpenCl& opencl_;
};

class OpenCl final : public device::Device {
 public:
  explicit OpenCl(const Options& o) : pinned_(cat(o.name, ", pinned"), 0, &device::host_account()) {
    core_.name = o.name;
    core_.device = o.device;
    core_.shared = context_of(o.device);
    core_.context = core_.shared->handle;
    const auto single = info_of<cl_device_fp_config>(o.device, CL_DEVICE_SINGLE_FP_CONFIG);
    const bool exact_division = (single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
    core_.has_double = has_extension(o.device, "cl_khr_fp64");
    core_.dialect = &codegen::opencl_dialect(exact_division);
    core_.build_options = exact_division ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt" : "-cl-std=CL1.2";
    core_.most_argument_bytes = info_of<size_t>(o.device, CL_DEVICE_MAX_PARAMETER_SIZE);
    core_.target.is_cpu = !o.group_schedules;
    core_.target.most_group_items = static_cast<int64_t>(info_of<size_t>(o.device, CL_DEVICE_MAX_WORK_GROUP_SIZE));
    core_.target.local_bytes = static_cast<int64_t>(info_of<cl_ulong>(o.device, CL_DEVICE_LOCAL_MEM_SIZE));
    const std::string device_name = text_of(o.device, CL_DEVICE_NAME), driver = text_of(o.device, CL_DRIVER_VERSION);
    core_.identity = cat(device_name, ", ", text_of(o.device, CL_DEVICE_VERSION), ", driver ", driver);
    const auto there = static_cast<size_t>(info_of<cl_ulong>(o.device, CL_DEVICE_GLOBAL_MEM_SIZE));
    info_.name = o.name;
    info_.memory_bytes = o.memory_bytes ? o.memory_bytes : there;
    const auto units = info_of<cl_uint>(o.device, CL_DEVICE_MAX_COMPUTE_UNITS);
    info_.driver = driver;
    info_.cores = o.cores;
    info_.description = o.emulated ? cat("emulated GPU on ", units, units == 1 ? " core of the CPU (" : " cores of the CPU (", device_name,
                                         ")", o.speed < 1 ? cat(", at ", o.speed, " of its speed") : "")
                                   : cat(device_name, ", ", units, " compute units");
    info_.rates.link_bytes_per_second = o.link_bytes_per_second;
    core_.memory =
        std::make_unique<Memory>(core_.context, info_.memory_bytes,
                                 static_cast<size_t>(info_of<cl_ulong>(o.device, CL_DEVICE_MAX_MEM_ALLOC_SIZE)), o.emulated, o.name);
    core_.codes = std::make_unique<Codes>(env::cache_dir(), static_cast<uint64_t>(env::get_count("TANDEM_CACHE_MIB", kMostCacheMib)) << 20);
    core_.pinned = core_.shared->pinned.get();
    core_.failures = std::make_shared<Failures>(core_.context, core_.device, losses());
    for (size_t i = 0; i < streams_.size(); ++i) {
      const auto kind = static_cast<device::StreamKind>(i);
      auto pace = o.emulated ? std::make_unique<Pace>(o.link_bytes_per_second, o.speed, o.copy_cores) : nullptr;
      if (pace && kind != device::StreamKind::Compute)
        streams_[i] = std::make_unique<PacedStream>(core_, kind, std::move(pace));
      else
        streams_[i] = std::make_unique<OpenClStream>(core_, kind, std::move(pace));
    }
  }

  const device::DeviceInfo& info() const override { return info_; }
  device::BufferRef allocate(size_t bytes) override {
    return device::BufferRef(new OpenClBuffer(*this, core_.memory->allocate(bytes), bytes));
  }
  device::BufferRef allocate_pinned(size_t bytes) override {
    pinned_.take(bytes);
    if (void* p = core_.pinned->allocate(bytes)) return device::BufferRef(new PinnedBuffer(*this, p, bytes));
    pinned_.give_back(bytes);
    pinned_.refuse(bytes);
  }
  device::Account& memory() override { return core_.memory->account(); }
  device::Account& pinned_memory() override { return pinned_; }
  void trim() override {
    core_.memory->trim();
    core_.pinned->trim();
  }
  device::Stream& stream(device::StreamKind kind) override { return *streams_[static_cast<size_t>(kind)]; }
  std::unique_ptr<device::Event> make_event() override { return std::make_unique<OpenClEvent>(core_); }

  bool can(const ir::OpCall& call) const override {
    const auto no = [&](std::string_view why) {
      log::line(log::Topic::Dispatch, call.op.name, ": not on ", info_.name, ": ", why);
      return false;
    };
    if (call.op.evaluate && !call.op.body && !call.op.loops && !call.op.decompose && !has_kernel(call.op.name))
      return no("the row has only a routine on host memory");
    if (!core_.has_double)
      for (const ir::TensorType& t : call.in)
        if (t.dtype == DType::F64) return no("the device has no double (cl_khr_fp64)");
    return true;
  }

  std::shared_ptr<const device::Program> load(const codegen::Kernel& kernel) override {
    std::string reasons;
    for (const KernelEntry& entry : kernel_list()) {
      std::string refusal;
      if (auto program = entry.make(kernel, core_, refusal)) {
        log::line(log::Topic::Dispatch, kernel.op->name, ": ", entry.name, reasons);
        return program;
      }
      if (!refusal.empty()) reasons += cat("; not ", entry.name, ": ", refusal);
    }
    user_error(kernel.op->name, ": ", info_.name, " has no kernel for it", reasons);
  }

  Core& core() { return core_; }
  void take_back_pinned(void* memory, size_t bytes) {
    core_.pinned->take_back(memory, bytes);
    pinned_.give_back(bytes);
  }

 private:
  device::DeviceInfo info_;
  Core core_;
  device::Account pinned_;
  std::array<std::unique_ptr<device::Stream>, device::kStreamKinds> streams_;
};

OpenClBuffer::OpenClBuffer(OpenCl& owner, void* address, size_t bytes) : Buffer(owner, address, bytes), opencl_(owner) {}
OpenClBuffer::~OpenClBuffer() { opencl_.core().memory->take_back(data(), bytes()); }
PinnedBuffer::PinnedBuffer(OpenCl& owner, void* memory, size_t bytes) : Buffer(owner, memory, bytes), opencl_(owner) {}
PinnedBuffer::~PinnedBuffer() { opencl_.take_back_pinned(data(), bytes()); }

// Whether PoCL's thread for a core stays there: it takes cores by number from 0 on, so only where the process may use all of those.
bool are_kept_apart() {
  const std::vector<int> allowed = cores::allowed();
  return allowed.back() + 1 == static_cast<int>(allowed.size());
}
// PoCL reads it when it is first asked for devices.
void keep_apart() {
  if (!env::get("TANDEM_EMULATE_GPU").empty() && are_kept_apart()) setenv("POCL_AFFINITY", "1", 0);
}

void add_emulated(std::vector<device::Candidate>& all) {
  const std::string text = env::get("TANDEM_EMULATE_GPU");
  if (text.empty()) return;
  const Emulation e = parse_emulation(text);
  std::string why;
  const cl_device_id first = find_functions(why) ? find_cpu(0, why) : nullptr;
  const std::vector<int> cores = cores::of_emulated_gpus();
  for (int i = 0; i < e.count; ++i) {
    const std::string name = cat("gpu:", i);
    const auto make = [e, core = cores[static_cast<size_t>(i)]](const device::Part& part) {
      std::string unused;
      return make_device({.name = part.name,
                          .device = find_cpu(core, unused),
                          .emulated = true,
                          .cores = are_kept_apart() ? cat(core) : "",
                          .copy_cores = cores::are_pinned() ? std::vector{core} : cores::allowed(),
                          .link_bytes_per_second = e.bytes_per_second,
                          .speed = e.speed,
                          .memory_bytes = part.limit_bytes ? part.limit_bytes : e.memory_bytes,
                          .group_schedules = false});
    };
    all.push_back({name, [name, make] { return make({.name = name}); }, why, make});
  }
  if (first)
    std::fprintf(stderr, "tandem: TANDEM_EMULATE_GPU=%s: gpu:0%s no real GPU%s, but cores of this machine's CPU (%s)\n", text.c_str(),
                 e.count == 1 ? " is" : cat(" to gpu:", e.count - 1, " are").c_str(), e.count == 1 ? "" : "s",
                 text_of(first, CL_DEVICE_NAME).c_str());
}

}  // namespace

Core::Core() = default;
Core::~Core() {
  failures.reset();
  codes.reset();
  memory.reset();
}

std::unique_ptr<device::Device> make_device(const Options& options) { return std::make_unique<OpenCl>(options); }

std::vector<cl_device_id> find_gpus() { return devices_of(CL_DEVICE_TYPE_GPU); }

const std::vector<cl_device_id>& cpu_cores() {
  static const std::vector<cl_device_id>& cores = *new std::vector<cl_device_id>([] {
    for (cl_device_id cpu : devices_of(CL_DEVICE_TYPE_CPU)) {
      // The threads that copy write to buffers where they lie.
      if (!info_of<cl_bool>(cpu, CL_DEVICE_HOST_UNIFIED_MEMORY) || !shortcoming(cpu).empty()) continue;
      const cl_device_partition_property each[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
      cl_uint count = 0;
      if (functions().CreateSubDevices(cpu, each, 0, nullptr, &count) != CL_SUCCESS || count == 0) return std::vector{cpu};
      std::vector<cl_device_id> parts(count);
      if (functions().CreateSubDevices(cpu, each, count, parts.data(), nullptr) != CL_SUCCESS) return std::vector{cpu};
      return parts;
    }
    return std::vector<cl_device_id>();
  }());
  return cores;
}

cl_device_id find_cpu(int core, std::string& why) {
  const std::vector<cl_device_id>& cores = cpu_cores();
  if (!cores.empty()) return cores[static_cast<size_t>(core) % cores.size()];
  why = "there is no OpenCL for the CPU to emulate a GPU with; install PoCL (Debian: pocl-opencl-icd)";
  return nullptr;
}

std::vector<device::Candidate> enumerate() {
  std::vector<device::Candidate> all;
  std::string why;
  keep_apart();
  const cores::Everywhere for_its_threads;
  if (find_functions(why)) {
    int number = 0;
    for (cl_device_id d : find_gpus()) {
      const std::string name = cat("opencl:", number++);
      const std::string missing = shortcoming(d);
      all.push_back(
          {name, [name, d] { return make_device({.name = name, .device = d}); },
           missing.empty() ? "" : cat(text_of(d, CL_DEVICE_NAME), ": ", missing),
           [d](const device::Part& part) { return make_device({.name = part.name, .device = d, .memory_bytes = part.limit_bytes}); }});
    }
  }
  add_emulated(all);
  return all;
}

}  // namespace tandem::opencl
