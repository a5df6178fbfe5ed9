// A stream for copies of an emulated device. Its order is kept by the thread that makes them: in a queue of PoCL they would wait for the
// core that computes, even those that nothing else has to wait for.
#pragma once
#include "stream.hpp"

namespace tandem::opencl {

class PacedStream final : public device::Stream, public profile::Reporter {
 public:
  PacedStream(Core& core, device::StreamKind kind, std::unique_ptr<Pace> pace);
  ~PacedStream() override;
  void launch(const std::shared_ptr<const device::Program>& program, const device::LaunchArgs& args) override;  // InternalError
  void copy(void* to, const void* from, size_t bytes) override;
  void upload(void* to, const void* host, size_t bytes) override;
  void upload_rows(void* to, const device::HostRows& rows) override;
  void download(void* host, const void* from, size_t bytes) override;
  void fill(void* to, uint8_t value, size_t bytes) override;
  void record(device::Event& event) override;
  void wait(device::Event& event) override;
  void synchronize() override;
  void report() override;

 private:
  // Behind all that was added before. Returns the event of its end, which the caller releases.
  EventRef add(profile::Kind kind, size_t bytes, std::initializer_list<cl_mem> memory, std::function<void()> work,
               EventRef also_before = {});
  EventRef last();
  void finish(EventRef end, const char* what);

  Core& core_;
  const uint16_t track_;  // in profiles
  const std::string name_;
  std::mutex mutex_;
  EventRef last_;  // of what was added last; none: all of it is done
  std::unique_ptr<Pace> pace_;
};

}  // namespace tandem::opencl
