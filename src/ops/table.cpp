#include "ops/table.hpp"

namespace tandem::ops {

ir::OpTable& table() {
  static ir::OpTable& all = *[] {
    auto* t = new ir::OpTable;  // never destroyed: graphs may outlive static destruction
    for (auto family : {structural_rows, arithmetic_rows, compare_rows,     math_rows,     special_rows, activation_rows,    convert_rows,
                        reduce_rows,     cumulative_rows, order_rows,       movement_rows, create_rows,  slice_rows,         index_rows,
                        matmul_rows,     einsum_rows,     convolution_rows, pooling_rows,  softmax_rows, normalization_rows, attention_rows,
                        recurrent_rows,  random_rows,     linalg_rows,      fft_rows,      control_rows})
      for (ir::OpDef& row : family()) t->add(std::move(row));
    return t;
  }();
  return all;
}

}  // namespace tandem::ops
