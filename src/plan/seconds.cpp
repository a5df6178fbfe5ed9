#include "plan/seconds.hpp"

#include <algorithm>

namespace tandem::plan {
namespace {

// Units have accesses, steps effects.
size_t write_bytes(const Unit& u, size_t i) { return u.writes[i].bytes; }
size_t write_bytes(const Step& s, size_t i) { return s.writes()[i].slot.bytes; }
size_t read_bytes(const Unit& u, size_t i) { return u.reads[i].bytes; }
size_t read_bytes(const Step& s, size_t i) { return s.reads()[i].slot.bytes; }
size_t write_count(const Unit& u) { return u.writes.size(); }
size_t write_count(const Step& s) { return s.writes().size(); }
const std::vector<Unit>& parts(const Units& body) { return body.units; }
const std::vector<Step>& parts(const Plan& body) { return body.steps; }

template <class Part> double seconds(const Part& p, const Speeds& speeds) {
  const DeviceFacts& device = speeds.devices[static_cast<size_t>(p.device)];
  const auto moved = [&](size_t bytes) { return device::move_seconds(static_cast<double>(bytes), device.rates); };
  const auto copied = [&](size_t bytes) {
    return device.host_memory ? moved(bytes) : device::copy_seconds(static_cast<double>(bytes), device.rates);
  };
  const auto all = [&](const auto& body) {
    double sum = 0;
    for (const Part& inner : parts(*body)) sum += seconds(inner, speeds);
    return sum;
  };
  const auto is_read_by_host = [&](size_t bytes) { return device.host_memory ? 0 : copied(bytes); };
  const auto carried = [&](size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; ++i) sum += moved(write_bytes(p, i));
    return sum;
  };
  const auto trips = static_cast<double>(p.trips >= 0 ? p.trips : kGuessedTrips);
  switch (p.kind) {
    case Kind::Launch: return speeds.kernels[static_cast<size_t>(p.kernel)];
    case Kind::Copy: return moved(write_bytes(p, 0));
    case Kind::Upload:
    case Kind::Download: return copied(write_bytes(p, 0));
    case Kind::Branch: {
      double longest = 0;
      for (const auto& body : p.bodies) longest = std::max(longest, all(body));
      return is_read_by_host(read_bytes(p, 0)) + longest;
    }
    case Kind::While: {  // the condition is computed once more than the body
      const double condition = all(p.bodies[0]) + is_read_by_host(1);
      return carried(write_count(p)) + condition + trips * (condition + all(p.bodies[1]));
    }
    case Kind::Scan: return carried(static_cast<size_t>(p.carries)) + trips * all(p.bodies[0]);
  }
  return 0;
}

}  // namespace

double seconds_of(const Unit& unit, const Speeds& speeds) { return seconds(unit, speeds); }
double seconds_of(const Step& step, const Speeds& speeds) { return seconds(step, speeds); }

}  // namespace tandem::plan
