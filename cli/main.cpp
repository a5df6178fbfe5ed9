// The command `tandem`: finds the subcommand, and turns what goes wrong into one line and an exit code.
#include <cstdio>
#include <exception>

#include "base/text.hpp"
#include "command.hpp"

namespace tandem::cli {
namespace {

constexpr const Command* kCommands[] = {&kDevices, &kDoctor, &kPlan};

void print(std::FILE* to, std::string_view text) { std::fwrite(text.data(), 1, text.size(), to); }

std::string help() {
  std::string text =
      "Tandem trains neural networks on the CPU and the GPU together, inside whatever memory there is.\n\n"
      "usage: tandem COMMAND [OPTIONS]\n\n";
  for (const Command* c : kCommands) text += cat("  ", c->name, std::string(12 - c->name.size(), ' '), c->summary, "\n");
  return text + "\n  tandem COMMAND --help says more about one; tandem --version says which tandem this is.\n";
}

Exit fail(std::string_view where, const std::string& what, Exit code) {
  print(stderr, cat("tandem", where.empty() ? "" : " ", where, ": ", what, "\n"));
  return code;
}

Exit run(std::span<char* const> words) {
  if (words.empty()) {
    print(stderr, help());
    return Exit::Usage;
  }
  const std::string_view name = words[0];
  if (name == "--help" || name == "-h" || name == "help") {
    print(stdout, help());
    return Exit::Done;
  }
  if (name == "--version") {
    print(stdout, "tandem " TANDEM_VERSION "\n");
    return Exit::Done;
  }
  for (const Command* c : kCommands) {
    if (c->name != name) continue;
    try {
      const Arguments arguments(words.subspan(1), c->flags, c->most_files);
      if (!arguments.asks_for_help()) return c->run(arguments);
      print(stdout, c->long_help ? c->long_help() : std::string(c->help));
      return Exit::Done;
    } catch (const UsageError& e) {
      return fail(name, cat(e.what(), "; see tandem ", name, " --help"), Exit::Usage);
    } catch (const std::exception& e) {
      return fail(name, e.what(), Exit::Failure);
    }
  }
  return fail("", cat("there is no command \"", name, "\"; see tandem --help"), Exit::Usage);
}

}  // namespace
}  // namespace tandem::cli

int main(int argc, char** argv) { return static_cast<int>(tandem::cli::run({argv + 1, static_cast<size_t>(argc > 0 ? argc - 1 : 0)})); }
