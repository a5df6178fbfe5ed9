// The body of a network: its layers, and in which order they are called with what.
#pragma once
#include <memory>
#include <unordered_map>

#include <tandem/nn/network.hpp>

namespace tandem::nn {

struct Training;  // what compile made; src/nn/training/training.hpp

class NetworkBody : public LayerBody {
 public:
  NetworkBody(std::vector<Symbol> inputs, std::vector<Symbol> outputs);
  explicit NetworkBody(std::vector<Layer> sequence);

  std::string class_name() const override { return sequential_ ? "Sequential" : "Functional"; }
  Config config() const override;
  void check(const std::vector<Spec>& inputs) const override;
  void build(const std::vector<Spec>& inputs) override;
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass& pass) override { return run(inputs, pass).values; }
  Results run(const std::vector<Tensor>& inputs, const Pass& pass) override;

  bool sequential() const { return sequential_; }
  bool has_graph() const { return !outputs_.empty(); }
  const std::vector<Layer>& layers() const { return layers_; }
  const std::vector<Symbol>& inputs() const;
  const std::vector<Symbol>& outputs() const;

  // One call of a layer, with the results of earlier ones; that of an InputLayer takes what the network is given.
  struct Source {
    size_t step, output;
  };
  struct LayerCall {
    std::shared_ptr<const Symbol::Origin> origin;
    std::vector<Source> inputs;
  };
  const std::vector<LayerCall>& steps() const { return steps_; }
  Source source_of(const Symbol& s) const;
  // The steps that call a layer, in the order of steps.
  const std::vector<size_t>& steps_of(const Layer& layer) const;

  std::shared_ptr<Training> training;

 private:
  void make_graph(std::vector<Symbol> inputs, std::vector<Symbol> outputs);
  void chain(const Symbol& input);
  void adopt(std::vector<Layer> layers);

  const bool sequential_;
  std::vector<Layer> layers_;
  Layer input_layer_;  // of a sequence that begins with one
  std::vector<Symbol> inputs_, outputs_;
  std::vector<LayerCall> steps_;
  std::unordered_map<const void*, size_t> step_at_;                     // by what tells calls apart
  std::unordered_map<const LayerBody*, std::vector<size_t>> calls_of_;  // only looked up, never walked
};

}  // namespace tandem::nn
