#include <tandem/nn/layers/recurrent.hpp>

#include <tandem/control.hpp>
#include <tandem/ops.hpp>

#include "base/checked.hpp"
#include "nn/kind.hpp"

namespace tandem::nn {
namespace {

// --- cells: the weights and one step -----------------------------------------------------------------------------------------------

// What all cells share. Gates lie side by side along the last axis of kernel, recurrent kernel and bias.
class Cell : public LayerBody {
 public:
  struct Weights {
    WeightOptions kernel, recurrent, bias;
    bool use_bias = true;
  };
  Cell(int64_t units, int64_t gates, size_t states, Weights weights)
      : units_(units), gates_(gates), states_(states), weights_(std::move(weights)) {
    hide_lines();
  }

  size_t states() const { return states_; }
  void build(const std::vector<Spec>& inputs) override {
    kernel_ = add_weight("kernel", {known_extent(inputs[0], -1, "the kernel"), gates_ * units_}, weights_.kernel);
    recurrent_ = add_weight("recurrent_kernel", {units_, gates_ * units_}, weights_.recurrent);
    if (weights_.use_bias) bias_ = add_weight("bias", bias_shape(), weights_.bias);
  }
  std::vector<Tensor> call(const std::vector<Tensor>&, const Pass&) override { internal_error("a recurrent cell is called as a layer"); }

  // The part of all steps that does not depend on the state: [time, batch, gates * units]. Masks for dropout: one, or one a gate.
  Tensor project(const Tensor& x, const std::vector<Tensor>& masks) const {
    const Tensor y = by_gate(x, kernel_.value(), masks);
    return weights_.use_bias ? y + input_bias() : y;
  }
  // The new states, the output first, from a step's projected input.
  virtual std::vector<Tensor> step(const Tensor& input, const std::vector<Tensor>& states, const std::vector<Tensor>& masks) const = 0;
  // All steps by one op, where there is one for this cell: its outputs, then the last states. Nothing: step by step.
  virtual std::vector<Tensor> sequence(const Tensor& inputs, const std::vector<Tensor>& states) const {
    (void)inputs, (void)states;
    return {};
  }

 protected:
  virtual Shape bias_shape() const { return {gates_ * units_}; }
  virtual Tensor input_bias() const { return bias_.value(); }
  Tensor gate(const Tensor& all, int64_t i) const { return all(ellipsis, Slice(i * units_, (i + 1) * units_)); }
  static Tensor masked(const Tensor& x, const std::vector<Tensor>& masks, size_t gate) {
    return masks.empty() ? x : x * masks[std::min(gate, masks.size() - 1)];
  }
  Tensor by_gate(const Tensor& x, const Tensor& kernel, const std::vector<Tensor>& masks) const {
    if (masks.size() < 2) return matmul(masked(x, masks, 0), kernel);
    std::vector<Tensor> parts;
    for (int64_t i = 0; i < gates_; ++i) parts.push_back(matmul(masked(x, masks, static_cast<size_t>(i)), gate(kernel, i)));
    return concatenate(parts, -1);
  }

  const int64_t units_, gates_;
  const size_t states_;
  const Weights weights_;
  Variable kernel_, recurrent_, bias_;
};

// The functions that the ops `lstm` and `gru` have.
bool is_standard(const ActivationFunction& activation, const ActivationFunction& recurrent_activation) {
  return activation && activation.class_name() == "tanh" && recurrent_activation && recurrent_activation.class_name() == "sigmoid";
}

class LSTMCell : public Cell {
 public:
  LSTMCell(int64_t units, Weights weights, ActivationFunction activation, ActivationFunction recurrent_activation)
      : Cell(units, 4, 2, std::move(weights)), activation_(std::move(activation)), recurrent_activation_(std::move(recurrent_activation)) {}
  std::string class_name() const override { return "LSTMCell"; }
  std::vector<Tensor> step(const Tensor& input, const std::vector<Tensor>& states, const std::vector<Tensor>& masks) const override {
    const Tensor all = input + by_gate(states[0], recurrent_.value(), masks);
    const Tensor i = activate(recurrent_activation_, gate(all, 0)), f = activate(recurrent_activation_, gate(all, 1));
    const Tensor c = f * states[1] + i * activate(activation_, gate(all, 2));
    return {activate(recurrent_activation_, gate(all, 3)) * activate(activation_, c), c};
  }
  std::vector<Tensor> sequence(const Tensor& inputs, const std::vector<Tensor>& states) const override {
    if (!is_standard(activation_, recurrent_activation_)) return {};
    return lstm(inputs, recurrent_, states[0], states[1]);
  }

