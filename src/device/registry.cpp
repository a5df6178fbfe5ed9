// The devices of this process, by name.
#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/env.hpp"
#include "base/text.hpp"
#include "device/device.hpp"

namespace tandem::device {
namespace {

// Asked one folder after the other, and only until what is looked for is there: a folder may load drivers to answer, which a program that
// stays on the CPU does not wait for.
class Candidates {
 public:
  const Candidate* find(std::string_view name) {
    for (size_t i = 0;; ++i) {
      while (i == found_.size())
        if (!ask_next()) return nullptr;
      if (found_[i].name == name) return &found_[i];
    }
  }
  const std::deque<Candidate>& all() {
    while (ask_next()) {
    }
    return found_;
  }

 private:
  bool ask_next() {
    if (asked_ == factories().size()) return false;
    std::vector<Candidate> more = factories()[asked_].enumerate();  // one that throws is asked again
    ++asked_;
    for (Candidate& c : more) found_.push_back(std::move(c));
    return true;
  }
  std::deque<Candidate> found_;
  size_t asked_ = 0;
};

// What configure() and set_threads() said, and the devices that there are.
struct Made {
  std::map<std::string, std::vector<Part>, std::less<>> parts;  // by the physical device
  std::map<std::string, std::unique_ptr<Device>, std::less<>> devices;
  int threads = 0;
};
constexpr std::string_view kCpu = "cpu";

std::mutex mutex;
Made& made() {  // with the lock; devices are never destroyed: buffers and programs may outlive static destruction
  static auto& all = *new Made;
  return all;
}
Candidates& candidates() {  // with the lock
  static auto& all = *new Candidates;
  return all;
}

[[noreturn]] void unknown(std::string_view name) {
  std::string known;
  for (const Candidate& c : candidates().all())
    if (c.is_listed) known += cat(known.empty() ? "" : ", ", c.name);
  user_error("device: there is no device '", name, "'; there are ", known);
}

// The physical device and the part that a name means.
struct Found {
  const Candidate* candidate = nullptr;
  Part part;
};
Found find(std::string_view name) {
  for (const auto& [physical, parts] : made().parts) {
    if (physical == name) return {candidates().find(physical), parts.front()};
    for (const Part& p : parts)
      if (p.name == name) return {candidates().find(physical), p};
  }
  return {candidates().find(name), {.name = std::string(name)}};
}
const Candidate& usable(const Found& found, std::string_view name) {
  if (!found.candidate) unknown(name);
  if (!found.candidate->skipped.empty()) resource_error(ErrorCode::Unavailable, name, ": ", found.candidate->skipped);
  return *found.candidate;
}

// The names that a candidate has: its own, or those that it was divided into. With the lock.
void add_parts(const Candidate& c, std::vector<std::string>& names) {
  const auto divided = made().parts.find(c.name);
  if (divided == made().parts.end()) return names.push_back(c.name);
  for (const Part& p : divided->second) names.push_back(p.name);
}

}  // namespace

std::vector<std::string> names() {
  std::lock_guard lock(mutex);
  std::vector<std::string> all;
  for (const Candidate& c : candidates().all())
    if (c.is_listed) add_parts(c, all);
  return all;
}

std::vector<std::string> ordinary_names() {
  std::lock_guard lock(mutex);
  std::vector<std::string> all;
  for (const Candidate& c : candidates().all())
    if (!c.only_when_named && c.skipped.empty()) add_parts(c, all);
  return all;
}

std::vector<std::string> physical_names() {
  std::lock_guard lock(mutex);
  std::vector<std::string> all;
  for (const Candidate& c : candidates().all())
    if (!c.only_when_named && c.skipped.empty()) all.push_back(c.name);
  return all;
}

// Nodes that the drivers of the kernel make: AMD and Intel, NVIDIA, AMD's compute, ARM, and Windows around Linux.
bool may_have_cards() {
  for (const char* path : {"/dev/dri/renderD128", "/dev/nvidiactl", "/dev/kfd", "/dev/mali0", "/dev/dxg"})
    if (std::error_code error; std::filesystem::exists(path, error)) return true;
  return false;
}

std::unique_ptr<Device> make(std::string_view name) {
  std::lock_guard lock(mutex);
  return usable(find(name), name).make();
}

// A device that cannot be made is tried again at the next call, since what it lacked may be there then.
Device& get(std::string_view name) {
  std::lock_guard lock(mutex);
  auto& devices = made().devices;
  if (auto it = devices.find(name); it != devices.end()) return *it->second;
  Found found = find(name);
  const Candidate& c = usable(found, name);
  if (auto it = devices.find(found.part.name); it != devices.end()) return *it->second;  // asked for by the physical name
  if (c.name == kCpu) found.part.threads = made().threads ? std::max(1, made().threads / found.part.count) : 0;
  const bool is_whole = found.part.count == 1 && found.part.limit_bytes == 0 && found.part.threads == 0;
  const size_t limit = env::get_bytes("TANDEM_GPU_MEMORY");  // before the device, in case it is no size
  auto made_now = is_whole || !c.divide ? c.make() : c.divide(found.part);
  Device& device = *devices.emplace(found.part.name, std::move(made_now)).first->second;
  Account& memory = device.memory();
  if (limit && !device.info().host_memory && (memory.limit() == 0 || limit < memory.limit())) memory.set_limit(limit);
  return device;
}

bool is_made(std::string_view name) {
  std::lock_guard lock(mutex);
  return made().devices.contains(find(name).part.name);
}

std::string skipped_because(std::string_view name) {
  std::lock_guard lock(mutex);
  const Candidate* c = find(name).candidate;
  if (!c) unknown(name);
  return c->skipped;
}

void configure(std::string_view name, std::span<const size_t> limits_bytes) {
  std::lock_guard lock(mutex);
  const Candidate* c = candidates().find(name);
  if (!c) unknown(name);
  if (limits_bytes.empty()) user_error("device: ", name, " needs at least one limit, 0 for none");
  if (!c->divide) user_error("device: ", name, " takes no limits and cannot be divided");
  const auto is_there = [&](const std::string& part) { return made().devices.contains(part); };
  const auto divided = made().parts.find(name);
  bool in_use = is_there(std::string(name));
  if (divided != made().parts.end()) in_use |= std::ranges::any_of(divided->second, [&](const Part& p) { return is_there(p.name); });
  if (in_use)
    user_error(ErrorCode::FailedPrecondition, "device: ", name,
               " is in use already and stays as it is\n  hint: configure devices before the first tensor is made");
  std::vector<Part> parts;
  const auto count = static_cast<int>(limits_bytes.size());
  for (int i = 0; i < count; ++i)
    parts.push_back({.name = count == 1 ? std::string(name) : cat(name, ":", i),
                     .limit_bytes = limits_bytes[static_cast<size_t>(i)],
                     .index = i,
                     .count = count});
  made().parts.insert_or_assign(std::string(name), std::move(parts));
}

std::vector<size_t> limits_of_parts(std::string_view name) {
  std::lock_guard lock(mutex);
  std::vector<size_t> limits;
  if (const auto divided = made().parts.find(name); divided != made().parts.end())
    for (const Part& p : divided->second) limits.push_back(p.limit_bytes);
  return limits;
}

int threads() {
  std::lock_guard lock(mutex);
  return made().threads;
}

void set_threads(int threads) {
  if (threads < 0 || threads > kMostThreads) user_error("threads: ", threads, " is not from 0 to ", kMostThreads);
  std::lock_guard lock(mutex);
  const auto& devices = made().devices;
  if (std::ranges::any_of(devices, [](const auto& d) { return d.first == kCpu || d.first.starts_with("cpu:"); }))
    user_error(ErrorCode::FailedPrecondition,
               "threads: the cpu is in use already and keeps its threads\n  hint: set their number before the first tensor is made");
  made().threads = threads;
}

void Device::finish() {
  const uint32_t run = losses_.last();
  try {
    stream(StreamKind::Compute).synchronize();
  } catch (const std::exception& e) {
    drain();  // of another stream this one may have learnt it
    losses_.fail(e.what());
    throw;
  }
  losses_.confirm(run);
}

void Device::drain() {
  for (const StreamKind kind : {StreamKind::Upload, StreamKind::Download, StreamKind::Compute}) {
    try {
      stream(kind).synchronize();
    } catch (const std::exception& e) {
      losses_.fail(e.what());
    }
  }
}

void check_not_lost(const Buffer& buffer, std::string_view what) {
  if (buffer.run() == 0) return;
  const std::string why = buffer.home().losses().of(buffer.run());
  if (why.empty()) return;
  resource_error(ErrorCode::DataLoss, what, ": the value is lost, since a step that was writing it failed: ", why,
                 "\n  hint: assign it again, from a checkpoint for example");
}

}  // namespace tandem::device
