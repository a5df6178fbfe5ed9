// What a run tells the recorder while a profile is on.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "device/device.hpp"
#include "plan/plan.hpp"
#include "profile/recorder.hpp"

namespace tandem::exec {

class RunRecord {
 public:
  RunRecord(const plan::Plan& plan, std::span<device::Device* const> devices);
  ~RunRecord();
  RunRecord(const RunRecord&) = delete;
  RunRecord& operator=(const RunRecord&) = delete;

  // What the step is, for those who do it later. `uploaded`: where an upload begins to read; else null.
  profile::Doing::What what(const plan::Plan& plan, size_t step, const void* uploaded) const;
  void done_by_host(const plan::Step& step, profile::Time begin) const;

 private:
  void sample() const;
  std::span<device::Device* const> devices_;
  const uint32_t generation_;
  std::vector<uint16_t> tracks_;  // by device, of this thread
  std::optional<profile::Span> run_;
};

}  // namespace tandem::exec
