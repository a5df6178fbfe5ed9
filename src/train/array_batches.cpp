// Batches of arrays in memory. In order, a batch is a view that moves along the array. In a permutation, its rows are copied into a buffer,
// by the threads that then run the step and find them in their caches (ADR 0018). Neither allocates anything after the first batch.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <sstream>

#include <tandem/train.hpp>

#include "base/text.hpp"
#include "data/elements.hpp"
#include "data/random.hpp"
#include "frontend/memory.hpp"
#include "frontend/tensor_impl.hpp"

namespace tandem::train {
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
      const Tensor here = data::on_host(t);
      arrays_.push_back(has_dense_rows(here) ? here : here.contiguous());
    }
  }
  std::optional<int64_t> steps() const override { return (rows_ + batch_size_ - 1) / batch_size_; }
  std::optional<int64_t> rows() const override { return rows_; }
  void begin() override {
    ++walk_;
    at_ = 0;
  }
  std::string place(int64_t row) const override { return cat("row ", first_ + number_of(begin_ + row)); }
  std::string save() const override { return cat(walk_, " ", at_); }
  void restore(const std::string& position) override {
    std::istringstream in(position);
    if (!(in >> walk_ >> at_) || at_ < 0 || at_ > rows_) user_error("training: '", position, "' is no place in ", rows_, " rows");
  }

 protected:
  virtual int64_t number_of(int64_t at) const { return at; }  // which row comes at this place of the walk
  // The rows of the next batch; 0 at the end of the walk.
  int64_t advance() {
    const int64_t count = std::min(batch_size_, rows_ - at_);
    begin_ = at_;
    at_ += count;
    return count;
  }

  std::vector<Tensor> arrays_;
  const int64_t first_, rows_, batch_size_;
  int64_t walk_ = -1, at_ = 0;  // at: rows that are done
  int64_t begin_ = 0;           // those before the present batch
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
    const int64_t count = advance();
    if (count == 0) return false;
    std::vector<Tensor>& views = count == batch_size_ ? views_ : rest_;
    batch_.clear();
    for (size_t i = 0; i < arrays_.size(); ++i) {
      const engine::TensorRef& whole = *frontend::concrete_ref(arrays_[i]);
      if (!views[i].impl()->is_unique()) views[i] = frontend::concrete(whole);  // the step gave it away as a result
      engine::TensorRef& view = static_cast<frontend::ConcreteTensor*>(views[i].impl())->ref;
      view.layout.shape[0] = count;
      view.offset = whole.offset + static_cast<size_t>((first_ + begin_) * whole.layout.strides[0]) * size_of(whole.layout.dtype);
      batch_.push_back(&views[i]);
    }
    return true;
  }

 private:
  std::vector<Tensor> views_, rest_;
};

// A buffer that the rows of a batch are copied into; another one when somebody has kept what was in it.
class Gathered final : public ArrayBatches {
 public:
  Gathered(const ArraySlice& slice, int64_t batch_size, uint64_t seed)
      : ArrayBatches(slice, batch_size),
        seed_(seed),
        order_(static_cast<size_t>(rows_)),
        stream_(frontend::host_device().stream(device::StreamKind::Compute)) {
    for (const Tensor& t : arrays_) {
      const int64_t step = t.strides()[0] * static_cast<int64_t>(size_of(t.dtype()));
      sources_.push_back(
          {{static_cast<const char*>(t.raw_data()) + first_ * step, step, byte_size(with_rows(t.shape(), 1), t.dtype()), {}}});
      sources_.back().batch = new_batch(t);
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
    const int64_t count = advance();
    if (count == 0) return false;
    batch_.clear();
    for (size_t i = 0; i < sources_.size(); ++i) {
      Source& s = sources_[i];
      if (s.is_kept()) s.batch = new_batch(arrays_[i]);
      engine::TensorRef& ref = static_cast<frontend::ConcreteTensor*>(s.batch.impl())->ref;
      ref.layout.shape[0] = count;
      s.rows.numbers = std::span<const int64_t>(order_).subspan(static_cast<size_t>(begin_), static_cast<size_t>(count));
      stream_.upload_rows(ref.data(), s.rows);
      batch_.push_back(&s.batch);
    }
    stream_.synchronize();
    return true;
  }

 protected:
  int64_t number_of(int64_t at) const override { return order_[static_cast<size_t>(at)]; }

 private:
  struct Source {
    device::HostRows rows;
    Tensor batch = {};  // with memory for a whole one

    // The step gave it away as a result or put it into a variable: the tensor itself, or its memory.
    bool is_kept() const { return !batch.impl()->is_unique() || !frontend::concrete_ref(batch)->buffer->unique(); }
  };

  Tensor new_batch(const Tensor& array) const {
    return frontend::concrete(frontend::allocate_on_host(array.dtype(), with_rows(array.shape(), std::min(batch_size_, rows_))));
  }

  // Fisher and Yates; the same for the same seed and walk, so that a place in it can be found again.
  void permute() {
    std::iota(order_.begin(), order_.end(), int64_t{0});
    data::Random random = data::Random::of({seed_, static_cast<uint64_t>(walk_)});
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
  }

  const uint64_t seed_;
  std::vector<int64_t> order_;
  device::Stream& stream_;
  std::vector<Source> sources_;
};

}  // namespace

std::unique_ptr<Batches> batches_of(const ArraySlice& slice, int64_t batch_size, Order order, uint64_t seed) {
  if (order == Order::Shuffled) return std::make_unique<Gathered>(slice, batch_size, seed);
  return std::make_unique<Views>(slice, batch_size);
}

}  // namespace tandem::train
