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

// "SparseCrossentropy", "sparse_crossentropy" -> sparse, crossentropy
std::vector<std::string> words(std::string_view name) {
  std::vector<std::string> all(1);
  for (const char c : snake_case(name)) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      all.back() += c;
    else if (!all.back().empty())
      all.emplace_back();
  }
  if (all.back().empty()) all.pop_back();
  return all;
}

// All of these words are among those, in the same order, up to a letter or so.
bool are_within(const std::vector<std::string>& some, const std::vector<std::string>& all) {
  size_t found = 0;
  for (const std::string& word : all)
    if (found < some.size() && edit_distance(some[found], word) <= some[found].size() / 4) ++found;
  return !some.empty() && found == some.size();
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

std::vector<std::string> near_names(std::string_view name, const std::vector<std::string>& known) {
  constexpr size_t kMost = 4, kSlip = 2;  // letters that a slip of the fingers adds, drops or exchanges
  const std::string asked = plain(name);
  std::vector<std::pair<size_t, std::string>> by_letters, by_words;
  bool is_slip = false;
  for (const std::string& k : known) {
    const size_t d = edit_distance(asked, plain(k));
    is_slip |= d <= kSlip;
    if (d <= 1 + asked.size() / 4) by_letters.emplace_back(d, k);
    // A name that leaves words out comes before one that has too many.
    constexpr size_t kFar = 1000;
    if (are_within(words(name), words(k)))
      by_words.emplace_back(d, k);
    else if (are_within(words(k), words(name)))
      by_words.emplace_back(d + kFar, k);
  }
  auto& near = is_slip || by_words.empty() ? by_letters : by_words;
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (const auto& [d, k] : near)
    if (names.size() < kMost) names.push_back(k);
  return names;
}

void unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& known, std::string_view how) {
  constexpr size_t kFew = 12;  // as many as a reader looks through
  name = name.substr(0, 100);  // it may come from a file
  std::string hint;
  if (const std::vector<std::string> near = near_names(name, known); !near.empty()) {
    hint = cat("did you mean ", alternatives(near), "?", how.empty() ? "" : " Else ", how);
  } else {
    const std::vector<std::string> few(known.begin(), known.begin() + static_cast<ptrdiff_t>(std::min(kFew, known.size())));
    hint = cat(how, how.empty() ? "" : "; ", "there are ",
               known.size() > kFew ? cat(joined(few), " and ", known.size() - kFew, " more") : alternatives(few));
  }
  user_error("unknown ", what, " '", name, "'\n  hint: ", hint);
}

}  // namespace tandem::nn
