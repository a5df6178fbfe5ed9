// The policy of the CPU device, best first. Adding a kernel is a file under kernels/, its declaration in cpu_program.hpp and a line here.
#include "cpu_program.hpp"

namespace tandem::cpu {

std::span<const KernelEntry> kernel_list() {
  static constexpr KernelEntry kList[] = {
      // clang-format off: one line each
      {"gemm/dots", make_gemm_dots},
      {"gemm/tiles", make_gemm_tiles},
      {"gemm/openblas", make_gemm_openblas},
      {"conv/winograd", make_conv_winograd},
      {"conv/tiles", make_conv_forward},
      {"conv_weights/winograd", make_conv_weights_winograd},
      {"conv_weights/tiles", make_conv_weights},
      {"attention/tiles", make_attention_parts, keeps_attention_parts},
      {"attention_gradient/tiles", make_attention_gradient, keeps_attention_gradient},
      {"lstm/tiles", make_lstm, keeps_recurrent},
      {"gru/tiles", make_gru, keeps_recurrent},
      {"concatenate/copy", make_concatenate},
      {"linalg/lapack", make_lapack},
      {"generated", make_generated},
      {"host", make_host_routine},
      // clang-format on
  };
  return kList;
}

}  // namespace tandem::cpu
