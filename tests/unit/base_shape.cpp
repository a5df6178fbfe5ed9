// Shapes: sizes, overflow, strides, broadcasting, axes; error texts whole.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <tandem/error.hpp>
#include <tandem/shape.hpp>
#include <vector>

namespace tandem {
namespace {

std::string user_error_text(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no UserError";
}

TEST(Shape, TextAndComparison) {
  EXPECT_EQ(Shape{}.str(), "[]");
  EXPECT_EQ((Shape{7}).str(), "[7]");
  EXPECT_EQ((Shape{2, -3, 40}).str(), "[2,-3,40]");
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_FALSE((Shape{2, 3}) == (Shape{2, 4}));
  EXPECT_FALSE((Shape{2, 3}) == (Shape{2, 3, 1}));
}

TEST(Shape, HoldsUpToTheLargestRank) {
  Shape s;
  for (int i = 0; i < kMaxRank; ++i) s.push_back(i);
  EXPECT_EQ(s.rank(), kMaxRank);
  EXPECT_EQ(s.back(), kMaxRank - 1);
  EXPECT_EQ(user_error_text([&] { s.push_back(1); }), "shape: 13 dimensions, at most 12 are supported");
  EXPECT_EQ(s.rank(), kMaxRank);
  const std::vector<int64_t> many(20, 1);
  EXPECT_EQ(user_error_text([&] { Shape{std::span<const int64_t>(many)}; }), "shape: 20 dimensions, at most 12 are supported");
}

TEST(Shape, ElementCountAndByteSize) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({2, 3, 4}), 24);
  EXPECT_EQ(element_count({2, 0, 4}), 0);
  EXPECT_EQ(element_count({std::numeric_limits<int64_t>::max()}), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(byte_size({}, DType::F64), 8u);
  EXPECT_EQ(byte_size({2, 3}, DType::F16), 12u);
  EXPECT_EQ(byte_size({0}, DType::F32), 0u);
  EXPECT_EQ(byte_size({int64_t{1} << 60}, DType::F32), size_t{1} << 62);
}

TEST(Shape, OverflowNamesBothNumbers) {
  const int64_t big = int64_t{1} << 60;
  EXPECT_EQ(user_error_text([&] { element_count({big, 8}); }),
            "shape [1152921504606846976,8]: 1152921504606846976 x 8 elements do not fit in 64 bits (at most 9223372036854775807)");
  EXPECT_EQ(element_count({big, 7}), big * 7);
  EXPECT_EQ(user_error_text([&] { byte_size({big, 2}, DType::F32); }),
            "shape [1152921504606846976,2] of float32: 2305843009213693952 x 4 bytes do not fit in 64 bits (at most 9223372036854775807)");
  // A zero extent does not hide the overflow, wherever it stands: strides must fit too.
  EXPECT_THROW(element_count({0, big, 8}), UserError);
  EXPECT_THROW(element_count({big, 8, 0}), UserError);
}

TEST(Shape, NegativeExtents) {
  EXPECT_EQ(user_error_text([] { element_count({2, -3}); }), "shape [2,-3]: extent -3 at axis 1 is negative");
  EXPECT_THROW(byte_size({-1}, DType::Bool), UserError);
  EXPECT_THROW(element_count({0, -1}), UserError);
  EXPECT_THROW(contiguous_strides({4, -1}), UserError);
}

TEST(Shape, ContiguousStrides) {
  EXPECT_EQ(contiguous_strides({}), Strides{});
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Strides{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({2, 0, 4}), (Strides{4, 4, 1}));
  EXPECT_THROW(contiguous_strides({1, int64_t{1} << 40, int64_t{1} << 40}), UserError);
}

TEST(Shape, IsContiguous) {
  EXPECT_TRUE(is_contiguous({}, {}));
  EXPECT_TRUE(is_contiguous({2, 3}, {3, 1}));
  EXPECT_FALSE(is_contiguous({2, 3}, {1, 2}));  // a transpose
  EXPECT_FALSE(is_contiguous({2, 3}, {4, 1}));  // rows with a gap
  EXPECT_FALSE(is_contiguous({2, 3}, {0, 1}));  // a broadcast
  EXPECT_FALSE(is_contiguous({3}, {-1}));
  EXPECT_TRUE(is_contiguous({2, 1, 3}, {3, 99, 1}));
  EXPECT_TRUE(is_contiguous({1, 1}, {7, 0}));
  EXPECT_TRUE(is_contiguous({2, 0}, {5, 7}));
}

TEST(Shape, Broadcast) {
  EXPECT_EQ(broadcast({}, {}), Shape{});
  EXPECT_EQ(broadcast({}, {2, 3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast({3}, {2, 3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast({2, 1}, {3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast({8, 1, 6, 1}, {7, 1, 5}), (Shape{8, 7, 6, 5}));
  EXPECT_EQ(broadcast({1}, {0}), (Shape{0}));
  EXPECT_EQ(broadcast({0, 3}, {1, 3}), (Shape{0, 3}));
}

TEST(Shape, BroadcastErrorKeepsTheOrderOfTheOperands) {
  EXPECT_EQ(user_error_text([] { broadcast({2, 3}, {4}); }), "broadcast: shapes [2,3] and [4] do not fit (3 != 4 at axis -1)");
  EXPECT_EQ(user_error_text([] { broadcast({4}, {2, 3}); }), "broadcast: shapes [4] and [2,3] do not fit (4 != 3 at axis -1)");
  EXPECT_EQ(user_error_text([] { broadcast({5, 2, 3}, {4, 3}); }), "broadcast: shapes [5,2,3] and [4,3] do not fit (2 != 4 at axis -2)");
  EXPECT_EQ(user_error_text([] { broadcast({0}, {2}); }), "broadcast: shapes [0] and [2] do not fit (0 != 2 at axis -1)");
}

TEST(Shape, NormalizeAxis) {
  for (int rank = 1; rank <= 3; ++rank) {
    for (int axis = 0; axis < rank; ++axis) {
      EXPECT_EQ(normalize_axis(axis, rank, "sum"), axis);
      EXPECT_EQ(normalize_axis(axis - rank, rank, "sum"), axis);
    }
  }
  EXPECT_EQ(user_error_text([] { normalize_axis(2, 2, "softmax"); }), "softmax: axis 2 is out of range for rank 2 (-2 to 1)");
  EXPECT_EQ(user_error_text([] { normalize_axis(-3, 2, "softmax"); }), "softmax: axis -3 is out of range for rank 2 (-2 to 1)");
  EXPECT_EQ(user_error_text([] { normalize_axis(0, 0, "softmax"); }), "softmax: axis 0 asked of a scalar, which has none");
  EXPECT_THROW(normalize_axis(int64_t{1} << 32, 2, "softmax"), UserError);  // must not be cut to 32 bits first
}

}  // namespace
}  // namespace tandem
