// What this thread is doing: the function that it traces, the tapes that record, and whose lines errors name. One place, so that an eager
// op looks once.
#pragma once
#include <cstdint>
#include <source_location>

#include <tandem/error.hpp>

namespace tandem::frontend {

class Tracer;
class TapeImpl;

struct ThreadState {
  Tracer* tracer = nullptr;  // innermost; null: ops compute at once
  TapeImpl* tape = nullptr;  // the innermost that records; a list through TapeImpl::outer
  bool in_library = false;   // what is written in C++ with ops is at work, such as a layer: its lines say nothing to the user
  Location caller;           // then: the line of the user's that called it
  uint32_t number = 0;       // of this thread, when somebody has asked
  int32_t device = -1;       // that a scope asks for, as the engine numbers them; -1: none
  int host_calls = 0;        // how many calls of the host program this thread is inside of, one in the other
};
extern constinit thread_local ThreadState thread_state;

uint32_t new_thread_number();
// Never 0; no two threads that live at one time have the same.
inline uint32_t thread_number() {
  if (thread_state.number == 0) [[unlikely]]
    thread_state.number = new_thread_number();
  return thread_state.number;
}

// The line that nodes and errors name for something asked for at `own`.
inline Location named_line(const Location& own) { return thread_state.in_library ? thread_state.caller : own; }

// While it lives, this thread's ops compute at once and no tape hears of them, whatever it was doing: for values that belong to no trace.
class EagerScope {
 public:
  EagerScope() : tracer_(thread_state.tracer), tape_(thread_state.tape) { thread_state.tracer = nullptr, thread_state.tape = nullptr; }
  ~EagerScope() { thread_state.tracer = tracer_, thread_state.tape = tape_; }
  EagerScope(const EagerScope&) = delete;
  EagerScope& operator=(const EagerScope&) = delete;

 private:
  Tracer* tracer_;
  TapeImpl* tape_;
};

// While it lives, what this thread does is asked of that device; -1: of none.
class WishScope {
 public:
  explicit WishScope(int32_t device) : outer_(thread_state.device) { thread_state.device = device; }
  ~WishScope() { thread_state.device = outer_; }
  WishScope(const WishScope&) = delete;
  WishScope& operator=(const WishScope&) = delete;

 private:
  int32_t outer_;
};

class LineScope {
 public:
  LineScope(const LineScope&) = delete;
  LineScope& operator=(const LineScope&) = delete;

 protected:
  LineScope(bool in_library, const Location& caller) : in_library_(thread_state.in_library), caller_(thread_state.caller) {
    thread_state.in_library = in_library, thread_state.caller = caller;
  }
  ~LineScope() { thread_state.in_library = in_library_, thread_state.caller = caller_; }

 private:
  bool in_library_;
  Location caller_;
};

// While it lives, the library's own code runs for a call at `where`, or at a line that is not known. Inside another one that one's line
// stays: `where` is then ours.
class LibraryScope : public LineScope {
 public:
  LibraryScope() : LineScope(true, named_line({})) {}
  explicit LibraryScope(const std::source_location& where) : LineScope(true, named_line(Location::of(where))) {}
};

// While it lives, the user's own code runs, called by the library: its lines are named again.
class UserScope : public LineScope {
 public:
  UserScope() : LineScope(false, {}) {}
};

}  // namespace tandem::frontend
