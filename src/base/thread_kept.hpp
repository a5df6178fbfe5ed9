// Something that each thread keeps for itself between calls, such as memory to use again. Our functions may be called when the thread's
// locals are already destroyed (from `atexit`, or from a destructor of the user's own thread_local), and must work then too.
#pragma once

namespace tandem {

// This thread's T, made on first use; null once it has been destroyed: the caller then does without. `Tag` tells several of one type apart.
template <class T, class Tag = T> T* thread_kept() {
  // Has no destructor, so it can be read until the thread's very end.
  static thread_local constinit bool is_gone = false;
  struct Holder {
    T value{};
    ~Holder() { is_gone = true; }
  };
  if (is_gone) [[unlikely]]
    return nullptr;
  static thread_local Holder holder;
  return &holder.value;
}

}  // namespace tandem
