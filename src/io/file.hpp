// Files as a whole: read at once, or written beside the old one and put in its place when all of it is on disk.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::io {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

inline ByteView bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
inline std::string_view text_of(ByteView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// A regular file, opened for reading at any place. ResourceError with the reason when it cannot be opened or read.
class InputFile {
 public:
  explicit InputFile(std::filesystem::path path);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();
  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return size_; }
  Bytes read(uint64_t offset, uint64_t count) const;  // exactly that many bytes, within the size

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

Bytes read_file(const std::filesystem::path& path);

// Writes a temporary file in the same folder; commit() renames it to `path`. Without commit() it is removed and `path` is as it was.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();
  void write(ByteView bytes);
  void write(std::string_view text) { write(bytes_of(text)); }
  uint64_t size() const { return size_; }
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;
  std::filesystem::path path_;
  std::string temporary_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

Bytes allocate_bytes(uint64_t count, const std::string& what);  // ResourceError when there is not that much memory

}  // namespace tandem::io
