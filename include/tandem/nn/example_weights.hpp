// How much the examples of a fit count: weights that are given, or that follow from their classes. For models with several outputs by the
// outputs' position or by the names of their layers; an output without any counts each example once.
//   .sample_weight = w                        .sample_weight = {{"left", w}}
//   .class_weight = {{0, 1.0}, {1, 5.0}}      .class_weight = {{"left", {{1, 5.0}}}}
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <tandem/tensor.hpp>

namespace tandem::nn {

class SampleWeight {
 public:
  SampleWeight() = default;
  SampleWeight(Tensor for_all) : for_all_(std::move(for_all)) {}                           // NOLINT
  SampleWeight(std::vector<Tensor> by_position) : by_position_(std::move(by_position)) {}  // NOLINT
  SampleWeight(std::map<std::string, Tensor> by_name) : by_name_(std::move(by_name)) {}    // NOLINT
  SampleWeight(std::initializer_list<std::pair<const std::string, Tensor>> by_name) : by_name_(by_name) {}

  bool given() const { return for_all_.defined() || !by_position_.empty() || !by_name_.empty(); }
  const Tensor& for_all() const { return for_all_; }
  const std::vector<Tensor>& by_position() const { return by_position_; }
  const std::map<std::string, Tensor>& by_name() const { return by_name_; }

 private:
  Tensor for_all_;
  std::vector<Tensor> by_position_;
  std::map<std::string, Tensor> by_name_;
};

using WeightOfClass = std::map<int64_t, double>;  // 1 for classes that are not named

class ClassWeight {
 public:
  ClassWeight() = default;
  ClassWeight(WeightOfClass only) : by_position_{std::move(only)} {}  // NOLINT: for a model with one output
  ClassWeight(std::initializer_list<WeightOfClass::value_type> only) : by_position_{WeightOfClass(only)} {}
  ClassWeight(std::vector<WeightOfClass> by_position) : by_position_(std::move(by_position)) {}  // NOLINT
  ClassWeight(std::map<std::string, WeightOfClass> by_name) : by_name_(std::move(by_name)) {}    // NOLINT
  // A template only so that {} means none and not one of two empty lists.
  template <class Name = std::string>
  ClassWeight(std::initializer_list<std::pair<const Name, WeightOfClass>> by_name) : by_name_(by_name) {}

  bool given() const { return !by_position_.empty() || !by_name_.empty(); }
  const std::vector<WeightOfClass>& by_position() const { return by_position_; }
  const std::map<std::string, WeightOfClass>& by_name() const { return by_name_; }

 private:
  std::vector<WeightOfClass> by_position_;
  std::map<std::string, WeightOfClass> by_name_;
};

}  // namespace tandem::nn
