// Files of the host: regular ones opened for reading, and ones that take their name only when they are whole.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace tandem {

// A descriptor that is closed at its end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& o) noexcept : fd_(o.fd_) { o.fd_ = -1; }
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void close() { *this = Descriptor(); }

 private:
  int fd_ = -1;
};

// For reading, with its size. A pipe, a folder or a device is none, and never waited for.
struct RegularFile {
  Descriptor descriptor;
  uint64_t bytes = 0;
};
RegularFile open_regular(const std::filesystem::path& path);  // ResourceError with the reason
enum class Links : uint8_t { Followed, Refused };
// None: there is no such file, or not such a one.
RegularFile find_regular(const std::filesystem::path& path, Links links);

// Writes a temporary file beside `path`; commit() gives it the name. Without commit() it is removed and `path` is as it was.
// A link stays: what it leads to is replaced. A process that is killed leaves its temporary file behind; it is named so that it is known,
// and locked while its process lives, so that the next file that is written to the same folder removes it.
class AtomicFile {
 public:
  enum class Sweep : uint8_t { Folder, Nothing };  // whether files that were left behind are looked for
  explicit AtomicFile(std::filesystem::path path, Sweep sweep = Sweep::Folder);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();
  void write(std::string_view bytes);
  uint64_t size() const { return size_; }
  enum class Flush : uint8_t { ToDisk, Later };  // Later: a crash of the host may leave a file with holes under the name
  void commit(Flush flush = Flush::ToDisk);

 private:
  [[noreturn]] void fail(int error) const;
  void create();
  void put(std::string_view bytes);
  void put_pending();
  const std::filesystem::path given_;  // in messages
  std::filesystem::path path_;         // behind links
  std::string temporary_;              // empty: none is there
  Descriptor descriptor_;
  std::string pending_;  // small writes are collected
  uint64_t size_ = 0;
};

bool is_temporary(std::string_view file_name);                          // as an AtomicFile names them
void remove_left_behind(const std::filesystem::path& folder) noexcept;  // temporary files whose process is gone

}  // namespace tandem
