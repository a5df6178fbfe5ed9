// Rates: measured on a device that keeps time by a model they are the model's, and what is on disk is read once it is sound.
#include <gmock/gmock.h>

#include <unistd.h>

#include <filesystem>

#include "base/text.hpp"
#include "device/calibration.hpp"
#include "null/null_device.hpp"
#include "support.hpp"

namespace tandem::testing {
namespace {

TEST(Calibration, ReadsWhatItWroteAndNothingElse) {
  const device::Rates r{1.5e11, 2e10, 0, 3e-6, 0, 4e-5};
  device::Rates back;
  ASSERT_TRUE(device::from_text(device::to_text(r), back));
  EXPECT_EQ(back.flops_per_second, r.flops_per_second);
  EXPECT_EQ(back.bytes_per_second, r.bytes_per_second);
  EXPECT_EQ(back.link_bytes_per_second, 0);
  EXPECT_EQ(back.launch_seconds, r.launch_seconds);
  EXPECT_EQ(back.copy_seconds, 0);
  EXPECT_EQ(back.run_seconds, r.run_seconds);
  for (const char* text : {"", "1 2 3", "1 2 3 4", "1 2 3 4 5", "1 2 3 4 5 6 7", "0 2 3 4 5 6", "1 2 0 4 5 6", "1 -2 3 4 5 6",
                           "1 nan 3 4 5 6", "1 2 3 4 5 x", "1e999 2 3 4 5 6"})
    EXPECT_FALSE(device::from_text(text, back)) << text;
}

TEST(Calibration, CopiesThatWaitForEachOtherAreMeasured) {
  const auto late = device::make("late");
  const device::Rates r = device::measure(*late);
  EXPECT_GT(r.link_bytes_per_second, 0);
  EXPECT_GT(r.copy_seconds, 0);
  EXPECT_EQ(late->memory().in_use(), 0u);
  EXPECT_EQ(late->pinned_memory().in_use(), 0u);
}

TEST(Calibration, WhatIsKnownIsNotMeasuredForIt) {
  const std::string folder = ::testing::TempDir() + cat("known_rates_", ::getpid());
  const char* before = std::getenv("TANDEM_CACHE_DIR");
  const std::string kept = before ? before : "";
  setenv("TANDEM_CACHE_DIR", folder.c_str(), 1);
  const auto factories = device::factories();
  const auto cpu = std::ranges::find(factories, std::string_view("cpu"), &device::Factory::folder);
  const auto make = [&] { return cpu->enumerate().at(0).divide({.name = "cpu:0", .limit_bytes = size_t{1} << 20, .threads = 1}); };
  const auto d = make();
  EXPECT_EQ(d->known_rates().launch_seconds, 0);
  const device::Rates measured = d->rates();
  EXPECT_EQ(d->known_rates().launch_seconds, measured.launch_seconds);
  EXPECT_EQ(make()->known_rates().launch_seconds, measured.launch_seconds) << "it is on disk";
  if (before)
    setenv("TANDEM_CACHE_DIR", kept.c_str(), 1);
  else
    unsetenv("TANDEM_CACHE_DIR");
  std::filesystem::remove_all(folder);
}

TEST(Calibration, TheCpuIsMeasuredOnceAndItsRatesStayOnDisk) {
  const std::string folder = ::testing::TempDir() + cat("rates_", ::getpid());
  const char* before = std::getenv("TANDEM_CACHE_DIR");
  const std::string kept = before ? before : "";
  setenv("TANDEM_CACHE_DIR", folder.c_str(), 1);
  device::Device& cpu = device::get("cpu");
  const device::Rates first = device::calibrated(cpu), second = device::calibrated(cpu);
  EXPECT_GT(first.flops_per_second, 1e8);
  EXPECT_GT(first.bytes_per_second, 1e8);
  EXPECT_GT(first.launch_seconds, 0);
  EXPECT_LT(first.launch_seconds, 0.01);
  EXPECT_EQ(first.link_bytes_per_second, 0) << "its memory is the host's";
  EXPECT_EQ(first.flops_per_second, second.flops_per_second) << "measured twice";
  if (before)
    setenv("TANDEM_CACHE_DIR", kept.c_str(), 1);
  else
    unsetenv("TANDEM_CACHE_DIR");
  std::filesystem::remove_all(folder);
}

TEST(Calibration, WhatADeviceSaysOfItselfIsNotMeasured) {
  const null::Model model{.rates = {.flops_per_second = 7, .bytes_per_second = 5, .link_bytes_per_second = 3, .launch_seconds = 1}};
  const auto d = null::make_device(model);
  EXPECT_EQ(d->rates().flops_per_second, 7);
  EXPECT_EQ(d->rates().link_bytes_per_second, 3);
  EXPECT_EQ(d->stream(device::StreamKind::Compute).elapsed_seconds(), 0);
}

TEST(Calibration, FitsIntoALimit) {
  const auto factories = device::factories();
  const auto cpu = std::ranges::find(factories, std::string_view("cpu"), &device::Factory::folder);
  ASSERT_NE(cpu, factories.end());
  const auto d = cpu->enumerate().at(0).divide({.name = "cpu:0", .limit_bytes = size_t{1} << 20, .threads = 1});
  const device::Rates r = device::measure(*d);
  EXPECT_GT(r.flops_per_second, 0);
  EXPECT_GT(r.bytes_per_second, 0);
  EXPECT_LE(d->memory().peak(), size_t{1} << 20);
  EXPECT_EQ(d->memory().in_use(), 0u);
}

}  // namespace
}  // namespace tandem::testing
