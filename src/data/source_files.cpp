// Text lines, TFRecords, fixed-length records, and the list of files that fit a pattern.
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>

#include "base/border.hpp"
#include "base/checked.hpp"
#include "data/file_source.hpp"
#include "data/random.hpp"
#include "data/record_format.hpp"
#include "data/sources.hpp"

namespace tandem::data {
namespace {

class FileNode final : public Node {
 public:
  explicit FileNode(FileSource s) : Node(s.name, {}), source(std::move(s)) {}
  std::string arguments() const override {
    std::string text = source.files.size() == 1 ? source.files[0] : cat(source.files.size(), " files, ", source.files[0], " first");
    return source.arguments.empty() ? text : cat(text, ", ", source.arguments);
  }
  std::optional<Specs> specs() const override { return source.specs; }
  int64_t cardinality() const override { return kUnknown; }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;

  const FileSource source;
};

class FileWalk final : public Walk {
 public:
  FileWalk(const FileNode& node, const Scope& scope)
      : Walk(scope.stage(node)),
        source_(node.source),
        reader_options_{source_.compression, source_.buffer_bytes, scope.context->budget.limit()},
        parser_(source_.parser()) {}

 protected:
  bool next(Element& element) override {
    while (at_ < source_.files.size()) {
      if (!file_) open();
      if (!file_->is_abandoned() && parser_->next(*file_, element)) return true;
      file_.reset();
      ++at_;
    }
    return false;
  }
  void save(Writer& w) override {
    const bool is_done = file_ && file_->is_abandoned();  // it goes on with the next one
    w.put(static_cast<int64_t>(at_ + is_done));
    w.put(file_ && !is_done ? file_->offset() : int64_t{-1});
    if (file_ && !is_done) parser_->save(w);
  }
  void restore(Reader& r) override {
    at_ = static_cast<size_t>(r.integer(0, static_cast<int64_t>(source_.files.size())));
    const int64_t offset = r.integer(-1, INT64_MAX);
    if (offset < 0) return;
    if (at_ == source_.files.size()) user_error("restore: the state is damaged: behind the last file there is none");
    open();
    file_->skip_to(offset);
    parser_->restore(r);
  }

 private:
  void open() {
    const size_t number = at_++;  // a file that cannot be opened is passed over
    file_ = std::make_unique<FileReader>(source_.files[number], reader_options_);
    try {
      parser_->begin_file(*file_);
    } catch (...) {
      file_.reset();
      throw;
    }
    --at_;
  }

  const FileSource& source_;
  const ReaderOptions reader_options_;
  std::unique_ptr<RecordParser> parser_;
  std::unique_ptr<FileReader> file_;
  size_t at_ = 0;
};

std::unique_ptr<Walk> FileNode::walk(const Scope& scope) const { return std::make_unique<FileWalk>(*this, scope); }

void put_bytes(std::string_view bytes, Element& element) {
  element.assign(1, make_tensor(DType::U8, {static_cast<int64_t>(bytes.size())}, bytes.data()));
}

class LineParser final : public RecordParser {
  bool next(FileReader& file, Element& element) override {
    const std::string_view line = file.peek_line();
    if (line.empty()) return false;
    std::string_view text = line;
    if (text.ends_with('\n')) text.remove_suffix(1);
    if (text.ends_with('\r')) text.remove_suffix(1);
    put_bytes(text, element);
    file.consume(line.size());
    return true;
  }
};

class TfRecordParser final : public RecordParser {
  bool next(FileReader& file, Element& element) override {
    using State = PeekedRecord::State;
    const PeekedRecord record = peek_record(file);
    if (record.state == State::EndOfFile) return false;
    if (record.state == State::Whole) put_bytes(record.bytes, element);
    if (record.state == State::WrongFrame)
      file.abandon();
    else
      file.consume(record.consumed_bytes);
    if (record.state != State::Whole) resource_error(ErrorCode::DataLoss, file.path(), ": ", record.problem);
    return true;
  }
};

class FixedParser final : public RecordParser {
 public:
  FixedParser(int64_t record_bytes, const RecordOptions& o)
      : record_(static_cast<size_t>(record_bytes)),
        header_(static_cast<size_t>(o.header_bytes)),
        footer_(static_cast<size_t>(o.footer_bytes)) {}
  void begin_file(FileReader& file) override {
    if (file.peek(header_).size() < header_)
      resource_error(ErrorCode::DataLoss, file.path(), ": truncated: shorter than its header of ", header_, " bytes");
    file.consume(header_);
  }
  bool next(FileReader& file, Element& element) override {
    const int64_t start = file.offset();
    const std::string_view bytes = file.peek(record_ + footer_);
    if (bytes.size() < record_ + footer_) {
      const size_t rest = bytes.size();
      file.abandon();
      if (rest != footer_)
        resource_error(ErrorCode::DataLoss, file.path(), ": truncated: behind byte ", start, " there are ", rest,
                       " bytes, which is neither a record of ", record_, " and a footer of ", footer_, " nor the footer alone");
      return false;
    }
    put_bytes(bytes.substr(0, record_), element);
    file.consume(record_);
    return true;
  }

