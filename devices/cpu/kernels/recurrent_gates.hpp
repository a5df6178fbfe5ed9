// What recurrent layers do with each finished piece of their products, and its gradient: gates, cells and states of a few rows.
#pragma once
#include <cstdint>

namespace tandem::cpu {

// Rows of floats that lie apart.
struct FloatRows {
  float* at = nullptr;
  int64_t step = 0;
};
struct ConstRows {
  const float* at = nullptr;
  int64_t step = 0;
};

// One step of some rows in one block of units; all pointers are at its first unit, and gates lie `units` apart.
struct GateBlock {
  int64_t rows, units;
  int columns;           // of the block: 1 to lanes
  const float* product;  // h times the recurrent kernel: [rows][gates][lanes]
  ConstRows inputs;
  ConstRows ahead;  // those of the next step, fetched while this one is computed
  FloatRows kept;   // the gates for the gradient, or nothing
};
struct LstmBlock : GateBlock {
  ConstRows c;
  FloatRows next_c, next_h;
};
struct GruBlock : GateBlock {
  const float* bias;
  ConstRows h;
  FloatRows next_h;
};

// One step of some rows backwards, all units. `h_gradient` is what flows into the state after the step from later ones.
struct GateGradient {
  int64_t rows, units;
  ConstRows gates;
  ConstRows ahead;             // those of the step before, fetched while this one is computed
  ConstRows outputs_gradient;  // or nothing
  FloatRows h_gradient;
  FloatRows sums;  // the gradient of what went into the gates
};
struct LstmGradientBlock : GateGradient {
  ConstRows before, cells;  // c before and after the step
  FloatRows c_gradient;     // from that after the step to that before it
};
struct GruGradientBlock : GateGradient {
  ConstRows before;    // h; h_gradient becomes what flows to it past the gates
  FloatRows by_state;  // the gradient of the product with the recurrent kernel
};

// The code of one instruction set.
struct GateSet {
  void (*lstm)(const LstmBlock&);
  void (*lstm_gradient)(const LstmGradientBlock&);
  void (*gru)(const GruBlock&);
  void (*gru_gradient)(const GruGradientBlock&);
};
extern const GateSet kGatesAvx2, kGatesAvx512;
inline const GateSet& gates(bool wide) { return wide ? kGatesAvx512 : kGatesAvx2; }

}  // namespace tandem::cpu
