#include "memory.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/text.hpp"
#include "loader.hpp"

namespace tandem::opencl {
namespace {

using device::Account;

constexpr uintptr_t kFirstAddress = uintptr_t{1} << 56;  // no address of the host: who follows one crashes
constexpr uintptr_t kGap = 4096;                         // so that the end of one buffer is not the beginning of the next
constexpr size_t kMostIdleBytes = size_t{256} << 20;
constexpr size_t kSlabBytes = size_t{16} << 20;

void CL_CALLBACK free_host(cl_mem, void* host) { std::free(host); }

}  // namespace

Memory::Memory(cl_context context, size_t limit_bytes, size_t most_bytes_a_buffer, bool emulated, std::string name)
    : context_(context),
      most_bytes_a_buffer_(most_bytes_a_buffer),
      emulated_(emulated),
      name_(name),
      account_(std::move(name), limit_bytes),
      next_address_(kFirstAddress) {}

Memory::~Memory() {
  for (const auto& [address, block] : blocks_) destroy(block);
}

Memory::Block Memory::create(size_t bytes) {
  Block b{.bytes = bytes};
  cl_int status = CL_SUCCESS;
  if (emulated_) {
    b.host = static_cast<char*>(std::aligned_alloc(kGap, (bytes + kGap - 1) / kGap * kGap));
    if (!b.host) return b;
    b.memory = functions().CreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, b.host, &status);
    // Freed when the last command that uses it is done, and not before.
    if (b.memory)
      functions().SetMemObjectDestructorCallback(b.memory, free_host, b.host);
    else
      std::free(b.host);
  } else {
    b.memory = functions().CreateBuffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &status);
  }
  return b;
}
void Memory::destroy(const Block& block) { functions().ReleaseMemObject(block.memory); }

void Memory::release_idle() {
  for (const auto& [bytes, address] : idle_) {
    destroy(blocks_.at(address));
    blocks_.erase(address);
  }
  idle_.clear();
  idle_bytes_ = 0;
}
void Memory::trim() {
  std::lock_guard lock(mutex_);
  release_idle();
}

void* Memory::allocate(size_t bytes) {
  account_.take(bytes);
  const size_t size = Account::counted(bytes);
  std::lock_guard lock(mutex_);
  if (const auto it = idle_.find(size); it != idle_.end()) {
    const uintptr_t address = it->second;
    idle_.erase(it);
    idle_bytes_ -= size;
    return reinterpret_cast<void*>(address);
  }
  if (most_bytes_a_buffer_ && size > most_bytes_a_buffer_) {
    account_.give_back(bytes);
    resource_error(ErrorCode::ResourceExhausted, name_, ": cannot allocate ", bytes, " bytes (", bytes >> 20,
                   " MiB) in one piece: its driver makes buffers of ", most_bytes_a_buffer_, " bytes (", most_bytes_a_buffer_ >> 20,
                   " MiB) at most\n  hint: a smaller batch, or a model in smaller layers");
  }
  if (const size_t limit = account_.limit(); limit && account_.in_use() + idle_bytes_ > limit) release_idle();
  Block b = create(size);
  if (!b.memory && !idle_.empty()) {
    release_idle();
    b = create(size);
  }
  if (!b.memory) {
    account_.give_back(bytes);
    account_.refuse(bytes);
  }
  const uintptr_t address = next_address_;
  next_address_ += (size + kGap) / kGap * kGap + kGap;
  blocks_.emplace(address, b);
  return reinterpret_cast<void*>(address);
}

void Memory::take_back(void* address, size_t bytes) {
  account_.give_back(bytes);
  std::lock_guard lock(mutex_);
  const auto it = blocks_.find(reinterpret_cast<uintptr_t>(address));
  if (idle_bytes_ + it->second.bytes > kMostIdleBytes) {  // commands that still use it hold it
    destroy(it->second);
    blocks_.erase(it);
    return;
  }
  idle_.emplace(it->second.bytes, it->first);
  idle_bytes_ += it->second.bytes;
}

