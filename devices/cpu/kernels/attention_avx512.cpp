// Attention's elementwise parts for AVX-512. Compiled for these instructions (device.cmake).
#include "attention_body.hpp"
#include "vector_avx512.hpp"

namespace tandem::cpu {

constinit const AttentionSet kAttentionAvx512 = {run_softmax<Avx512>, run_weights<Avx512>, run_scale_rows<Avx512>, run_add<Avx512>,
                                                 run_exp<Avx512>};

}  // namespace tandem::cpu
