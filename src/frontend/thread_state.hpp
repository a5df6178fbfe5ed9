// What this thread is doing: the function that it traces, the tapes that record. One place, so that an eager op looks once.
#pragma once

namespace tandem::frontend {

class Tracer;
class TapeImpl;

struct ThreadState {
  Tracer* tracer = nullptr;  // innermost; null: ops compute at once
  TapeImpl* tape = nullptr;  // the innermost that records; a list through TapeImpl::outer
};
extern constinit thread_local ThreadState thread_state;

// While it lives, this thread's ops compute at once and no tape hears of them, whatever it was doing: for values that belong to no trace.
class EagerScope {
 public:
  EagerScope() : outer_(thread_state) { thread_state = {}; }
  ~EagerScope() { thread_state = outer_; }
  EagerScope(const EagerScope&) = delete;
  EagerScope& operator=(const EagerScope&) = delete;

 private:
  ThreadState outer_;
};

}  // namespace tandem::frontend
