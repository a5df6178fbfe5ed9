// Winograd's transforms for AVX2. Compiled for these instructions (device.cmake).
#include "vector_avx2.hpp"
#include "winograd_body.hpp"

namespace tandem::cpu {

constinit const WinogradSet kWinogradAvx2 = winograd_set<Avx2>();

}  // namespace tandem::cpu
