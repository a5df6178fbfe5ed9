// A cache that forgets what was not used for longest.
#include "base/lru_cache.hpp"

#include <string>

#include <gtest/gtest.h>

namespace tandem {
namespace {

using Cache = LruCache<std::string>;

bool has(Cache& c, size_t hash, const std::string& text) {
  return c.find(hash, [&](const std::string& s) { return s == text; }) != nullptr;
}

TEST(LruCache, WhatWasNotUsedForLongestGoesFirst) {
  Cache c({3, 100});
  for (const char* s : {"a", "b", "c"}) c.add(7, 1, s);  // equal hashes: told apart by the test
  EXPECT_TRUE(has(c, 7, "a"));
  c.add(7, 1, "d");
  EXPECT_FALSE(has(c, 7, "b"));
  EXPECT_TRUE(has(c, 7, "a"));
  EXPECT_TRUE(has(c, 7, "c"));
  EXPECT_TRUE(has(c, 7, "d"));
  EXPECT_EQ(c.size(), 3u);
  EXPECT_EQ(*c.newest(), "d");
}

TEST(LruCache, WeightCountsAndTheLastOneStays) {
  Cache c({100, 10});
  c.add(1, 4, "a");
  c.add(2, 4, "b");
  c.add(3, 4, "c");
  EXPECT_FALSE(has(c, 1, "a"));
  EXPECT_EQ(c.size(), 2u);
  c.add(4, 1000, "heavy");
  EXPECT_EQ(c.size(), 1u);
  EXPECT_TRUE(has(c, 4, "heavy"));
  c.add(5, 1, "light");
  EXPECT_EQ(c.size(), 1u);
  c.clear();
  EXPECT_EQ(c.newest(), nullptr);
  c.add(6, 10, "as before");
  c.add(7, 0, "no weight");
  EXPECT_EQ(c.size(), 2u);
}

}  // namespace
}  // namespace tandem
