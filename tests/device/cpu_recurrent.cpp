// Recurrent layers on the CPU: a whole sequence in one launch gives what the formula gives in double, for any extents and strides, with
// each instruction set, and the same bits on any number of threads.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "base/text.hpp"
#include "ops/table.hpp"
#include "product_support.hpp"

namespace tandem::testing {
namespace {

// Rows of numbers, [rows][columns], or several of them one behind the other.
class Numbers {
 public:
  Numbers() = default;
  Numbers(int64_t rows, int64_t columns) : columns_(columns), values_(static_cast<size_t>(rows * columns)) {}
  explicit Numbers(const HostTensor& x) {
    const Shape& s = x.layout.shape;
    columns_ = s.back();
    const int64_t count = element_count(s);
    for (int64_t i = 0; i < count; ++i) {
      int64_t offset = x.first, rest = i;
      for (size_t j = s.size(); j-- > 0; rest /= s[j]) offset += rest % s[j] * x.layout.strides[j];
      values_.push_back(number(x, offset));
    }
  }
  double& at(int64_t row, int64_t column) { return values_[static_cast<size_t>(row * columns_ + column)]; }
  double at(int64_t row, int64_t column) const { return values_[static_cast<size_t>(row * columns_ + column)]; }
  HostTensor tensor(const Shape& shape) const {
    HostTensor t = dense(DType::F32, shape);
    for (size_t i = 0; i < values_.size(); ++i) {
      const auto x = static_cast<float>(values_[i]);
      std::memcpy(t.bytes.data() + i * sizeof x, &x, sizeof x);
    }
    return t;
  }

