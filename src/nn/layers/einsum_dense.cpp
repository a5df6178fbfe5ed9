// EinsumDense: a layer whose product is an equation.
#include <map>

#include <tandem/nn/layers/core.hpp>
#include <tandem/ops.hpp>

#include "nn/kind.hpp"

namespace tandem::nn {
namespace {

struct EinsumDenseSettings {
  IntList output_shape = std::vector<int64_t>{};
  std::string equation;
  EinsumDenseOptions options;
};
void describe_bias_axes(FieldWriter& field, const std::string& axes) { field.fixed("bias_axes", axes.empty() ? Config() : Config(axes)); }
void describe_bias_axes(FieldReader& field, std::string& axes) {
  std::optional<std::string> given;
  field("bias_axes", given);
  axes = given.value_or("");
}
template <class F> void describe(F& field, EinsumDenseSettings& s) {
  EinsumDenseOptions& o = s.options;
  extents_or_null(field, "output_shape", s.output_shape);
  field("equation", s.equation);
  field("activation", o.activation);
  describe_bias_axes(field, o.bias_axes);
  field("kernel_initializer", o.kernel_initializer);
  field("bias_initializer", o.bias_initializer);
  field("kernel_regularizer", o.kernel_regularizer);
  field("bias_regularizer", o.bias_regularizer);
  field("activity_regularizer", o.activity_regularizer);
  field("kernel_constraint", o.kernel_constraint);
  field("bias_constraint", o.bias_constraint);
  field.fixed("quantization_config", nullptr);
}

// "...ab,bc->...ac" in its three terms, without the dots.
struct Equation {
  std::string input, kernel, output;
  bool has_dots = false;
};

class EinsumDenseBody : public Kind<EinsumDenseSettings> {
 public:
  static constexpr const char* kName = "EinsumDense";
  explicit EinsumDenseBody(EinsumDenseSettings settings) : Kind(std::move(settings)), equation_(parse(s.equation)) {
    for (const char label : s.options.bias_axes)
      if (equation_.output.find(label) == std::string::npos)
        user_error(kName, ": bias_axes '", s.options.bias_axes, "' has '", label, "', which the result of '", s.equation, "' has not");
  }
  std::string class_name() const override { return kName; }

  void check(const std::vector<Spec>& inputs) const override {
    Kind::check(inputs);
    const size_t rank = inputs[0].dims.size(), wanted = equation_.input.size();
    if (equation_.has_dots ? rank < wanted : rank != wanted)
      user_error("'", s.equation, "' takes an input with ", equation_.has_dots ? "at least " : "", wanted, " axes, got ", inputs[0].str());
  }

  void build(const std::vector<Spec>& inputs) override {
    const EinsumDenseOptions& o = s.options;
    std::map<char, int64_t> extents = extents_of(inputs[0]);
    const auto shape_of = [&](const std::string& labels) {
      Shape shape;
      for (const char label : labels) {
        const auto it = extents.find(label);
        if (it == extents.end() || it->second < 0) user_error("the extent of '", label, "' in '", s.equation, "' is not known");
        shape.push_back(it->second);
      }
      return shape;
    };
    kernel_ = add_weight("kernel", shape_of(equation_.kernel), {o.kernel_initializer, o.kernel_regularizer, o.kernel_constraint});
    if (o.bias_axes.empty()) return;
    // From the first axis with a bias on; those without one have extent 1.
    const std::string tail = equation_.output.substr(equation_.output.find_first_of(o.bias_axes));
    for (const char label : tail)
      if (o.bias_axes.find(label) == std::string::npos) extents[label] = 1;
    bias_ = add_weight("bias", shape_of(tail), {o.bias_initializer, o.bias_regularizer, o.bias_constraint});
  }

  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    const Tensor kernel = kernel_.value();
    const Tensor y = einsum({inputs[0], kernel}, s.equation);
    return {activate(s.options.activation, bias_.defined() ? y + bias_ : y)};
  }
  std::vector<Tensor> compute_mask(const std::vector<Tensor>&, const Pass&) const override { return {}; }

 private:
  static Equation parse(const std::string& text) {
    const size_t comma = text.find(','), arrow = text.find("->");
    if (comma == std::string::npos || arrow == std::string::npos || arrow < comma)
      user_error(kName, ": the equation '", text, "' is not of the form 'ab,bc->ac'");
    Equation e{text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2)};
    e.has_dots = e.input.starts_with("...");
    if (e.has_dots != e.output.starts_with("...")) user_error(kName, ": '", text, "' has ... in front of only one of its terms");
    if (e.has_dots) {
      e.input.erase(0, 3);
      e.output.erase(0, 3);
    }
    for (const std::string* term : {&e.input, &e.kernel, &e.output})
      for (const char c : *term)
        if (!std::isalpha(static_cast<unsigned char>(c)))
          user_error(kName, ": the equation '", text, "' has '", c,
                     "', expected letters\n  hint: ... may stand in front of input and result");
    return e;
  }

  // Of each label: from the input, or from output_shape, whose last entry is the result's last axis. -1: not known.
  std::map<char, int64_t> extents_of(const Spec& input) const {
    std::map<char, int64_t> extents;
    const std::vector<int64_t>& shape = s.output_shape.values();
    const std::string& out = equation_.output;
    for (size_t i = 0; i < std::min(shape.size(), out.size()); ++i) {
      const int64_t n = shape[shape.size() - 1 - i];
      if (n >= 0) extents[out[out.size() - 1 - i]] = n;
    }
    const size_t skip = input.dims.size() - equation_.input.size();
    for (size_t i = 0; i < equation_.input.size(); ++i) {
      const Dim& d = input.dims[skip + i];
      const auto [it, is_new] = extents.emplace(equation_.input[i], d.is_const() ? d.value() : -1);
      if (!is_new && d.is_const() && it->second != d.value())
        user_error("'", equation_.input[i], "' in '", s.equation, "' is ", d.value(), " in the input ", input.str(), " and ", it->second,
                   " in output_shape");
    }
    return extents;
  }

  const Equation equation_;
  Variable kernel_, bias_;
};

}  // namespace

EinsumDense::EinsumDense(const std::string& equation, std::vector<int64_t> output_shape, const EinsumDenseOptions& options)
    : Layer(std::make_shared<EinsumDenseBody>(EinsumDenseSettings{std::move(output_shape), equation, options}), options.name) {}

void register_einsum_layers() { register_kind<EinsumDenseBody>(); }

}  // namespace tandem::nn
