// Weights: a model's variables under the names that Keras gives them, and the values they begin with.
#pragma once
#include <cstdint>
#include <string>
#include <tandem/tandem.hpp>
#include <vector>

namespace bench {

namespace td = tandem;

// Keras's initialisers of the same names; ForgetOnes is an LSTM's bias: ones for the forget gate, else zeros.
enum class Initial : uint8_t { GlorotUniform, Orthogonal, Uniform, Zeros, Ones, ForgetOnes };

class Weights {
 public:
  explicit Weights(uint64_t seed) : random_(seed) {}

  td::Variable trainable(const std::string& name, const td::Shape& shape, Initial initial);
  td::Variable state(const std::string& name, const td::Shape& shape, Initial initial);  // not trained, such as moving averages

  const std::vector<td::Variable>& trainables() const { return trainables_; }
  int64_t trainable_count() const;  // elements

  // Gives every variable the values of formula.hpp, for a comparison with Keras.
  void set_by_formula() const;

 private:
  td::Tensor initial_value(const td::Shape& shape, Initial initial);

  td::Generator random_;
  std::vector<td::Variable> trainables_, states_;
};

}  // namespace bench
