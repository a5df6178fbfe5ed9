// GRU over a whole sequence, and its gradient; the reset gate applies after the product.
#include "recurrent.hpp"

namespace tandem::cpu {
namespace {

constexpr int64_t kGates = 3;

class Gru final : public Recurrent {
 public:
  Gru(const codegen::Kernel& kernel, const Toolbox& tools)
      : Recurrent(kernel, tools, {kernel.in[0].shape[0], kernel.in[0].shape[1], kernel.in[1].shape[0], kGates}, 1, Direction::Forward),
        keep_(kernel.attrs.get<bool>("keep")) {}
  std::string_view kernel_name() const override { return "gru/tiles"; }

 private:
  void sequence(const Chunk& chunk) const override {
    ConstRows h = input(chunk, 2);
    for (int64_t step = 0; step < sizes_.time; ++step) {
      const FloatRows next_h = output(chunk, 0, step);
      const ConstRows inputs = input(chunk, 0, step), ahead = input(chunk, 0, std::min(step + 1, sizes_.time - 1));
      for (int64_t block = 0; block < blocks(); ++block) {
        const int64_t unit = block * lanes();
        multiply_block(chunk, h, block);
        GruBlock b{{.rows = chunk.rows,
                    .units = sizes_.units,
                    .columns = columns(block),
                    .product = chunk.product,
                    .inputs = beside(inputs, unit),
                    .ahead = beside(ahead, unit),
                    .kept = {}},
                   chunk.in[3] + unit,
                   beside(h, unit),
                   beside(next_h, unit)};
        if (keep_) b.kept = beside(output(chunk, 2, step), unit);
        functions_.gru(b);
      }
      h = const_rows(next_h);
    }
    copy_rows(h, output(chunk, 1), chunk.rows, sizes_.units);
  }

  bool keep_;
};

class GruGradient final : public Recurrent {
 public:
  GruGradient(const codegen::Kernel& kernel, const Toolbox& tools)
      : Recurrent(kernel, tools, {kernel.in[0].shape[0], kernel.in[0].shape[1], kernel.in[2].shape[0], kGates}, 2, Direction::Backward) {}
  std::string_view kernel_name() const override { return "gru_gradient/tiles"; }

 private:
  void sequence(const Chunk& chunk) const override {
    const FloatRows h_gradient = output(chunk, 2);
    copy_rows(input(chunk, 5), h_gradient, chunk.rows, sizes_.units);
    for (int64_t step = sizes_.time; step-- > 0;) {
      const FloatRows by_state = output(chunk, 1, step);
      const GruGradientBlock b{gate_gradient(chunk, step, h_gradient), step > 0 ? input(chunk, 1, step - 1) : input(chunk, 3), by_state};
      functions_.gru_gradient(b);
      multiply_transposed(chunk, const_rows(by_state), h_gradient, true);
    }
  }
};

}  // namespace

std::shared_ptr<const CpuProgram> make_gru(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal) {
  const bool backward = kernel.op->name == "gru_gradient";
  if ((kernel.op->name != "gru" && !backward) || !takes_recurrent(kernel, refusal)) return nullptr;
  if (backward) return std::make_shared<GruGradient>(kernel, tools);
  return std::make_shared<Gru>(kernel, tools);
}

}  // namespace tandem::cpu
