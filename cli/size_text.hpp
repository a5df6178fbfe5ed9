// Bytes as people read and write them.
#pragma once
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::cli {

inline std::string size_text(size_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 || value >= 100 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

// "4GiB", "512 MiB", "1.5GB", "1048576"; nothing when it is none of these or not from 1 byte to 64 TiB.
inline std::optional<size_t> parse_size(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr Unit kUnits[] = {{"", 1},         {"B", 1},    {"bytes", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
                                    {"TiB", 0x1p40}, {"KB", 1e3}, {"MB", 1e6},  {"GB", 1e9},     {"TB", 1e12}};
  constexpr double kMost = 0x1p46;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  for (const Unit& u : kUnits)
    if (rest == u.name && value * u.bytes >= 1 && value * u.bytes <= kMost) return static_cast<size_t>(value * u.bytes);
  return std::nullopt;
}

}  // namespace tandem::cli
