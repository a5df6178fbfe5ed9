// Zip archives: entries stored or deflated, zip64, checked by CRC. Nothing is ever extracted to a path that an archive names.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/file.hpp"

namespace tandem::io {

// Opening checks the directory as a whole: what lies outside the file, absurd sizes, names that climb out or come twice are UserErrors
// that name the file, the entry and both numbers.
class ZipReader {
 public:
  struct Entry {
    std::string name;
    uint64_t size = 0;         // as it comes out
    uint64_t stored_size = 0;  // in the file
    uint64_t header = 0;       // where its local header is
    uint32_t crc = 0;
    uint16_t method = 0;
  };

  explicit ZipReader(const std::filesystem::path& path);
  const std::vector<Entry>& entries() const { return entries_; }
  bool has(const std::string& name) const { return find(name) != nullptr; }
  uint64_t file_size() const { return file_.size(); }
  // UserError when it has more than `most_bytes`, or is unpacked to more than an archive of this size plausibly holds.
  Bytes read(const std::string& name, uint64_t most_bytes = UINT64_MAX) const;

 private:
  struct Directory {
    uint64_t offset, size, count;
  };
  const Entry* find(const std::string& name) const;
  Directory find_directory() const;
  void read_directory(const Directory& directory);
  void check(const Entry& entry) const;
  uint64_t data_offset(const Entry& entry) const;
  template <class... T> [[noreturn]] void fail(const T&... what) const;

  InputFile file_;
  uint64_t directory_ = 0;  // entries end here
  std::vector<Entry> entries_;
};

// Entries are stored as they are, as in Keras's files: numbers hardly compress.
class ZipWriter {
 public:
  explicit ZipWriter(AtomicFile& file) : file_(file) {}
  void add(const std::string& name, std::span<const ByteView> pieces);
  void add(const std::string& name, std::string_view content) { add(name, std::array{bytes_of(content)}); }
  void finish();  // the directory; the file is the caller's to commit

 private:
  AtomicFile& file_;
  std::string directory_;
  uint64_t count_ = 0;
};

}  // namespace tandem::io
