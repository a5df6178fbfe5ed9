#include "memory_pool.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>

#include "base/text.hpp"

namespace tandem::cpu {

// Sits in the first kHeader bytes of its block; the data follow.
class PooledBuffer final : public device::Buffer {
 public:
  PooledBuffer(device::Device& owner, MemoryPool& pool, void* data, size_t bytes, size_t capacity)
      : Buffer(owner, data, bytes), pool_(&pool), capacity_(capacity) {}

 private:
  void destroy() override {
    MemoryPool* pool = pool_;
    const size_t asked = bytes(), capacity = capacity_;
    this->~PooledBuffer();
    pool->take_back(this, asked, capacity);
  }
  MemoryPool* pool_;
  size_t capacity_;
};

namespace {

constexpr size_t kHeader = 64;
static_assert(sizeof(PooledBuffer) <= kHeader);
constexpr size_t kSmallest = 128, kLargestSmall = 1 << 16;
constexpr int kClasses = 10;  // 128 B … 64 KiB by powers of two
constexpr int kKeptPerClass = 64;
constexpr size_t kKeptLargeBytes = size_t{64} << 20;
constexpr size_t kHugePage = size_t{2} << 20;  // walking megabytes in pages of 4 KiB waits for address translation
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeep = false;  // a kept block would hide a use after free
#else
constexpr bool kKeep = true;
#endif

int class_of(size_t capacity) { return std::countr_zero(capacity) - std::countr_zero(kSmallest); }

// A thread's own free blocks. Buffers may die after the thread's storage has; then they go straight back to the system.
struct SmallBlocks {
  struct Free {
    Free* next;
  };
  Free* first[kClasses] = {};
  int count[kClasses] = {};
  static thread_local bool gone;
  ~SmallBlocks() {
    gone = true;
    clear();
  }
  void clear() {
    for (Free*& f : first)
      while (f) {
        Free* next = f->next;
        std::free(f);
        f = next;
      }
    std::ranges::fill(count, 0);
  }
};
thread_local bool SmallBlocks::gone = false;
thread_local SmallBlocks small_blocks;

size_t physical_bytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

MemoryPool::~MemoryPool() {
  for (auto& [capacity, block] : large_) std::free(block);
}

void MemoryPool::trim() {
  if (!SmallBlocks::gone) small_blocks.clear();
  std::lock_guard lock(mutex_);
  for (auto& [capacity, block] : large_) std::free(block);
  large_.clear();
  large_bytes_ = 0;
}

void* MemoryPool::fresh(size_t capacity, size_t asked) {
  // Asking the system for more than there is may succeed and kill the process later; the limit is ours to keep.
  const bool huge = capacity >= 2 * kHugePage;
  void* p = nullptr;
  const auto take = [&] { return posix_memalign(&p, huge ? kHugePage : codegen::kAlignment, capacity) == 0; };
  if (asked >= physical_bytes() || (!take() && (trim(), !take())))
    resource_error(ErrorCode::ResourceExhausted, "cpu: cannot allocate ", asked, " bytes (", asked >> 20, " MiB): the machine has ",
                   physical_bytes() >> 20, " MiB, ", account_.in_use() >> 20,
                   " MiB of them in use by tandem\n  hint: a smaller batch, or fewer tensors kept alive");
  // A wish: where the system has none to give, ordinary pages serve as well, only slower.
  if (huge) madvise(p, capacity, MADV_HUGEPAGE);
  return p;
}

device::BufferRef MemoryPool::allocate(device::Device& owner, size_t bytes) {
  account_.take(bytes);
  try {
    const auto [block, capacity] = block_for(bytes);
    return device::BufferRef(new (block) PooledBuffer(owner, *this, static_cast<char*>(block) + kHeader, bytes, capacity));
  } catch (...) {
    account_.give_back(bytes);
    throw;
  }
}

MemoryPool::Block MemoryPool::block_for(size_t bytes) {
  void* block = nullptr;
  size_t capacity;
  if (bytes <= kLargestSmall - kHeader) {
    capacity = std::bit_ceil(std::max(bytes + kHeader, kSmallest));
    const int c = class_of(capacity);
    if (kKeep && !SmallBlocks::gone && small_blocks.first[c]) {
      block = small_blocks.first[c];
      small_blocks.first[c] = small_blocks.first[c]->next;
      --small_blocks.count[c];
    }
  } else {
    if (bytes > SIZE_MAX - 2 * kHeader) fresh(0, bytes);
    capacity = codegen::align_up(bytes + kHeader);
    std::lock_guard lock(mutex_);
    if (auto it = large_.lower_bound(capacity); it != large_.end() && it->first <= capacity + capacity / 8) {
      capacity = it->first;
      block = it->second;
      large_bytes_ -= capacity;
      large_.erase(it);
    }
  }
  if (!block) block = fresh(capacity, bytes);
  return {block, capacity};
}

void MemoryPool::take_back(void* block, size_t bytes, size_t capacity) {
  account_.give_back(bytes);
  if (kKeep && capacity <= kLargestSmall) {
    const int c = class_of(capacity);
    if (!SmallBlocks::gone && small_blocks.count[c] < kKeptPerClass) {
      auto* f = static_cast<SmallBlocks::Free*>(block);
      f->next = small_blocks.first[c];
      small_blocks.first[c] = f;
      ++small_blocks.count[c];
      return;
    }
  } else if (kKeep) {
    std::lock_guard lock(mutex_);
    if (large_bytes_ + capacity <= kKeptLargeBytes) {
      large_.emplace(capacity, block);
      large_bytes_ += capacity;
      return;
    }
  }
  std::free(block);
}

}  // namespace tandem::cpu
