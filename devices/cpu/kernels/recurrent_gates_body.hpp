// The gates as templates over an instruction set. Included only by the files that are compiled for one.
#pragma once
#include "recurrent_gates.hpp"
#include "unroll.hpp"
#include "vector_math.hpp"

namespace tandem::cpu {
namespace {

// A row's inputs or gates of the next step, a vector of each gate.
template <int kGates, class Block> void ask_for_next(const Block& b, int64_t row, int64_t unit = 0) {
  const float* next = b.ahead.at + row * b.ahead.step + unit;
  TANDEM_UNROLL for (int gate = 0; gate < kGates; ++gate) __builtin_prefetch(next + gate * b.units, 0, 2);
}

// A vector of which the first few columns are there.
template <class I> class Columns {
 public:
  explicit Columns(int64_t left) : full_(left >= I::kLanes), mask_(I::mask(full_ ? I::kLanes : static_cast<int>(left))) {}
  typename I::Vector load(const float* p) const { return full_ ? I::load(p) : I::load(p, mask_); }
  void store(float* p, typename I::Vector v) const {
    if (full_)  // masked stores are slow
      I::store(p, v);
    else
      I::store(p, v, mask_);
  }

 private:
  bool full_;
  typename I::Mask mask_;
};

// Two walks, so that each row's chain of dependent instructions is short: a core then works at several rows at once.
template <class I> void run_lstm(const LstmBlock& b) {
  using Vector = typename I::Vector;
  const Columns<I> columns(b.columns);
  const auto sum = [&](int64_t row, int gate) {
    const float* inputs = b.inputs.at + row * b.inputs.step + gate * b.units;
    return I::add(columns.load(inputs), I::load(b.product + (row * 4 + gate) * I::kLanes));
  };
  const auto keep = [&](int64_t row, int gate, Vector value) {
    if (b.kept.at) columns.store(b.kept.at + row * b.kept.step + gate * b.units, value);
  };
  for (int64_t row = 0; row < b.rows; ++row) {
    ask_for_next<4>(b, row);
    const Vector i = sigmoid<I>(sum(row, 0)), f = sigmoid<I>(sum(row, 1)), g = tanh<I>(sum(row, 2));
    columns.store(b.next_c.at + row * b.next_c.step, I::multiply_add(f, columns.load(b.c.at + row * b.c.step), I::multiply(i, g)));
    keep(row, 0, i);
    keep(row, 1, f);
    keep(row, 2, g);
  }
  for (int64_t row = 0; row < b.rows; ++row) {
    const Vector o = sigmoid<I>(sum(row, 3)), c = columns.load(b.next_c.at + row * b.next_c.step);
    columns.store(b.next_h.at + row * b.next_h.step, I::multiply(o, tanh<I>(c)));
    keep(row, 3, o);
  }
}

// x (1 - x), the slope of a sigmoid that gave x; likewise of a tanh.
template <class I> typename I::Vector sigmoid_slope(typename I::Vector x) { return I::multiply(x, I::subtract(I::set(1), x)); }
template <class I> typename I::Vector tanh_slope(typename I::Vector x) { return I::subtract(I::set(1), I::multiply(x, x)); }

template <class I> typename I::Vector arriving(const GateGradient& b, int64_t row, int64_t unit, const Columns<I>& columns) {
  const auto dh = columns.load(b.h_gradient.at + row * b.h_gradient.step + unit);
  if (!b.outputs_gradient.at) return dh;
  return I::add(dh, columns.load(b.outputs_gradient.at + row * b.outputs_gradient.step + unit));
}

template <class I> void run_lstm_gradient(const LstmGradientBlock& b) {
  using Vector = typename I::Vector;
  const auto times = [](Vector x, Vector y) { return I::multiply(x, y); };
  for (int64_t row = 0; row < b.rows; ++row)
    for (int64_t unit = 0; unit < b.units; unit += I::kLanes) {
      const Columns<I> columns(b.units - unit);
      ask_for_next<4>(b, row, unit);
      const float* gates = b.gates.at + row * b.gates.step + unit;
      const auto gate = [&](int n) { return columns.load(gates + n * b.units); };
      const Vector i = gate(0), f = gate(1), g = gate(2), o = gate(3);
      const Vector activated = tanh<I>(columns.load(b.cells.at + row * b.cells.step + unit));
      const Vector dh = arriving<I>(b, row, unit, columns);
      float* carried = b.c_gradient.at + row * b.c_gradient.step + unit;
      const Vector dc = I::multiply_add(times(dh, o), tanh_slope<I>(activated), columns.load(carried));
      columns.store(carried, times(dc, f));
      float* sums = b.sums.at + row * b.sums.step + unit;
      columns.store(sums, times(times(dc, g), sigmoid_slope<I>(i)));
      columns.store(sums + b.units, times(times(dc, columns.load(b.before.at + row * b.before.step + unit)), sigmoid_slope<I>(f)));
      columns.store(sums + 2 * b.units, times(times(dc, i), tanh_slope<I>(g)));
      columns.store(sums + 3 * b.units, times(times(dh, activated), sigmoid_slope<I>(o)));
    }
}

template <class I> void run_gru(const GruBlock& b) {
  using Vector = typename I::Vector;
  const Columns<I> columns(b.columns);
  for (int64_t row = 0; row < b.rows; ++row) {
    const float *inputs = b.inputs.at + row * b.inputs.step, *product = b.product + row * 3 * I::kLanes;
    ask_for_next<3>(b, row);
    const auto by_state = [&](int gate) { return I::add(columns.load(b.bias + gate * b.units), I::load(product + gate * I::kLanes)); };
    const auto input = [&](int gate) { return columns.load(inputs + gate * b.units); };
    const Vector z = sigmoid<I>(I::add(input(0), by_state(0))), r = sigmoid<I>(I::add(input(1), by_state(1))), from_state = by_state(2);
    const Vector candidate = tanh<I>(I::multiply_add(r, from_state, input(2)));
    const Vector rest = I::multiply(I::subtract(I::set(1), z), candidate);
    columns.store(b.next_h.at + row * b.next_h.step, I::multiply_add(z, columns.load(b.h.at + row * b.h.step), rest));
    if (!b.kept.at) continue;
    float* kept = b.kept.at + row * b.kept.step;
    columns.store(kept, z);
    columns.store(kept + b.units, r);
    columns.store(kept + 2 * b.units, candidate);
    columns.store(kept + 3 * b.units, from_state);
  }
}

template <class I> void run_gru_gradient(const GruGradientBlock& b) {
  using Vector = typename I::Vector;
  const auto times = [](Vector x, Vector y) { return I::multiply(x, y); };
  for (int64_t row = 0; row < b.rows; ++row)
    for (int64_t unit = 0; unit < b.units; unit += I::kLanes) {
      const Columns<I> columns(b.units - unit);
      ask_for_next<4>(b, row, unit);
      const float* gates = b.gates.at + row * b.gates.step + unit;
      const auto gate = [&](int n) { return columns.load(gates + n * b.units); };
      const Vector z = gate(0), r = gate(1), candidate = gate(2), from_state = gate(3);
      const Vector before = columns.load(b.before.at + row * b.before.step + unit), dh = arriving<I>(b, row, unit, columns);
      const Vector d_candidate = times(times(dh, I::subtract(I::set(1), z)), tanh_slope<I>(candidate));
      const Vector d_update = times(times(dh, I::subtract(before, candidate)), sigmoid_slope<I>(z));
      const Vector d_reset = times(times(d_candidate, from_state), sigmoid_slope<I>(r));
      columns.store(b.h_gradient.at + row * b.h_gradient.step + unit, times(dh, z));
      float *sums = b.sums.at + row * b.sums.step + unit, *by_state = b.by_state.at + row * b.by_state.step + unit;
      columns.store(sums, d_update);
      columns.store(sums + b.units, d_reset);
      columns.store(sums + 2 * b.units, d_candidate);
      columns.store(by_state, d_update);
      columns.store(by_state + b.units, d_reset);
      columns.store(by_state + 2 * b.units, times(d_candidate, r));
    }
}

template <class I> constexpr GateSet gate_set() { return {run_lstm<I>, run_lstm_gradient<I>, run_gru<I>, run_gru_gradient<I>}; }

}  // namespace
}  // namespace tandem::cpu
