// Where the batches of a loop come from: arrays in memory, or a dataset.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tandem/data.hpp>
#include <tandem/function.hpp>

namespace tandem::nn {

class Batches {
 public:
  virtual ~Batches() = default;
  const std::vector<Spec>& specs() const { return specs_; }  // the batch is the symbol "b"
  virtual std::optional<int64_t> steps() const = 0;          // of one walk over the data, if it is known
  virtual std::optional<int64_t> rows() const = 0;
  virtual void begin() = 0;                                        // a new walk
  virtual bool next() = 0;                                         // false at its end
  std::span<const Tensor* const> batch() const { return batch_; }  // valid until next()
  virtual std::string place(int64_t row) const = 0;                // where a row of this batch came from: "row 17"
  virtual std::string save() const = 0;
  virtual void restore(const std::string& position) = 0;

 protected:
  std::vector<Spec> specs_;
  std::vector<const Tensor*> batch_;
};

enum class Order : uint8_t { AsItIs, Shuffled };
// Rows [first, first + count) of each array.
struct ArraySlice {
  std::vector<Tensor> arrays;
  int64_t first = 0, count = 0;
};
std::unique_ptr<Batches> batches_of(const ArraySlice& slice, int64_t batch_size, Order order, uint64_t seed);
std::unique_ptr<Batches> batches_of(const data::Dataset& dataset, size_t components);  // the first ones of each element

}  // namespace tandem::nn
