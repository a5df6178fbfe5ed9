#include "nn/ranks.hpp"

#include <tandem/ops.hpp>

namespace tandem::nn {
namespace {

bool ends_in_one(const Tensor& t) { return t.rank() > 0 && t.dims().back().is(1); }

}  // namespace

std::pair<Tensor, Tensor> same_rank(const Tensor& a, const Tensor& b, Expand expand) {
  if (a.rank() == b.rank() + 1 && ends_in_one(a)) {
    if (b.rank() == 1 && expand == Expand::Rank1) return {a, b.expand_dims(-1)};
    return {a.squeeze(-1), b};
  }
  if (b.rank() == a.rank() + 1 && ends_in_one(b)) {
    if (a.rank() == 1 && expand == Expand::Rank1) return {a.expand_dims(-1), b};
    return {a, b.squeeze(-1)};
  }
  return {a, b};
}

Tensor padded_rank(const Tensor& t, int rank) {
  if (t.rank() >= rank) return t;
  Dims dims = t.dims();
  dims.resize(static_cast<size_t>(rank), Dim(1));
  return t.reshape(dims);
}

Tensor class_numbers(const Tensor& y_true, const Tensor& y_pred) {
  return y_true.rank() == y_pred.rank() && ends_in_one(y_true) ? y_true.squeeze(-1) : y_true;
}

Labels labels_of(const Dims& y_true, const Dims& y_pred) {
  if (y_pred.empty() || y_pred.back().is(1)) return Labels::Binary;
  if (y_true.size() < y_pred.size() || y_true.back().is(1)) return Labels::Sparse;
  return Labels::Categorical;
}

Tensor masked_weight(const Tensor& sample_weight, const Tensor& mask, MaskScale scale) {
  if (!mask.defined()) return sample_weight;
  Tensor weight = mask.cast(DType::F32);
  if (scale == MaskScale::Mean) weight = weight * divide_no_nan(extent(product(mask.dims()), DType::F32), sum(weight));
  if (!sample_weight.defined()) return weight;
  const auto [m, w] = same_rank(weight, sample_weight.cast(DType::F32));
  return m * padded_rank(w, m.rank());
}

}  // namespace tandem::nn
