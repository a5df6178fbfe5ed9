// The gates of recurrent layers for AVX2 with FMA. Compiled for these instructions (device.cmake).
#include "recurrent_gates_body.hpp"
#include "vector_avx2.hpp"

namespace tandem::cpu {

constinit const GateSet kGatesAvx2 = gate_set<Avx2>();

}  // namespace tandem::cpu
