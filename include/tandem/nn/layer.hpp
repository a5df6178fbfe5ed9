// Layer: a piece of a model that may have weights. A handle, so copies are the same layer, with the same weights.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <tandem/function.hpp>
#include <tandem/tensor.hpp>
#include <tandem/variable.hpp>

namespace tandem::nn {

using Config = nlohmann::ordered_json;  // what a layer was made with, under Keras's names

// What one pass through a model tells its layers.
struct Pass {
  bool training = false;
  std::vector<Tensor> masks = {};  // one an input, bool[batch, time]; undefined where nothing is masked
};

class Layer;
struct WeightOptions;  // <tandem/nn/weights.hpp>

// What a kind of layer does. Own kinds derive from this; make<Kind>(…) gives the handle.
class LayerBody {
 public:
  virtual ~LayerBody() = default;
  virtual std::string class_name() const = 0;           // Keras's: "Dense"
  virtual Config config() const;                        // what the constructor needs; name, trainable and dtype are added by Layer::config
  virtual void build(const std::vector<Spec>& inputs);  // makes the weights; runs once, before the first call; the batch is a symbol
  virtual std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass& pass) = 0;
  // The mask of the outputs; by default that of the first input.
  virtual Tensor compute_mask(const std::vector<Tensor>& inputs, const Pass& pass) const;

  struct Child;  // { std::string attribute; Layer layer; }: the attribute's name is where Keras keeps its weights in a file
  const std::vector<Child>& children() const { return children_; }
  const std::vector<Variable>& own_weights() const { return weights_; }  // in the order of the "vars" of Keras's files
  Tensor regularization() const;                                         // the sum over own weights; undefined when there is none

 protected:
  LayerBody();
  Variable add_weight(const std::string& name, const Shape& shape, const WeightOptions& options);
  void add_child(const std::string& attribute, const Layer& layer);

 private:
  struct Regularized;
  std::vector<Variable> weights_;
  std::vector<Child> children_;
  std::vector<Regularized> regularized_;
};

class Symbol;

class Layer {
 public:
  Layer() = default;
  Layer(std::shared_ptr<LayerBody> body, std::string name = "");  // an empty name: the class's in snake case, numbered

  // On tensors: builds at first, then computes; on symbols: takes a place in a graph of layers.
  Tensor operator()(const Tensor& x, const Pass& pass = {}) const;
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs, const Pass& pass = {}) const;
  Symbol operator()(const Symbol& x) const;
  std::vector<Symbol> operator()(const std::vector<Symbol>& inputs) const;

  const std::string& name() const;
  std::string class_name() const;
  Config config() const;
  bool built() const;
  void build(const std::vector<Spec>& inputs) const;
  bool trainable() const;
  void set_trainable(bool trainable) const;  // of all weights inside
  std::vector<Variable> weights() const;     // all inside: trainable ones first, as Keras's list is
  std::vector<Variable> trainable_weights() const;
  std::vector<Variable> non_trainable_weights() const;
  std::vector<Tensor> losses() const;  // regularisation of everything inside, to be called while tracing

  LayerBody& body() const { return *body_; }
  template <class Kind> Kind* as() const { return dynamic_cast<Kind*>(body_.get()); }
  explicit operator bool() const { return body_ != nullptr; }
  bool operator==(const Layer& o) const { return body_ == o.body_; }

 protected:
  std::shared_ptr<LayerBody> body_;
};

struct LayerBody::Child {
  std::string attribute;
  Layer layer;
};

template <class Kind, class... A> Layer make(A&&... arguments) { return Layer(std::make_shared<Kind>(std::forward<A>(arguments)...)); }

// Layers by Keras's class name, for files and configs. A second registration of a name replaces the first.
using LayerMaker = Layer (*)(const Config& config);
void register_layer(const std::string& class_name, LayerMaker maker);
Layer layer_from_config(const std::string& class_name, const Config& config);  // UserError that lists near names

// A tensor's place in a graph of layers: which layer's call made it.
class Symbol {
 public:
  struct Origin {
    Layer layer;  // none: an input of the model
    std::vector<Symbol> inputs;
    size_t call = 0;  // which call of the layer
  };
  Symbol(Spec spec, std::shared_ptr<const Origin> origin, size_t output)
      : spec_(std::move(spec)), origin_(std::move(origin)), output_(output) {}
  const Spec& spec() const { return spec_; }
  const std::shared_ptr<const Origin>& origin() const { return origin_; }
  size_t output() const { return output_; }

 private:
  Spec spec_;
  std::shared_ptr<const Origin> origin_;
  size_t output_ = 0;
};

// The input of a model; the shape is without the batch.
Symbol Input(const Dims& shape, DType dtype = DType::F32, const std::string& name = "");

}  // namespace tandem::nn
