#include "engine/improvement.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <thread>

#include "base/fork.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "plan/schedule.hpp"

namespace tandem::engine {
namespace {

constexpr int kNiceness = 10;         // the step itself comes first
constexpr double kWorthwhile = 0.99;  // of the time of a step, below which another plan is taken

struct Cancelled {};

}  // namespace

// Shared by who asked and the thread that looks: either may go first.
class Improvement::Search {
 public:
  Search(std::shared_ptr<const Placed> where, plan::Request request, Devices devices, size_t own_pinned_bytes)
      : where_(std::move(where)), request_(std::move(request)), devices_(std::move(devices)), own_pinned_bytes_(own_pinned_bytes) {}

  void run() {
    std::optional<Planned> found;
    try {
      devices_.is_enough = [this] {
        if (is_cancelled_) throw Cancelled();
        return false;
      };
      found = planned(request_, devices_, Times::IfNeeded, own_pinned_bytes_);
    } catch (const Cancelled&) {         // NOLINT: nobody asks any more
    } catch (const std::exception& e) {  // the plan in use stays
      if (log::enabled(log::Topic::Plan)) log::write(log::Topic::Plan, cat("no better plan: ", e.what()));
    }
    std::lock_guard lock(mutex_);
    found_ = std::move(found);
    is_done_ = true;
  }
  void cancel() { is_cancelled_ = true; }
  bool is_done() const { return is_done_; }
  std::optional<Planned> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(found_, {});
  }

 private:
  const std::shared_ptr<const Placed> where_;  // which has the request's graph
  const plan::Request request_;
  Devices devices_;
  const size_t own_pinned_bytes_;
  std::atomic<bool> is_cancelled_{false}, is_done_{false};
  std::mutex mutex_;
  std::optional<Planned> found_;
};

// The one thread that looks for plans, one after the other. It starts with the first search and ends with the program.
class Improvement::Worker {
 public:
  static void give(std::shared_ptr<Search> search) {
    static Worker& worker = *new Worker;
    if (fork_count() != worker.forks_) return;  // in a child there is no such thread
    std::lock_guard lock(worker.mutex_);
    worker.waiting_.push_back(std::move(search));
    worker.changed_.notify_one();
  }

 private:
  Worker() : thread_([this] { loop(); }) {
    current() = this;
    std::atexit([] { current()->end(); });
  }
  static Worker*& current() {
    static Worker* worker = nullptr;
    return worker;
  }
  void loop() {
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness);  // of this thread alone, on Linux
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
      if (ends_) return;
      running_ = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      running_->run();
      lock.lock();
      running_.reset();
    }
  }
  // The code and the devices that a search uses are there until here.
  void end() {
    if (fork_count() != forks_) return;
    {
      std::lock_guard lock(mutex_);
      ends_ = true;
      if (running_) running_->cancel();
      changed_.notify_one();
    }
    thread_.join();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Search>> waiting_;
  std::shared_ptr<Search> running_;
  bool ends_ = false;
  const uint32_t forks_ = fork_count();
  std::thread thread_;  // last: it uses all of the above
};

Improvement::Improvement(std::shared_ptr<const Placed> where, plan::Request request, const Devices& devices, const Planned& in_use,
                         double search_seconds)
    : seconds_(in_use.plan.seconds), left_seconds_(search_seconds) {
  Devices patient = devices;
  patient.finds_least = false;
  patient.times_kernels = false;
  patient.plan_effort = static_cast<int64_t>(search_seconds * static_cast<double>(plan::kScheduleStepsPerSecond));
  search_ = std::make_shared<Search>(std::move(where), std::move(request), std::move(patient), in_use.pinned_bytes);
}
Improvement::~Improvement() { search_->cancel(); }

bool Improvement::count_run() {
  if (is_given_) return search_->is_done();
  left_seconds_ -= seconds_;
  if (left_seconds_ > 0) return false;
  is_given_ = true;
  Worker::give(search_);
  return false;
}

std::optional<Planned> Improvement::take() {
  std::optional<Planned> found = search_->take();
  if (!found || !(found->plan.seconds < kWorthwhile * seconds_)) return {};
  return found;
}

}  // namespace tandem::engine
