// Batches of arrays in memory. In order, a batch is a view that moves along the array. In a permutation, its rows are copied into a buffer,
// by the threads that then run the step and find them in their caches (ADR 0018). Neither allocates anything after the first batch.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/text.hpp"
#include "data/random.hpp"
#include "frontend/memory.hpp"
#include "frontend/tensor_impl.hpp"
#include "nn/training/batches.hpp"

namespace tandem::nn {
namespace {

Spec batch_spec(const Tensor& array) {
  Dims dims = array.dims();
  dims[0] = Dim::symbol("b");
  return {array.dtype(), dims};
}

bool has_dense_rows(const Tensor& t) {
  const Shape shape = t.shape();
  const Strides strides = t.strides();
  return is_contiguous(Shape(std::span<const int64_t>(shape).subspan(1)), Strides(std::span<const int64_t>(strides).subspan(1)));
}

Shape with_rows(Shape shape, int64_t rows) {
  shape[0] = rows;
  return shape;
}

class ArrayBatches : public Batches {
 public:
  ArrayBatches(const ArraySlice& slice, int64_t batch_size) : first_(slice.first), rows_(slice.count), batch_size_(batch_size) {
    for (const Tensor& t : slice.arrays) {
      specs_.push_back(batch_spec(t));
      arrays_.push_back(has_dense_rows(t) ? t : t.contiguous());
    }
  }
  std::optional<int64_t> steps() const override { return (rows_ + batch_size_ - 1) / batch_size_; }
  std::optional<int64_t> rows() const override { return rows_; }
  void begin() override {
    ++walk_;
    at_ = 0;
  }
  std::string save() const override { return cat(walk_, " ", at_); }
  void restore(const std::string& position) override {
    std::istringstream in(position);
    if (!(in >> walk_ >> at_) || at_ < 0 || at_ > rows_) user_error("training: '", position, "' is no place in ", rows_, " rows");
  }

 protected:
  std::vector<Tensor> arrays_;
  const int64_t first_, rows_, batch_size_;
  int64_t walk_ = -1, at_ = 0;  // at: rows that are done
};

class Views final : public ArrayBatches {
 public:
  Views(const ArraySlice& slice, int64_t batch_size) : ArrayBatches(slice, batch_size) {
    for (const Tensor& t : arrays_) {
      const engine::TensorRef& ref = *frontend::concrete_ref(t);
      views_.push_back(frontend::concrete(ref));
      rest_.push_back(frontend::concrete(ref));
    }
  }
  bool next() override {
    if (at_ >= rows_) return false;
    const int64_t count = std::min(batch_size_, rows_ - at_);
    std::vector<Tensor>& views = count == batch_size_ ? views_ : rest_;
    batch_.clear();
    for (size_t i = 0; i < arrays_.size(); ++i) {
      const engine::TensorRef& whole = *frontend::concrete_ref(arrays_[i]);
      if (!views[i].impl()->is_unique()) views[i] = frontend::concrete(whole);  // the step gave it away as a result
      engine::TensorRef& view = static_cast<frontend::ConcreteTensor*>(views[i].impl())->ref;
      view.layout.shape[0] = count;
      view.offset = whole.offset + static_cast<size_t>((first_ + at_) * whole.layout.strides[0]) * size_of(whole.layout.dtype);
      batch_.push_back(&views[i]);
    }
    at_ += count;
    return true;
  }

 private:
  std::vector<Tensor> views_, rest_;
};

// A buffer that the rows of a batch are copied into.
class Gathered final : public ArrayBatches {
 public:
  Gathered(const ArraySlice& slice, int64_t batch_size, uint64_t seed)
      : ArrayBatches(slice, batch_size),
        seed_(seed),
        order_(static_cast<size_t>(rows_)),
        stream_(frontend::active_engine().device().make_stream()) {
    for (const Tensor& t : arrays_) {
      const Shape full = with_rows(t.shape(), std::min(batch_size_, rows_)), rest = with_rows(t.shape(), rows_ % batch_size_);
      engine::TensorRef buffer = frontend::allocate(t.dtype(), full);
      const int64_t step = t.strides()[0] * static_cast<int64_t>(size_of(t.dtype()));
      sources_.push_back(
          {{static_cast<const char*>(t.raw_data()) + first_ * step, step, byte_size(with_rows(full, 1), t.dtype()), {}}, buffer.data()});
      full_.push_back(frontend::concrete(buffer));
      buffer.layout = codegen::Operand::dense(t.dtype(), rest);
      rest_.push_back(frontend::concrete(std::move(buffer)));
    }
  }
  void begin() override {
    ArrayBatches::begin();
    permute();
  }
  void restore(const std::string& position) override {
    ArrayBatches::restore(position);
    permute();
  }
  bool next() override {
    if (at_ >= rows_) return false;
    const int64_t count = std::min(batch_size_, rows_ - at_);
    for (Source& s : sources_) {
      s.rows.numbers = std::span<const int64_t>(order_).subspan(static_cast<size_t>(at_), static_cast<size_t>(count));
      stream_->upload_rows(s.to, s.rows);
    }
    stream_->synchronize();
    batch_.clear();
    for (const Tensor& t : count == batch_size_ || rows_ < batch_size_ ? full_ : rest_) batch_.push_back(&t);
    at_ += count;
    return true;
  }

 private:
  struct Source {
    device::HostRows rows;
    void* to;
  };

  // Fisher and Yates; the same for the same seed and walk, so that a place in it can be found again.
  void permute() {
    std::iota(order_.begin(), order_.end(), int64_t{0});
    data::Random random = data::Random::of({seed_, static_cast<uint64_t>(walk_)});
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
  }

  const uint64_t seed_;
  std::vector<int64_t> order_;
  const std::unique_ptr<device::Stream> stream_;
  std::vector<Source> sources_;
  std::vector<Tensor> full_, rest_;
};

}  // namespace

std::unique_ptr<Batches> batches_of(const ArraySlice& slice, int64_t batch_size, Order order, uint64_t seed) {
  if (order == Order::Shuffled) return std::make_unique<Gathered>(slice, batch_size, seed);
  return std::make_unique<Views>(slice, batch_size);
}

}  // namespace tandem::nn
