#include "profile/recorder.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/text.hpp"

namespace tandem::profile {
namespace {

size_t hash_of(std::string_view label, std::string_view kernel, const Location& where, double flops, double bytes) {
  size_t h = std::hash<std::string_view>{}(label);
  const auto mix = [&](size_t more) { h ^= more + 0x9e3779b97f4a7c15 + (h << 6) + (h >> 2); };
  mix(std::hash<std::string_view>{}(kernel));
  mix(where.line);
  if (where.file) mix(std::hash<std::string_view>{}(where.file));
  mix(std::hash<double>{}(flops));
  mix(std::hash<double>{}(bytes));
  return h;
}

// Of the threads that record now. Those that come later take the numbers of those that have ended.
class ThreadNumbers {
 public:
  static size_t mine() {
    static thread_local const Mine number;
    return number.number;
  }

 private:
  struct Mine {
    Mine() : number(all().take()) {}
    ~Mine() { all().give(number); }
    const size_t number;
  };
  static ThreadNumbers& all() {
    static auto& numbers = *new ThreadNumbers;
    return numbers;
  }
  size_t take() {
    std::lock_guard lock(mutex_);
    const auto free = std::ranges::find(taken_, false);
    const auto i = static_cast<size_t>(free - taken_.begin());
    if (free == taken_.end()) taken_.push_back(false);
    taken_[i] = true;
    return i;
  }
  void give(size_t i) {
    std::lock_guard lock(mutex_);
    taken_[i] = false;
  }
  std::mutex mutex_;
  std::vector<bool> taken_;
};

thread_local std::array<bool, 16> open_kinds{};

// A stream waits from when it had nothing else left to do, which who was told to wait does not always know. What is left of it is nothing
// when the event had happened before.
void settle_waits(Recording& r) {
  constexpr Time kLeastWait = 2000;  // to see that an event has happened takes some of it
  std::vector<std::vector<size_t>> by_track(r.tracks.size());
  for (size_t i = 0; i < r.records.size(); ++i)
    if (is_work(r.records[i].kind) || r.records[i].kind == Kind::StreamWait) by_track[r.records[i].track].push_back(i);
  for (std::vector<size_t>& track : by_track) {
    std::ranges::stable_sort(track, {}, [&](size_t i) { return r.records[i].end; });
    Time before = 0;
    for (const size_t i : track) {
      Record& record = r.records[i];
      if (record.kind == Kind::StreamWait) record.begin = std::min(record.end, std::max(record.begin, before));
      before = std::max(before, record.end);
    }
  }
  std::erase_if(r.records, [](const Record& x) { return x.kind == Kind::StreamWait && x.end - x.begin < kLeastWait; });
}

}  // namespace

const char* name(Kind k) {
  static constexpr const char* kNames[] = {"launch",   "copy",     "upload",  "download", "fill",       "stream waits", "host waits",
                                           "pipeline", "callback", "compile", "run",      "annotation", "step"};
  return kNames[static_cast<size_t>(k)];
}

std::string label_of(const Record& r, const Task& t) {
  const bool has_name = r.task != kNoTask;
  switch (r.kind) {
    case Kind::Step: return cat("step ", r.mark);
    case Kind::HostWait: return cat("waits for ", t.label);
    case Kind::StreamWait: return has_name ? cat("waits before ", t.label) : "waits for an event";
    default: return has_name ? t.label : name(r.kind);
  }
}

const DeviceNote* Recording::device(const std::string& name) const {
  const auto found = std::ranges::find(devices, name, &DeviceNote::name);
  return found == devices.end() ? nullptr : &*found;
}

Time now() { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::atomic<bool> Recorder::on_{false};
thread_local Doing::What Doing::current_;

Recorder& Recorder::get() {
  static Recorder& recorder = *new Recorder;
  return recorder;
}

void Recorder::start(size_t most_records) {
  std::lock_guard lock(mutex_);
  if (is_on()) user_error(ErrorCode::AlreadyExists, "profile: one is being recorded already\n  hint: stop that one first");
  now_ = {};
  now_.begin = now();
  now_.tasks.push_back({"work without a name", "", ""});
  tasks_.clear();
  last_samples_.clear();
  most_records_ = most_records;
  next_record_ = next_sample_ = 0;
  generation_.fetch_add(1, std::memory_order_relaxed);
  on_.store(true, std::memory_order_relaxed);
}

Recording Recorder::stop() {
  Recording done;
  {
    std::lock_guard lock(mutex_);
    if (!is_on()) return done;
    now_.end = now();
  }
  {
    std::lock_guard lock(reporters_mutex_);
    for (Reporter* r : reporters_) r->report();
  }
  {
    std::lock_guard lock(mutex_);
    on_.store(false, std::memory_order_relaxed);
    done = std::exchange(now_, {});
    tasks_.clear();
    done.tracks = tracks_;
  }
  settle_waits(done);
  std::ranges::stable_sort(done.records, {}, &Record::begin);
  std::ranges::stable_sort(done.samples, {}, &Sample::at);
  for (const Record& r : done.records) done.end = std::max(done.end, r.end);  // what was on its way
  return done;
}

uint16_t Recorder::track(std::string_view device, std::string_view name) {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < tracks_.size(); ++i)
    if (tracks_[i].device == device && tracks_[i].name == name) return static_cast<uint16_t>(i);
  TANDEM_CHECK(tracks_.size() < UINT16_MAX, "more tracks than a program has threads");
  tracks_.push_back({std::string(device), std::string(name)});
  return static_cast<uint16_t>(tracks_.size() - 1);
}

uint16_t Recorder::thread_track(std::string_view device) {
  static thread_local std::vector<std::pair<std::string, uint16_t>> mine;  // by device
  for (const auto& [name, track] : mine)
    if (name == device) return track;
  return mine.emplace_back(device, track(device, cat("thread ", ThreadNumbers::mine() + 1))).second;
}

uint32_t Recorder::task(std::string_view label, std::string_view kernel, Location where, double flops, double bytes) {
  const size_t h = hash_of(label, kernel, where, flops, bytes);
  std::lock_guard lock(mutex_);
  const auto [from, to] = tasks_.equal_range(h);
  std::string text;
  for (auto at = from; at != to; ++at) {
    const Task& t = now_.tasks[at->second];
    if (t.label != label || t.kernel != kernel || t.flops != flops || t.bytes != bytes) continue;
    if (text.empty()) text = where.str();
    if (t.where == text) return at->second;
  }
  if (!is_on() || now_.tasks.size() >= kMostTasks) return kNoTask;
  now_.tasks.push_back({std::string(label), std::string(kernel), where.str(), flops, bytes});
  const auto number = static_cast<uint32_t>(now_.tasks.size() - 1);
  tasks_.emplace(h, number);
  return number;
}

void Recorder::add(const Record& record, uint32_t generation) {
  std::lock_guard lock(mutex_);
  if (!is_on() || generation != this->generation()) return;
  if (now_.records.size() < most_records_) return now_.records.push_back(record);
  now_.records[next_record_] = record;
  next_record_ = (next_record_ + 1) % most_records_;
  ++now_.lost_records;
}

void Recorder::sample(std::string_view device, std::string_view memory, uint64_t bytes, uint64_t limit_bytes) {
  const Time at = now();
  std::lock_guard lock(mutex_);
  if (!is_on()) return;
  size_t i = 0;
  while (i < now_.memories.size() && (now_.memories[i].device != device || now_.memories[i].name != memory)) ++i;
  if (i == now_.memories.size()) {
    now_.memories.push_back({std::string(device), std::string(memory)});
    last_samples_.emplace_back(std::string(), UINT64_MAX);
  }
  now_.memories[i].limit_bytes = limit_bytes;
  if (std::exchange(last_samples_[i].second, bytes) == bytes) return;
  const Sample s{at, static_cast<uint16_t>(i), bytes};
  if (now_.samples.size() < kMostSamples) return now_.samples.push_back(s);
  now_.samples[next_sample_] = s;
  next_sample_ = (next_sample_ + 1) % kMostSamples;
  ++now_.lost_samples;
}

void Recorder::epoch(uint64_t number) {
  const Time at = now();
  std::lock_guard lock(mutex_);
  if (is_on()) now_.epochs.push_back({at, number});
}

void Recorder::note(const DeviceNote& device) {
  std::lock_guard lock(mutex_);
  if (!is_on()) return;
  const auto found = std::ranges::find(now_.devices, device.name, &DeviceNote::name);
  if (found == now_.devices.end())
    now_.devices.push_back(device);
  else
    *found = device;
}

bool Recorder::knows(const std::string& device) {
  std::lock_guard lock(mutex_);
  return !is_on() || now_.device(device) != nullptr;
}

void Recorder::join(Reporter& reporter) {
  std::lock_guard lock(reporters_mutex_);
  reporters_.push_back(&reporter);
}
void Recorder::leave(Reporter& reporter) {
  std::lock_guard lock(reporters_mutex_);
  std::erase(reporters_, &reporter);
}

// ---- pieces and spans ----

void Doing::set(std::string_view label, const void* bytes, size_t count) {
  Recorder& r = Recorder::get();
  current_ = {.generation = r.generation(), .task = r.task(label)};
  if (!bytes) return;
  current_.source = Source::Input;
  current_.mark = mark_of(bytes, count);
}

Piece Piece::make(uint16_t track, Kind kind, uint64_t bytes) {
  Piece p;
  p.generation_ = Recorder::get().generation();
  p.record_.given = now();
  p.record_.track = track;
  p.record_.kind = kind;
  p.record_.bytes = bytes;
  const Doing::What& what = Doing::current();
  if (what.generation != p.generation_) return p;
  p.record_.task = what.task;
  p.record_.partner = what.partner;
  p.record_.source = what.source;
  p.record_.mark = what.mark;
  return p;
}

void Piece::done(Time begin, Time end) const {
  Record r = record_;
  r.begin = begin;
  r.end = std::max(begin, end);
  Recorder::get().add(r, generation_);
}

void Span::begin(Kind kind, std::string_view label, uint64_t number, std::string_view device) {
  if (open_kinds[static_cast<size_t>(kind)]) return;
  open_kinds[static_cast<size_t>(kind)] = true;
  Recorder& r = Recorder::get();
  generation_ = r.generation();
  record_.kind = kind;
  record_.track = r.thread_track(device);
  record_.task = r.task(label);
  record_.mark = number;
  if (Doing::current().generation == generation_) record_.partner = Doing::current().task;
  record_.begin = record_.given = now();
}

void Span::finish() {
  record_.end = now();
  open_kinds[static_cast<size_t>(record_.kind)] = false;
  Recorder::get().add(record_, generation_);
}

void record_since(Kind kind, std::string_view label, Time begin) {
  constexpr Time kMoment = 20'000;
  const Time end = now();
  if (!Recorder::is_on() || end - begin < kMoment) return;
  Recorder& r = Recorder::get();
  Record record{.begin = begin, .end = end, .given = begin, .task = r.task(label), .kind = kind};
  record.track = r.thread_track(kHost);
  r.add(record, r.generation());
}

uint64_t mark_of(const void* bytes, size_t count) {
  constexpr size_t kAll = size_t{1} << 16, kSamples = 64, kSampleBytes = 512;
  const auto* p = static_cast<const char*>(bytes);
  const auto hash = [&](size_t from, size_t n) { return std::hash<std::string_view>{}({p + from, n}); };
  uint64_t h = count + 1;
  const auto mix = [&](uint64_t more) { h = std::rotl(h * 0x9e3779b97f4a7c15, 29) ^ more; };
  if (count <= kAll) {
    mix(hash(0, count));
  } else {
    for (size_t i = 0; i < kSamples; ++i) mix(hash((count - kSampleBytes) * i / (kSamples - 1), kSampleBytes));
  }
  return h == 0 ? 1 : h;
}

}  // namespace tandem::profile
