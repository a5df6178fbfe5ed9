// Drawings as SVG text for a Page, which has their colours: lines over an axis, and lanes of blocks over time.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::profile {

enum class Unit : uint8_t { Number, Seconds, Bytes, BytesPerSecond, FlopsPerSecond, Share };

// "1.25 ms", "3.5 GiB", "12 GB/s", "41 %": three figures that count, in the unit that suits.
std::string amount(double value, Unit unit);

inline constexpr int kColours = 8;  // a page has so many, and begins again behind the last
inline constexpr int kGrey = -1, kRed = -2;

enum class Style : uint8_t { Line, Step, Area };  // Step: a value holds until the next one; Area: a step with the room below it filled
struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // by x
  Style style = Style::Line;
  int colour = 0;
};
// A value that matters: a limit, a budget.
struct Mark {
  double at = 0;
  std::string name;
  int colour = kRed;
};
struct Axis {
  std::string name;
  Unit unit = Unit::Number;
  std::optional<double> from = {}, to = {};  // default: what the series need; 0 is shown when it is near
  bool log = false;
};
struct Chart {
  Axis x, y;
  std::vector<Series> series;
  std::vector<Mark> across = {}, upright = {};  // at a y, at an x
  int width = 960, height = 260;
};
std::string svg(const Chart& chart);

// Something that took a while in a lane.
struct Block {
  double begin = 0, end = 0;
  std::string label;  // shown where it fits
  std::string title;  // shown when the pointer rests on it; lines
  int colour = 0;
};
struct Lane {
  std::string group, name;    // lanes of one group stand together below its name
  std::vector<Block> blocks;  // by begin; ones that overlap are drawn in rows of their own
};
struct Timeline {
  std::vector<Lane> lanes;
  std::vector<Mark> markers = {};                        // at a time: steps, epochs
  std::vector<std::pair<std::string, int>> legend = {};  // name, colour
  double begin = 0, end = 0;                             // seconds
  int width = 960;
};
// The page lets its reader zoom by the wheel and drag; without scripts it shows all of it.
std::string svg(const Timeline& timeline);

}  // namespace tandem::profile
