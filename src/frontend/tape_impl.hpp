// What a tape remembers: for each recorded call its operands and results, as tensors. Nothing of a graph is built until a gradient is
// asked for, so recording stays cheap, and it is the same whether tensors have numbers or are traced.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <tandem/tape.hpp>

#include "frontend/thread_state.hpp"
#include "ir/attr.hpp"
#include "ir/graph.hpp"

namespace tandem::frontend {

class TensorImpl;

// Gradients of an entry's outputs, all defined, to those of its inputs, of which each may be undefined.
using Backward = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// One op, or a whole graph: a compiled function that was called, or the gradient that another tape computed; or something that says itself
// how gradients go back through it.
struct TapeEntry {
  const ir::OpDef* op = nullptr;
  ir::GraphRef graph;
  ir::Attrs attrs;
  std::vector<Tensor> inputs, outputs;  // an undefined output is not followed: state that a function assigned
  Location location;
  std::shared_ptr<const Backward> backward = nullptr;  // instead of op and graph
  int32_t device = -1;                                 // that was asked for
};

// A thread's tapes are a list that only that thread walks and changes. The list owns them too: one that stops is marked, from whatever
// thread, and leaves the list when its own thread looks at it next, or ends.
class TapeImpl {
 public:
  static std::shared_ptr<TapeImpl> start(const TapeOptions& options);  // it records from now on
  explicit TapeImpl(const TapeOptions& options);
  TapeImpl(const TapeImpl&) = delete;
  TapeImpl& operator=(const TapeImpl&) = delete;

  void watch(const Tensor& t);
  void watch(const Variable& v, const Tensor& value);
  std::vector<Tensor> gradients(std::span<const Tensor> targets, std::span<const Source> sources, const GradientOptions& options,
                                Location where);

  std::vector<Tensor> stacked_gradients(const Tensor& target, std::span<const Source> sources, const Tensor& stack, Location where);

  // For every tape of this thread that records in the present trace (or outside of any).
  static void record_op(const ir::OpDef& op, std::span<const Tensor> inputs, std::span<const Tensor> outputs, const ir::Attrs& attrs,
                        Location where);
  static void record_graph(const ir::GraphRef& graph, std::span<const Tensor> inputs, std::span<const Tensor> outputs, Location where);
  static void record_custom(const TapeEntry& entry);
  static void watch_read(const Variable& v, const Tensor& value);
  static bool any_records();
  static bool any_records_outside();  // of every trace: whoever called what is being traced will ask for gradients of it
  void stop();
  static void resume(const std::shared_ptr<TapeImpl>& tape);
  void reset();
  const std::vector<Variable>& watched_variables() const { return read_; }
  const Tensor& first_value(const Variable& v) const;  // of one of them: what was read first

  int paused = 0;
  bool keeps_entries = true;  // false: only hears which variables are read

 private:
  bool is_recording() const;
  bool follows(std::span<const Tensor> inputs) const;
  void record(TapeEntry entry);
  void begin_gradient(std::span<const Tensor> targets);  // UserError when there can be none
  void end_gradient();                                   // a tape that is not persistent forgets
  static TapeImpl* first();                              // of this thread's list, after those that have stopped were taken out
  struct ListEnd;
  // The variables' watched values in place of the variables, and for each source how many there are.
  std::vector<Tensor> flattened(std::span<const Source> sources, std::vector<size_t>& counts) const;

  const TapeOptions options_;
  const uint64_t tracer_;           // the trace it belongs to, 0: none
  std::shared_ptr<TapeImpl> self_;  // while it is in its thread's list
  TapeImpl* outer_ = nullptr;       // the next one there
  std::atomic<bool> stopped_{false};
  bool used_ = false;
  std::vector<TapeEntry> entries_;
  std::vector<Tensor> watched_;                                  // keeps their addresses theirs
  std::unordered_set<const TensorImpl*> followed_;               // watched or computed from something watched
  std::unordered_map<uint64_t, std::vector<Tensor>> variables_;  // by a variable's id: the values that were read
  std::vector<Variable> read_;                                   // those variables, in the order of their first reading
};

}  // namespace tandem::frontend
