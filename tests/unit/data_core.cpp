// Slices, batch, shuffle, repeat, map, prefetch: values, order, what is copied and what is not.
#include <algorithm>
#include <numeric>
#include <set>

#include <tandem/ops.hpp>
#include <tandem/random.hpp>

#include "data_support.hpp"

namespace tandem::data {
namespace {

TEST(DataCore, SlicesAreViews) {
  const Tensor x = counting(4, 3), y = Tensor::of({10, 11, 12, 13});
  const Dataset d = Dataset::from_slices({x, y});
  EXPECT_EQ(d.cardinality(), 4);
  EXPECT_EQ(d.specs()[0].str(), "float32[3]");
  EXPECT_EQ(d.specs()[1].str(), "int32[]");
  Iterator it = d.iterate();
  Element e;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(it.next(e));
    EXPECT_EQ(e[0].raw_data(), x.data<float>() + 3 * i);
    EXPECT_EQ(e[1].item<int>(), 10 + i);
  }
  EXPECT_FALSE(it.next(e));
  EXPECT_FALSE(it.next(e));
}

TEST(DataCore, BatchesOfSlicesAreViews) {
  const Tensor x = counting(10, 3);
  Iterator it = Dataset::from_slices({x}).batch(4).iterate();
  Element e;
  ASSERT_TRUE(it.next(e));
  EXPECT_EQ(e[0].raw_data(), x.raw_data());
  ASSERT_TRUE(it.next(e));
  EXPECT_EQ(e[0].raw_data(), x.data<float>() + 12);
  ASSERT_TRUE(it.next(e));
  EXPECT_EQ(e[0].shape(), Shape({2, 3}));
  EXPECT_FALSE(it.next(e));
}

TEST(DataCore, BatchDropsTheRemainder) {
  const Dataset d = Dataset::range(10).batch(4, true);
  EXPECT_EQ(d.cardinality(), 2);
  EXPECT_EQ(d.specs()[0].str(), "int64[4]");
  EXPECT_EQ(values(d), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(shapes(Dataset::range(10).batch(4)), (std::vector<std::string>{"int64[4]", "int64[4]", "int64[2]"}));
  EXPECT_EQ(shapes(Dataset::from_slices({counting(10, 2)}).batch(4, true)), (std::vector<std::string>{"float32[4,2]", "float32[4,2]"}));
}

TEST(DataCore, ShuffleIsAPermutationFromTheBuffer) {
  const std::vector<int64_t> order = values(Dataset::range(100).shuffle(10, {.seed = 7}));
  std::vector<int64_t> sorted = order;
  std::ranges::sort(sorted);
  std::vector<int64_t> all(100);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted, all);
  EXPECT_NE(order, all);
  for (int64_t i = 0; i < 100; ++i) EXPECT_LT(order[static_cast<size_t>(i)], i + 10);  // only what was in the buffer can be drawn
  EXPECT_EQ(order, values(Dataset::range(100).shuffle(10, {.seed = 7})));
  EXPECT_NE(order, values(Dataset::range(100).shuffle(10, {.seed = 8})));
}

TEST(DataCore, RowsAndElementsAreShuffledAlike) {
  std::vector<int64_t> numbers(50);
  std::iota(numbers.begin(), numbers.end(), 0);
  EXPECT_EQ(values(Dataset::from_slices({Tensor::from(numbers)}).shuffle(8, {.seed = 3}).batch(7)),
            values(Dataset::range(50).shuffle(8, {.seed = 3}).batch(7)));
}

TEST(DataCore, EachIterationHasItsOrder) {
  const Dataset d = Dataset::range(20).shuffle(20, {.seed = 5});
  const std::vector<int64_t> twice = values(d.repeat(2));
  const std::vector<int64_t> first(twice.begin(), twice.begin() + 20), second(twice.begin() + 20, twice.end());
  EXPECT_NE(first, second);
  EXPECT_NE(values(d), values(d));  // loops over one Dataset differ too
  const std::vector<int64_t> same = values(Dataset::range(20).shuffle(20, {.seed = 5, .reshuffle_each_iteration = false}).repeat(2));
  EXPECT_TRUE(std::equal(same.begin(), same.begin() + 20, same.begin() + 20));
}

TEST(DataCore, RepeatTakeSkipShard) {
  EXPECT_EQ(values(Dataset::range(3).repeat(2)), (std::vector<int64_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(values(Dataset::range(3).repeat().take(5)), (std::vector<int64_t>{0, 1, 2, 0, 1}));
  EXPECT_EQ(values(Dataset::range(10).skip(7)), (std::vector<int64_t>{7, 8, 9}));
  EXPECT_EQ(values(Dataset::range(10).shard(3, 1)), (std::vector<int64_t>{1, 4, 7}));
  EXPECT_EQ(values(Dataset::range(0).repeat()), std::vector<int64_t>{});
  EXPECT_EQ(Dataset::range(3).repeat().cardinality(), kInfinite);
  EXPECT_EQ(Dataset::range(10).shard(3, 0).cardinality(), 4);
  EXPECT_EQ(Dataset::range(10).skip(20).cardinality(), 0);
  EXPECT_EQ(Dataset::range(3).repeat().take(5).cardinality(), 5);
}

TEST(DataCore, MapRunsOverBatches) {
  const Tensor x = counting(10, 3);
  const auto f = [](Tensor row) { return (row - 0.5) * 2.0; };
  const Dataset mapped = Dataset::from_slices({x}).map(f).batch(4);
  EXPECT_NE(mapped.str().find("map_batched"), std::string::npos) << mapped.str();
  const Dataset one_by_one = Dataset::from_slices({x}).map(f, {.vectorize = Vectorize::Never}).batch(4);
  EXPECT_EQ(one_by_one.str().find("map_batched"), std::string::npos);
  EXPECT_EQ(values<float>(mapped), values<float>(one_by_one));
  EXPECT_EQ(shapes(mapped), (std::vector<std::string>{"float32[4,3]", "float32[4,3]", "float32[2,3]"}));
}

TEST(DataCore, MapTakesAndGivesSeveralComponents) {
  const Dataset d = Dataset::from_slices({counting(3, 2), Tensor::of({1, 2, 3})}).map([](Tensor x, Tensor y) {
    return std::tuple(x.sum(), y + 1, x * 2);
  });
  EXPECT_EQ(d.specs().size(), 3u);
  EXPECT_EQ(values<float>(d, 0), (std::vector<float>{1, 5, 9}));
  EXPECT_EQ(values<int>(d, 1), (std::vector<int>{2, 3, 4}));
  EXPECT_EQ(values<float>(d.batch(2), 2), (std::vector<float>{0, 2, 4, 6, 8, 10}));
}

TEST(DataCore, MapMovesBehindStagesThatChoose) {
  const Dataset d = Dataset::from_slices({counting(20, 1)}).map([](Tensor x) { return x * 3; }).shuffle(20, {.seed = 1}).repeat(2).batch(8);
  EXPECT_NE(d.str().find("shuffle(20, seed=1) | repeat(2) | batch(8) | map_batched"), std::string::npos) << d.str();
  const std::vector<float> given = values<float>(d);
  EXPECT_EQ(std::multiset<float>(given.begin(), given.end()).count(57), 2u);
}

TEST(DataCore, AFunctionThatWritesIsCalledInOrder) {
  Variable count(Tensor::scalar(0.f));
  const Dataset d = Dataset::range(6).map([&](Tensor x) {
    count.assign(count.value() + 1);
    return x.cast(DType::F32) * 0 + count.value();
  });
  EXPECT_EQ(values<float>(d.batch(3)), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(DataCore, PrefetchAndParallelMapKeepTheOrder) {
  const Dataset d = Dataset::range(200).map([](Tensor x) { return x * 2; }, {.parallel_calls = 4}).prefetch(3);
  std::vector<int64_t> expected;
  for (int64_t i = 0; i < 200; ++i) expected.push_back(2 * i);
  EXPECT_EQ(values(d), expected);
}

TEST(DataCore, ManyMapsAreDestroyedWhileTheyRun) {
  for (int i = 0; i < 50; ++i) {
    Iterator it =
        Dataset::range(1000000).map([](Tensor x) { return x + 1; }, {.parallel_calls = 3}).prefetch(8).repeat().prefetch().iterate();
    Element e;
    for (int k = 0; k < i % 5; ++k) ASSERT_TRUE(it.next(e));
  }
}

TEST(DataCore, WrongUseIsNamed) {
  EXPECT_EQ(error_of([] { Dataset::range(3).batch(0); }), "batch: the size is 0, it must be above 0");
  EXPECT_EQ(error_of([] { Dataset::from_slices({counting(3, 2), Tensor::of({1, 2})}); }),
            "from_slices: component 1 has 2 rows, component 0 has 3 (2 != 3)");
  EXPECT_EQ(error_of([] { Dataset::from_slices({Tensor::scalar(1.f)}); }), "from_slices: component 0 is float32[], which has no rows");
  EXPECT_EQ(error_of([] { Dataset().batch(2); }), "this Dataset holds nothing\n  hint: it was made by its default constructor");
  EXPECT_EQ(error_of([] { Dataset::range(3).shard(2, 2); }), "shard: index is 2, it must be from 0 to 1");
}

}  // namespace
}  // namespace tandem::data
