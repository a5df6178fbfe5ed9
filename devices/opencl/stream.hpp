// A stream of an OpenCL device: a queue that works in order.
#pragma once
#include <CL/cl.h>

#include <memory>
#include <mutex>

#include "device/device.hpp"
#include "emulation.hpp"

namespace tandem::opencl {

struct Core;

class OpenClEvent final : public device::Event {
 public:
  explicit OpenClEvent(Core& core);
  ~OpenClEvent() override;
  void synchronize() override;
  bool has_happened() const override;
  cl_context context() const { return context_; }
  void set(cl_event event);   // takes it
  cl_event retained() const;  // the caller's; null when it was never recorded

 private:
  Core& core_;
  const cl_context context_;
  mutable std::mutex mutex_;
  cl_event event_ = nullptr;
};

class OpenClStream final : public device::Stream {
 public:
  OpenClStream(Core& core, device::StreamKind kind, std::unique_ptr<PacedCopies> copies);  // `copies`: of an emulated device
  ~OpenClStream() override;
  void launch(const std::shared_ptr<const device::Program>& program, const device::LaunchArgs& args) override;
  void copy(void* to, const void* from, size_t bytes) override;
  void upload(void* to, const void* host, size_t bytes) override;
  void upload_rows(void* to, const device::HostRows& rows) override;
  void download(void* host, const void* from, size_t bytes) override;
  void fill(void* to, uint8_t value, size_t bytes) override;
  void record(device::Event& event) override;
  void wait(device::Event& event) override;
  void synchronize() override;

 private:
  void upload_staged(void* to, std::unique_ptr<char[]> staged, size_t bytes);
  void add_paced(cl_mem memory, size_t bytes, std::function<void()> copy);
  cl_event marker();

  Core& core_;
  const device::StreamKind kind_;
  std::mutex mutex_;
  cl_command_queue queue_ = nullptr;
  std::unique_ptr<PacedCopies> copies_;
};

}  // namespace tandem::opencl
