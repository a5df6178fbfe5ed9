#include "plan/tightest.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"

namespace tandem::plan {
namespace {

constexpr size_t kLargest = 5;  // values that a report names

// The bytes of one value, from the step that writes it to the last one that touches it.
struct Life {
  size_t first = 0, last = 0, offset = 0, bytes = 0;
  int32_t arena = 0;
};

}  // namespace

void name_tightest(const Plan& plan, BudgetReport& report) {
  std::map<int32_t, Life> lives;  // by value
  const auto is_here = [&](const Slot& s) {
    if (s.base != Slot::Base::Arena || s.bytes == 0) return false;
    const Arena& a = plan.arenas[static_cast<size_t>(s.index)];
    return a.device == report.device && a.pinned_by < 0;
  };
  for (size_t i = 0; i < plan.steps.size(); ++i)
    for (const Effect& e : plan.steps[i].effects) {
      if (!is_here(e.slot)) continue;
      Life& l = lives.try_emplace(e.slot.value, Life{i, i, e.slot.offset, e.slot.bytes, e.slot.index}).first->second;
      l.last = i;
      l.bytes = std::max(l.bytes, e.slot.bytes);
    }
  // A result that takes an operand's place counts once.
  std::vector<int64_t> change(plan.steps.size() + 1);
  for (const auto& [value, l] : lives) {
    const bool is_taken = std::ranges::any_of(lives, [&, v = value](const auto& other) {
      return other.first != v && other.second.arena == l.arena && other.second.offset == l.offset && other.second.first == l.last &&
             l.first < l.last;
    });
    change[l.first] += static_cast<int64_t>(l.bytes);
    change[l.last + (is_taken ? 0 : 1)] -= static_cast<int64_t>(l.bytes);
  }
  size_t tightest = 0;
  int64_t now = 0, most = -1;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    now += change[i];
    if (now > most && plan.steps[i].device == report.device) most = now, tightest = i;
  }
  report.largest.clear();
  if (plan.steps.empty()) return;
  report.tightest = plan.steps[tightest].label;
  report.tightest_location = plan.steps[tightest].location;
  for (const auto& [value, l] : lives)
    if (l.first <= tightest && tightest <= l.last) report.largest.emplace_back(plan.steps[l.first].label, l.bytes);
  const auto add = [&](std::string_view what, size_t number, const codegen::Layout& o) {
    const ir::TensorType type{o.dtype, Dims(o.shape.begin(), o.shape.end())};
    report.largest.emplace_back(cat(what, " ", number, " ", type), byte_size(o.shape, o.dtype));
  };
  for (size_t i = 0; i < plan.inputs.size(); ++i)
    if (plan.input_devices[i] == report.device) add("input", i, plan.inputs[i]);
  for (size_t k = 0; k < plan.outputs.size(); ++k)
    if (plan.output_devices[k] == report.device && plan.aliases[k].input < 0 && plan.aliases[k].constant < 0 && plan.donated[k] < 0)
      add("result", k, plan.outputs[k]);
  std::ranges::stable_sort(report.largest, std::greater{}, &std::pair<std::string, size_t>::second);
  if (report.largest.size() > kLargest) report.largest.resize(kLargest);
}

}  // namespace tandem::plan
