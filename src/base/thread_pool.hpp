// The engine's own threads. Each takes chunks from a share of its own, then from shares of others who did not come or whose chunks are
// long, so a core that another program takes away delays one chunk and not everybody. The calling thread works too. Nested calls run
// inline. An exception in a chunk reaches the caller (the first one). After fork() a child's runs complete on the calling thread alone, and
// it must not destroy the pool; base/fork.hpp sees to it that no run was under way.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

namespace tandem {

class ThreadPool {
 public:
  // Counts the caller: 1 means no worker at all. 0 means all cores this process may use, as in TANDEM_THREADS. `pinned`: cores that the
  // workers stay on, worker i on number i of them, round and round; the caller's thread is the program's and stays where it is.
  explicit ThreadPool(int threads, std::span<const int> pinned = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;
  // Of the calling thread: 0 for one that is not a worker, else 1 to threads() - 1. Chunks of one run that go on at the same time see
  // different numbers, so each may have a piece of scratch memory by it.
  static int this_worker();
  // From now on what the calling thread runs takes no workers, whose cores are others'.
  static void keep_this_thread_apart();

  // Runs f(chunk) for chunk in [0, chunks), in any order, and returns when all are done. chunks <= 1 never wakes a worker.
  // Any thread may call. When another one's run is under way the call runs inline: its thread has a core already, and waiting for
  // somebody else's work would not give it a second one sooner. An exception does not stop the other chunks.
  template <class F> void run(int64_t chunks, F&& f) {
    auto call = [](void* ctx, int64_t chunk) { (*static_cast<std::remove_reference_t<F>*>(ctx))(chunk); };
    run_erased(chunks, call, const_cast<void*>(static_cast<const void*>(&f)));
  }
  using Task = void (*)(void* context, int64_t chunk);
  void run_erased(int64_t chunks, Task task, void* context);

  // How often a worker was woken since the start; tests of "small work stays on one thread" read it. Counts what callers asked for:
  // a run that shares its chunks adds min(chunks, threads()) - 1, any other nothing.
  uint64_t wake_count() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem
