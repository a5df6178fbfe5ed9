// The gates of recurrent layers for AVX-512. Compiled for these instructions (device.cmake).
#include "recurrent_gates_body.hpp"
#include "vector_avx512.hpp"

namespace tandem::cpu {

constinit const GateSet kGatesAvx512 = gate_set<Avx512>();

}  // namespace tandem::cpu
