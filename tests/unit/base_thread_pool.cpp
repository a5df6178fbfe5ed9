// The thread pool: every chunk exactly once, whoever calls, whatever is thrown.
#include <gtest/gtest.h>

#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <stdexcept>
#include <tandem/error.hpp>
#include <thread>
#include <vector>

#include "base/thread_pool.hpp"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

// Waits until `ready`, for at most ten seconds, so that a broken pool fails a test instead of hanging it.
template <class F> bool eventually(F&& ready) {
  for (const auto end = Clock::now() + std::chrono::seconds(10); !ready();) {
    if (Clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(ThreadPool, EveryChunkOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t chunks : {0, 1, 2, 3, 7, 1000}) {
      std::vector<int> hits(static_cast<size_t>(chunks), 0);  // plain: a chunk run twice at a time is a data race
      pool.run(chunks, [&](int64_t chunk) { ++hits[static_cast<size_t>(chunk)]; });
      EXPECT_EQ(hits, std::vector<int>(hits.size(), 1)) << threads << " threads, " << chunks << " chunks";
    }
  }
}

TEST(ThreadPool, ManyShortRunsSeeEachOthersWrites) {
  ThreadPool pool(3);
  std::vector<int64_t> values(4, 0);
  for (int round = 0; round < 3000; ++round)
    pool.run(4, [&](int64_t chunk) { values[static_cast<size_t>(chunk)] += values[static_cast<size_t>(chunk)] == round; });
  EXPECT_EQ(values, std::vector<int64_t>(4, 3000));
}

TEST(ThreadPool, WorkersReallyTakePart) {
  ThreadPool pool(3);
  std::atomic<int> arrived = 0;
  std::atomic<bool> met = true;
  pool.run(3, [&](int64_t) {  // passes only if three threads are in chunks at the same time
    ++arrived;
    if (!eventually([&] { return arrived.load() == 3; })) met = false;
  });
  EXPECT_TRUE(met);
}

TEST(ThreadPool, ReturnsOnlyWhenTheWorkersChunkIsDone) {
  ThreadPool pool(2);
  for (auto delay : {std::chrono::microseconds(5), std::chrono::microseconds(5000)}) {  // the caller spins; the caller sleeps
    const auto caller = std::this_thread::get_id();
    std::atomic<bool> worker_started = false, worker_done = false;
    pool.run(2, [&](int64_t) {
      if (std::this_thread::get_id() == caller) {
        eventually([&] { return worker_started.load(); });
      } else {
        worker_started = true;
        std::this_thread::sleep_for(delay);
        worker_done = true;
      }
    });
    EXPECT_TRUE(worker_done);
  }
}

TEST(ThreadPool, WakesSleepingWorkers) {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // long past the spinning
    std::atomic<int> arrived = 0;
    std::atomic<bool> met = true;
    pool.run(2, [&](int64_t) {
      ++arrived;
      if (!eventually([&] { return arrived.load() == 2; })) met = false;
    });
    EXPECT_TRUE(met);
  }
}

TEST(ThreadPool, CallerDoesNotWaitForAWorkerThatTakesNoPart) {
  ThreadPool pool(2);
  std::atomic<bool> worker_holds = false, release = false;
  // A worker held in the chunk of one run would delay that run only; so hold it in one, from another thread.
  std::thread holder([&] {
    pool.run(2, [&](int64_t) {
      worker_holds = true;
      eventually([&] { return release.load(); });
    });
  });
  ASSERT_TRUE(eventually([&] { return worker_holds.load(); }));
  int64_t sum = 0;  // plain, since all chunks run on this thread
  const uint64_t wakes = pool.wake_count();
  pool.run(100, [&](int64_t chunk) { sum += chunk; });
  EXPECT_EQ(sum, 4950);
  EXPECT_EQ(pool.wake_count(), wakes);
  release = true;
  holder.join();
}

