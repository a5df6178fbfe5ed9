// Mapped pages that are gone when they are touched, since the file became shorter or the disk failed: they read as zeros and the file is
// marked, where the process would end by SIGBUS.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tandem::data {

// What became of one mapped file; outlives its mapping.
class FileHealth {
 public:
  FileHealth(std::string path, size_t bytes) : path_(std::move(path)), bytes_(bytes) {}
  bool is_broken() const { return broken_.load(std::memory_order_acquire); }
  void require_whole() const {  // ResourceError: the file, how many bytes it has and had
    if (is_broken()) throw_broken();
  }
  // Views of it have left: somebody may have read zeros from them, and computed with those.
  void gave_view() const { gave_views_.store(true, std::memory_order_relaxed); }
  bool gave_views() const { return gave_views_.load(std::memory_order_relaxed); }
  // By the signal's handler.
  void mark_broken(size_t at, size_t bytes_left);

 private:
  [[noreturn]] void throw_broken() const;
  const std::string path_;
  const size_t bytes_;
  size_t at_ = 0, bytes_left_ = 0;  // of the first break
  std::atomic<bool> marking_{false}, broken_{false};
  mutable std::atomic<bool> gave_views_{false};
};

// Guards the pages of a mapping while it lives, which is at most as long as the mapping, its descriptor and `health`.
class PageGuard {
 public:
  PageGuard(const char* begin, size_t bytes, int fd, FileHealth& health);
  ~PageGuard();
  PageGuard(const PageGuard&) = delete;
  PageGuard& operator=(const PageGuard&) = delete;

 private:
  struct Region* region_;
};

// The files that one iterator reads views of.
class WatchedFiles {
 public:
  void add(std::shared_ptr<const FileHealth> file);
  // ResourceError when views of one of them broke. Nothing that was made since can be trusted.
  void require_whole_views();

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<const FileHealth>> files_;
  size_t tidy_at_ = 16;
};

}  // namespace tandem::data
