#include "failures.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.hpp"
#include "device/losses.hpp"
#include "loader.hpp"

namespace tandem::opencl {
namespace {
using Record = std::array<cl_long, 3>;
constexpr Record kNothing{};
}  // namespace

Failures::Failures(cl_context context, cl_device_id device, device::Losses& losses) : context_(context), device_(device), losses_(losses) {
  cl_int status = CL_SUCCESS;
  queue_ = functions().CreateCommandQueue(context_, device_, 0, &status);
  opencl::check(status, "making a queue");
  Record nothing = kNothing;
  record_ = functions().CreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof nothing, nothing.data(), &status);
  if (!record_) functions().ReleaseCommandQueue(queue_);
  opencl::check(status, "making memory for a record of failures");
}
Failures::~Failures() {
  functions().ReleaseMemObject(record_);
  functions().ReleaseCommandQueue(queue_);
}

int64_t Failures::expect(std::shared_ptr<const Complaint> complaint) {
  std::lock_guard lock(mutex_);
  expected_.emplace(++last_, std::move(complaint));
  return last_;
}

int64_t Failures::last() {
  std::lock_guard lock(mutex_);
  return last_;
}

void Failures::depend_on(const std::shared_ptr<Failures>& other) {
  std::vector<std::weak_ptr<Failures>> theirs{other};
  {
    std::lock_guard lock(other->mutex_);
    for (const auto& [number, further] : other->others_) theirs.push_back(further);
  }
  std::lock_guard lock(mutex_);
  ++last_;
  for (const std::weak_ptr<Failures>& f : theirs) {
    const std::shared_ptr<Failures> one = f.lock();
    if (!one || one.get() == this) continue;
    std::erase_if(others_, [&](const auto& entry) { return entry.second.lock() == one; });
    others_.emplace(last_, one);
  }
}

void Failures::check(Who waited, int64_t given) {
  std::vector<std::shared_ptr<Failures>> others;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [number, other] : others_)
      if (auto one = other.lock()) others.push_back(std::move(one));
  }
  try {
    for (const auto& other : others) other->check_own(Who::Copies, 0);
  } catch (const std::exception& e) {
    if (waited == Who::Computes) losses_.fail(e.what());
    throw;
  }
  check_own(waited, given);
  std::lock_guard lock(mutex_);
  others_.erase(others_.begin(), others_.upper_bound(given));
}

void Failures::check_own(Who waited, int64_t given) {
  std::lock_guard lock(mutex_);
  if (expected_.empty()) return;
  Record found;
  opencl::check(functions().EnqueueReadBuffer(queue_, record_, CL_TRUE, 0, sizeof found, found.data(), 0, nullptr, nullptr),
                "reading a record of failures");
  if (found[0] == 0) {
    expected_.erase(expected_.begin(), expected_.upper_bound(given));
    return;
  }
  const auto what = expected_.find(found[0]);
  const std::shared_ptr<const Complaint> complaint = what == expected_.end() ? nullptr : what->second;
  if (waited == Who::Computes) {
    opencl::check(functions().EnqueueWriteBuffer(queue_, record_, CL_TRUE, 0, sizeof kNothing, kNothing.data(), 0, nullptr, nullptr),
                  "emptying a record of failures");
    expected_.clear();
  }
  try {
    if (complaint) (*complaint)(found[1], found[2]);
    internal_error("a kernel found a wrong number and nobody knows what it means");
  } catch (const std::exception& e) {
    if (waited == Who::Computes) losses_.fail(e.what());
    throw;
  }
}

}  // namespace tandem::opencl
