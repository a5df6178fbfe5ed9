// Winograd's transforms for AVX-512. Compiled for these instructions (device.cmake).
#include "vector_avx512.hpp"
#include "winograd_body.hpp"

namespace tandem::cpu {

constinit const WinogradSet kWinogradAvx512 = winograd_set<Avx512>();

}  // namespace tandem::cpu
