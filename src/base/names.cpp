#include "base/names.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tandem {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] != b[j])});
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace tandem
