// A stream of the late device: a queue and the thread that works it off.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

#include "device/device.hpp"
#include "profile/recorder.hpp"

namespace tandem::late {

// Recorded again and again: each record is a ticket, and who waits waits for the ticket of that moment.
class LateEvent final : public device::Event {
 public:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    uint64_t recorded = 0, happened = 0;
    std::exception_ptr error;  // of the work before the last ticket that happened
    uint64_t record();
    void happen(uint64_t ticket, std::exception_ptr error);
    std::exception_ptr wait(uint64_t ticket);
    uint64_t last();
  };
  void synchronize() override;
  bool has_happened() const override;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_ = std::make_shared<State>();  // work that is queued may outlive the event
};

// What the streams ask of their device.
class Memories {
 public:
  virtual ~Memories() = default;
  virtual bool is_pinned(const void* host) const = 0;
  virtual void count_copy() = 0;  // throws when this one is to fail
  virtual void count_launch() = 0;
};

class LateStream final : public device::Stream, public profile::Reporter {
 public:
  LateStream(Memories& memories, device::StreamKind kind, uint64_t seed, int longest_delay_us);
  ~LateStream() override;
  void launch(const std::shared_ptr<const device::Program>& program, const device::LaunchArgs& args) override;
  void copy(void* to, const void* from, size_t bytes) override;
  void upload(void* to, const void* host, size_t bytes) override;
  void download(void* host, const void* from, size_t bytes) override;
  void fill(void* to, uint8_t value, size_t bytes) override;
  void record(device::Event& event) override;
  void wait(device::Event& event) override;
  void synchronize() override;
  void report() override;

  void poison(void* block, size_t bytes);  // also behind a failure
  void free(void* block);                  // likewise

 private:
  struct Work {
    std::function<void()> run;
    bool always = false;  // also after a failure: marks of events
    profile::Piece piece = {};
  };
  void add(std::function<void()> work, profile::Piece piece = {});  // skipped when something before it failed
  profile::Piece piece(profile::Kind kind, size_t bytes = 0) const { return profile::Piece::given(track_, kind, bytes); }
  void push(Work work);
  void loop();
  void delay();

  Memories& memories_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;
  bool busy_ = false, ends_ = false;
  std::exception_ptr error_;
  std::mt19937_64 random_;  // the thread's own
  const int longest_delay_us_;
  const uint16_t track_;  // in profiles
  const std::string name_;
  std::thread thread_;  // last: it uses all of the above
};

// Device addresses are real ones with a bit that no host address has, so that a host that follows one crashes.
inline constexpr int kPoison = 0xdb;
void* to_device(void* host);
void* to_host(const void* device);

}  // namespace tandem::late
