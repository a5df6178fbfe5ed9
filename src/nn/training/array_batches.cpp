// Batches of arrays in memory. In order, a batch is a view that moves along the array. In a permutation, rows are gathered into one of two
// buffers by a thread of its own while the step reads the other. Neither allocates anything after the first batch.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>

#include "base/text.hpp"
#include "data/random.hpp"
#include "frontend/tensor_impl.hpp"
#include "nn/training/batches.hpp"

namespace tandem::nn {
namespace {

constexpr size_t kAlignment = 64;

Spec batch_spec(const Tensor& array) {
  Dims dims = array.dims();
  dims[0] = Dim::symbol("b");
  return {array.dtype(), dims};
}

bool has_dense_rows(const Tensor& t) {
  int64_t expected = 1;
  const Shape shape = t.shape();
  const Strides strides = t.strides();
  for (size_t i = shape.size(); i-- > 1;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
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

// Two buffers that a thread fills in turn.
class Gathered final : public ArrayBatches {
 public:
  Gathered(const ArraySlice& slice, int64_t batch_size, uint64_t seed)
      : ArrayBatches(slice, batch_size), seed_(seed), order_(static_cast<size_t>(rows_)) {
    for (Slot& slot : slots_) {
      for (const Tensor& t : arrays_) {
        const Shape full = with_rows(t.shape(), std::min(batch_size_, rows_)), rest = with_rows(t.shape(), rows_ % batch_size_);
        const std::shared_ptr<std::byte> memory(new (std::align_val_t(kAlignment)) std::byte[byte_size(full, t.dtype()) + 1],
                                                [](std::byte* p) { operator delete[](p, std::align_val_t(kAlignment)); });
        slot.memory.push_back(memory);
        slot.full.push_back(Tensor::view(memory.get(), t.dtype(), full, {}, [memory] {}));
        slot.rest.push_back(Tensor::view(memory.get(), t.dtype(), rest, {}, [memory] {}));
      }
    }
    for (const Tensor& t : arrays_) {
      const auto size = static_cast<int64_t>(size_of(t.dtype()));
      rows_of_.push_back({static_cast<const std::byte*>(t.raw_data()), t.strides()[0] * size,
                          static_cast<size_t>(rows_ ? t.size() / t.shape()[0] * size : 0)});
    }
  }
  ~Gathered() override { stop(); }

  void begin() override {
    stop();
    ArrayBatches::begin();
    start();
  }
  void restore(const std::string& position) override {
    stop();
    ArrayBatches::restore(position);
    start();
  }
  bool next() override {
    if (at_ >= rows_) return false;
    if (is_lent_) give_back();
    const uint32_t filled = filled_.load(std::memory_order_acquire);
    if (filled == taken_.load(std::memory_order_relaxed)) filled_.wait(filled, std::memory_order_acquire);
    const int64_t count = std::min(batch_size_, rows_ - at_);
    const Slot& slot = slots_[taken_.load(std::memory_order_relaxed) % kSlots];
    batch_.clear();
    for (const Tensor& t : count == batch_size_ || rows_ < batch_size_ ? slot.full : slot.rest) batch_.push_back(&t);
    is_lent_ = true;
    at_ += count;
    return true;
  }

 private:
  static constexpr uint32_t kSlots = 2;
  struct Slot {
    std::vector<std::shared_ptr<std::byte>> memory;
    std::vector<Tensor> full, rest;
  };
  struct Rows {
    const std::byte* data;
    int64_t stride;  // bytes
    size_t bytes;    // of one row
  };

  // Fisher and Yates; the same for the same seed and walk, so that a place in it can be found again.
  void permute() {
    std::iota(order_.begin(), order_.end(), int64_t{0});
    data::Random random = data::Random::of({seed_, static_cast<uint64_t>(walk_)});
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
  }

  void start() {
    permute();
    filled_ = taken_ = 0;
    is_lent_ = stopping_ = false;
    thread_ = std::thread([this, from = at_] { fill(from); });
  }
  void stop() {
    if (!thread_.joinable()) return;
    stopping_ = true;
    taken_.fetch_add(kSlots);  // whatever it waits for
    taken_.notify_one();
    thread_.join();
  }
  void give_back() {
    is_lent_ = false;
    taken_.fetch_add(1, std::memory_order_release);
    taken_.notify_one();
  }

  void fill(int64_t from) {
    uint32_t filled = 0;
    for (int64_t at = from; at < rows_; at += batch_size_, ++filled) {
      for (;;) {
        const uint32_t taken = taken_.load(std::memory_order_acquire);
        if (stopping_) return;
        if (filled - taken < kSlots) break;
        taken_.wait(taken, std::memory_order_acquire);
      }
      gather(at, slots_[filled % kSlots]);
      filled_.store(filled + 1, std::memory_order_release);
      filled_.notify_one();
    }
  }
  void gather(int64_t at, const Slot& slot) {
    const int64_t count = std::min(batch_size_, rows_ - at);
    for (size_t i = 0; i < rows_of_.size(); ++i) {
      const Rows& rows = rows_of_[i];
      std::byte* to = slot.memory[i].get();
      for (int64_t k = 0; k < count; ++k, to += rows.bytes)
        std::memcpy(to, rows.data + (first_ + order_[static_cast<size_t>(at + k)]) * rows.stride, rows.bytes);
    }
  }

  const uint64_t seed_;
  std::vector<int64_t> order_;
  std::vector<Rows> rows_of_;
  Slot slots_[kSlots];
  std::thread thread_;
  bool is_lent_ = false;  // the batch of the last next() is still in use
  std::atomic<bool> stopping_ = false;
  alignas(kAlignment) std::atomic<uint32_t> filled_ = 0;
  alignas(kAlignment) std::atomic<uint32_t> taken_ = 0;  // given back
};

}  // namespace

std::unique_ptr<Batches> batches_of(const ArraySlice& slice, int64_t batch_size, Order order, uint64_t seed) {
  if (order == Order::Shuffled) return std::make_unique<Gathered>(slice, batch_size, seed);
  return std::make_unique<Views>(slice, batch_size);
}

}  // namespace tandem::nn
