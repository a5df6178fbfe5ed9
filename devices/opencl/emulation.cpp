#include "emulation.hpp"

#include <charconv>
#include <chrono>
#include <cmath>

#include "base/cores.hpp"
#include "base/text.hpp"
#include "loader.hpp"

namespace tandem::opencl {
namespace {

constexpr int kMostDevices = 16;
constexpr double kLeastSpeed = 0.001;

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  user_error("TANDEM_EMULATE_GPU: \"", text, "\": ", why,
             "\n  hint: it is NxSIZE, NxSIZE@RATE or NxSIZE@RATE*SPEED, such as 1x2GiB, 2x512MiB@12GB/s or 1x2GiB*0.5: so many devices, "
             "the memory "
             "of each, how fast copies to and from it are, and which part of a core's speed it computes with");
}

// A number at the front, which goes.
bool take_number(std::string_view& rest, double& value) {
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(value)) return false;
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  return true;
}
bool take_unit(std::string_view& rest, double& unit) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr Unit kUnits[] = {{"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}};
  for (const Unit& u : kUnits)
    if (rest.starts_with(u.name)) {
      rest.remove_prefix(u.name.size());
      unit = u.bytes;
      return true;
    }
  return false;
}

}  // namespace

Emulation parse_emulation(std::string_view text) {
  constexpr double kMostBytes = 0x1p46;
  Emulation e;
  std::string_view rest = text;
  double count = 0, size = 0, unit = 0;
  if (!take_number(rest, count) || count != std::floor(count)) refuse(text, "it does not begin with a whole number");
  if (count < 1 || count > kMostDevices) refuse(text, cat(count, " devices are not from 1 to ", kMostDevices));
  if (!rest.starts_with("x")) refuse(text, "there is no x behind the number of devices");
  rest.remove_prefix(1);
  if (!take_number(rest, size) || !take_unit(rest, unit)) refuse(text, "there is no size in KiB, MiB or GiB (or KB, MB, GB) behind the x");
  if (!(size * unit >= 1 && size * unit <= kMostBytes))
    refuse(text, cat("a memory of ", size * unit, " bytes is not from 1 byte to 64 TiB"));
  e.count = static_cast<int>(count);
  e.memory_bytes = static_cast<size_t>(size * unit);
  if (rest.starts_with("@")) {
    rest.remove_prefix(1);
    if (!take_number(rest, size) || !take_unit(rest, unit) || !rest.starts_with("/s") || !(size > 0))
      refuse(text, "the rate is not such as 12GB/s");
    rest.remove_prefix(2);
    e.bytes_per_second = size * unit;
  }
  if (rest.starts_with("*")) {
    rest.remove_prefix(1);
    if (!take_number(rest, e.speed) || !(e.speed >= kLeastSpeed && e.speed <= 1))
      refuse(text, "the speed is not from 0.001 to 1: no device is faster than its core");
  }
  if (!rest.empty())
    refuse(text, cat("\"", rest, "\" at the end is neither a rate, which begins with @, nor a speed, which begins with *"));
  return e;
}

Pace::Pace(double bytes_per_second, double speed, std::span<const int> cores)
    : bytes_per_second_(bytes_per_second), speed_(speed), thread_([this] { loop(); }) {
  if (!cores.empty()) cores::keep(thread_.native_handle(), cores);
}

Pace::~Pace() {
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Pace::add(const profile::Piece& piece, std::vector<cl_event> before, cl_event after, size_t bytes, std::function<void()> copy) {
  std::lock_guard lock(mutex_);
  jobs_.push_back({piece, nullptr, std::move(before), after, bytes, std::move(copy)});
  changed_.notify_all();
}
void Pace::add_launch(const profile::Piece& piece, cl_event begin, cl_event before, cl_event after) {
  std::lock_guard lock(mutex_);
  jobs_.push_back({piece, begin, {before}, after, 0, {}});
  changed_.notify_all();
}

double Pace::seconds_of(const Job& job, double passed) const {
  if (job.begin) return passed / speed_;
  return bytes_per_second_ > 0 ? static_cast<double>(job.bytes) / bytes_per_second_ : 0;
}

void Pace::loop() {
  using Clock = std::chrono::steady_clock;
  const Functions& f = functions();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    cl_int status = CL_SUCCESS;
    const auto wait_for = [&](cl_event event) {
      const cl_int of_this = f.WaitForEvents(1, &event);
      if (status == CL_SUCCESS) status = of_this;
      f.ReleaseEvent(event);
    };
    const bool only_waits = !job.begin && !job.copy;
    auto begin = Clock::now();
    if (job.begin) {
      wait_for(job.begin);
      begin = Clock::now();
    }
    for (const cl_event e : job.before) wait_for(e);
    if (!job.begin && !only_waits) begin = Clock::now();
    if (status == CL_SUCCESS) {
      if (job.copy) job.copy();
      const std::chrono::duration<double> needed(seconds_of(job, std::chrono::duration<double>(Clock::now() - begin).count()));
      std::this_thread::sleep_until(begin + std::chrono::duration_cast<Clock::duration>(needed));
    }
    job.copy = nullptr;  // what it holds goes before anybody is told that it is done
    if (job.piece && status == CL_SUCCESS) job.piece.done(begin.time_since_epoch().count(), profile::now());
    f.SetUserEventStatus(job.after, status == CL_SUCCESS ? CL_COMPLETE : status);
    f.ReleaseEvent(job.after);
    lock.lock();
  }
}

}  // namespace tandem::opencl
