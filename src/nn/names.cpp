#include "nn/names.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/names.hpp"

namespace tandem::nn {
namespace {

bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool is_lower(char c) { return std::islower(static_cast<unsigned char>(c)) != 0; }

// Letters and digits in lower case: what is left when spelling does not count.
std::string plain(std::string_view s) {
  std::string out;
  for (const char c : s)
    if (std::isalnum(static_cast<unsigned char>(c))) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// "a, b or c"
std::string alternatives(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) out += cat(i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", names[i]);
  return out;
}

}  // namespace

// A break before a capital that begins a word, and before one that follows a small letter.
std::string snake_case(std::string_view s) {
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    const bool begins_word = i > 0 && is_upper(s[i]) && i + 1 < s.size() && is_lower(s[i + 1]);
    const bool ends_word = i > 0 && is_upper(s[i]) && is_lower(s[i - 1]);
    if (begins_word || ends_word) out += '_';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(s[i])));
  }
  return out;
}

void unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& known, std::string_view more) {
  name = name.substr(0, 100);  // it may come from a file
  const std::string asked = plain(name);
  std::vector<std::pair<size_t, std::string>> near;
  for (const std::string& k : known) {
    const size_t d = edit_distance(asked, plain(k));
    if (d <= 1 + asked.size() / 4) near.emplace_back(d, k);
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> hints;
  for (const auto& [d, k] : near)
    if (hints.size() < 4) hints.push_back(k);
  user_error("unknown ", what, " '", name,
             "'\n  hint: ", hints.empty() ? cat("there are ", alternatives(known)) : cat("did you mean ", alternatives(hints), "?"), more);
}

}  // namespace tandem::nn
