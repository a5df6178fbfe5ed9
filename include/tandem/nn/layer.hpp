// Layer: a piece of a model that may have weights. A handle, so copies are the same layer, with the same weights.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <source_location>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tandem/function.hpp>
#include <tandem/nn/weights.hpp>
#include <tandem/precision.hpp>
#include <tandem/random.hpp>
#include <tandem/tensor.hpp>
#include <tandem/variable.hpp>

namespace tandem::nn {

// What a call is told besides its inputs, under Keras's names: {{"use_causal_mask", true}}.
using CallFlags = std::map<std::string, bool>;

// What one pass through a model tells its layers.
struct Pass {
  bool training = false;
  std::vector<Tensor> masks = {};  // one an input, bool[batch, time]; undefined, or left out at the end, where nothing is masked
  CallFlags flags = {};
  std::vector<Tensor>* losses = nullptr;  // where layers leave losses that depend on the inputs (activity regularisers), unless null
};

// What a call gives: tensors, and for each a mask, undefined where nothing is masked.
struct Results {
  std::vector<Tensor> values, masks;
};

class Layer;

// What a kind of layer does. Own kinds derive from this; make<Kind>(…) gives the handle.
class LayerBody {
 public:
  virtual ~LayerBody();
  virtual std::string class_name() const = 0;                 // Keras's: "Dense"
  virtual Config config() const;                              // what the constructor needs; Layer::config adds name, trainable and dtype
  virtual void check(const std::vector<Spec>& inputs) const;  // UserError when these cannot be inputs; before build and before each call
  virtual void build(const std::vector<Spec>& inputs);        // makes the weights; runs once, before the first call; the batch is a symbol
  virtual std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass& pass) = 0;
  // The masks of the outputs; by default the first output has that of the first input.
  virtual std::vector<Tensor> compute_mask(const std::vector<Tensor>& inputs, const Pass& pass) const;
  // call and compute_mask. What holds other layers overrides this one, since their masks come out of the same walk.
  virtual Results run(const std::vector<Tensor>& inputs, const Pass& pass);
  // Keras's names of the inputs where they are arguments of their own ({"query", "value", …}); none: one input, or one list of them.
  virtual std::vector<std::string> call_arguments() const;

  const std::string& name() const;
  bool trainable() const { return trainable_; }
  DType dtype() const { return dtype_; }              // of weights; floating inputs are cast to it
  Precision precision() const { return precision_; }  // of its policy, which mixes types only where the weights are float32

  struct Child;  // { std::string attribute; Layer layer; }: the attribute is where Keras keeps its weights in a file
  const std::vector<Child>& children() const { return children_; }
  const std::vector<Variable>& own_weights() const { return weights_; }  // in the order of the "vars" of Keras's files
  // Where its stream of random numbers is, uint32[2]; undefined before the first number was drawn. Setting goes back to such a place.
  Tensor random_state() const;
  void set_random_state(const Tensor& state);
  Tensor regularization() const;  // the sum over own weights; undefined when there is none

 protected:
  LayerBody();
  LayerBody(const LayerBody&) = delete;
  LayerBody& operator=(const LayerBody&) = delete;
  Variable add_weight(const std::string& name, const Shape& shape, const WeightOptions& options);
  // Makes a layer that is held and called inside a part of this one: trained, saved (under the attribute, which is unique) and counted with
  // it. A layer with weights that is called inside without this is a UserError.
  void add_child(const std::string& attribute, const Layer& layer);
  // Training adds it to the model's loss: a penalty on what call computed. Without axes; forgotten where nobody asks for losses.
  static void add_loss(const Pass& pass, const Tensor& loss);
  void set_activity_regularizer(Regularizer r) { activity_regularizer_ = std::move(r); }  // a loss of the outputs, divided by the batch
  void keep_input_types() { casts_inputs_ = false; }                                      // floating inputs come in as they are
  void hide_lines() { has_lines_ = false; }  // errors inside name the line of the call: for kinds whose code is not the program's own
  // The layer's own stream of random numbers; the seed counts at the first call.
  Generator& random(std::optional<int64_t> seed = {});

 private:
  friend class Layer;
  friend Layer layer_from_config(const std::string& class_name, const Config& config);
  struct Rules;  // a weight's regularizer and constraint
  std::string name_;
  bool built_ = false, trainable_ = true;
  bool casts_inputs_ = true, has_lines_ = true;
  DType dtype_ = DType::F32;
  Precision precision_ = Precision::Float32;
  Regularizer activity_regularizer_;
  std::vector<Variable> weights_;  // those made trainable come first
  size_t trainable_count_ = 0;
  std::vector<Rules> rules_;           // one a weight, in the order they were made
  bool knows(const LayerBody& inner);  // it is a child, or inside one
  std::vector<Child> children_;
  std::set<std::string> attributes_;             // of the children
  std::unordered_set<const LayerBody*> inside_;  // those that knows() found
  int depth_ = 0;                                // how deep layers are nested inside
  std::unique_ptr<Generator> random_;
  size_t call_count_ = 0;  // calls on symbols
};

