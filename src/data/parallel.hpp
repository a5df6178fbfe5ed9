// ParallelWalk: a stage of one input whose elements are computed each on its own: at once by the reader, or ahead by threads.
#pragma once
#include <memory>
#include <optional>

#include "data/ahead.hpp"
#include "data/node.hpp"

namespace tandem::data {

struct ParallelOptions {
  int64_t calls = 1;  // 1: no threads, computed when asked for
  bool deterministic = true;
};

// A final class calls stop() in its destructor: threads use its members.
class ParallelWalk : public Walk {
 public:
  ParallelWalk(const Node& node, const Scope& scope, ParallelOptions options);

 protected:
  virtual bool pull(Element& element) = 0;     // in order, one thread at a time
  virtual void compute(Element& element) = 0;  // by any thread
  virtual void save_input(Writer& w);          // the input, and what pull keeps
  virtual void restore_input(Reader& r);
  Walk& input() { return *input_; }
  void stop() { ahead_.reset(); }

  bool next(Element& element) final;
  void save(Writer& w) final;
  void restore(Reader& r) final;

 protected:
  // For stages that read their input in another way.
  ParallelWalk(const Node& node, const Scope& scope, ParallelOptions options, std::nullptr_t);
  Scope input_scope(const Scope& scope) const;

 private:
  const Node& description_;
  std::optional<Ahead> ahead_;
  std::unique_ptr<Walk> input_;
};

}  // namespace tandem::data
