// A stream of an OpenCL device: a queue that works in order.
#pragma once
#include <CL/cl.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>

#include "device/device.hpp"
#include "emulation.hpp"
#include "loader.hpp"
#include "memory.hpp"
#include "times.hpp"

namespace tandem::opencl {

struct Core;
class Staged;

struct Release {
  void operator()(cl_event e) const { functions().ReleaseEvent(e); }
};
using EventRef = std::unique_ptr<std::remove_pointer_t<cl_event>, Release>;

class OpenClEvent final : public device::Event {
 public:
  explicit OpenClEvent(Core& core);
  ~OpenClEvent() override;
  void synchronize() override;
  bool has_happened() const override;
  const Core& core() const { return core_; }
  void set(cl_event event);   // takes it
  cl_event retained() const;  // the caller's; null when it was never recorded

 private:
  Core& core_;
  mutable std::mutex mutex_;
  cl_event event_ = nullptr;
};

class OpenClStream final : public device::Stream, public profile::Reporter {
 public:
  OpenClStream(Core& core, device::StreamKind kind, std::unique_ptr<Pace> pace);  // `pace`: of an emulated device
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
  void report() override;

 private:
  // The queue keeps times while a profile is on: it becomes another one when that begins or ends. With the lock.
  void follow_profile();
  void make_queue(bool keeps_times);
  profile::Piece piece(profile::Kind kind, size_t bytes = 0) const { return profile::Piece::given(track_, kind, bytes); }
  // Where a command leaves its event; null when nobody looks. Then it goes to given().
  static cl_event* wanted(const profile::Piece& piece, Commands& commands) { return piece ? &commands.first : nullptr; }
  void given(const profile::Piece& piece, const Commands& commands);

  void upload_staged(void* to, std::unique_ptr<Staged> staged);
  void upload_in_place(void* to, const void* host, size_t bytes);  // returns when it has been read, if that is not pinned
  void add_paced(cl_mem memory, profile::Kind kind, size_t bytes, std::function<void()> copy);
  void copy_in_pieces(const Place& from, size_t to, size_t bytes, Commands* commands);  // within one buffer
  cl_event marker();
  cl_event held();

  Core& core_;
  const device::StreamKind kind_;
  std::mutex mutex_;
  cl_command_queue queue_ = nullptr;
  std::unique_ptr<Pace> pace_;
  const uint16_t track_;  // in profiles
  const std::string name_;
  std::optional<Times> times_;
};

}  // namespace tandem::opencl
