#include <tandem/nn/layers/merging.hpp>

#include <tandem/ops.hpp>

#include "nn/kind.hpp"

namespace tandem::nn {
namespace {

// Ranks may differ: axes of extent 1 are put behind the batch.
std::vector<Tensor> with_equal_rank(const std::vector<Tensor>& inputs) {
  int rank = 0;
  for (const Tensor& t : inputs) rank = std::max(rank, t.rank());
  std::vector<Tensor> equal = inputs;
  for (Tensor& t : equal)
    while (t.rank() < rank) t = t.expand_dims(1);
  return equal;
}

enum class Merge { Add, Subtract, Multiply, Average, Maximum, Minimum };

template <Merge M> struct MergeSettings {};
template <class F, Merge M> void describe(F&, MergeSettings<M>&) {}

template <Merge M> class MergeBody : public Kind<MergeSettings<M>> {
 public:
  static constexpr const char* kNames[] = {"Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum"};
  static constexpr const char* kName = kNames[static_cast<int>(M)];
  using Kind<MergeSettings<M>>::Kind;
  std::string class_name() const override { return kName; }
  void check(const std::vector<Spec>& inputs) const override {
    if (M == Merge::Subtract && inputs.size() != 2) user_error("takes two inputs, got ", inputs.size());
    if (inputs.size() < 2) user_error("takes at least two inputs, got ", inputs.size());
  }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    const std::vector<Tensor> in = with_equal_rank(inputs);
    Tensor y = in[0];
    for (size_t i = 1; i < in.size(); ++i) y = merged(y, in[i]);
    if constexpr (M == Merge::Average) y = y / static_cast<double>(in.size());
    return {y};
  }
  // Seen where any input is; without a mask of each nothing is masked.
  std::vector<Tensor> compute_mask(const std::vector<Tensor>& inputs, const Pass& pass) const override {
    Tensor mask;
    if (pass.masks.size() < inputs.size()) return {};
    for (const Tensor& m : pass.masks) {
      if (!m.defined()) return {};
      mask = mask.defined() ? mask | m : m;
    }
    return {mask};
  }

 private:
  static Tensor merged(const Tensor& a, const Tensor& b) {
    switch (M) {
      case Merge::Add:
      case Merge::Average: return a + b;
      case Merge::Subtract: return a - b;
      case Merge::Multiply: return a * b;
      case Merge::Maximum: return maximum(a, b);
      case Merge::Minimum: return minimum(a, b);
    }
    return a;
  }
};

struct ConcatenateSettings {
  int64_t axis = -1;
};
template <class F> void describe(F& field, ConcatenateSettings& s) { field("axis", s.axis); }

class ConcatenateBody : public Kind<ConcatenateSettings> {
 public:
  static constexpr const char* kName = "Concatenate";
  using Kind::Kind;
  std::string class_name() const override { return kName; }
  void check(const std::vector<Spec>& inputs) const override {
    if (inputs.empty()) user_error("takes at least one input, got 0");
  }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override { return {concatenate(inputs, s.axis)}; }
  std::vector<Tensor> compute_mask(const std::vector<Tensor>& inputs, const Pass& pass) const override {
    std::vector<Tensor> masks;
    bool masked = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      Tensor m = i < pass.masks.size() ? pass.masks[i] : Tensor();
      masked |= m.defined();
      if (!m.defined())
        m = Tensor::full(inputs[i].dims(), true);
      else if (m.rank() < inputs[i].rank())
        m = broadcast_to(m.expand_dims(-1), inputs[i].dims());
      masks.push_back(m);
    }
    return masked ? std::vector{any(concatenate(masks, s.axis), -1)} : std::vector<Tensor>{};
  }
};

struct DotSettings {
  IntList axes = -1;
  bool normalize = false;
};
template <class F> void describe(F& field, DotSettings& s) {
  one_or_list(field, "axes", s.axes);
  field("normalize", s.normalize);
}