 private:
  ActivationFunction activation_, recurrent_activation_;
};

class GRUCell : public Cell {
 public:
  GRUCell(int64_t units, Weights weights, ActivationFunction activation, ActivationFunction recurrent_activation, bool reset_after)
      : Cell(units, 3, 1, std::move(weights)),
        activation_(std::move(activation)),
        recurrent_activation_(std::move(recurrent_activation)),
        reset_after_(reset_after) {}
  std::string class_name() const override { return "GRUCell"; }
  std::vector<Tensor> step(const Tensor& input, const std::vector<Tensor>& states, const std::vector<Tensor>& masks) const override {
    const Tensor &h = states[0], kernel = recurrent_.value();
    Tensor inner = by_gate(h, kernel, masks);
    if (reset_after_ && weights_.use_bias) inner = inner + bias_.value()[1];
    const Tensor z = activate(recurrent_activation_, gate(input, 0) + gate(inner, 0));
    const Tensor r = activate(recurrent_activation_, gate(input, 1) + gate(inner, 1));
    const Tensor recurrent = reset_after_ ? r * gate(inner, 2) : matmul(r * masked(h, masks, 2), gate(kernel, 2));
    return {z * h + (1 - z) * activate(activation_, gate(input, 2) + recurrent)};
  }
  std::vector<Tensor> sequence(const Tensor& inputs, const std::vector<Tensor>& states) const override {
    if (!is_standard(activation_, recurrent_activation_) || !reset_after_) return {};
    const Tensor bias = weights_.use_bias ? bias_.value()[1] : Tensor::zeros({3 * units_}, inputs.dtype());
    return gru(inputs, recurrent_, states[0], bias);
  }

 protected:
  Shape bias_shape() const override { return reset_after_ ? Shape{2, 3 * units_} : Shape{3 * units_}; }
  Tensor input_bias() const override { return reset_after_ ? bias_.value()[0] : bias_.value(); }

 private:
  ActivationFunction activation_, recurrent_activation_;
  bool reset_after_;
};

class SimpleRNNCell : public Cell {
 public:
  SimpleRNNCell(int64_t units, Weights weights, ActivationFunction activation)
      : Cell(units, 1, 1, std::move(weights)), activation_(std::move(activation)) {}
  std::string class_name() const override { return "SimpleRNNCell"; }
  std::vector<Tensor> step(const Tensor& input, const std::vector<Tensor>& states, const std::vector<Tensor>& masks) const override {
    return {activate(activation_, input + by_gate(states[0], recurrent_.value(), masks))};
  }