 private:
  const size_t record_, header_, footer_;
};

// --- patterns --------------------------------------------------------------------------------------------------------------------------

namespace fs = std::filesystem;

bool has_wildcard(const std::string& part) { return part.find_first_of("*?[") != std::string::npos; }

// All files below `folder` that fit the parts of a pattern from `at` on.
void find_files(const fs::path& folder, const std::vector<std::string>& parts, size_t at, std::vector<std::string>& found) {
  std::error_code error;
  if (at == parts.size()) return;
  const std::string& part = parts[at];
  const bool is_last = at + 1 == parts.size();
  if (part == "**") {
    find_files(folder, parts, at + 1, found);
    for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, error))
      if (entry.is_directory(error) && !entry.is_symlink(error)) find_files(folder / entry.path().filename(), parts, at, found);
    return;
  }
  if (!has_wildcard(part)) {
    const fs::path path = folder / part;
    if (!is_last)
      find_files(path, parts, at + 1, found);
    else if (fs::exists(path, error) && !fs::is_directory(path, error))
      found.push_back(path.string());
    return;
  }
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, error)) {
    const std::string name = entry.path().filename().string();
    if (fnmatch(part.c_str(), name.c_str(), FNM_PERIOD) != 0) continue;
    if (!is_last) {
      if (entry.is_directory(error)) find_files(folder / name, parts, at + 1, found);
    } else if (!entry.is_directory(error)) {
      found.push_back((folder / name).string());
    }
  }
}

}  // namespace

Specs bytes_spec() { return {{DType::U8, {Dim::symbol("c0_0")}}}; }

NodeRef file_source(FileSource source) {
  if (source.files.empty()) user_error(source.name, ": no files");
  return std::make_shared<FileNode>(std::move(source));
}

std::vector<std::string> files_that_fit(const std::string& pattern) {
  std::vector<std::string> parts;
  for (const fs::path& part : fs::path(pattern).relative_path()) parts.push_back(part.string());
  std::vector<std::string> found;
  find_files(fs::path(pattern).root_path(), parts, 0, found);
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

Dataset Dataset::list_files(const std::string& pattern, ListOptions options) {
  std::vector<std::string> files = at_border("list_files", [&] { return files_that_fit(pattern); });
  if (files.empty()) resource_error(ErrorCode::NotFound, "list_files: no file fits ", pattern);
  const auto count = static_cast<int64_t>(files.size());
  const Dataset all(numbered_source("list_files", pattern, bytes_spec(), count, [files = std::move(files)](int64_t i, Element& e) {
    e.assign(1, from_text(files[static_cast<size_t>(i)]));
  }));
  return options.shuffle ? all.shuffle(count, {.seed = options.seed}) : all;
}

Dataset Dataset::text_lines(std::vector<std::string> files, FileOptions o) {
  return Dataset(file_source(
      {"text_lines", "", std::move(files), o.compression, o.buffer_bytes, bytes_spec(), [] { return std::make_unique<LineParser>(); }}));
}

Dataset Dataset::tfrecords(std::vector<std::string> files, FileOptions o) {
  return Dataset(file_source(
      {"tfrecords", "", std::move(files), o.compression, o.buffer_bytes, bytes_spec(), [] { return std::make_unique<TfRecordParser>(); }}));
}

Dataset Dataset::fixed_length_records(std::vector<std::string> files, int64_t record_bytes, RecordOptions o) {
  positive(record_bytes, "fixed_length_records: record_bytes");
  if (o.header_bytes < 0 || o.footer_bytes < 0)
    user_error("fixed_length_records: a header of ", o.header_bytes, " and a footer of ", o.footer_bytes, " bytes");
  sum_of(record_bytes, o.footer_bytes, "fixed_length_records: a record and the footer");
  return Dataset(file_source({"fixed_length_records", std::to_string(record_bytes), std::move(files), o.compression, size_t{1} << 18,
                              Specs{{DType::U8, {record_bytes}}}, [=] { return std::make_unique<FixedParser>(record_bytes, o); }}));
}

}  // namespace tandem::data
