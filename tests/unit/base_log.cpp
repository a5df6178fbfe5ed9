// Log topics: what TANDEM_LOG switches on, and the lines that come out.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/log.hpp"

namespace tandem::log {
namespace {

class LogTest : public testing::Test {
 protected:
  void switch_on(const char* topics) {
    setenv("TANDEM_LOG", topics, 1);
    refresh();
  }
  void TearDown() override {
    unsetenv("TANDEM_LOG");
    refresh();
  }
};

TEST_F(LogTest, TopicsOfTheList) {
  switch_on("dispatch,compile");
  EXPECT_TRUE(enabled(Topic::Dispatch));
  EXPECT_FALSE(enabled(Topic::Plan));
  EXPECT_FALSE(enabled(Topic::Pass));
  EXPECT_FALSE(enabled(Topic::Cache));
  EXPECT_TRUE(enabled(Topic::Compile));
  switch_on("plan,pass,cache,");
  EXPECT_FALSE(enabled(Topic::Dispatch));
  EXPECT_TRUE(enabled(Topic::Plan));
  EXPECT_TRUE(enabled(Topic::Pass));
  EXPECT_TRUE(enabled(Topic::Cache));
  EXPECT_FALSE(enabled(Topic::Compile));
  switch_on("");
  EXPECT_FALSE(enabled(Topic::Plan));
}

TEST_F(LogTest, LinesGoToStderr) {
  switch_on("plan");
  testing::internal::CaptureStderr();
  line(Topic::Plan, "peak ", 12, " bytes");
  line(Topic::Pass, "not seen");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "[tandem plan] peak 12 bytes\n");
}

TEST_F(LogTest, AnUnknownTopicIsRefused) {
  try {
    switch_on("plann,cache");
    FAIL() << "taken";
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "TANDEM_LOG: there is no \"plann\"; there are dispatch, plan, pass, cache, compile, step");
  }
}

}  // namespace
}  // namespace tandem::log
