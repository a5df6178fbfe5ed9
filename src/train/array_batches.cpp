// Batches of arrays in memory. In order, a batch is a view that moves along the array. In a permutation, its rows are copied into a buffer,
// by the threads that then run the step and find them in their caches (ADR 0018). Neither allocates anything after the first batch.
#include <algorithm>
#include <numeric>
#include <sstream>

#include <tandem/train.hpp>

#include "base/text.hpp"
#include "data/elements.hpp"
#include "data/random.hpp"
#include "frontend/memory.hpp"
#include "frontend/rows.hpp"

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
  Views(const ArraySlice& slice, int64_t batch_size)
      : ArrayBatches(slice, batch_size), views_(arrays_.begin(), arrays_.end()), rest_(arrays_.begin(), arrays_.end()) {}
  bool next() override {
    const int64_t count = advance();
    if (count == 0) return false;
    batch_.clear();
    for (frontend::RowWindow& view : count == batch_size_ ? views_ : rest_) batch_.push_back(&view.show(first_ + begin_, count));
    return true;
  }

 private:
  std::vector<frontend::RowWindow> views_, rest_;  // of whole batches, and of the last one
};

// A buffer for each array, which the rows of a batch are copied into.
class Gathered final : public ArrayBatches {
 public:
  Gathered(const ArraySlice& slice, int64_t batch_size, uint64_t seed)
      : ArrayBatches(slice, batch_size),
        seed_(seed),
        order_(static_cast<size_t>(rows_)),
        stream_(frontend::host_device().stream(device::StreamKind::Compute)) {
    for (const Tensor& t : arrays_) buffers_.emplace_back(t, first_, std::min(batch_size_, rows_));
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
    const std::span<const int64_t> rows = std::span(order_).subspan(static_cast<size_t>(begin_), static_cast<size_t>(count));
    for (frontend::RowBuffer& b : buffers_) batch_.push_back(&b.fill(rows, stream_));
    stream_.synchronize();
    return true;
  }

 protected:
  int64_t number_of(int64_t at) const override { return order_[static_cast<size_t>(at)]; }

 private:
  // Fisher and Yates; the same for the same seed and walk, so that a place in it can be found again.
  void permute() {
    std::iota(order_.begin(), order_.end(), int64_t{0});
    data::Random random = data::Random::of({seed_, static_cast<uint64_t>(walk_)});
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
  }

  const uint64_t seed_;
  std::vector<int64_t> order_;
  device::Stream& stream_;
  std::vector<frontend::RowBuffer> buffers_;
};

}  // namespace

std::unique_ptr<Batches> batches_of(const ArraySlice& slice, int64_t batch_size, Order order, uint64_t seed) {
  if (order == Order::Shuffled) return std::make_unique<Gathered>(slice, batch_size, seed);
  return std::make_unique<Views>(slice, batch_size);
}

}  // namespace tandem::train
