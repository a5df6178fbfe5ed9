// How weights begin, what their size costs, what they are held to, and what is applied to results: initialisers, regularisers,
// constraints and activations with Keras's names, defaults and numbers.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tandem/nn/config.hpp>
#include <tandem/tensor.hpp>

namespace tandem::nn {

// A function with a name and parameters that a file can hold. Made from a name ("glorot_uniform", also "GlorotUniform"), by the functions
// below, or from a function of one's own. UserError with near names for an unknown one.
template <class Kind> class Named {
 public:
  using Function = std::function<typename Kind::Signature>;
  Named() = default;                                     // none
  Named(const char* name) : Named(std::string(name)) {}  // NOLINT
  Named(const std::string& name);                        // NOLINT
  Named(const std::string& class_name, const Config& parameters, Function function);
  static Named custom(const std::string& class_name, Function function);
  static Named from_config(const Config& config);  // null, a name, or Keras's form of an object

  explicit operator bool() const { return body_ != nullptr; }
  std::string class_name() const;  // "GlorotUniform"; of activations "relu"
  Config config() const;           // null or Keras's form of an object; of activations the name
  template <class... A> auto operator()(const A&... arguments) const { return function()(arguments...); }

 private:
  struct Body;
  const Function& function() const;  // UserError when there is none
  std::shared_ptr<const Body> body_;
};

struct InitializerKind {
  using Signature = Tensor(const Shape& shape, DType dtype);
};
struct RegularizerKind {
  using Signature = Tensor(const Tensor& weight);
};
struct ConstraintKind {
  using Signature = Tensor(const Tensor& weight);
};
struct ActivationKind {
  using Signature = Tensor(const Tensor& x);
};
using Initializer = Named<InitializerKind>;  // computes at once, also while a function is traced
using Regularizer = Named<RegularizerKind>;  // gives a loss without axes
using Constraint = Named<ConstraintKind>;    // gives what the weight becomes after a step
using ActivationFunction = Named<ActivationKind>;

struct WeightOptions {
  Initializer initializer = "glorot_uniform";
  Regularizer regularizer = {};
  Constraint constraint = {};
  bool trainable = true;
  std::optional<DType> dtype = {};  // default: the layer's
};

// Seeds of layers and initialisers that are given none: a sequence that begins with 0, so that a program gives the same numbers each time.
void set_random_seed(uint64_t seed);
uint64_t next_seed();

namespace initializers {
using Seed = std::optional<int64_t>;  // none: another one at each use
Initializer Zeros();
Initializer Ones();
Initializer Constant(double value = 0.0);
Initializer RandomNormal(double mean = 0.0, double stddev = 0.05, Seed seed = {});
Initializer RandomUniform(double minval = -0.05, double maxval = 0.05, Seed seed = {});
Initializer TruncatedNormal(double mean = 0.0, double stddev = 0.05, Seed seed = {});  // redrawn beyond two deviations
struct VarianceScalingOptions {
  double scale = 1.0;
  std::string mode = "fan_in";                    // fan_in, fan_out, fan_avg
  std::string distribution = "truncated_normal";  // truncated_normal, untruncated_normal, uniform
  Seed seed = {};
};
Initializer VarianceScaling(const VarianceScalingOptions& options = {});
Initializer GlorotUniform(Seed seed = {});
Initializer GlorotNormal(Seed seed = {});
Initializer HeUniform(Seed seed = {});
Initializer HeNormal(Seed seed = {});
Initializer LecunUniform(Seed seed = {});
Initializer LecunNormal(Seed seed = {});
Initializer Orthogonal(double gain = 1.0, Seed seed = {});
Initializer Identity(double gain = 1.0);
}  // namespace initializers

namespace regularizers {
Regularizer L1(double l1 = 0.01);
Regularizer L2(double l2 = 0.01);
Regularizer L1L2(double l1 = 0.0, double l2 = 0.0);
Regularizer OrthogonalRegularizer(double factor = 0.01, const std::string& mode = "rows");
}  // namespace regularizers

namespace constraints {
Constraint MaxNorm(double max_value = 2, std::vector<int64_t> axis = {0});
Constraint NonNeg();
Constraint UnitNorm(std::vector<int64_t> axis = {0});
Constraint MinMaxNorm(double min_value = 0.0, double max_value = 1.0, double rate = 1.0, std::vector<int64_t> axis = {0});
}  // namespace constraints

}  // namespace tandem::nn