 private:
  int64_t columns_ = 1;
  std::vector<double> values_;
};

struct Sizes {
  int64_t time, batch, units;
  Shape steps(int64_t width) const { return {time, batch, width * units}; }
  Shape state() const { return {batch, units}; }
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double slope(double sigmoid) { return sigmoid * (1 - sigmoid); }
double tanh_slope(double tanh) { return 1 - tanh * tanh; }

double product(const Numbers& h, const Numbers& kernel, int64_t row, int64_t column, int64_t units) {
  double sum = 0;
  for (int64_t k = 0; k < units; ++k) sum += h.at(row, k) * kernel.at(k, column);
  return sum;
}
// gradient times the transposed kernel
double product_back(const Numbers& gradient, const Numbers& kernel, int64_t row, int64_t unit, int64_t width) {
  double sum = 0;
  for (int64_t k = 0; k < width; ++k) sum += gradient.at(row, k) * kernel.at(unit, k);
  return sum;
}

ProductCall kernel_call(std::string_view op, const ir::Attrs& attrs, const std::vector<HostTensor>& in) {
  const ir::OpDef& row = ops::table().at(op);
  const ir::Attrs all = ir::complete_attrs(row, attrs);
  std::vector<ir::TensorType> types;
  std::vector<codegen::Layout> layouts;
  for (const HostTensor& x : in) {
    types.push_back({x.layout.dtype, to_dims(x.layout.shape)});
    layouts.push_back(x.layout);
  }
  return {codegen::make_kernel(row, all, types, ir::infer(row, types, all), {}, layouts), in, {}, 1};
}

ProductCall lstm_call(const Sizes& s, const std::vector<HostTensor>& in, bool keep) {
  const int64_t u = s.units;
  const Numbers inputs(in[0]), kernel(in[1]);
  Numbers h(in[2]), c(in[3]), outputs(s.time * s.batch, u), gates(s.time * s.batch, 4 * u), cells(s.time * s.batch, u);
  for (int64_t t = 0; t < s.time; ++t) {
    const Numbers before = h;
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t j = 0; j < u; ++j) {
        const int64_t row = t * s.batch + b;
        const auto sum = [&](int64_t gate) { return inputs.at(row, gate * u + j) + product(before, kernel, b, gate * u + j, u); };
        const double i = sigmoid(sum(0)), f = sigmoid(sum(1)), g = std::tanh(sum(2)), o = sigmoid(sum(3));
        c.at(b, j) = f * c.at(b, j) + i * g;
        h.at(b, j) = o * std::tanh(c.at(b, j));
        outputs.at(row, j) = h.at(b, j);
        cells.at(row, j) = c.at(b, j);
        for (int64_t n = 0; const double gate : {i, f, g, o}) gates.at(row, n++ * u + j) = gate;
      }
  }
  ProductCall call = kernel_call("lstm", {{"keep", keep}}, in);
  call.terms = s.units * std::max<int64_t>(s.time, 1);
  call.expected = {outputs.tensor(s.steps(1)), h.tensor(s.state()), c.tensor(s.state())};
  if (keep) {
    call.expected.push_back(gates.tensor(s.steps(4)));
    call.expected.push_back(cells.tensor(s.steps(1)));
  }
  return call;
}

ProductCall lstm_gradient_call(const Sizes& s, const std::vector<HostTensor>& in) {
  const int64_t u = s.units;
  const Numbers gates(in[0]), cells(in[1]), kernel(in[2]), first(in[3]);
  const bool outputs = in[4].layout.shape.size() > 0;
  const Numbers by_output = outputs ? Numbers(in[4]) : Numbers();
  Numbers dh(in[5]), dc(in[6]), sums(s.time * s.batch, 4 * u);
  for (int64_t t = s.time; t-- > 0;)
    for (int64_t b = 0; b < s.batch; ++b) {
      const int64_t row = t * s.batch + b;
      for (int64_t j = 0; j < u; ++j) {
        const auto gate = [&](int64_t n) { return gates.at(row, n * u + j); };
        const double i = gate(0), f = gate(1), g = gate(2), o = gate(3), activated = std::tanh(cells.at(row, j));
        const double before = t > 0 ? cells.at(row - s.batch, j) : first.at(b, j);
        const double by_h = dh.at(b, j) + (outputs ? by_output.at(row, j) : 0), by_c = dc.at(b, j) + by_h * o * tanh_slope(activated);
        sums.at(row, j) = by_c * g * slope(i);
        sums.at(row, u + j) = by_c * before * slope(f);
        sums.at(row, 2 * u + j) = by_c * i * tanh_slope(g);
        sums.at(row, 3 * u + j) = by_h * activated * slope(o);
        dc.at(b, j) = by_c * f;
      }
      for (int64_t j = 0; j < u; ++j) dh.at(b, j) = product_back(sums, kernel, row, j, 4 * u);
    }
  ProductCall call = kernel_call("lstm_gradient", {}, in);
  call.terms = 4 * s.units * std::max<int64_t>(s.time, 1);
  call.expected = {sums.tensor(s.steps(4)), dh.tensor(s.state()), dc.tensor(s.state())};
  return call;
}

ProductCall gru_call(const Sizes& s, const std::vector<HostTensor>& in, bool keep) {
  const int64_t u = s.units;
  const Numbers inputs(in[0]), kernel(in[1]), bias(in[3]);
  Numbers h(in[2]), outputs(s.time * s.batch, u), gates(s.time * s.batch, 4 * u);
  for (int64_t t = 0; t < s.time; ++t) {
    const Numbers before = h;
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t j = 0; j < u; ++j) {
        const int64_t row = t * s.batch + b;
        const auto by_state = [&](int64_t gate) { return product(before, kernel, b, gate * u + j, u) + bias.at(0, gate * u + j); };
        const double z = sigmoid(inputs.at(row, j) + by_state(0)), r = sigmoid(inputs.at(row, u + j) + by_state(1));
        const double candidate = std::tanh(inputs.at(row, 2 * u + j) + r * by_state(2));
        h.at(b, j) = z * before.at(b, j) + (1 - z) * candidate;
        outputs.at(row, j) = h.at(b, j);
        for (int64_t n = 0; const double gate : {z, r, candidate, by_state(2)}) gates.at(row, n++ * u + j) = gate;
      }
  }
  ProductCall call = kernel_call("gru", {{"keep", keep}}, in);
  call.terms = s.units * std::max<int64_t>(s.time, 1);
  call.expected = {outputs.tensor(s.steps(1)), h.tensor(s.state())};
  if (keep) call.expected.push_back(gates.tensor(s.steps(4)));
  return call;
}

ProductCall gru_gradient_call(const Sizes& s, const std::vector<HostTensor>& in) {
  const int64_t u = s.units;
  const Numbers gates(in[0]), after(in[1]), kernel(in[2]), first(in[3]);
  const bool outputs = in[4].layout.shape.size() > 0;
  const Numbers by_output = outputs ? Numbers(in[4]) : Numbers();
  Numbers dh(in[5]), by_inputs(s.time * s.batch, 3 * u), by_state(s.time * s.batch, 3 * u);
  for (int64_t t = s.time; t-- > 0;)
    for (int64_t b = 0; b < s.batch; ++b) {
      const int64_t row = t * s.batch + b;
      for (int64_t j = 0; j < u; ++j) {
        const auto gate = [&](int64_t n) { return gates.at(row, n * u + j); };
        const double z = gate(0), r = gate(1), candidate = gate(2), before = t > 0 ? after.at(row - s.batch, j) : first.at(b, j);
        const double by_h = dh.at(b, j) + (outputs ? by_output.at(row, j) : 0);
        const double by_candidate = by_h * (1 - z) * tanh_slope(candidate);
        by_inputs.at(row, j) = by_state.at(row, j) = by_h * (before - candidate) * slope(z);
        by_inputs.at(row, u + j) = by_state.at(row, u + j) = by_candidate * gate(3) * slope(r);
        by_inputs.at(row, 2 * u + j) = by_candidate;
        by_state.at(row, 2 * u + j) = by_candidate * r;
        dh.at(b, j) = by_h * z;
      }
      for (int64_t j = 0; j < u; ++j) dh.at(b, j) += product_back(by_state, kernel, row, j, 3 * u);
    }
  ProductCall call = kernel_call("gru_gradient", {}, in);
  call.terms = 3 * s.units * std::max<int64_t>(s.time, 1);
  call.expected = {by_inputs.tensor(s.steps(3)), by_state.tensor(s.steps(3)), dh.tensor(s.state())};
  return call;
}

class RecurrentLayers : public ::testing::TestWithParam<Sizes> {
 protected:
  using MakeTensor = HostTensor (*)(DType, const Shape&, std::mt19937_64&, Values);
  // Numbers below 1: backwards, larger gates would make differences grow from step to step.
  HostTensor f(const Shape& s) {
    HostTensor t = make_(DType::F32, s, random_, Values::Small);
    for (size_t i = 0; i < t.bytes.size(); i += sizeof(float)) {
      float x;
      std::memcpy(&x, &t.bytes[i], sizeof x);
      x *= 0.2f;
      std::memcpy(&t.bytes[i], &x, sizeof x);
    }
    return t;
  }

