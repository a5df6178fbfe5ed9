// TrainingLoop: the steps of fit, evaluate and predict without their callbacks. Whoever wants to do something between steps, also from
// another language, calls run() for as many steps as may go by until then; in between nothing but compiled code runs.
#pragma once
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tandem/nn/model.hpp>

namespace tandem::nn {

class TrainingLoop {
 public:
  // Arrays are read where they lie: rows in order as views, rows in a permutation through a buffer of one batch.
  using Where = std::source_location;
  TrainingLoop(const Model& model, Run::Kind kind, const std::vector<Tensor>& x, const std::vector<Tensor>& y,
               const FitOptions& options = {}, Where where = Where::current());
  TrainingLoop(const Model& model, Run::Kind kind, const data::Dataset& batches, const FitOptions& options = {},
               Where where = Where::current());
  TrainingLoop(TrainingLoop&&) noexcept;
  TrainingLoop& operator=(TrainingLoop&&) noexcept;
  ~TrainingLoop();

  void begin_epoch();  // metrics start anew; the data too, unless steps_per_epoch left something of it
  // Runs steps until so many are done, so many seconds have passed, the epoch is at its end, or Ctrl-C was pressed during a fit. How many.
  int64_t run(int64_t steps = std::numeric_limits<int64_t>::max(), double seconds = std::numeric_limits<double>::infinity(),
              Where where = Where::current());
  bool at_end() const;                   // of the epoch
  int64_t step() const;                  // done in this epoch
  std::optional<int64_t> steps() const;  // of an epoch, if it is known
  Logs logs() const;                     // of the steps of this epoch
  std::vector<Tensor> take_predictions();

  // The exact place, metrics included; a loop over the same data goes on from there.
  std::string position() const;
  void restore(const std::string& position);

  struct Impl;

 private:
  static std::unique_ptr<Impl> loop_over(const Model& model, Run::Kind kind, const std::vector<Tensor>& x, const std::vector<Tensor>& y,
                                         const FitOptions& options);
  static std::unique_ptr<Impl> loop_over(const Model& model, Run::Kind kind, const data::Dataset& dataset, const FitOptions& options);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::nn
