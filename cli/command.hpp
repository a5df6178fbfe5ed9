// What a subcommand of `tandem` is. Each is one file and one row of the table in main.cpp.
#pragma once
#include <string_view>

#include "arguments.hpp"

namespace tandem::cli {

// Exit codes: 0 done, 1 it did not work, 2 it was asked for in a wrong way.
enum class Exit : int { Done = 0, Failure = 1, Usage = 2 };

struct Command {
  std::string_view name;
  std::string_view summary;  // one line, for `tandem --help`
  std::string_view help;     // for `tandem NAME --help`
  Exit (*run)(const Arguments& arguments);
  std::span<const std::string_view> flags = {};  // options without a value
  size_t most_files = 0;                         // how many words may be no options
  std::string (*long_help)() = nullptr;          // instead of `help`, where it is put together from parts
};

extern const Command kDevices, kDoctor, kPlan;

// One of the things that `tandem plan` does; plan.cpp has the list.
struct PlanMode {
  std::string_view option;   // by which it is asked for; empty: by a file
  std::string_view summary;  // one line
  std::string_view help;
  Exit (*run)(const Arguments& arguments);
};
extern const PlanMode kPlanModel, kPlanCards, kPlanAllocate, kPlanDag;

}  // namespace tandem::cli
