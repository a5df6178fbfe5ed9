// The op table: all families, in the order of the map. A family is one source file that returns its rows.
#pragma once
#include <vector>

#include "ir/op.hpp"

namespace tandem::ops {

// The one table of this process. Rows of other libraries may be added to it (examples/skeleton_op); rows never go away.
ir::OpTable& table();

using Rows = std::vector<ir::OpDef>;
Rows structural_rows();     // input constant identity stop_gradient custom_gradient remat barrier
Rows arithmetic_rows();     // add subtract multiply divide … clip
Rows compare_rows();        // comparisons, logic, bits, where, is_nan …
Rows math_rows();           // exponential, trigonometric, hyperbolic, rounding
Rows special_rows();        // erf, lgamma, digamma, bessel …
Rows activation_rows();     // relu gelu … as bodies
Rows convert_rows();        // cast bitcast
Rows reduce_rows();         // sum mean max … argmax logsumexp
Rows cumulative_rows();     // cumsum cumprod …
Rows order_rows();          // sort argsort top_k unique searchsorted
Rows movement_rows();       // reshape transpose broadcast pad concatenate flip roll …
Rows create_rows();         // iota full eye tri …
Rows slice_rows();          // slice dynamic_slice dynamic_update_slice
Rows index_rows();          // take gather scatter one_hot segment sums
Rows matmul_rows();         // matmul
Rows einsum_rows();         // einsum tensordot outer
Rows convolution_rows();    // conv depthwise_conv conv_transpose and the general convolution
Rows pooling_rows();        // max_pool average_pool
Rows softmax_rows();        // softmax log_softmax cross-entropies
Rows normalization_rows();  // layer, batch, group, rms normalisation
Rows attention_rows();      // dot_product_attention and what it is made of
Rows recurrent_rows();      // lstm gru and their gradients
Rows random_rows();         // counter-based random numbers
Rows linalg_rows();         // cholesky qr lu svd eigh solve …
Rows fft_rows();            // fft rfft …
Rows control_rows();        // branch while scan host_call

}  // namespace tandem::ops
