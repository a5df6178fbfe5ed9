// FileReader: a file from its beginning to its end, decompressed, through one buffer. Errors are ResourceErrors that name the file.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tandem/data/options.hpp>

#include "base/file.hpp"

namespace tandem::data {

enum class Files : uint8_t { Any, Regular };  // pipes can be read from beginning to end too, but are waited for
Descriptor open_to_read(const std::string& path, Files which);

struct ReaderOptions {
  Compression compression = Compression::None;
  size_t buffer_bytes = 1 << 18;
  size_t ram_budget_bytes = SIZE_MAX;  // of the pipeline; what is peeked at once has an eighth of it: it is copied while it grows and after
  Files files = Files::Any;
};

class FileReader {
 public:
  explicit FileReader(std::string path, const ReaderOptions& options = {});
  ~FileReader();
  const std::string& path() const { return path_; }
  int64_t offset() const { return offset_; }  // of what peek() shows, in the decompressed file

  // The next `count` bytes, or fewer at the end of the file. Valid until the next call. More than the budget allows is an error, and then
  // the rest of the file is left out.
  std::string_view peek(size_t count);
  // Everything up to the first '\n' behind `from` bytes, that included; all the rest when there is none.
  std::string_view peek_line(size_t from = 0);
  void consume(size_t count);  // what was peeked
  void skip_to(int64_t offset);
  void abandon();  // nothing more is read from it
  bool is_abandoned() const { return abandoned_; }

 private:
  struct Inflater;
  bool fill();  // more bytes behind those that are there; false at the end
  size_t read_some(char* to, size_t count);

  const std::string path_;
  const size_t ram_budget_bytes_, most_bytes_;
  Descriptor file_;
  std::unique_ptr<Inflater> inflater_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  int64_t offset_ = 0;
  bool ended_ = false, abandoned_ = false;
};

}  // namespace tandem::data
