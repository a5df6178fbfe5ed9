// What waits in ordinary memory until its upload is done, and is counted as the host's.
#pragma once
#include <CL/cl.h>

#include <cstring>
#include <memory>

#include "device/account.hpp"
#include "device/stream.hpp"

namespace tandem::opencl {

inline constexpr size_t kMostStagedBytes = size_t{8} << 20;  // a larger upload waits until its source has been read

class Staged {
 public:
  // Nothing when the host's limit has no room for it.
  static std::unique_ptr<Staged> make(size_t bytes) {
    if (!device::host_account().try_take_counted(device::Account::counted(bytes))) return nullptr;
    return std::unique_ptr<Staged>(new Staged(bytes));
  }
  static std::unique_ptr<Staged> copy_of(const void* host, size_t bytes) {
    std::unique_ptr<Staged> made = make(bytes);
    if (made) std::memcpy(made->data(), host, bytes);
    return made;
  }
  // One behind the other.
  static std::unique_ptr<Staged> copy_of(const device::HostRows& rows) {
    std::unique_ptr<Staged> made = make(rows.row_bytes * rows.numbers.size());
    if (!made) return made;
    char* at = made->data();
    for (const int64_t number : rows.numbers) {
      std::memcpy(at, static_cast<const char*>(rows.first) + number * rows.step_bytes, rows.row_bytes);
      at += rows.row_bytes;
    }
    return made;
  }
  static void CL_CALLBACK free(cl_event, cl_int, void* staged) { delete static_cast<Staged*>(staged); }
  ~Staged() { device::host_account().give_back(bytes_); }
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;
  char* data() const { return data_.get(); }
  size_t bytes() const { return bytes_; }

 private:
  explicit Staged(size_t bytes) try : bytes_(bytes), data_(std::make_unique_for_overwrite<char[]>(bytes)) {
  } catch (...) {
    device::host_account().give_back(bytes);
    throw;
  }
  const size_t bytes_;
  const std::unique_ptr<char[]> data_;
};

}  // namespace tandem::opencl