TEST(ThreadPool, LongChunksOfADelayedThreadAreTakenOver) {
  ThreadPool pool(2);
  std::atomic<int> done = 0;
  std::atomic<bool> met = true;
  pool.run(8, [&](int64_t) {
    if (ThreadPool::this_worker() == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    else if (!eventually([&] { return done.load() == 7; }))  // held until the caller did all others
      met = false;
    ++done;
  });
  EXPECT_TRUE(met);
}

TEST(ThreadPool, WakeCount) {
  ThreadPool pool(4);
  EXPECT_EQ(pool.wake_count(), 0u);
  pool.run(0, [](int64_t) {});
  pool.run(1, [](int64_t) {});
  EXPECT_EQ(pool.wake_count(), 0u);
  pool.run(2, [](int64_t) {});
  EXPECT_EQ(pool.wake_count(), 1u);
  pool.run(100, [](int64_t) {});
  EXPECT_EQ(pool.wake_count(), 4u);
  ThreadPool single(1);
  single.run(100, [](int64_t) {});
  EXPECT_EQ(single.wake_count(), 0u);
}

TEST(ThreadPool, OneChunkRunsOnTheCaller) {
  ThreadPool pool(2);
  std::thread::id id;
  pool.run(1, [&](int64_t) { id = std::this_thread::get_id(); });
  EXPECT_EQ(id, std::this_thread::get_id());
}

TEST(ThreadPool, NestedRunsAreInline) {
  ThreadPool pool(3), other(3);
  std::vector<int> strangers(6, 0), sums(6, 0);
  pool.run(6, [&](int64_t outer) {
    const auto self = std::this_thread::get_id();
    for (ThreadPool* inner_pool : {&pool, &other}) {
      inner_pool->run(10, [&](int64_t inner) {
        strangers[static_cast<size_t>(outer)] += std::this_thread::get_id() != self;
        sums[static_cast<size_t>(outer)] += static_cast<int>(inner);
      });
    }
  });
  EXPECT_EQ(strangers, std::vector<int>(6, 0));
  EXPECT_EQ(sums, std::vector<int>(6, 90));
  EXPECT_EQ(pool.wake_count(), 2u);
  EXPECT_EQ(other.wake_count(), 0u);
  other.run(2, [](int64_t) {});  // the caller is no longer inside
  EXPECT_EQ(other.wake_count(), 1u);
}

TEST(ThreadPool, ExceptionReachesTheCallerAfterAllChunks) {
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (int64_t chunks : {1, 50}) {
      std::atomic<int64_t> ran = 0;
      try {
        pool.run(chunks, [&](int64_t chunk) {
          ++ran;
          if (chunk == 0) throw UserError("chunk 0");
        });
        ADD_FAILURE() << "nothing was thrown";
      } catch (const UserError& e) {
        EXPECT_STREQ(e.what(), "chunk 0");
      }
      EXPECT_EQ(ran, chunks);
    }
    std::atomic<int> after = 0;  // and the pool still works, without the old exception
    pool.run(10, [&](int64_t) { ++after; });
    EXPECT_EQ(after, 10);
  }
}

TEST(ThreadPool, FirstOfManyExceptions) {
  ThreadPool pool(4);
  for (int round = 0; round < 200; ++round)
    EXPECT_THROW(pool.run(16, [](int64_t chunk) { throw std::out_of_range(std::to_string(chunk)); }), std::out_of_range);
  ThreadPool single(1);
  try {
    single.run(5, [](int64_t chunk) { throw std::out_of_range(std::to_string(chunk)); });
  } catch (const std::out_of_range& e) {
    EXPECT_STREQ(e.what(), "0");
  }
}

TEST(ThreadPool, ManyCallersAtOnce) {
  ThreadPool pool(3);
  std::vector<int64_t> sums(4, 0);
  std::vector<std::thread> callers;
  for (size_t caller = 0; caller < sums.size(); ++caller) {
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 500; ++round) {
        std::vector<int64_t> parts(9, 0);
        pool.run(9, [&](int64_t chunk) { parts[static_cast<size_t>(chunk)] = chunk; });
        sums[caller] += std::accumulate(parts.begin(), parts.end(), int64_t{0});
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sums, std::vector<int64_t>(4, 500 * 36));
}

TEST(ThreadPool, StartsAndStopsQuickly) {
  for (int round = 0; round < 100; ++round) {
    ThreadPool pool(4);  // destroyed before its workers are all up
    if (round % 2) pool.run(4, [](int64_t) {});
  }
}

TEST(ThreadPool, TakesConstAndTemporaryFunctions) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum = 0;
  const auto add = [&](int64_t chunk) { sum += chunk; };
  pool.run(5, add);
  pool.run(5, [&](int64_t chunk) mutable { sum += chunk; });
  EXPECT_EQ(sum, 20);
}

TEST(ThreadPool, CountOfThreads) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(ThreadPool(0).threads(), CPU_COUNT(&set));
  EXPECT_THROW(ThreadPool(-1), UserError);
}

// A bound far above the few microseconds it takes, but far below what a lost wake-up or a sleeping poll would cost.
TEST(ThreadPool, WarmRunIsQuick) {
  ThreadPool pool(2);
  pool.run(2, [](int64_t) {});
  constexpr int kRounds = 2000;
  const auto begin = Clock::now();
  for (int round = 0; round < kRounds; ++round) pool.run(2, [](int64_t) {});
  const double microseconds = std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / kRounds;
  RecordProperty("microseconds_per_run", std::to_string(microseconds));
  EXPECT_LT(microseconds, 500.0);
}

}  // namespace
TEST(ThreadPool, ChunksAtTheSameTimeSeeDifferentWorkers) {
  ThreadPool pool(3);
  EXPECT_EQ(ThreadPool::this_worker(), 0);
  std::array<std::atomic<int>, 3> inside{};
  std::atomic<bool> shared = false;
  pool.run(200, [&](int64_t) {
    const auto me = static_cast<size_t>(ThreadPool::this_worker());
    ASSERT_LT(me, inside.size());
    if (inside[me].fetch_add(1) != 0) shared = true;
    std::this_thread::yield();
    inside[me].fetch_sub(1);
  });
  EXPECT_FALSE(shared);
}

}  // namespace tandem
