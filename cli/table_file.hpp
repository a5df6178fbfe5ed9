// Comma-separated files of whole numbers, the first line of which names the columns.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::cli {

std::vector<std::string_view> split(std::string_view line);  // at commas

struct NumberTable {
  struct Row {
    size_t line;
    std::vector<int64_t> values;  // in the order of the columns that were asked for
  };
  std::vector<Row> rows;
  std::string path;
  std::vector<size_t> columns;  // where those are, counted from 1

  // "path:line: column N: "
  std::string place(const Row& row, size_t column) const;
};

// The columns with these names. ResourceError when the file cannot be read; UserError with the line and the column otherwise.
NumberTable read_numbers(const std::string& path, std::span<const std::string_view> columns);

}  // namespace tandem::cli
