// What the layers on pictures share.
#pragma once
#include "nn/kind.hpp"

namespace tandem::nn {

// A kind that takes pictures, channels first or last, with or without a batch, as floating numbers.
template <class S> class ImageKind : public Kind<S> {
 public:
  using Base = Kind<S>;
  using Base::Base;
  using Base::s;
  void check(const std::vector<Spec>& inputs) const override {
    Base::check(inputs);
    const size_t rank = inputs[0].dims.size();
    if (rank != 3 && rank != 4)
      user_error("takes pictures, ", spatial_axes(2, first()), " or one without the batch, got ", inputs[0].str());
  }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass& pass) override {
    Tensor x = inputs[0].dtype() == this->dtype() ? inputs[0] : inputs[0].cast(this->dtype());
    const bool is_single = x.rank() == 3;
    if (is_single) x = x.expand_dims(0);
    const Tensor y = as_given(transform(channels_last(x, first()), pass), first());
    return {is_single ? y.squeeze(0) : y};
  }
  std::vector<Tensor> compute_mask(const std::vector<Tensor>&, const Pass&) const override { return {}; }

 protected:
  virtual Tensor transform(const Tensor& pictures, const Pass& pass) = 0;  // [batch, height, width, channels]
  bool first() const { return is_channels_first(s.options.data_format); }
};

inline int64_t height_of(const Tensor& x) { return known_extent({x.dtype(), x.dims()}, -3, "the height"); }
inline int64_t width_of(const Tensor& x) { return known_extent({x.dtype(), x.dims()}, -2, "the width"); }

// extent * numerator / denominator, rounded down.
int64_t in_proportion(int64_t extent, int64_t numerator, int64_t denominator);

// The largest middle part with the proportions of the size asked for, in that size.
Tensor cropped_and_resized(const Tensor& x, int64_t height, int64_t width, const std::string& interpolation, bool antialias);

// One number or several, as Keras writes them.
void describe_numbers(FieldWriter& field, const char* key, const FloatList& v);
void describe_numbers(FieldReader& field, const char* key, FloatList& v);

}  // namespace tandem::nn