Place Memory::at(const void* address) const {
  const auto a = reinterpret_cast<uintptr_t>(address);
  std::shared_lock lock(mutex_);
  auto it = blocks_.upper_bound(a);
  if (it != blocks_.begin()) {
    --it;
    const size_t offset = a - it->first;
    if (offset <= it->second.bytes) return {it->second.memory, offset, it->second.host ? it->second.host + offset : nullptr};
  }
  internal_error(name_, ": 0x", hex(a), " is no address of this device's memory");
}

PinnedMemory::PinnedMemory(cl_context context, cl_device_id device) : context_(context) {
  cl_int status = CL_SUCCESS;
  queue_ = functions().CreateCommandQueue(context, device, 0, &status);
  check(status, "making a queue");
}
PinnedMemory::~PinnedMemory() {
  for (const auto& [address, slab] : slabs_) destroy(slab);
  functions().ReleaseCommandQueue(queue_);
}

void PinnedMemory::destroy(const Slab& slab) {
  functions().EnqueueUnmapMemObject(queue_, slab.memory, slab.mapped, 0, nullptr, nullptr);
  functions().ReleaseMemObject(slab.memory);
}

void PinnedMemory::trim() {
  std::lock_guard lock(mutex_);
  std::erase_if(slabs_, [&](const auto& entry) {
    const Slab& slab = entry.second;
    const bool is_empty = slab.free.size() == 1 && slab.free.begin()->second == slab.bytes;
    if (is_empty) destroy(slab);
    return is_empty;
  });
  functions().Flush(queue_);
}

size_t PinnedMemory::held_bytes() const {
  std::lock_guard lock(mutex_);
  size_t bytes = 0;
  for (const auto& [address, slab] : slabs_) bytes += slab.bytes;
  return bytes;
}

void* PinnedMemory::allocate(size_t bytes) {
  const size_t size = Account::counted(bytes);
  std::lock_guard lock(mutex_);
  for (auto& [address, slab] : slabs_)
    for (auto it = slab.free.begin(); it != slab.free.end(); ++it) {
      const auto [offset, there] = *it;
      if (there < size) continue;
      slab.free.erase(it);
      if (there > size) slab.free.emplace(offset + size, there - size);
      return reinterpret_cast<void*>(address + offset);
    }
  const size_t slab_bytes = std::max(size, kSlabBytes), mapped_bytes = slab_bytes + codegen::kAlignment;
  cl_int status = CL_SUCCESS;
  cl_mem memory = functions().CreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, mapped_bytes, nullptr, &status);
  if (!memory) return nullptr;
  void* mapped =
      functions().EnqueueMapBuffer(queue_, memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, mapped_bytes, 0, nullptr, nullptr, &status);
  if (!mapped) {
    functions().ReleaseMemObject(memory);
    return nullptr;
  }
  const uintptr_t first = codegen::align_up(reinterpret_cast<uintptr_t>(mapped));  // drivers align it as they like
  Slab slab{memory, mapped, slab_bytes, {}};
  if (slab_bytes > size) slab.free.emplace(size, slab_bytes - size);
  slabs_.emplace(first, std::move(slab));
  return reinterpret_cast<void*>(first);
}

void PinnedMemory::take_back(void* memory, size_t bytes) {
  const auto a = reinterpret_cast<uintptr_t>(memory);
  std::lock_guard lock(mutex_);
  auto& [address, slab] = *std::prev(slabs_.upper_bound(a));
  auto at = slab.free.emplace(a - address, Account::counted(bytes)).first;
  // Neighbours that are free become one.
  if (const auto next = std::next(at); next != slab.free.end() && at->first + at->second == next->first) {
    at->second += next->second;
    slab.free.erase(next);
  }
  if (at != slab.free.begin())
    if (const auto before = std::prev(at); before->first + before->second == at->first) {
      before->second += at->second;
      slab.free.erase(at);
    }
}

bool PinnedMemory::contains(const void* host) const {
  const auto a = reinterpret_cast<uintptr_t>(host);
  std::lock_guard lock(mutex_);
  const auto it = slabs_.upper_bound(a);
  return it != slabs_.begin() && a - std::prev(it)->first < std::prev(it)->second.bytes;
}

}  // namespace tandem::opencl
