#include "data/ahead.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "data/elements.hpp"

namespace tandem::data {
namespace {

constexpr int64_t kMostAhead = 512;                          // of autotuned queues
constexpr auto kStarvedWait = std::chrono::milliseconds(1);  // another queue's bytes may be given back without a word to this one

}  // namespace

void set_parallel(Stage& stage, const Context& context, int64_t asked) {
  if (stage.has_queue) return;
  if (asked == kAutotune && context.settings.autotune) stage.parallel.high = std::max(2, context.settings.threads);
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
  return own > 0 ? own : 2 * stage.parallel.value.load(std::memory_order_relaxed);
}

Ahead::Ahead(Stage& stage, Context& context, const std::stop_token& link) : stage_(stage), context_(context), link_(link, Link{stop_}) {}

Ahead::~Ahead() {
  stop_.request_stop();
  workers_.clear();
  int64_t bytes = 0;
  for (const Slot& s : ready_) bytes += static_cast<int64_t>(s.bytes);
  context_.budget.give(static_cast<size_t>(bytes) + reserved_);
  stage_.queued.fetch_sub(static_cast<int64_t>(ready_.size()));
  stage_.queued_bytes.fetch_sub(bytes);
}

void Ahead::add_workers() {
  const auto wanted = static_cast<size_t>(stage_.parallel.value.load(std::memory_order_relaxed));
  while (workers_.size() < wanted && !ended_) {
    const auto number = static_cast<int64_t>(workers_.size());
    workers_.emplace_back([this, number] { run(number); });
  }
}

bool Ahead::may_pull(int64_t worker) {
  starved_ = false;
  if (pulling_ || paused_ || worker >= stage_.parallel.value.load(std::memory_order_relaxed)) return false;
  const int64_t ahead = running_ + static_cast<int64_t>(ready_.size());
  if (ahead >= capacity(stage_)) return false;
  starved_ = !context_.budget.take(expected_, ahead == 0);
  return !starved_;
}

void Ahead::run(int64_t worker) {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (!ended_ && !may_pull(worker)) {
      if (stop_.stop_requested()) return;
      if (starved_)
        changed_.wait_for(lock, kStarvedWait);
      else
        changed_.wait(lock, stop_.get_token(), [&, first = true]() mutable { return !std::exchange(first, false); });
    }
    if (ended_ || stop_.stop_requested()) return;
    Slot slot{next_ticket_++, {}, nullptr, expected_};
    reserved_ += slot.bytes;
    pulling_ = true;
    ++running_;
    lock.unlock();

    bool has_element = true, cancelled = false;
    try {
      has_element = work_.pull(slot.element);
    } catch (const Cancelled&) {
      cancelled = true;
    } catch (...) {
      slot.error = std::current_exception();
    }
    lock.lock();
    pulling_ = false;
    if (!has_element || cancelled) {
      ended_ = ended_ || !has_element;
      --running_;
      --next_ticket_;  // nobody pulled since
      reserved_ -= slot.bytes;
      context_.budget.give(slot.bytes);
      changed_.notify_all();
      return;
    }
    if (work_.compute && !slot.error) {
      changed_.notify_all();  // the next one may be pulled meanwhile
      lock.unlock();
      try {
        const SelfTimer timer(stage_);
        work_.compute(slot.element);
      } catch (...) {
        slot.error = std::current_exception();
      }
      lock.lock();
    }
    put(std::move(slot));
  }
}

void Ahead::put(Slot slot) {
  const size_t reserved = slot.bytes;
  slot.bytes = slot.error ? 0 : bytes_of(slot.element);
  if (slot.error) slot.element.clear();
  reserved_ -= reserved;
  if (slot.bytes > reserved) context_.budget.take(slot.bytes - reserved, true);
  if (slot.bytes < reserved) context_.budget.give(reserved - slot.bytes);
  expected_ = std::max(expected_, slot.bytes);
  stage_.queued.fetch_add(1, std::memory_order_relaxed);
  stage_.queued_bytes.fetch_add(static_cast<int64_t>(slot.bytes), std::memory_order_relaxed);
  --running_;
  auto place = ready_.end();
  if (work_.deterministic)
    while (place != ready_.begin() && std::prev(place)->ticket > slot.ticket) --place;
  ready_.insert(place, std::move(slot));
  changed_.notify_all();
}

bool Ahead::front_is_ready() const { return !ready_.empty() && (!work_.deterministic || ready_.front().ticket == next_out_); }

bool Ahead::is_ready() {
  std::lock_guard lock(mutex_);
  add_workers();
  return front_is_ready() || (ended_ && running_ == 0);
}

bool Ahead::next(Element& element) {
  Slot slot{};
  {
    std::unique_lock lock(mutex_);
    add_workers();
    stage_.fill_sum.fetch_add(static_cast<int64_t>(ready_.size()), std::memory_order_relaxed);
    stage_.fill_count.fetch_add(1, std::memory_order_relaxed);
    if (!front_is_ready()) {
      const int64_t from = now_ns();
      changed_.wait(lock, stop_.get_token(), [&] { return front_is_ready() || (ended_ && running_ == 0 && ready_.empty()); });
      stage_.wait_ns.fetch_add(now_ns() - from, std::memory_order_relaxed);
      if (stop_.stop_requested()) throw Cancelled{};
    }
    if (ready_.empty()) return false;
    slot = std::move(ready_.front());
    ready_.pop_front();
    ++next_out_;
    stage_.queued.fetch_sub(1, std::memory_order_relaxed);
    stage_.queued_bytes.fetch_sub(static_cast<int64_t>(slot.bytes), std::memory_order_relaxed);
  }
  context_.budget.give(slot.bytes);
  changed_.notify_all();
  if (slot.error) std::rethrow_exception(slot.error);
  element = std::move(slot.element);
  return true;
}

void Ahead::save(Writer& w, const std::function<void()>& inputs) {
  std::unique_lock lock(mutex_);
  paused_ = true;
  changed_.wait(lock, [&] { return running_ == 0; });
  w.put(ended_);
  w.put(static_cast<int64_t>(ready_.size()));
  for (const Slot& s : ready_) {
    w.put(s.error);
    w.put(s.element);
  }
  inputs();  // nobody pulls: the lock may be held
  paused_ = false;
  changed_.notify_all();
}

void Ahead::restore(Reader& r, const std::function<void()>& inputs) {
  ended_ = r.boolean();
  const int64_t count = r.integer(0, INT64_MAX);
  for (int64_t i = 0; i < count; ++i) {
    Slot slot{next_ticket_++, {}, r.error(), 0};
    slot.element = r.element();
    slot.bytes = bytes_of(slot.element);
    context_.budget.take(slot.bytes, true);
    expected_ = std::max(expected_, slot.bytes);
    stage_.queued.fetch_add(1);
    stage_.queued_bytes.fetch_add(static_cast<int64_t>(slot.bytes));
    ready_.push_back(std::move(slot));
  }
  inputs();
}

}  // namespace tandem::data
