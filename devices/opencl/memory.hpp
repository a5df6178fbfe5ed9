// Memory of an OpenCL device. What others hold and add bytes to are addresses of our own, for an OpenCL buffer has none; here they become
// buffers and offsets again.
#pragma once
#include <CL/cl.h>

#include <map>
#include <mutex>
#include <shared_mutex>

#include "device/device.hpp"

namespace tandem::opencl {

// A part of a buffer.
struct Place {
  cl_mem memory = nullptr;
  size_t offset = 0;
  char* host = nullptr;  // where emulated memory lies; null otherwise
};

class Memory {
 public:
  // `emulated`: buffers lie in host memory of ours, where the threads that copy reach them.
  Memory(cl_context context, size_t limit_bytes, size_t most_bytes_a_buffer, bool emulated, std::string name);
  ~Memory();
  device::Account& account() { return account_; }

  void* allocate(size_t bytes);  // an address
  void take_back(void* address, size_t bytes);
  void trim();
  // The place of an address that allocate() gave, or of one between it and its end.
  Place at(const void* address) const;

 private:
  struct Block {
    cl_mem memory = nullptr;
    char* host = nullptr;
    size_t bytes = 0;
  };
  Block create(size_t bytes);  // nothing when there is no memory
  void destroy(const Block& block);
  void release_idle();  // with the lock

  const cl_context context_;
  const size_t most_bytes_a_buffer_;
  const bool emulated_;
  const std::string name_;
  device::Account account_;
  mutable std::shared_mutex mutex_;
  std::map<uintptr_t, Block> blocks_;
  std::multimap<size_t, uintptr_t> idle_;  // by size; what they held may still be used by the compute stream
  size_t idle_bytes_ = 0;
  uintptr_t next_address_;
};

// Host memory that the device reaches directly: parts of few large buffers that are mapped once and stay so.
class PinnedMemory {
 public:
  PinnedMemory(cl_context context, cl_device_id device);
  ~PinnedMemory();
  void* allocate(size_t bytes);  // null when there is none
  void take_back(void* memory, size_t bytes);
  bool contains(const void* host) const;
  void trim();                // slabs of which nothing is in use
  size_t held_bytes() const;  // of all slabs

 private:
  struct Slab {
    cl_mem memory;
    void* mapped;
    size_t bytes;
    std::map<size_t, size_t> free;  // offset -> bytes
  };
  void destroy(const Slab& slab);
  const cl_context context_;
  cl_command_queue queue_ = nullptr;  // what maps them
  mutable std::mutex mutex_;
  std::map<uintptr_t, Slab> slabs_;  // by the first aligned byte
};

}  // namespace tandem::opencl
