// Which cores compute for whom: lists of them, and how they are shared out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sched.h>

#include <tandem/error.hpp>

#include "base/cores.hpp"
#include "base/text.hpp"
#include "base/thread_pool.hpp"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
};

TEST(Cores, ListsAreReadAndWritten) {
  EXPECT_THAT(cores::parse("0-3,6"), ElementsAre(0, 1, 2, 3, 6));
  EXPECT_THAT(cores::parse("5,1,1-2"), ElementsAre(1, 2, 5));
  EXPECT_EQ(cores::text(std::vector{0, 1, 2, 3, 6, 8, 9}), "0-3,6,8-9");
  EXPECT_EQ(cores::text({}), "");
  for (const auto& [text, why] :
       {std::pair("x", "\"x\" does not begin with the number of a core"), std::pair("3-1", "the range 3-1 goes down"),
        std::pair("1;2", "there is no comma before \";2\""), std::pair("1,", "\"\" does not begin")}) {
    try {
      cores::parse(text);
      ADD_FAILURE() << text;
    } catch (const UserError& e) {
      EXPECT_THAT(e.what(), HasSubstr(cat("TANDEM_CORES: \"", text, "\": ", why)));
      EXPECT_THAT(e.what(), HasSubstr("such as 0-3,6"));
    }
  }
}

TEST(Cores, PartsHaveTheirOwnAsLongAsThereAreEnough) {
  const std::vector<int> five{2, 3, 4, 8, 9};
  EXPECT_THAT(cores::part(five, 0, 2), ElementsAre(2, 3));
  EXPECT_THAT(cores::part(five, 1, 2), ElementsAre(4, 8, 9));
  EXPECT_THAT(cores::part(five, 0, 1), ElementsAre(2, 3, 4, 8, 9));
  EXPECT_THAT(cores::part(std::vector{4}, 1, 2), ElementsAre(4));
  EXPECT_THAT(cores::part(std::vector{4, 5}, 2, 3), ElementsAre(4));
}

TEST(Cores, EmulatedGpusTakeTheLastOnesAndTheCpuTheRest) {
  const std::vector<int> all = cores::allowed();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(cores::of_cpu(), all);
  EXPECT_TRUE(cores::of_emulated_gpus().empty());
  const Environment one("TANDEM_EMULATE_GPU", "1x1GiB");
  EXPECT_THAT(cores::of_emulated_gpus(), ElementsAre(all.back()));
  if (all.size() == 1)
    EXPECT_EQ(cores::of_cpu(), all) << "one core is shared";
  else
    EXPECT_EQ(cores::of_cpu(), std::vector(all.begin(), all.end() - 1));
}

TEST(Cores, MoreEmulatedGpusThanCoresShareThem) {
  const std::vector<int> all = cores::allowed();
  const Environment many("TANDEM_EMULATE_GPU", "16x1GiB");
  EXPECT_EQ(cores::of_emulated_gpus().size(), 16u);
  if (all.size() > 1 && all.size() <= 16) {
    EXPECT_THAT(cores::of_cpu(), ElementsAre(all.front()));
  }
}

TEST(Cores, OnesThatTheProcessMayNotUseAreRefused) {
  const Environment named("TANDEM_CORES", "60000");
  EXPECT_TRUE(cores::are_pinned());
  try {
    cores::of_cpu();
    ADD_FAILURE();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("this process may not use core 60000"));
    EXPECT_THAT(e.what(), HasSubstr(cores::text(cores::allowed())));
  }
}

TEST(Cores, PipelinesKeepOffEmulatedGpusAndTheCpuOffTheirs) {
  const std::vector<int> all = cores::allowed();
  EXPECT_EQ(cores::of_pipelines(), all);
  EXPECT_FALSE(cores::pipelines_have_their_own());
  {
    const Environment one("TANDEM_EMULATE_GPU", "1x1GiB");
    EXPECT_EQ(cores::of_pipelines(), cores::of_cpu());
    if (all.size() > 1) {
      EXPECT_EQ(std::ranges::count(cores::of_pipelines(), all.back()), 0);
    }
  }
  const Environment own("TANDEM_DATA_CORES", cat(all.back()).c_str());
  EXPECT_TRUE(cores::pipelines_have_their_own());
  EXPECT_THAT(cores::of_pipelines(), ElementsAre(all.back()));
  if (all.size() > 1) {
    EXPECT_EQ(cores::of_cpu(), std::vector(all.begin(), all.end() - 1));
  }
  const Environment wrong("TANDEM_DATA_CORES", "60000");
  try {
    cores::of_pipelines();
    ADD_FAILURE();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("TANDEM_DATA_CORES: \"60000\": this process may not use core 60000"));
  }
}

std::vector<int> cores_of_this_thread() {
  cpu_set_t set;
  std::vector<int> all;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) all.push_back(i);
  return all;
}

TEST(Cores, AThreadOfTheProgramsGoesToTheDeviceAndOneOfOursStays) {
  const std::vector<int> all = cores::allowed();
  const std::vector last{all.back()}, first{all.front()};
  std::thread([&] {
    cores::visit(first);
    EXPECT_EQ(cores_of_this_thread(), first);
    EXPECT_EQ(cores::allowed(), all) << "of the process";
    {
      const cores::Everywhere here;
      EXPECT_EQ(cores_of_this_thread(), all);
    }
    EXPECT_EQ(cores_of_this_thread(), first);
    cores::visit(last);
    EXPECT_EQ(cores_of_this_thread(), last);
  }).join();
  std::thread([&] {
    cores::keep(pthread_self(), last);
    cores::claim_this_thread();
    cores::visit(first);
    EXPECT_EQ(cores_of_this_thread(), last);
  }).join();
  EXPECT_THROW(cores::keep(pthread_self(), {}), ResourceError);
}

TEST(Cores, AThreadThatIsKeptApartWakesNoWorker) {
  ThreadPool pool(2);
  std::thread([&] {
    ThreadPool::keep_this_thread_apart();
    std::atomic<int> count = 0;
    pool.run(100, [&](int64_t) { ++count; });
    EXPECT_EQ(count, 100);
  }).join();
  EXPECT_EQ(pool.wake_count(), 0u);
}

TEST(Cores, PinnedWorkersStayWhereTheyShould) {
  const int core = cores::allowed().back();
  ThreadPool pool(3, std::vector{core});
  std::atomic<int> workers = 0;
  std::atomic<bool> elsewhere = false;
  while (workers < 2) {  // both have done something
    workers = 0;
    std::array<std::atomic<bool>, 3> came{};
    pool.run(300, [&](int64_t) {
      const int worker = ThreadPool::this_worker();
      if (worker > 0 && sched_getcpu() != core) elsewhere = true;
      if (!came[static_cast<size_t>(worker)].exchange(true) && worker > 0) ++workers;
      std::this_thread::yield();
    });
  }
  EXPECT_FALSE(elsewhere);
}

}  // namespace
}  // namespace tandem
