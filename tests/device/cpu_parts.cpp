// Several devices of one CPU: each with a limit, and threads that stay on cores of its own.
#include <gmock/gmock.h>

#include <sched.h>

#include "base/cores.hpp"
#include "support.hpp"

namespace tandem::testing {
namespace {

std::unique_ptr<device::Device> part_of_cpu(const device::Part& part) {
  for (const device::Factory& f : device::factories())
    if (f.folder == "cpu") return f.enumerate().at(0).divide(part);
  return nullptr;
}

TEST(CpuParts, HaveCoresThreadsAndALimitOfTheirOwn) {
  const std::vector<int> cores = cores::of_cpu();
  for (int i = 0; i < 2; ++i) {
    const auto d = part_of_cpu({.name = "cpu:1", .limit_bytes = 1 << 20, .index = i, .count = 2});
    ASSERT_TRUE(d);
    EXPECT_EQ(d->info().name, "cpu:1");
    EXPECT_EQ(d->info().cores, cores::text(cores::part(cores, i, 2)));
    EXPECT_THAT(d->info().description, ::testing::HasSubstr(", pinned,"));
    EXPECT_EQ(d->memory().limit(), size_t{1} << 20);
    EXPECT_THROW(d->allocate((1 << 20) + 1), ResourceError);
  }
}

TEST(CpuParts, KeepWhoComputesWithThemOnTheirCores) {
  const std::vector<int> cores = cores::of_cpu();
  const std::unique_ptr<device::Device> parts[] = {part_of_cpu({.name = "cpu:0", .index = 0, .count = 2}),
                                                   part_of_cpu({.name = "cpu:1", .index = 1, .count = 2})};
  std::mt19937_64 random(3);
  std::vector<HostTensor> in{dense(DType::F32, {300}, random)};
  const codegen::Kernel k = kernel_of({.extents = {300}, .results = {ir::load(0, DType::F32, {ir::axis(0)})}}, in);
  std::thread([&] {
    for (const int i : {1, 0}) {
      launched(*parts[i], k, in);
      cpu_set_t set;
      ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
      const std::vector<int> expected = cores::part(cores, i, 2);
      EXPECT_EQ(CPU_COUNT(&set), static_cast<int>(expected.size()));
      for (const int core : expected) EXPECT_TRUE(CPU_ISSET(static_cast<size_t>(core), &set)) << core;
    }
  }).join();
}

TEST(CpuParts, ComputeWhatTheWholeComputes) {
  const auto d = part_of_cpu({.name = "cpu:0", .threads = 2, .index = 0, .count = 2});
  EXPECT_THAT(d->info().description, ::testing::HasSubstr("2 threads"));
  std::mt19937_64 random(3);
  std::vector<HostTensor> in{dense(DType::F32, {300, 400}, random)};
  const ir::Loops sum{.extents = {300},
                      .reduction = ir::fold(ir::Fold::Sum, {400}, ir::load(0, DType::F32, {ir::axis(0), ir::axis(1)})),
                      .results = {ir::acc(0, DType::F32)}};
  const codegen::Kernel k = kernel_of(sum, in);
  EXPECT_EQ(launched(*d, k, in)[0].bytes, launched(device::get("cpu"), k, in)[0].bytes);
}

}  // namespace
}  // namespace tandem::testing
