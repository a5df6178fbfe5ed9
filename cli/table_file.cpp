// Reads files of numbers.
#include "table_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "arguments.hpp"
#include "base/text.hpp"

namespace tandem::cli {

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == line.npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

namespace {

std::string joined(std::span<const std::string_view> names) {
  std::string text;
  for (std::string_view n : names) text += cat(text.empty() ? "" : ",", n);
  return text;
}

}  // namespace

std::string NumberTable::place(const Row& row, size_t column) const { return cat(path, ":", row.line, ": column ", columns[column], ": "); }

NumberTable read_numbers(const std::string& path, std::span<const std::string_view> columns) {
  std::ifstream in(path);
  if (!in) resource_error(path, ": ", std::strerror(errno));
  NumberTable table;
  table.path = path;
  size_t field_count = 0;
  std::string line;
  for (size_t number = 1; std::getline(in, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    const std::string place = cat(path, ":", number, ": ");
    const std::vector<std::string_view> fields = split(line);
    if (number == 1) {
      field_count = fields.size();
      for (std::string_view name : columns) {
        const auto found = std::find(fields.begin(), fields.end(), name);
        if (found == fields.end()) user_error(place, "the first line is \"", line, "\" and names no column \"", name, "\"");
        table.columns.push_back(static_cast<size_t>(found - fields.begin()) + 1);
      }
      continue;
    }
    if (line.empty()) continue;
    if (fields.size() != field_count) user_error(place, fields.size(), " fields, the first line has ", field_count);
    NumberTable::Row row{number, {}};
    for (size_t c = 0; c < columns.size(); ++c) {
      const std::string_view field = fields[table.columns[c] - 1];
      const std::optional<int64_t> value = parse_number(field);
      if (!value) user_error(table.place(row, c), columns[c], " is \"", field, "\", not a whole number of 64 bits");
      row.values.push_back(*value);
    }
    table.rows.push_back(std::move(row));
  }
  if (in.bad()) resource_error(path, ": ", std::strerror(errno));
  if (field_count == 0) user_error(path, ": empty, not even a line that names the columns ", joined(columns));
  return table;
}

}  // namespace tandem::cli
