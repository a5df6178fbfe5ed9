// How targets, predictions and weights of almost the same rank are brought together, as Keras does it.
#pragma once
#include <utility>

#include <tandem/tensor.hpp>

namespace tandem::nn {

inline constexpr double kEpsilon = 1e-7;  // Keras's backend.epsilon()

enum class Expand : uint8_t { No, Rank1 };  // whether [n] beside [n,1] becomes [n,1], or [n,1] becomes [n]
std::pair<Tensor, Tensor> same_rank(const Tensor& a, const Tensor& b, Expand expand = Expand::Rank1);
Tensor padded_rank(const Tensor& t, int rank);                     // [n] beside [n,3,4] becomes [n,1,1]
Tensor class_numbers(const Tensor& y_true, const Tensor& y_pred);  // targets of sparse losses: [n,1] beside [n,c] becomes [n]

// Which of the meanings of "accuracy" and "crossentropy" fits.
enum class Labels : uint8_t { Binary, Sparse, Categorical };
Labels labels_of(const Dims& y_true, const Dims& y_pred);

// A weight for each value from a weight and a mask, either of which may be undefined. Scaled: so that the mean over all values is the mean
// over those that the mask keeps.
enum class MaskScale : uint8_t { None, Mean };
Tensor masked_weight(const Tensor& sample_weight, const Tensor& mask, MaskScale scale);

}  // namespace tandem::nn
