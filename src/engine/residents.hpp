// Tensors in the memory of a card that may wait in the host's memory: when the card has none left, those that were not used for longest
// go there and come back when somebody computes with them, and a plan may want state to stay there.
#pragma once
#include <cstddef>
#include <list>
#include <mutex>

#include "device/device.hpp"

namespace tandem::engine {

class Residents;

// Looks like memory of the device that it belongs to, and lies there or on the host. Its address is right while it is pinned, or nobody
// else allocates.
class ResidentBuffer final : public device::Buffer {
 public:
  ResidentBuffer(Residents& residents, device::BufferRef memory);
  ~ResidentBuffer() override;

 private:
  friend class Residents;
  bool is_on_host() const { return &device() != &home(); }

  Residents& residents_;
  device::BufferRef memory_;  // that it has at the moment
  int pins_ = 0;
  std::list<ResidentBuffer*>::iterator place_;  // in the order of use
};

// Of one device. Safe from several threads.
class Residents {
 public:
  // `host`: the device whose memory the host reaches. What moves to it lies in pinned memory of `device`.
  Residents(device::Device& device, device::Device& host) : device_(device), host_(host) {}

  // Moves what was not used for longest to the host until so many bytes have been given back. Gives how many there were.
  size_t spill(size_t bytes);

  struct Moves {
    int64_t spills = 0, returns = 0;
    size_t spilled_bytes = 0, returned_bytes = 0;
  };
  Moves moves() const;  // so far

  // While it lives, the buffers stay where they are. They count as used now.
  class Pins {
   public:
    Pins() = default;
    ~Pins();
    Pins(const Pins&) = delete;
    Pins& operator=(const Pins&) = delete;
    void add(device::Buffer& buffer);  // nothing happens when it is no resident
    // Moves a resident that is pinned here to its device or to the host; `allocate` gives the device's memory.
    template <class Allocate> void put(device::Buffer& buffer, bool on_host, Allocate&& allocate) {
      auto* resident = dynamic_cast<ResidentBuffer*>(&buffer);
      if (!resident || resident->is_on_host() == on_host) return;
      if (on_host)
        resident->residents_.to_host(*resident);
      else
        resident->residents_.to_device(*resident, allocate(buffer.bytes()));
    }

   private:
    std::vector<ResidentBuffer*> pinned_;
  };

 private:
  friend class ResidentBuffer;
  void to_host(ResidentBuffer& b);
  void to_device(ResidentBuffer& b, device::BufferRef memory);
  class MovesToHost;

  device::Device& device_;
  device::Device& host_;
  mutable std::mutex mutex_;
  std::list<ResidentBuffer*> used_;  // the ones that were not used for longest first
  Moves moves_;
};

}  // namespace tandem::engine
