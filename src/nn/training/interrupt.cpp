#include "nn/training/interrupt.hpp"

#include <atomic>
#include <csignal>
#include <mutex>

namespace tandem::nn {
namespace {

std::atomic<bool> was_pressed = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");

std::mutex mutex;
int scopes = 0;
struct sigaction before;

void on_interrupt(int) { was_pressed.store(true, std::memory_order_relaxed); }

}  // namespace

InterruptScope::InterruptScope() {
  std::lock_guard guard(mutex);
  if (scopes++ > 0) return;
  was_pressed = false;
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);  // the second one finds the default
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before);
}

InterruptScope::~InterruptScope() {
  std::lock_guard guard(mutex);
  if (--scopes > 0) return;
  sigaction(SIGINT, &before, nullptr);
  was_pressed = false;
}

bool interrupted() { return was_pressed.load(std::memory_order_relaxed); }

}  // namespace tandem::nn
