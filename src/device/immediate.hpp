// For devices whose memory is the host's and that do everything at once, on the thread that asks: what their streams and events are.
#pragma once
#include <cstring>

#include "device/stream.hpp"

namespace tandem::device {

// Everything before has already happened.
class ImmediateEvent final : public Event {
 public:
  void synchronize() override {}
  bool has_happened() const override { return true; }
};

class ImmediateStream : public Stream {
 public:
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes) std::memmove(to, from, bytes);
  }
  void upload(void* to, const void* host, size_t bytes) override { copy(to, host, bytes); }
  void download(void* host, const void* from, size_t bytes) override { copy(host, from, bytes); }
  void fill(void* to, uint8_t value, size_t bytes) override {
    if (bytes) std::memset(to, value, bytes);
  }
  void record(Event&) override {}
  void wait(Event& event) override { event.synchronize(); }  // another device's: only then may what follows happen
  void synchronize() override {}
};

}  // namespace tandem::device
