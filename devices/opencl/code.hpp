// Compiled programs: by their text in memory, as the driver's binaries on disk.
#pragma once
#include <CL/cl.h>

#include <memory>
#include <mutex>
#include <string>

#include "base/loaded_cache.hpp"

namespace tandem::opencl {

struct Core;

// One entry point. Its arguments are part of it, so whoever sets them holds the lock until the launch is queued.
class Code {
 public:
  Code(cl_program program, cl_kernel kernel) : program_(program), kernel_(kernel) {}
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  cl_kernel kernel() const { return kernel_; }
  std::mutex& mutex() const { return mutex_; }

 private:
  cl_program program_;
  cl_kernel kernel_;
  mutable std::mutex mutex_;
};

class Codes {
 public:
  Codes(std::string folder, uint64_t limit_bytes);
  // `what` is asked for, as errors name it. InternalError with the driver's words and the line when it does not compile.
  std::shared_ptr<const Code> get(const Core& core, const std::string& source, std::string_view what);

  LoadedCache<Code>::Counters counters() const { return codes_.counters(); }

 private:
  std::shared_ptr<const Code> from_binary(const Core& core, const std::vector<char>& binary) const;
  std::shared_ptr<const Code> build(const Core& core, const std::string& source, std::string_view what, std::vector<char>& binary) const;

  LoadedCache<Code> codes_;
};

}  // namespace tandem::opencl
