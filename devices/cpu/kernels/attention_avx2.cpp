// Attention's elementwise parts for AVX2. Compiled for these instructions (device.cmake).
#include "attention_body.hpp"
#include "vector_avx2.hpp"

namespace tandem::cpu {

constinit const AttentionSet kAttentionAvx2 = {run_softmax<Avx2>, run_weights<Avx2>, run_scale_rows<Avx2>, run_add<Avx2>, run_exp<Avx2>};

}  // namespace tandem::cpu
