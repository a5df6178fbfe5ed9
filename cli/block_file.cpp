// Reads and writes files of blocks.
#include "block_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "arguments.hpp"
#include "base/text.hpp"
#include "table_file.hpp"

namespace tandem::cli {
namespace {

constexpr std::string_view kColumns[] = {"id", "lower", "upper", "size"};

// Where each of kColumns is.
std::array<size_t, 4> columns_of(std::string_view header, const std::string& place) {
  const std::vector<std::string_view> names = split(header);
  std::array<size_t, 4> at{};
  for (size_t c = 0; c < at.size(); ++c) {
    const auto found = std::find(names.begin(), names.end(), kColumns[c]);
    if (found == names.end()) user_error(place, "the first line is \"", header, "\" and names no column \"", kColumns[c], "\"");
    at[c] = static_cast<size_t>(found - names.begin());
  }
  return at;
}

}  // namespace

BlockFile read_blocks(const std::string& path) {
  std::ifstream in(path);
  if (!in) resource_error(path, ": ", std::strerror(errno));
  BlockFile file;
  std::array<size_t, 4> at{};
  size_t field_count = 0;
  std::string line;
  for (size_t line_number = 1; std::getline(in, line); ++line_number) {
    if (line.ends_with('\r')) line.pop_back();
    const std::string place = cat(path, ":", line_number, ": ");
    if (line_number == 1) {
      at = columns_of(line, place);
      field_count = split(line).size();
      continue;
    }
    if (line.empty()) continue;
    const std::vector<std::string_view> fields = split(line);
    if (fields.size() != field_count) user_error(place, fields.size(), " fields, the first line has ", field_count);
    const auto number = [&](size_t column) {
      const std::optional<int64_t> value = parse_number(fields[at[column]]);
      if (!value) user_error(place, kColumns[column], " is \"", fields[at[column]], "\", not a whole number of 64 bits");
      return *value;
    };
    const int64_t lower = number(1), upper = number(2), size = number(3);
    if (upper <= lower) user_error(place, "upper ", upper, " is not above lower ", lower);
    if (size < 0) user_error(place, "size ", size, " is negative");
    file.ids.emplace_back(fields[at[0]]);
    file.blocks.push_back({lower, upper - 1, static_cast<size_t>(size)});
  }
  if (in.bad()) resource_error(path, ": ", std::strerror(errno));
  if (field_count == 0) user_error(path, ": empty, not even a line that names the columns id,lower,upper,size");
  return file;
}

void write_blocks(const std::string& path, const BlockFile& file, const std::vector<size_t>& offsets) {
  std::ofstream out(path);
  out << "id,lower,upper,size,offset\n";
  for (size_t i = 0; i < offsets.size(); ++i) {
    const plan::Lifetime& b = file.blocks[i];
    out << file.ids[i] << ',' << b.first << ',' << b.last + 1 << ',' << b.bytes << ',' << offsets[i] << '\n';
  }
  out.close();
  if (!out) resource_error(path, ": ", std::strerror(errno));
}

}  // namespace tandem::cli
