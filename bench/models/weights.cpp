#include "weights.hpp"

#include <cmath>

#include "formula.hpp"

namespace bench {
namespace {

// Keras's fans: a kernel is [receptive field..., in, out].
double glorot_limit(const td::Shape& s) {
  double field = 1;
  for (size_t i = 0; i + 2 < s.size(); ++i) field *= static_cast<double>(s[i]);
  return std::sqrt(6 / (field * static_cast<double>(s[s.size() - 2] + s[s.size() - 1])));
}

bool ends_with_one_of(std::string_view name, std::initializer_list<std::string_view> ends) {
  for (const std::string_view end : ends)
    if (name.ends_with(end)) return true;
  return false;
}

// Kernels are spread by a power of two near 2 / sqrt(fan in), so that products keep their size and every value is exact.
float formula_scale(const td::Shape& s) {
  const int64_t fan_in = td::element_count(s) / s.back();
  double scale = 2;
  while (scale * scale * static_cast<double>(fan_in) > 4) scale /= 2;
  return static_cast<float>(scale);
}

td::Tensor formula_value(const std::string& name, const td::Shape& shape) {
  const Formula formula(name);
  const bool around_one = ends_with_one_of(name, {"gamma", "moving_variance"});
  const bool kernel = ends_with_one_of(name, {"kernel", "embeddings"});
  const float middle = around_one ? 1.0f : 0.0f, scale = kernel ? formula_scale(shape) : 0.25f;
  std::vector<float> values(static_cast<size_t>(td::element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = middle + (formula.unit(i) - 0.5f) * scale;
  return td::Tensor::from(values, shape);
}

}  // namespace

td::Tensor Weights::initial_value(const td::Shape& shape, Initial initial) {
  switch (initial) {
    case Initial::GlorotUniform: {
      const double limit = glorot_limit(shape);
      return random_.uniform(shape, -limit, limit);
    }
    case Initial::Orthogonal: {  // of a wide matrix: the rows
      const auto [q, r] = td::qr(random_.normal({shape[1], shape[0]}));
      return (q * td::sign(td::diagonal(r))).transpose().contiguous();
    }
    case Initial::Uniform: return random_.uniform(shape, -0.05, 0.05);
    case Initial::Zeros: return td::Tensor::zeros(shape);
    case Initial::Ones: return td::Tensor::ones(shape);
    case Initial::ForgetOnes: {
      const int64_t units = shape[0] / 4;
      return td::concatenate({td::Tensor::zeros({units}), td::Tensor::ones({units}), td::Tensor::zeros({2 * units})});
    }
  }
  throw td::InternalError("an initialiser without a value");
}

td::Variable Weights::trainable(const std::string& name, const td::Shape& shape, Initial initial) {
  return trainables_.emplace_back(initial_value(shape, initial), td::VariableOptions{.name = name});
}

td::Variable Weights::state(const std::string& name, const td::Shape& shape, Initial initial) {
  return states_.emplace_back(initial_value(shape, initial), td::VariableOptions{.name = name, .trainable = false});
}

int64_t Weights::trainable_count() const {
  int64_t count = 0;
  for (const td::Variable& v : trainables_) count += td::element_count(v.shape());
  return count;
}

void Weights::set_by_formula() const {
  for (const auto* list : {&trainables_, &states_})
    for (const td::Variable& v : *list) v.assign(formula_value(v.name(), v.shape()));
}

}  // namespace bench
