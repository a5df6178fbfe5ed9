// The words after a subcommand: `--name value`, `--name=value` or, for flags, `--name`; each at most once, nothing else.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tandem::cli {

// A command that was given wrongly; main() adds where to read on.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Arguments {
 public:
  explicit Arguments(std::span<char* const> words);

  bool asks_for_help() const { return help_; }
  void allow(std::initializer_list<std::string_view> names) const;  // UsageError names one that is not among them
  std::optional<std::string> text(std::string_view name) const;
  std::string required(std::string_view name) const;
  bool flag(std::string_view name) const;  // one without a value
  // A whole number of at least `least`.
  std::optional<int64_t> number(std::string_view name, int64_t least) const;

 private:
  std::map<std::string, std::string, std::less<>> options_;
  bool help_ = false;
};

// The whole of `text` as a number; nothing when it is none or does not fit.
std::optional<int64_t> parse_number(std::string_view text);

}  // namespace tandem::cli
