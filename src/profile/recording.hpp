// What a profile recorded, as plain data: who did what when. One clock for all of it, that of std::chrono::steady_clock, in nanoseconds.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tandem::profile {

using Time = int64_t;

enum class Kind : uint8_t {
  Launch,  // a kernel: on a stream, or done by the thread that walks a plan
  Copy,    // within one memory
  Upload,
  Download,
  Fill,
  StreamWait,  // a stream had nothing to do before an event happened that it was told to wait for
  HostWait,    // a thread waited for a stream or an event
  Pipeline,    // a thread asked the input pipeline for the next batch and waited
  Callback,    // a function of the program ran while a step or a loop waited for it
  Compile,     // a graph was compiled or a plan was made
  Run,         // a thread walked a plan: it gave work to streams, or did it
  Annotation,  // a part of the program that has a name
  Step,        // of a training loop
};
inline bool is_transfer(Kind k) { return k == Kind::Upload || k == Kind::Download; }
inline bool is_work(Kind k) { return k <= Kind::Fill; }
const char* name(Kind k);  // "launch", "upload", …

// A row of work that happens in order: a stream of a device, or a thread of the host.
struct Track {
  std::string device, name;  // "gpu:0", "compute"; "cpu", "thread 1"; kHost for a thread's waits
  friend bool operator==(const Track&, const Track&) = default;
};
inline constexpr const char* kHost = "host";

// What work is called. Work that is alike has one.
struct Task {
  std::string label, kernel, where;  // "matmul float32[32,10]", "gemm", "model.py:7"
  double flops = 0, bytes = 0;       // of one time; 0: unknown
  friend bool operator==(const Task&, const Task&) = default;
};
inline constexpr uint32_t kNoTask = 0;  // nameless: the first of every recording

// Where what crosses comes from, as far as it is known.
enum class Source : uint8_t { Unknown, Input, State, Constant };

struct Record {
  Time begin = 0, end = 0;
  Time given = 0;  // when the host had given it to the stream; `begin` where it did it itself
  uint32_t task = kNoTask;
  uint32_t partner = kNoTask;  // transfers: the work that they are for. Waits: what waited
  uint64_t bytes = 0;          // transfers and copies
  uint64_t mark = 0;  // transfers: of the bytes that crossed, so that the same ones are known again; 0: not looked at. Steps: number
  uint16_t track = 0;
  Kind kind = Kind::Launch;
  Source source = Source::Unknown;
  double seconds() const { return 1e-9 * static_cast<double>(end - begin); }
};

// How much of a memory was in use from a moment on.
struct Sample {
  Time at = 0;
  uint16_t memory = 0;
  uint64_t bytes = 0;
};
struct Memory {
  std::string device, name;  // "gpu:0", "memory" or "pinned"
  uint64_t limit_bytes = 0;  // 0: none
};

struct Epoch {
  Time at = 0;
  uint64_t number = 0;
};

// What is known of a device that took part. 0: unknown.
struct DeviceNote {
  std::string name, description;
  uint64_t memory_bytes = 0;
  bool is_host = false;
  double flops_per_second = 0, bytes_per_second = 0, link_bytes_per_second = 0, launch_seconds = 0;
};

struct Recording {
  Time begin = 0, end = 0;
  std::vector<Track> tracks;
  std::vector<Task> tasks;
  std::vector<Record> records;  // by begin
  std::vector<Memory> memories;
  std::vector<Sample> samples;  // by time
  std::vector<Epoch> epochs;
  std::vector<DeviceNote> devices;
  uint64_t lost_records = 0, lost_samples = 0;  // older ones that there was no room for
  double seconds() const { return 1e-9 * static_cast<double>(end - begin); }
  const DeviceNote* device(const std::string& name) const;  // null: nothing is known of it
};

std::string label_of(const Record& record, const Task& task);  // as a block of it is called

}  // namespace tandem::profile
