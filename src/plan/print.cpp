// A plan as text.
#include "base/text.hpp"
#include "plan/plan.hpp"

namespace tandem::plan {

std::string Slot::str() const {
  static constexpr const char* kNames[] = {"arena", "input", "output", "constant"};
  const bool is_first_arena = base == Base::Arena && index == 0;
  return cat(kNames[static_cast<int>(base)], is_first_arena ? std::string() : cat(index), "+", offset, ":", bytes);
}

std::string Plan::str(int indent) const {
  static constexpr const char* kKinds[] = {"launch", "copy", "upload", "download", "branch", "while", "scan"};
  static constexpr const char* kStreams[] = {"", " (upload)", " (download)"};
  const std::string margin(static_cast<size_t>(indent), ' ');
  std::string text = cat(margin, "plan: ", steps.size(), " steps");
  for (const Arena& a : arenas)
    text += cat(", arena ", a.bytes, " bytes", arenas.size() > 1 ? cat(" on device ", a.device) : std::string());
  text += "\n";
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& s = steps[i];
    text += cat(margin, "  ", i, " ", kKinds[static_cast<int>(s.kind)], " ", s.label);
    if (!s.on_host) text += cat(" on ", s.device, kStreams[static_cast<int>(s.stream)]);
    if (!s.kernel_name.empty()) text += cat(" [", s.kernel_name, "]");
    for (const Effect& r : s.reads()) text += cat(" ", r.slot);
    text += " ->";
    for (const Effect& w : s.writes()) text += cat(" ", w.slot);
    if (const Slot* scratch = s.scratch()) text += cat(" scratch ", *scratch);
    for (const int32_t w : s.waits) text += cat(" after ", w);
    text += "\n";
    for (const auto& body : s.bodies) text += body->str(indent + 4);
  }
  return text;
}

}  // namespace tandem::plan
