// The table of environment variables and its readers.
#include "base/env.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/names.hpp"
#include "base/text.hpp"

namespace tandem::env {
namespace {

constexpr std::string_view kCacheDir = "TANDEM_CACHE_DIR";

constexpr Variable kVariables[] = {
    {"TANDEM_THREADS", "0", "Threads that compute, the calling one included; `0` is one for each core that the cpu device has."},
    {"TANDEM_CORES", "",
     "Cores that the cpu device computes on, such as `0-3,6`; its threads stay on them, and so does a thread of the program that computes "
     "with it. Empty: those that emulated GPUs and TANDEM_DATA_CORES leave, and the system moves threads as it likes."},
    {"TANDEM_DATA_CORES", "",
     "Cores that the threads of input pipelines stay on, such as `4-5`; what they compute takes no other core, and the cpu device leaves "
     "these alone. Empty: all that are no emulated GPU's."},
    {"TANDEM_DEVICE", "",
     "The device that runs what does not name one, such as `cpu`, `ref` or `opencl:0`; empty leaves it to TANDEM_PLACEMENT."},
    {"TANDEM_PLACEMENT", "cost",
     "Where that runs which no device was asked for: `cost` compares what a graph takes on the CPU and on each GPU, `tensorflow` is the "
     "first "
     "GPU for all that it can do."},
    {"TANDEM_EMULATE_GPU", "",
     "GPUs that are not there, `NxSIZE`, `NxSIZE@RATE` or `NxSIZE@RATE*SPEED` such as `2x512MiB@12GB/s*0.5`: cores of the CPU pose as "
     "`gpu:0`, `gpu:1` …, each with so much memory, behind a link of that rate, at a part of the core's speed. Needs PoCL."},
    {"TANDEM_GPU_MEMORY", "",
     "How much of each GPU's memory may be taken, such as `512MiB`; empty is all of it. Steps are planned to stay within it."},
    {"TANDEM_HOST_MEMORY", "",
     "How much of the host's memory pipelines, copies to and from GPUs and what waits there for them may take together, such as `2GiB`; "
     "empty is without limit."},
    {"TANDEM_CPU_ISA", "native",
     "The vector instructions the cpu device may use: `native`, or `avx2`, `avx512` or `avx512_bf16` to force narrower code."},
    {kCacheDir, "$XDG_CACHE_HOME/tandem/kernels, else ~/.cache/tandem/kernels",
     "The folder of compiled kernels; `off` or empty keeps nothing on disk."},
    {"TANDEM_CACHE_MIB", "1024",
     "How large that folder may grow; kernels that were not used for longest are removed. `0` is without limit."},
    {"TANDEM_LOG", "", "Topics to print to stderr, with commas between: `dispatch`, `plan`, `pass`, `cache`, `compile`, `step`."},
    {"TANDEM_PROFILE", "",
     "A file for a profile of the whole process: `FILE.html` is a page, `FILE.json` a trace for ui.perfetto.dev, another name gives both."},
    {"TANDEM_DUMP", "",
     "A folder that receives the graph after every pass, and a step that goes over a limit as files for `tandem plan --dag`; empty writes "
     "none."},
    {"TANDEM_DISABLE_PASS", "", "Passes to leave out, by name, with commas between; `keep` expands what a device would run whole."},
    {"TANDEM_MICRO_BATCHES", "0",
     "Into how many parts `fit` cuts each batch, with one update for all; sums are rounded otherwise. `0` only when a step fits in no "
     "other way, `1` never."},
    {"TANDEM_PLAN_EFFORT", "1",
     "How long a plan within a limit is looked for, about in seconds; counted and not timed, so the plan is the same each time."},
    {"TANDEM_PLAN_BACKGROUND", "60",
     "How long a better plan within a limit is looked for while a step runs, about in seconds, once it has run for as long; `0` not at "
     "all."},
    {"TANDEM_PLAN_MEANS", "recompute,offload,state",
     "By what a plan may stay within a limit, with commas between: computing results again, results on the host, state on the host. Fewer "
     "are for comparing. So are `sqrt` and `offload_all`: what others do, in steps on a GPU, without a look at the limit."},
    {"TANDEM_VERIFY", "0", "`1` checks every plan and the graph after every pass in release builds too."},
    {"TANDEM_KERAS_UNTESTED", "0", "`1` lets Python use a version of Keras that was not tested."},
};

const Variable& find(std::string_view name) {
  for (const Variable& v : kVariables)
    if (v.name == name) return v;
  internal_error("environment variable ", name, " is not in the table of base/env.cpp");
}

// The XDG base directory specification: a relative XDG_CACHE_HOME is to be ignored. Empty when there is no home either.
std::string default_cache_dir() {
  const char* cache_home = std::getenv("XDG_CACHE_HOME");
  if (cache_home && cache_home[0] == '/') return cat(cache_home, "/tandem/kernels");
  const char* home = std::getenv("HOME");
  return home && *home ? cat(home, "/.cache/tandem/kernels") : "";
}

}  // namespace

std::span<const Variable> variables() { return kVariables; }

std::string get(std::string_view name) {
  const Variable& variable = find(name);
  const char* value = std::getenv(variable.name.data());  // a literal, so it ends in a zero
  if (value) return value;
  return name == kCacheDir ? default_cache_dir() : std::string(variable.default_value);
}

int64_t get_count(std::string_view name, int64_t most) {
  const std::string text = get(name);
  const char* end = text.data() + text.size();
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range) user_error(name, ": \"", text, "\" does not fit in 64 bits");
  if (error != std::errc() || stop != end) user_error(name, ": \"", text, "\" is not a whole number");
  if (value < 0 || value > most) user_error(name, ": \"", text, "\" is not from 0 to ", most);
  return value;
}

size_t get_bytes(std::string_view name) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr Unit kUnits[] = {{"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"KB", 1e3},
                                    {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},    {"B", 1}};
  constexpr double kMost = 0x1p50;
  const std::string text = get(name);
  if (text.empty()) return 0;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  for (const Unit& u : kUnits)
    if (error == std::errc() && unit == u.name && number * u.bytes >= 1 && number * u.bytes <= kMost)
      return static_cast<size_t>(number * u.bytes);
  user_error(name, ": \"", text,
             "\" is not a size\n  hint: a number with KiB, MiB, GiB (or KB, MB, GB) behind it, such as 512MiB or 1.5GiB");
}

std::vector<std::string> get_names(std::string_view name, std::span<const std::string_view> known) {
  const std::string text = get(name);
  std::vector<std::string> names;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(','));
    if (!one.empty()) {
      if (std::ranges::find(known, one) == known.end())
        user_error(name, ": there is no \"", one, "\"; there are ", joined(std::vector(known.begin(), known.end())));
      names.emplace_back(one);
    }
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
  }
  return names;
}

bool get_flag(std::string_view name) {
  const std::string text = get(name);
  return !(text.empty() || text == "0" || text == "false" || text == "off");
}

std::string cache_dir() {
  const std::string text = get(kCacheDir);
  return text == "off" ? "" : text;
}

std::string markdown() {
  std::string text =
      "# Environment variables\n\n"
      "Generated from the table in `src/base/env.cpp`; no other variable is read.\n\n"
      "| Variable | Default | Meaning |\n"
      "|---|---|---|\n";
  for (const Variable& v : kVariables) {
    const std::string default_cell = v.default_value.empty() ? "" : cat("`", v.default_value, "`");
    text += cat("| `", v.name, "` | ", default_cell, " | ", v.doc, " |\n");
  }
  return text;
}

}  // namespace tandem::env
