// A whole file in memory without reading it, and the NumPy arrays in it.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tandem/data.hpp>

#include "data/elements.hpp"
#include "data/file_reader.hpp"
#include "data/page_guard.hpp"

namespace tandem::data {

class MappedFile {
 public:
  explicit MappedFile(std::string path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::string_view bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  // Before so many bytes are touched. ResourceError when the file became shorter; what is gone between this and the touch reads as zeros,
  // and health() tells. Pages of a large file do not stay in this process for ever; the host keeps those that it has room for.
  void before(size_t bytes) const;
  const std::shared_ptr<FileHealth>& health() const { return health_; }

 private:
  const std::string path_;
  Descriptor file_;
  const char* data_ = nullptr;
  size_t size_ = 0;
  std::shared_ptr<FileHealth> health_;
  std::optional<PageGuard> guard_;
  mutable std::atomic<size_t> touched_{0};  // since pages were last given back
};
std::shared_ptr<const RowWatch> row_watch(std::shared_ptr<const MappedFile> file, const Rows& rows);

// The array in the bytes of a .npy file, which `owner` keeps. ResourceError names `what` when they are none.
RowTensor npy_array(std::string_view bytes, const std::shared_ptr<const void>& owner, const std::string& what);

// An entry of a zip archive.
struct ZipEntry {
  std::string name;
  int method = 0;          // 0 stored, 8 deflated
  std::string_view bytes;  // as they are in the file
  uint64_t full_size = 0;
  uint32_t crc = 0;
};
std::vector<ZipEntry> zip_entries(const MappedFile& file);
std::vector<char> inflated(const ZipEntry& entry, const std::string& what);

}  // namespace tandem::data
