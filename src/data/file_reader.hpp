// FileReader: a file from its beginning to its end, decompressed, through one buffer. Errors are ResourceErrors that name the file.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tandem/data/options.hpp>

namespace tandem::data {

// A file descriptor.
class Handle {
 public:
  Handle() = default;
  explicit Handle(const std::string& path);  // for reading
  ~Handle();
  Handle(Handle&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Handle& operator=(Handle&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

class FileReader {
 public:
  FileReader(std::string path, Compression compression, size_t buffer_bytes = 1 << 18);
  ~FileReader();
  const std::string& path() const { return path_; }
  int64_t offset() const { return offset_; }  // of what peek() shows, in the decompressed file

  // The next `count` bytes, or fewer at the end of the file. Valid until the next call.
  std::string_view peek(size_t count);
  // Everything up to the next `mark`, that included; all the rest when there is none.
  std::string_view peek_line(char mark = '\n');
  void consume(size_t count);  // what was peeked
  void skip_to(int64_t offset);
  void abandon();  // nothing more is read from it

 private:
  struct Inflater;
  bool fill();  // more bytes behind those that are there; false at the end
  size_t read_some(char* to, size_t count);

  const std::string path_;
  Handle file_;
  std::unique_ptr<Inflater> inflater_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  int64_t offset_ = 0;
  bool ended_ = false;
};

}  // namespace tandem::data
