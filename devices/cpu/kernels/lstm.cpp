// LSTM over a whole sequence, and its gradient.
#include "recurrent.hpp"

namespace tandem::cpu {
namespace {

constexpr int64_t kGates = 4;

class Lstm final : public Recurrent {
 public:
  Lstm(const codegen::Kernel& kernel, const Toolbox& tools)
      : Recurrent(kernel, tools, {kernel.in[0].shape[0], kernel.in[0].shape[1], kernel.in[1].shape[0], kGates}, 1, Direction::Forward),
        keep_(kernel.attrs.get<bool>("keep")) {}
  std::string_view kernel_name() const override { return "lstm/tiles"; }
  // The gates that are kept may lie where the inputs did: each is read before it is written.
  bool is_replaceable(size_t operand) const override { return keep_ && operand == 0 && is_dense(operand); }

 private:
  void sequence(const Chunk& chunk) const override {
    // Cells are kept for each step, or only the last ones, in place.
    const auto cells = [&](int64_t step) { return keep_ ? output(chunk, 4, step) : output(chunk, 2); };
    ConstRows h = input(chunk, 2), c = input(chunk, 3);
    for (int64_t step = 0; step < sizes_.time; ++step) {
      const FloatRows next_h = output(chunk, 0, step), next_c = cells(step);
      const ConstRows inputs = input(chunk, 0, step), ahead = input(chunk, 0, std::min(step + 1, sizes_.time - 1));
      for (int64_t block = 0; block < blocks(); ++block) {
        const int64_t unit = block * lanes();
        multiply_block(chunk, h, block);
        LstmBlock b{{.rows = chunk.rows,
                     .units = sizes_.units,
                     .columns = columns(block),
                     .product = chunk.product,
                     .inputs = beside(inputs, unit),
                     .ahead = beside(ahead, unit),
                     .kept = {}},
                    beside(c, unit),
                    beside(next_c, unit),
                    beside(next_h, unit)};
        if (keep_) b.kept = beside(output(chunk, 3, step), unit);
        functions_.lstm(b);
      }
      h = const_rows(next_h);
      c = const_rows(next_c);
    }
    copy_rows(h, output(chunk, 1), chunk.rows, sizes_.units);
    if (keep_ || sizes_.time == 0) copy_rows(c, output(chunk, 2), chunk.rows, sizes_.units);
  }

  bool keep_;
};

class LstmGradient final : public Recurrent {
 public:
  LstmGradient(const codegen::Kernel& kernel, const Toolbox& tools)
      : Recurrent(kernel, tools, {kernel.in[0].shape[0], kernel.in[0].shape[1], kernel.in[2].shape[0], kGates}, 2, Direction::Backward) {}
  std::string_view kernel_name() const override { return "lstm_gradient/tiles"; }
  bool is_replaceable(size_t operand) const override { return operand == 0 && is_dense(operand); }  // by the gradient of the inputs

 private:
  void sequence(const Chunk& chunk) const override {
    const FloatRows h_gradient = output(chunk, 1), c_gradient = output(chunk, 2);
    copy_rows(input(chunk, 5), h_gradient, chunk.rows, sizes_.units);
    copy_rows(input(chunk, 6), c_gradient, chunk.rows, sizes_.units);
    for (int64_t step = sizes_.time; step-- > 0;) {
      const LstmGradientBlock b{gate_gradient(chunk, step, h_gradient), step > 0 ? input(chunk, 1, step - 1) : input(chunk, 3),
                                input(chunk, 1, step), c_gradient};
      functions_.lstm_gradient(b);
      multiply_transposed(chunk, const_rows(b.sums), h_gradient, false);
    }
  }
};

}  // namespace

std::shared_ptr<const CpuProgram> make_lstm(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal) {
  const bool backward = kernel.op->name == "lstm_gradient";
  if ((kernel.op->name != "lstm" && !backward) || !takes_recurrent(kernel, refusal)) return nullptr;
  if (backward) return std::make_shared<LstmGradient>(kernel, tools);
  return std::make_shared<Lstm>(kernel, tools);
}

}  // namespace tandem::cpu
