// tf.train.Example messages in protobuf's wire format: the values of chosen features of many of them.
#pragma once
#include <span>
#include <string>
#include <vector>

#include <tandem/tensor.hpp>

namespace tandem::data {

struct WantedFeature {
  std::string key;
  DType dtype;  // float32, int64 or kString, the three kinds of lists that there are
};
struct FoundFeature {
  Tensor values;  // of all messages, one behind the other
  Tensor counts;  // int64, one a message: 0 when it has no such feature
};
// UserError when a message is damaged, or a feature is a list of another kind.
std::vector<FoundFeature> parse_examples(std::span<const std::string> messages, const std::vector<WantedFeature>& wanted);

}  // namespace tandem::data
