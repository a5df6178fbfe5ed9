// Network: layers put together, as a graph with several inputs and outputs or one after the other. It is a layer itself.
#pragma once
#include <string>
#include <vector>

#include <tandem/nn/layer.hpp>

namespace tandem::nn {

class NetworkBody;

class Network : public Layer {
 public:
  Network() = default;
  Network(std::vector<Symbol> inputs, std::vector<Symbol> outputs, const std::string& name = "", Where where = Where::current());
  explicit Network(const Layer& layer);  // one that is a network; UserError otherwise
  static Network sequential(std::vector<Layer> layers, const std::string& name = "", Where where = Where::current());

  const std::vector<Layer>& layers() const;    // in Keras's order; of a sequence without its InputLayer
  Layer layer(const std::string& name) const;  // UserError with near names
  const std::vector<Symbol>& inputs() const;   // UserError for a sequence whose input is not known yet
  const std::vector<Symbol>& outputs() const;
  bool is_sequential() const;
  std::string summary() const;  // layers with shapes, parameters and memory

 protected:
  NetworkBody& network() const;
};

}  // namespace tandem::nn
