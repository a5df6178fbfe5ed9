// Winograd's minimal filtering (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016): the 2x2 outputs of a 3x3 kernel
// read a window of 4x4, and after linear transforms of both they are 16 multiplications instead of 36. With sums over channels these are
// 16 matrix products. Along one axis
//
//   y = A [(G w) * (B d)]      B d = d0-d2, d1+d2, d2-d1, d1-d3     G w = w0, (w0+w1+w2)/2, (w0-w1+w2)/2, w2     A m = m0+m1+m2, m1-m2-m3
//
// and the gradient by the kernel is G^T [(A^T g) * (B d)]. In two dimensions each is applied down and across.
//
// Transforms run over channels in vectors: each element is computed by the same additions in the same order, wherever it stands.
#pragma once
#include <cstdint>

namespace tandem::cpu {

inline constexpr int64_t kWindow = 4, kPoints = kWindow * kWindow;  // along one axis; of a window and of what it is transformed to
inline constexpr int64_t kOutputs = 2, kTaps = 3;                   // of a window, along one axis

// Vectors at points[p * step]; what is written there beyond `count` is the caller's to spare. Pixels or taps each have an address.
using ToPoints = void (*)(const float* const* from, int64_t count, float* points, int64_t step);
using FromPoints = void (*)(const float* points, int64_t step, int64_t count, float* const* to);

// The code of one instruction set.
struct WinogradSet {
  ToPoints window, kernel, gradient;  // of 4x4 pixels, 3x3 taps, 2x2 pixels of a result's gradient
  FromPoints outputs;                 // 2x2 pixels; an address may be null
  FromPoints kernel_gradient;         // 3x3 taps
};
extern const WinogradSet kWinogradAvx2, kWinogradAvx512;
inline const WinogradSet& winograd(bool wide) { return wide ? kWinogradAvx512 : kWinogradAvx2; }

}  // namespace tandem::cpu
