#include "base/fork.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "base/text.hpp"
#include "base/thread_kept.hpp"

namespace tandem {
namespace {

// Most calls are over by then; whoever forks beside a long one and computes in the child is told. What the engine's own threads do has an
// end, also where other programs have the cores: they prepare the code generator, or a few elements of a pipeline.
constexpr auto kLongestWait = std::chrono::seconds(1), kLongestWaitForOwn = std::chrono::seconds(10);
constexpr auto kLookAgain = std::chrono::microseconds(200);

struct Record;
struct Shared {
  std::mutex one_fork;  // at a time
  std::mutex mutex;     // of `threads`; held across a fork
  std::vector<Record*> threads;
  std::atomic<bool> is_forking = false;
};
// Never destroyed: threads may outlive everything else.
Shared& shared() {
  static auto& s = *new Shared;
  return s;
}

constinit std::atomic<uint32_t> forks = 0;
constinit std::atomic<bool> is_unsound = false;
bool was_busy = false;  // between the halves of one fork

void before_fork();
void in_parent();
void in_child();

// One thread's. Only it writes `depth`.
struct Record {
  std::atomic<int> depth = 0;
  std::atomic<bool> is_own = false;  // the outermost Working is of the engine's own thread
  Record() {
    static const int registered = pthread_atfork(before_fork, in_parent, in_child);
    if (registered != 0) resource_error("fork: the engine cannot learn of it (error ", registered, ")");
    std::lock_guard lock(shared().mutex);
    shared().threads.push_back(this);
  }
  ~Record() {
    std::lock_guard lock(shared().mutex);
    std::erase(shared().threads, this);
  }
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;
};

Record* own_record() { return thread_kept<Record>(); }

bool others_are_at_work(bool is_own) {
  return std::ranges::any_of(shared().threads,
                             [=, self = own_record()](const Record* r) { return r != self && r->is_own == is_own && r->depth.load() > 0; });
}

void before_fork() {
  own_record();  // registers itself before the lock is taken
  shared().one_fork.lock();
  shared().is_forking = true;
  shared().mutex.lock();
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    const bool callers = others_are_at_work(false), own = others_are_at_work(true);
    was_busy = callers || own;
    const auto passed = std::chrono::steady_clock::now() - start;
    if (!was_busy || passed > kLongestWaitForOwn || (callers && passed > kLongestWait)) break;
    shared().mutex.unlock();  // a thread that ends wants it
    std::this_thread::sleep_for(kLookAgain);
    shared().mutex.lock();
  }
}

void in_parent() {
  shared().is_forking = false;
  shared().mutex.unlock();
  shared().one_fork.unlock();
}

void in_child() {
  forks.fetch_add(1, std::memory_order_relaxed);
  if (was_busy) is_unsound = true;
  std::erase_if(shared().threads, [own = own_record()](const Record* r) { return r != own; });
  in_parent();
}

// Both in one order for all threads: a fork sees the depth, or this sees the fork and waits for its end.
void enter_beside_forks(Record& record, int depth) {
  for (;;) {
    record.depth.store(depth);
    if (!shared().is_forking.load()) return;
    record.depth.store(0);
    const std::lock_guard until_it_is_over(shared().mutex);
  }
}

}  // namespace

Working::Working(Thread thread) {
  Record* record = own_record();
  if (!record) return;  // this thread is ending
  const int depth = record->depth.load(std::memory_order_relaxed);
  if (depth == 0) record->is_own = thread == Thread::Own;
  if (depth == 0 && thread == Thread::Own)
    enter_beside_forks(*record, 1);
  else
    record->depth.store(depth + 1, std::memory_order_relaxed);
}

Working::~Working() {
  if (Record* record = own_record()) record->depth.store(record->depth.load(std::memory_order_relaxed) - 1, std::memory_order_release);
}

Visiting::Visiting() : depth_(0) {
  Record* record = own_record();
  if (!record || !record->is_own) return;
  depth_ = record->depth.load(std::memory_order_relaxed);
  record->depth.store(0, std::memory_order_release);
}

Visiting::~Visiting() {
  if (Record* record = depth_ > 0 ? own_record() : nullptr) {
    record->is_own = true;
    enter_beside_forks(*record, depth_);
  }
}

uint32_t fork_count() { return forks.load(std::memory_order_relaxed); }

void require_sound_fork() {
  if (is_unsound.load(std::memory_order_relaxed)) [[unlikely]]
    user_error(ErrorCode::FailedPrecondition,
               "fork: another thread of the parent was computing when this process was forked, so what it had locked stays locked here"
               "\n  hint: start processes with multiprocessing.get_context(\"spawn\"), or fork while no other thread computes");
}

}  // namespace tandem
