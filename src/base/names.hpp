// Lists of names as messages show them, and which known name an unknown one may mean.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"

namespace tandem {

// How many letters to add, drop or exchange (Levenshtein, 1966).
size_t edit_distance(std::string_view a, std::string_view b);

// "a, b, c"
template <class T> std::string joined(const std::vector<T>& items) {
  std::string text;
  for (const T& x : items) text += cat(text.empty() ? "" : ", ", x);
  return text;
}

}  // namespace tandem
