#include "exec/run.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/text.hpp"
#include "exec/step_profile.hpp"

namespace tandem::exec {
namespace {

using plan::Plan;
using plan::Slot;
using plan::Step;

// The pointers of one step: on the stack for all but the widest.
class Pointers {
 public:
  explicit Pointers(size_t n) : size_(n) {
    if (n > few_.size()) many_.resize(n);
  }
  void*& operator[](size_t i) { return data()[i]; }
  void** data() { return size_ > few_.size() ? many_.data() : few_.data(); }

 private:
  size_t size_;
  std::array<void*, 24> few_;
  std::vector<void*> many_;
};

class Runner {
 public:
  // `profile`: null where nobody looks.
  Runner(const Plan& p, device::Stream& s, void* arena, void* const* inputs, void* const* outputs, StepProfile* profile)
      : plan_(p), stream_(s), arena_(static_cast<char*>(arena)), inputs_(inputs), outputs_(outputs), profile_(profile) {}

  void run() {
    for (const Step& s : plan_.steps) {
      try {
        if (profile_ && s.bodies.empty())
          timed_step(s);
        else
          step(s);
      } catch (const Error& e) {
        rethrow(e, s);
      }
    }
  }

 private:
  char* at(const Slot& s) const { return start(s) + s.shift; }
  char* start(const Slot& s) const {
    switch (s.base) {
      case Slot::Base::Arena: return arena_ + s.offset;
      case Slot::Base::Input: return static_cast<char*>(inputs_[s.index]) + s.offset;
      case Slot::Base::Output: return static_cast<char*>(outputs_[s.index]) + s.offset;
      case Slot::Base::Constant: break;
    }
    return static_cast<char*>(plan_.constants[static_cast<size_t>(s.index)]->data()) + s.offset;
  }

  void timed_step(const Step& s) {
    const auto start = std::chrono::steady_clock::now();
    step(s);
    stream_.synchronize();
    profile_->add(s, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }

  void step(const Step& s) {
    switch (s.kind) {
      case Step::Kind::Launch: return launch(s);
      case Step::Kind::Copy: return stream_.copy(at(s.writes[0]), at(s.reads[0]), s.reads[0].bytes);
      case Step::Kind::Branch: return branch(s);
      case Step::Kind::While: return loop(s);
      case Step::Kind::Scan: return scan(s);
    }
  }

  void launch(const Step& s) {
    Pointers p(s.reads.size() + s.writes.size());
    size_t i = 0;
    for (const Slot& r : s.reads) p[i++] = at(r);
    for (const Slot& w : s.writes) p[i++] = at(w);
    stream_.launch(*s.program, {p.data(), s.scratch.bytes ? at(s.scratch) : nullptr});
  }

  void run_body(const Plan& body, void* arena, void* const* inputs, void* const* outputs) const {
    Runner(body, stream_, arena, inputs, outputs, profile_).run();
  }

  int64_t read_index(const Slot& s) {
    int64_t wide = 0;
    int32_t narrow = 0;
    stream_.download(s.bytes == 8 ? static_cast<void*>(&wide) : &narrow, at(s), s.bytes);
    stream_.synchronize();
    return s.bytes == 8 ? wide : narrow;
  }

  void branch(const Step& s) {
    // An index out of range is clamped, as the row says: data must not be able to stop a step.
    const int64_t last = static_cast<int64_t>(s.bodies.size()) - 1;
    const auto b = static_cast<size_t>(std::clamp<int64_t>(read_index(s.reads[0]), 0, last));
    Pointers in(s.reads.size()), out(s.writes.size());
    for (size_t i = 1; i < s.reads.size(); ++i) in[i - 1] = at(s.reads[i]);
    for (size_t i = 0; i < s.writes.size(); ++i) out[i] = at(s.writes[i]);
    run_body(*s.bodies[b], s.scratch.bytes ? at(s.scratch) : nullptr, in.data(), out.data());
  }

  // Trips alternate between two sets of carries; which set holds the result is settled at the end.
  void loop(const Step& s) {
    const size_t n = s.writes.size();
    Pointers now(n), next(n);
    for (size_t i = 0; i < n; ++i) {
      now[i] = at(s.writes[i]);
      next[i] = at(s.other_carries[i]);
      stream_.copy(now[i], at(s.reads[i]), s.writes[i].bytes);
    }
    char* predicate = at(s.scratch);
    char* arena = predicate + codegen::kAlignment;
    bool flipped = false;
    for (int64_t trip = 0; s.trips < 0 || trip < s.trips; ++trip) {
      void* condition = predicate;
      run_body(*s.bodies[0], arena, now.data(), &condition);
      bool again = false;
      stream_.download(&again, predicate, 1);
      stream_.synchronize();
      if (!again) break;
      run_body(*s.bodies[1], arena, now.data(), next.data());
      std::swap(now, next);
      flipped = !flipped;
    }
    if (flipped)
      for (size_t i = 0; i < n; ++i) stream_.copy(at(s.writes[i]), now[i], s.writes[i].bytes);
  }

  void scan(const Step& s) {
    const auto carries = static_cast<size_t>(s.carries), sequences = static_cast<size_t>(s.sequences);
    const size_t reads = s.reads.size(), writes = s.writes.size();
    Pointers in(reads), out(writes);
    for (size_t i = 0; i < carries; ++i) stream_.copy(at(s.writes[i]), at(s.reads[i]), s.writes[i].bytes);
    for (size_t i = carries + sequences; i < reads; ++i) in[i] = at(s.reads[i]);
    bool flipped = false;
    for (int64_t t = 0; t < s.trips; ++t) {
      const auto row = static_cast<size_t>(s.reverse ? s.trips - 1 - t : t), trips = static_cast<size_t>(s.trips);
      for (size_t i = 0; i < carries; ++i) {
        in[i] = at(flipped ? s.other_carries[i] : s.writes[i]);
        out[i] = at(flipped ? s.writes[i] : s.other_carries[i]);
      }
      for (size_t i = carries; i < carries + sequences; ++i) in[i] = at(s.reads[i]) + row * (s.reads[i].bytes / trips);
      for (size_t i = carries; i < writes; ++i) out[i] = at(s.writes[i]) + row * (s.writes[i].bytes / trips);
      run_body(*s.bodies[0], s.scratch.bytes ? at(s.scratch) : nullptr, in.data(), out.data());
      flipped = !flipped;
    }
    if (flipped)
      for (size_t i = 0; i < carries; ++i) stream_.copy(at(s.writes[i]), at(s.other_carries[i]), s.writes[i].bytes);
  }

  [[noreturn]] static void rethrow(const Error& e, const Step& s) {
    std::string text = e.what();
    if (s.location && text.find("\n  at ") == std::string::npos) text += cat("\n  at ", s.location.str());
    if (dynamic_cast<const UserError*>(&e)) throw UserError(text, e.code());
    if (dynamic_cast<const ResourceError*>(&e)) throw ResourceError(text, e.code());
    throw;
  }

  const Plan& plan_;
  device::Stream& stream_;
  char* arena_;
  void* const* inputs_;
  void* const* outputs_;
  StepProfile* const profile_;
};

}  // namespace

void run(const plan::Plan& plan, device::Stream& stream, void* arena, void* const* inputs, void* const* outputs) {
  if (!log::enabled(log::Topic::Step)) return Runner(plan, stream, arena, inputs, outputs, nullptr).run();
  StepProfile profile;
  Runner(plan, stream, arena, inputs, outputs, &profile).run();
  for (const std::string& line : profile.lines()) log::write(log::Topic::Step, line);
}

}  // namespace tandem::exec
