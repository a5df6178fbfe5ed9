// A matmul taken apart: sizes, and where the elements of its operands lie. For devices with kernels of their own for it.
#pragma once
#include <vector>

#include "codegen/kernel.hpp"

namespace tandem::codegen {

// A matrix operand: how far apart rows and columns lie, and how the batch steps over it.
struct Matrix {
  int64_t row_step, column_step;
  std::vector<int64_t> batch_steps;
};

// out[b, i, j] = sum over k of x[b, i, k] * y[b, k, j]
struct Product {
  int64_t m = 1, n = 1, k = 1, batches = 1;
  std::vector<int64_t> batch;
  Matrix x, y;
  int x_input = 0, y_input = 1;  // which of the kernel's inputs they are
  double work() const { return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }  // of one of the batch
  int64_t offset(const Matrix& matrix, int64_t b) const;  // where number b of the batch begins
};

// One matrix for a whole batch of rows becomes one product (a dense layer on [batch, time, features]).
Product take_apart(const Kernel& matmul);
// out^T = y^T x^T, which lies in the same memory when there is one row or one column.
void swap_sides(Product& p);

}  // namespace tandem::codegen
