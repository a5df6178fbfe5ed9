#include "plan/budget.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "plan/in_place.hpp"
#include "plan/seconds.hpp"

namespace tandem::plan {
namespace {

size_t at(const Access& a) { return static_cast<size_t>(a.block); }
// A quarter of an hour at the most: the sums of thousands must stay numbers.
int64_t nanoseconds(double seconds) { return std::llround(std::clamp(seconds, 0.0, 900.0) * 1e9); }

int32_t host_of(std::span<const DeviceFacts> devices) {
  const auto it = std::ranges::find(devices, true, &DeviceFacts::host_memory);
  return it == devices.end() ? -1 : static_cast<int32_t>(it - devices.begin());
}

class ProblemMaker {
 public:
  ProblemMaker(const Units& units, std::span<const size_t> scratch, const Facts& facts, int32_t device)
      : units_(units), scratch_(scratch), facts_(facts.kernels), devices_(facts.devices), device_(device) {
    for (const KernelFacts& k : facts_) seconds_.push_back(k.seconds);
  }

  ScheduleProblem make(size_t bytes) {
    ScheduleProblem problem;
    problem.limit = static_cast<int64_t>(bytes);
    const DeviceFacts& card = devices_[static_cast<size_t>(device_)];
    if (const int32_t host = host_of(devices_); host >= 0) {
      if (card.rates.link_bytes_per_second > 0) problem.link.time_per_gib = nanoseconds(0x1p30 / card.rates.link_bytes_per_second);
      problem.link.latency = nanoseconds(device::copy_seconds(0, card.rates));
      if (const size_t limit = devices_[static_cast<size_t>(host)].limit_bytes) problem.host_limit = static_cast<int64_t>(limit);
    }
    for (const Block& b : units_.blocks) problem.values.push_back(value_of(b));
    for (const int32_t b : units_.output_blocks)
      if (b >= 0) problem.values[static_cast<size_t>(b)].is_result = true;
    for (size_t u = 0; u < units_.units.size(); ++u) problem.units.push_back(unit_of(u));
    mark_overwriters(problem);
    return problem;
  }

 private:
  // What lies elsewhere counts nothing here.
  ScheduleValue value_of(const Block& b) const {
    ScheduleValue v;
    if (b.kind != Block::Kind::Local) return v;
    v.on_host = devices_[static_cast<size_t>(b.device)].host_memory;
    if (v.on_host || b.device == device_) v.bytes = static_cast<int64_t>(codegen::align_up(b.bytes));
    return v;
  }

  ScheduleUnit unit_of(size_t number) const {
    const Unit& u = units_.units[number];
    ScheduleUnit s;
    const bool is_here = u.device == device_;
    s.lane = u.kind == Kind::Upload && is_here     ? Lane::Upload
             : u.kind == Kind::Download && is_here ? Lane::Download
             : is_here                             ? Lane::Device
                                                   : Lane::Host;
    s.cost = nanoseconds(seconds_of(u, {seconds_, devices_}));
    if (is_here) s.scratch = static_cast<int64_t>(codegen::align_up(scratch_[number]));
    add_each(s.inputs, u.reads);
    add_each(s.outputs, u.writes);
    if (is_here)
      for (const Access& c : u.other_carries) s.scratch += static_cast<int64_t>(codegen::align_up(c.bytes));
    for (const Access& w : u.writes)
      for (const int32_t r : s.inputs)
        if (is_local(r) && is_local(w.block) && may_replace(u, facts_, r, units_.blocks[static_cast<size_t>(r)].bytes, at_bytes(w), {}) &&
            std::ranges::find(s.may_replace, r) == s.may_replace.end())
          s.may_replace.push_back(r);
    s.once = u.may_fail;
    return s;
  }
  size_t at_bytes(const Access& a) const { return units_.blocks[at(a)].bytes; }
  bool is_local(int32_t block) const {
    const Block& b = units_.blocks[static_cast<size_t>(block)];
    return b.kind == Block::Kind::Local && b.device == device_;
  }
  static void add_each(std::vector<int32_t>& to, const std::vector<Access>& from) {
    for (const Access& a : from)
      if (std::ranges::find(to, a.block) == to.end()) to.push_back(a.block);
  }

  // State that is given away may be written over: whoever reads it, comes before, and what writes it runs once. Where one that reads it
  // needs what is made together with the new value, it is not written over: nobody can come before.
  void mark_overwriters(ScheduleProblem& problem) const {
    std::vector<size_t> last_reader(problem.values.size());
    for (size_t u = 0; u < problem.units.size(); ++u)
      for (const int32_t r : problem.units[u].inputs) last_reader[static_cast<size_t>(r)] = u;
    for (size_t k = 0; k < units_.donations.size(); ++k) {
      const int32_t input = units_.donations[k], written = units_.output_blocks[k];
      if (input < 0 || written < 0) continue;
      const int32_t old = units_.input_blocks[static_cast<size_t>(input)];
      for (size_t n = 0; n < problem.units.size(); ++n) {
        ScheduleUnit& u = problem.units[n];
        if (std::ranges::find(u.outputs, written) == u.outputs.end() || last_reader[static_cast<size_t>(old)] > n) continue;
        u.once = true;
        u.overwrites.push_back(old);
      }
    }
  }

