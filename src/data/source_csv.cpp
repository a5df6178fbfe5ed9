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

// For messages.
std::string shortened(std::string_view text) {
  constexpr size_t kMost = 200;
  return std::string(text.substr(0, kMost)) + (text.size() > kMost ? "…" : "");
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
  if (!is_number) user_error("'", shortened(field), "' is no ", name(dtype));
  return std::move(t.tensor);
}

class CsvParser final : public RecordParser {
 public:
  explicit CsvParser(const CsvOptions& o) : options_(o) {}

  void begin_file(FileReader& file) override {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (file.peek(kByteOrderMark.size()) == kByteOrderMark) file.consume(kByteOrderMark.size());
    line_ = 1;
    lines_of_record_ = 0;
    header_.clear();
    places_.clear();
    for (size_t i = 0; i < options_.columns.size(); ++i) places_.push_back(i);
    if (options_.header) read_header(file);
    needed_ = 1 + *std::ranges::max_element(places_);
  }

  void save(Writer& w) const override { w.put(line_); }
  void restore(Reader& r) override { line_ = r.count(); }

  bool next(FileReader& file, Element& element) override {
    const int64_t line = line_;
    if (!read_fields(file, needed_)) return false;
    element.clear();
    if (!options_.header && count_ != options_.columns.size())
      user_error(file.path(), " line ", line, ": has ", count_, " fields, declared are ", options_.columns.size());
    if (options_.header && count_ > header_.size())
      user_error(file.path(), " line ", line, ": has ", count_, " fields, the header has ", header_.size(),
                 "\n  hint: a field with a delimiter in it is written in quotes");
    for (size_t i = 0; i < options_.columns.size(); ++i) {
      const CsvColumn& column = options_.columns[i];
      const size_t place = places_[i];
      if (place >= count_) user_error(file.path(), " line ", line, ": has ", count_, " fields, ", name_of(place), " is asked for");
      std::string_view field = fields_[place];
      if (field.empty() && column.missing)
        field = *column.missing;
      else if (field.empty() && column.kind == CsvColumn::Kind::Number)
        user_error(file.path(), " line ", line, ": ", name_of(place), " is empty\n  hint: CsvColumn::missing says what that stands for");
      try {
        element.push_back(column.kind == CsvColumn::Kind::Text ? from_text(field) : number_of(field, column.dtype));
      } catch (const UserError& e) {
        user_error(file.path(), " line ", line, ": ", name_of(place), ": ", e.what());
      }
    }
    return true;
  }

 private:
  void read_header(FileReader& file) {
    constexpr size_t kMostColumns = size_t{1} << 16;  // each takes more memory than it has letters
    if (!read_fields(file, kMostColumns)) resource_error(file.path(), ": the header is missing");
    if (count_ > kMostColumns) resource_error(file.path(), ": the header has ", count_, " columns, at most ", kMostColumns, " can be read");
    header_ = fields_;
    for (size_t i = 0; i < options_.columns.size(); ++i) {
      const std::string& wanted = options_.columns[i].name;
      if (wanted.empty()) continue;
      const auto found = std::ranges::find(header_, wanted);
      if (found == header_.end()) resource_error(file.path(), ": the header has no column '", wanted, "'; it has ", shortened(joined()));
      places_[i] = static_cast<size_t>(found - header_.begin());
    }
  }

  std::string name_of(size_t place) const {
    return place < header_.size() ? cat("column ", place + 1, " ('", shortened(header_[place]), "')") : cat("column ", place + 1);
  }

  // The fields of the next record that has any, the first `kept` of them; false at the end.
  bool read_fields(FileReader& file, size_t kept) {
    std::string_view record;
    do {
      bool quoted = false;
      record = {};
      do {
        const size_t before = record.size();
        record = file.peek_line(before);
        if (record.size() == before) {
          if (record.empty()) return false;
          file.abandon();
          user_error(file.path(), ": the quoted field that begins in or behind line ", line_, " has no end");
        }
        quoted ^= std::ranges::count(record.substr(before), options_.quote) % 2 != 0;
        ++lines_of_record_;
      } while (quoted);  // an end of line inside quotes
      split(record, kept);
      file.consume(record.size());
      line_ += std::exchange(lines_of_record_, 0);
    } while (count_ == 0);
    return true;
  }

  void split(std::string_view record, size_t kept) {
    while (record.ends_with('\n') || record.ends_with('\r')) record.remove_suffix(1);
    fields_.clear();
    count_ = 0;
    if (record.empty()) return;
    bool quoted = false;
    const auto begin_field = [&] {
      if (++count_ <= kept) fields_.emplace_back();
    };
    const auto add = [&](char c) {
      if (count_ <= kept) fields_.back() += c;
    };
    begin_field();
    for (size_t i = 0; i < record.size(); ++i) {
      const char c = record[i];
      if (quoted && c == options_.quote && i + 1 < record.size() && record[i + 1] == options_.quote)
        add(record[++i]);
      else if (c == options_.quote)
        quoted = !quoted;
      else if (c == options_.delimiter && !quoted)
        begin_field();
      else
        add(c);
    }
  }

  std::string joined() const {
    std::string text;
    for (const std::string& f : header_) text += (text.empty() ? "" : ", ") + f;
    return text;
  }

  const CsvOptions& options_;
  std::vector<std::string> header_;  // names of the columns, when there is one
  std::vector<size_t> places_;       // of each declared column among the fields
  size_t needed_ = 0;                // fields of a record
  std::vector<std::string> fields_;  // of the record, as many as are needed
  size_t count_ = 0;                 // of all its fields
  int64_t line_ = 1, lines_of_record_ = 0;
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
