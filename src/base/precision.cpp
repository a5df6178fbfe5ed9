#include <tandem/precision.hpp>

#include <array>

#include "base/text.hpp"

namespace tandem {
namespace {
constexpr std::array<std::string_view, 3> kNames = {"float32", "mixed_float16", "mixed_bfloat16"};
}

std::string_view name(Precision p) {
  const auto i = static_cast<size_t>(p);
  if (i >= kNames.size()) user_error("there is no precision number ", i, "; known are 0 to ", kNames.size() - 1);
  return kNames[i];
}

Precision parse_precision(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<Precision>(i);
  user_error("there is no precision '", name, "'; known are ", kNames[0], ", ", kNames[1], ", ", kNames[2]);
}

}  // namespace tandem
