// The independent check of a plan: replays it over a map of bytes, knowing only what the steps declare.
#include <map>

#include "base/text.hpp"
#include "plan/plan.hpp"

namespace tandem::plan {
namespace {

// Which value's bytes lie where, within one base. Writing over part of a value destroys all of it.
class Contents {
 public:
  void write(size_t offset, size_t bytes, int32_t value) {
    if (bytes == 0) return;
    auto it = held_.lower_bound(offset);
    if (it != held_.begin() && std::prev(it)->first + std::prev(it)->second.bytes > offset) --it;
    while (it != held_.end() && it->first < offset + bytes) it = held_.erase(it);
    held_[offset] = {bytes, value};
  }
  bool holds(size_t offset, size_t bytes, int32_t value) const {
    if (bytes == 0) return true;
    const auto it = held_.find(offset);
    return it != held_.end() && it->second.value == value && bytes <= it->second.bytes;
  }

 private:
  struct Held {
    size_t bytes;
    int32_t value;
  };
  std::map<size_t, Held> held_;
};

class Replay {
 public:
  explicit Replay(const Plan& p) : plan_(p) {}

  void run() {
    for (size_t i = 0; i < plan_.steps.size(); ++i) check(i, plan_.steps[i]);
    for (size_t k = 0; k < plan_.outputs.size(); ++k) {
      const bool handed_on = plan_.aliases[k].input >= 0 || plan_.aliases[k].constant >= 0;
      if (handed_on || byte_size(plan_.outputs[k].shape, plan_.outputs[k].dtype) == 0) continue;
      const Slot::Base base = plan_.donated[k] >= 0 ? Slot::Base::Input : Slot::Base::Output;
      const int32_t index = plan_.donated[k] >= 0 ? plan_.donated[k] : static_cast<int32_t>(k);
      if (!written_.contains({base, index})) internal_error("I13: no step writes output ", k);
    }
    for (size_t k = 0; k < plan_.donated.size(); ++k)
      for (size_t l = k + 1; l < plan_.donated.size(); ++l)
        if (plan_.donated[k] >= 0 && plan_.donated[k] == plan_.donated[l])
          internal_error("I16: input ", plan_.donated[k], " is given away twice");
  }

 private:
  using Place = std::pair<Slot::Base, int32_t>;

  size_t size_of_base(const Slot& s) const {
    switch (s.base) {
      case Slot::Base::Arena: return plan_.arena_bytes;
      case Slot::Base::Input:
        return byte_size(plan_.inputs.at(static_cast<size_t>(s.index)).shape, plan_.inputs[static_cast<size_t>(s.index)].dtype);
      case Slot::Base::Output:
        return byte_size(plan_.outputs.at(static_cast<size_t>(s.index)).shape, plan_.outputs[static_cast<size_t>(s.index)].dtype);
      case Slot::Base::Constant: return plan_.constants.at(static_cast<size_t>(s.index))->bytes();
    }
    return 0;
  }

  void check(size_t number, const Step& s) {
    auto fail = [&](auto... parts) { internal_error("plan step ", number, " (", s.label, "): ", parts...); };
    auto in_bounds = [&](const Slot& x) {
      if (x.base == Slot::Base::Arena && x.offset % codegen::kAlignment)
        fail("I18: ", x, " is not aligned to ", codegen::kAlignment, " bytes");
      if (x.bytes && (x.offset > size_of_base(x) || x.bytes > size_of_base(x) - x.offset))
        fail("I18: ", x, " leaves its base of ", size_of_base(x), " bytes");
    };
    for (const Slot& r : s.reads) {
      in_bounds(r);
      if (r.base == Slot::Base::Arena && r.bytes && r.shift >= r.bytes) fail("I8: reads ", r, " from byte ", r.shift, " on");
      if (!holds(r)) fail("I13: reads ", r, ", which does not hold that value");
    }
    std::vector<Slot> claimed = s.writes;
    claimed.insert(claimed.end(), s.other_carries.begin(), s.other_carries.end());
    if (s.scratch.bytes) claimed.push_back(s.scratch);
    for (size_t a = 0; a < claimed.size(); ++a) {
      in_bounds(claimed[a]);
      if (claimed[a].base == Slot::Base::Constant) fail("I12: writes a constant");
      for (size_t b = a + 1; b < claimed.size(); ++b)
        if (claimed[a].overlaps(claimed[b])) fail("I12: ", claimed[a], " and ", claimed[b], " overlap");
      for (size_t i = 0; i < s.reads.size(); ++i) {
        const Slot& r = s.reads[i];
        const bool same_place = i < s.in_place.size() && s.in_place[i] && a < s.writes.size() && r.base == claimed[a].base &&
                                r.index == claimed[a].index && r.offset == claimed[a].offset && r.bytes == claimed[a].bytes;
        if (claimed[a].overlaps(r) && !same_place) fail("I15: writes ", claimed[a], " while reading ", r);
      }
    }
    for (const Slot& w : s.writes) {
      if (w.base == Slot::Base::Input) {
        bool donated = false;
        for (int32_t d : plan_.donated) donated |= d == w.index;
        if (!donated) fail("I16: writes input ", w.index, ", which is not given away");
      }
    }
    for (const Slot& w : claimed) {
      contents_[{w.base, w.index}].write(w.offset, w.bytes, w.value);
      written_[{w.base, w.index}] = true;
    }
    for (const auto& body : s.bodies) {
      if (body->arena_bytes > s.scratch.bytes)
        fail("I18: a sub-plan needs ", body->arena_bytes, " bytes, its scratch has ", s.scratch.bytes);
      verify(*body);
    }
  }

  // Inputs and constants hold their own value until a step writes there.
  bool holds(const Slot& r) {
    const Place place{r.base, r.index};
    if ((r.base == Slot::Base::Input && !written_.contains(place)) || r.base == Slot::Base::Constant) return true;
    return contents_[place].holds(r.offset, r.bytes, r.value);
  }

  const Plan& plan_;
  std::map<Place, Contents> contents_;
  std::map<Place, bool> written_;
};

}  // namespace

void verify(const Plan& plan) { Replay(plan).run(); }

std::string Slot::str() const {
  static constexpr const char* kNames[] = {"arena", "input", "output", "constant"};
  return base == Base::Arena ? cat("arena+", offset, ":", bytes) : cat(kNames[static_cast<int>(base)], index, "+", offset, ":", bytes);
}

namespace {
std::string indented(const std::string& lines) {
  std::string text = "    ";
  for (const char c : lines) text += c == '\n' ? std::string("\n    ") : std::string(1, c);
  text.resize(text.size() - 4);
  return text;
}
}  // namespace

std::string Plan::str() const {
  std::string text = cat("plan: ", steps.size(), " steps, arena ", arena_bytes, " bytes\n");
  for (size_t i = 0; i < steps.size(); ++i) {
    static constexpr const char* kKinds[] = {"launch", "copy", "branch", "while", "scan"};
    const Step& s = steps[i];
    text += cat("  ", i, " ", kKinds[static_cast<int>(s.kind)], " ", s.label);
    if (s.program) text += cat(" [", s.program->kernel_name(), "]");
    for (const Slot& r : s.reads) text += cat(" ", r);
    text += " ->";
    for (const Slot& w : s.writes) text += cat(" ", w);
    if (s.scratch.bytes) text += cat(" scratch ", s.scratch);
    text += "\n";
    for (const auto& body : s.bodies) text += indented(body->str());
  }
  return text;
}

}  // namespace tandem::plan
