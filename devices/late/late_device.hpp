// A device for tests: it does everything later. The reference kernels on one thread a stream, with random delays, so that a missing wait
// shows; freed memory is poisoned; addresses are none of the host's; memory has a cap; any operation fails on request.
#pragma once
#include <cstdint>
#include <memory>

#include "device/device.hpp"

namespace tandem::late {

struct Options {
  uint64_t seed = 1;           // of the delays
  int longest_delay_us = 100;  // before a piece of work; 0: none
  size_t memory_bytes = size_t{4} << 30;
  double link_bytes_per_second = 0;  // that the cost model believes; 0: it knows of no link
  const char* name = "late";         // a program may have several
};

enum class Operation : uint8_t { Allocation, Copy, Launch };
inline constexpr int kOperations = 3;
enum class Lasts : uint8_t { Once, On };  // On: all that follow fail too

class LateDevice : public device::Device {
 public:
  // The n-th operation of this kind from now on fails; 1 is the next one, 0 takes the wish back. Copies are uploads and downloads too.
  virtual void fail(Operation operation, int64_t n, Lasts lasts = Lasts::Once) = 0;
  virtual int64_t count(Operation operation) const = 0;  // since the device was made
};

std::unique_ptr<LateDevice> make_device(const Options& options);

}  // namespace tandem::late
