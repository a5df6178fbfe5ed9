// The table that TANDEM_LOG=step prints.
#include "exec/step_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::exec {
namespace {

TEST(StepProfile, SumsAlikeStepsAndSortsByTime) {
  plan::Step copy, first, second;
  copy.label = "copy";
  first.label = second.label = "add float32[8]";
  first.location = second.location = {"model.cpp", 7};
  first.cost = second.cost = {.flops = 2e6, .bytes = 1e6};
  StepProfile p;
  p.add(copy, 0.001);
  for (int trip = 0; trip < 3; ++trip) {
    p.add(first, 0.0005);
    p.add(second, 0.0005);
  }
  EXPECT_THAT(p.lines(), testing::ElementsAre("4000.0 us in 7 launches",  //
                                              "  share         us  times         MB    GB/s  GFLOP/s  kernel",
                                              "  75.0%     3000.0      6      6.000     2.0      4.0  add float32[8]  at model.cpp:7",
                                              "  25.0%     1000.0      1      0.000     0.0        -  copy"));
}

TEST(StepProfile, NothingRanNothingIsSaid) {
  const StepProfile p;
  EXPECT_THAT(p.lines(), testing::ElementsAre("0.0 us in 0 launches", testing::_));
}

}  // namespace
}  // namespace tandem::exec
