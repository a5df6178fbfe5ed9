// Persistent workers that join a published job, take chunks of it, and leave.
//
// Nobody waits for a worker that has not joined: one that sleeps, or whose core is busy with another program, simply takes no part.
// That is why a job has seats instead of a barrier of all threads.
#include "base/thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "base/cores.hpp"
#include "base/text.hpp"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kCacheLine = 64;
// About what waking a sleeper costs (measured: 10 us for the caller, 70 until the worker runs). Waiting as long as the remedy
// costs is never worse than twice the best choice, and it bridges the serial stretches between the kernels of a step.
constexpr auto kSpinTime = std::chrono::microseconds(50);
// Chunks that take no longer stay with the thread that is at work on their share: to move what one touches from core to core costs more
// than it does (measured: 45 us for one of 8), and again in the next step, when its owner fetches it back.
constexpr auto kShortChunk = std::chrono::microseconds(15);

// True while this thread works on a shared job, whose pool is then taken: a nested run has to be inline.
thread_local bool inside_job = false;
thread_local int worker_number = 0;

int available_cores() { return static_cast<int>(cores::allowed().size()); }

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Returns when the value is no longer `old`: soon after the change if it comes within the spin time, else through the kernel.
void wait_while_equal(const std::atomic<uint32_t>& value, uint32_t old, bool may_spin) {
  if (may_spin) {
    const auto end = Clock::now() + kSpinTime;
    do {
      for (int i = 0; i < 16; ++i) {  // the clock costs as much as a few rounds
        if (value.load(std::memory_order_acquire) != old) return;
        relax();
      }
    } while (Clock::now() < end);
  }
  value.wait(old, std::memory_order_acquire);
}

// One run. Lives on the caller's stack. Each thread begins with a share of its own, so that the next step of a training finds what it
// worked on in its core's cache; who is done takes from the others' shares, unless the chunks are short.
class Job {
 public:
  Job(ThreadPool::Task task, void* context, int64_t chunks, int threads)
      : task_(task), context_(context), shares_(static_cast<int>(std::clamp<int64_t>(chunks, 1, std::min(threads, kMostShares)))) {
    for (int i = 0; i < shares_; ++i) {
      share_[i].next.store(chunks * i / shares_, std::memory_order_relaxed);
      share_[i].end = chunks * (i + 1) / shares_;
      share_[i].has_owner.store(false, std::memory_order_relaxed);
    }
  }

  void work() {
    Share& own = share_[worker_number % shares_];
    if (shares_ == 1) {
      while (take(own)) continue;
      return;
    }
    own.has_owner.store(true, std::memory_order_relaxed);
    const auto start = Clock::now();
    int64_t done = 0;
    while (take(own)) ++done;
    const bool short_chunks = done > 0 && (Clock::now() - start) / done < kShortChunk;
    for (int i = 1; i < shares_; ++i) {
      Share& other = share_[(worker_number + i) % shares_];
      if (short_chunks && other.has_owner.load(std::memory_order_relaxed)) continue;
      while (take(other)) continue;
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void run(int64_t chunk) {
    try {
      task_(context_, chunk);
    } catch (...) {
      if (!failed_.exchange(true, std::memory_order_relaxed)) error_ = std::current_exception();
    }
  }

  static constexpr int kMostShares = 32;
  struct alignas(kCacheLine) Share {
    std::atomic<int64_t> next;
    int64_t end;
    std::atomic<bool> has_owner;  // who will take chunks until there are none
  };
  bool take(Share& share) {
    const int64_t chunk = share.next.fetch_add(1, std::memory_order_relaxed);
    if (chunk >= share.end) return false;
    run(chunk);
    return true;
  }
  ThreadPool::Task task_;
  void* context_;
  int shares_;
  std::atomic<bool> failed_ = false;
  std::exception_ptr error_;  // written by the one that set `failed_`
  Share share_[kMostShares];  // only the first `shares_` are set
};

}  // namespace

struct ThreadPool::Impl {
  static constexpr uint32_t kOpen = 1u << 31;

