// Who counts bytes: limits, and accounts that are a part of another.
#include "device/account.hpp"

#include <gtest/gtest.h>

#include <tandem/error.hpp>

namespace tandem::device {
namespace {

std::string refusal(Account& account, size_t bytes) {
  try {
    account.take(bytes);
  } catch (const ResourceError& e) {
    return e.what();
  }
  return "";
}

TEST(Account, AWholeCountsWhatItsPartsTake) {
  Account host("host", 4096);
  Account pinned("pinned", 0, &host), other("other", 1024, &host);
  EXPECT_EQ(pinned.limit(), 4096u) << "no more than the whole";
  EXPECT_EQ(other.limit(), 1024u);
  pinned.take(2000);
  other.take(1000);
  EXPECT_EQ(host.in_use(), 2048u + 1024u);
  EXPECT_EQ(refusal(other, 1),
            "other: cannot allocate 1 bytes (0 MiB): 1024 of 1024 bytes are in use (0 of 0 MiB)\n  hint: a smaller batch, or fewer tensors "
            "kept alive");
  EXPECT_EQ(refusal(pinned, 1100),
            "host: cannot allocate 1100 bytes (0 MiB): 3072 of 4096 bytes are in use (0 of 0 MiB)\n  hint: a smaller batch, or fewer "
            "tensors kept alive");
  EXPECT_EQ(host.in_use(), 3072u) << "what was refused counts nowhere";
  EXPECT_EQ(pinned.in_use(), 2048u);
  pinned.take(1024);
  EXPECT_EQ(host.peak(), 4096u);
  pinned.give_back(1024);
  pinned.give_back(2000);
  other.give_back(1000);
  EXPECT_EQ(host.in_use(), 0u);
}

TEST(Account, PartsOfWhatWasTakenGoBackOneByOne) {
  Account host("host", 100);
  EXPECT_TRUE(host.try_take_counted(70));
  EXPECT_FALSE(host.try_take_counted(31));
  host.give_back_counted(1);
  EXPECT_TRUE(host.try_take_counted(31));
  host.take_counted_anyway(50);
  EXPECT_EQ(host.in_use(), 150u);
  EXPECT_EQ(host.peak(), 150u);
  host.give_back_counted(150);
  EXPECT_EQ(host.in_use(), 0u);
}

TEST(Account, MeasuringLeavesNoTraceInThePeak) {
  Account host("host"), pinned("pinned", 1024, &host);
  pinned.take(512);
  pinned.take(64);
  pinned.give_back(64);
  {
    const Account::Untraced untraced(pinned);
    pinned.take(512);
    EXPECT_NE(refusal(pinned, 64), "") << "limits hold";
    pinned.give_back(512);
  }
  EXPECT_EQ(pinned.peak(), 576u);
  EXPECT_EQ(host.peak(), 576u);
  {
    const Account::Untraced untraced(pinned);
    pinned.take(256);
  }
  EXPECT_EQ(pinned.peak(), 768u) << "what stays counts";
}

}  // namespace
}  // namespace tandem::device
