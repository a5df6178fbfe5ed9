// fork(): what a child may do. It has the one thread that called; what the others had locked or half written at that moment stays so. So
// fork waits a moment for the others to leave the engine, and a child of one that would not wait any longer says so instead of hanging.
#pragma once
#include <cstdint>

namespace tandem {

// While it lives, its thread is at work in the engine and may hold its locks. They may be nested.
class Working {
 public:
  // Own: one of the engine's threads, beside which another may fork at any moment. Caller: one of the host program's, which has a lock of
  // its own against that when this begins; that is cheaper.
  enum class Thread { Own, Caller };
  explicit Working(Thread thread);
  ~Working();
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;
};

// While it lives, a thread of the engine's own waits for the host program or runs its code, with no lock that a child could want: a fork
// need not wait for it. On other threads it does nothing.
class Visiting {
 public:
  Visiting();
  ~Visiting();
  Visiting(const Visiting&) = delete;
  Visiting& operator=(const Visiting&) = delete;

 private:
  int depth_;  // of what was interrupted; 0 for nothing
};

// How often this process was forked from one that had used a Working: another number than before says that other threads are gone.
uint32_t fork_count();
// In a child that was forked while another thread was at work: UserError. Otherwise nothing.
void require_sound_fork();

}  // namespace tandem
