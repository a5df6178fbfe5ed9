// Files as bytes, read at any place or at once.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"

namespace tandem::io {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

inline ByteView bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
inline std::string_view text_of(ByteView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// A regular file, opened for reading at any place. ResourceError with the reason when it cannot be opened or read.
class InputFile {
 public:
  explicit InputFile(std::filesystem::path path);
  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return file_.bytes; }
  Bytes read(uint64_t offset, uint64_t count) const;  // exactly that many bytes, within the size

 private:
  std::filesystem::path path_;
  RegularFile file_;
};

Bytes read_file(const std::filesystem::path& path);

Bytes allocate_bytes(uint64_t count, const std::string& what);  // ResourceError when there is not that much memory

}  // namespace tandem::io
