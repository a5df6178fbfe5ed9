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

}  // namespace tandem::frontend
