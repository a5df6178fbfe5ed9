#include "late_stream.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/text.hpp"
#include "late_program.hpp"

namespace tandem::late {
namespace {
constexpr uintptr_t kDeviceBit = uintptr_t{1} << 56;
constexpr uint64_t kDelayOneIn = 4;  // pieces of work
}  // namespace

void* to_device(void* host) { return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(host) | kDeviceBit); }
void* to_host(const void* device) { return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(device) & ~kDeviceBit); }

// ---- events ----

uint64_t LateEvent::State::record() {
  std::lock_guard lock(mutex);
  return ++recorded;
}
void LateEvent::State::happen(uint64_t ticket, std::exception_ptr e) {
  std::lock_guard lock(mutex);
  happened = std::max(happened, ticket);
  error = std::move(e);
  changed.notify_all();
}
std::exception_ptr LateEvent::State::wait(uint64_t ticket) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return happened >= ticket; });
  return error;
}
uint64_t LateEvent::State::last() {
  std::lock_guard lock(mutex);
  return recorded;
}
void LateEvent::synchronize() {
  const profile::Span waiting(profile::Kind::HostWait, "an event of late");
  if (const std::exception_ptr e = state_->wait(state_->last())) std::rethrow_exception(e);
}
bool LateEvent::has_happened() const {
  std::lock_guard lock(state_->mutex);
  return state_->happened >= state_->recorded;
}

// ---- the queue ----

LateStream::LateStream(Memories& memories, device::StreamKind kind, uint64_t seed, int longest_delay_us)
    : memories_(memories),
      random_(seed),
      longest_delay_us_(longest_delay_us),
      track_(profile::Recorder::get().track("late", device::name(kind))),
      name_(cat("late ", device::name(kind))),
      thread_([this] { loop(); }) {
  profile::Recorder::get().join(*this);
}

LateStream::~LateStream() {
  profile::Recorder::get().leave(*this);
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void LateStream::push(Work work) {
  std::lock_guard lock(mutex_);
  queue_.push_back(std::move(work));
  changed_.notify_all();
}
void LateStream::add(std::function<void()> work, profile::Piece piece) { push({std::move(work), false, piece}); }

void LateStream::poison(void* block, size_t bytes) {
  push({[block, bytes] { std::memset(block, kPoison, bytes); }, true});
}

void LateStream::free(void* block) {
  push({[block] { std::free(block); }, true});
}

void LateStream::delay() {
  if (longest_delay_us_ == 0 || random_() % kDelayOneIn) return;
  std::this_thread::sleep_for(std::chrono::microseconds(random_() % static_cast<uint64_t>(longest_delay_us_ + 1)));
}

void LateStream::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Work work = std::move(queue_.front());
    queue_.pop_front();
    const bool runs = work.always || !error_;
    busy_ = true;
    lock.unlock();
    std::exception_ptr failed;
    if (runs) {
      delay();
      const profile::Time begin = work.piece ? profile::now() : 0;
      try {
        work.run();
      } catch (...) {
        failed = std::current_exception();
      }
      if (work.piece) work.piece.done(begin, profile::now());
    }
    work.run = nullptr;  // what it holds goes before anybody is told that it is done
    lock.lock();
    if (failed && !error_) error_ = failed;
    busy_ = false;
    changed_.notify_all();
  }
}

void LateStream::report() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.empty() && !busy_; });
}

void LateStream::synchronize() {
  const profile::Span waiting(profile::Kind::HostWait, name_);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.empty() && !busy_; });
  if (const std::exception_ptr e = std::exchange(error_, nullptr)) std::rethrow_exception(e);
}

// ---- work ----

void LateStream::launch(const std::shared_ptr<const device::Program>& program, const device::LaunchArgs& args) {
  std::vector<void*> pointers(args.pointers.begin(), args.pointers.end());
  add(
      [this, program, pointers = std::move(pointers), scratch = args.scratch]() mutable {
        memories_.count_launch();
        for (void*& p : pointers) p = to_host(p);
        static_cast<const LateProgram&>(*program).run(pointers, to_host(scratch));
      },
      piece(profile::Kind::Launch));
}
void LateStream::copy(void* to, const void* from, size_t bytes) {
  add(
      [this, to, from, bytes] {
        memories_.count_copy();
        if (bytes) std::memmove(to_host(to), to_host(from), bytes);
      },
      piece(profile::Kind::Copy, bytes));
}
void LateStream::upload(void* to, const void* host, size_t bytes) {
  if (memories_.is_pinned(host))
    return add(
        [this, to, host, bytes] {
          memories_.count_copy();
          if (bytes) std::memcpy(to_host(to), host, bytes);
        },
        piece(profile::Kind::Upload, bytes));
  const char* first = static_cast<const char*>(host);
  add(
      [this, to, staged = bytes ? std::vector<char>(first, first + bytes) : std::vector<char>()] {
        memories_.count_copy();
        if (!staged.empty()) std::memcpy(to_host(to), staged.data(), staged.size());
      },
      piece(profile::Kind::Upload, bytes));
}
void LateStream::download(void* host, const void* from, size_t bytes) {
  add(
      [this, host, from, bytes] {
        memories_.count_copy();
        if (bytes) std::memcpy(host, to_host(from), bytes);
      },
      piece(profile::Kind::Download, bytes));
}
void LateStream::fill(void* to, uint8_t value, size_t bytes) {
  add(
      [to, value, bytes] {
        if (bytes) std::memset(to_host(to), value, bytes);
      },
      piece(profile::Kind::Fill, bytes));
}
void LateStream::record(device::Event& event) {
  auto state = static_cast<LateEvent&>(event).state();
  const uint64_t ticket = state->record();
  push({[this, state, ticket] {
          std::exception_ptr error;
          {
            std::lock_guard lock(mutex_);
            error = error_;
          }
          state->happen(ticket, error);
        },
        true});
}
void LateStream::wait(device::Event& event) {
  auto* ours = dynamic_cast<LateEvent*>(&event);
  if (!ours) return event.synchronize();
  auto state = ours->state();
  add(
      [state, ticket = state->last()] {
        if (const std::exception_ptr e = state->wait(ticket)) std::rethrow_exception(e);
      },
      piece(profile::Kind::StreamWait));
}

}  // namespace tandem::late
