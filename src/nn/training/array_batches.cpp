// Batches of arrays in memory. In order, a batch is a view that moves along the arrays. In a permutation, the step is given the arrays and
// the numbers of the rows, and gathers them itself with all threads (ADR 0018). Neither copies or allocates anything here.
#include <algorithm>
#include <numeric>

#include "base/text.hpp"
#include "data/random.hpp"
#include "frontend/tensor_impl.hpp"
#include "nn/training/batches.hpp"

namespace tandem::nn {
namespace {

Spec with_rows(const Tensor& array, const char* symbol) {
  Dims dims = array.dims();
  dims[0] = Dim::symbol(symbol);
  return {array.dtype(), dims};
}

class ArrayBatches : public Batches {
 public:
  ArrayBatches(const ArraySlice& slice, int64_t batch_size) : first_(slice.first), rows_(slice.count), batch_size_(batch_size) {}
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
  const int64_t first_, rows_, batch_size_;
  int64_t walk_ = -1, at_ = 0;  // at: rows that are done
};

// Rows [at, at + count) of a tensor, as a tensor that can be moved on without allocating anything.
class MovingView {
 public:
  explicit MovingView(const Tensor& whole) : whole_(whole), view_(frontend::concrete(*frontend::concrete_ref(whole))) {}
  const Tensor* at(int64_t first, int64_t count) {
    const engine::TensorRef& whole = *frontend::concrete_ref(whole_);
    if (!view_.impl()->is_unique()) view_ = frontend::concrete(whole);  // the step gave it away as a result
    engine::TensorRef& view = static_cast<frontend::ConcreteTensor*>(view_.impl())->ref;
    view.layout.shape[0] = count;
    view.offset = whole.offset + static_cast<size_t>(first * whole.layout.strides[0]) * size_of(whole.layout.dtype);
    return &view_;
  }

 private:
  Tensor whole_, view_;
};

class Views final : public ArrayBatches {
 public:
  Views(const ArraySlice& slice, int64_t batch_size) : ArrayBatches(slice, batch_size) {
    for (const Tensor& t : slice.arrays) {
      specs_.push_back(with_rows(t, "b"));
      views_.emplace_back(t);
    }
  }
  bool next() override {
    if (at_ >= rows_) return false;
    const int64_t count = std::min(batch_size_, rows_ - at_);
    batch_.clear();
    for (MovingView& view : views_) batch_.push_back(view.at(first_ + at_, count));
    at_ += count;
    return true;
  }

 private:
  std::vector<MovingView> views_;
};

// The arrays as they are, and which rows.
class Permuted final : public ArrayBatches {
 public:
  Permuted(const ArraySlice& slice, int64_t batch_size, uint64_t seed)
      : ArrayBatches(slice, batch_size),
        arrays_(slice.arrays),
        seed_(seed),
        order_(static_cast<size_t>(rows_)),
        view_(Tensor::view(order_.data(), DType::I32, {rows_})) {
    for (const Tensor& t : arrays_) specs_.push_back(with_rows(t, "n"));
    specs_.push_back({DType::I32, {Dim::symbol("b")}});
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
    batch_.clear();
    for (const Tensor& t : arrays_) batch_.push_back(&t);
    batch_.push_back(view_.at(at_, count));
    at_ += count;
    return true;
  }

 private:
  // Fisher and Yates; the same for the same seed and walk, so that a place in it can be found again.
  void permute() {
    std::iota(order_.begin(), order_.end(), static_cast<int32_t>(first_));
    data::Random random = data::Random::of({seed_, static_cast<uint64_t>(walk_)});
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
  }

  const std::vector<Tensor> arrays_;
  const uint64_t seed_;
  std::vector<int32_t> order_;
  MovingView view_;
};

}  // namespace

std::unique_ptr<Batches> batches_of(const ArraySlice& slice, int64_t batch_size, Order order, uint64_t seed) {
  if (order == Order::Shuffled) return std::make_unique<Permuted>(slice, batch_size, seed);
  return std::make_unique<Views>(slice, batch_size);
}

}  // namespace tandem::nn