 private:
  ActivationFunction activation_;
};

template <class O> Cell::Weights weights_of(const O& o) {
  return {{o.kernel_initializer, o.kernel_regularizer, o.kernel_constraint},
          {o.recurrent_initializer, o.recurrent_regularizer, o.recurrent_constraint},
          {o.bias_initializer, o.bias_regularizer, o.bias_constraint},
          o.use_bias};
}

// --- the walk along the sequence -------------------------------------------------------------------------------------------------------

template <class S> class RecurrentKind : public Kind<S> {
 public:
  using Base = Kind<S>;
  using Base::s;
  RecurrentKind(const char* kind, S settings, int64_t gates) : Base(std::move(settings)), gates_(static_cast<size_t>(gates)) {
    expect_positive(kind, "units", s.units);
    product_of(gates, s.units, cat(kind, ": units"));  // the gates lie side by side
    expect_rate(kind, "dropout", s.options.dropout);
    expect_rate(kind, "recurrent_dropout", s.options.recurrent_dropout);
  }
  std::vector<std::string> call_arguments() const override { return {"sequences", "initial_state..."}; }

  void check(const std::vector<Spec>& inputs) const override {
    const size_t states = cell_->states();
    if (inputs.size() != 1 && inputs.size() != 1 + states)
      user_error("takes a sequence, or a sequence and ", states, states == 1 ? " state" : " states", ", got ", inputs.size(), " inputs");
    expect_rank(inputs[0], 3, "[batch, time, features]");
    for (size_t i = 1; i < inputs.size(); ++i) {
      expect_rank(inputs[i], 2, "[batch, units]");
      if (inputs[i].dims[1].is_const() && !inputs[i].dims[1].is(s.units))
        user_error("a state is ", inputs[i].str(), ", expected ", s.units, " units");
    }
  }
  void build(const std::vector<Spec>& inputs) override { this->children()[0].layer.build({inputs[0]}); }

  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass& pass) override {
    const auto& o = s.options;
    Tensor x = moveaxis(inputs[0], 1, 0);  // time first, so that each step reads one piece of memory
    Tensor mask = pass.masks.empty() || !pass.masks[0].defined() ? Tensor() : transpose(pass.masks[0]).expand_dims(2);
    if (o.go_backwards) {
      x = flip(x, 0);
      if (mask.defined()) mask = flip(mask, 0);
    }
    const Dim batch = x.dims()[1];
    std::vector<Tensor> carry(inputs.begin() + 1, inputs.end());
    while (carry.size() < cell_->states()) carry.push_back(Tensor::zeros({batch, s.units}, x.dtype()));

    // The same elements are dropped at every step; with recurrent dropout each gate drops its own, as in Keras.
    const size_t masks_wanted = o.recurrent_dropout > 0 ? gates_ : 1;
    const std::vector<Tensor> input_masks = dropout_masks(pass, o.dropout, {batch, x.dims()[2]}, masks_wanted, x.dtype());
    const std::vector<Tensor> state_masks = dropout_masks(pass, o.recurrent_dropout, {batch, s.units}, masks_wanted, x.dtype());

    const Tensor projected = cell_->project(x, input_masks);
    if (!mask.defined() && state_masks.empty())
      if (const std::vector<Tensor> whole = cell_->sequence(projected, carry); !whole.empty())
        return results(whole[0], whole[1], {whole.begin() + 1, whole.end()});

    std::vector<Tensor> sequences{projected};
    if (mask.defined()) sequences.push_back(mask);
    const bool keeps_outputs = o.return_sequences || (mask.defined() && o.zero_output_for_mask);
    const flat::Step end = flat::scan(
        [&](const std::vector<Tensor>& states, const std::vector<Tensor>& slices) {
          std::vector<Tensor> next = cell_->step(slices[0], states, state_masks);
          Tensor output = next[0];
          if (slices.size() > 1) {
            if (o.zero_output_for_mask) output = where(slices[1], output, 0);
            for (size_t i = 0; i < next.size(); ++i) next[i] = where(slices[1], next[i], states[i]);
            if (!o.zero_output_for_mask) output = next[0];
          }
          return flat::Step{next, keeps_outputs ? std::vector{output} : std::vector<Tensor>{}};
        },
        carry, sequences, {}, false, std::source_location::current());

    return results(keeps_outputs ? end.outputs[0] : Tensor(), keeps_outputs ? end.outputs[0][-1] : end.carry[0], end.carry);
  }

  std::vector<Tensor> compute_mask(const std::vector<Tensor>&, const Pass& pass) const override {
    return s.options.return_sequences && !pass.masks.empty() ? std::vector{pass.masks[0]} : std::vector<Tensor>{};
  }

 protected:
  void set_cell(std::shared_ptr<Cell> cell) {
    cell_ = cell;
    this->add_child("cell", Layer(cell, snake(cell->class_name())));
  }

