// Bytes in a device's memory, and a counted reference to them.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace tandem::device {

class Device;

// Counted by hand, because one eager op must not pay for two allocations.
class Buffer {
 public:
  Buffer(Device& owner, void* memory, size_t bytes) : device_(&owner), home_(&owner), data_(memory), bytes_(bytes) {}
  virtual ~Buffer() = default;
  Device& device() const { return *device_; }  // in whose memory it lies
  Device& home() const { return *home_; }      // to whose memory it belongs: another one while it waits on the host (engine/residents.hpp)
  void* data() const { return data_; }         // a host pointer where info().host_memory, else the device's own address
  size_t bytes() const { return bytes_; }

  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }
  bool unique() const { return references_.load(std::memory_order_acquire) == 1; }

  // Which run wrote it last (device/losses.hpp); 0: one that has been done.
  uint32_t run() const { return run_.load(std::memory_order_relaxed); }
  void set_run(uint32_t run) { run_.store(run, std::memory_order_relaxed); }

 protected:
  virtual void destroy() { delete this; }  // a pooling device takes the memory back instead
  void lie_at(Device& device, void* memory) { device_ = &device, data_ = memory; }

 private:
  Device* device_;
  Device* const home_;
  void* data_;
  size_t bytes_;
  std::atomic<int> references_{0};
  std::atomic<uint32_t> run_{0};
};

class BufferRef {
 public:
  BufferRef() = default;
  explicit BufferRef(Buffer* b) : buffer_(b) {
    if (buffer_) buffer_->retain();
  }
  BufferRef(const BufferRef& o) : BufferRef(o.buffer_) {}
  BufferRef(BufferRef&& o) noexcept : buffer_(o.buffer_) { o.buffer_ = nullptr; }
  BufferRef& operator=(BufferRef o) noexcept {
    std::swap(buffer_, o.buffer_);
    return *this;
  }
  ~BufferRef() {
    if (buffer_) buffer_->release();
  }
  explicit operator bool() const { return buffer_ != nullptr; }
  Buffer* operator->() const { return buffer_; }
  Buffer& operator*() const { return *buffer_; }
  Buffer* get() const { return buffer_; }

 private:
  Buffer* buffer_ = nullptr;
};

}  // namespace tandem::device