  void check_all(const Sizes& s, MakeTensor make = dense) {
    SCOPED_TRACE(cat("time ", s.time, ", batch ", s.batch, ", units ", s.units));
    make_ = make;
    const int64_t u = s.units;
    for (bool keep : {false, true}) {
      check_entry(cpu::make_lstm, lstm_call(s, {f(s.steps(4)), f({u, 4 * u}), f(s.state()), f(s.state())}, keep));
      check_entry(cpu::make_gru, gru_call(s, {f(s.steps(3)), f({u, 3 * u}), f(s.state()), f({3 * u})}, keep));
    }
    for (const Shape& outputs : {Shape{}, s.steps(1)}) {
      check_entry(cpu::make_lstm, lstm_gradient_call(s, {f(s.steps(4)), f(s.steps(1)), f({u, 4 * u}), f(s.state()), f(outputs),
                                                         f(s.state()), f(s.state())}));
      check_entry(cpu::make_gru,
                  gru_gradient_call(s, {f(s.steps(4)), f(s.steps(1)), f({u, 3 * u}), f(s.state()), f(outputs), f(s.state())}));
    }
  }

  std::mt19937_64 random_{11};
  MakeTensor make_ = dense;
};

TEST_P(RecurrentLayers, AgreeWithTheFormula) { check_all(GetParam()); }
TEST_P(RecurrentLayers, OperandsThatLieAnyhow) { check_all(GetParam(), scattered); }

INSTANTIATE_TEST_SUITE_P(Extents, RecurrentLayers,
                         ::testing::Values(Sizes{1, 1, 1}, Sizes{3, 1, 3}, Sizes{2, 7, 16}, Sizes{3, 9, 17}, Sizes{1, 33, 8},
                                           Sizes{2, 40, 33}, Sizes{4, 5, 40}, Sizes{0, 3, 5}, Sizes{3, 0, 5}, Sizes{2, 300, 3}),
                         [](const auto& s) { return cat("t", s.param.time, "b", s.param.batch, "u", s.param.units); });

TEST(RecurrentKernels, RefusalsGiveTheirReason) {
  using ::testing::HasSubstr;
  const auto of = [](DType t, const Shape& s) { return dense(t, s); };
  const auto doubles =
      kernel_call("lstm", {}, {of(DType::F64, {2, 3, 8}), of(DType::F64, {2, 8}), of(DType::F64, {3, 2}), of(DType::F64, {3, 2})});
  EXPECT_THAT(refusal_of(cpu::make_lstm, doubles.kernel), HasSubstr("takes float32, not float64"));
  const std::vector<HostTensor> in{of(DType::F32, {2, 3, 6}), of(DType::F32, {2, 6}), of(DType::F32, {3, 2}), of(DType::F32, {6})};
  EXPECT_THAT(refusal_of(cpu::make_gru, kernel_call("gru", {{"reset_after", false}}, in).kernel), HasSubstr("before the product"));
  std::vector<HostTensor> masked = in;
  masked.push_back(of(DType::Bool, {2, 3}));
  EXPECT_THAT(refusal_of(cpu::make_gru, kernel_call("gru", {}, masked).kernel), HasSubstr("takes no mask"));
}

}  // namespace
}  // namespace tandem::testing
