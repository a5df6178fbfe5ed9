#include <tandem/nn/layers/pooling.hpp>

#include <tandem/ops.hpp>

#include "nn/kind.hpp"

namespace tandem::nn {
namespace {

enum class Pool { Max, Average };

// --- windows -------------------------------------------------------------------------------------------------------------------------

template <Pool P, int N> struct PoolingSettings {
  IntList pool_size = 2;
  PoolingOptions options;
};
template <class F, Pool P, int N> void describe(F& field, PoolingSettings<P, N>& s) {
  field("pool_size", s.pool_size);
  field("padding", s.options.padding);
  field("strides", s.options.strides);
  field("data_format", s.options.data_format);
}

template <Pool P, int N> class PoolingBody : public Kind<PoolingSettings<P, N>> {
 public:
  using Base = Kind<PoolingSettings<P, N>>;
  using Base::s;
  static constexpr const char* kNames[2][3] = {{"MaxPooling1D", "MaxPooling2D", "MaxPooling3D"},
                                               {"AveragePooling1D", "AveragePooling2D", "AveragePooling3D"}};
  static constexpr const char* kName = kNames[P == Pool::Average][N - 1];
  explicit PoolingBody(PoolingSettings<P, N> settings) : Base(normalized(std::move(settings))) {
    expect_one_of(kName, "padding", s.options.padding, {"valid", "same"});
    expect_data_format(kName, s.options.data_format);
  }
  std::string class_name() const override { return kName; }
  void check(const std::vector<Spec>& inputs) const override {
    Base::check(inputs);
    expect_rank(inputs[0], N + 2, spatial_axes(N, first()));
    if (s.options.padding == "valid") expect_window(inputs[0], s.pool_size.values(), first());
  }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    const PoolingOptions& o = s.options;
    const Tensor x = channels_last(inputs[0], first());
    const Tensor y = P == Pool::Max ? max_pool(x, s.pool_size, o.strides, o.padding) : average_pool(x, s.pool_size, o.strides, o.padding);
    return {as_given(y, first())};
  }
  std::vector<Tensor> compute_mask(const std::vector<Tensor>&, const Pass&) const override { return {}; }

 private:
  bool first() const { return is_channels_first(s.options.data_format); }
  static PoolingSettings<P, N> normalized(PoolingSettings<P, N> settings) {
    settings.pool_size = for_each_axis(kName, "pool_size", settings.pool_size, N);
    IntList& strides = settings.options.strides;
    strides = strides.given() ? for_each_axis(kName, "strides", strides, N) : settings.pool_size.values();
    return settings;
  }
};

// --- everything ------------------------------------------------------------------------------------------------------------------------

template <Pool P, int N> struct GlobalPoolingSettings {
  GlobalPoolingOptions options;
};
template <class F, Pool P, int N> void describe(F& field, GlobalPoolingSettings<P, N>& s) {
  field("data_format", s.options.data_format);
  field("keepdims", s.options.keepdims);
}

template <Pool P, int N> class GlobalPoolingBody : public Kind<GlobalPoolingSettings<P, N>> {
 public:
  using Base = Kind<GlobalPoolingSettings<P, N>>;
  using Base::s;
  static constexpr const char* kNames[2][3] = {{"GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D"},
                                               {"GlobalAveragePooling1D", "GlobalAveragePooling2D", "GlobalAveragePooling3D"}};
  static constexpr const char* kName = kNames[P == Pool::Average][N - 1];
  explicit GlobalPoolingBody(GlobalPoolingSettings<P, N> settings) : Base(std::move(settings)) {
    expect_data_format(kName, s.options.data_format);
  }
  std::string class_name() const override { return kName; }
  void check(const std::vector<Spec>& inputs) const override {
    Base::check(inputs);
    expect_rank(inputs[0], N + 2, spatial_axes(N, first()));
  }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass& pass) override {
    const Tensor& x = inputs[0];
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < N; ++i) axes.push_back(i + (first() ? 2 : 1));
    if constexpr (P == Pool::Max) return {max(x, axes, s.options.keepdims)};
    if (N == 1 && !pass.masks.empty() && pass.masks[0].defined()) {
      const Tensor seen = pass.masks[0].cast(x.dtype()).expand_dims(first() ? 1 : 2);
      return {sum(x * seen, axes, s.options.keepdims) / sum(seen, axes, s.options.keepdims)};
    }
    return {mean(x, axes, s.options.keepdims)};
  }
  std::vector<Tensor> compute_mask(const std::vector<Tensor>&, const Pass&) const override { return {}; }

 private:
  bool first() const { return is_channels_first(s.options.data_format); }
};

}  // namespace

#define TANDEM_POOLING(P, N)                                                                                               \
  P##Pooling##N##D::P##Pooling##N##D(const IntList& pool_size, const PoolingOptions& options)                              \
      : Layer(std::make_shared<PoolingBody<Pool::P, N>>(PoolingSettings<Pool::P, N>{pool_size, options}), options.name) {} \
  Global##P##Pooling##N##D::Global##P##Pooling##N##D(const GlobalPoolingOptions& options)                                  \
      : Layer(std::make_shared<GlobalPoolingBody<Pool::P, N>>(GlobalPoolingSettings<Pool::P, N>{options}), options.name) {}
TANDEM_POOLING(Max, 1)
TANDEM_POOLING(Max, 2)
TANDEM_POOLING(Max, 3)
TANDEM_POOLING(Average, 1)
TANDEM_POOLING(Average, 2)
TANDEM_POOLING(Average, 3)

namespace {
template <Pool P, int N> void register_both() {
  register_kind<PoolingBody<P, N>>();
  register_kind<GlobalPoolingBody<P, N>>();
}
}  // namespace

void register_pooling_layers() {
  register_both<Pool::Max, 1>();
  register_both<Pool::Max, 2>();
  register_both<Pool::Max, 3>();
  register_both<Pool::Average, 1>();
  register_both<Pool::Average, 2>();
  register_both<Pool::Average, 3>();
}

}  // namespace tandem::nn
