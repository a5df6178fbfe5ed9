// The memory of an engine's device: tensors, and arenas that are kept between runs. When the device has none left, what is kept for
// later is given back first, and only then is it an error.
#pragma once
#include <functional>
#include <mutex>
#include <vector>

#include "device/device.hpp"

namespace tandem::engine {

class Memory {
 public:
  // `give_back` frees what the owner keeps for later, and is called with no lock of this class held.
  Memory(device::Device& device, std::function<void()> give_back) : device_(device), give_back_(std::move(give_back)) {}
  device::Device& device() const { return device_; }

  device::BufferRef allocate(size_t bytes);

  // An arena for one run, of at least so many bytes. All plans share the spare ones: a run takes the smallest that holds it, and one
  // that is too small goes before a larger one comes. So there are never more than runs at the same time.
  class Arena {
   public:
    Arena(Memory& memory, size_t bytes);
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    void* data() const { return buffer_ ? buffer_->data() : nullptr; }

   private:
    Memory& memory_;
    device::BufferRef buffer_;
  };

  void drop_spares();  // and what the device keeps

 private:
  device::BufferRef take_spare(size_t bytes);

  device::Device& device_;
  const std::function<void()> give_back_;
  std::mutex mutex_;
  std::vector<device::BufferRef> spares_;  // the smallest first
};

}  // namespace tandem::engine
