#include "codegen/product.hpp"

#include <algorithm>

namespace tandem::codegen {
namespace {

// Element steps of an operand's batch axes, aligned to the result's; 0 where it is repeated.
std::vector<int64_t> batch_steps(const Layout& o, size_t matrix_axes, const std::vector<int64_t>& batch) {
  std::vector<int64_t> steps(batch.size(), 0);
  const size_t own = o.shape.size() - matrix_axes;
  for (size_t i = 0; i < own; ++i)
    if (o.shape[i] != 1) steps[batch.size() - own + i] = o.strides[i];
  return steps;
}

void merge_batch_into_rows(Product& p) {
  const bool y_repeats = std::all_of(p.y.batch_steps.begin(), p.y.batch_steps.end(), [](int64_t s) { return s == 0; });
  if (!y_repeats || p.x.column_step != 1) return;
  int64_t rows = p.m, step = p.x.row_step;
  for (size_t i = p.batch.size(); i-- > 0;) {
    if (p.batch[i] == 1) continue;
    if (rows == 1) step = p.x.batch_steps[i];  // a single row lies anyhow
    if (p.x.batch_steps[i] != rows * step || step < p.k) return;
    rows *= p.batch[i];
  }
  p.m = rows;
  p.x.row_step = step;
  p.batch.clear();
  p.x.batch_steps.clear();
  p.y.batch_steps.clear();
  p.batches = 1;
}

}  // namespace

Product take_apart(const Kernel& kernel) {
  Product p;
  const Layout &x = kernel.in[0], &y = kernel.in[1], &out = kernel.epilogue ? kernel.epilogue->product : kernel.out[0];
  const bool has_rows = x.shape.size() > 1, has_columns = y.shape.size() > 1;
  const bool transpose_x = has_rows && kernel.attrs.get<bool>("transpose_x"),
             transpose_y = has_columns && kernel.attrs.get<bool>("transpose_y");
  const size_t batch_axes = out.shape.size() - (has_rows ? 1 : 0) - (has_columns ? 1 : 0);
  for (size_t i = 0; i < batch_axes; ++i) {
    p.batch.push_back(out.shape[i]);
    p.batches *= out.shape[i];
  }
  auto last = [](const Extents& e, size_t from_end) { return e[e.size() - from_end]; };
  p.k = last(x.shape, transpose_x ? 2 : 1);
  p.x.column_step = last(x.strides, transpose_x ? 2 : 1);
  p.x.row_step = p.k;
  if (has_rows) {
    p.m = last(x.shape, transpose_x ? 1 : 2);
    p.x.row_step = last(x.strides, transpose_x ? 1 : 2);
  }
  p.y.row_step = last(y.strides, has_columns && !transpose_y ? 2 : 1);
  p.y.column_step = 1;
  if (has_columns) {
    p.n = last(y.shape, transpose_y ? 2 : 1);
    p.y.column_step = last(y.strides, transpose_y ? 2 : 1);
  }
  p.x.batch_steps = batch_steps(x, has_rows ? 2 : 1, p.batch);
  p.y.batch_steps = batch_steps(y, has_columns ? 2 : 1, p.batch);
  if (!has_columns && kernel.epilogue) {  // an epilogue takes the rows of such a product for columns
    swap_sides(p);
    return p;
  }
  merge_batch_into_rows(p);
  return p;
}

void swap_sides(Product& p) {
  std::swap(p.m, p.n);
  std::swap(p.x, p.y);
  std::swap(p.x_input, p.y_input);
  std::swap(p.x.row_step, p.x.column_step);
  std::swap(p.y.row_step, p.y.column_step);
}

int64_t Product::offset(const Matrix& matrix, int64_t b) const {
  int64_t at = 0;
  for (size_t i = batch.size(); i-- > 0; b /= batch[i]) at += b % batch[i] * matrix.batch_steps[i];
  return at;
}

}  // namespace tandem::codegen
