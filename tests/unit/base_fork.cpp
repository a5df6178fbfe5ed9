// A fork waits for the engine, and its child is sound or told that it is not.
#include "base/fork.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include <tandem/error.hpp>

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

// The exit code of a forked child that ends with what `work` gives.
int child(const std::function<int()>& work) {
  const pid_t pid = fork();
  if (pid == 0) _exit(work());
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int is_told() {
  try {
    require_sound_fork();
    return 0;
  } catch (const UserError& e) {
    return e.code() == ErrorCode::FailedPrecondition ? 1 : 2;
  }
}

// A thread that is inside of a scope from start() until the end of its life.
class Inside {
 public:
  explicit Inside(const std::function<void(const std::function<void()>& stay)>& enter) {
    std::promise<void> entered;
    thread_ = std::thread([&, enter] { enter([&] { entered.set_value(), leave_.get_future().wait(); }); });
    entered.get_future().wait();
  }
  ~Inside() {
    leave_.set_value();
    thread_.join();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  std::promise<void> leave_;
  std::thread thread_;
};

TEST(Fork, OnlyTheChildCountsIt) {
  {
    const Working once(Working::Thread::Caller);
  }
  const uint32_t before = fork_count();
  EXPECT_EQ(child([&] { return static_cast<int>(fork_count() - before); }), 1);
  EXPECT_EQ(fork_count(), before);
}

TEST(Fork, AChildIsSoundWhenNobodyElseWorks) {
  const Working own_call(Working::Thread::Caller);  // the thread that forks goes on in the child
  EXPECT_EQ(child(is_told), 0);
}

TEST(Fork, AChildBesideACallIsTold) {
  const Inside busy([](const auto& stay) {
    const Working working(Working::Thread::Caller);
    stay();
  });
  EXPECT_EQ(child(is_told), 1);
  EXPECT_EQ(is_told(), 0);  // the parent may go on
}

TEST(Fork, AForkWaitsForTheEnginesOwnThreads) {
  std::atomic<bool> works = false;
  std::thread own([&] {
    const Working working(Working::Thread::Own);
    works = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // longer than it waits for callers
  });
  while (!works) std::this_thread::yield();
  EXPECT_EQ(child(is_told), 0);
  own.join();
}

TEST(Fork, NobodyWaitsForAThreadThatVisitsTheProgram) {
  const Inside visiting([](const auto& stay) {
    const Working working(Working::Thread::Own);
    const Visiting program;
    stay();
  });
  const auto start = Clock::now();
  EXPECT_EQ(child(is_told), 0);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(1));
}

}  // namespace
}  // namespace tandem
