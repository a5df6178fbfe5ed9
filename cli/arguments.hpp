// The words after a subcommand: `--name value` or `--name=value`, `--flag` without a value, each at most once, and files where it takes
// some.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::cli {

// A command that was given wrongly; main() adds where to read on.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Arguments {
 public:
  // `flags`: options without a value; `most_files`: how many words may be no options.
  explicit Arguments(std::span<char* const> words, std::span<const std::string_view> flags = {}, size_t most_files = 0);

  bool asks_for_help() const { return help_; }
  bool empty() const { return options_.empty() && files_.empty(); }
  void allow(std::initializer_list<std::string_view> names) const;  // UsageError names one that is not among them
  std::optional<std::string> text(std::string_view name) const;
  bool has(std::string_view name) const { return options_.contains(name); }
  const std::vector<std::string>& files() const { return files_; }
  std::string required(std::string_view name) const;
  // A whole number of at least `least`.
  std::optional<int64_t> number(std::string_view name, int64_t least) const;

 private:
  std::map<std::string, std::string, std::less<>> options_;
  std::vector<std::string> files_;
  bool help_ = false;
};

// The whole of `text` as a number; nothing when it is none or does not fit.
std::optional<int64_t> parse_number(std::string_view text);

}  // namespace tandem::cli
