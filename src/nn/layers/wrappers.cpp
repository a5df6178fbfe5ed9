// Layers around another layer: Bidirectional and TimeDistributed.
#include <tandem/nn/layers/recurrent.hpp>
#include <tandem/ops.hpp>

#include "nn/kind.hpp"

namespace tandem::nn {
namespace {

bool flag_of(const Config& config, const char* key) {
  const auto it = config.find(key);
  return it != config.end() && it->is_boolean() && it->get<bool>();
}

std::string without_prefix(const std::string& name, const std::string& prefix) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

// --- Bidirectional ---------------------------------------------------------------------------------------------------------------------

struct BidirectionalSettings {
  std::optional<std::string> merge_mode = "concat";
  Layer layer, backward_layer;
};
template <class F> void describe(F& field, BidirectionalSettings& s) {
  field("merge_mode", s.merge_mode);
  field("layer", s.layer);
  field("backward_layer", s.backward_layer);
}

// A new layer made after a pattern; masked steps of sequences give zeros, so that they add nothing.
Layer direction(const Layer& pattern, const char* prefix, std::optional<bool> go_backwards) {
  Config object = serialize(pattern);
  Config& config = object["config"];
  config["name"] = prefix + without_prefix(pattern.name(), prefix);
  if (go_backwards) config["go_backwards"] = *go_backwards;
  if (config.contains("zero_output_for_mask")) config["zero_output_for_mask"] = flag_of(config, "return_sequences");
  return deserialize(object);
}

BidirectionalSettings both_directions(BidirectionalSettings s) {
  if (!s.layer) user_error("Bidirectional: there is no layer");
  const Config config = s.layer.config();
  if (!config.contains("go_backwards"))
    user_error("Bidirectional: takes a recurrent layer, got '", s.layer.name(), "' (", s.layer.class_name(), ")");
  const Layer pattern = s.layer;
  s.layer = direction(pattern, "forward_", {});
  s.backward_layer =
      s.backward_layer ? direction(s.backward_layer, "backward_", {}) : direction(pattern, "backward_", !flag_of(config, "go_backwards"));
  const Config backward = s.backward_layer.config();
  if (flag_of(backward, "go_backwards") == flag_of(config, "go_backwards"))
    user_error("Bidirectional: both layers walk in the same direction");
  for (const char* key : {"return_sequences", "return_state"})
    if (flag_of(backward, key) != flag_of(config, key)) user_error("Bidirectional: ", key, " of both layers differs");
  return s;
}

class BidirectionalBody : public Kind<BidirectionalSettings> {
 public:
  static constexpr const char* kName = "Bidirectional";
  explicit BidirectionalBody(BidirectionalSettings settings) : Kind(both_directions(std::move(settings))) {
    if (s.merge_mode) expect_one_of(kName, "merge_mode", *s.merge_mode, {"concat", "sum", "ave", "mul"});
    const Config config = s.layer.config();
    sequences_ = flag_of(config, "return_sequences");
    add_child("forward_layer", s.layer);
    add_child("backward_layer", s.backward_layer);
  }
  std::string class_name() const override { return kName; }
  std::vector<std::string> call_arguments() const override { return {"sequences", "initial_state..."}; }

  void check(const std::vector<Spec>& inputs) const override {
    if (inputs.empty() || inputs.size() % 2 == 0)
      user_error("takes a sequence and as many states for each direction, got ", inputs.size(), " inputs");
  }
  void build(const std::vector<Spec>& inputs) override {
    s.layer.build({inputs[0]});
    s.backward_layer.build({inputs[0]});
  }

  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass& pass) override {
    const auto half = static_cast<ptrdiff_t>((inputs.size() - 1) / 2);
    const auto run = [&](const Layer& layer, ptrdiff_t first) {
      std::vector<Tensor> in{inputs[0]};
      in.insert(in.end(), inputs.begin() + first, inputs.begin() + first + half);
      Pass inner = pass;
      inner.masks.resize(1);
      return layer(in, inner);
    };
    std::vector<Tensor> forward = run(s.layer, 1), backward = run(s.backward_layer, 1 + half);
    if (sequences_) backward[0] = flip(backward[0], 1);
    std::vector<Tensor> results = merged(forward[0], backward[0]);
    results.insert(results.end(), forward.begin() + 1, forward.end());
    results.insert(results.end(), backward.begin() + 1, backward.end());
    return results;
  }

  std::vector<Tensor> compute_mask(const std::vector<Tensor>&, const Pass& pass) const override {
    if (!sequences_ || pass.masks.empty()) return {};
    return s.merge_mode ? std::vector{pass.masks[0]} : std::vector{pass.masks[0], pass.masks[0]};
  }

 private:
  std::vector<Tensor> merged(const Tensor& a, const Tensor& b) const {
    if (!s.merge_mode) return {a, b};
    if (*s.merge_mode == "concat") return {concatenate({a, b}, -1)};
    if (*s.merge_mode == "mul") return {a * b};
    return {*s.merge_mode == "sum" ? a + b : (a + b) / 2};
  }
  bool sequences_ = false;
};

// --- TimeDistributed -------------------------------------------------------------------------------------------------------------------

struct TimeDistributedSettings {
  Layer layer;
};
template <class F> void describe(F& field, TimeDistributedSettings& s) { field("layer", s.layer); }

class TimeDistributedBody : public Kind<TimeDistributedSettings> {
 public:
  static constexpr const char* kName = "TimeDistributed";
  explicit TimeDistributedBody(TimeDistributedSettings settings) : Kind(std::move(settings)) {
    if (!s.layer) user_error(kName, ": there is no layer");
    add_child("layer", s.layer);
  }
  std::string class_name() const override { return kName; }
  void check(const std::vector<Spec>& inputs) const override {
    Kind::check(inputs);
    expect_rank_at_least(inputs[0], 3, "[batch, time, ...]");
  }
  void build(const std::vector<Spec>& inputs) override { s.layer.build({{inputs[0].dtype, joined(inputs[0].dims)}}); }

  // Steps and batch as one axis.
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass& pass) override {
    const Dims dims = inputs[0].dims();
    const Pass inner{.training = pass.training, .losses = pass.losses};
    std::vector<Tensor> results = s.layer(std::vector{inputs[0].reshape(joined(dims))}, inner);
    for (Tensor& y : results) {
      Dims to{dims[0], dims[1]};
      const Dims rest = y.dims();
      to.insert(to.end(), rest.begin() + 1, rest.end());
      y = y.reshape(to);
    }
    return results;
  }

 private:
  static Dims joined(const Dims& dims) {
    Dims all{dims[0] * dims[1]};
    all.insert(all.end(), dims.begin() + 2, dims.end());
    return all;
  }
};

}  // namespace

Bidirectional::Bidirectional(const Layer& layer, const BidirectionalOptions& options)
    : Layer(std::make_shared<BidirectionalBody>(BidirectionalSettings{options.merge_mode, layer, options.backward_layer}), options.name) {}
TimeDistributed::TimeDistributed(const Layer& layer, const NamedOptions& options)
    : Layer(std::make_shared<TimeDistributedBody>(TimeDistributedSettings{layer}), options.name) {}

void register_wrapper_layers() {
  register_kind<BidirectionalBody>();
  register_kind<TimeDistributedBody>();
}

}  // namespace tandem::nn
