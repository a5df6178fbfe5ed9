// The devices of this process, by name.
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>

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

std::mutex mutex;
Candidates& candidates() {  // with the lock
  static auto& all = *new Candidates;
  return all;
}

}  // namespace

std::vector<std::string> names() {
  std::lock_guard lock(mutex);
  std::vector<std::string> all;
  for (const Candidate& c : candidates().all()) all.push_back(c.name);
  return all;
}

std::vector<std::string> ordinary_names() {
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

// Devices are never destroyed: buffers and programs may outlive static destruction. One that cannot be made is tried again at the
// next call, since what it lacked may be there then.
Device& get(std::string_view name) {
  static auto& made = *new std::map<std::string, std::unique_ptr<Device>, std::less<>>;
  std::lock_guard lock(mutex);
  if (auto it = made.find(name); it != made.end()) return *it->second;
  if (const Candidate* c = candidates().find(name)) {
    if (!c->skipped.empty()) resource_error(ErrorCode::Unavailable, name, ": ", c->skipped);
    return *made.emplace(std::string(name), c->make()).first->second;
  }
  std::string known;
  for (const Candidate& c : candidates().all()) known += cat(known.empty() ? "" : ", ", c.name);
  user_error("device: there is no device '", name, "'; there are ", known);
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