class Symbol;

class Layer {
 public:
  using Where = std::source_location;
  Layer() = default;
  Layer(std::shared_ptr<LayerBody> body, const std::string& name = "");  // an empty name: the class's in snake case, numbered

  // On tensors: builds at first, then computes; on symbols: takes a place in a graph of layers.
  Tensor operator()(const Tensor& x, const Pass& pass = {}, Where where = Where::current()) const;
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs, const Pass& pass = {}, Where where = Where::current()) const;
  Symbol operator()(const Symbol& x, const CallFlags& flags = {}, Where where = Where::current()) const;
  std::vector<Symbol> operator()(const std::vector<Symbol>& inputs, const CallFlags& flags = {}, Where where = Where::current()) const;
  Results run(const std::vector<Tensor>& inputs, const Pass& pass, Where where = Where::current()) const;  // with the masks

  const std::string& name() const;
  std::string class_name() const;
  Config config() const;
  bool built() const;
  void build(const std::vector<Spec>& inputs, Where where = Where::current()) const;
  bool trainable() const;
  void set_trainable(bool trainable) const;  // of all weights inside
  // Its policy's or, when that does not mix types, the first inside that does; UserError when there are two that differ.
  Precision precision() const;
  void set_precision(Precision precision) const;  // of everything inside that has float32 weights
  std::vector<Variable> weights() const;          // all inside, as Keras lists them: own ones first, of these the trainable ones
  std::vector<Variable> trainable_weights() const;
  std::vector<Variable> non_trainable_weights() const;
  std::vector<Tensor> losses() const;  // regularisation of everything inside, to be called while tracing
  void apply_constraints() const;      // to everything inside, after an optimizer's step

  LayerBody& body() const;  // UserError when it holds nothing
  template <class Kind> Kind* as() const { return dynamic_cast<Kind*>(body_.get()); }
  explicit operator bool() const { return body_ != nullptr; }
  bool operator==(const Layer& o) const { return body_ == o.body_; }

 protected:
  std::shared_ptr<LayerBody> body_;

 private:
  void expect_to_be_known() const;  // to the layer that it is called in
};

struct LayerBody::Child {
  std::string attribute;
  Layer layer;
};

template <class Kind, class... A> Layer make(A&&... arguments) { return Layer(std::make_shared<Kind>(std::forward<A>(arguments)...)); }

// Layers by Keras's class name, for files and configs. A second registration of a name replaces the first. Makers need not look at
// name, trainable and dtype.
using LayerMaker = Layer (*)(const Config& config);
void register_layer(const std::string& class_name, LayerMaker maker);
Layer layer_from_config(const std::string& class_name, const Config& config);  // UserError that lists near names

// Keras's form of an object in configs: {"module": …, "class_name": …, "config": …, "registered_name": …}.
Config serialize(const Layer& layer);
Layer deserialize(const Config& object);

// Functions and operators on symbols, one for each op (<tandem/nn/ops.hpp>). They are found by their arguments: tanh(a + b), mean(a, 1).
namespace ops {
struct Argument {};
}  // namespace ops

// A tensor's place in a graph of layers: which layer's call made it.
class Symbol : public ops::Argument {
 public:
  struct Origin {
    Layer layer;  // an InputLayer: an input of the model
    std::vector<Symbol> inputs;
    CallFlags flags;
    size_t call = 0;  // which call of the layer
    Origin(Layer called, std::vector<Symbol> with, CallFlags told, size_t which);
    ~Origin();  // a loop, however long the chain of calls behind it is
    Origin(const Origin&) = delete;
    Origin& operator=(const Origin&) = delete;
  };
  Symbol(Spec spec, std::shared_ptr<const Origin> origin, size_t output)
      : spec_(std::move(spec)), origin_(std::move(origin)), output_(output) {}
  const Spec& spec() const { return spec_; }
  const std::shared_ptr<const Origin>& origin() const { return origin_; }
  size_t output() const { return output_; }
  bool is_input() const { return origin_->inputs.empty(); }
  bool operator==(const Symbol& o) const {
    return output_ == o.output_ && (origin_ == o.origin_ || (is_input() && o.is_input() && origin_->layer == o.origin_->layer));
  }
  // Indexing as of a Tensor: x[0], x(Slice(), -1), x(ellipsis, newaxis).
  Symbol operator[](const Index& index) const { return (*this)(index); }
  Symbol operator()(const Index& a, const Index& b = {}, const Index& c = {}, const Index& d = {}, const Index& e = {}, const Index& f = {},
                    const Index& g = {}, const Index& h = {}) const;
  operator Layer() const;  // NOLINT: Sequential({Input({784}), Dense(10)}); UserError unless it is an input

 private:
  Spec spec_;
  std::shared_ptr<const Origin> origin_;
  size_t output_ = 0;
};

// The input of a model; the shape is without the batch, which is the symbol "b". Other extents may be symbols too.
Symbol Input(const DimList& shape, DType dtype = DType::F32, const std::string& name = "");

}  // namespace tandem::nn