  std::vector<std::thread> workers;
  const bool may_spin = available_cores() > 1;  // alone on a core, spinning only keeps the awaited one from running
  std::atomic<bool> taken = false;              // by the caller whose job the workers may join
  std::atomic<bool> stopping = false;
  std::atomic<uint64_t> wakes = 0;
  Job* job = nullptr;  // valid for who has a seat
  // kOpen while workers may join, plus the number that did and have not left. The caller returns at 0.
  alignas(kCacheLine) std::atomic<uint32_t> seats = 0;
  // Changes with every job and at the end; idle workers sleep on it.
  alignas(kCacheLine) std::atomic<uint32_t> signal = 0;

  ~Impl() {
    stopping.store(true, std::memory_order_relaxed);
    ring(workers.size());
    for (std::thread& worker : workers) worker.join();
  }

  void ring(size_t count) {
    signal.fetch_add(1);
    if (count >= workers.size()) {
      signal.notify_all();
    } else {
      for (size_t i = 0; i < count; ++i) signal.notify_one();
    }
  }

  bool join() {
    uint32_t seen = seats.load(std::memory_order_relaxed);
    while (seen & kOpen)
      if (seats.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire, std::memory_order_relaxed)) return true;
    return false;
  }

  void leave() {
    if (seats.fetch_sub(1) == 1) seats.notify_one();
  }

  void worker_loop(int number) {
    inside_job = true;
    worker_number = number;
    uint32_t seen = 0;  // read before looking for a job, so that one published in between is not slept through
    while (!stopping.load(std::memory_order_relaxed)) {
      if (join()) {
        job->work();
        leave();
      }
      wait_while_equal(signal, seen, may_spin);
      seen = signal.load(std::memory_order_acquire);
    }
  }

  void share(Job& shared, int64_t chunks) {
    const size_t helpers = static_cast<size_t>(std::min<int64_t>(chunks - 1, static_cast<int64_t>(workers.size())));
    wakes.fetch_add(helpers, std::memory_order_relaxed);
    job = &shared;
    seats.store(kOpen, std::memory_order_release);
    ring(helpers);

    inside_job = true;
    shared.work();
    inside_job = false;

    uint32_t left = seats.fetch_sub(kOpen, std::memory_order_acquire) - kOpen;
    while (left != 0) {
      wait_while_equal(seats, left, may_spin);
      left = seats.load(std::memory_order_acquire);
    }
  }
};

ThreadPool::ThreadPool(int threads, std::span<const int> pinned) : impl_(std::make_unique<Impl>()) {
  if (threads < 0) user_error("threads: ", threads, " is negative, 0 means all ", available_cores(), " cores");
  if (threads == 0) threads = available_cores();
  impl_->workers.reserve(static_cast<size_t>(threads) - 1);
  try {
    for (int i = 1; i < threads; ++i) impl_->workers.emplace_back([impl = impl_.get(), i] { impl->worker_loop(i); });
    for (size_t i = 0; i < impl_->workers.size() && !pinned.empty(); ++i)
      cores::keep(impl_->workers[i].native_handle(), pinned.subspan((i + 1) % pinned.size(), 1));
  } catch (const std::system_error& e) {
    resource_error("threads: only ", impl_->workers.size() + 1, " of ", threads, " could be started (", e.what(), ")");
  }
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::threads() const { return static_cast<int>(impl_->workers.size()) + 1; }

void ThreadPool::keep_this_thread_apart() { inside_job = true; }

int ThreadPool::this_worker() { return worker_number; }

uint64_t ThreadPool::wake_count() const { return impl_->wakes.load(std::memory_order_relaxed); }

void ThreadPool::run_erased(int64_t chunks, Task task, void* context) {
  const bool alone = chunks <= 1 || threads() == 1 || inside_job || impl_->taken.exchange(true, std::memory_order_acquire);
  Job job(task, context, chunks, alone ? 1 : threads());
  if (alone) {
    job.work();
  } else {
    impl_->share(job, chunks);
    impl_->taken.store(false, std::memory_order_release);
  }
  job.rethrow();
}

}  // namespace tandem
