#include "base/cores.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <system_error>
#include <thread>

#include "base/env.hpp"
#include "base/text.hpp"

namespace tandem::cores {
namespace {

constexpr std::string_view kName = "TANDEM_CORES", kDataName = "TANDEM_DATA_CORES";
constexpr int kMostCores = 1 << 16;

[[noreturn]] void refuse(std::string_view variable, std::string_view text, std::string_view why) {
  user_error(variable, ": \"", text, "\": ", why, "\n  hint: it is a list of cores and of ranges, such as 0-3,6; this process may use ",
             cores::text(allowed()));
}
int take_number(std::string_view variable, std::string_view whole, std::string_view& rest) {
  int value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc() || value < 0 || value >= kMostCores)
    refuse(variable, whole, cat("\"", rest, "\" does not begin with the number of a core"));
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

// Where the calling thread may run.
std::vector<int> of_this_thread() {
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

// What the variable names; empty when it names none.
std::vector<int> named_by(std::string_view variable) {
  const std::string text = env::get(variable);
  if (text.empty()) return {};
  const std::vector<int> asked = parse(text, variable), all = allowed();
  for (const int core : asked)
    if (std::ranges::find(all, core) == all.end()) refuse(variable, text, cat("this process may not use core ", core));
  return asked;
}

// Those that are not among others; all of them when none is left.
std::vector<int> without(const std::vector<int>& all, const std::vector<int>& others) {
  std::vector<int> left;
  for (const int core : all)
    if (std::ranges::find(others, core) == others.end()) left.push_back(core);
  return left.empty() ? all : left;
}

constinit std::atomic<int> most_pipeline_threads = 0;
constinit thread_local bool is_claimed = false;
thread_local std::vector<int> visited;  // where this thread was kept; empty: it was not

}  // namespace

std::vector<int> allowed() {
  static const std::vector<int>& all = *new std::vector<int>(of_this_thread());  // threads are kept on fewer later
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
  const std::vector<int> asked = named_by(kName);
  return asked.empty() ? without(without(allowed(), of_emulated_gpus()), named_by(kDataName)) : asked;
}

bool are_pinned() { return !env::get(kName).empty(); }

std::vector<int> of_pipelines() {
  const std::vector<int> asked = named_by(kDataName);
  return asked.empty() ? without(allowed(), of_emulated_gpus()) : asked;
}

bool pipelines_have_their_own() { return !env::get(kDataName).empty(); }

void set_pipeline_threads(int threads) { most_pipeline_threads = threads; }
int pipeline_threads() { return most_pipeline_threads; }

void keep(pthread_t thread, std::span<const int> cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<size_t>(core), &set);
  if (const int error = pthread_setaffinity_np(thread, sizeof set, &set))
    resource_error("threads: one cannot be kept on the cores ", text(cores), " (", std::system_category().message(error), ")");
}

void claim_this_thread() { is_claimed = true; }

void visit(std::span<const int> cores) {
  if (is_claimed || std::ranges::equal(visited, cores)) return;
  allowed();  // as they are before
  keep(pthread_self(), cores);
  visited.assign(cores.begin(), cores.end());
}

Everywhere::Everywhere() : before_(of_this_thread()) {
  if (before_ != allowed()) keep(pthread_self(), allowed());
}
Everywhere::~Everywhere() {
  if (before_ != allowed()) keep(pthread_self(), before_);
}

std::vector<int> parse(std::string_view text, std::string_view variable) {
  std::vector<int> cores;
  std::string_view rest = text;
  for (;;) {
    const int first = take_number(variable, text, rest);
    int last = first;
    if (rest.starts_with("-")) {
      rest.remove_prefix(1);
      last = take_number(variable, text, rest);
      if (last < first) refuse(variable, text, cat("the range ", first, "-", last, " goes down"));
    }
    for (int i = first; i <= last; ++i) cores.push_back(i);
    if (rest.empty()) break;
    if (!rest.starts_with(",")) refuse(variable, text, cat("there is no comma before \"", rest, "\""));
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