 private:
  // What the options ask for. `outputs` has time first, and is looked at only for return_sequences.
  std::vector<Tensor> results(const Tensor& outputs, const Tensor& last, const std::vector<Tensor>& states) const {
    std::vector<Tensor> all{s.options.return_sequences ? moveaxis(outputs, 0, 1) : last};
    if (s.options.return_state) all.insert(all.end(), states.begin(), states.end());
    return all;
  }
  static std::string snake(const std::string& class_name) {
    return class_name == "LSTMCell" ? "lstm_cell" : class_name == "GRUCell" ? "gru_cell" : "simple_rnn_cell";
  }
  std::vector<Tensor> dropout_masks(const Pass& pass, double rate, const Dims& shape, size_t count, DType dtype) {
    std::vector<Tensor> masks;
    if (!pass.training || rate == 0) return masks;
    for (size_t i = 0; i < count; ++i) {
      const Tensor ones = Tensor::ones(shape, dtype);
      masks.push_back(dropout(this->random(s.options.seed).next_key(), ones, rate));
    }
    return masks;
  }
  const size_t gates_;
  std::shared_ptr<Cell> cell_;
};

// --- settings ------------------------------------------------------------------------------------------------------------------------

template <class F, class O> void describe_walk(F& field, O& o) {
  field("return_sequences", o.return_sequences);
  field("return_state", o.return_state);
  field("go_backwards", o.go_backwards);
  field.fixed("stateful", false);
  field("unroll", o.unroll);
  field("zero_output_for_mask", o.zero_output_for_mask);
}
template <class F, class O> void describe_initializers(F& field, O& o) {
  field("use_bias", o.use_bias);
  field("kernel_initializer", o.kernel_initializer);
  field("recurrent_initializer", o.recurrent_initializer);
  field("bias_initializer", o.bias_initializer);
}
template <class F, class O> void describe_rules(F& field, O& o) {
  field("kernel_regularizer", o.kernel_regularizer);
  field("recurrent_regularizer", o.recurrent_regularizer);
  field("bias_regularizer", o.bias_regularizer);
  field("activity_regularizer", o.activity_regularizer);
  field("kernel_constraint", o.kernel_constraint);
  field("recurrent_constraint", o.recurrent_constraint);
  field("bias_constraint", o.bias_constraint);
  field("dropout", o.dropout);
  field("recurrent_dropout", o.recurrent_dropout);
}

struct LSTMSettings {
  int64_t units = 1;
  LSTMOptions options;
};
template <class F> void describe(F& field, LSTMSettings& s) {
  LSTMOptions& o = s.options;
  describe_walk(field, o);
  field("units", s.units);
  field("activation", o.activation);
  field("recurrent_activation", o.recurrent_activation);
  describe_initializers(field, o);
  field("unit_forget_bias", o.unit_forget_bias);
  describe_rules(field, o);
  field("seed", o.seed);
}

// Zeros, or whatever bias_initializer gives, with ones for the forget gate (Jozefowicz et al., 2015).
Initializer open_forget_gate(const Initializer& others, int64_t units) {
  return Initializer::custom("UnitForgetBias", [=](const Shape&, DType dtype) {
    const Tensor first = others(Shape{units}, dtype), ones = initializers::Ones()(Shape{units}, dtype),
                 rest = others(Shape{2 * units}, dtype);
    return concatenate({first, ones, rest});
  });
}

class LSTMBody : public RecurrentKind<LSTMSettings> {
 public:
  static constexpr const char* kName = "LSTM";
  explicit LSTMBody(LSTMSettings settings) : RecurrentKind(kName, std::move(settings), 4) {
    const LSTMOptions& o = s.options;
    Cell::Weights w = weights_of(o);
    if (o.unit_forget_bias) w.bias.initializer = open_forget_gate(o.bias_initializer, s.units);
    set_cell(std::make_shared<LSTMCell>(s.units, w, o.activation, o.recurrent_activation));
  }
  std::string class_name() const override { return kName; }
};

struct GRUSettings {
  int64_t units = 1;
  GRUOptions options;
};
template <class F> void describe(F& field, GRUSettings& s) {
  GRUOptions& o = s.options;
  describe_walk(field, o);
  field("units", s.units);
  field("activation", o.activation);
  field("recurrent_activation", o.recurrent_activation);
  describe_initializers(field, o);
  describe_rules(field, o);
  field("reset_after", o.reset_after);
  field("seed", o.seed);
}

class GRUBody : public RecurrentKind<GRUSettings> {
 public:
  static constexpr const char* kName = "GRU";
  explicit GRUBody(GRUSettings settings) : RecurrentKind(kName, std::move(settings), 3) {
    const GRUOptions& o = s.options;
    set_cell(std::make_shared<GRUCell>(s.units, weights_of(o), o.activation, o.recurrent_activation, o.reset_after));
  }
  std::string class_name() const override { return kName; }
};

struct SimpleRNNSettings {
  int64_t units = 1;
  SimpleRNNOptions options;
};
template <class F> void describe(F& field, SimpleRNNSettings& s) {
  SimpleRNNOptions& o = s.options;
  describe_walk(field, o);
  field("units", s.units);
  field("activation", o.activation);
  describe_initializers(field, o);
  describe_rules(field, o);
}

class SimpleRNNBody : public RecurrentKind<SimpleRNNSettings> {
 public:
  static constexpr const char* kName = "SimpleRNN";
  explicit SimpleRNNBody(SimpleRNNSettings settings) : RecurrentKind(kName, std::move(settings), 1) {
    set_cell(std::make_shared<SimpleRNNCell>(s.units, weights_of(s.options), s.options.activation));
  }
  std::string class_name() const override { return kName; }
};

}  // namespace

LSTM::LSTM(int64_t units, const LSTMOptions& options) : Layer(std::make_shared<LSTMBody>(LSTMSettings{units, options}), options.name) {}
GRU::GRU(int64_t units, const GRUOptions& options) : Layer(std::make_shared<GRUBody>(GRUSettings{units, options}), options.name) {}
SimpleRNN::SimpleRNN(int64_t units, const SimpleRNNOptions& options)
    : Layer(std::make_shared<SimpleRNNBody>(SimpleRNNSettings{units, options}), options.name) {}

void register_recurrent_layers() {
  register_kind<LSTMBody>();
  register_kind<GRUBody>();
  register_kind<SimpleRNNBody>();
}

}  // namespace tandem::nn
