#include <tandem/nn/layers/reshaping.hpp>

#include <numeric>

#include <tandem/ops.hpp>

#include "base/checked.hpp"
#include "nn/kind.hpp"
#include "nn/layers/resize.hpp"

namespace tandem::nn {
namespace {

// --- Flatten, Reshape, Permute, RepeatVector -------------------------------------------------------------------------------------------

struct FlattenSettings {
  DataFormatOptions options;
};
template <class F> void describe(F& field, FlattenSettings& s) { field("data_format", s.options.data_format); }

class FlattenBody : public Kind<FlattenSettings> {
 public:
  static constexpr const char* kName = "Flatten";
  explicit FlattenBody(FlattenSettings settings) : Kind(std::move(settings)) { expect_data_format(kName, s.options.data_format); }
  std::string class_name() const override { return kName; }
  void check(const std::vector<Spec>& inputs) const override {
    Kind::check(inputs);
    expect_rank_at_least(inputs[0], 1, "[batch, ...]");
  }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    const Tensor x = inputs[0].rank() > 2 ? channels_last(inputs[0], is_channels_first(s.options.data_format)) : inputs[0];
    const Dims dims = x.dims();
    return {x.reshape({dims[0], product(Dims(dims.begin() + 1, dims.end()))})};
  }
  std::vector<Tensor> compute_mask(const std::vector<Tensor>&, const Pass&) const override { return {}; }
};

struct ReshapeSettings {
  std::vector<int64_t> target_shape;
};
template <class F> void describe(F& field, ReshapeSettings& s) { field("target_shape", s.target_shape); }

class ReshapeBody : public Kind<ReshapeSettings> {
 public:
  static constexpr const char* kName = "Reshape";
  explicit ReshapeBody(ReshapeSettings settings) : Kind(std::move(settings)) {
    int unknown = 0;
    for (const int64_t n : s.target_shape) {
      if (n < -1) user_error(kName, ": target_shape has ", n, ", expected -1 or more");
      unknown += n == -1;
    }
    if (unknown > 1) user_error(kName, ": target_shape has ", unknown, " entries of -1, expected one at most");
  }
  std::string class_name() const override { return kName; }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    Dims to{inputs[0].dims()[0]};
    to.insert(to.end(), s.target_shape.begin(), s.target_shape.end());
    return {inputs[0].reshape(to)};
  }
  std::vector<Tensor> compute_mask(const std::vector<Tensor>&, const Pass&) const override { return {}; }
};

struct PermuteSettings {
  std::vector<int64_t> dims;
};
template <class F> void describe(F& field, PermuteSettings& s) { field("dims", s.dims); }

class PermuteBody : public Kind<PermuteSettings> {
 public:
  static constexpr const char* kName = "Permute";
  explicit PermuteBody(PermuteSettings settings) : Kind(std::move(settings)) {
    std::vector<int64_t> sorted = s.dims, wanted(s.dims.size());
    std::sort(sorted.begin(), sorted.end());
    std::iota(wanted.begin(), wanted.end(), 1);
    if (sorted != wanted)
      user_error(kName, ": dims are ", to_config(s.dims).dump(), ", expected each number from 1 to ", s.dims.size(),
                 " once\n  hint: the batch is not counted");
  }
  std::string class_name() const override { return kName; }
  void check(const std::vector<Spec>& inputs) const override {
    Kind::check(inputs);
    expect_rank(inputs[0], static_cast<int>(s.dims.size()) + 1, "the batch and one for each of dims");
  }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    std::vector<int64_t> perm{0};
    perm.insert(perm.end(), s.dims.begin(), s.dims.end());
    return {inputs[0].transpose(perm)};
  }
  std::vector<Tensor> compute_mask(const std::vector<Tensor>&, const Pass&) const override { return {}; }
};

struct RepeatVectorSettings {
  int64_t n = 1;
};
template <class F> void describe(F& field, RepeatVectorSettings& s) { field("n", s.n); }

class RepeatVectorBody : public Kind<RepeatVectorSettings> {
 public:
  static constexpr const char* kName = "RepeatVector";
  explicit RepeatVectorBody(RepeatVectorSettings settings) : Kind(settings) { expect_positive(kName, "n", s.n); }
  std::string class_name() const override { return kName; }
  void check(const std::vector<Spec>& inputs) const override {
    Kind::check(inputs);
    expect_rank(inputs[0], 2, "[batch, features]");
  }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    const Dims d = inputs[0].dims();
    return {broadcast_to(inputs[0].expand_dims(1), {d[0], s.n, d[1]})};
  }
  std::vector<Tensor> compute_mask(const std::vector<Tensor>&, const Pass&) const override { return {}; }
};

