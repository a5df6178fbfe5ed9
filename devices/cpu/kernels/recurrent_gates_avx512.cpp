// The gates of recurrent layers for AVX-512. Compiled for these instructions (device.cmake).
#include "vector_avx512.hpp"
#include "recurrent_gates_body.hpp"

namespace tandem::cpu {

constinit const GateSet kGatesAvx512 = gate_set<Avx512>();

}  // namespace tandem::cpu
