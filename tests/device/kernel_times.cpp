// Times of single kernels: measured once, kept, and nothing of the measuring left behind.
#include "device/kernel_times.hpp"

#include <gmock/gmock.h>

#include <unistd.h>

#include <filesystem>

#include "base/text.hpp"
#include "null/null_device.hpp"
#include "support.hpp"

namespace tandem::testing {
namespace {

using ir::axis;

class KernelTimes : public ::testing::Test {
 protected:
  KernelTimes() : folder_(::testing::TempDir() + cat("kernel_times_", ::getpid())) {
    if (const char* before = std::getenv("TANDEM_CACHE_DIR")) before_ = before;
    setenv("TANDEM_CACHE_DIR", folder_.c_str(), 1);
    const auto factories = device::factories();
    const auto cpu = std::ranges::find(factories, std::string_view("cpu"), &device::Factory::folder);
    cpu_ = cpu->enumerate().at(0).divide({.name = "cpu:0", .limit_bytes = size_t{1} << 20, .threads = 1});
  }
  ~KernelTimes() override {
    if (before_)
      setenv("TANDEM_CACHE_DIR", before_->c_str(), 1);
    else
      unsetenv("TANDEM_CACHE_DIR");
    std::filesystem::remove_all(folder_);
  }

  // x + 1 of so many numbers.
  static codegen::Kernel kernel(int64_t count) {
    std::mt19937_64 random(1);
    const std::vector<HostTensor> in{dense(DType::F32, {count}, random)};
    return kernel_of({.extents = {count}, .results = {ir::load(0, DType::F32, {axis(0)}) + 1.0}}, in);
  }
  // As the device's account allows; counts what was asked for.
  device::KernelTimes::Allocate allocate() {
    return [this](size_t bytes) {
      ++allocations_;
      try {
        return cpu_->allocate(bytes);
      } catch (const ResourceError&) {
        return device::BufferRef();
      }
    };
  }
  std::optional<double> time(device::KernelTimes& times, const codegen::Kernel& k) { return times.of(*cpu_, k, cpu_->load(k), allocate()); }

  const std::string folder_;
  std::optional<std::string> before_;
  std::unique_ptr<device::Device> cpu_;
  int allocations_ = 0;
};

TEST_F(KernelTimes, EachIsTimedOnceAndStaysOnDisk) {
  const codegen::Kernel k = kernel(1000);
  const std::optional<double> first = time(cpu_->kernel_times(), k);
  ASSERT_TRUE(first);
  EXPECT_GT(*first, 0);
  EXPECT_EQ(allocations_, 1);
  EXPECT_EQ(time(cpu_->kernel_times(), k), first);
  device::KernelTimes of_another_process;
  EXPECT_EQ(time(of_another_process, k), first);
  EXPECT_EQ(allocations_, 1) << "it was timed again";
  time(of_another_process, kernel(2000));
  EXPECT_EQ(allocations_, 2) << "another size is another kernel";
}

TEST_F(KernelTimes, LeaveNoTraceInTheAccount) {
  const device::BufferRef kept = cpu_->allocate(1000);
  cpu_->memory().reset_peak();
  ASSERT_TRUE(time(cpu_->kernel_times(), kernel(10000)));
  EXPECT_EQ(cpu_->memory().in_use(), device::Account::counted(1000));
  EXPECT_EQ(cpu_->memory().peak(), device::Account::counted(1000));
}

TEST_F(KernelTimes, WhatDoesNotFitIsTheCostModels) {
  const codegen::Kernel k = kernel(int64_t{1} << 20);
  EXPECT_FALSE(time(cpu_->kernel_times(), k));
  EXPECT_EQ(allocations_, 2) << "the second time with inputs that share their memory";
  EXPECT_EQ(device::kernel_seconds(*cpu_, k, cpu_->load(k), allocate()), cpu_->seconds(k));
}

TEST_F(KernelTimes, InputsShareMemoryWhereThereIsLittle) {
  const int64_t count = (int64_t{1} << 20) / sizeof(float) * 2 / 5;  // two of them fit, three do not
  std::mt19937_64 random(1);
  const std::vector<HostTensor> in{dense(DType::F32, {count}, random), dense(DType::F32, {count}, random)};
  const codegen::Kernel k =
      kernel_of({.extents = {count}, .results = {ir::load(0, DType::F32, {axis(0)}) + ir::load(1, DType::F32, {axis(0)})}}, in);
  EXPECT_TRUE(time(cpu_->kernel_times(), k));
  EXPECT_EQ(allocations_, 2);
}

TEST_F(KernelTimes, ADeviceThatSaysItsRatesIsNotTimed) {
  const auto null = null::make_device({});
  const codegen::Kernel k = kernel(1000);
  EXPECT_EQ(device::kernel_seconds(*null, k, null->load(k), allocate()), null->seconds(k));
  cpu_->set_rates({.flops_per_second = 1e9, .bytes_per_second = 1e9, .launch_seconds = 1e-3});
  EXPECT_DOUBLE_EQ(device::kernel_seconds(*cpu_, k, cpu_->load(k), allocate()), 1e-3 + 8000 / 1e9);
  EXPECT_EQ(allocations_, 0);
}

}  // namespace
}  // namespace tandem::testing
