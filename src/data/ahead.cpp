#include "data/ahead.hpp"

#include <algorithm>

#include "base/caller_poll.hpp"
#include "base/cores.hpp"
#include "base/fork.hpp"
#include "base/text.hpp"
#include "base/thread_pool.hpp"
#include "data/elements.hpp"
#include "frontend/memory.hpp"
#include "frontend/variable_impl.hpp"

namespace tandem::data {
namespace {

constexpr int64_t kMostAhead = 512;  // of autotuned queues
// Of others. With fewer, threads wait whenever the reader has no core: 10 % of the images a second that two cores decode.
constexpr int64_t kAheadPerThread = 16;
// Handing something over costs about ten microseconds, so a block should be worth several of that, and not make a reader wait.
constexpr int64_t kShortBlockNs = 50'000, kLongBlockNs = 200'000, kMostInBlock = 64;
constexpr auto kStarvedWait = std::chrono::milliseconds(1);  // another queue's bytes may be given back without a word to this one

}  // namespace

void set_parallel(Stage& stage, const Context& context, int64_t asked) {
  if (stage.has_queue) return;
  if (asked == kAutotune && context.settings.autotune) {
    stage.parallel.high = std::max(2, context.settings.threads);
    stage.parallel.value = 2;  // an epoch may be over before one thread is seen to be too few
  }
  if (asked != kAutotune) {
    stage.parallel.low = stage.parallel.high = asked;
    stage.parallel.value = asked;
  }
}

void set_capacity(Stage& stage, const Context& context, int64_t asked) {
  if (std::exchange(stage.has_queue, true)) return;
  stage.capacity.value = asked == kAutotune ? 2 : asked;
  stage.capacity.low = asked == kAutotune ? 2 : asked;
  stage.capacity.high = asked == kAutotune && context.settings.autotune ? kMostAhead : stage.capacity.low;
}

int64_t capacity(const Stage& stage) {
  const int64_t own = stage.capacity.value.load(std::memory_order_relaxed);
  return own > 0 ? own
                 : kAheadPerThread * stage.parallel.value.load(std::memory_order_relaxed) * stage.block.load(std::memory_order_relaxed);
}

Ahead::Ahead(Stage& stage, Context& context, const std::stop_token& link) : stage_(stage), context_(context), link_(link, Link{stop_}) {}

Ahead::~Ahead() {
  stop_.request_stop();
  workers_.clear();
  size_t bytes = 0, count = 0;
  ready_.push_back(std::move(front_));
  for (const Block& block : ready_)
    for (size_t i = block.taken; i < block.results.size(); ++i, ++count) bytes += block.results[i].bytes;
  context_.budget.give(bytes + reserved_);
  stage_.queued.fetch_sub(static_cast<int64_t>(count));
  stage_.queued_bytes.fetch_sub(static_cast<int64_t>(bytes));
}

void Ahead::add_workers() {
  const auto wanted = static_cast<size_t>(stage_.parallel.value.load(std::memory_order_relaxed));
  while (workers_.size() < wanted && !ended_) {
    const auto number = static_cast<int64_t>(workers_.size());
    context_.has_threads = true;
    workers_.emplace_back([this, number] { run(number); });
    cores::keep(workers_.back().native_handle(), context_.settings.cores);
  }
}

Ahead::Grant Ahead::may_pull(int64_t worker) {
  const int64_t largest = stage_.largest_bytes.load(std::memory_order_relaxed);
  if (pulling_ || paused_ || largest < 0 || worker >= stage_.parallel.value.load(std::memory_order_relaxed)) return {};
  // A queue of a given size is filled in two halves at the most, so that one can be read while the other is made.
  const int64_t own = stage_.capacity.value.load(std::memory_order_relaxed);
  const int64_t block = stage_.block.load(std::memory_order_relaxed);
  const int64_t room = capacity(stage_) - running_ - ready_count_;
  const int64_t count = std::min(own > 0 ? std::min(block, std::max<int64_t>(1, own / 2)) : block, room);
  if (count <= 0) return {};
  const auto bytes = static_cast<size_t>(largest);
  starved_ = false;
  if (context_.budget.take(bytes * static_cast<size_t>(count))) return {count, bytes * static_cast<size_t>(count)};
  if (context_.budget.take(bytes)) return {1, bytes};
  starved_ = true;
  return {};
}

bool Ahead::must_make() const {
  const bool is_idle = !pulling_ && running_ == 0 && ready_.empty() && !ended_;
  return is_idle && (starved_ || stage_.largest_bytes.load(std::memory_order_relaxed) < 0);
}

// Puts elements into the block; false when the input ended, or everything does.
bool Ahead::pull(Block& block, int64_t count) {
  const int64_t from = now_ns();
  while (static_cast<int64_t>(block.results.size()) < count && (block.results.empty() || now_ns() - from < kLongBlockNs)) {
    Result result;
    try {
      if (!work_.pull(result.element)) return false;
    } catch (const Cancelled&) {
      return false;
    } catch (...) {
      result.error = std::current_exception();
    }
    block.results.push_back(std::move(result));
  }
  return true;
}

void Ahead::compute(Block& block) {
  const SelfTimer timer(stage_);
  for (Result& result : block.results) {
    try {
      if (!result.error && work_.compute) work_.compute(result.element);
    } catch (...) {
      result.error = std::current_exception();
    }
    if (result.error) result.element.clear();
    result.bytes = bytes_of(result.element);
  }
}

Ahead::Block Ahead::make(std::unique_lock<std::mutex>& lock, int64_t count) {
  Block block{next_ticket_++, {}, 0};
  pulling_ = true;
  running_ += count;
  lock.unlock();
  const Working working(Working::Thread::Own);  // not with the lock: it may wait

  const int64_t from = now_ns();
  const bool goes_on = pull(block, count);
  const auto pulled = static_cast<int64_t>(block.results.size());
  lock.lock();
  pulling_ = false;
  if (!goes_on) ended_ = true;
  changed_.notify_all();  // the next block may be pulled meanwhile
  lock.unlock();
  compute(block);
  lock.lock();
  const int64_t passed = now_ns() - from;
  const int64_t size = stage_.block.load(std::memory_order_relaxed);
  if (passed < kShortBlockNs && pulled == size) stage_.block.store(std::min(2 * size, kMostInBlock), std::memory_order_relaxed);
  if (passed > kLongBlockNs) stage_.block.store(std::max<int64_t>(1, size / 2), std::memory_order_relaxed);
  running_ -= count;
  for (const Result& r : block.results)
    if (!r.error) learn_size(r.bytes);
  return block;
}

void Ahead::run(int64_t worker) {
  cores::claim_this_thread();
  if (cores::pipelines_have_their_own()) ThreadPool::keep_this_thread_apart();
  frontend::element_reader = &context_.reader;
  const frontend::HostScope on_host;
  std::unique_lock lock(mutex_);
  for (;;) {
    Grant grant;
    while (!ended_ && !stop_.stop_requested() && (grant = may_pull(worker)).count == 0) {
      if (reader_waits_ && must_make()) changed_.notify_all();
      if (starved_)
        changed_.wait_for(lock, kStarvedWait);
      else
        changed_.wait(lock, stop_.get_token(), [first = true]() mutable { return !std::exchange(first, false); });
    }
    if (grant.count == 0) return;
    reserved_ += grant.bytes;
    Block block = make(lock, grant.count);
    put(std::move(block), grant.bytes);
  }
}

void Ahead::learn_size(size_t bytes) {
  int64_t largest = stage_.largest_bytes.load(std::memory_order_relaxed);
  while (largest < static_cast<int64_t>(bytes) &&
         !stage_.largest_bytes.compare_exchange_weak(largest, static_cast<int64_t>(bytes), std::memory_order_relaxed)) {
  }
}

void Ahead::put(Block block, size_t reserved) {
  size_t bytes = 0;
  for (const Result& r : block.results) bytes += r.bytes;
  reserved_ -= reserved;
  if (bytes > reserved) context_.budget.take_anyway(bytes - reserved);  // larger than all before: it is there, and is counted
  if (bytes < reserved) context_.budget.give(reserved - bytes);
  const auto count = static_cast<int64_t>(block.results.size());
  stage_.queued.fetch_add(count, std::memory_order_relaxed);
  stage_.queued_bytes.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  ready_count_ += count;
  auto place = ready_.end();
  if (work_.deterministic)
    while (place != ready_.begin() && std::prev(place)->ticket > block.ticket) --place;
  ready_.insert(place, std::move(block));
  changed_.notify_all();
}

bool Ahead::front_is_ready() const { return !ready_.empty() && (!work_.deterministic || ready_.front().ticket == next_out_); }

bool Ahead::is_ready() {
  if (front_.left() > 0) return true;
  std::lock_guard lock(mutex_);
  add_workers();
  return front_is_ready() || is_over() || must_make();
}

bool Ahead::next(Element& element) {
  while (front_.left() == 0) {  // the last block may have nothing in it
    std::unique_lock lock(mutex_);
    add_workers();
    stage_.fill_sum.fetch_add(ready_count_, std::memory_order_relaxed);
    stage_.fill_count.fetch_add(1, std::memory_order_relaxed);
    if (!front_is_ready()) {
      const WaitTimer timer(stage_);
      reader_waits_ = true;
      const auto is_done = [&] { return front_is_ready() || is_over() || must_make(); };
      while (caller_poll && !changed_.wait_for(lock, stop_.get_token(), kPollEvery, is_done) && !stop_.stop_requested()) {
        reader_waits_ = false;
        lock.unlock();
        caller_poll();
        lock.lock();
        reader_waits_ = true;
      }
      while (!caller_poll && !stop_.stop_requested() && !is_done()) {
        lock.unlock();
        {
          // A fork that waits for this thread keeps the workers from beginning, so it must not wait for it while it waits for them.
          const Visiting others;  // ends without the lock
          lock.lock();
          changed_.wait(lock, stop_.get_token(), is_done);
          lock.unlock();
        }
        lock.lock();
      }
      reader_waits_ = false;
      if (stop_.stop_requested()) throw Cancelled{};
    }
    if (is_over()) return false;
    if (must_make()) {
      front_ = make(lock, 1);
      for (Result& r : front_.results) r.bytes = 0;  // goes on at once: it is nothing that is kept
      stage_.queued.fetch_add(static_cast<int64_t>(front_.results.size()), std::memory_order_relaxed);
    } else {
      front_ = std::move(ready_.front());
      ready_.pop_front();
      ready_count_ -= static_cast<int64_t>(front_.results.size());
    }
    ++next_out_;
    changed_.notify_all();
  }
  Result result = std::move(front_.results[front_.taken++]);
  stage_.queued.fetch_sub(1, std::memory_order_relaxed);
  stage_.queued_bytes.fetch_sub(static_cast<int64_t>(result.bytes), std::memory_order_relaxed);
  context_.budget.give(result.bytes);
  if (result.error) std::rethrow_exception(result.error);
  element = std::move(result.element);
  return true;
}

void Ahead::save(Writer& w, const std::function<void()>& inputs) {
  std::unique_lock lock(mutex_);
  paused_ = true;
  w.afterwards([this] {
    std::lock_guard guard(mutex_);
    paused_ = false;
    changed_.notify_all();
  });
  changed_.wait(lock, [&] { return running_ == 0 && !pulling_; });
  w.put(ended_);
  w.put(static_cast<int64_t>(front_.left()) + ready_count_);
  const auto put_block = [&](const Block& block) {
    for (size_t i = block.taken; i < block.results.size(); ++i) {
      w.put(block.results[i].error);
      w.put(block.results[i].element);
    }
  };
  put_block(front_);
  for (const Block& block : ready_) put_block(block);
  inputs();  // nobody pulls: the lock may be held
}

void Ahead::restore(Reader& r, const std::optional<Specs>& declared, const std::function<void()>& inputs) {
  ended_ = r.boolean();
  const int64_t count = r.integer(0, INT64_MAX);
  for (int64_t i = 0; i < count; ++i) {
    Result result{{}, r.error(), 0};
    result.element = result.error ? r.element() : r.element(declared);
    result.bytes = bytes_of(result.element);
    context_.budget.take_anyway(result.bytes);
    if (!result.error) learn_size(result.bytes);
    stage_.queued.fetch_add(1);
    stage_.queued_bytes.fetch_add(static_cast<int64_t>(result.bytes));
    front_.results.push_back(std::move(result));
  }
  inputs();
}

}  // namespace tandem::data
