// The one recorder of this process. Off, everything that asks costs one relaxed load. On, whoever does work says when it began and ended;
// memory is bounded: the newest records are kept and the others counted (ADR 0045).
#pragma once
#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>

#include <tandem/error.hpp>

#include "profile/recording.hpp"

namespace tandem::profile {

Time now();

// Something that finishes work later than it was given and records it then, such as a stream. stop() asks each for what is on its way.
class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void report() = 0;  // when it returns, work that was given before has been recorded. Does not throw
};

class Recorder {
 public:
  static constexpr size_t kMostRecords = size_t{1} << 19, kMostSamples = size_t{1} << 17, kMostTasks = size_t{1} << 16;
  static Recorder& get();  // never destroyed
  static bool is_on() { return on_.load(std::memory_order_relaxed); }

  void start(size_t most_records = kMostRecords);  // UserError when it is on
  Recording stop();                                // what was recorded since; empty when it was off

  // --- for those who do the work. All may be called from any thread at any time; what comes when it is off is dropped.
  uint32_t generation() const { return generation_.load(std::memory_order_relaxed); }  // of the recording: numbers of tasks are its own
  uint16_t track(std::string_view device, std::string_view name);                      // stays the same
  uint16_t thread_track(std::string_view device);                                      // of the calling thread
  uint32_t task(std::string_view label, std::string_view kernel = {}, Location where = {}, double flops = 0, double bytes = 0);
  void add(const Record& record, uint32_t generation);
  void sample(std::string_view device, std::string_view memory, uint64_t bytes, uint64_t limit_bytes);
  void epoch(uint64_t number);
  void note(const DeviceNote& device);
  bool knows(const std::string& device);  // whether there is a note of it

  void join(Reporter& reporter);
  void leave(Reporter& reporter);

 private:
  Recorder() = default;
  struct TaskKey;
  static std::atomic<bool> on_;  // not inline: each shared library would have its own
  std::atomic<uint32_t> generation_{0};

  std::mutex mutex_;  // for all below
  Recording now_;
  std::unordered_multimap<size_t, uint32_t> tasks_;
  size_t most_records_ = kMostRecords, next_record_ = 0, next_sample_ = 0;  // of rings that are full
  std::vector<Track> tracks_;                                               // of the process: numbers stay
  std::vector<std::pair<std::string, uint64_t>> last_samples_;

  std::mutex reporters_mutex_;  // held while they are asked: before mutex_
  std::vector<Reporter*> reporters_;
};

// What the calling thread is about to give to streams, while it lives.
class Doing {
 public:
  struct What {
    uint32_t generation = 0, task = kNoTask, partner = kNoTask;
    Source source = Source::Unknown;
    uint64_t mark = 0;
  };
  explicit Doing(const What& what) : before_(current_) { current_ = what; }
  // Something that no plan has, by its name. `bytes`: of the host, that go up.
  explicit Doing(std::string_view label, const void* bytes = nullptr, size_t count = 0) : before_(current_) {
    if (Recorder::is_on()) set(label, bytes, count);
  }
  ~Doing() { current_ = before_; }
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;
  static const What& current() { return current_; }

 private:
  static void set(std::string_view label, const void* bytes, size_t count);
  static thread_local What current_;
  const What before_;
};

// A piece of work that was given to a stream. Empty when nobody looks.
class Piece {
 public:
  Piece() = default;
  static Piece given(uint16_t track, Kind kind, uint64_t bytes = 0) { return Recorder::is_on() ? make(track, kind, bytes) : Piece(); }
  explicit operator bool() const { return generation_ != 0; }
  void done(Time begin, Time end) const;
  Time when_given() const { return record_.given; }
  Kind kind() const { return record_.kind; }

 private:
  static Piece make(uint16_t track, Kind kind, uint64_t bytes);
  Record record_;
  uint32_t generation_ = 0;
};

// What the calling thread does or waits for, while it lives. One inside of another of the same kind is a part of that.
class Span {
 public:
  Span(Kind kind, std::string_view label, uint64_t number = 0, std::string_view device = kHost) {
    if (Recorder::is_on()) begin(kind, label, number, device);
  }
  ~Span() {
    if (generation_ != 0) finish();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  bool is_recorded() const { return generation_ != 0; }

 private:
  void begin(Kind kind, std::string_view label, uint64_t number, std::string_view device);
  void finish();
  Record record_;
  uint32_t generation_ = 0;
};

// What the calling thread did since then, unless that is a moment ago.
void record_since(Kind kind, std::string_view label, Time begin);

// Of bytes that the host can read, so that the same ones are known when they cross again: all of a few, and samples of many.
uint64_t mark_of(const void* bytes, size_t count);

}  // namespace tandem::profile
