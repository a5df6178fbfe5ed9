// Allocations: nothing that is alive at once overlaps, the search finds what exists and proves what does not, the same bytes each time.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include <tandem/error.hpp>

#include "plan/allocate.hpp"
#include "plan/allocate_search.hpp"

namespace tandem::plan {
namespace {

constexpr int64_t kEffort = 50'000'000;

// Written anew, without anything of the allocator: every pair of blocks, every offset.
void expect_valid(const std::vector<Lifetime>& blocks, const Allocation& a, size_t alignment) {
  ASSERT_EQ(a.offsets.size(), blocks.size());
  size_t end = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(a.offsets[i] % alignment, 0u) << "block " << i;
    end = std::max(end, a.offsets[i] + blocks[i].bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool alive_at_once = std::max(blocks[i].first, blocks[j].first) <= std::min(blocks[i].last, blocks[j].last);
      const bool share_bytes =
          std::max(a.offsets[i], a.offsets[j]) < std::min(a.offsets[i] + blocks[i].bytes, a.offsets[j] + blocks[j].bytes);
      ASSERT_FALSE(alive_at_once && share_bytes) << "blocks " << j << " and " << i;
    }
  }
  EXPECT_LE(end, a.peak);
  EXPECT_LT(a.peak, end + alignment);
  EXPECT_LE(a.bound, a.peak);
}

size_t most_alive(const std::vector<Lifetime>& blocks, size_t alignment) {
  size_t most = 0;
  for (const Lifetime& now : blocks) {  // the most are alive when some block begins
    size_t sum = 0;
    for (const Lifetime& b : blocks)
      if (b.first <= now.first && now.first <= b.last) sum += (b.bytes + alignment - 1) / alignment * alignment;
    most = std::max(most, sum);
  }
  return most;
}

// Whether the blocks can be placed at all, by trying every offset for one after the other.
bool fits(const std::vector<Lifetime>& blocks, size_t capacity, std::vector<size_t> offsets = {}) {
  const size_t i = offsets.size();
  if (i == blocks.size()) return true;
  for (size_t offset = 0; offset + blocks[i].bytes <= capacity; ++offset) {
    bool is_free = true;
    for (size_t j = 0; j < i && is_free; ++j)
      is_free = blocks[j].last < blocks[i].first || blocks[i].last < blocks[j].first || offsets[j] + blocks[j].bytes <= offset ||
                offset + blocks[i].bytes <= offsets[j];
    if (!is_free) continue;
    offsets.push_back(offset);
    if (fits(blocks, capacity, offsets)) return true;
    offsets.pop_back();
  }
  return false;
}

// So many that every step is full. Often they can be placed without a hole, sometimes not.
std::vector<Lifetime> full_blocks(std::mt19937& random, int64_t steps, size_t capacity) {
  std::vector<Lifetime> blocks;
  for (int64_t step = 0; step < steps; ++step) {
    size_t alive = 0;
    for (const Lifetime& b : blocks) alive += b.last >= step ? b.bytes : 0;
    while (alive < capacity) {
      const size_t bytes = std::min<size_t>(capacity - alive, 1 + random() % 5);
      blocks.push_back({step, step + static_cast<int64_t>(random() % 5), bytes});
      alive += bytes;
    }
  }
  return blocks;
}

std::vector<Lifetime> random_blocks(std::mt19937& random, int count, int steps, int longest, size_t largest) {
  const auto below = [&](size_t n) { return static_cast<int64_t>(random() % n); };
  std::vector<Lifetime> blocks;
  for (int i = 0; i < count; ++i) {
    const int64_t first = below(static_cast<size_t>(steps));
    blocks.push_back({first, first + below(static_cast<size_t>(longest)), static_cast<size_t>(below(largest + 1))});
  }
  return blocks;
}

// Steps 0 and 1 are full with 6 bytes. The long block of 1 byte must lie at the bottom or at the top, or the last one, of 4, has no place;
// a rule that looks at one block at a time does not see that, and all of them need 7.
const std::vector<Lifetime> kPuzzle = {{1, 3, 1}, {1, 1, 3}, {0, 1, 2}, {0, 0, 4}, {3, 4, 4}};
constexpr size_t kPuzzleBytes = 6;

TEST(Allocate, NothingIsAnEmptyAllocation) {
  const Allocation a = allocate({}, {.effort = kEffort});
  EXPECT_TRUE(a.offsets.empty());
  EXPECT_EQ(a.peak, 0u);
  EXPECT_EQ(a.bound, 0u);
  EXPECT_EQ(lower_bound({}), 0u);
}

TEST(Allocate, BlocksOfNoBytesTakeNoPlace) {
  const std::vector<Lifetime> blocks = {{0, 9, 0}, {0, 9, 64}, {3, 4, 0}, {5, 9, 64}};
  const Allocation a = allocate(blocks);
  EXPECT_EQ(a.offsets[0], 0u);
  EXPECT_EQ(a.offsets[2], 0u);
  EXPECT_EQ(a.peak, 128u);
  EXPECT_EQ(allocate(std::vector<Lifetime>{{0, 1, 0}, {1, 2, 0}}).peak, 0u);
}

TEST(Allocate, LivesIncludeTheirLastStep) {
  EXPECT_EQ(allocate(std::vector<Lifetime>{{0, 1, 64}, {1, 2, 64}}).peak, 128u);
  EXPECT_EQ(allocate(std::vector<Lifetime>{{0, 1, 64}, {2, 3, 64}}).peak, 64u);
}

TEST(Allocate, TheEndsOfTimeAreStepsLikeOthers) {
  const std::vector<Lifetime> blocks = {{INT64_MIN, INT64_MAX, 3}, {INT64_MIN, INT64_MIN, 2}, {INT64_MAX, INT64_MAX, 2}, {-5, 5, 1}};
  const Allocation a = allocate(blocks, {.alignment = 1, .effort = kEffort});
  expect_valid(blocks, a, 1);
  EXPECT_EQ(a.peak, 5u);
}

TEST(Allocate, LowerBoundIsTheMostThatIsAliveAtOnce) {
  EXPECT_EQ(lower_bound(std::vector<Lifetime>{{0, 1, 10}, {1, 2, 20}, {2, 3, 30}}, 1), 50u);
  EXPECT_EQ(lower_bound(std::vector<Lifetime>{{0, 1, 10}, {1, 2, 20}, {2, 3, 30}}, 16), 64u);
  std::mt19937 random(1);
  for (int i = 0; i < 50; ++i) {
    const std::vector<Lifetime> blocks = random_blocks(random, 40, 30, 10, 200);
    for (size_t alignment : {1, 64}) EXPECT_EQ(lower_bound(blocks, alignment), most_alive(blocks, alignment));
  }
}

TEST(Allocate, RandomBlocksNeverOverlap) {
  std::mt19937 random(2);
  for (int i = 0; i < 60; ++i) {
    const std::vector<Lifetime> blocks = random_blocks(random, 1 + i * 3, 40 + i, 1 + i % 37, 1000);
    for (size_t alignment : {1, 64, 100}) {
      for (int64_t effort : {int64_t{0}, int64_t{1000}, int64_t{1'000'000}}) {
        const Allocation a = allocate(blocks, {.alignment = alignment, .effort = effort});
        expect_valid(blocks, a, alignment);
        EXPECT_GE(a.bound, most_alive(blocks, alignment));
      }
    }
  }
}

TEST(Allocate, SearchFindsTheSmallestPeakAndProvesIt) {
  std::mt19937 random(3);
  int above_the_lower_bound = 0;
  for (int i = 0; i < 400; ++i) {
    const size_t capacity = 6 + static_cast<size_t>(i) % 4;
    const std::vector<Lifetime> blocks = full_blocks(random, 16, capacity);
    const Allocation a = allocate(blocks, {.alignment = 1, .effort = kEffort});
    expect_valid(blocks, a, 1);
    ASSERT_EQ(a.bound, a.peak);
    ASSERT_EQ(lower_bound(blocks, 1), capacity);
    if (a.peak == capacity) continue;
    ++above_the_lower_bound;
    ASSERT_FALSE(fits(blocks, a.peak - 1));
  }
  EXPECT_GT(above_the_lower_bound, 5);  // else nothing was proved
}

TEST(Allocate, SearchSucceedsWhereRulesFail) {
  const Allocation quick = allocate(kPuzzle, {.alignment = 1});
  expect_valid(kPuzzle, quick, 1);
  EXPECT_EQ(quick.peak, kPuzzleBytes + 1);
  EXPECT_EQ(quick.steps, 0);
  const Allocation thorough = allocate(kPuzzle, {.alignment = 1, .capacity = kPuzzleBytes, .effort = kEffort});
  expect_valid(kPuzzle, thorough, 1);
  EXPECT_EQ(thorough.peak, kPuzzleBytes);
  EXPECT_GT(thorough.steps, 0);
}

TEST(Allocate, ACapacityThatIsImpossibleIsProvedToBeSo) {
  std::mt19937 random(4);
  int found = 0;
  for (int i = 0; i < 400; ++i) {
    const std::vector<Lifetime> blocks = full_blocks(random, 16, 8);
    const Allocation a = allocate(blocks, {.alignment = 1, .capacity = 8, .effort = kEffort});
    expect_valid(blocks, a, 1);  // the best that was found all the same
    ASSERT_EQ(fits(blocks, 8), a.peak <= 8);
    ASSERT_EQ(a.bound, a.peak <= 8 ? 8u : 9u);
    found += a.peak > 8;
  }
  EXPECT_GT(found, 5);
}

TEST(Allocate, ACapacityBelowTheLowerBoundIsNotSearchedFor) {
  const Allocation a = allocate(kPuzzle, {.alignment = 1, .capacity = kPuzzleBytes - 1, .effort = kEffort});
  expect_valid(kPuzzle, a, 1);
  EXPECT_EQ(a.bound, kPuzzleBytes);
  EXPECT_EQ(a.steps, 0);
}

TEST(Allocate, TheCapacityNeedNotBeAligned) {
  const Allocation a = allocate(std::vector<Lifetime>{{0, 1, 60}, {1, 2, 60}, {2, 3, 60}}, {.capacity = 130, .effort = kEffort});
  EXPECT_EQ(a.peak, 128u);
}

TEST(Allocate, TheSameBlocksGiveTheSameOffsets) {
  std::mt19937 random(5);
  for (int i = 0; i < 5; ++i) {
    const std::vector<Lifetime> blocks = random_blocks(random, 120, 60, 15, 50);
    const AllocateOptions options{.alignment = 1, .effort = 3'000'000};
    const Allocation a = allocate(blocks, options), b = allocate(blocks, options);
    EXPECT_EQ(a.offsets, b.offsets);
    EXPECT_EQ(a.steps, b.steps);
  }
}

TEST(Allocate, MoreEffortIsNeverWorseThanNone) {
  std::mt19937 random(6);
  for (int i = 0; i < 20; ++i) {
    const std::vector<Lifetime> blocks = random_blocks(random, 100, 60, 20, 1000);
    EXPECT_LE(allocate(blocks, {.effort = 5'000'000}).peak, allocate(blocks).peak);
  }
}

TEST(Allocate, StretchesOfTimeThatStandAloneAreSolvedAlone) {
  // The puzzle many times over, one after the other: as one problem it would be far too large to search.
  std::vector<Lifetime> blocks;
  for (int64_t i = 0; i < 200; ++i)
    for (const Lifetime& b : kPuzzle) blocks.push_back({b.first + 10 * i, b.last + 10 * i, b.bytes});
  const Allocation a = allocate(blocks, {.alignment = 1, .capacity = kPuzzleBytes, .effort = kEffort});
  expect_valid(blocks, a, 1);
  EXPECT_EQ(a.peak, kPuzzleBytes);
}

TEST(Allocate, AnEffortThatIsUsedUpKeepsTheBestSoFar) {
  std::mt19937 random(7);
  const std::vector<Lifetime> blocks = random_blocks(random, 400, 100, 40, 1000);
  const Allocation a = allocate(blocks, {.alignment = 1, .capacity = lower_bound(blocks, 1), .effort = 1});
  expect_valid(blocks, a, 1);
  EXPECT_GT(a.steps, 0);
}

TEST(Allocate, ALongChainTakesTwoPlaces) {
  // Each block is made from the one before it: both ends of the arena in turns, and no hole between them.
  std::mt19937 random(8);
  std::vector<Lifetime> blocks;
  for (int64_t i = 0; i < 20000; ++i) blocks.push_back({i, i + 1, 64 * (1 + random() % 100)});
  const Allocation a = allocate(blocks);
  EXPECT_EQ(a.peak, lower_bound(blocks));
  for (size_t i = 1; i < blocks.size(); ++i)
    ASSERT_FALSE(std::max(a.offsets[i - 1], a.offsets[i]) <
                 std::min(a.offsets[i - 1] + blocks[i - 1].bytes, a.offsets[i] + blocks[i].bytes));
}

TEST(Allocate, TwentyThousandBlocks) {
  std::mt19937 random(9);
  const std::vector<Lifetime> blocks = random_blocks(random, 20000, 20000, 60, 100000);
  const Allocation a = allocate(blocks);
  expect_valid(blocks, a, 64);
  EXPECT_LT(static_cast<double>(a.peak), 1.25 * static_cast<double>(lower_bound(blocks)));
}

// A search that does not get through gives up after an effort that follows the problem's size, with the best that the rules found.
TEST(Allocate, AFailingSearchEndsInTime) {
  EXPECT_GE(thorough_effort(500), 400'000'000) << "the hardest known problems of that size take less than half";
  EXPECT_LT(thorough_effort(62'000), 2'000'000'000);
  std::mt19937 random(5);
  const std::vector<Lifetime> blocks = random_blocks(random, 20'000, 4'000, 400, 1 << 16);
  const size_t bound = lower_bound(blocks);
  const int64_t effort = 30'000'000;
  const Allocation a = allocate(blocks, {.capacity = bound, .effort = effort});
  expect_valid(blocks, a, 64);
  EXPECT_EQ(a.bound, bound);
  EXPECT_LT(a.steps, effort + effort / 10);
  EXPECT_LT(static_cast<double>(a.peak), 1.25 * static_cast<double>(bound));
}

TEST(Allocate, MoreBytesThanThereAreIsAUserError) {
  const std::vector<Lifetime> blocks(5, {0, 1, size_t{1} << 60});
  try {
    allocate(blocks);
    ADD_FAILURE() << "no error";
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "allocate: the blocks have 2^62 bytes or more together");
  }
}

TEST(AllocateSearch, SaysWhatItKnows) {
  using Kind = SearchResult::Kind;
  EXPECT_EQ(search(kPuzzle, kPuzzleBytes, kEffort).kind, Kind::Found);
  EXPECT_EQ(search(kPuzzle, kPuzzleBytes - 1, kEffort).kind, Kind::Impossible);
  EXPECT_EQ(search(kPuzzle, kPuzzleBytes, 0).kind, Kind::GaveUp);
  EXPECT_EQ(search({}, 1, kEffort).kind, Kind::Found);
}

}  // namespace
}  // namespace tandem::plan
