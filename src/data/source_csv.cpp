// CSV files (RFC 4180): quoted fields may hold delimiters, quotes written twice, and ends of lines.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.hpp"
#include "data/file_source.hpp"
#include "ir/attr.hpp"

namespace tandem::data {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

template <class T> bool parsed(std::string_view text, T& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// A scalar of this type, or a UserError.
Tensor number_of(std::string_view field, DType dtype) {
  const std::string_view text = trimmed(field);
  NewTensor t = new_tensor(dtype, {});
  bool is_number = false;
  if (dtype == DType::F32) {
    is_number = parsed(text, *reinterpret_cast<float*>(t.bytes));
  } else if (dtype == DType::I64) {
    is_number = parsed(text, *reinterpret_cast<int64_t*>(t.bytes));
  } else if (dtype == DType::U64) {
    is_number = parsed(text, *reinterpret_cast<uint64_t*>(t.bytes));
  } else if (is_float(dtype)) {
    double value = 0;
    is_number = parsed(text, value);
    ir::store_number(dtype, reinterpret_cast<std::byte*>(t.bytes), value);
  } else if (dtype == DType::Bool && (text == "true" || text == "false" || text == "True" || text == "False")) {
    is_number = true;
    *t.bytes = text.size() == 4;
  } else {
    int64_t value = 0;
    is_number = parsed(text, value);
    ir::store_number(dtype, reinterpret_cast<std::byte*>(t.bytes), static_cast<double>(value));
    is_number = is_number && ir::load_number(dtype, reinterpret_cast<std::byte*>(t.bytes)) == static_cast<double>(value);
  }
  if (!is_number) user_error("'", field, "' is no ", name(dtype));
  return std::move(t.tensor);
}

class CsvParser final : public RecordParser {
 public:
  explicit CsvParser(const CsvOptions& o) : options_(o) {}

  void begin_file(FileReader& file) override {
    line_ = 1;
    places_.clear();
    for (size_t i = 0; i < options_.columns.size(); ++i) places_.push_back(i);
    if (!options_.header) return;
    if (!read_fields(file)) resource_error(file.path(), ": the header is missing");
    for (size_t i = 0; i < options_.columns.size(); ++i) {
      const std::string& wanted = options_.columns[i].name;
      if (wanted.empty()) continue;
      const auto found = std::ranges::find(fields_, wanted);
      if (found == fields_.end()) resource_error(file.path(), ": the header has no column '", wanted, "'; it has ", joined());
      places_[i] = static_cast<size_t>(found - fields_.begin());
    }
  }

  void save(Writer& w) const override { w.put(line_); }
  void restore(Reader& r) override { line_ = r.integer(); }

  bool next(FileReader& file, Element& element) override {
    const int64_t line = line_;
    if (!read_fields(file)) return false;
    element.clear();
    if (!options_.header && fields_.size() != options_.columns.size())
      user_error(file.path(), " line ", line, ": has ", fields_.size(), " fields, declared are ", options_.columns.size());
    for (size_t i = 0; i < options_.columns.size(); ++i) {
      const CsvColumn& column = options_.columns[i];
      if (places_[i] >= fields_.size())
        user_error(file.path(), " line ", line, ": has ", fields_.size(), " fields, field ", places_[i] + 1, " is asked for");
      std::string_view field = fields_[places_[i]];
      if (field.empty() && column.missing)
        field = *column.missing;
      else if (field.empty() && column.kind == CsvColumn::Kind::Number)
        user_error(file.path(), " line ", line, ": field ", places_[i] + 1,
                   " is empty\n  hint: CsvColumn::missing says what that stands for");
      try {
        element.push_back(column.kind == CsvColumn::Kind::Text ? from_text(field) : number_of(field, column.dtype));
      } catch (const UserError& e) {
        user_error(file.path(), " line ", line, ": field ", places_[i] + 1, ": ", e.what());
      }
    }
    return true;
  }

 private:
  // The fields of the next record that has any; false at the end.
  bool read_fields(FileReader& file) {
    std::string record;
    for (;;) {
      const std::string_view line = file.peek_line();
      if (line.empty()) {
        if (record.empty()) return false;
        user_error(file.path(), ": a quoted field that begins before line ", line_, " has no end");
      }
      record += line;
      file.consume(line.size());
      ++line_;
      if (std::ranges::count(record, options_.quote) % 2 != 0) continue;  // an end of line inside quotes
      while (record.ends_with('\n') || record.ends_with('\r')) record.pop_back();
      if (!record.empty()) break;
    }
    fields_.assign(1, "");
    bool quoted = false;
    for (size_t i = 0; i < record.size(); ++i) {
      const char c = record[i];
      if (quoted && c == options_.quote && i + 1 < record.size() && record[i + 1] == options_.quote)
        fields_.back() += record[++i];
      else if (c == options_.quote)
        quoted = !quoted;
      else if (c == options_.delimiter && !quoted)
        fields_.emplace_back();
      else
        fields_.back() += c;
    }
    return true;
  }

  std::string joined() const {
    std::string text;
    for (const std::string& f : fields_) text += (text.empty() ? "" : ", ") + f;
    return text;
  }

  const CsvOptions& options_;
  std::vector<size_t> places_;  // of each declared column among the fields
  std::vector<std::string> fields_;
  int64_t line_ = 1;
};

}  // namespace

Dataset Dataset::csv(std::vector<std::string> files, CsvOptions options) {
  if (options.columns.empty()) user_error("csv: no columns are declared");
  Specs specs;
  std::string arguments;
  for (const CsvColumn& c : options.columns) {
    if (!options.header && !c.name.empty()) user_error("csv: column '", c.name, "' is asked for by its name, but there is no header");
    if (c.missing && c.kind == CsvColumn::Kind::Number) number_of(*c.missing, c.dtype);
    specs.push_back(c.kind == CsvColumn::Kind::Text ? Spec{DType::U8, {Dim::symbol(cat("t", specs.size()))}} : Spec{c.dtype, {}});
    arguments +=
        cat(arguments.empty() ? "" : ", ", c.name, c.name.empty() ? "" : ": ", c.kind == CsvColumn::Kind::Text ? "text" : name(c.dtype));
  }
  const Compression compression = options.compression;
  const auto shared = std::make_shared<const CsvOptions>(std::move(options));
  return Dataset(file_source({"csv", std::move(arguments), std::move(files), compression, size_t{1} << 18, renamed(specs),
                              [shared] { return std::make_unique<CsvParser>(*shared); }}));
}

}  // namespace tandem::data