class DotBody : public Kind<DotSettings> {
 public:
  static constexpr const char* kName = "Dot";
  explicit DotBody(DotSettings settings) : Kind(std::move(settings)) {
    const size_t count = s.axes.values().size();
    if (count != 1 && count != 2) user_error(kName, ": axes has ", count, " numbers, expected 1 or 2");
  }
  std::string class_name() const override { return kName; }
  void check(const std::vector<Spec>& inputs) const override {
    if (inputs.size() != 2) user_error("takes two inputs, got ", inputs.size());
    expect_rank_at_least(inputs[0], 2, "[batch, ..., features]");
    expect_rank_at_least(inputs[1], 2, "[batch, ..., features]");
    const Dim& a = inputs[0].dims[axis(0, inputs[0].dims.size())];
    const Dim& b = inputs[1].dims[axis(1, inputs[1].dims.size())];
    if (a.is_const() && b.is_const() && !(a == b))
      user_error("the axes that are summed differ, ", inputs[0].str(), " and ", inputs[1].str(), " (", a.str(), " != ", b.str(), ")");
  }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    Tensor x = inputs[0], y = inputs[1];
    const size_t i = axis(0, static_cast<size_t>(x.rank())), j = axis(1, static_cast<size_t>(y.rank()));
    if (s.normalize) {
      x = normalize(x, static_cast<int64_t>(i), 2, 1e-12);
      y = normalize(y, static_cast<int64_t>(j), 2, 1e-12);
    }
    std::string a = "a", b = "a", out = "a";
    char next = 'c';
    for (size_t k = 1; k < static_cast<size_t>(x.rank()); ++k) a += k == i ? 'b' : (out += next, next++);
    for (size_t k = 1; k < static_cast<size_t>(y.rank()); ++k) b += k == j ? 'b' : (out += next, next++);
    const Tensor z = einsum({x, y}, a + "," + b + "->" + out);
    return {z.rank() == 1 ? z.expand_dims(1) : z};
  }
  std::vector<Tensor> compute_mask(const std::vector<Tensor>&, const Pass&) const override { return {}; }

 private:
  size_t axis(size_t which, size_t rank) const {
    const auto& list = s.axes.values();
    const int a = normalize_axis(list[std::min(which, list.size() - 1)], static_cast<int>(rank), "axes");
    if (a == 0) user_error("axes name the batch");
    return static_cast<size_t>(a);
  }
};

template <Merge M> std::shared_ptr<LayerBody> merge_body() { return std::make_shared<MergeBody<M>>(MergeSettings<M>{}); }

}  // namespace

Add::Add(const NamedOptions& options) : Layer(merge_body<Merge::Add>(), options.name) {}
Subtract::Subtract(const NamedOptions& options) : Layer(merge_body<Merge::Subtract>(), options.name) {}
Multiply::Multiply(const NamedOptions& options) : Layer(merge_body<Merge::Multiply>(), options.name) {}
Average::Average(const NamedOptions& options) : Layer(merge_body<Merge::Average>(), options.name) {}
Maximum::Maximum(const NamedOptions& options) : Layer(merge_body<Merge::Maximum>(), options.name) {}
Minimum::Minimum(const NamedOptions& options) : Layer(merge_body<Merge::Minimum>(), options.name) {}
Concatenate::Concatenate(int64_t axis, const NamedOptions& options)
    : Layer(std::make_shared<ConcatenateBody>(ConcatenateSettings{axis}), options.name) {}
Dot::Dot(const IntList& axes, const DotOptions& options)
    : Layer(std::make_shared<DotBody>(DotSettings{axes, options.normalize}), options.name) {}

void register_merging_layers() {
  register_kind<MergeBody<Merge::Add>>();
  register_kind<MergeBody<Merge::Subtract>>();
  register_kind<MergeBody<Merge::Multiply>>();
  register_kind<MergeBody<Merge::Average>>();
  register_kind<MergeBody<Merge::Maximum>>();
  register_kind<MergeBody<Merge::Minimum>>();
  register_kind<ConcatenateBody>();
  register_kind<DotBody>();
}

}  // namespace tandem::nn
