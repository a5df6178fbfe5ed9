// What kernels found wrong in numbers: an index that is out of range, a label that is no class. A queue cannot skip what follows, so a
// kernel leaves a record, and who waits for the device is told; what runs since the last wait wrote is lost then (device/losses.hpp).
#pragma once
#include <CL/cl.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace tandem::device {
class Losses;
}

namespace tandem::opencl {

// Throws what the user is told: where the first wrong element is, and the element itself.
using Complaint = std::function<void(int64_t position, int64_t element)>;

class Failures {
 public:
  Failures(cl_context context, cl_device_id device, device::Losses& losses);
  ~Failures();
  Failures(const Failures&) = delete;
  Failures& operator=(const Failures&) = delete;

  // Before a launch that checks. Its kernel gets memory() and the number that this gives; where a record is none yet (its first number is
  // 0), it writes three: this number, the position, the element. Kernels of one queue do so one after the other.
  int64_t expect(std::shared_ptr<const Complaint> complaint);
  cl_mem memory() const { return record_; }

  enum class Who : uint8_t { Computes, Copies };
  // Behind a wait of the host: throws what was found. `given`: last() before a wait for all that computes; who did that is told last, and
  // the record is empty again.
  void check(Who waited, int64_t given = 0);
  // What is given to this device from now on uses what the other one made: what that one found is told to whoever waits for this one, too.
  void depend_on(const std::shared_ptr<Failures>& other);
  int64_t last();  // number that expect() or depend_on() gave

 private:
  void check_own(Who waited, int64_t given);
  const cl_context context_;
  const cl_device_id device_;
  device::Losses& losses_;
  std::mutex mutex_;
  cl_command_queue queue_ = nullptr;
  cl_mem record_ = nullptr;
  std::map<int64_t, std::shared_ptr<const Complaint>> expected_;  // since the last wait for all
  std::multimap<int64_t, std::weak_ptr<Failures>> others_;        // by when it was said; until a wait for all behind that
  int64_t last_ = 0;
};

}  // namespace tandem::opencl
