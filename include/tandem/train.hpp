// StepLoop: a compiled step over batches, for any step and any source of them. Model::fit and other front-ends run on it: whoever wants to
// do something between steps calls run() for as many steps as may go by until then; in between nothing but compiled code runs.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include <tandem/data.hpp>
#include <tandem/function.hpp>

namespace tandem::train {

// Where the batches of a loop come from.
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
// Arrays are read where they lie: rows in order as views, rows in a permutation through a buffer of one batch.
std::unique_ptr<Batches> batches_of(const ArraySlice& slice, int64_t batch_size, Order order, uint64_t seed);
std::unique_ptr<Batches> batches_of(const data::Dataset& dataset, size_t components);  // the first ones of each element; 0: all

struct LoopOptions {
  std::string name = "fit";                                    // of the loop, in messages
  std::optional<int64_t> steps_per_epoch = {};                 // default: a walk over the data
  std::function<void(const Batches&)> before = {};             // sees each batch before its step, and refuses it by throwing
  std::function<void(const std::vector<Tensor>&)> after = {};  // sees the results of each step
  std::function<bool()> stops = {};                            // asked before each step
};

class StepLoop {
 public:
  using Where = std::source_location;
  StepLoop(FlatCallable step, std::unique_ptr<Batches> batches, LoopOptions options = {});

  // The data starts anew, unless steps_per_epoch left something of it.
  void begin_epoch();
  // Runs steps until so many are done, so many seconds have passed, the epoch is at its end, or `stops` says so. How many.
  int64_t run(int64_t steps = std::numeric_limits<int64_t>::max(), double seconds = std::numeric_limits<double>::infinity(),
              Where where = Where::current());
  bool at_end() const { return ended_; }  // of the epoch
  int64_t step() const { return done_; }  // done in this epoch
  std::optional<int64_t> steps() const;   // of an epoch, if it is known
  const Batches& batches() const { return *batches_; }
  const std::vector<Tensor>& results() const { return results_; }  // of the last step

  // The exact place; a loop over the same data goes on from there.
  std::string position() const;
  void restore(const std::string& position);

 private:
  void begin_walk();
  void take_batch();
  bool take_step();
  void end_of_data();

  FlatCallable step_;
  std::unique_ptr<Batches> batches_;
  LoopOptions options_;
  std::vector<Tensor> results_;
  uint64_t epochs_ = 0;
  int64_t left_ = 0;                     // when run() returned in the middle of an epoch, for profiles
  int64_t done_ = 0, walked_ = 0;        // steps of this epoch, and of this walk over the data
  bool ended_ = true, walking_ = false;  // the epoch; whether there is more of the walk
};

}  // namespace tandem::train