  const Units& units_;
  std::span<const size_t> scratch_;
  std::span<const KernelFacts> facts_;
  std::span<const DeviceFacts> devices_;
  const int32_t device_;
  std::vector<double> seconds_;  // by kernel
};

// Walks the actions with the block that holds each value at the moment.
class Rewriter {
 public:
  Rewriter(const Units& units, int32_t device, int32_t host)
      : given_(units), device_(device), host_(host), now_(units.blocks.size(), -1), on_host_(units.blocks.size(), -1), out_(units) {
    out_.units.clear();
    for (size_t b = 0; b < now_.size(); ++b) now_[b] = static_cast<int32_t>(b);
    is_used_.resize(now_.size());
  }

  Units run(const Schedule& schedule, std::vector<int32_t>& origin) {
    for (const ScheduleAction& a : schedule.actions) {
      switch (a.kind) {
        case ScheduleAction::Kind::Compute: compute(a.id, origin); break;
        case ScheduleAction::Kind::Offload: offload(a.id, origin); break;
        case ScheduleAction::Kind::Fetch: fetch(a.id, origin); break;
        default: break;  // lives end with the last use
      }
    }
    return std::move(out_);
  }

 private:
  static Access moved(Access a, const std::vector<int32_t>& now) {
    if (a.block >= 0) a.block = now[at(a)];
    return a;
  }
  // The block for a value that is made now: its own the first time, another one each time after.
  int32_t written(int32_t block, int32_t device) {
    const auto b = static_cast<size_t>(block);
    if (given_.blocks[b].kind != Block::Kind::Local) return block;  // an output has one place
    if (!is_used_[b] && device == given_.blocks[b].device) {
      is_used_[b] = true;
      return block;
    }
    out_.blocks.push_back({Block::Kind::Local, -1, device, given_.blocks[b].bytes});
    return static_cast<int32_t>(out_.blocks.size()) - 1;
  }

  void compute(int32_t number, std::vector<int32_t>& origin) {
    const Unit& u = given_.units[static_cast<size_t>(number)];
    Unit copy = u;
    for (Access& r : copy.reads) r = moved(r, now_);
    for (Access& w : copy.writes) {
      const int32_t original = w.block;
      if (is_used_[static_cast<size_t>(original)]) copy.is_again = true;
      w.block = written(original, given_.blocks[static_cast<size_t>(original)].device);
      now_[static_cast<size_t>(original)] = w.block;
    }
    for (Access& c : copy.other_carries) c.block = written(c.block, u.device);
    out_.units.push_back(std::move(copy));
    origin.push_back(number);
  }
  void offload(int32_t value, std::vector<int32_t>& origin) {
    const int32_t to = on_host_[static_cast<size_t>(value)] = written(value, host_);
    copy(Kind::Download, value, now_[static_cast<size_t>(value)], to, origin);
  }
  void fetch(int32_t value, std::vector<int32_t>& origin) {
    const int32_t from = on_host_[static_cast<size_t>(value)];
    TANDEM_CHECK(from >= 0, "value ", value, " is fetched and was never offloaded");
    const int32_t to = now_[static_cast<size_t>(value)] = written(value, device_);
    copy(Kind::Upload, value, from, to, origin);
  }
  void copy(Kind kind, int32_t value, int32_t from, int32_t to, std::vector<int32_t>& origin) {
    const size_t bytes = given_.blocks[static_cast<size_t>(value)].bytes;
    Unit u;
    u.kind = kind;
    u.device = device_;
    u.is_again = kind == Kind::Upload;
    u.label = cat(kind == Kind::Upload ? "fetch " : "offload ", bytes, " bytes");
    u.reads.push_back({from, bytes});
    u.writes.push_back({to, bytes});
    out_.units.push_back(std::move(u));
    origin.push_back(-1);
  }

  const Units& given_;
  const int32_t device_, host_;
  std::vector<int32_t> now_, on_host_;  // by block of the given units: which one holds it
  std::vector<bool> is_used_;           // by block: it was written once
  Units out_;
};

}  // namespace

ScheduleProblem problem_of(const Units& units, std::span<const size_t> scratch, const Facts& facts, int32_t device, size_t bytes) {
  return ProblemMaker(units, scratch, facts, device).make(bytes);
}

Units scheduled(const Units& units, const Schedule& schedule, std::span<const DeviceFacts> devices, int32_t device,
                std::vector<int32_t>& origin) {
  return Rewriter(units, device, host_of(devices)).run(schedule, origin);
}

}  // namespace tandem::plan
