// `tandem devices`: what there is to compute on.
#include <algorithm>
#include <cstdio>

#include "base/env.hpp"
#include "command.hpp"
#include "device/device.hpp"
#include "probe.hpp"
#include "size_text.hpp"

namespace tandem::cli {
namespace {

Exit run(const Arguments& arguments) {
  arguments.allow({});
  const std::string named = env::get("TANDEM_DEVICE"), chosen = named.empty() ? "cpu" : named;
  bool one_computes = false;
  std::printf("  %-10s %-6s %-10s %s\n", "device", "state", "memory", "description");
  for (const std::string& name : device::names()) {
    const char mark = name == chosen ? '*' : ' ';
    if (const std::string reason = why_not(name); !reason.empty()) {
      std::printf("%c %-10s %-6s %-10s %s\n", mark, name.c_str(), "no", "", reason.c_str());
      continue;
    }
    const device::DeviceInfo& info = device::get(name).info();
    one_computes |= info.executes;
    std::printf("%c %-10s %-6s %-10s %s\n", mark, name.c_str(), "PASS", info.memory_bytes ? size_text(info.memory_bytes).c_str() : "host",
                info.description.c_str());
  }
  std::printf("* runs what does not name a device%s; TANDEM_DEVICE chooses it\n",
              named.empty() ? " and takes no longer there than on a GPU" : "");
  return one_computes ? Exit::Done : Exit::Failure;
}

}  // namespace

const Command kDevices = {"devices", "lists what there is to compute on, and whether it works",
                          R"(usage: tandem devices

Lists the devices. Each is tried out with a small kernel: PASS, or the reason why it cannot be used.

Exit code: 0 when at least one of them computes, else 1; 2 for a wrong command line.
)",
                          run};

}  // namespace tandem::cli
