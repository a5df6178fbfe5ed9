// Windows and buffers over rows of an array: the same tensor again as long as nobody keeps it, another one from then on.
#include "frontend/rows.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "frontend/memory.hpp"
#include "frontend_support.hpp"

namespace tandem::frontend {
namespace {

Tensor table(int64_t rows) {
  std::vector<float> numbers(static_cast<size_t>(rows * 3));
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  return Tensor::from(numbers, {rows, 3});
}

// A buffer copies from memory that the host reaches, whatever the tests run on.
Tensor on_host(const Tensor& t) { return t.to(host_device().info().name); }

std::vector<float> numbers_in(const Tensor& t) { return t.to_vector<float>(); }

TEST(RowWindow, MovesAlongTheArray) {
  const Tensor array = on_host(table(5));
  RowWindow window(array);
  const Tensor& first = window.show(1, 2);
  EXPECT_EQ(first.shape(), Shape({2, 3}));
  EXPECT_EQ(numbers_in(first), (std::vector<float>{3, 4, 5, 6, 7, 8}));
  const Tensor& next = window.show(4, 1);
  EXPECT_EQ(&first, &next);
  EXPECT_EQ(numbers_in(next), (std::vector<float>{12, 13, 14}));
  EXPECT_EQ(next.raw_data(), static_cast<const float*>(array.raw_data()) + 12) << "a view";
}

TEST(RowWindow, WhatSomebodyKeepsStaysAsItIs) {
  RowWindow window(table(4));
  const Tensor kept = window.show(0, 1);
  EXPECT_EQ(numbers_in(window.show(3, 1)), (std::vector<float>{9, 10, 11}));
  EXPECT_EQ(numbers_in(kept), (std::vector<float>{0, 1, 2}));
}

TEST(RowBuffer, HasRowsInTheOrderThatIsAskedFor) {
  device::Stream& stream = host_device().stream(device::StreamKind::Compute);
  RowBuffer buffer(on_host(table(6)), 1, 3);  // numbers are counted from row 1
  const int64_t some[] = {4, 0, 2}, fewer[] = {1};
  const Tensor* first = &buffer.fill(some, stream);
  stream.synchronize();
  EXPECT_EQ(numbers_in(*first), (std::vector<float>{15, 16, 17, 3, 4, 5, 9, 10, 11}));
  const void* place = first->raw_data();
  const Tensor& last = buffer.fill(fewer, stream);
  stream.synchronize();
  EXPECT_EQ(last.shape(), Shape({1, 3}));
  EXPECT_EQ(numbers_in(last), (std::vector<float>{6, 7, 8}));
  EXPECT_EQ(last.raw_data(), place) << "nobody kept it, so it is the same memory";
}

TEST(RowBuffer, WhatSomebodyKeepsStaysAsItIs) {
  device::Stream& stream = host_device().stream(device::StreamKind::Compute);
  RowBuffer buffer(on_host(table(4)), 0, 2);
  const int64_t some[] = {0, 1}, others[] = {3, 2};
  const Tensor kept = buffer.fill(some, stream);
  stream.synchronize();
  const Tensor view = buffer.fill(others, stream);  // the tensor itself is kept now, and then only its memory
  stream.synchronize();
  const Tensor part = view.reshape({6});
  EXPECT_EQ(numbers_in(kept), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(numbers_in(part), (std::vector<float>{9, 10, 11, 6, 7, 8}));
}

}  // namespace
}  // namespace tandem::frontend
