// Reads the words after a subcommand.
#include "arguments.hpp"

#include <algorithm>
#include <charconv>

#include "base/text.hpp"

namespace tandem::cli {

Arguments::Arguments(std::span<char* const> words, std::span<const std::string_view> flags, size_t most_files) {
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (word == "--help" || word == "-h") {
      help_ = true;
      continue;
    }
    if (!word.starts_with("--")) {
      if (files_.size() == most_files) throw UsageError(cat("\"", word, "\" is not an option"));
      files_.emplace_back(word);
      continue;
    }
    const size_t equals = word.find('=');
    const std::string name(word.substr(2, equals == word.npos ? word.npos : equals - 2));
    const bool is_flag = std::find(flags.begin(), flags.end(), name) != flags.end();
    if (is_flag && equals != word.npos) throw UsageError(cat("--", name, " takes no value"));
    if (!is_flag && equals == word.npos && i + 1 == words.size()) throw UsageError(cat("--", name, " needs a value"));
    const std::string value = is_flag ? "" : equals == word.npos ? words[++i] : std::string(word.substr(equals + 1));
    if (!options_.emplace(name, value).second) throw UsageError(cat("--", name, " is given twice"));
  }
}

void Arguments::allow(std::initializer_list<std::string_view> names) const {
  for (const auto& [name, value] : options_)
    if (std::find(names.begin(), names.end(), name) == names.end()) throw UsageError(cat("there is no option --", name));
}

std::optional<std::string> Arguments::text(std::string_view name) const {
  const auto it = options_.find(name);
  if (it == options_.end()) return std::nullopt;
  if (it->second.empty()) throw UsageError(cat("--", name, " needs a value"));
  return it->second;
}

std::string Arguments::required(std::string_view name) const {
  const std::optional<std::string> value = text(name);
  if (!value) throw UsageError(cat("--", name, " is missing"));
  return *value;
}

std::optional<int64_t> Arguments::number(std::string_view name, int64_t least) const {
  const std::optional<std::string> value = text(name);
  if (!value) return std::nullopt;
  const std::optional<int64_t> number = parse_number(*value);
  if (!number || *number < least) throw UsageError(cat("--", name, " is \"", *value, "\", not a whole number of at least ", least));
  return number;
}

std::optional<int64_t> parse_number(std::string_view text) {
  int64_t value = 0;
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace tandem::cli
