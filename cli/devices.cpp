// `tandem devices`: what there is to compute on.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/cores.hpp"
#include "base/env.hpp"
#include "base/text.hpp"
#include "command.hpp"
#include "device/calibration.hpp"
#include "probe.hpp"
#include "size_text.hpp"

namespace tandem::cli {
namespace {

struct Line {
  std::string name, problem;
  device::DeviceInfo info;
  size_t limit_bytes = 0;
  device::Rates rates;
};

Line look_at(const std::string& name, bool measures_again) {
  Line line{.name = name, .problem = why_not(name), .info = {}, .limit_bytes = 0, .rates = {}};
  if (!line.problem.empty()) return line;
  device::Device& d = device::get(name);
  line.info = d.info();
  line.limit_bytes = d.memory().limit();
  if (measures_again && line.info.executes) device::measured_again(d);
  line.rates = d.rates();
  return line;
}

std::string number_text(double value) {
  if (value <= 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, value >= 100 ? "%.0f" : value >= 1 ? "%.1f" : "%.2g", value);
  return text;
}
std::string or_dash(const std::string& s) { return s.empty() ? "-" : s; }

// `is_named`: somebody asked for the chosen one; else cost decides.
void print_table(const std::vector<Line>& lines, std::string_view chosen, bool is_named) {
  constexpr const char* kFormat = "%c %-10s %-5s %-9s %-9s %9s %9s %9s %9s  %-6s %s\n";
  std::printf(kFormat, ' ', "device", "state", "memory", "limit", "link GB/s", "GFLOP/s", "GB/s", "launch us", "cores", "description");
  for (const Line& l : lines) {
    const char mark = l.name == chosen ? '*' : ' ';
    if (!l.problem.empty()) {
      std::printf("%c %-10s %-5s %s\n", mark, l.name.c_str(), "no", l.problem.c_str());
      continue;
    }
    const std::string description = cat(l.info.description, l.info.driver.empty() ? "" : ", driver ", l.info.driver);
    std::printf(kFormat, mark, l.name.c_str(), "PASS", l.info.memory_bytes ? size_text(l.info.memory_bytes).c_str() : "host",
                l.limit_bytes ? size_text(l.limit_bytes).c_str() : "-", number_text(l.rates.link_bytes_per_second / 1e9).c_str(),
                number_text(l.rates.flops_per_second / 1e9).c_str(), number_text(l.rates.bytes_per_second / 1e9).c_str(),
                number_text(l.rates.launch_seconds * 1e6).c_str(), or_dash(l.info.cores).c_str(), description.c_str());
  }
  const std::string data = cores::text(cores::of_pipelines());
  std::printf(kFormat, ' ', "pipelines", "-", "host", "-", "-", "-", "-", "-", data.c_str(),
              cores::pipelines_have_their_own() ? "input pipelines, kept there with all that they compute" : "input pipelines");
  std::printf("* runs what does not name a device%s; TANDEM_DEVICE chooses it\n",
              is_named ? "" : " and takes no longer there than on a GPU");
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

void print_json(const std::vector<Line>& lines, std::string_view chosen) {
  std::string text;
  for (const Line& l : lines) {
    text += cat(text.empty() ? "[\n" : ",\n", "  {\"name\": ", quoted(l.name), ", \"default\": ", l.name == chosen ? "true" : "false");
    if (!l.problem.empty()) {
      text += cat(", \"problem\": ", quoted(l.problem), "}");
      continue;
    }
    char rates[200];
    std::snprintf(rates, sizeof rates,
                  ", \"link_bytes_per_second\": %.6g, \"flops_per_second\": %.6g, \"bytes_per_second\": %.6g, \"launch_seconds\": %.6g",
                  l.rates.link_bytes_per_second, l.rates.flops_per_second, l.rates.bytes_per_second, l.rates.launch_seconds);
    text += cat(", \"computes\": ", l.info.executes ? "true" : "false", ", \"memory_bytes\": ", l.info.memory_bytes,
                ", \"limit_bytes\": ", l.limit_bytes, rates, ", \"cores\": ", quoted(l.info.cores), ", \"driver\": ", quoted(l.info.driver),
                ", \"description\": ", quoted(l.info.description), "}");
  }
  std::printf("%s\n]\n", text.c_str());
}

Exit run(const Arguments& arguments) {
  arguments.allow({"json", "measure"});
  const bool as_json = arguments.has("json"), measures_again = arguments.has("measure");
  const std::string named = env::get("TANDEM_DEVICE"), chosen = named.empty() ? "cpu" : named;
  std::vector<Line> lines;
  for (const std::string& name : device::names()) lines.push_back(look_at(name, measures_again));
  if (as_json)
    print_json(lines, chosen);
  else
    print_table(lines, chosen, !named.empty());
  const bool one_computes = std::ranges::any_of(lines, [](const Line& l) { return l.problem.empty() && l.info.executes; });
  return one_computes ? Exit::Done : Exit::Failure;
}

}  // namespace

constexpr std::string_view kFlags[] = {"json", "measure"};

const Command kDevices = {"devices", "lists what there is to compute on, how fast it is, and whether it works",
                          R"(usage: tandem devices [--json] [--measure]

Lists the devices. Each is tried out with a small kernel: PASS, or the reason why it cannot be used. Then its memory and the limit that is set,
how fast copies between it and the host are, its speed at a product of matrices, its memory's, and what a launch costs: measured the first
time and kept in the cache folder, for the cost model; what a device only models is the model's. Cores are the host's that it computes on; the last line has those of input pipelines.

  --json      the same as a list of objects
  --measure   measure again, for example because the machine was busy the first time

Exit code: 0 when at least one of them computes, else 1; 2 for a wrong command line.
)",
                          run, kFlags};

}  // namespace tandem::cli