// --- Cropping and ZeroPadding: the same with another sign
// -----------------------------------------------------------------------------------

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

Pairs pairs_of(const char* kind, const std::vector<Border>& borders, size_t axes) {
  Pairs pairs;
  for (const Border& b : borders) pairs.emplace_back(b.before, b.after);
  if (pairs.size() == 1) pairs.resize(axes, pairs.front());
  if (pairs.size() != axes) user_error(kind, ": got ", pairs.size(), " borders, expected 1 or ", axes);
  return pairs;
}

enum class Change { Crop, Pad };

template <Change C, int N> struct BorderSettings {
  Pairs borders = Pairs(N, {1, 1});
  DataFormatOptions options;
};
template <class F, Change C, int N> void describe(F& field, BorderSettings<C, N>& s) {
  const char* key = C == Change::Crop ? "cropping" : "padding";
  if constexpr (N == 1)
    field(key, s.borders[0]);
  else
    field(key, s.borders);
  if constexpr (N > 1 || C == Change::Pad) field("data_format", s.options.data_format);
}

template <Change C, int N> class BorderBody : public Kind<BorderSettings<C, N>> {
 public:
  using Base = Kind<BorderSettings<C, N>>;
  using Base::s;
  static constexpr const char* kNames[2][3] = {{"Cropping1D", "Cropping2D", "Cropping3D"},
                                               {"ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D"}};
  static constexpr const char* kName = kNames[C == Change::Pad][N - 1];
  explicit BorderBody(BorderSettings<C, N> settings) : Base(std::move(settings)) {
    if (s.borders.size() != N) user_error(kName, ": got ", s.borders.size(), " borders, expected ", N);
    for (const auto& [before, after] : s.borders)
      if (before < 0 || after < 0) user_error(kName, ": a border is (", before, ", ", after, "), expected numbers that are not negative");
    expect_data_format(kName, s.options.data_format);
  }
  std::string class_name() const override { return kName; }

  void check(const std::vector<Spec>& inputs) const override {
    Base::check(inputs);
    expect_rank(inputs[0], N + 2, spatial_axes(N, first()));
    if constexpr (C == Change::Crop)
      for (size_t i = 0; i < N; ++i) {
        const Dim& extent = inputs[0].dims[axis(i)];
        const int64_t cut = sum_of(s.borders[i].first, s.borders[i].second, "cropping");
        if (extent.is_const() && cut >= extent.value())
          user_error("crops ", cut, " from axis ", axis(i), " of ", inputs[0].str(), ", which has ", extent.value());
      }
  }

  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    const Tensor& x = inputs[0];
    Dims low(static_cast<size_t>(x.rank()), 0), high = low;
    for (size_t i = 0; i < N; ++i) {
      low[axis(i)] = s.borders[i].first;
      high[axis(i)] = s.borders[i].second;
    }
    if constexpr (C == Change::Pad) return {pad(x, 0, low, high)};
    Dims limit = x.dims();
    for (size_t i = 0; i < limit.size(); ++i) limit[i] = limit[i] - high[i];
    return {slice(x, low, limit, std::vector<int64_t>(limit.size(), 1))};
  }
  std::vector<Tensor> compute_mask(const std::vector<Tensor>&, const Pass&) const override { return {}; }

 private:
  bool first() const { return is_channels_first(s.options.data_format); }
  size_t axis(size_t i) const { return i + (first() ? 2 : 1); }
};

// --- UpSampling
// ------------------------------------------------------------------------------------------------------------------------------

template <int N> struct UpSamplingSettings {
  IntList size = 2;
  UpSampling2DOptions options;
};
template <class F, int N> void describe(F& field, UpSamplingSettings<N>& s) {
  if constexpr (N == 1)
    one_or_list(field, "size", s.size);
  else
    field("size", s.size);
  if constexpr (N > 1) field("data_format", s.options.data_format);
  if constexpr (N == 2) field("interpolation", s.options.interpolation);
}

