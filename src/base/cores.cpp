#include "base/cores.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <thread>

#include "base/env.hpp"
#include "base/text.hpp"

namespace tandem::cores {
namespace {

constexpr std::string_view kName = "TANDEM_CORES";
constexpr int kMostCores = 1 << 16;

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  user_error(kName, ": \"", text, "\": ", why, "\n  hint: it is a list of cores and of ranges, such as 0-3,6; this process may use ",
             cores::text(allowed()));
}
int take_number(std::string_view whole, std::string_view& rest) {
  int value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc() || value < 0 || value >= kMostCores)
    refuse(whole, cat("\"", rest, "\" does not begin with the number of a core"));
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  return value;
}

// How many devices TANDEM_EMULATE_GPU begins with. What is wrong with it says who makes them.
int emulated_count() {
  const std::string text = env::get("TANDEM_EMULATE_GPU");
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && *end == 'x' && count > 0 ? count : 0;
}

}  // namespace

std::vector<int> allowed() {
  std::vector<int> all;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) all.push_back(i);
  }
  if (all.empty())  // more cores than a cpu_set_t can name
    for (int i = 0; i < std::max(1, static_cast<int>(std::thread::hardware_concurrency())); ++i) all.push_back(i);
  return all;
}

std::vector<int> of_emulated_gpus() {
  const int count = emulated_count();
  const std::vector<int> all = allowed();
  const int own = std::max(1, static_cast<int>(all.size()) - 1);  // the first one is the cpu device's
  std::vector<int> cores;
  for (int i = 0; i < count; ++i) cores.push_back(all[all.size() - 1 - static_cast<size_t>(i % own)]);
  return cores;
}

std::vector<int> of_cpu() {
  const std::string text = env::get(kName);
  std::vector<int> all = allowed();
  if (!text.empty()) {
    const std::vector<int> asked = parse(text);
    for (const int core : asked)
      if (std::ranges::find(all, core) == all.end()) refuse(text, cat("this process may not use core ", core));
    return asked;
  }
  const std::vector<int> gpus = of_emulated_gpus();
  std::vector<int> left;
  for (const int core : all)
    if (std::ranges::find(gpus, core) == gpus.end()) left.push_back(core);
  return left.empty() ? all : left;
}

bool are_pinned() { return !env::get(kName).empty(); }

std::vector<int> parse(std::string_view text) {
  std::vector<int> cores;
  std::string_view rest = text;
  for (;;) {
    const int first = take_number(text, rest);
    int last = first;
    if (rest.starts_with("-")) {
      rest.remove_prefix(1);
      last = take_number(text, rest);
      if (last < first) refuse(text, cat("the range ", first, "-", last, " goes down"));
    }
    for (int i = first; i <= last; ++i) cores.push_back(i);
    if (rest.empty()) break;
    if (!rest.starts_with(",")) refuse(text, cat("there is no comma before \"", rest, "\""));
    rest.remove_prefix(1);
  }
  std::ranges::sort(cores);
  const auto twice = std::ranges::unique(cores);
  cores.erase(twice.begin(), twice.end());
  return cores;
}

std::string text(std::span<const int> cores) {
  std::string all;
  for (size_t i = 0; i < cores.size();) {
    size_t last = i;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    all += cat(all.empty() ? "" : ",", cores[i], last > i ? cat("-", cores[last]) : "");
    i = last + 1;
  }
  return all;
}

std::vector<int> part(std::span<const int> cores, int i, int n) {
  const auto count = static_cast<int>(cores.size());
  if (count <= n) return {cores[static_cast<size_t>(i % count)]};
  const auto first = static_cast<std::ptrdiff_t>(count) * i / n, last = static_cast<std::ptrdiff_t>(count) * (i + 1) / n;
  return {cores.begin() + first, cores.begin() + last};
}

}  // namespace tandem::cores
