// Arithmetic that notices when a number does not fit.
#include "base/checked.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "error_of.hpp"

namespace tandem {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();

TEST(Checked, GivesWhatFits) {
  EXPECT_EQ(checked_add<int64_t>(kMost - 1, 1), kMost);
  EXPECT_EQ(checked_add<int64_t>(kLeast, kMost), -1);
  EXPECT_EQ(checked_multiply<int64_t>(kLeast / 2, 2), kLeast);
  EXPECT_EQ(checked_multiply<int64_t>(0, kLeast), 0);
  EXPECT_EQ(checked_add<uint64_t>(~uint64_t{0} - 16, 16), ~uint64_t{0});
  EXPECT_EQ(checked_multiply<uint64_t>(uint64_t{1} << 32, (uint64_t{1} << 32) - 1), ~uint64_t{0} - 0xffffffff);
  EXPECT_EQ(sum_of<int64_t>(2, 3, "a"), 5);
  EXPECT_EQ(product_of<int64_t>(-2, 3, "a"), -6);
}

TEST(Checked, GivesNothingForWhatDoesNot) {
  EXPECT_FALSE(checked_add<int64_t>(kMost, 1));
  EXPECT_FALSE(checked_add<int64_t>(kLeast, -1));
  EXPECT_FALSE(checked_multiply<int64_t>(kLeast, -1));
  EXPECT_FALSE(checked_multiply<int64_t>(3, 6148914691236517206));
  EXPECT_FALSE(checked_add<uint64_t>(16, ~uint64_t{0} - 15));  // as 16 + length does
  EXPECT_FALSE(checked_multiply<uint64_t>(uint64_t{1} << 32, uint64_t{1} << 32));
}

TEST(Checked, ErrorsHaveBothNumbers) {
  EXPECT_EQ(error_of([] { product_of<int64_t>(3, 6148914691236517206, "resize"); }),
            "resize: 3 x 6148914691236517206 does not fit in 64 bits");
  EXPECT_EQ(error_of([] { sum_of<int64_t>(kMost, 1, "padding"); }), "padding: 9223372036854775807 + 1 does not fit in 64 bits");
  EXPECT_EQ(error_of([] { sum_of<uint32_t>(~0u, 1, "a"); }), "a: 4294967295 + 1 does not fit in 32 bits");
}

}  // namespace
}  // namespace tandem