template <int N> class UpSamplingBody : public Kind<UpSamplingSettings<N>> {
 public:
  using Base = Kind<UpSamplingSettings<N>>;
  using Base::s;
  static constexpr const char* kNames[] = {"UpSampling1D", "UpSampling2D", "UpSampling3D"};
  static constexpr const char* kName = kNames[N - 1];
  explicit UpSamplingBody(UpSamplingSettings<N> settings) : Base(normalized(std::move(settings))) {
    expect_data_format(kName, s.options.data_format);
    expect_interpolation(kName, s.options.interpolation);
  }
  std::string class_name() const override { return kName; }
  void check(const std::vector<Spec>& inputs) const override {
    Base::check(inputs);
    expect_rank(inputs[0], N + 2, spatial_axes(N, is_channels_first(s.options.data_format)));
  }

  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    const bool first = is_channels_first(s.options.data_format);
    Tensor y = channels_last(inputs[0], first);
    if (s.options.interpolation == "nearest") {
      for (int i = 0; i < N; ++i) y = repeat(y, s.size.values()[static_cast<size_t>(i)], i + 1);
    } else {
      const auto extent = [&](size_t i) { return known_extent({y.dtype(), y.dims()}, static_cast<int64_t>(i) + 1, "interpolation"); };
      const auto scaled = [&](size_t i) { return product_of(extent(i), s.size.values()[i], "size"); };
      y = resize_image(y, scaled(0), scaled(1), s.options.interpolation);
    }
    return {as_given(y, first)};
  }
  std::vector<Tensor> compute_mask(const std::vector<Tensor>&, const Pass&) const override { return {}; }

 private:
  static UpSamplingSettings<N> normalized(UpSamplingSettings<N> settings) {
    settings.size = for_each_axis(kName, "size", settings.size, N);
    return settings;
  }
};

}  // namespace

Flatten::Flatten(const DataFormatOptions& options) : Layer(std::make_shared<FlattenBody>(FlattenSettings{options}), options.name) {}
Reshape::Reshape(std::vector<int64_t> target_shape, const NamedOptions& options)
    : Layer(std::make_shared<ReshapeBody>(ReshapeSettings{std::move(target_shape)}), options.name) {}
Permute::Permute(std::vector<int64_t> dims, const NamedOptions& options)
    : Layer(std::make_shared<PermuteBody>(PermuteSettings{std::move(dims)}), options.name) {}
RepeatVector::RepeatVector(int64_t n, const NamedOptions& options)
    : Layer(std::make_shared<RepeatVectorBody>(RepeatVectorSettings{n}), options.name) {}

template <Change C, int N> std::shared_ptr<LayerBody> border_body(const std::vector<Border>& borders, const DataFormatOptions& options) {
  return std::make_shared<BorderBody<C, N>>(BorderSettings<C, N>{pairs_of(BorderBody<C, N>::kName, borders, N), options});
}
Cropping1D::Cropping1D(const Border& cropping, const NamedOptions& options)
    : Layer(border_body<Change::Crop, 1>({cropping}, {}), options.name) {}
Cropping2D::Cropping2D(const Borders& cropping, const DataFormatOptions& options)
    : Layer(border_body<Change::Crop, 2>(cropping.list(), options), options.name) {}
Cropping3D::Cropping3D(const Borders& cropping, const DataFormatOptions& options)
    : Layer(border_body<Change::Crop, 3>(cropping.list(), options), options.name) {}
ZeroPadding1D::ZeroPadding1D(const Border& padding, const DataFormatOptions& options)
    : Layer(border_body<Change::Pad, 1>({padding}, options), options.name) {}
ZeroPadding2D::ZeroPadding2D(const Borders& padding, const DataFormatOptions& options)
    : Layer(border_body<Change::Pad, 2>(padding.list(), options), options.name) {}
ZeroPadding3D::ZeroPadding3D(const Borders& padding, const DataFormatOptions& options)
    : Layer(border_body<Change::Pad, 3>(padding.list(), options), options.name) {}

UpSampling1D::UpSampling1D(int64_t size, const NamedOptions& options)
    : Layer(std::make_shared<UpSamplingBody<1>>(UpSamplingSettings<1>{size, {}}), options.name) {}
UpSampling2D::UpSampling2D(const IntList& size, const UpSampling2DOptions& options)
    : Layer(std::make_shared<UpSamplingBody<2>>(UpSamplingSettings<2>{size, options}), options.name) {}
UpSampling3D::UpSampling3D(const IntList& size, const DataFormatOptions& options)
    : Layer(std::make_shared<UpSamplingBody<3>>(UpSamplingSettings<3>{size, {.data_format = options.data_format}}), options.name) {}

void register_reshaping_layers() {
  register_kind<FlattenBody>();
  register_kind<ReshapeBody>();
  register_kind<PermuteBody>();
  register_kind<RepeatVectorBody>();
  register_kind<BorderBody<Change::Crop, 1>>();
  register_kind<BorderBody<Change::Crop, 2>>();
  register_kind<BorderBody<Change::Crop, 3>>();
  register_kind<BorderBody<Change::Pad, 1>>();
  register_kind<BorderBody<Change::Pad, 2>>();
  register_kind<BorderBody<Change::Pad, 3>>();
  register_kind<UpSamplingBody<1>>();
  register_kind<UpSamplingBody<2>>();
  register_kind<UpSamplingBody<3>>();
}

}  // namespace tandem::nn
