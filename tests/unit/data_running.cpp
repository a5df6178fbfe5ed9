// How pipelines run: memory kept ahead, autotuning, what explain() says, caches, and thousands of pipelines that are given up at any
// moment.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <regex>
#include <set>
#include <thread>

#include <tandem/ops.hpp>

#include "base/cores.hpp"
#include "data/random.hpp"
#include "data_support.hpp"
#include "device/account.hpp"

namespace tandem::data {
namespace {

constexpr size_t kMiB = 1 << 20;

Tensor mebibyte(Tensor x) { return Tensor::full({256, 1024}, x.item<int64_t>(), DType::F32); }

TEST(DataRunning, QueuesStayInsideTheBudget) {
  // Elements of one MiB through queues that would hold 90 of them.
  const Dataset d = Dataset::range(40)
                        .map_callback(mebibyte, {.parallel_calls = 4})
                        .prefetch(40)
                        .map_callback([](Tensor x) { return x; }, {.parallel_calls = 2})
                        .prefetch(40)
                        .options({.ram_budget_bytes = 8 * kMiB});
  Iterator it = d.iterate();
  Element e;
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(it.next(e));
    EXPECT_EQ(e[0].to_vector<float>()[0], static_cast<float>(i));
    if (i % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the queues fill
    EXPECT_LE(it.memory_use().bytes, 8 * kMiB);
  }
  EXPECT_FALSE(it.next(e));
  EXPECT_LE(it.memory_use().peak_bytes, 8 * kMiB);
  EXPECT_GE(it.memory_use().peak_bytes, 4 * kMiB);
  EXPECT_EQ(it.memory_use().bytes, 0u);
  EXPECT_EQ(it.memory_use().budget_bytes, 8 * kMiB);
}

TEST(DataRunning, ThreadsStayOnThePipelinesCores) {
  const int core = cores::allowed().back();
  setenv("TANDEM_DATA_CORES", std::to_string(core).c_str(), 1);
  const std::thread::id reader = std::this_thread::get_id();
  std::atomic<int> here = 0, elsewhere = 0;
  Iterator it = Dataset::range(200)
                    .map_callback(
                        [&](Tensor x) {
                          cpu_set_t set;
                          const bool is_known = sched_getaffinity(0, sizeof set, &set) == 0;
                          const bool is_here = is_known && CPU_COUNT(&set) == 1 && CPU_ISSET(static_cast<size_t>(core), &set);
                          if (std::this_thread::get_id() != reader) ++(is_here ? here : elsewhere);
                          return x + 1;
                        },
                        {.parallel_calls = 3})
                    .iterate();
  unsetenv("TANDEM_DATA_CORES");  // an iterator keeps what it began with
  Element e;
  int64_t count = 0;
  while (it.next(e)) ++count;
  EXPECT_EQ(count, 200);
  EXPECT_EQ(elsewhere, 0);
  EXPECT_GT(here, 0);
}

TEST(DataRunning, QueuesShareABudgetThatIsSmallerThanTheyAreMany) {
  // Three queues, and room for three elements, or for two, or for one and a half.
  for (const size_t budget : {3 * kMiB + 7, 2 * kMiB, kMiB + kMiB / 2}) {
    for (const int64_t batch : {1, 2}) {
      Iterator it = Dataset::range(60)
                        .map_callback(mebibyte, {.parallel_calls = 3})
                        .batch(batch, {.parallel_calls = 2})
                        .prefetch(4)
                        .options({.ram_budget_bytes = budget})
                        .iterate();
      Element e;
      int64_t count = 0;
      while (it.next(e)) {
        ASSERT_EQ(e[0].shape()[0], batch);
        for (int64_t i = 0; i < batch; ++i)
          ASSERT_EQ(e[0].data<float>()[i * 256 * 1024], static_cast<float>(count++)) << budget << " " << batch;
        if (count % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));  // the queues fill
      }
      EXPECT_EQ(count, 60);
      EXPECT_LE(it.memory_use().peak_bytes, budget) << batch;
      EXPECT_GE(it.memory_use().peak_bytes, kMiB) << batch;
      EXPECT_EQ(it.memory_use().bytes, 0u);
    }
  }
}

TEST(DataRunning, OneQueueKeepsExactlyToTheBudget) {
  Iterator it = Dataset::range(30).map_callback(mebibyte).prefetch(20).options({.ram_budget_bytes = 5 * kMiB + 7}).iterate();
  Element e;
  for (int i = 0; it.next(e); ++i)
    if (i % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(it.memory_use().peak_bytes, 5 * kMiB);
}

TEST(DataRunning, ABudgetThatFitsNothingStillMoves) {
  const Dataset d =
      Dataset::range(10).map_callback(mebibyte, {.parallel_calls = 3}).prefetch(5).prefetch().options({.ram_budget_bytes = 1});
  Iterator it = d.iterate();
  EXPECT_EQ(all_of(it).size(), 10u);
  EXPECT_EQ(it.memory_use().peak_bytes, 0u);  // each goes through as it is asked for
}

TEST(DataRunning, BuffersThatWereAskedForDoNotExceedTheBudget) {
  const Dataset big = Dataset::range(100).map_callback(mebibyte);
  EXPECT_EQ(error_of([&] { all_of(big.shuffle(50).options({.ram_budget_bytes = 4 * kMiB})); }),
            "shuffle: element 0: the buffer of shuffle holds 4194304 bytes and 1048576 more do not fit into the RAM budget of 4194304 "
            "(4194304 are "
            "in use)\n  hint: a smaller buffer, or options({.ram_budget_bytes = ...})");
  EXPECT_NE(error_of([&] { all_of(big.cache().options({.ram_budget_bytes = 4 * kMiB})); }).find("cache: element 4: the cache holds"),
            std::string::npos);
}

TEST(DataRunning, PipelinesAndTheRestShareTheHostsLimit) {
  device::Account& host = device::host_account();
  host.set_limit(host.in_use() + 6 * kMiB);
  host.take(2 * kMiB);  // somebody else's
  host.reset_peak();
  Iterator it = Dataset::range(30).map_callback(mebibyte).prefetch(20).options({.ram_budget_bytes = 100 * kMiB}).iterate();
  Element e;
  for (int i = 0; it.next(e); ++i)
    if (i % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(host.peak(), host.limit());
  EXPECT_EQ(it.memory_use().peak_bytes, 4 * kMiB);
  const std::string error = error_of([&] { all_of(Dataset::range(100).map_callback(mebibyte).shuffle(50)); });
  EXPECT_EQ(
      error.find(
          "shuffle: element 0: the buffer of shuffle holds 4194304 bytes and 1048576 more do not fit into the host's memory limit of "),
      0u)
      << error;
  host.give_back(2 * kMiB);
  host.set_limit(0);
}

TEST(DataRunning, QueuesLeaveABufferItsPlace) {
  // The buffer of 10 is emptied and filled again four times, between queues that would take all there is.
  Iterator it = Dataset::range(24)
                    .map_callback(mebibyte, {.parallel_calls = 2})
                    .prefetch(30)
                    .shuffle(10)
                    .repeat(4)
                    .prefetch(30)
                    .options({.ram_budget_bytes = 12 * kMiB})
                    .iterate();
  Element e;
  int count = 0;
  for (; it.next(e); ++count)
    if (count % 6 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));  // the queues fill
  EXPECT_EQ(count, 96);
  EXPECT_GE(it.memory_use().peak_bytes, 11 * kMiB);
  EXPECT_LE(it.memory_use().peak_bytes, 13 * kMiB);  // one element may be on its way from the queue to the buffer
  EXPECT_EQ(it.memory_use().bytes, 0u);
}

TEST(DataRunning, AutotuningAddsThreadsWhereTimeIsSpent) {
  const auto slow = [](Tensor x) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return x;
  };
  Iterator it = Dataset::range(10000).map_callback(slow, {.parallel_calls = kAutotune}).prefetch().options({.cpu_share = 1.0}).iterate();
  Element e;
  std::string text;
  const std::regex two_threads("map_callback[^\\n]* 2 \\(auto\\)");
  for (int i = 0; i < 2000 && !std::regex_search(text, two_threads); ++i) {
    ASSERT_TRUE(it.next(e));
    text = it.explain();
  }
  EXPECT_TRUE(std::regex_search(text, two_threads)) << text;
}

TEST(DataRunning, ExplainNamesEachStage) {
  Iterator it = Dataset::from_slices({counting(100, 4)}).shuffle(10).map([](Tensor x) { return x + 1; }).batch(10).prefetch(2).iterate();
  Element e;
  while (it.next(e)) {
  }
  const std::string text = it.explain();
  for (const char* part : {"stage", "us/element", "queue", "prefetch(2)", "map_batched(parallel_calls=autotune)", "batch(10)",
                           "shuffle(10)", "from_slices(100 x (float32[4]))", "bottleneck: ", "kept ahead: 0 B now", "1.6 KiB"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(DataRunning, OvertakingGivesTheSameElements) {
  const auto uneven = [](Tensor x) {
    if (x.item<int64_t>() % 7 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return x;
  };
  const Dataset d = Dataset::range(100).map_callback(uneven, {.parallel_calls = 4, .deterministic = false});
  std::vector<int64_t> given = values(d);
  std::ranges::sort(given);
  EXPECT_EQ(given, values(Dataset::range(100)));
  std::vector<int64_t> inner = values(
      Dataset::range(10)
          .interleave([](const Element& e) { return Dataset::range(e[0].item<int64_t>()); }, {.cycle_length = 4, .parallel_calls = 4})
          .options({.deterministic = false}));
  EXPECT_EQ(inner.size(), 45u);
}

TEST(DataRunning, CallbacksReallyRunAtOnce) {
  std::atomic<int> now = 0, most = 0;
  const auto f = [&](Tensor x) {
    const int n = ++now;
    for (int m = most; m < n && !most.compare_exchange_weak(m, n);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    --now;
    return x;
  };
  all_of(Dataset::range(30).map_callback(f, {.parallel_calls = 4}));
  EXPECT_GT(most.load(), 1);
  EXPECT_LE(most.load(), 4);
}

TEST(DataRunning, CachesCallTheirInputOnce) {
  std::atomic<int> calls = 0;
  const auto f = [&](Tensor x) {
    ++calls;
    return x * 2;
  };
  const Folder folder;
  const Dataset source = Dataset::range(5).map_callback(f);
  for (const Dataset& d : {source.cache(), source.cache(folder / "c"), source.snapshot(folder / "s")}) {
    calls = 0;
    EXPECT_EQ(values(d.repeat(3)), (std::vector<int64_t>{0, 2, 4, 6, 8, 0, 2, 4, 6, 8, 0, 2, 4, 6, 8}));
    EXPECT_EQ(calls.load(), 5);
    EXPECT_EQ(values(d), (std::vector<int64_t>{0, 2, 4, 6, 8}));  // another iterator
    EXPECT_EQ(calls.load(), 5);
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "c"));
  EXPECT_EQ(values(Dataset::range(3).map_callback(f).cache(folder / "c")),
            (std::vector<int64_t>{0, 2, 4, 6, 8}));  // whoever names the file
  // A walk that was not finished leaves nothing behind.
  {
    Iterator it = source.cache(folder / "half").iterate();
    Element e;
    ASSERT_TRUE(it.next(e));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "half"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / ""), {}), 2);
}

TEST(DataRunning, ADamagedCacheIsAnError) {
  const Folder folder;
  const Dataset d = Dataset::range(5).cache(folder / "c");
  all_of(d);
  std::ifstream in(folder / "c", std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  folder.write("c", bytes.substr(0, bytes.size() - 30));
  EXPECT_NE(error_of([&] { all_of(d); }).find("damaged at byte"), std::string::npos);
}

TEST(DataRunning, RandomKeysDifferAndRepeat) {
  const auto noise = [](Tensor key, Tensor x) { return x.cast(DType::F32) * 0 + random_uniform(key, DimList{}); };
  const auto make = [&] { return Dataset::range(50).map_random(3, noise); };
  const std::vector<float> once = values<float>(make());
  EXPECT_EQ(std::set<float>(once.begin(), once.end()).size(), 50u);
  EXPECT_EQ(once, values<float>(make().batch(7).prefetch()));
  const std::vector<float> twice = values<float>(make().repeat(2));
  EXPECT_EQ(std::set<float>(twice.begin(), twice.end()).size(), 100u);  // other numbers in another epoch
}

TEST(DataRunning, SamplesFollowTheirWeights) {
  const Dataset d =
      Dataset::sample_from({Dataset::range(1).repeat(), Dataset::range(1, 2).repeat()}, {.weights = {0.2, 0.8}, .seed = 1}).take(2000);
  const std::vector<int64_t> given = values(d);
  EXPECT_NEAR(static_cast<double>(std::ranges::count(given, 1)), 1600, 80);
  EXPECT_EQ(values(Dataset::sample_from({Dataset::range(3), Dataset::range(0)}, {.seed = 1})), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(
      values(Dataset::sample_from({Dataset::range(3), Dataset::range(0)}, {.weights = {0, 1}, .seed = 1, .stop_on_empty = true})).size(),
      0u);
}

TEST(DataRunning, PrefetchToDeviceGivesMemoryOfItsOwn) {
  const Tensor x = counting(10, 3);
  std::vector<Element> kept =
      all_of(Dataset::from_slices({Tensor::view(x.raw_data(), DType::F32, {10, 3}, {}, [x] {})}).batch(3).prefetch_to_device(2));
  EXPECT_EQ(values<float>(kept), x.to_vector<float>());
  for (const Element& e : kept) {
    const auto* data = static_cast<const float*>(e[0].raw_data());
    EXPECT_TRUE(data < x.data<float>() || data >= x.data<float>() + 30);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
  }
}

// --- stress -------------------------------------------------------------------------------------------------------------------------

Dataset random_stage(const Dataset& d, Random& random);

Dataset random_pipeline(Random& random) {
  Dataset d = random.below(2) ? Dataset::range(static_cast<int64_t>(random.below(60)))
                              : Dataset::from_slices({Tensor::arange<int64_t>(0, static_cast<int64_t>(random.below(60)), 1, DType::I64)});
  for (uint64_t n = random.below(6); n > 0; --n) d = random_stage(d, random);
  return d;
}

int64_t some(Random& random, uint64_t most) { return 1 + static_cast<int64_t>(random.below(most)); }

// Elements are one int64 scalar before and after each.
Dataset random_stage(const Dataset& d, Random& random) {
  const uint64_t seed = random.bits();
  switch (random.below(19)) {
    case 0: return d.map([](Tensor x) { return x + 1; }, {.parallel_calls = some(random, 3)});
    case 1: return d.map([](Tensor x) { return x * 3; });
    case 2: return d.map_callback([](Tensor x) { return x; }, {.parallel_calls = some(random, 4)});
    case 3:
      return d.map_callback(
          [](Tensor x) {
            if (x.item<int64_t>() % 5 == 1) throw std::runtime_error("bad");
            return x;
          },
          {.parallel_calls = some(random, 3)});
    case 4: return d.prefetch(some(random, 5));
    case 5: return d.prefetch();
    case 6: return d.shuffle(some(random, 9), {.seed = seed});
    case 7: return d.repeat(some(random, 3));
    case 8: return d.batch(some(random, 5)).unbatch();
    case 9: return d.batch(some(random, 5), BatchOptions{.parallel_calls = some(random, 3)}).prefetch(1).unbatch();
    case 10: return d.take(some(random, 40)).skip(some(random, 4));
    case 11:
      return d.interleave([](const Element& e) { return Dataset::from_tensors(e).repeat(3).prefetch(1); },
                          {.cycle_length = some(random, 4), .block_length = some(random, 3), .parallel_calls = some(random, 4)});
    case 12: return d.flat_map([](const Element& e) { return Dataset::from_tensors(e).repeat(2); });
    case 13: return Dataset::zip({d, Dataset::range(1000).prefetch(2)}).map_callback([](Tensor x, Tensor) { return x; });
    case 14: return d.concatenate(Dataset::range(7).prefetch(2));
    case 15: return d.filter_callback([](const Element& e) { return e[0].item<int64_t>() % 2 == 0; });
    case 16: return d.cache();
    case 17: return Dataset::sample_from({d, Dataset::range(9).prefetch()}, {.seed = seed});
    default: return d.ignore_errors();
  }
}

TEST(DataRunning, RandomPipelinesAreGivenUpAtAnyMoment) {
  Random random(2026);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const Dataset d = random_pipeline(random);
    Iterator it = d.iterate();
    const uint64_t stop = random.below(40);
    std::string state;
    Element e;
    for (uint64_t i = 0; i < stop; ++i) {
      try {
        if (!it.next(e)) break;
      } catch (const UserError&) {
      }
      if (random.below(20) == 0) state = it.save();
    }
    if (random.below(4) == 0) std::this_thread::yield();
    if (!state.empty()) it.restore(state);
    if (random.below(3) == 0) error_of([&] { it.next(e); });
    it.explain();
  }
}

// The same position gives the same rest, for pipelines that nobody thought of.
TEST(DataRunning, RandomPipelinesResume) {
  Random random(7);
  const auto drain = [](Iterator& it, uint64_t most) {
    std::vector<std::string> all;
    for (Element e; all.size() < most;) {
      try {
        if (!it.next(e)) break;
        all.push_back(e[0].str());
      } catch (const Error& error) {
        all.push_back(error.what());
      }
    }
    return all;
  };
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    Random again = random;
    const Dataset d = random_pipeline(random);
    const Dataset equal = random_pipeline(again);
    ASSERT_EQ(d.str(), equal.str());
    SCOPED_TRACE(d.str());
    Iterator first = d.iterate(), second = equal.iterate();
    drain(first, random.below(30));
    second.restore(first.save());
    ASSERT_EQ(drain(first, 200), drain(second, 200));
  }
}

}  // namespace
}  // namespace tandem::data
